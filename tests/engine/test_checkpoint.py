"""A checkpoint gives back exactly what was saved, or says in one sentence why it cannot."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor, nn

from attnscope.engine import load_checkpoint, save_checkpoint
from attnscope.errors import BadInput

KEYS = st.one_of(st.text(max_size=5), st.integers())
TENSORS = st.builds(
    lambda sizes, kind: (torch.rand(sizes) * 100).to(kind),
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]),
)
ATOMS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5), TENSORS)
NESTS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
    ),
    max_leaves=8,
)


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@given(state=st.dictionaries(KEYS, NESTS, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_loaded_is_what_was_saved(tmp_path: Path, state: dict[Any, Any]) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, state)
    assert same(load_checkpoint(path), state)


def test_an_optimizer_goes_on_where_it_stopped(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    save_checkpoint(tmp_path / "c", {"optimizer": optimizer.state_dict(), "random": torch.get_rng_state()})
    state = load_checkpoint(tmp_path / "c")
    assert same(state["optimizer"], optimizer.state_dict())
    assert torch.equal(state["random"], torch.get_rng_state())


def test_tensors_may_share_memory(tmp_path: Path) -> None:
    tied = torch.arange(6.0).reshape(2, 3)
    save_checkpoint(tmp_path / "c", {"one": tied, "two": tied, "turned": tied.T, "row": tied[1]})
    state = load_checkpoint(tmp_path / "c")
    assert torch.equal(state["two"], tied)
    assert torch.equal(state["turned"], tied.T)
    assert torch.equal(state["row"], tied[1])


def test_what_cannot_be_kept_is_refused_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "c"
    save_checkpoint(path, {"step": 1})
    with pytest.raises(BadInput, match="not set"):
        save_checkpoint(path, {"step": {1, 2}})
    with pytest.raises(BadInput, match="keys"):
        save_checkpoint(path, {(1, 2): 3})
    assert load_checkpoint(path) == {"step": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_kill_in_the_middle_of_writing_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "c"
    save_checkpoint(path, {"step": 1})
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "import safetensors.torch\n"
        "from attnscope.engine import save_checkpoint\n"
        "def dies_halfway(tensors, path, metadata):\n"
        "    path.write_bytes(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "safetensors.torch.save_file = dies_halfway\n"
        "save_checkpoint(Path(sys.argv[1]), {'step': 2})\n"
    )
    died = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert died.returncode == -9
    assert load_checkpoint(path) == {"step": 1}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no checkpoint at"):
        load_checkpoint(tmp_path / "c")


@pytest.mark.parametrize("length", [0, 5, 60, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "c"
    save_checkpoint(path, {"weights": torch.ones(100)})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(BadInput, match="damaged"):
        load_checkpoint(path)


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a letter to the editor, and no checkpoint")
    save_file({"weights": torch.ones(2)}, tmp_path / "tensors")
    save_file({}, tmp_path / "broken", metadata={"attnscope.checkpoint": '{"tensor": "7"}'})
    save_file({}, tmp_path / "list", metadata={"attnscope.checkpoint": '{"list": []}'})
    for name, message in (("text", "not a checkpoint"), ("tensors", "not a checkpoint of attnscope")):
        with pytest.raises(BadInput, match=message):
            load_checkpoint(tmp_path / name)
    for name in ("broken", "list"):
        with pytest.raises(BadInput, match="damaged"):
            load_checkpoint(tmp_path / name)
