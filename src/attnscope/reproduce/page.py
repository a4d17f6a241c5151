"""A report as one offline page, with its figures inside."""

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from pathlib import Path
from urllib.parse import quote

from .document import (
    Block,
    Code,
    Document,
    Emphasis,
    Figure,
    Heading,
    Link,
    Paragraph,
    Piece,
    Strong,
    Table,
    Words,
    pieces,
)

MEDIA = {".svg": "image/svg+xml", ".png": "image/png"}
PIXELS = 132
"""Pixels to an inch of a printed figure, so that its 8-point text is as large as the text around it."""
STYLE = """
:root { color-scheme: light dark; --ground: #ffffff; --text: #1b1f24; --quiet: #59636e; --line: #d1d9e0; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #0f141b; --text: #e6e9ed; --quiet: #9aa5b1; --line: #363f4a; }
}
body { margin: 0 auto; max-width: 1000px; padding: 24px 16px 64px; background: var(--ground); color: var(--text);
  font: 16px/24px system-ui, sans-serif; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
h1 { font-size: 28px; line-height: 36px; } h2 { font-size: 22px; line-height: 28px; margin-top: 48px; }
h3 { font-size: 16px; line-height: 24px; margin: 24px 0 4px; } h1, h2, h3 { font-weight: 600; }
p, figcaption { max-width: 76ch; } p { margin: 8px 0; } figure { margin: 24px 0; }
figcaption { color: var(--quiet); font-size: 14px; line-height: 20px; margin-top: 8px; }
img { display: block; max-width: 100%; height: auto; background: #ffffff; border: 1px solid var(--line);
  padding: 12px; box-sizing: border-box; }
/* drawn for paper: in the dark, light and dark change places and every colour keeps its hue */
@media (prefers-color-scheme: dark) { img { filter: invert(0.93) hue-rotate(180deg); } }
.scroll { overflow-x: auto; margin: 16px 0; } table { border-collapse: collapse; font-size: 14px; line-height: 20px; }
th, td { text-align: start; vertical-align: baseline; padding: 6px 16px 6px 0; border-bottom: 1px solid var(--line);
  min-width: 4em; overflow-wrap: normal; }
th { font-weight: 600; } code { font: 14px/20px ui-monospace, monospace; }
td code { font-size: 12px; color: var(--quiet); }
strong { font-weight: 700; } a { color: inherit; }
/* on a narrow screen a row stands on its side: each cell on a line of its own, behind the name of its column */
@media (max-width: 640px) {
  thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  table, tbody, tr, td { display: block; } tr { padding: 8px 0; border-bottom: 1px solid var(--line); }
  td { border: 0; padding: 2px 0; overflow-wrap: anywhere; } td:empty { display: none; }
  td[data-name]::before { content: attr(data-name) ": "; color: var(--quiet); }
}
""".strip()


def page_of(document: Document, drawings: Mapping[str, Path]) -> str:
    """The page; `drawings` are the files of its figures. Nothing runs in it, and it asks for nothing."""
    policy = f"default-src 'none'; style-src {_hash(STYLE)}; img-src data:; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width">'
        f'<meta http-equiv=Content-Security-Policy content="{policy}"><meta name=color-scheme content="light dark">'
        f"<title>{escape(document.title)}</title><style>{STYLE}</style></head><body>\n<h1>{escape(document.title)}</h1>\n"
        + "\n".join(_block(block, drawings) for block in document.body)
        + "\n</body></html>\n"
    )


def _block(block: Block, drawings: Mapping[str, Path]) -> str:
    match block:
        case Heading():
            return f"<h{block.level + 1}>{escape(block.text)}</h{block.level + 1}>"
        case Paragraph():
            return f"<p>{_line(block.words)}</p>"
        case Table():
            names = "".join(f"<th scope=col>{escape(name)}</th>" for name in block.names)
            rows = "\n".join(f"<tr>{''.join(map(_cell, block.names, row))}</tr>" for row in block.rows)
            table = f"<table><thead><tr>{names}</tr></thead><tbody>\n{rows}</tbody></table>"
            return f"<div class=scroll tabindex=0 role=region aria-label=table>{table}</div>"
        case Figure():
            file = drawings[block.name]
            source = f"data:{MEDIA[file.suffix]};base64,{b64encode(file.read_bytes()).decode('ascii')}"
            wide, high = (round(inches * PIXELS) for inches in block.plot.figure.get_size_inches())
            image = f'<img src="{source}" width={wide} height={high} alt="{escape(block.plot.caption)}">'
            return f"<figure>{image}<figcaption>{_line(block.words)}</figcaption></figure>"


def _cell(name: str, words: Words) -> str:
    """A cell that knows the name of its column, which a narrow screen puts before it."""
    return f'<td data-name="{escape(name)}">{_line(words)}</td>' if name else f"<td>{_line(words)}</td>"


def _line(words: Words) -> str:
    return "".join(map(_piece, pieces(words)))


def _piece(piece: Piece) -> str:
    match piece:
        case Code():
            return f"<code>{escape(piece.text)}</code>"
        case Strong():
            return f"<strong>{escape(piece.text)}</strong>"
        case Emphasis():
            return f"<em>{escape(piece.text)}</em>"
        case Link():
            return f'<a href="{escape(quote(piece.target))}.html">{escape(piece.text)}</a>'
        case str():
            return escape(piece)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
