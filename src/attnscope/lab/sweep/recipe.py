"""What all runs of a sweep have in common: the authors' training recipe."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from zlib import crc32

import numpy as np

from ...errors import BadInput
from ..data.packed import ClassifiedTexts
from .runs import RunSettings


@dataclass(frozen=True)
class Recipe:
    """How every run is trained: Adagrad, batches in a new order in every epoch, dropout of a half or none."""

    width: int
    epochs: int
    batch: int
    rate: int | float
    rate_decay: int | float
    dropout: int | float
    precision: str
    patience: int | None
    epsilon: float = 1e-10

    def __post_init__(self) -> None:
        if self.dropout not in {0, 0.5}:
            raise BadInput(f"Dropout is 0.5 (one bit decides) or 0 here, not {self.dropout}.")
        if self.precision not in {"float32", "float64"}:
            raise BadInput(f"The precision is float32 or float64, not {self.precision!r}.")
        if min(self.width, self.epochs, self.batch) < 1 or (self.patience is not None and self.patience < 1):
            raise BadInput("Width, epochs, batch and patience must be at least 1.")

    @property
    def kind(self) -> type:
        """NumPy's type of the weights."""
        return np.float32 if self.precision == "float32" else np.float64

    def rate_at(self, step: int) -> float:
        """The learning rate of the update of that number, from 0."""
        return float(self.rate / (1 + step * self.rate_decay))


def asked(
    data: ClassifiedTexts, runs: Sequence[RunSettings], recipe: Recipe, vectors: np.ndarray | None
) -> dict[str, Any]:
    """What a sweep was asked for, in terms a checkpoint can hold; data and vectors by a checksum."""
    arrays = [
        getattr(part, name) for part in (data.train, data.dev, data.test) for name in ("tokens", "starts", "labels")
    ]
    sums = [crc32(np.ascontiguousarray(array).tobytes()) for array in arrays]
    return {
        "data": data.name,
        "texts": sums,
        "vocabulary": len(data.vocabulary),
        "vectors": None if vectors is None else crc32(np.ascontiguousarray(vectors).tobytes()),
        "runs": [asdict(run) for run in runs],
        **asdict(recipe),
    }
