"""A report: headings, paragraphs, tables and figures in their order, then as Markdown and as one offline page."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from ..views.printing import Plot


@dataclass(frozen=True)
class Marked:
    """Text that stands out, by a tag of HTML."""

    text: str
    tag: ClassVar[str]


class Strong(Marked):
    """Text that stands out most."""

    tag = "strong"


class Emphasis(Marked):
    """Text that stands out."""

    tag = "em"


class Code(Marked):
    """Text that is a name in the program, such as the id of a claim or a file."""

    tag = "code"


@dataclass(frozen=True)
class Link:
    """Text that leads to another report: `target` is its path from here without a suffix, pages lead to pages."""

    text: str
    target: str


Piece = str | Marked | Link
Words = str | Sequence[Piece]
"""A line of text, in pieces where some of them stand out."""


@dataclass(frozen=True)
class Heading:
    """What the following is about; `level` 1 stands under the title."""

    text: str
    level: int = 1


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    words: Words


@dataclass(frozen=True)
class Table:
    """Rows of cells under names."""

    names: Sequence[str]
    rows: Sequence[Sequence[Words]]


@dataclass(frozen=True)
class Figure:
    """A drawing with the name of its files, and what is said below it."""

    name: str
    plot: Plot
    words: Words


Block = Heading | Paragraph | Table | Figure


def under(heading: str, *blocks: Block) -> list[Block]:
    """Blocks under a heading of the second level."""
    return [Heading(heading, 2), *blocks]


@dataclass(frozen=True)
class Document:
    """A title and what stands below it."""

    title: str
    blocks: Sequence[Block]
    caution: str = ""
    """What a reader must know before anything else."""

    @property
    def body(self) -> Sequence[Block]:
        """All that stands below the title."""
        return [Paragraph([Strong(self.caution)]), *self.blocks] if self.caution else self.blocks

    @property
    def figures(self) -> dict[str, Plot]:
        """The drawings by the names of their files."""
        return {block.name: block.plot for block in self.blocks if isinstance(block, Figure)}


def pieces(words: Words) -> Sequence[Piece]:
    """The pieces of a line."""
    return [words] if isinstance(words, str) else words


# As Markdown, as the hosts of repositories and the docs show it.


SPECIAL = re.compile(r"([\\`*_\[\]|#])")
ENTITIES = str.maketrans({sign: f"&#{ord(sign)};" for sign in "~$"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"})
"""Signs before which some readers, the one that builds the docs among them, show a backslash."""


def markdown_of(document: Document, drawings: Mapping[str, str]) -> str:
    """The whole report; `drawings` says where the file of each figure is, seen from the report."""
    blocks = [_markdown_block(block, drawings) for block in document.body]
    return "\n\n".join([f"# {escape_markdown(document.title)}", *blocks]) + "\n"


def escape_markdown(text: str) -> str:
    r"""Text whose characters mean themselves, on one line.

    >>> escape_markdown("a * b\n<c>")
    'a \\* b &lt;c&gt;'
    """
    return SPECIAL.sub(r"\\\1", " ".join(text.split("\n"))).translate(ENTITIES)


def _markdown_block(block: Block, drawings: Mapping[str, str]) -> str:
    match block:
        case Heading():
            return f"{'#' * (block.level + 1)} {escape_markdown(block.text)}"
        case Paragraph():
            return _markdown_line(block.words)
        case Table():
            rows = [block.names, ["---"] * len(block.names), *(map(_markdown_line, row) for row in block.rows)]
            return "\n".join(f"| {' | '.join(row)} |" for row in rows)
        case Figure():
            caption = escape_markdown(block.plot.caption)
            return f"![{caption}]({drawings[block.name]})\n\n{_markdown_line(block.words)}"


def _markdown_line(words: Words) -> str:
    return "".join(map(_markdown_piece, pieces(words))).strip()


def _markdown_piece(piece: Piece) -> str:
    match piece:
        case Code():
            return f"`{piece.text}`"
        case Marked():  # tags, because asterisks within a word or beside each other are read in other ways
            return f"<{piece.tag}>{escape_markdown(piece.text)}</{piece.tag}>"
        case Link():
            return f"[{escape_markdown(piece.text)}]({quote(piece.target)}.md)"
        case str():
            return escape_markdown(piece)


# As one offline page, with its figures inside.


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
@media (prefers-color-scheme: dark) { img { border-color: #ffffff; filter: invert(0.93) hue-rotate(180deg); } }
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
    style_hash = b64encode(sha256(STYLE.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{style_hash}'; img-src data:; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width">'
        f'<meta http-equiv=Content-Security-Policy content="{policy}"><meta name=color-scheme content="light dark">'
        f"<title>{escape(document.title)}</title><style>{STYLE}</style></head><body>\n<h1>{escape(document.title)}</h1>\n"
        + "\n".join(_page_block(block, drawings) for block in document.body)
        + "\n</body></html>\n"
    )


def _page_block(block: Block, drawings: Mapping[str, Path]) -> str:
    match block:
        case Heading():
            return f"<h{block.level + 1}>{escape(block.text)}</h{block.level + 1}>"
        case Paragraph():
            return f"<p>{_page_line(block.words)}</p>"
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
            return f"<figure>{image}<figcaption>{_page_line(block.words)}</figcaption></figure>"


def _cell(name: str, words: Words) -> str:
    """A cell that knows the name of its column, which a narrow screen puts before it."""
    return f'<td data-name="{escape(name)}">{_page_line(words)}</td>' if name else f"<td>{_page_line(words)}</td>"


def _page_line(words: Words) -> str:
    return "".join(map(_page_piece, pieces(words)))


def _page_piece(piece: Piece) -> str:
    match piece:
        case Marked():
            return f"<{piece.tag}>{escape(piece.text)}</{piece.tag}>"
        case Link():
            return f'<a href="{escape(quote(piece.target))}.html">{escape(piece.text)}</a>'
        case str():
            return escape(piece)
