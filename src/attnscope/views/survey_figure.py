"""The printed survey view: the map of the statistic that is selected, or of the roles, and the table behind it."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ..errors import BadInput
from .plots import Marks, head_map, role_map
from .printing import COLUMN, Plot
from .titles import caption_of, name_of

ROLES, EXEMPLARS, ROLE_EXEMPLARS, CURVE = "roles", "exemplars", "role_exemplars", "dependency_by_distance"
KEYS = {"layer", "head", "value", "error"}


def labels_of(table: pd.DataFrame) -> list[str]:
    """The columns of text that tell several figures of one head apart."""
    return [str(name) for name in table if name not in KEYS and not pd.api.types.is_numeric_dtype(table[name])]


def chosen_table(tables: Mapping[str, pd.DataFrame], state: Mapping[str, Any]) -> pd.DataFrame:
    """The table of the map that is selected, whole: every label and every measure."""
    return tables[state["statistic"]]


def survey_figure(
    tables: Mapping[str, pd.DataFrame], state: Mapping[str, Any], width: int | float | None = None
) -> Plot:
    """The map that is selected; pinned heads are framed, and heads of other roles than a selected one step back."""
    name, table = state["statistic"], chosen_table(tables, state)
    marks = _marks(tables, state)
    if name == ROLES:
        return role_map(table, marks=marks, width=width or COLUMN)
    labels, words = labels_of(table), caption_of(name)
    row: list[str] = [str(label) for label in state.get("label") or table[labels].astype(str).iloc[0]]
    for label, value in zip(labels, row, strict=True):
        table = table[table[label].astype(str) == value]
    if table.empty:
        raise BadInput(f"There is no figure of {words.title.lower()} for {', '.join(row)}.")
    measure = state.get("measure") or "value"
    if measure not in table:
        raise BadInput(f"The table {name!r} has no column {measure!r}.")
    which = ", ".join(name_of(label) for label in row)
    what = words.unit or words.title.lower() if measure == "value" else name_of(measure).split(":")[0].lower()
    caption = f"{words.title}{f' ({which})' if which else ''}: {what} of each head; layers down, heads across."
    return head_map(
        table,
        measure,
        what,
        " ".join(filter(None, [caption, words.meaning])),
        width or COLUMN,
        scale="square root" if state.get("root") else "linear",
        marks=marks,
    )


def _marks(tables: Mapping[str, pd.DataFrame], state: Mapping[str, Any]) -> Marks:
    """The heads that are framed, and those that step back."""
    framed = [(int(layer), int(head)) for layer, head in state.get("pinned") or ()]
    role = state.get("role")
    if role is None or ROLES not in tables:
        return Marks(framed)
    others = tables[ROLES][tables[ROLES]["role"].astype(str) != role]
    pairs = zip(others["layer"], others["head"], strict=True)
    return Marks(
        framed, [(int(layer), int(head)) for layer, head in pairs], f"Heads of other roles than {role} are pale."
    )
