"""LexiconStudy: do words that people find emotional get higher scores? The tables, in words, as figures, on disk."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64

from ..errors import BadInput
from ..files import written_atomically
from ..numerals import counted
from ..record.schema import Card, Count, Label, Words, check_fields, checked, reason_of
from ..views.lexicon_figures import head_shares, tag_colours, valence_scatter, word_cloud
from ..views.printing import Plot, save_figure
from .lexicons import Matcher
from .regression import FEWEST, Quadratic, quadratic
from .tables import read_card, read_table, write_card, write_table
from .word_tally import SCALINGS, Scaling, column_of

# The tables of a lexicon study: words with their valence, a regression for each method, and methods side by side.


def with_valence(table: pd.DataFrame, matcher: Matcher, tag_of: Callable[[str], str | None]) -> pd.DataFrame:
    """The words with what the lexicon says: value (NaN without a match), how it was matched, by which entries, tag."""
    matches = [matcher.match(word) for word in table["word"]]
    said = pd.DataFrame(
        {
            "value": [np.nan if match is None else match.value for match in matches],
            "matched": ["none" if match is None else match.way for match in matches],
            "entries": ["" if match is None else " ".join(match.entries) for match in matches],
            "tag": [tag_of(word) or "" for word in table["word"]],
        }
    )
    scores = table.drop(columns=["word", "count"])
    return pd.concat([table[["word", "count"]], said, scores], axis=1)


def fit_lines(words: pd.DataFrame, column: str) -> Quadratic:
    """The quadratic regression of one column on valence, over all words that the lexicon has."""
    matched = words.dropna(subset=["value"])
    return quadratic(_numbers(matched, "value"), _numbers(matched, column))


def regressions(words: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """One regression for each method and scaling (Wu, Nguyen & Ong 2020, Eq. 12)."""
    values = words["value"].dropna()
    if len(values) < FEWEST or values.nunique() < 3:
        raise BadInput(
            f"The lexicon has only {len(values)} of these {len(words)} words, with {values.nunique()} different values:"
            " a parabola needs more; give more texts or another lexicon."
        )
    return pd.DataFrame(
        [
            {"method": method, "scaling": scaling, **fit_lines(words, column_of(method, scaling)).to_row()}
            for method in methods
            for scaling in SCALINGS
        ]
    )


def correlations(words: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Spearman's rank correlation of each two methods, over the words of the lexicon and over all words."""
    from scipy.stats import spearmanr  # it takes a second to import

    rows = []
    for over, chosen in (("matched", words.dropna(subset=["value"])), ("all", words)):
        for scaling in SCALINGS:
            for first, second in combinations(methods, 2):
                pair = [_numbers(chosen, column_of(method, scaling)) for method in (first, second)]
                # ranks of scores that are all alike are not defined
                varied = all(len(np.unique(values)) > 1 for values in pair)
                found = spearmanr(*pair) if varied else None
                rows.append(
                    {
                        "first": first,
                        "second": second,
                        "scaling": scaling,
                        "over": over,
                        "words": len(chosen),
                        "spearman": np.nan if found is None else float(found.statistic),
                        "p": np.nan if found is None else float(found.pvalue),
                    }
                )
    columns = ["first", "second", "scaling", "over", "words", "spearman", "p"]
    return pd.DataFrame(rows, columns=columns)


def _numbers(table: pd.DataFrame, column: str) -> Float64[np.ndarray, " word"]:
    numbers: Float64[np.ndarray, " word"] = table[column].to_numpy(dtype=np.float64)
    return numbers


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
            raise BadInput(f"The lexicon study in {folder} is damaged: its tables lack {reason_of(error)}.") from None
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

    def _scatter(self, scaling: Scaling) -> Plot:
        curves, titles = {}, {}
        for method in self.methods:
            column = column_of(method, scaling)
            fit = fit_lines(self.words, column)
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


# What a lexicon study says, in sentences.


SIGNIFICANT = 0.05
TURNING = ("a U", "an arch, highest in the middle")
CAVEAT = (
    "A U says that words people find emotional get higher scores on average; it does not say that the model answers as"
    " it does because of them. Softmax makes a score about 1 / N in a text of N words: trust a U that the length"
    " correction leaves standing."
)


