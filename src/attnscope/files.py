"""Writing files so that a reader finds the old content or the new, never half of either."""

import errno
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NOT_FLUSHED = {errno.EINVAL, errno.EBADF, errno.EACCES, errno.EPERM, errno.ENOTSUP, errno.EROFS}
"""What systems say that cannot flush such a file; anything else, as a full disk, means that it is not written."""


@contextmanager
def written_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; what is written there becomes `path` at the end, all at once.

    If the block raises, `path` is left as it was and what was made here, missing parent folders too, is removed.

    >>> target = getfixture("tmp_path") / "note.txt"
    >>> with written_atomically(target) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    path = Path(path)
    made = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = None
    try:
        temporary = _new_file_beside(path)
        yield temporary
        _reach_the_disk(temporary)
        temporary.replace(path)
    except BaseException:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        remove_if_empty(*made)
        raise
    _reach_the_disk(path.parent)


def write_tensors(path: Path, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file, all at once; a full disk is an OSError, as it is for any other file.

    >>> import torch
    >>> write_tensors(getfixture("tmp_path") / "missing" / "one.safetensors", {"one": torch.ones(1)})
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    with written_atomically(path) as temporary:
        try:
            save_file(dict(tensors), temporary, metadata=None if metadata is None else dict(metadata))
        except SafetensorError as error:
            raise OSError(f"{path} cannot be written: {error}") from error


def check_can_be_made(path: Path) -> None:
    """Raise an OSError if nothing can be written at this path, before hours of work are done for it.

    >>> check_can_be_made(getfixture("tmp_path") / "new" / "folder")
    """
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if there != path and not there.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(there))
    if not os.access(there, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(there))


def remove_if_empty(*folders: Path) -> None:
    """Remove those folders that hold nothing, in this order: who gets an error finds nothing that was made for it."""
    for folder in folders:
        with suppress(OSError):  # there is something in it, or it is not there
            folder.rmdir()


def _new_file_beside(path: Path) -> Path:
    """A new empty file with the permissions of any other, hidden while it grows.

    In the same folder, because a rename is atomic only within one file system; with the same suffix, because some
    writers choose their format by it.
    """
    while True:
        # Short, because a name that fits the file system must fit it here too.
        beside = path.with_name(f".{secrets.token_hex(8)}{path.suffix}")
        try:
            os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            continue
        return beside


def _reach_the_disk(path: Path) -> None:
    """Wait until the file (or the folder's list of names) survives a power cut."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:  # Windows does not open folders; there the rename itself is durable enough
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Windows flushes only files opened for writing, and some network file systems flush no folders: the rename
        # stays atomic, so a reader still never sees half a file.
        if error.errno not in NOT_FLUSHED:
            raise
    finally:
        os.close(descriptor)
