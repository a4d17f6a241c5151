"""Methods side by side: what each says of the same tokens, and how far they agree."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, Num
from torch import Tensor

from ..errors import BadInput
from ..paint import colour, ink
from ..record import AttentionRecord, Model, TokenScores, readable
from ..record.schema import checked
from ..record.sketch import TOKEN_STYLE
from ..terminal import has_dark_ground
from .choosing import every_method, named_methods, score, score_what_can_be

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Group


REFERENCES = ("blank_out", "gradient")
"""What the others are held against where it is there: these ask what the model does, not where it attends."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What several methods say of one record; `agreement` is their rank agreement, method by method."""

    scores: tuple[TokenScores, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Methods that could not be used on this record, and why."""

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods, in the order of `scores`."""
        return tuple(scores.method for scores in self.scores)

    @property
    def reference(self) -> str:
        """The method the others are held against: blank-out, else gradients, else the first; no noise if it can be."""
        sound = [scores.method for scores in self.scores if not scores.noise] or list(self.methods)
        return next((name for name in REFERENCES if name in sound), sound[0])

    @property
    def reference_first(self) -> "Comparison":
        """The same with the reference in front: what a headline speaks of is read first."""
        return replace(self, scores=tuple(sorted(self.scores, key=lambda one: one.method != self.reference)))

    @property
    def spokesman(self) -> str:
        """The method that answers in words: one that found nothing but noise says so, else the reference."""
        return next((scores.method for scores in self.scores if scores.noise), self.reference)

    @property
    def agreement(self) -> "pd.DataFrame":
        """Spearman's rank correlation of every two methods, over all tokens; NaN where a method ranks nothing.

        A method without signs is held against the sizes of one with signs.
        """
        import pandas as pd

        rows = [[rank_agreement(one.scores, other.scores) for other in self.scores] for one in self.scores]
        return pd.DataFrame(rows, index=list(self.methods), columns=list(self.methods))

    def to_frame(self) -> "pd.DataFrame":
        """A table of tokens and what each method says of them, one column for each method."""
        import pandas as pd

        first = self.scores[0]
        columns = {scores.method: scores.scores.tolist() for scores in self.scores}
        return pd.DataFrame({"token": list(first.tokens), "special": list(first.special), **columns})

    def __repr__(self) -> str:
        agreement = ", ".join(f"{name} {value}" for name, value in self._with_reference().items())
        return f"Comparison({len(self.scores[0].tokens)} tokens, agreement with {self.reference}: {agreement})"

    def __rich__(self) -> "Group":
        """One row for each token and one column for each method, on the colour of its scores."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        dark = has_dark_ground(os.environ)
        table = Table("token", box=None, padding=(0, 1))
        for name in self.methods:
            table.add_column(name, justify="right")
        columns = []
        for scores in self.scores:
            values = scores.scores.tolist()
            largest = max(map(abs, values))
            grounds = [colour(abs(value), largest, dark=dark) for value in values]
            pairs = zip(values, grounds, strict=True)
            columns.append([Text(f"{value:.3f}", style=f"{ink(ground)} on {ground}") for value, ground in pairs])
        for token, *cells in zip(readable(self.scores[0].tokens), *columns, strict=True):
            table.add_row(Text(token.strip()), *cells)
        agreement = (Text(value, style="bold") for value in self._with_reference().values())
        table.add_row(Text("agreement", style="bold"), *agreement)
        return Group(table, *map(Text, self._notes("in each column", "in the last row")))

    def _repr_html_(self) -> str:
        agreement = self._with_reference()
        rows = "".join(
            f"<tr><th style='text-align:left;font-weight:400;color:#777'>{escape(scores.method)}</th>"
            f"{_token_cells(scores)}<td style='color:#777;text-align:right'>{agreement[scores.method]}</td></tr>"
            for scores in self.scores
        )
        notes = "".join(
            f"<div style='font-size:12px;color:#777'>{escape(note)}</div>"
            for note in self._notes("in each row", "at the right edge")
        )
        return f"<div style='font:14px system-ui;overflow-x:auto'><table>{rows}</table>{notes}</div>"

    def _with_reference(self) -> dict[str, str]:
        """How far each method agrees with the reference, as text."""
        reference = self.scores[self.methods.index(self.reference)].scores
        values = {scores.method: rank_agreement(scores.scores, reference) for scores in self.scores}
        return {name: "–" if math.isnan(value) else f"{value:.2f}" for name, value in values.items()}

    def _notes(self, scale: str, edge: str) -> list[str]:
        """How to read it, what the methods warn of, and what is left out."""
        warnings = dict.fromkeys(said for scores in self.scores for said in (scores.noise, *scores.warnings) if said)
        order = f"compares its order of the tokens with that of {self.reference}: 1 is the same order, 0 is none"
        return [
            f"Ink is linear from 0 to the largest score {scale}. What stands {edge} {order} (Spearman).",
            *warnings,
            *(f"Left out: {name}. {why}" for name, why in self.left_out.items()),
        ]


@checked
def compare(
    record: AttentionRecord,
    model: Model | None = None,
    methods: Sequence[str | Callable[..., TokenScores]] | None = None,
    *,
    by: str = "token",
    signed: bool = False,
) -> Comparison:
    """Set methods side by side on one record: names of METHODS, or functions of your own.

    Without `methods`, all that have what they need: gradients only in a record that holds them, blank-out only with the
    model. `left_out` says of each of the others what is lacking. There is one score for each token, or `by` word or
    sentence; `signed` keeps the sign of the methods that have one. All follow the outcome that the record was taken
    with: `model.record(text, gradients=True, target=…, against=…)`.
    """
    options = {"signed": signed}
    if methods is not None:
        chosen = named_methods(methods)
        if not chosen:
            raise BadInput("There is nothing to compare: give at least one method.")
        return Comparison(tuple(score(record, name, method, model, by, options) for name, method in chosen.items()))
    scores, left_out = score_what_can_be(record, every_method(), model, by, options)
    if not scores:
        raise BadInput(f"No method can be used on this record: {' '.join(left_out.values())}")
    return Comparison(tuple(scores.values()), left_out)


def _token_cells(scores: TokenScores) -> str:
    """The tokens of a method as cells of one row, each on the colour of its score; the number is one hover away."""
    values = scores.scores.tolist()
    largest = max(map(abs, values))
    cells = []
    for text, quiet, value in zip(readable(scores.tokens), scores.special, values, strict=True):
        ground = colour(abs(value), largest)
        border = ";border:1px solid #bbb;border-radius:9px" if quiet else ""
        note = f"{scores.method} · {text.strip()} · {value:.4f}"
        style = f"{TOKEN_STYLE};background:{ground};color:{ink(ground)}{border}"
        cells.append(f'<td><span style="{style}" title="{escape(note)}">{escape(text)}</span></td>')
    return "".join(cells)


# How far two scores agree on the order of the tokens: ranks, Spearman, Kendall, and the overlap of the top.
# Scores are rounded to 1e-9 first, so that what is equal in exact arithmetic stays a tie, and ties share the mean of
# their ranks. Dense ranks in the formula for scores without ties, as the code of Abnar & Zuidema (2020) has them,
# give independent scores that are half tied a correlation of about +.22.


DECIMALS = 9
"""Scores that differ by less than about 1e-9 are ties."""

Scores = Num[Tensor, " _"] | Num[np.ndarray, " _"]
"""One number for each token."""


def ranks(scores: Scores) -> Float64[np.ndarray, " token"]:
    """The rank of each score, 1 for the smallest; ties get the mean of the ranks they take together.

    >>> ranks(np.array([0.2, 0.7, 0.2]))
    array([1.5, 3. , 1.5])
    """
    _, place, count = np.unique(round_scores(scores), return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    shared: Float64[np.ndarray, " distinct"] = last - (count - 1) / 2
    return shared[place]


def spearman(first: Scores, second: Scores) -> float:
    """Spearman's rank correlation: Pearson's correlation of the average ranks (Spearman 1904), from -1 to 1.

    NaN where either ranks nothing, that is where all its scores are equal, and below two tokens.
    """
    _check_lengths(first, second)
    if len(first) < 2:
        return math.nan
    one, other = (place - place.mean() for place in (ranks(first), ranks(second)))
    spread = math.sqrt((one @ one) * (other @ other))
    return float(one @ other) / spread if spread else math.nan


def rank_agreement(first: Scores, second: Scores) -> float:
    """Spearman's rank correlation; where only one of the two has signs, that of the sizes, as the other knows none.

    >>> rank_agreement(np.array([-0.9, 0.1, 0.5]), np.array([3.0, 1.0, 2.0]))
    1.0
    """
    if bool((first < 0).any()) != bool((second < 0).any()):
        return spearman(first * first, second * second)
    return spearman(first, second)


def kendall(first: Scores, second: Scores) -> float:
    """Kendall's tau-b: pairs in like order minus pairs in unlike order, corrected for ties (Kendall 1945).

    NaN where either ranks nothing, that is where all its scores are equal, and below two tokens.
    """
    _check_lengths(first, second)
    one, other = (np.sign(np.subtract.outer(values, values)) for values in (round_scores(first), round_scores(second)))
    untied = math.sqrt(np.abs(one).sum() * np.abs(other).sum())
    return float((one * other).sum()) / untied if untied else math.nan


def top_overlap(first: Scores, second: Scores, k: int) -> float:
    """The share of the k highest tokens of one that are among the k highest of the other.

    Where a tie crosses the border, each of the tied tokens is in the top with the same probability, and the result is
    the overlap to be expected: scores that are all equal get what chance gives, k / tokens. NaN where there are no more
    than k tokens, since all of them are then at the top.

    >>> top_overlap(np.array([3.0, 2.0, 1.0, 0.0]), np.array([3.0, 0.0, 1.0, 2.0]), k=2)
    0.5
    """
    _check_lengths(first, second)
    if k < 1:
        raise BadInput(f"The top holds at least one token, not {k}.")
    if len(first) <= k:
        return math.nan
    return float(_share_in_top(round_scores(first), k) @ _share_in_top(round_scores(second), k)) / k


def round_scores(scores: Scores) -> Float64[np.ndarray, " token"]:
    """The scores in float64, rounded to 1e-9: what counts as equal for every figure of this file."""
    values = scores.detach().cpu().numpy() if isinstance(scores, Tensor) else scores
    if not np.isfinite(values).all():
        raise BadInput("These scores cannot be ranked: some of them are not finite numbers.")
    # minus zero is zero
    return np.round(values.astype(np.float64), DECIMALS) + 0.0


def _share_in_top(values: Float64[np.ndarray, " token"], k: int) -> Float64[np.ndarray, " token"]:
    """How likely each token is among the k highest when ties are broken at random."""
    border = np.partition(values, -k)[-k]
    above, tied = values > border, values == border
    shares: Float64[np.ndarray, " token"] = above + tied * ((k - above.sum()) / tied.sum())
    return shares


def _check_lengths(first: Scores, second: Scores) -> None:
    if len(first) != len(second):
        raise BadInput(
            f"Agreement is over the same tokens, but one has {len(first)} scores and the other {len(second)}."
        )