def shape(row: "pd.Series[float]") -> str:
    """What a regression shows: a U, an arch, a bend that does not turn in the range, or nothing quadratic."""
    if not row["b2_p"] < SIGNIFICANT:
        return "no quadratic relation"
    if not row["vertex_inside"]:
        return "a bend that does not turn within the range"
    return TURNING[0] if row["b2"] > 0 else TURNING[1]


def probability(p: float) -> str:
    """A p value as papers write it.

    >>> probability(0.00001), probability(0.19)
    ('p < .001', 'p = .19')
    """
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".").rstrip("0") if p < 1 else "p = 1"


def sentences(
    regressions: pd.DataFrame, correlations: pd.DataFrame, heads: pd.DataFrame, card: Mapping[str, Any]
) -> list[str]:
    """The study in words: yes or no, what was matched, the shape for each method, how methods agree, what heads do."""
    return [
        answer(regressions),
        *_match(card),
        *_shapes(regressions),
        *_agreement(correlations),
        *_heads(heads),
        *(f"Left out: {name}. {why}" for name, why in card["left_out"].items()),
        CAVEAT,
    ]


def answer(regressions: pd.DataFrame) -> str:
    """Whether words that people find emotional get higher scores: a U that the length correction leaves standing."""
    found = {
        str(method): all(shape(row) == TURNING[0] for _, row in rows.iterrows())
        for method, rows in regressions.groupby("method", sort=False)
    }
    yes, no = ([method for method, holds in found.items() if holds is kind] for kind in (True, False))
    what = "words that people find very positive or very negative get higher scores than neutral ones"
    if not no:
        return f"Yes: {what}, by {', '.join(yes)}, with and without the correction for length."
    if not yes:
        return f"No: by none of {', '.join(no)} is it so that {what}, once length is corrected for."
    return f"By some methods: {what} by {', '.join(yes)}, but not by {', '.join(no)}, once length is corrected for."


def _match(card: Mapping[str, Any]) -> Iterator[str]:
    ways = dict(card["matched"])
    missing = ways.pop("none")
    found = sum(ways.values())
    how = ", ".join(f"{number:,} {'as they stand' if way == 'exact' else f'by {way}'}" for way, number in ways.items())
    yield f"Of {counted(found + missing, 'word')}, the lexicon {card['lexicon']} has {found:,} ({how})."


def _shapes(regressions: pd.DataFrame) -> Iterator[str]:
    for method, rows in regressions.groupby("method", sort=False):
        plain, corrected = (rows[rows["scaling"] == scaling].iloc[0] for scaling in SCALINGS)
        turns = f", turning at {plain['vertex']:.2f}" if shape(plain) in TURNING else ""
        yield (
            f"{method}: {shape(plain)} (t = {plain['b2_t']:.2f}, {probability(plain['b2_p'])}{turns}); corrected for"
            f" length {shape(corrected)} (t = {corrected['b2_t']:.2f}, {probability(corrected['b2_p'])})."
        )


def _agreement(correlations: pd.DataFrame) -> Iterator[str]:
    rows = correlations[(correlations["over"] == "matched") & (correlations["scaling"] == SCALINGS[0])]
    rows = rows.dropna(subset=["spearman"])
    if len(rows):
        first = rows.iloc[0]["first"]
        told = [f"{row.second} {row.spearman:.2f}" for row in rows[rows["first"] == first].itertuples()]
        yield f"Spearman's correlation of {first} over these words: {', '.join(told)}."


def _heads(heads: pd.DataFrame) -> Iterator[str]:
    for tag, rows in heads.dropna(subset=["share"]).groupby("tag", sort=False):
        above, best = int((rows["share"] > rows["chance"]).sum()), rows.loc[rows["share"].idxmax()]
        yield (
            f"On {tag} words ({counted(int(best['texts']), 'text')}): {above} of {counted(len(rows), 'head')} above the"
            f" chance of {100 * best['chance']:.1f}%; most in head {int(best['head'])}, {100 * best['share']:.1f}%."
        )
