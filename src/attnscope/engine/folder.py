"""The folder that a long computation grows in: nothing of anybody else's is touched, and nothing is begun twice."""

from pathlib import Path

from ..errors import BadInput
from ..files import check_can_be_made


def checked_folder(out: Path, what: str, *, resume: bool, finished: str, unfinished: tuple[str, ...]) -> Path:
    """The folder, if it is empty or not there, or holds such a computation and that shall go on.

    `finished` is the file that is written last. `unfinished` are patterns of what is there before it.

    >>> full = getfixture("tmp_path")
    >>> _ = (full / "card.json").write_text("{}")
    >>> names = {"finished": "card.json", "unfinished": ("unfinished",)}
    >>> checked_folder(full, "survey", resume=True, **names) == full
    True
    >>> checked_folder(full, "survey", resume=False, **names)
    Traceback (most recent call last):
    attnscope.errors.BadInput: ... already holds a finished survey: choose another folder, or go on with it (--resume,
    resume=True).
    """
    check_can_be_made(out)
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return out
    if not out.is_dir():
        raise BadInput(f"A {what} is kept in a folder, but {out} is a file.")
    is_finished = (out / finished).exists()
    if not is_finished and not any(next(out.glob(pattern), None) for pattern in unfinished):
        raise BadInput(f"{out} is not empty and holds no {what}: choose another folder.")
    if not resume:
        state = "a finished" if is_finished else "an unfinished"
        raise BadInput(
            f"{out} already holds {state} {what}: choose another folder, or go on with it (--resume, resume=True)."
        )
    return out
