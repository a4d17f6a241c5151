"""What a view asks of a table: its columns, one row for each head, and the numbers as a grid of layers by heads."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int

from ..errors import BadInput

LABELS = ("direction", "tag", "relation", "pattern")
"""Columns that the project's own statistics use to tell apart several figures of one head."""


def need(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raise unless the table has these columns and at least one row."""
    missing = [column for column in columns if column not in table]
    if missing:
        raise BadInput(f"The table has no column {missing[0]!r}; it has {', '.join(map(str, table.columns))}.")
    if table.empty:
        raise BadInput("The table has no rows, so there is nothing to draw.")


def only_one(table: pd.DataFrame, keys: Sequence[str]) -> None:
    """Raise if several rows have the same keys, and name the label that was left open."""
    if not table.duplicated(list(keys)).any():
        return
    others = [name for name in (*LABELS, "head", "layer") if name in table and name not in keys]
    choose = next((name for name in others if table[name].nunique() > 1), None)
    hint = f": choose one {choose} first" if choose else ""
    raise BadInput(f"The table has several rows for one {' and '.join(keys)}{hint}.")


def token_column(texts: Sequence[str], places: Int[np.ndarray, " row"]) -> pd.Categorical:
    """The text at each place as a column that holds every text once: a token may have 10,000 letters.

    >>> token_column(["the", "key", "the"], np.array([2, 1, 0])).tolist()
    ['the', 'key', 'the']
    """
    kinds = list(dict.fromkeys(texts))
    codes = {text: code for code, text in enumerate(kinds)}
    # as objects: strings of the table's own would be copied for whatever is made of it
    categories = pd.Index(kinds, dtype=object)
    return pd.Categorical.from_codes(np.array([codes[text] for text in texts])[places], categories=categories)


def grid_of(table: pd.DataFrame, value: str) -> tuple[list[int], list[int], Float64[np.ndarray, "layer head"]]:
    """The layers, the heads, and the figure of each head; NaN where there is no row.

    >>> grid_of(pd.DataFrame({"layer": [0, 2], "head": [1, 0], "value": [0.5, 0.25]}), "value")[2].tolist()
    [[nan, 0.5], [0.25, nan]]
    """
    need(table, ["layer", "head", value])
    only_one(table, ["layer", "head"])
    layers, heads = sorted(set(map(int, table["layer"]))), sorted(set(map(int, table["head"])))
    grid = np.full((len(layers), len(heads)), np.nan)
    grid[np.searchsorted(layers, table["layer"]), np.searchsorted(heads, table["head"])] = table[value]
    return layers, heads, grid
