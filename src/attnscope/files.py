"""Writing files so that a reader finds the old content or the new, never half of either."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; what is written there becomes `path` at the end, all at once.

    If the block raises, `path` is left as it was and the temporary file is removed. Missing parent folders are made.

    >>> target = getfixture("tmp_path") / "note.txt"
    >>> with written_atomically(target) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The same folder, because a rename is atomic only within one file system; the same suffix, because some writers
    # choose their format by it.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=path.suffix)
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        _reach_the_disk(temporary)
        temporary.chmod(_ordinary_mode())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _reach_the_disk(path.parent)


def _reach_the_disk(path: Path) -> None:
    """Wait until the file (or the folder's list of names) survives a power cut."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:  # Windows does not open folders; there the rename itself is durable enough
        return
    try:
        os.fsync(descriptor)
    except OSError:
        # Windows flushes only files opened for writing, and some network file systems flush no folders: the rename
        # stays atomic, so a reader still never sees half a file.
        pass
    finally:
        os.close(descriptor)


def _ordinary_mode() -> int:
    """The permissions that a plainly created file gets, since temporary files are made private."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
