"""The survey view: a map of all heads, coloured by any statistic or by role, and each head with its exemplars."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ..errors import BadInput
from ..record.schema import checked
from ..statistics import STATISTICS, Caption, role_symbol
from .plots import Marks, head_map, listed_roles, role_map
from .printing import COLUMN, Plot
from .sides import printable
from .tables import fill_array, need, only_one
from .view import View
from .weights import pack_array


@checked
def survey(
    tables: Mapping[str, pd.DataFrame],
    card: Mapping[str, Any],
    *,
    by_layer: Mapping[str, pd.DataFrame] | None = None,
    statistic: str | None = None,
    pinned: Sequence[int] | Sequence[Sequence[int]] = (),
) -> View:
    """The view of a survey's tables: `{name: survey[name].result()}`, any of them, and its card.

    Args:
        tables: Tidy tables with columns layer, head, value, error and labels; `roles`, `exemplars` and
            `role_exemplars` if there are any.
        card: What was surveyed; its entries are listed at the foot.
        by_layer: `{name: survey[name].by_layer()}` for the bars; without it they are means over heads.
        statistic: The map to open with; the roles if there are any, else the first.
        pinned: The layer and head to open with, or several of them.
    """
    if not isinstance(tables, Mapping) or not all(isinstance(table, pd.DataFrame) for table in tables.values()):
        raise BadInput(
            "The survey view shows tables by name, {name: survey[name].result()}, and its card: or take survey.view()."
        )
    maps = {name: table for name, table in tables.items() if name not in {ROLES, EXEMPLARS, ROLE_EXEMPLARS, CURVE}}
    drawn = [*maps.values(), *(tables[name] for name in (ROLES,) if name in tables)]
    if not drawn:
        raise BadInput("There is no statistic to draw: the survey view needs a table with layers and heads.")
    for table in drawn:
        need(table, ["layer", "head", "value"])
    layers = sorted({int(layer) for table in drawn for layer in table["layer"].unique()})
    heads = sorted({int(head) for table in drawn for head in table["head"].unique()})
    payload: dict[str, Any] = {
        "card": [*_plain(card), *(_curve(tables[CURVE]) if CURVE in tables else [])],
        "layers": layers,
        "heads": heads,
        "statistics": [
            _statistic(name, table, (by_layer or {}).get(name), layers, heads) for name, table in maps.items()
        ],
        "roles": _roles(tables[ROLES], layers, heads) if ROLES in tables else None,
        "exemplars": packed_exemplars(tables[EXEMPLARS]) if EXEMPLARS in tables else None,
        # where no role speaks of single pairs there are none
        "roleExemplars": packed_exemplars(tables[ROLE_EXEMPLARS]) if len(tables.get(ROLE_EXEMPLARS, ())) else None,
    }
    known = [*([ROLES] if ROLES in tables else []), *maps]
    if statistic is not None and statistic not in known:
        raise BadInput(f"There is no map of {statistic!r}; there are {', '.join(known)}.")
    pins = _pins(pinned, layers, heads)
    state = {
        "statistic": statistic or known[0],
        "label": None,
        "measure": "value",
        "root": False,
        "role": None,
        "layer": None,
        "head": None,
        "pinned": pins,
    }
    view = View(
        "survey",
        payload,
        state,
        table=lambda: tables[view.selected["statistic"]],
        draw=lambda selected, width: survey_figure(tables, selected, width),
        title=_title(card),
    )
    return view


def _title(card: Mapping[str, Any]) -> str:
    """What was surveyed; a survey's own card names its model beside the fingerprint."""
    model = card.get("model")
    name = model.get("name") if isinstance(model, Mapping) else model
    return f"Survey of {printable(str(name))}" if name else "Survey of a model's heads"


def _pins(pinned: Sequence[Any], layers: Sequence[int], heads: Sequence[int]) -> list[list[int]]:
    """The pinned heads, each as a layer and a head; one alone need not stand in a list."""
    pairs = [pinned] if pinned and not isinstance(pinned[0], Sequence) else pinned
    for pair in pairs:
        if len(pair) != 2:
            raise BadInput(f"A head is pinned by its layer and its number, but {pair!r} is no pair of them.")
        if pair[0] not in layers or pair[1] not in heads:
            raise BadInput(f"There is no layer {pair[0]}, head {pair[1]} in these tables.")
    return [[int(layer), int(head)] for layer, head in pairs]


