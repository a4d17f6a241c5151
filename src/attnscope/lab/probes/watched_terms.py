"""WatchedTerms: the terms A to F and the dot products of words while a classifier learns, as rows of its log."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int64

from ..data.packed import PackedTexts
from ..models.attention_classifier import AttentionClassifier
from ..polarity import global_scores
from .dot_products import dot_products
from .score_terms import NAMES, score_terms


@dataclass(frozen=True, eq=False)
class WatchedTerms:
    """A probe of a model with the variant dot and two classes: means over the words of each kind.

    `kinds` are the numbers of words by a name, such as those of `TokenClasses`. A row has the scores themselves as
    "polarity_positive" and "attention_positive", the terms as "A_positive" and the like, and what `dot_products` gives.
    """

    model: AttentionClassifier
    texts: PackedTexts
    kinds: Mapping[str, Int64[np.ndarray, " _"]]
    steps: Container[int] = field(default_factory=lambda: range(0))
    name: str = "score_terms"
    penalty: int | float = 0.0
    penalty_kind: str = "absolute"
    watch: Callable[[Mapping[str, int | float | str]], None] | None = None
    """Told each row as it is seen, such as a view that grows."""

    def __call__(self, step: int) -> Mapping[str, int | float | str]:
        """The row of a step, from the model as it is then."""
        row: dict[str, int | float | str] = {"step": step, **dot_products(self.model, self.kinds)}
        every = np.concatenate(list(self.kinds.values()))
        terms = score_terms(
            self.model, self.texts, every.tolist(), penalty=self.penalty, penalty_kind=self.penalty_kind
        )
        scores = global_scores(self.model)
        for kind, numbers in self.kinds.items():
            row[f"polarity_{kind}"] = float(scores.polarity[numbers, 0].mean())
            row[f"attention_{kind}"] = float(scores.attention[numbers].mean())
        ends = np.cumsum([len(numbers) for numbers in self.kinds.values()])
        for kind, end, numbers in zip(self.kinds, ends, self.kinds.values(), strict=True):
            for term in NAMES:
                row[f"{term}_{kind}"] = float(getattr(terms, term)[end - len(numbers) : end].mean())
        if self.watch is not None:
            self.watch({"probe": self.name, **row})
        return row
