"""A report before it is Markdown or a page: headings, paragraphs, tables and figures, in their order."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..views.printing import Plot


@dataclass(frozen=True)
class Strong:
    """Text that stands out most."""

    text: str


@dataclass(frozen=True)
class Emphasis:
    """Text that stands out."""

    text: str


@dataclass(frozen=True)
class Code:
    """Text that is a name in the program, such as the id of a claim or a file."""

    text: str


@dataclass(frozen=True)
class Link:
    """Text that leads to another report: `target` is its path from here without a suffix, pages lead to pages."""

    text: str
    target: str


Piece = str | Strong | Emphasis | Code | Link
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
