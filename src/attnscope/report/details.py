"""What stands behind a text's answer: its numbers as a plain table, and where the record comes from."""

from collections.abc import Mapping
from html import escape
from typing import Any

from ..attribution import raw
from ..record import AttentionRecord
from .tokens import ranks, shown


def details_html(record: AttentionRecord) -> str:
    """The table and the card, folded until asked for."""
    return f"<section class=details>{_table(record)}{_card(record)}</section>"


def _table(record: AttentionRecord) -> str:
    scores = raw(record).scores.tolist()
    rows = "".join(
        f"<tr><td>{position}</td><th scope=row dir=auto>{escape(text)}</th><td>{'special' if special else ''}</td>"
        f"<td>{score:.4f}</td><td>{rank}</td></tr>"
        for position, (text, special, score, rank) in enumerate(
            zip(shown(record.key_tokens), record.key_special, scores, ranks(scores), strict=True)
        )
    )
    return (
        "<details><summary>View as table</summary><div class=scroll><table class=plain>"
        f"<caption>Raw attention from the read-out in layer {record.layers[-1]}, mean over heads</caption>"
        "<thead><tr><th scope=col>Position</th><th scope=col>Token</th><th scope=col>Kind</th>"
        f"<th scope=col>Attention</th><th scope=col>Rank</th></tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _card(record: AttentionRecord) -> str:
    layers, heads, queries, keys = record.weights.shape
    kind = f"{record.stack}{', causal' * record.causal}"
    size = f"{layers} layers × {heads} heads, {queries} query × {keys} key tokens, {kind}"
    entries: dict[str, Any] = {"record": size, **record.card}
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
