"""Tables and cards on disk: every number comes back to the bit, and a word called "null" stays a word."""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..files import written_atomically

TEXT = ("word", "matched", "entries", "tag", "method", "scaling", "first", "second", "over")
"""Columns of texts; in all others an empty cell is a missing number."""


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV, all at once."""
    with written_atomically(path) as temporary:
        table.to_csv(temporary, index=False)


def read_table(path: Path) -> pd.DataFrame:
    """Read what `write_table` wrote; not by pandas, whose parser may miss the last digit and takes words for gaps."""
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    columns = zip(*rows[1:], strict=True) if len(rows) > 1 else ((),) * len(rows[0])
    parsed = {
        name: list(cells) if name in TEXT else _numbers(cells) for name, cells in zip(rows[0], columns, strict=True)
    }
    return pd.DataFrame(parsed, columns=rows[0])


def write_card(path: Path, card: Mapping[str, Any]) -> None:
    """Write what was asked and found beside the tables as JSON, all at once."""
    with written_atomically(path) as temporary:
        temporary.write_text(json.dumps(dict(card), indent=1) + "\n", encoding="utf-8")


def read_card(path: Path) -> dict[str, Any]:
    """Read what `write_card` wrote."""
    card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return card


def _numbers(cells: Sequence[str]) -> list[Any]:
    """A column of whole numbers, truth values, or numbers with gaps."""
    if all(cell in {"True", "False"} for cell in cells):
        return [cell == "True" for cell in cells]
    if all(cell.lstrip("-").isdigit() for cell in cells):
        return [int(cell) for cell in cells]
    return [float(cell) if cell else math.nan for cell in cells]
