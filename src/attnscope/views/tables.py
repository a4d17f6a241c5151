"""What a view asks of a table: its columns, one row for each head, and the numbers as a grid of layers by heads."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64, Shaped

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


def token_column(texts: Sequence[str]) -> pd.Categorical:
    """Texts as a column that holds every text once: a token may have 10,000 letters.

    >>> token_column(["the", "key", "the"]).codes.tolist()
    [0, 1, 0]
    """
    # as objects: strings of the table's own would be copied for whatever is made of it
    return pd.Categorical(texts, categories=pd.Index(list(dict.fromkeys(texts)), dtype=object))


def tidy_table(
    columns: Mapping[str, tuple[int, Sequence[Any]]], **figures: Shaped[np.ndarray, "*axes"]
) -> pd.DataFrame:
    """Every place of an array as a row: columns that name it along an axis (by its number), and its figures.

    >>> tidy_table({"layer": (0, [2, 3]), "token": (1, ["a", "b"])}, value=np.eye(2)).to_numpy().tolist()
    [[2, 'a', 1.0], [2, 'b', 0.0], [3, 'a', 0.0], [3, 'b', 1.0]]
    """
    shape = next(iter(figures.values())).shape
    places = np.indices(shape).reshape(len(shape), -1)
    names = {name: pd.Series(labels).array[places[axis]] for name, (axis, labels) in columns.items()}
    return pd.DataFrame({**names, **{name: figure.reshape(-1) for name, figure in figures.items()}})


def fill_array(values: pd.Series, *axes: tuple[Iterable[Any], Sequence[Any]]) -> Shaped[np.ndarray, "*axes"]:
    """Values as an array: each axis is the label of every value, and all labels in their order; NaN where none is.

    >>> fill_array(pd.Series([0.5, 0.25]), ([7, 8], [7, 8]), (["b", "a"], ["a", "b"])).tolist()
    [[nan, 0.5], [0.25, nan]]
    """
    index = pd.MultiIndex.from_arrays([list(own) for own, _ in axes])
    if not index.is_unique:
        raise BadInput(f"A table has two rows for one place of its map: {index[index.duplicated()][0]}.")
    every = pd.MultiIndex.from_product([labels for _, labels in axes])
    filled = pd.Series(values.to_numpy(), index).reindex(every)
    return np.reshape(filled.to_numpy(), [len(labels) for _, labels in axes])


def grid_of(table: pd.DataFrame, value: str) -> tuple[list[int], list[int], Float64[np.ndarray, "layer head"]]:
    """The layers, the heads, and the figure of each head; NaN where there is no row.

    >>> grid_of(pd.DataFrame({"layer": [0, 2], "head": [1, 0], "value": [0.5, 0.25]}), "value")[2].tolist()
    [[nan, 0.5], [0.25, nan]]
    """
    need(table, ["layer", "head", value])
    only_one(table, ["layer", "head"])
    layers, heads = sorted(set(map(int, table["layer"]))), sorted(set(map(int, table["head"])))
    grid = fill_array(table[value].astype(float), (table["layer"], layers), (table["head"], heads))
    return layers, heads, grid
