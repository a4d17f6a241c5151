"""The store of resumable work: killed anywhere, it goes on to the very same result, and to no other's."""

import json
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnscope import files
from attnscope.engine import Store, save_checkpoint, store
from attnscope.errors import BadInput


class Killed(BaseException):
    """What a kill is to a process: nothing catches it."""


class Clock:
    """Kills at the n-th of all moments that it is asked about."""

    def __init__(self, at: int) -> None:
        self.left = at

    def tick(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


def job(folder: Path, items: list[int], size: int, clock: Clock) -> list[object]:
    """Some work of every kind that a store serves: numbered parts, a training with checkpoints, a table."""
    kept = Store(folder, "job", {"items": len(items), "size": size})

    def work(part: list[int], start: int) -> dict[str, object]:
        clock.tick()
        return {"start": start, "sum": torch.tensor(part).double().sum(), "items": tuple(part)}

    def train(growing: Path) -> list[float]:
        growing.mkdir(exist_ok=True)
        checkpoint = growing / "state.json"
        done = json.loads(checkpoint.read_text()) if checkpoint.exists() else []
        for step in range(len(done), 4):
            clock.tick()
            done.append(step / 3)
            with files.written_atomically(checkpoint) as temporary:
                temporary.write_text(json.dumps(done))
        return done

    parts = list(kept.in_parts(items, size, work, lambda item: item))
    trained = kept.grow("training", train)
    table = kept.find_table("table")
    if table is None:
        clock.tick()
        table = kept.keep_table("table", pd.DataFrame({"item": items, "third": [item / 3 for item in items]}))
    return [[(part["start"], float(part["sum"]), part["items"]) for part in parts], trained, table.to_dict()]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    items=st.lists(st.integers(-9, 9), min_size=1, max_size=7),
    size=st.integers(1, 4),
    kills=st.lists(st.integers(1, 40), max_size=6),
)
def test_killed_anywhere_it_ends_with_the_same(items, size, kills, tmp_path_factory, monkeypatch):
    whole = job(tmp_path_factory.mktemp("whole") / "kept", items, size, Clock(0))
    folder = tmp_path_factory.mktemp("killed") / "kept"
    with monkeypatch.context() as patch:
        reach, replace = files._reach_the_disk, Path.replace
        for at in kills:
            clock = Clock(at)
            # a kill comes between any two looks at the disk, too: before a file has its name, and after
            patch.setattr(files, "_reach_the_disk", lambda path, clock=clock: (clock.tick(), reach(path)))
            patch.setattr(Path, "replace", lambda self, to, clock=clock: (clock.tick(), replace(self, to))[1])
            with suppress(Killed):
                assert job(folder, items, size, clock) == whole
    assert job(folder, items, size, Clock(0)) == whole
    assert sorted(path.name for path in folder.iterdir() if "growing" in path.name) == []


def test_a_part_is_made_once(tmp_path):
    made = []
    kept = Store(tmp_path / "kept", "job", {})
    for _ in range(3):
        assert kept.once("part", lambda: made.append(1) or {"made": len(made)}) == {"made": 1}
    assert made == [1]


def test_without_a_folder_nothing_is_kept():
    kept = Store(None, "job", {"limit": 1})
    assert [kept.once("part", lambda: [1]), kept.find("part"), kept.is_empty] == [[1], None, True]
    kept.clear()
    with pytest.raises(ValueError, match="without a folder"):
        kept.file("draft.txt")


def test_nothing_is_written_before_the_first_part(tmp_path):
    kept = Store(tmp_path / "out" / "unfinished", "job", {"limit": 2})
    assert not (tmp_path / "out").exists()
    kept.keep("part", [1])
    assert json.loads((kept.folder / store.RECIPE).read_text()) == {"limit": 2}
    kept.clear()
    assert not (tmp_path / "out").exists()


def test_what_was_begun_with_another_recipe_is_refused(tmp_path):
    Store(tmp_path / "kept", "survey", {"limit": 2, "model": {"name": "a"}}).begin()
    differences = r"belongs to another survey \(limit was 2, is now 3; model name was a, is now b\)"
    with pytest.raises(BadInput, match=differences):
        Store(tmp_path / "kept", "survey", {"limit": 3, "model": {"name": "b"}})
    again = Store(tmp_path / "kept", "survey", {"limit": 2, "model": {"name": "a"}})
    assert again.is_empty


def test_a_part_of_other_input_is_refused(tmp_path):
    kept = Store(tmp_path / "kept", "job", {})
    kept.keep("part", {"figure": 1.5}, made_of=["some", "text"])
    assert kept.find("part", made_of=["some", "text"]) == kept.find("part") == {"figure": 1.5}
    with pytest.raises(BadInput, match="was made of other input, which has changed since"):
        kept.find("part", made_of=["another", "text"])


def test_a_damaged_recipe_is_told(tmp_path):
    (tmp_path / store.RECIPE).write_text("[1, 2")
    with pytest.raises(BadInput, match=r"recipe\.json is damaged: remove .*, and begin again"):
        Store(tmp_path, "job", {})


def test_parts_that_are_damaged_or_of_another_kind_are_told(tmp_path):
    kept = Store(tmp_path, "job", {})
    save_checkpoint(tmp_path / "part.safetensors", {"fingerprint": "of another version"})
    with pytest.raises(BadInput, match=r"part\.safetensors is no part of a job: remove .*, and begin again"):
        kept.find("part")
    (tmp_path / "part.safetensors").write_bytes(b"half a file")
    with pytest.raises(BadInput, match="is not a checkpoint, or is damaged"):
        kept.find("part")
    (tmp_path / "table.parquet").write_bytes(b"half a file")
    with pytest.raises(BadInput, match=r"table\.parquet is damaged: remove .*, and begin again"):
        kept.find_table("table")
