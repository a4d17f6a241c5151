"""Snapshots: what a model thought of every position of some texts at one step of its training, kept as files.

Snell et al. 2021 compare attention, lexical knowledge and saliency of runs with each other at many steps. A training
keeps such tables as it goes; every agreement is computed afterwards from them alone.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..engine import load_checkpoint, save_checkpoint
from ..errors import BadInput

SUFFIX = ".safetensors"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The quantities of each position at one step of a training, and how well the model did then.

    A row is a text, or one word of a translation. The names of values are "attention" (α), "lexical" (β as a logit or
    a log probability) and "saliency" (Δ, positive helps); what stands where `real` is false means nothing.
    """

    step: int
    performance: Mapping[str, float]
    values: Mapping[str, Float[Tensor, "row position"]]
    real: Bool[Tensor, "row position"]

    def __post_init__(self) -> None:
        if bool((self.real[:, 1:] & ~self.real[:, :-1]).any()):
            raise BadInput("The positions of a snapshot's row stand at its beginning, and its padding behind them.")


def save_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot, all at once; padding is not kept.

    >>> path = getfixture("tmp_path") / "10.safetensors"
    >>> table, real = torch.tensor([[0.7, 0.3], [1.0, 0.0]]), torch.tensor([[True, True], [True, False]])
    >>> save_snapshot(path, Snapshot(10, {"accuracy": 0.5}, {"attention": table}, real))
    >>> load_snapshot(path).values["attention"].tolist()[1]
    [1.0, 0.0]
    """
    save_checkpoint(
        path,
        {
            "step": snapshot.step,
            "performance": dict(snapshot.performance),
            "lengths": snapshot.real.sum(1),
            "values": {name: table[snapshot.real] for name, table in snapshot.values.items()},
        },
    )


def load_snapshot(path: Path) -> Snapshot:
    """The snapshot that was written, with zeros where there is padding."""
    kept = load_checkpoint(path)
    if set(kept) != {"step", "performance", "lengths", "values"}:
        raise BadInput(f"{path} is not a snapshot of a training.")
    lengths = kept["lengths"]
    real = torch.arange(int(lengths.max()) if len(lengths) else 0) < lengths[:, None]
    values = {name: torch.zeros(real.shape, dtype=flat.dtype) for name, flat in kept["values"].items()}
    for name, flat in kept["values"].items():
        values[name][real] = flat
    return Snapshot(kept["step"], kept["performance"], values, real)


def load_snapshots(folder: Path) -> Iterator[Snapshot]:
    """The snapshots of a folder one by one, in the order of their steps."""
    # by number, because a kill may have left half a file beside them
    found = [path for path in Path(folder).glob(f"*{SUFFIX}") if path.stem.isdecimal()]
    files = sorted(found, key=lambda path: int(path.stem))
    if not files:
        raise BadInput(f"There are no snapshots in {folder}.")
    return map(load_snapshot, files)


def best_snapshot(snapshots: Iterable[Snapshot], by: str = "accuracy") -> Snapshot:
    """The first snapshot with the best performance of that name."""
    return max(snapshots, key=lambda snapshot: snapshot.performance[by])


@dataclass(frozen=True)
class SnapshotProbe:
    """A probe that keeps a snapshot of what `look(step)` sees in `folder`, one file to each of its steps.

    Its row in the log is the performance. A training that is gone on with writes the same snapshots again.
    """

    name: str
    folder: Path
    steps: Container[int]
    look: Callable[[int], Snapshot]

    def __call__(self, step: int) -> dict[str, int | float | str]:
        """Look, keep, and tell how well the model does."""
        snapshot = self.look(step)
        save_snapshot(self.folder / f"{step}{SUFFIX}", snapshot)
        return dict(snapshot.performance)
