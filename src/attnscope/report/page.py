"""The whole page: one offline HTML file for one text or several."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from .. import paint
from ..errors import BadInput
from ..files import written_atomically
from ..record import AttentionRecord
from .answer import answer_html
from .details import details_html
from .layers import layers_html
from .maps import block_of, map_data, maps_html

MAP_BUDGET = 5_000_000
"""Bytes that the maps of all texts may take, so that a page stays below 8 MB."""
CELL_BUDGET = 20_000
"""Token cells that the layer rows of all texts may take, so that a page stays quick."""
BESIDE_TOKENS, BESIDE_HEADS = 12, 8
"""Texts up to this size stand two in a row; longer ones take the whole width."""
HERE = Path(__file__).parent


def write_report(
    path: str | Path, records: AttentionRecord | Sequence[AttentionRecord], title: str = "What the model looks at"
) -> Path:
    """Write the report of one record or several as one offline HTML file, and return its path."""
    path = Path(path)
    if path.is_dir():
        raise BadInput(f"The report is one file, but {path} is a folder: name a file in it.")
    page = report_html(records, title)
    with written_atomically(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


def report_html(records: AttentionRecord | Sequence[AttentionRecord], title: str = "What the model looks at") -> str:
    """The page: for each text its answer, then its layers, then its heads, then what stands behind them."""
    records = [records] if isinstance(records, AttentionRecord) else list(records)
    if not records:
        raise BadInput("A report needs at least one record.")
    blocks = [block_of(record, MAP_BUDGET // len(records)) for record in records]
    maps = [map_data(record, block) for record, block in zip(records, blocks, strict=True) if block is not None]
    numbers = iter(range(len(maps)))
    articles = "".join(
        f'<article class="{"beside" if _fits_beside(record) else "alone"}">'
        + answer_html(record)
        + layers_html(record, CELL_BUDGET // len(records))
        + maps_html(record, block, None if block is None else next(numbers))
        + details_html(record)
        + "</article>"
        for record, block in zip(records, blocks, strict=True)
    )
    palettes = {"light": paint.sequential(), "dark": paint.sequential(dark=True)}
    return (
        '<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width">'
        '<meta name=color-scheme content="light dark">'
        f"<title>{escape(title)}</title><style>{_style()}</style></head><body>"
        f"<header><h1>{escape(title)}</h1><p class=quiet>{escape(_subtitle(records))}</p>"
        "<p class=quiet><label><input type=checkbox class=root> Square-root colour scale, which lifts small weights"
        f"</label></p></header><main>{articles}</main>"
        f"{(HERE / 'enlarged.html').read_text(encoding='utf-8')}"
        f"<script type=application/json id=data>{_safe_json({'palettes': palettes, 'maps': maps})}</script>"
        f"<script type=module>{(HERE / 'page.js').read_text(encoding='utf-8')}</script></body></html>\n"
    )


def _style() -> str:
    own = (HERE / "page.css").read_text(encoding="utf-8")
    return f"{paint.style_rules()}@media (prefers-color-scheme:dark){{{paint.style_rules(dark=True)}}}{own}"


def _subtitle(records: Sequence[AttentionRecord]) -> str:
    models = dict.fromkeys(str(record.card.get("model") or "weights of no known model") for record in records)
    texts = "one text" if len(records) == 1 else f"{len(records)} texts"
    return f"{', '.join(models)} · {texts} · made by attnscope, works offline"


def _fits_beside(record: AttentionRecord) -> bool:
    return len(record.key_tokens) <= BESIDE_TOKENS and len(record.heads) <= BESIDE_HEADS and record.stack != "cross"


def _safe_json(value: object) -> str:
    """JSON that no token can break out of: a script element ends at the first `</script`, whatever is quoted."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
