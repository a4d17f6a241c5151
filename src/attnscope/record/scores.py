"""TokenScores: what a method says of each token."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from .checks import position
from .schema import Count, Label, Words, check_fields, checked
from .segments import TokenSegments
from .sketch import scores_html
from .words import Level, readable, units

if TYPE_CHECKING:
    import pandas as pd
    from rich.text import Text


@dataclass(frozen=True, eq=False)
class Saturation:
    """How much of a flow is just its trivial cut, by layer.

    The share of computed pairs whose flow is what the source can give (`source`), what the token can take in the first
    layer (`token`), and either of them (`total`).
    """

    total: Float[Tensor, " layer"]
    source: Float[Tensor, " layer"]
    token: Float[Tensor, " layer"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TokenScores:
    """A score for each key token, as the record's read-out sees it.

    A method that has a whole map computes `map[layer, query, key]` when it is first asked for, and single rows of it
    for `at`. `warnings` are sentences about what these scores cannot say.
    """

    method: Label
    tokens: tuple[Label, ...]
    scores: Float[Tensor, " key"]
    special: tuple[bool, ...]
    word_ids: tuple[Count | None, ...]
    segments: TokenSegments | None = None
    """The segments of the text that the tokens belong to, where the record has any."""
    grid: tuple[Count, Count] | None = None
    """The rows and columns of an image's patches, where the tokens that are not special are patches."""
    size: tuple[Count, Count] = (0, 0)
    """Layers and queries of the map."""
    compute_map: Callable[[], Float[Tensor, "layer query key"]] | None = None
    compute_row: Callable[[int, int], Float[Tensor, " key"]] | None = None
    """The scores for one layer and query, both counted from zero."""
    compute_saturation: Callable[[Float[Tensor, "layer query key"]], Saturation] | None = None
    compute_per_head: Callable[[], Float[Tensor, "layer head key"]] | None = None
    upper: Float[Tensor, " key"] | None = None
    """Where a method could only be bounded: what the true scores are at most; `scores` then are what they are at
    least."""
    warnings: tuple[Words, ...] = ()
    prefix: "TokenScores | None" = None
    """Where the scores are of an encoder-decoder's source: what stays on the tokens that the decoder had read before.
    Scores and prefix together sum to one, for the read-out as for each row of their maps."""
    noise: Words = ""
    """Why nothing should be ranked against these scores, in words; empty where it may be."""

    def __post_init__(self) -> None:
        check_fields(self, {})
        for name in ("tokens", "special", "word_ids"):
            if len(getattr(self, name)) != len(self.scores):
                raise BadInput(f"{name} has {len(getattr(self, name))} entries beside {len(self.scores)} scores.")

    @cached_property
    def map(self) -> Float[Tensor, "layer query key"]:
        """The score of every key for every query at every layer."""
        if self.compute_map is None:
            raise BadInput(f"The method {self.method} scores tokens for the read-out only: it has no map.")
        return self.compute_map()

    def at(self, query: int, layer: int = -1) -> Float[Tensor, " key"]:
        """The scores for another position or layer."""
        if self.compute_row is None:
            raise BadInput(f"The method {self.method} scores tokens for the read-out only: it has no map.")
        layer, query = position(layer, self.size[0], "layer"), position(query, self.size[1], "query")
        # a cached property lies in the instance's dictionary once it has been computed; rows left out of it are not
        known = self.map[layer, query] if "map" in self.__dict__ else None
        return self.compute_row(layer, query) if known is None or bool(known.isnan().any()) else known

    @cached_property
    def per_head(self) -> Float[Tensor, "layer head key"]:
        """The scores of each head at each layer, for the read-out.

        Of layer-wise tracing, what each head has passed down to that layer; layer 0 is on the input tokens. Of rollout
        and flow, what they give where only this head of this layer counts, over the pooled layers below.
        """
        if self.compute_per_head is None:
            raise BadInput(f"The method {self.method} does not tell heads apart.")
        return self.compute_per_head()

    @cached_property
    def saturation(self) -> Saturation:
        """How much of this flow is just its trivial cut, by layer."""
        if self.compute_saturation is None:
            raise BadInput(f"Only flow saturates; the method {self.method} does not.")
        return self.compute_saturation(self.map)

    @property
    def saturated(self) -> Float[Tensor, " layer"]:
        """The share of computed pairs whose flow is just the trivial cut, by layer."""
        return self.saturation.total

    def words(self) -> "TokenScores":
        """The same scores at word level: the score of a word is the sum over its pieces."""
        return self.sum_by("word")

    def sentences(self) -> "TokenScores":
        """The same scores for whole sentences: sums over their tokens; special tokens stay alone."""
        return self.sum_by("sentence")

    @checked
    def sum_by(self, level: str) -> "TokenScores":
        """The same scores for the units of a level: sums over their tokens.

        The levels are token, word, sentence and those of the record's segments.
        """
        groups, labels = self._units(level)
        merged = torch.stack([self.scores[group].sum() for group in groups])
        segments = None if self.segments is None else self.segments.merged(groups)
        most = None if self.upper is None else torch.stack([self.upper[group].sum() for group in groups])
        summed = replace(self._of_tokens(labels, merged, [group[0] for group in groups], most), segments=segments)
        # what a decoder has written has no segments of the source: there a level of its own stays as it is
        of_prefix = level if level in get_args(Level) else "token"
        return summed if self.prefix is None else replace(summed, prefix=self.prefix.sum_by(of_prefix))

    def by(self, level: str) -> "pd.DataFrame":
        """A table of segment and score: the sum over the tokens of each segment of a level, in the order of the text.

        Where a method could only be bounded, `score` is what it is at least, and `at_most` stands beside it.

        >>> import attnscope
        >>> record = attnscope.AttentionRecord.from_weights([[[[1.0, 0.0], [0.5, 0.5]]]], ["so", "long"])
        >>> attnscope.raw(record).by("sentence")
           segment  score
        0  so long    1.0
        """
        import pandas as pd

        groups, labels = self._units(level)
        sums = {
            name: [float(values[group].sum()) for group in groups]
            for name, values in (("score", self.scores), ("at_most", self.upper))
            if values is not None
        }
        return pd.DataFrame({"segment": list(labels), **sums})

    def _units(self, level: str) -> tuple[list[list[int]], tuple[str, ...]]:
        return units(self.tokens, self.special, self.word_ids, level, self.segments)

    def without_special(self) -> "TokenScores":
        """The same scores for the tokens of the text alone."""
        kept = [position for position, quiet in enumerate(self.special) if not quiet]
        most = None if self.upper is None else self.upper[kept]
        return self._of_tokens(tuple(self.tokens[position] for position in kept), self.scores[kept], kept, most)

    def _of_tokens(
        self,
        tokens: tuple[str, ...],
        scores: Float[Tensor, " kept"],
        positions: list[int],
        upper: Float[Tensor, " kept"] | None,
    ) -> "TokenScores":
        """These scores for other tokens; maps are of all tokens, and so have no part in it."""
        return replace(
            self,
            tokens=tokens,
            scores=scores,
            upper=upper,
            special=tuple(self.special[position] for position in positions),
            word_ids=tuple(self.word_ids[position] for position in positions),
            segments=None if self.segments is None else self.segments.merged([[position] for position in positions]),
            size=(0, 0),
            compute_map=None,
            compute_row=None,
            compute_saturation=None,
            compute_per_head=None,
        )

    def to_frame(self) -> "pd.DataFrame":
        """A table of token, score, word and special; of scores that are bounds, the upper ones too."""
        import pandas as pd

        columns: dict[str, Any] = {"token": self.tokens, "score": self.scores.tolist()}
        columns |= {} if self.upper is None else {"upper": self.upper.tolist()}
        columns |= {"word": self.word_ids, "special": self.special}
        return pd.DataFrame({name: list(values) for name, values in columns.items()})

    def __repr__(self) -> str:
        pairs = zip(readable(self.tokens), self.scores.tolist(), strict=True)
        left = () if self.prefix is None else (f"prefix {float(self.prefix.scores.sum()):.3f}",)
        noted = "".join(f"; {said}" for said in (*left, self.noise, *self.warnings) if said)
        return (
            f"TokenScores({self.method}: {', '.join(f'{token.strip()} {score:.3f}' for token, score in pairs)}{noted})"
        )

    def __rich__(self) -> "Text":
        """The tokens on the colour of their scores, for rich's `print`."""
        from ..terminal import paint_token

        scores = self.scores.abs().tolist()
        return paint_token(readable(self.tokens), self.special, scores, max(scores, default=0.0))

    def _repr_html_(self) -> str:
        caption = " ".join(["Ink is linear from 0 to the largest score.", *self.warnings])
        return scores_html(self.method, self.tokens, self.special, self.scores.tolist(), caption)


def scores_of(record: Any, method: str, scores: Float[Tensor, " key"], **more: Any) -> TokenScores:
    """The scores a method gives to the key tokens of a record."""
    return TokenScores(
        method=method,
        tokens=record.key_tokens,
        scores=scores,
        special=record.key_special,
        word_ids=record.key_word_ids,
        segments=record.segments,
        grid=record.grid,
        size=(len(record.layers), len(record.query_tokens)),
        **more,
    )