def _statistic(
    name: str, table: pd.DataFrame, by_layer: pd.DataFrame | None, layers: Sequence[int], heads: Sequence[int]
) -> dict[str, Any]:
    """The measures of a statistic as arrays: by each combination of its labels, layer and head."""
    labels = labels_of(table)
    combinations = _combinations(table, labels)
    rows = {combination: place for place, combination in enumerate(dict.fromkeys(combinations))}
    if len(set(zip(combinations, table["layer"], table["head"], strict=True))) < len(table):
        raise BadInput(f"The table {name!r} has several rows for one head; its labels must be columns of text.")
    columns = [column for column in table if column not in {"layer", "head", *labels}]
    caption = caption_of(name)

    def by_row(table: pd.DataFrame, column: str, *axes: tuple[str, Sequence[int]]) -> dict[str, Any]:
        row = [rows[combination] for combination in _combinations(table, labels)]
        values = table[column].astype(float)
        return pack_array(
            fill_array(values, (row, range(len(rows))), *((table[axis], places) for axis, places in axes))
        )

    if by_layer is not None:
        need(by_layer, ["layer", "value", *labels])
    return {
        "name": name,
        "title": caption.title,
        "unit": caption.unit,
        "meaning": caption.meaning,
        "labels": [{"name": label, "title": name_of(label)} for label in labels],
        "rows": [list(combination) for combination in rows],
        "words": {label: name_of(label) for combination in rows for label in combination},
        "measures": [
            {
                "name": column,
                "title": name_of(str(column)),
                "array": by_row(table, column, ("layer", layers), ("head", heads)),
            }
            for column in columns
            if pd.api.types.is_numeric_dtype(table[column])
        ],
        "byLayer": None
        if by_layer is None
        else {
            column: by_row(by_layer, column, ("layer", layers)) for column in ("value", "error") if column in by_layer
        },
    }


def _combinations(table: pd.DataFrame, labels: Sequence[str]) -> list[tuple[str, ...]]:
    """What the labels of each row say, together."""
    return list(zip(*(table[label].astype(str) for label in labels), strict=True)) if labels else [()] * len(table)


def _roles(table: pd.DataFrame, layers: Sequence[int], heads: Sequence[int]) -> dict[str, Any]:
    """The role of each head, with the letters and the colour that the role has in every map; syntax comes first."""
    need(table, ["layer", "head", "role", "value"])
    only_one(table, ["layer", "head"])
    names = listed_roles(table["role"])
    symbols = [role_symbol(name) for name in names]
    places = table["role"].astype(str).map({name: number for number, name in enumerate(names)})

    def by_head(values: "pd.Series[Any]") -> Any:
        return fill_array(values, (table["layer"], layers), (table["head"], heads))

    texts = {column: table[column].fillna("").astype(str) for column in ("evidence", "also") if column in table}
    return {
        "names": names,
        "letters": [symbol.letters for symbol in symbols],
        "colours": [symbol.colour for symbol in symbols],
        "place": pack_array(by_head(places)),
        **{
            column: pack_array(by_head(table[column].astype(float))) for column in ("value", "error") if column in table
        },
        **{column: pd.Series(by_head(text).flat).fillna("").tolist() for column, text in texts.items()},
    }


def _curve(table: pd.DataFrame) -> list[list[str]]:
    """The corpus's own curve in a line: how often two tokens so far apart are linked."""
    need(table, ["distance", "value"])
    near = table.sort_values("distance").head(10)
    text = ", ".join(f"{value:.2g} at {int(distance)}" for distance, value in near[["distance", "value"]].to_numpy())
    return [["share of token pairs that are linked, by distance", text]]


def _plain(card: Mapping[str, Any]) -> list[list[str]]:
    """The card as lines of text: what a name stands for, in words."""
    lines = []
    for name, entry in card.items():
        if isinstance(entry, Mapping):
            text = ", ".join(f"{inner}: {value}" for inner, value in entry.items()) or "none"
        elif isinstance(entry, (list, tuple, set)):
            text = ", ".join(map(str, entry)) or "none"
        else:
            text = f"{entry:,}" if isinstance(entry, int) and not isinstance(entry, bool) else str(entry)
        lines.append([str(name).replace("_", " "), text])
    return lines


# The exemplars of every head as texts that are kept once, with the attending and the attended token marked.


WHOLE, AROUND = 80, 12
"""Texts of more tokens than the first are cut to as many as the second around each of the two tokens."""
GAP = "\u2026"


def packed_exemplars(table: pd.DataFrame) -> dict[str, Any]:
    """All texts once, and for each head its rows: text, attending token, attended token, weight."""
    need(table, ["layer", "head", "rank", "value", "query", "key", "tokens"])
    texts: dict[tuple[str, ...], int] = {}
    of: dict[str, list[list[int | float]]] = {}
    for row in table.sort_values(["layer", "head", "rank"]).to_dict("records"):
        tokens = add_spaces([str(token) for token in row["tokens"]], str(row.get("text") or ""))
        tokens, query, key = shorten_around(tokens, int(row["query"]), int(row["key"]))
        place = texts.setdefault(tuple(tokens), len(texts))
        of.setdefault(f"{int(row['layer'])},{int(row['head'])}", []).append([place, query, key, round(row["value"], 6)])
    return {"texts": [list(tokens) for tokens in texts], "of": of}


