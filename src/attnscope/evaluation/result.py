"""Trust: the table of how well methods follow the model, its verdict in words, on disk and on screen."""

import csv
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import BadInput
from ..files import written_atomically
from ..numerals import counted
from .baselines import BASELINES
from .tabulating import as_table
from .verdict import headline, verdict

if TYPE_CHECKING:
    from rich.console import Group

TABLE, CARD = "trust.csv", "trust.json"
WHOLE_NUMBERS = ("layer", "texts")
NUMBERS = ("value", "low", "high", "above", "above_low", "above_high")


@dataclass(frozen=True, eq=False, repr=False)
class Trust:
    """How well each method's scores follow what the model does on some texts.

    `table` is tidy: method, layer (NA for the scores a method gives by itself), against, measure, special tokens
    (with or without), bucket of length, value with its bootstrap interval (low, high), texts, and the best baseline
    with how much better than it the value is (above, above_low, above_high). Baselines are methods of their own.
    """

    table: pd.DataFrame
    card: Mapping[str, Any]
    """What was asked of which model and of how many texts, and which methods were `left_out` and why."""

    def verdict(self) -> str:
        """What to make of it, one sentence to a line."""
        return "\n".join(verdict(self.table))

    def to_frame(self) -> pd.DataFrame:
        """The whole table, as a copy of your own."""
        return self.table.copy()

    def summary(self) -> pd.DataFrame:
        """Method by measure over all texts, special tokens set aside: Spearman, comprehensiveness and sufficiency."""
        rows = headline(self.table)
        rows = rows[rows["measure"].isin(["spearman", "comprehensiveness", "sufficiency"])]
        ranked = rows["measure"] == "spearman"
        columns = rows["measure"].where(~ranked, rows["against"])
        wide = rows.assign(column=columns).pivot(index="method", columns="column", values="value")
        order = [name for name in rows["method"].unique() if name not in BASELINES] + list(BASELINES)
        return wide.loc[order, list(columns.unique())].rename_axis(columns=None)

    def save(self, folder: str | Path) -> Path:
        """Write the table as CSV and the card as JSON into a folder, each file all at once, the card last."""
        folder = Path(folder)
        with written_atomically(folder / TABLE) as temporary:
            self.table.to_csv(temporary, index=False)
        with written_atomically(folder / CARD) as temporary:
            temporary.write_text(json.dumps(dict(self.card), indent=1) + "\n", encoding="utf-8")
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> "Trust":
        """Read what `save` wrote."""
        folder = Path(folder)
        if not (folder / CARD).is_file() or not (folder / TABLE).is_file():
            raise BadInput(f"{folder} holds no finished trust table: {TABLE} or {CARD} is missing.")
        with (folder / TABLE).open(encoding="utf-8", newline="") as lines:
            # not by pandas, whose parser may miss the last digit and takes a method called "null" for a gap
            rows = [{name: _parsed(name, text) for name, text in row.items()} for row in csv.DictReader(lines)]
        return cls(as_table(rows), json.loads((folder / CARD).read_text(encoding="utf-8")))

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, ready for JSON: None where a figure is not defined."""
        rows = json.loads(self.table.to_json(orient="records", double_precision=15))
        return {"card": dict(self.card), "verdict": verdict(self.table), "table": rows}

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
            style = "dim" if method in BASELINES else ""
            table.add_row(Text(str(method)), *(_number(value) for value in values), style=style)
        return Group(
            Text(self._title(), style="bold"), table, *(Text(f"\n{sentence}") for sentence in verdict(self.table))
        )

    def _repr_html_(self) -> str:
        summary = self.summary()
        head = "".join(f"<th style='text-align:right'>{escape(name)}</th>" for name in summary.columns)
        body = "".join(
            f"<tr{' style=color:#777' * (method in BASELINES)}><th style='text-align:left;font-weight:400'>"
            f"{escape(str(method))}</th>"
            + "".join(f"<td style='text-align:right'>{_number(value)}</td>" for value in values)
            + "</tr>"
            for method, values in summary.iterrows()
        )
        words = "".join(f"<p style='margin:4px 0'>{escape(sentence)}</p>" for sentence in verdict(self.table))
        return (
            "<div style='font:14px system-ui;font-variant-numeric:tabular-nums'>"
            f"<div style='font-weight:600'>{escape(self._title())}</div>"
            f"<table><tr><th></th>{head}</tr>{body}</table>{words}</div>"
        )

    def _title(self) -> str:
        model = Path(self.card["model"])
        name = model.name if model.is_absolute() else model
        return f"{name} on {counted(self.card['texts'], 'text')}, special tokens set aside"


def _parsed(column: str, text: str) -> str | int | float | None:
    if column in NUMBERS:
        return float(text) if text else math.nan
    if column in WHOLE_NUMBERS:
        return int(text) if text else None
    return text


def _number(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.2f}"
