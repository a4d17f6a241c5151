"""Methods side by side: what each says of the same tokens, and how far they agree."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from ..errors import BadInput
from ..paint import colour, ink
from ..record import AttentionRecord, Model, TokenScores, readable
from ..record.schema import checked
from ..record.sketch import TOKEN_STYLE
from ..terminal import has_dark_ground
from .agreement import rank_agreement
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
) -> Comparison:
    """Set methods side by side on one record: names of METHODS, or functions of your own.

    Without `methods`, all that have what they need: gradients only in a record that holds them, blank-out only with the
    model. `left_out` says of each of the others what is lacking.
    """
    if methods is not None:
        chosen = named_methods(methods)
        if not chosen:
            raise BadInput("There is nothing to compare: give at least one method.")
        return Comparison(tuple(score(record, name, method, model) for name, method in chosen.items()))
    scores, left_out = score_what_can_be(record, every_method(), model)
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
