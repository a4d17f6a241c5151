"""Tables and cards on disk: every number comes back to the bit, and a word called "null" stays a word."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import BadInput
from ..files import written_atomically
from ..record.schema import Anything, card_from_json, json_of, told

TEXT = ("word", "matched", "entries", "tag", "method", "scaling", "first", "second", "over")
"""Columns of texts; in all others an empty cell is a missing number."""


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV, all at once."""
    with written_atomically(path) as temporary:
        table.to_csv(temporary, index=False)


def read_table(path: Path) -> pd.DataFrame:
    """Read what `write_table` wrote; not by pandas, whose parser may miss the last digit and takes words for gaps."""
    try:
        rows = list(csv.reader(io.StringIO(json_of(path).decode("utf-8"), newline=""), strict=True))
        if not rows or len(set(rows[0])) < len(rows[0]):
            raise BadInput(f"{path} is damaged: it has no columns, or several of one name.")
        columns = zip(*rows[1:], strict=True) if len(rows) > 1 else ((),) * len(rows[0])
        parsed = {
            name: list(cells) if name in TEXT else _numbers(cells) for name, cells in zip(rows[0], columns, strict=True)
        }
        return pd.DataFrame(parsed, columns=rows[0])
    except (ValueError, OverflowError, csv.Error) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path} is damaged, or not written by attnscope: {told(error)}.") from None


def write_card(path: Path, card: Mapping[str, Any]) -> None:
    """Write what was asked and found beside the tables as JSON, all at once."""
    with written_atomically(path) as temporary:
        temporary.write_text(json.dumps(dict(card), indent=1) + "\n", encoding="utf-8")


def read_card(path: Path, facts: Any = Anything) -> dict[str, Any]:
    """Read what `write_card` wrote, if it says at least what the dataclass `facts` does."""
    return card_from_json(facts, json_of(path), str(path))


def _numbers(cells: Sequence[str]) -> list[Any]:
    """A column of whole numbers, truth values, or numbers with gaps."""
    if all(cell in {"True", "False"} for cell in cells):
        return [cell == "True" for cell in cells]
    if all(cell.lstrip("-").isdigit() for cell in cells):
        return [int(cell) for cell in cells]
    return [float(cell) if cell else math.nan for cell in cells]
