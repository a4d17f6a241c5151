"""The whole page: one offline HTML file for one text or several, the answer of each before its views."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from ..attribution import Comparison, compare
from ..errors import BadInput
from ..evaluation import Trust
from ..explaining import Explanation
from ..numerals import counted
from ..record import AttentionRecord
from ..views.flow import SHORT
from ..views.flow import flow as flow_view
from ..views.model import model as model_view
from ..views.packing import WORST
from ..views.page import Folded, Item, Prose, page_html, write_page
from ..views.scores import scores as scores_view
from ..views.tracing import tracing as tracing_view
from ..views.weights import PAGE_BYTES
from .answer import answer_html
from .details import details_html

PAGE_BUDGET = 6_000_000
"""Bytes that the scores and the heads of all texts may take together, with what draws them.

Half of a text's part is for the maps of its scores, and its heads get what those leave: maps that do not fit are left
out, and of the weights the largest of each row stay. Flow and tracing are of short texts only and come on top: below
1 MB each for twelve layers of twelve heads.
"""
LEAST_BUDGET = 600_000
"""What each text may take where there are many."""
TRACED_TOKENS = 128
"""Tokens up to which tracing is drawn: a dot for each head, layer and token."""
STYLE = Path(__file__).with_name("report.css")

Texts = AttentionRecord | Explanation | Sequence[AttentionRecord | Explanation]


def write_report(
    path: str | Path, texts: Texts, title: str = "What the model looks at", trust: Trust | None = None
) -> Path:
    """Write the report of one text or several as one offline HTML file, and return its path.

    `texts` are records, on which the methods are asked that need no model, or explanations with all of them
    (`attnscope.explaining.explain`).
    `trust` is what `attnscope.trust` found for this model: how far each method can be trusted on it.
    """
    path = Path(path)
    if path.is_dir():
        raise BadInput(f"The report is one file, but {path} is a folder: name a file in it.")
    items, intro = _contents(texts, trust)
    return write_page(path, items, title, intro, STYLE.read_text(encoding="utf-8"))


def report_html(texts: Texts, title: str = "What the model looks at", trust: Trust | None = None) -> str:
    """The page as `write_report` writes it."""
    items, intro = _contents(texts, trust)
    return page_html(items, title, intro, STYLE.read_text(encoding="utf-8"))


def _contents(texts: Texts, trust: Trust | None) -> tuple[list[Item], str]:
    several = list(texts) if isinstance(texts, Sequence) else [texts]
    if not several:
        raise BadInput("A report needs at least one text.")
    explained = [_explained(text) for text in several]
    budget = max(PAGE_BUDGET // len(explained), LEAST_BUDGET)
    items = [item for record, comparison in explained for item in _items(record, comparison, trust, budget)]
    models = dict.fromkeys(str(record.card.get("model") or "weights of no known model") for record, _ in explained)
    made = f"{', '.join(models)} · {counted(len(explained), 'text')} · made by attnscope, works offline"
    return items, f"<p class=quiet>{escape(made)}</p>"


def _explained(text: AttentionRecord | Explanation) -> tuple[AttentionRecord, Comparison]:
    if isinstance(text, Explanation):
        return text.record, text.comparison
    return text, compare(text)


def _items(record: AttentionRecord, comparison: Comparison, trust: Trust | None, budget: int) -> Iterator[Item]:
    """The answer, the text under each method, all heads, and how attention gets through the layers."""
    yield Prose(answer_html(record, comparison, trust), "text")
    try:
        half = PAGE_BYTES + (budget - PAGE_BYTES) // 2
        scores = scores_view(comparison, record=record, trust=trust, size_budget=half)
        budget -= int(sum(map(len, scores.blobs.values())) * WORST)
        yield scores
    except BadInput as error:
        yield Prose(f"<p class=quiet>The text under each method is left out. {escape(str(error))}</p>")
    yield Prose("<h3>All heads</h3>")
    try:
        yield model_view(record, size_budget=budget)
    except BadInput as error:
        yield Prose(f"<p class=quiet>The maps of the heads are left out. {escape(str(error))}</p>")
    tokens = len(record.key_tokens)
    if record.stack != "cross" and tokens <= SHORT:
        yield Folded("How attention gets through the layers: raw, rollout, flow", flow_view(record))
    if record.stack != "cross" and tokens <= TRACED_TOKENS and not record.pooled:
        yield Folded("Attention traced down from the read-out", tracing_view(record))
    yield Prose(details_html(record, comparison))
