"""A report as Markdown, as the hosts of repositories show it."""

import re
from collections.abc import Mapping
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

SPECIAL = re.compile(r"([\\`*_\[\]<>|~$#&])")


def markdown_of(document: Document, drawings: Mapping[str, str]) -> str:
    """The whole report; `drawings` says where the file of each figure lies, seen from the report."""
    blocks = [_block(block, drawings) for block in document.body]
    return "\n\n".join([f"# {escaped(document.title)}", *blocks]) + "\n"


def escaped(text: str) -> str:
    r"""Text whose characters mean themselves, on one line.

    >>> escaped("a * b\n<c>")
    'a \\* b \\<c\\>'
    """
    return SPECIAL.sub(r"\\\1", " ".join(text.split("\n")))


def _block(block: Block, drawings: Mapping[str, str]) -> str:
    match block:
        case Heading():
            return f"{'#' * (block.level + 1)} {escaped(block.text)}"
        case Paragraph():
            return _line(block.words)
        case Table():
            rows = [block.names, ["---"] * len(block.names)]
            lines = [f"| {' | '.join(row)} |" for row in rows]
            return "\n".join([*lines, *(f"| {' | '.join(map(_line, row))} |" for row in block.rows)])
        case Figure():
            return f"![{escaped(block.plot.caption)}]({drawings[block.name]})\n\n{_line(block.words)}"


def _line(words: Words) -> str:
    return "".join(map(_piece, pieces(words))).strip()


def _piece(piece: Piece) -> str:
    match piece:
        case Code():
            return f"`{piece.text}`"
        # tags, because asterisks within a word or beside each other are read in other ways
        case Strong():
            return f"<strong>{escaped(piece.text)}</strong>"
        case Emphasis():
            return f"<em>{escaped(piece.text)}</em>"
        case Link():
            return f"[{escaped(piece.text)}]({quote(piece.target)}.md)"
        case str():
            return escaped(piece)
