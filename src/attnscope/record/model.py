"""The Model protocol: what a method may ask of a model it must run again, without importing `capture`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from .attention import AttentionRecord

Text = str | list[str] | tuple[str | list[str], ...]
"""A text, words already split (a list), or a pair of either (a tuple of two)."""


@runtime_checkable
class Model(Protocol):
    """A model whose attention can be read, and which can be run again."""

    def record(self, text: Text, **options: Any) -> AttentionRecord:
        """What the model does on one text."""
        ...

    def records(self, texts: Iterable[Text], batch_size: int = 16, **options: Any) -> Iterator[AttentionRecord]:
        """What the model does on each text, in the order given."""
        ...

    def probabilities(
        self, inputs: Sequence[Mapping[str, Int[Tensor, " _"]]], batch_size: int = 16
    ) -> Float[Tensor, "item outcome"]:
        """The probability of every outcome for each of these inputs, which look like `record.inputs`."""
        ...
