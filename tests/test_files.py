"""A file written atomically is the old one or the new one, whatever happens in between."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors import SafetensorError

from attnscope.files import check_can_be_made, write_tensors, written_atomically


def test_the_content_arrives_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "note.txt"
    with written_atomically(target) as temporary:
        temporary.write_text("whole")
        assert temporary.parent == target.parent
        assert not target.exists()
    assert target.read_text() == "whole"
    assert [path.name for path in target.parent.iterdir()] == ["note.txt"]


def test_the_suffix_is_kept_for_writers_that_read_it(tmp_path: Path) -> None:
    with written_atomically(tmp_path / "figure.svg") as temporary:
        assert temporary.suffix == ".svg"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_keeps_the_old_file_and_removes_the_temporary_one(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "note.txt"
    target.write_text("old")
    with pytest.raises(error), written_atomically(target) as temporary:
        temporary.write_text("ne")
        raise error
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_kill_while_writing_keeps_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "note.txt"
    target.write_text("old")
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from attnscope.files import written_atomically\n"
        "with written_atomically(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half of the n')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    died = subprocess.run([sys.executable, "-c", script, str(target)], check=False)
    assert died.returncode != 0
    assert target.read_text() == "old"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
def test_the_file_has_the_permissions_of_a_plainly_created_one(tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("")
    with written_atomically(tmp_path / "atomic.txt") as temporary:
        temporary.write_text("")
    assert (tmp_path / "atomic.txt").stat().st_mode == plain.stat().st_mode


def test_the_umask_of_the_process_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("other threads create files meanwhile"))
    with written_atomically(tmp_path / "note.txt") as temporary:
        temporary.write_text("whole")


def test_tensors_on_a_full_disk_are_an_oserror_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fills_the_disk(_tensors: object, path: Path, metadata: object) -> None:
        path.write_bytes(b"half")
        raise SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", fills_the_disk)
    with pytest.raises(OSError, match=r"one\.safetensors cannot be written: .*No space left on device"):
        write_tensors(tmp_path / "new" / "folder" / "one.safetensors", {})
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_reach_the_disk_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), written_atomically(tmp_path / "note.txt") as temporary:
        temporary.write_text("whole")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_to_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path, tmp_path / "file", tmp_path / "new" / "folder"):
        check_can_be_made(path)
    with pytest.raises(NotADirectoryError):
        check_can_be_made(tmp_path / "file" / "new" / "folder")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError):
        check_can_be_made(tmp_path / "new")
