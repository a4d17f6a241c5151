"""The verdict: what the table says, in sentences a person can act on."""

from collections.abc import Iterator

import pandas as pd

from ..numerals import counted
from .erasure import BASELINES
from .per_text import ERASURE
from .tabulating import ALL

FEW_TEXTS = 30
REFERENCES = {"blank_out": "what blanking a token out changes", "gradient": "the gradient of the answer"}
CAVEAT = (
    "Attention need not be an explanation (Jain & Wallace 2019; Wiegreffe & Pinter 2019): these figures say whose order"
    " of the tokens follows the model's behaviour on texts like these, not why the model answered as it did."
)


def headline(table: pd.DataFrame) -> pd.DataFrame:
    """The rows a verdict rests on: all texts, a method's own scores, special tokens set aside.

    They are set aside because one extreme item that all scores share lifts a rank correlation by itself.
    """
    return table[(table["bucket"] == ALL) & table["layer"].isna() & (table["special"] == "without")]


def verdict(table: pd.DataFrame) -> list[str]:
    """Which method follows the model's behaviour here, by how much above its best baseline, and which does not."""
    rows = headline(table)
    texts = int(rows["texts"].max())
    if texts < FEW_TEXTS:
        read = f"Only {counted(texts, 'text')} {'was' if texts == 1 else 'were'} read"
        return [f"{read}, so these are figures without a verdict: it takes at least {FEW_TEXTS}.", CAVEAT]
    details = [sentence for against in rows["against"].unique() for sentence in _about(rows, table, str(against))]
    return [_conclusion(rows), *details, CAVEAT]


def _conclusion(rows: pd.DataFrame) -> str:
    """One sentence for all that the methods were held against."""
    measures = rows["against"].map(lambda against: _measure(str(against)))
    chosen = rows[(rows["measure"] == measures) & ~rows["method"].isin(BASELINES)].dropna(subset=["value", "above"])
    ways, by_method = chosen["against"].nunique(), chosen.assign(clear=chosen["above_low"] > 0).groupby("method")
    ranked = by_method[["clear", "value"]].agg({"clear": "sum", "value": "mean"}).sort_values(["clear", "value"])
    if ranked.empty or ranked["clear"].max() == 0:
        return (
            "Conclusion: no method follows this model clearly better than a baseline does: read none as an explanation."
        )
    best, count = ranked.index[-1], int(ranked["clear"].iloc[-1])
    where = "in what was measured" if ways == 1 else f"in {count} of {ways} comparisons"
    return f"Conclusion: {best} follows this model best, clearly above its best baseline {where}."


def _about(rows: pd.DataFrame, table: pd.DataFrame, against: str) -> Iterator[str]:
    """What the rows held against one thing say."""
    measure = _measure(against)
    chosen = rows[(rows["against"] == against) & (rows["measure"] == measure) & ~rows["method"].isin(BASELINES)]
    chosen = chosen.dropna(subset=["value", "above"]).sort_values("value", ascending=False)
    above, below = chosen["above_low"] > 0, chosen["above_high"] < 0
    what, unit = _words(against)
    if len(chosen) and not above.any():
        best = chosen.iloc[0]
        yield (
            f"No method is clearly above its best baseline in following {what}: {best['method']} comes nearest with"
            f" {unit} {_span(best)}, where {best['baseline']} alone reaches {best['value'] - best['above']:.2f}."
        )
    if above.any():
        best = chosen[above].iloc[0]
        yield (
            f"{best['method']} follows {what} best: {unit} {_span(best)}, {best['above']:.2f} above its best baseline"
            f" ({best['baseline']})."
        )
    if above.sum() > 1:
        yield f"Clearly better than their best baseline there too: {_listed(chosen[above].iloc[1:])}."
    if (~above & ~below).any():
        yield (
            "May be no better than their best baseline there, since the interval of the difference includes zero:"
            f" {_listed(chosen[~above & ~below])}."
        )
    if below.any():
        yield (
            "Clearly worse than their best baseline there, so not to be read as an explanation here:"
            f" {_listed(chosen[below])}."
        )
    if better := list(_better_layers(table, against, measure)):
        yield f"Clearly better at another layer (picked on these texts, so try it on others): {', '.join(better)}."


def _better_layers(table: pd.DataFrame, against: str, measure: str) -> Iterator[str]:
    """The methods that follow clearly better at another layer than in their own scores."""
    rows = table[
        (table["bucket"] == ALL)
        & (table["special"] == "without")
        & (table["against"] == against)
        & (table["measure"] == measure)
    ].dropna(subset=["value"])
    for method, of_method in rows.groupby("method", sort=False):
        own, layers = of_method[of_method["layer"].isna()], of_method[of_method["layer"].notna()]
        if len(own) and len(layers):
            best = layers.loc[layers["value"].idxmax()]
            if best["low"] > own.iloc[0]["high"]:
                yield f"{method} at {best['layer']} ({best['value']:.2f}, not {own.iloc[0]['value']:.2f})"


def _measure(against: str) -> str:
    """The figure that counts where methods are held against something."""
    return "comprehensiveness" if against == ERASURE else "spearman"


def _words(against: str) -> tuple[str, str]:
    """What a method is held against, and the figure that says how well it does."""
    if against == ERASURE:
        return "what the model loses with the tokens put first", "comprehensiveness"
    return REFERENCES.get(against, f"the scores of {against}"), "Spearman"


def _span(row: "pd.Series[float]") -> str:
    return f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def _listed(rows: pd.DataFrame) -> str:
    """Each method with its value, and its difference from its best baseline with the interval."""
    return ", ".join(
        f"{row['method']} {row['value']:.2f} (difference {row['above']:+.2f}"
        f" [{row['above_low']:+.2f}, {row['above_high']:+.2f}])"
        for row in rows.to_dict("records")
    )
