"""Trust: the table of how well methods follow the model, its verdict in words, on disk and on screen."""

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import BadInput
from ..files import written_atomically
from ..numerals import counted
from ..record.schema import (
    LARGEST_NUMBER,
    Card,
    Count,
    Label,
    Words,
    card_from_json,
    check_fields,
    checked,
    json_of,
    shown,
    told,
)
from .erasure import BASELINES
from .tabulating import as_table
from .verdict import headline, verdict

if TYPE_CHECKING:
    from rich.console import Group

TABLE, CARD = "trust.csv", "trust.json"
WHOLE_NUMBERS = ("layer", "texts")
NUMBERS = ("value", "low", "high", "above", "above_low", "above_high")
OF_ONE = ["method", "layer", "against", "measure", "special", "bucket"]
"""What tells the figures of a table apart."""
COLUMNS = (*OF_ONE, "value", "low", "high", "texts", "baseline", "above", "above_low", "above_high")
TOLD = ("spearman", "comprehensiveness", "sufficiency")
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
        return "\n".join(verdict(self.table))

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
        order = [name for name in rows["method"].unique() if name not in BASELINES]
        order += [name for name in BASELINES if name in wide.index]
        return wide.loc[order, list(columns.unique())].rename_axis(columns=None)

    @checked
    def save(self, folder: str | Path) -> Path:
        """Write the table as CSV and the card as JSON into a folder, each file all at once, the card last."""
        folder = Path(folder)
        with written_atomically(folder / TABLE) as temporary:
            self.table.to_csv(temporary, index=False)
        with written_atomically(folder / CARD) as temporary:
            temporary.write_text(json.dumps(dict(self.card), indent=1) + "\n", encoding="utf-8")
        return folder

    @classmethod
    @checked
    def load(cls, folder: str | Path) -> "Trust":
        """Read what `save` wrote."""
        folder = Path(folder)
        if not (folder / CARD).is_file() or not (folder / TABLE).is_file():
            raise BadInput(f"{folder} holds no finished trust table: {TABLE} or {CARD} is missing.")
        table = as_table(_rows(folder / TABLE))
        _check_table(folder / TABLE, table)
        return cls(table, card_from_json(Facts, json_of(folder / CARD), f"{folder / CARD}, the card of a trust table,"))

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


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows; not by pandas, whose parser may miss the last digit and takes a method called "null" for a gap."""
    try:
        rows = list(csv.reader(io.StringIO(json_of(path).decode("utf-8"), newline=""), strict=True))
        if len(rows) < 2 or tuple(rows[0]) != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
            raise BadInput(f"{path} is damaged, or no trust table: its columns are not {', '.join(COLUMNS)}.")
        return [{name: _parsed(name, text) for name, text in zip(COLUMNS, row, strict=True)} for row in rows[1:]]
    except (ValueError, csv.Error) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path} is damaged, or no trust table: {told(error)}.") from None


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
            raise ValueError(f"{column} is {shown(int(text))}")
        return int(text)
    return text


def _check_table(path: Path, table: pd.DataFrame) -> None:
    """Refuse a table that no verdict can be told from."""
    rows = headline(table)
    if rows.empty or table.duplicated(OF_ONE).any():
        raise BadInput(f"{path} is damaged: a figure stands there twice, or none over all texts does.")
    columns = rows["measure"].where(rows["measure"] != "spearman", rows["against"])
    if rows.assign(column=columns)[rows["measure"].isin(TOLD)].duplicated(["method", "column"]).any():
        raise BadInput(f"{path} is damaged: a method has two figures of one measure.")


def _number(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.2f}"
