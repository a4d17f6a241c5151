"""What is left out of a page, and where a record comes from, folded until asked for."""

from collections.abc import Mapping
from html import escape
from typing import Any

from ..numerals import counted
from ..record import AttentionRecord


def left_out_html(left_out: Mapping[str, str]) -> str:
    """What is not on the page, each with its reason."""
    return "".join(f"<p class=quiet>{escape(f'Left out: {name}. {why}')}</p>" for name, why in left_out.items())


def details_html(record: AttentionRecord) -> str:
    """What the record is, and its card."""
    layers, heads, queries, keys = record.weights.shape
    size = f"{counted(layers, 'layer')} × {counted(heads, 'head')}, {queries} query × {counted(keys, 'key token')}"
    entries: dict[str, Any] = {"record": f"{size}, {record.stack}{', causal' * record.causal}", **record.card}
    lines = "".join(
        f"<dt>{escape(name.replace('_', ' '))}</dt><dd>{escape(_in_words(value))}</dd>"
        for name, value in entries.items()
    )
    return f"<details><summary>Where this comes from</summary><dl>{lines}</dl></details>"


def _in_words(value: Any) -> str:
    if value is None:
        return "not known"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_in_words(inner)}" for name, inner in value.items())
    return str(value)
