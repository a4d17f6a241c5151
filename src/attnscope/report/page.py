"""The whole page: one offline HTML file for one text or several, the answer of each before its views."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from ..attribution import compare
from ..errors import BadInput
from ..evaluation import Trust
from ..explaining import Explanation
from ..numerals import counted
from ..record import AttentionRecord, VectorRecord
from ..views.flow import flow as flow_view
from ..views.flow_scene import SHORT
from ..views.model import model as model_view
from ..views.page import FoldedView, Item, Prose, page_html, write_page
from ..views.scores import scores as scores_view
from ..views.tracing import tracing as tracing_view
from ..views.weights import PAGE_BYTES, WORST
from .answer import answer_html, text_of

PAGE_BUDGET = 6_000_000
"""Bytes that the scores and the heads of all texts may take together, with what draws them.

Half of a text's part is for the maps of its scores, and its heads get what those leave: maps that do not fit are left
out, and of the weights the largest of each row stay. Flow and tracing come on top: below 2 MB for one text.
"""
LEAST_BUDGET = 600_000
"""What each text may take where there are many."""
TRACED_TOKENS = 512
"""Tokens up to which tracing is drawn: it folds quiet ones away, and takes below 1 MB and two seconds."""
FLOW_BYTES = 6
"""Bytes of a text's part for each weight of the flow's graph: 180 tokens of thirty layers, or 280 of twelve."""
TITLE_LETTERS = 60
"""Letters of a text that the title of its page quotes."""
STYLE = Path(__file__).with_name("report.css")

Texts = AttentionRecord | Explanation | Sequence[AttentionRecord | Explanation]


def write_report(path: str | Path, texts: Texts, title: str | None = None, trust: Trust | None = None) -> Path:
    """Write the report of one text or several as one offline HTML file, and return its path.

    `texts` are records, on which the methods are asked that need no model, or explanations with all of them
    (`attnscope.explaining.explain`).
    `trust` is what `attnscope.trust` found for this model: how far each method can be trusted on it. The title names
    the model and the text unless one is given.
    """
    path = Path(path)
    if path.is_dir():
        raise BadInput(f"The report is one file, but {path} is a folder: name a file in it.")
    items, named, intro = _contents(texts, trust)
    return write_page(path, items, title or named, intro, STYLE.read_text(encoding="utf-8"))


def report_html(texts: Texts, title: str | None = None, trust: Trust | None = None) -> str:
    """The page as `write_report` writes it."""
    items, named, intro = _contents(texts, trust)
    return page_html(items, title or named, intro, STYLE.read_text(encoding="utf-8"))


def _contents(texts: Texts, trust: Trust | None) -> tuple[list[Item], str, str]:
    """What stands on the page, what it is called, and what is said below that."""
    several = list(texts) if isinstance(texts, Sequence) else [texts]
    if not several:
        raise BadInput("A report needs at least one text.")
    explained = [_explain(text) for text in several]
    budget = max(PAGE_BUDGET // len(explained), LEAST_BUDGET)
    items = [item for one in explained for item in _items(one, trust, budget)]
    models = dict.fromkeys(str(one.record.card.get("model") or "weights of no known model") for one in explained)
    made = f"{', '.join(models)} · {counted(len(explained), 'text')} · made by attnscope, works offline"
    # a folder is called by its last name
    names = ", ".join(re.split(r"[/\\]", name)[-1] or name for name in models)
    about = text_of(explained[0].record) if len(explained) == 1 else f"{len(explained)} texts"
    short = f"{about[:TITLE_LETTERS].rstrip()}…" if len(about) > TITLE_LETTERS else about
    title = f"{names} on {short if len(explained) > 1 else f'“{short}”'}"
    return items, title, f"<p class=quiet>{escape(made)}</p>"


def _explain(text: AttentionRecord | Explanation) -> Explanation:
    return text if isinstance(text, Explanation) else Explanation(text, compare(text))


def _items(explanation: Explanation, trust: Trust | None, budget: int) -> Iterator[Item]:
    """The answer, the text under each method, all heads, how attention gets down the layers, and what is not here."""
    record, comparison, room = explanation.record, explanation.comparison, budget
    yield Prose(answer_html(explanation, trust), "text")
    left_out = dict(comparison.left_out)
    try:
        half = PAGE_BYTES + (budget - PAGE_BYTES) // 2
        shown = replace(comparison.reference_first, left_out={})  # which is said below
        # a sentence is too long to be the head of a column
        layout = "text" if explanation.by == "sentence" else None
        asked: dict[str, Any] = {"reference": comparison.reference, "layout": layout, "size_budget": half}
        scores = scores_view(shown, record=record, trust=trust, **asked)
        budget -= int(sum(map(len, scores.blobs.values())) * WORST)
        yield scores
    except BadInput as error:
        left_out["the text under each method"] = str(error)
    if left_out:
        yield Prose(left_out_html(left_out))
    yield Prose("<h3>All heads</h3>")
    if explanation.to_come:
        # seconds for a long text, and this page will soon be written anew
        yield Prose("<p class=quiet>They are drawn when the slow methods have answered.</p>")
    else:
        try:
            yield model_view(record, size_budget=budget)
        except BadInput as error:
            yield Prose(left_out_html({"the maps of the heads": str(error)}))
    missing = _missing_sections(record, room)
    if "flow" not in missing:
        # to every token of a long text it takes seconds or minutes: there it is of one pair
        targets: list[int] | None = None if len(record.key_tokens) <= SHORT else []
        flow = flow_view(record, queries=targets)
        yield FoldedView("How attention gets through the layers: raw, rollout, flow", flow)
    if "tracing" not in missing:
        yield FoldedView("Attention traced down from the read-out", tracing_view(record))
    if missing:
        yield Prose(left_out_html({f"the {name} section": why for name, why in missing.items()}))
    yield Prose(details_html(record))


def _missing_sections(record: AttentionRecord, room: int) -> dict[str, str]:
    """The sections that this record has no room or no use for, each with its reason and how to get it."""
    if isinstance(record, VectorRecord):
        return dict.fromkeys(("flow", "tracing"), "It is drawn of all weights, which take too much memory here.")
    tokens = len(record.key_tokens)
    if record.stack == "cross":
        why = "Layers of cross-attention cannot be joined: record the encoder or the decoder stack for it."
        return {"flow": why, "tracing": why}
    missing = {}
    fits = math.isqrt(room // FLOW_BYTES // max(len(record.layers), 1))
    if tokens > max(fits, SHORT):
        missing["flow"] = _too_long(tokens, max(fits, SHORT), "flow")
    if record.pooled:
        missing["tracing"] = "Heads are traced one by one, and this record holds only their mean: take all heads."
    elif tokens > TRACED_TOKENS:
        missing["tracing"] = _too_long(tokens, TRACED_TOKENS, "tracing")
    return missing


def _too_long(tokens: int, most: int, view: str) -> str:
    return (
        f"The text has {tokens} tokens, and this page has room for {most} of them: attnscope serve shows it, and so"
        f' does attnscope.views.{view}(record).save("{view}.html") in Python.'
    )


# What is left out of a page, and where a record comes from, folded until asked for.


def left_out_html(left_out: Mapping[str, str]) -> str:
    """What is not on the page, each with its reason."""
    return "".join(f"<p class=quiet>{escape(f'Left out: {name}. {why}')}</p>" for name, why in left_out.items())


def details_html(record: AttentionRecord) -> str:
    """What the record is, and its card."""
    layers, heads, queries, keys = record.shape
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
