"""A view: what to draw, which script draws it, and what is selected."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from ..errors import BadInput
from .page import Part, page_html, write_page

HEIGHT = 720
"""Pixels that a view takes in a notebook; more scrolls inside it."""


@dataclass(frozen=True)
class View:
    """A payload and the module of the same name that draws it; shows itself in a notebook and saves as one file."""

    name: str
    payload: Mapping[str, Any] = field(repr=False)
    state: Mapping[str, Any] = field(default_factory=dict)
    """What is selected when it opens; while it is open, the state lives in the page."""

    @property
    def part(self) -> Part:
        """The view as a page takes it."""
        return Part(self.name, {**self.state, "payload": self.payload})

    def html(self, title: str | None = None) -> str:
        """One offline page with this view alone."""
        return page_html(self, title or f"attnscope: {self.name}")

    def save(self, path: str | Path, title: str | None = None) -> Path:
        """Write the view as one offline HTML file, and return its path."""
        path = Path(path)
        if path.suffix.lower() not in {".html", ".htm"}:
            raise BadInput(f"A view is saved as .html, but {path.name} ends in {path.suffix or 'no suffix'}.")
        return write_page(path, self, title or f"attnscope: {self.name}")

    def _repr_html_(self) -> str:
        # sandboxed: the page has its own scripts, and nothing of the notebook is theirs to touch
        frame = f'sandbox="allow-scripts" width="100%" height="{HEIGHT}" frameborder="0"'
        return f'<iframe {frame} title="attnscope: {escape(self.name)}" srcdoc="{escape(self.html())}"></iframe>'
