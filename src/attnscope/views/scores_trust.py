"""How far each method can be trusted on this model, as it stands beside the method's name."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ..errors import BadInput

AGAINST = ("blank_out", "gradient")
"""What the methods of a trust table are held against; the first of these that is there counts."""
PLAIN = "Trust: how well the method follows this model, with its interval."


def trust_of(trust: Any) -> tuple[dict[str, dict[str, float]], str]:
    """Value, low and high of each method, and what they are in a sentence.

    Taken are a mapping of methods to {"value", "low", "high"}, and the table of `attnscope.trust` or what holds it.
    """
    if trust is None:
        return {}, ""
    table = getattr(trust, "table", trust)
    if isinstance(table, pd.DataFrame):
        return _of_table(table)
    if not isinstance(table, Mapping):
        raise BadInput('trust is a mapping of methods to {"value", "low", "high"}, or the table of attnscope.trust().')
    return {str(name): _figures(str(name), figures) for name, figures in table.items()}, PLAIN


def _figures(name: str, figures: Any) -> dict[str, float]:
    if not isinstance(figures, Mapping) or "value" not in figures:
        raise BadInput(f'The trust in {name} is {{"value", "low", "high"}}, not {figures!r}.')
    found = {key: float(figures[key]) for key in ("value", "low", "high") if figures.get(key) is not None}
    return {key: value for key, value in found.items() if math.isfinite(value)}


def _of_table(table: pd.DataFrame) -> tuple[dict[str, dict[str, float]], str]:
    """The rank agreement over all texts, special tokens set aside, of the scores that a method gives by itself."""
    missing = {"method", "against", "measure", "special", "bucket", "layer", "value", "low", "high"} - set(table)
    if missing:
        raise BadInput(f"This is no trust table: it lacks {', '.join(sorted(missing))}.")
    rows = table[(table["bucket"] == "all") & table["layer"].isna() & (table["special"] == "without")]
    rows = rows[rows["measure"] == "spearman"]
    against = next((name for name in AGAINST if name in set(rows["against"])), None)
    rows = rows[rows["against"] == against]
    plain = rows[["method", "value", "low", "high"]].to_dict("records")
    figures = {str(row["method"]): _figures(str(row["method"]), row) for row in plain}
    sentence = f"Trust: rank agreement with {against} on texts of this model without special tokens, and its interval."
    return figures, sentence if figures else ""
