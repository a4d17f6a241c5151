"""How likely two tokens are linked, by their distance: what the corpus itself says of position and syntax."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Bool
from torch import Tensor

from .batch import Frame
from .layer import LayerAttention
from .statistic import PARSE, Caption
from .tally import Additive, Tally


@dataclass
class DependencyByDistance(Additive):
    """P(linked | distance) over pairs of tokens that count, whichever of the two is the head.

    A head that always looks at the token before has as its dependency alignment the first figure of this curve
    (Vig & Belinkov 2019, section 5.3.3: .42, .07 and .02 at distances 1, 5 and 10).
    """

    caption: ClassVar[Caption] = Caption(
        "Dependency by distance",
        "share of pairs",
        "A property of the corpus: how likely two tokens are linked, by their distance.",
    )
    needs: ClassVar[tuple[str, ...]] = (PARSE,)
    errors: ClassVar[Mapping[str, str]] = {"value": "error"}
    second_pass: ClassVar[None] = None

    linked: Tally
    pairs: Tally

    @classmethod
    def empty(cls, frame: Frame) -> "DependencyByDistance":  # noqa: ARG003 -- statistics are all made alike
        """One that has seen nothing."""
        return cls(linked=Tally.zeros(()), pairs=Tally.zeros(()))

    def update(self, attention: LayerAttention) -> None:
        """Take in one batch; its attention does not matter, so only the first layer does it."""
        if attention.layer == 0:
            batch = attention.batch
            back = batch.kept.tril(-1)
            linked = batch.dependent_to_head | batch.dependent_to_head.transpose(1, 2)
            self.pairs = self.pairs.plus(_by_distance(back))
            self.linked = self.linked.plus(_by_distance(back & linked))

    def result(self) -> pd.DataFrame:
        """The table: distance, value, and the counts behind it."""
        linked = dict(zip(self.linked.labels, self.linked.sums.tolist(), strict=True))
        pairs = dict(zip(self.pairs.labels, self.pairs.sums.tolist(), strict=True))
        distances = sorted(pairs, key=int)
        table = pd.DataFrame(
            {
                "distance": np.array([int(distance) for distance in distances], dtype=np.int64),
                "pairs": np.array([pairs[distance] for distance in distances]),
                "linked": np.array([linked.get(distance, 0.0) for distance in distances]),
            }
        )
        table.insert(1, "value", table["linked"] / table["pairs"])
        return table

    def by_layer(self) -> None:
        """It is the same for every layer."""


def _by_distance(pairs: Bool[Tensor, "sentence query key"]) -> Tally:
    _, query, key = pairs.nonzero(as_tuple=True)
    distances, counts = (query - key).unique(return_counts=True)
    return Tally(tuple(str(distance) for distance in distances.tolist()), counts.double())
