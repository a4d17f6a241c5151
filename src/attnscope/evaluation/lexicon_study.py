"""LexiconStudy: do words that people find emotional get higher scores? The tables, in words, as figures, on disk."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import BadInput
from ..files import written_atomically
from ..numerals import counted
from ..record.schema import Card, Count, Label, Words, check_fields, checked, told
from ..views.lexicon_figures import head_shares, tag_colours, valence_scatter
from ..views.printing import Plot, save_figure
from ..views.word_cloud import word_cloud
from .exact_tables import read_card, read_table, write_card, write_table
from .lexicon_tables import fitted
from .lexicon_wording import probability, sentences
from .word_tally import SCALINGS, column_of

TABLES = ("words", "regressions", "correlations", "heads")
CARD, SUMMARY = "lexicon.json", "summary.txt"
CLOUD_COUNT = 2
"""How often a word stands in the texts to be in the cloud, as in the code of Wu, Nguyen & Ong 2020."""
CLOUD_WORDS = 10
"""Where fewer words stand there so often, all are drawn."""


@dataclass(frozen=True)
class Facts:
    """What the card of a study says at least; more stands beside it."""

    model: Label
    texts: Count
    lexicon: Label
    tags: tuple[Label, ...]
    matched: Mapping[Label, Count]
    left_out: Mapping[Label, Words]


@dataclass(frozen=True, eq=False, repr=False)
class LexiconStudy:
    """Mean scores of words held against what a lexicon says of them, after Wu, Nguyen & Ong 2020, sections 6.3 to 6.5.

    `words`: word, count, value in the lexicon (NaN without one), how it was matched and by which entries, tag, and a
    column for each method, plain and `…_length_corrected`. `regressions`: the parabola of each method and scaling;
    compare `b2_t`, not `b2`. `correlations`: Spearman between methods. `heads`: the share of each head's attention on
    tagged words, beside chance.
    """

    words: pd.DataFrame
    regressions: pd.DataFrame
    correlations: pd.DataFrame
    heads: pd.DataFrame
    card: Card
    """What was asked of which model, how words were matched, and which methods were `left_out` and why."""

    def __post_init__(self) -> None:
        check_fields(self, {})

    @property
    def methods(self) -> list[str]:
        """The methods that were scored."""
        return list(dict.fromkeys(self.regressions["method"]))

    def summary(self) -> str:
        """The study in words, one sentence to a line."""
        return "\n".join(sentences(self.regressions, self.correlations, self.heads, self.card))

    def figures(self) -> dict[str, Plot]:
        """Scores against valence (Fig. 5) under each scaling, heads against chance (Fig. 6), a word cloud (Fig. 4)."""
        found = {f"valence_{scaling}": self._scatter(scaling) for scaling in SCALINGS}
        if self.heads["share"].notna().any():
            found["heads"] = head_shares(self.heads)
        found["cloud"] = self._cloud()
        return found

    def save_figures(self, folder: str | Path, kinds: tuple[str, ...] = ("svg",)) -> list[Path]:
        """Write every figure in every kind of file (svg, pdf, png)."""
        return [
            save_figure(plot, Path(folder) / f"{name}.{kind}")
            for name, plot in self.figures().items()
            for kind in kinds
        ]

    def save(self, folder: str | Path) -> Path:
        """Write the tables as CSV, the summary as text and the card as JSON, each file all at once, the card last."""
        folder = Path(folder)
        for name in TABLES:
            write_table(folder / f"{name}.csv", getattr(self, name))
        with written_atomically(folder / SUMMARY) as temporary:
            temporary.write_text(self.summary() + "\n", encoding="utf-8")
        write_card(folder / CARD, self.card)
        return folder

    @classmethod
    @checked
    def load(cls, folder: str | Path) -> "LexiconStudy":
        """Read what `save` wrote."""
        folder = Path(folder)
        if missing := [name for name in (*(f"{table}.csv" for table in TABLES), CARD) if not (folder / name).is_file()]:
            raise BadInput(f"{folder} holds no finished lexicon study: {missing[0]} is missing.")
        tables = {name: read_table(folder / f"{name}.csv") for name in TABLES}
        study = cls(**tables, card=read_card(folder / CARD, Facts))
        try:
            study.summary()
        except (LookupError, TypeError, ValueError) as error:
            raise BadInput(f"The lexicon study in {folder} is damaged: its tables lack {told(error)}.") from None
        return study

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, ready for JSON, without the words: None where a figure is not defined."""
        tables = {
            name: json.loads(getattr(self, name).to_json(orient="records", double_precision=15)) for name in TABLES[1:]
        }
        return {"card": dict(self.card), "summary": self.summary().split("\n"), **tables}

    def __repr__(self) -> str:
        columns = ["method", "scaling", "words", "b2", "b2_error", "b2_t", "b2_p", "vertex", "vertex_inside"]
        table = self.regressions[columns].to_string(index=False, float_format="%.4g")
        return f"LexiconStudy({self._title()})\n{table}\n{self.summary()}"

    def _repr_html_(self) -> str:
        said = "".join(f"<p style='margin:4px 0'>{escape(line)}</p>" for line in self.summary().split("\n"))
        return (
            f"<div style='font:14px system-ui'><div style='font-weight:600'>{escape(self._title())}</div>{said}</div>"
        )

    def _title(self) -> str:
        model = Path(self.card["model"])
        name = model.name if model.is_absolute() else model
        return f"{name} on {counted(self.card['texts'], 'text')}, held against {self.card['lexicon']}"

    def _scatter(self, scaling: str) -> Plot:
        curves, titles = {}, {}
        for method in self.methods:
            column = column_of(method, scaling)
            fit = fitted(self.words, column)
            valence = np.linspace(fit.lowest, fit.highest, 101)
            curves[column] = (valence, fit.curve(valence))
            titles[column] = f"{method.replace('_', ' ')}\nt = {fit.t[2]:.2f}, {probability(fit.p[2])}"
        corrected = " times the words of its text" * (scaling != SCALINGS[0])
        label = f"valence in {self.card['lexicon']}"
        return valence_scatter(self.words, curves, titles, label=label, score_label=f"mean score{corrected}")

    def _cloud(self) -> Plot:
        spelled = self.words[self.words["word"].str.contains(r"[^\W\d_]")]  # signs are tokens too, but say nothing here
        frequent = spelled[spelled["count"] >= CLOUD_COUNT]
        many = len(frequent) >= CLOUD_WORDS
        colours = tag_colours(self.words, tuple(self.card["tags"]))
        caption = f"The words with the highest mean score by {self.methods[0]}, each as large as its score."
        if many:
            caption += f" Only words that stand in the texts {CLOUD_COUNT} times or more."
        if colours:
            caption += f" Coloured: {' and '.join(self.card['tags'])}."
        return word_cloud(frequent if many else spelled, self.methods[0], colours, caption=caption)
