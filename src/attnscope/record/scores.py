"""TokenScores: what a method says of each token."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from .sketch import scores_html
from .tokens import readable


@dataclass(frozen=True, eq=False, repr=False)
class TokenScores:
    """A score for each key token, as the record's read-out sees it.

    Where the method has a whole map, `map[layer, query, key]` is computed when it is first asked for.
    """

    method: str
    tokens: tuple[str, ...]
    scores: Float[Tensor, " key"]
    special: tuple[bool, ...]
    compute_map: Callable[[], Float[Tensor, "layer query key"]] | None = field(default=None)

    @cached_property
    def map(self) -> Float[Tensor, "layer query key"]:
        """The score of every key for every query at every layer."""
        if self.compute_map is None:
            raise BadInput(f"The method {self.method} scores tokens for the read-out only: it has no map.")
        return self.compute_map()

    def at(self, query: int, layer: int = -1) -> Float[Tensor, " key"]:
        """The scores for another position or layer."""
        for name, position, length in (("layer", layer, self.map.shape[0]), ("query", query, self.map.shape[1])):
            if not -length <= position < length:
                raise BadInput(f"There is no {name} {position}: this record has {length}, counted from 0.")
        return self.map[layer, query]

    def __repr__(self) -> str:
        pairs = zip(readable(self.tokens), self.scores.tolist(), strict=True)
        return f"TokenScores({self.method}: {', '.join(f'{token.strip()} {score:.3f}' for token, score in pairs)})"

    def _repr_html_(self) -> str:
        caption = "Ink is linear from 0 to the largest score."
        return scores_html(self.method, self.tokens, self.special, self.scores.tolist(), caption)
