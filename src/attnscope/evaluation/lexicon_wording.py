"""What a lexicon study says, in sentences."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from ..numerals import counted
from .word_tally import SCALINGS

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
        *_matched(card),
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


def _matched(card: Mapping[str, Any]) -> Iterator[str]:
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
