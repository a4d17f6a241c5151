"""Work on many sentences, some at a time: each part is kept on disk, and what is kept is not done again."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ...engine import load_checkpoint, save_checkpoint
from ...errors import BadInput

PART = 100
"""Sentences between two looks at the disk: some seconds of work."""

Item = TypeVar("Item")
State = dict[str, Any]


def done_in_parts(
    items: Sequence[Item],
    work: Callable[[Sequence[Item], int], Sequence[State]],
    folder: Path,
    model: str,
    named: Callable[[Item], object],
    watch: Callable[[int, int], None],
) -> list[State]:
    """What `work(part, number of its first item)` gives for all items, in their order.

    A part must not depend on other parts, so that it does not matter where a run begins. `model` tells the
    model from others and `named(item)` an item, in JSON terms; a folder that holds other work is refused.
    """
    found: list[State] = []
    for number, start in enumerate(range(0, len(items), PART)):
        watch(start, len(items))
        part = items[start : start + PART]
        fingerprint = hashlib.sha256(json.dumps([model, *map(named, part)]).encode()).hexdigest()
        path = folder / f"{number:04d}.safetensors"
        if not path.exists():
            save_checkpoint(path, {"fingerprint": fingerprint, "states": list(work(part, start))})
        kept = load_checkpoint(path)
        if kept["fingerprint"] != fingerprint:
            raise BadInput(f"{path} is of other sentences or another model: remove {folder}, or choose another folder.")
        found += kept["states"]
    watch(len(items), len(items))
    return found
