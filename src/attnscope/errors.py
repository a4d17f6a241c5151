"""Errors that are told in one sentence: what is wrong, where, and what to do."""


class BadInput(ValueError):
    """What was given cannot be used; the message is one clear sentence. The command line turns it into exit code 2."""


class WorkerDied(RuntimeError):
    """Workers died so often that the work was given up. The command line turns it into exit code 1."""
