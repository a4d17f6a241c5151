"""Trust: the table of how well methods follow the model, its verdict in words, on disk and on screen."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import BadInput
from ..numerals import counted
from ..record.schema import (
    LARGEST_NUMBER,
    Card,
    Count,
    Label,
    Words,
    check_fields,
    checked,
    quote,
)
from .per_text import BASELINES, ERASURE, KNOW_NOTHING, SEGMENT_BASELINES
from .tables import ALL, as_table, parsed_rows, read_card, write_card, write_table

if TYPE_CHECKING:
    from rich.console import Group


TABLE, CARD = "trust.csv", "trust.json"
WHOLE_NUMBERS = ("layer", "texts")
NUMBERS = ("value", "low", "high", "above", "above_low", "above_high")
OF_ONE = ["method", "layer", "against", "measure", "special", "bucket"]
"""What tells the figures of a table apart."""
COLUMNS = (*OF_ONE, "value", "low", "high", "texts", "baseline", "above", "above_low", "above_high")
TOLD = ("spearman", "comprehensiveness", "sufficiency", "drop_1", "drop_3", "drop_5")
"""The measures of a summary."""


@dataclass(frozen=True)
class Facts:
    """What the card of a trust table says at least; more stands beside it."""

    model: Label
    texts: Count
    left_out: Mapping[Label, Words] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Trust:
    """How well each method's scores follow what the model does on some texts.

    `table` is tidy: method, layer (NA for the scores a method gives by itself), against, measure, special tokens
    (with or without), bucket of length, value with its bootstrap interval (low, high), texts, and the best baseline
    with how much better than it the value is (above, above_low, above_high). Baselines are methods of their own.
    """

    table: pd.DataFrame
    card: Card
    """What was asked of which model and of how many texts, and which methods were `left_out` and why."""

    def __post_init__(self) -> None:
        check_fields(self, {})

    def verdict(self) -> str:
        """What to make of it, one sentence to a line."""
        return "\n".join(self._sentences())

    def to_frame(self) -> pd.DataFrame:
        """The whole table, as a copy of your own."""
        return self.table.copy()

    def summary(self) -> pd.DataFrame:
        """Method by measure over all texts, special tokens set aside: Spearman, comprehensiveness and sufficiency."""
        rows = headline(self.table)
        rows = rows[rows["measure"].isin(TOLD)]
        ranked = rows["measure"] == "spearman"
        columns = rows["measure"].where(~ranked, rows["against"])
        wide = rows.assign(column=columns).pivot(index="method", columns="column", values="value")
        order = [name for name in rows["method"].unique() if name not in KNOW_NOTHING]
        order += [name for name in dict.fromkeys((*BASELINES, *SEGMENT_BASELINES)) if name in wide.index]
        return wide.loc[order, list(columns.unique())].rename_axis(columns=None)

    @checked
    def save(self, folder: str | Path) -> Path:
        """Write the table as CSV and the card as JSON into a folder, each file all at once, the card last."""
        folder = Path(folder)
        write_table(folder / TABLE, self.table)
        write_card(folder / CARD, self.card)
        return folder

    @classmethod
    @checked
    def load(cls, folder: str | Path) -> "Trust":
        """Read what `save` wrote."""
        folder = Path(folder)
        if not (folder / CARD).is_file() or not (folder / TABLE).is_file():
            raise BadInput(f"{folder} holds no finished trust table: {TABLE} or {CARD} is missing.")
        table = as_table(parsed_rows(folder / TABLE, _rows, "no trust table"))
        _check_table(folder / TABLE, table)
        return cls(table, read_card(folder / CARD, Facts, "the card of a trust table"))

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, ready for JSON: None where a figure is not defined."""
        rows = json.loads(self.table.to_json(orient="records", double_precision=15))
        return {"card": dict(self.card), "verdict": self._sentences(), "table": rows}

    def __repr__(self) -> str:
        return f"Trust({self._title()})\n{self.summary().to_string(float_format='%.2f', na_rep='–')}\n{self.verdict()}"

    def __rich__(self) -> "Group":
        """The summary as a table, and the verdict below it."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table("method", box=None, padding=(0, 1))
        summary = self.summary()
        for name in summary.columns:
            table.add_column(name, justify="right")
        for method, values in summary.iterrows():
            style = "dim" if method in KNOW_NOTHING else ""
            table.add_row(Text(str(method)), *(_number(value) for value in values), style=style)
        return Group(
            Text(self._title(), style="bold"), table, *(Text(f"\n{sentence}") for sentence in self._sentences())
        )

    def _repr_html_(self) -> str:
        summary = self.summary()
        head = "".join(f"<th style='text-align:right'>{escape(name)}</th>" for name in summary.columns)
        body = "".join(
            f"<tr{' style=color:#777' * (method in KNOW_NOTHING)}><th style='text-align:left;font-weight:400'>"
            f"{escape(str(method))}</th>"
            + "".join(f"<td style='text-align:right'>{_number(value)}</td>" for value in values)
            + "</tr>"
            for method, values in summary.iterrows()
        )
        words = "".join(f"<p style='margin:4px 0'>{escape(sentence)}</p>" for sentence in self._sentences())
        return (
            "<div style='font:14px system-ui;font-variant-numeric:tabular-nums'>"
            f"<div style='font-weight:600'>{escape(self._title())}</div>"
            f"<table><tr><th></th>{head}</tr>{body}</table>{words}</div>"
        )

    def _sentences(self) -> list[str]:
        """The verdict, and on how many texts blank-out had to follow the log-odds."""
        count = self.card.get("on_log_odds")
        if not isinstance(count, int) or not count:
            return verdict(self.table)
        said = f"On {count} of {counted(self.card['texts'], 'text')} no token moves the probability by 0.01"
        return [*verdict(self.table), f"{said}: there blank-out follows the log-odds."]

    def _title(self) -> str:
        model = Path(self.card["model"])
        name = model.name if model.is_absolute() else model
        if "by" in self.card:
            return f"{name} on {counted(self.card['texts'], 'answer')}, by {self.card['by']}"
        return f"{name} on {counted(self.card['texts'], 'text')}, special tokens set aside"


def _rows(rows: list[list[str]]) -> list[dict[str, Any]]:
    """The rows of a trust table, each cell of its type."""
    if len(rows) < 2 or tuple(rows[0]) != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
        raise ValueError(f"its columns are not {', '.join(COLUMNS)}")
    return [{name: _parsed(name, text) for name, text in zip(COLUMNS, row, strict=True)} for row in rows[1:]]


def _parsed(column: str, text: str) -> str | int | float | None:
    if column in NUMBERS:
        number = float(text) if text else math.nan
        if math.isinf(number):
            raise ValueError(f"{column} is not finite")
        return number
    if column in WHOLE_NUMBERS:
        if not text and column == "layer":
            return None
        if not 0 <= int(text) <= LARGEST_NUMBER:
            raise ValueError(f"{column} is {quote(int(text))}")
        return int(text)
    return text


def _check_table(path: Path, table: pd.DataFrame) -> None:
    """Refuse a table that allows no verdict."""
    rows = headline(table)
    if rows.empty or table.duplicated(OF_ONE).any():
        raise BadInput(f"{path} is damaged: a figure stands there twice, or none over all texts does.")
    columns = rows["measure"].where(rows["measure"] != "spearman", rows["against"])
    if rows.assign(column=columns)[rows["measure"].isin(TOLD)].duplicated(["method", "column"]).any():
        raise BadInput(f"{path} is damaged: a method has two figures of one measure.")


def _number(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.2f}"


# The verdict: what the table says, in sentences a person can act on.


FEW_TEXTS = 30
REFERENCES = {
    "blank_out": "what blanking a token out changes",
    "gradient": "the gradient of the answer",
    "leave_one_out": "what the answer loses without a segment",
}
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
    chosen = rows[(rows["measure"] == measures) & ~rows["method"].isin(KNOW_NOTHING)].dropna(subset=["value", "above"])
    ways, by_method = chosen["against"].nunique(), chosen.assign(clear=chosen["above_low"] > 0).groupby("method")
    ranked = by_method[["clear", "value"]].agg({"clear": "sum", "value": "mean"}).sort_values(["clear", "value"])
    if ranked.empty or ranked["clear"].max() == 0:
        return (
            "Conclusion: no method follows this model clearly better than a baseline does: read none as an explanation."
        )
    best, count = ranked.index[-1], int(ranked["clear"].iloc[-1])
    where = "in what was measured" if ways == 1 else f"in {count} of {ways} comparisons"
    return f"Conclusion: ask {best} first on this model: it is clearly above its best baseline {where}."


def _about(rows: pd.DataFrame, table: pd.DataFrame, against: str) -> Iterator[str]:
    """What the rows held against one thing say."""
    measure = _measure(against)
    chosen = rows[(rows["against"] == against) & (rows["measure"] == measure) & ~rows["method"].isin(KNOW_NOTHING)]
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
        return "what the model loses with what is put first", "comprehensiveness"
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
