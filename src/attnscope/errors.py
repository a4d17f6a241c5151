"""Errors that are told in one sentence: what is wrong, where, and what to do."""


class BadInput(ValueError):
    """What was given cannot be used; the message is one clear sentence. The command line turns it into exit code 2."""


class WorkerDied(RuntimeError):
    """Workers died so often that the work was given up. The command line turns it into exit code 1."""


def is_text(text: str) -> bool:
    """Whether a string is whole characters; halves (lone surrogates) come from JSON and from other encodings.

    >>> is_text("é"), is_text(chr(0xDCE9))
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_number(name: str, number: object, least: int, most: int = 2**63 - 1) -> None:
    """Refuse what is no whole number from `least` to `most`.

    >>> check_number("workers", 0, 1)
    Traceback (most recent call last):
    attnscope.errors.BadInput: workers must be at least 1, not 0.
    """
    if not isinstance(number, int) or isinstance(number, bool):
        raise BadInput(f"{name} must be a whole number, not {str(number)[:40]!r}.")
    if not least <= number <= most:
        limit = f"at least {least}" if number < least else f"at most {most}"
        # a number of thousands of digits cannot be written out, and need not be
        told = number if abs(number) < 10**40 else "one of more than 40 digits"
        raise BadInput(f"{name} must be {limit}, not {told}.")


MOST_WORKERS, MOST_THREADS = 4096, 1024
"""More than any machine has use for; with far more, the system gives up in the middle of the work."""


def check_workers(workers: int | None, threads: int) -> None:
    """Refuse numbers of workers and of threads of each that no machine can serve; None is as many as there is room."""
    if workers is not None:
        check_number("workers", workers, 1, MOST_WORKERS)
    check_number("threads", threads, 1, MOST_THREADS)