def add_spaces(tokens: Sequence[str], text: str) -> list[str]:
    """Each token with the white space before it, so that the tokens in a row read as the text does.

    >>> add_spaces(["[CLS]", "Don", "'", "t", "go", "[SEP]"], "Don't go")
    ['[CLS]', ' Don', "'", 't', ' go', ' [SEP]']
    """
    if any(token[:1].isspace() for token in tokens):
        return list(tokens)
    made: list[str] = []
    at, apart = 0, True
    for token in tokens:
        found = text.find(token, at) if token else -1
        # a token that the text does not have there (a special one, a changed letter) stands alone, with space around
        between = text[at:found]
        known = found >= 0 and not between.strip()
        space = bool(made) and (apart or not known or bool(between))
        made.append(" " * space + token)
        at, apart = (found + len(token), False) if known else (at, True)
    return made


def shorten_around(tokens: Sequence[str], query: int, key: int) -> tuple[list[str], int, int]:
    """A long text cut to what stands around the two tokens; an ellipsis says how many tokens are left out.

    >>> shorten_around([f" {number}" for number in range(100)], 90, 50)[0][:3]
    ['… (38 tokens)', ' 38', ' 39']
    """
    if len(tokens) <= WHOLE:
        return list(tokens), query, key
    kept = [place for place in range(len(tokens)) if min(abs(place - query), abs(place - key)) <= AROUND]
    made: list[str] = []
    places = {}
    before = -1
    for place in kept:
        if place > before + 1:
            made.append(f"{' ' * bool(made)}{GAP} ({place - before - 1} tokens)")
        places[place] = len(made)
        made.append(tokens[place])
        before = place
    if before + 1 < len(tokens):
        made.append(f" {GAP} ({len(tokens) - before - 1} tokens)")
    return made, places[query], places[key]


# The printed survey view: the map of the statistic that is selected, or of the roles, and the table behind it.


ROLES, EXEMPLARS, ROLE_EXEMPLARS, CURVE = "roles", "exemplars", "role_exemplars", "dependency_by_distance"
KEYS = {"layer", "head", "value", "error"}


def labels_of(table: pd.DataFrame) -> list[str]:
    """The columns of text that tell several figures of one head apart."""
    return [str(name) for name in table if name not in KEYS and not pd.api.types.is_numeric_dtype(table[name])]


def survey_figure(
    tables: Mapping[str, pd.DataFrame], state: Mapping[str, Any], width: int | float | None = None
) -> Plot:
    """The map that is selected; pinned heads are framed, and heads of other roles than a selected one step back."""
    name, table = state["statistic"], tables[state["statistic"]]
    marks = _marks(tables, state)
    if name == ROLES:
        return role_map(table, marks=marks, width=width or COLUMN)
    labels, words = labels_of(table), caption_of(name)
    combinations = _combinations(table, labels)
    row = tuple(map(str, state.get("label") or combinations[0]))
    table = table[[combination == row for combination in combinations]]
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


# What columns and labels are called on the screen; a statistic has its own caption.


NAMES = {
    "head_to_dependent": "head → dependent",
    "dependent_to_head": "dependent → head",
    "either": "either way",
    "to": "to",
    "from": "from",
    "any": "any relation",
    "tag": "Tag",
    "direction": "Direction",
    "relation": "Relation",
    "pattern": "Pattern",
    "evenness": "Evenness",
    "links": "Links",
    "value": "Value",
    "chance": "By chance",
    "best_offset": "Best fixed offset",
    "offset_value": "A head at the best fixed offset",
    "focus": "Focus: share along the link where one exists",
    "focus_offset": "Best fixed offset for focus",
    "focus_offset_value": "Focus at the best fixed offset",
    "signed": "Signed: attending minus attended",
    "one_token": "Share of the most attended token of a sentence",
    "one_token_chance": "Share of the most attended token, by chance",
    "rows": "Rows counted",
    "rows_share": "Share of rows counted",
    "sentences": "Sentences counted",
}


def caption_of(statistic: str) -> Caption:
    """The caption of a statistic; one of the user's own gets its name, readable."""
    known = STATISTICS.get(statistic)
    return Caption(name_of(statistic)) if known is None else known.caption


def name_of(name: str) -> str:
    """A column or a label as a reader sees it.

    >>> name_of("head_to_dependent"), name_of("nsubj"), name_of("my_column")
    ('head → dependent', 'nsubj', 'My column')
    """
    if name in NAMES:
        return NAMES[name]
    return name.replace("_", " ").capitalize() if "_" in name else name
