"""The exemplars of every head as texts that are kept once, with the attending and the attended token marked."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from .tables import need

WHOLE, AROUND = 80, 12
"""Texts of more tokens than the first are cut to as many as the second around each of the two tokens."""
GAP = "\u2026"


def packed_exemplars(table: pd.DataFrame) -> dict[str, Any]:
    """All texts once, and for each head its rows: text, attending token, attended token, weight."""
    need(table, ["layer", "head", "rank", "value", "query", "key", "tokens"])
    texts: dict[tuple[str, ...], int] = {}
    of: dict[str, list[list[int | float]]] = {}
    for row in table.sort_values(["layer", "head", "rank"]).to_dict("records"):
        tokens = spaced([str(token) for token in row["tokens"]], str(row.get("text") or ""))
        tokens, query, key = shortened(tokens, int(row["query"]), int(row["key"]))
        place = texts.setdefault(tuple(tokens), len(texts))
        of.setdefault(f"{int(row['layer'])},{int(row['head'])}", []).append([place, query, key, round(row["value"], 6)])
    return {"texts": [list(tokens) for tokens in texts], "of": of}


def spaced(tokens: Sequence[str], text: str) -> list[str]:
    """Each token with the white space before it, so that the tokens in a row read as the text does.

    >>> spaced(["[CLS]", "Don", "'", "t", "go", "[SEP]"], "Don't go")
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


def shortened(tokens: Sequence[str], query: int, key: int) -> tuple[list[str], int, int]:
    """A long text cut to what stands around the two tokens; an ellipsis says how many tokens are left out.

    >>> shortened([f" {number}" for number in range(100)], 90, 50)[0][:3]
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
