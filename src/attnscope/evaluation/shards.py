"""Shards: the figures of a few texts in one file, so that a kill costs only the texts since the last."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int64

from ..engine import check_recipe, load_checkpoint, save_checkpoint


@dataclass(frozen=True)
class Shard:
    """The figures of some texts, and how many tokens each text has."""

    values: Float64[np.ndarray, "text figure"]
    lengths: Int64[np.ndarray, " text"]


def shard_path(folder: Path, number: int) -> Path:
    """The file of a shard."""
    return folder / f"{number:06d}.safetensors"


def save_shard(folder: Path, number: int, shard: Shard, recipe: Mapping[str, Any]) -> None:
    """Write a shard, all at once, with what it is a shard of."""
    state = {
        "recipe": dict(recipe),
        "values": torch.from_numpy(shard.values),
        "lengths": torch.from_numpy(shard.lengths),
    }
    save_checkpoint(shard_path(folder, number), state)


def saved_shards(folder: Path, recipe: Mapping[str, Any]) -> list[Shard]:
    """The shards that are there, from the first on without a gap; those of another measurement are refused."""
    found: list[Shard] = []
    for number in count():
        path = shard_path(folder, number)
        if not path.exists():
            return found
        state = load_checkpoint(path)
        check_recipe(path, "measurement", state["recipe"], recipe)
        found.append(Shard(state["values"].numpy(), state["lengths"].numpy()))
    return found
