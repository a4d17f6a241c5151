"""The one error a user can cause: a sentence that says what is wrong, where, and what to do."""


class BadInput(ValueError):
    """What was given cannot be used; the message is one clear sentence. The command line turns it into exit code 2."""
