"""A view: what to draw, which script draws it, and what is selected."""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pandas as pd

from ..errors import BadInput
from .choices import check_state, declaration_of
from .page import Part, page_html, write_page
from .printing import FIGURES, Plot, save_figure
from .weights import base64_text

PAGES = {".html", ".htm"}
LETTERS = 60
"""Of the name of a file."""
HEIGHT = 720
"""Pixels that a view takes in a notebook; more scrolls inside it."""
LARGEST = 20_000_000
"""Bytes that a view may add to a notebook's file; beyond them the notebook would be slow to open, to save and to share.
512 tokens in 144 heads within a budget of 6 MB take 8 MB of it."""


@dataclass(frozen=True, eq=False)
class View:
    """A payload and the module of the same name that draws it.

    It shows itself in a notebook, saves itself as one offline page or as a figure, and gives its numbers as a table.
    """

    name: str
    payload: Mapping[str, Any] = field(repr=False)
    state: Mapping[str, Any] = field(default_factory=dict)
    """What is selected when it opens: all that can be, each by its name."""
    blobs: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Deflated arrays that the script decodes when it needs them."""
    table: Callable[[], pd.DataFrame] | None = field(default=None, repr=False)
    draw: Callable[[Mapping[str, Any], int | float | None], Plot] | None = field(default=None, repr=False)
    """Makes the printed figure of a state, in a width in inches or the one that fits."""
    grow: Callable[[Any], None] | None = field(default=None, repr=False)
    """Takes more rows into the payload and the arrays, which change in place."""
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict, repr=False)
    """What may be selected by a name, where not everything may: layers, heads, tokens, methods."""
    title: str = ""
    """What is shown: the view, the text and the model; a saved page is called so."""

    def __post_init__(self) -> None:
        declaration_of(self.name, self.state)

    @property
    def kept(self) -> dict[str, dict[str, Any]]:
        """What the view keeps in a notebook or a link: each name of its state, and what it may hold."""
        return declaration_of(self.name, self.state)

    @property
    def part(self) -> Part:
        """The view as a page takes it."""
        return Part(self.name, {**self.state, "payload": self.payload, "kept": self.kept}, self.blobs)

    def selecting(self, **state: Any) -> "View":
        """The same view with something else selected when it opens: `view.selecting(layer=3, words=True)`."""
        return replace(self, state={**self.state, **check_state(self.name, self.state, self.choices, state)})

    @property
    def file_name(self) -> str:
        """What a file of it is called, before the suffix: the view, the text and the model, in plain letters."""
        return plain_name(self._title.replace(" view", "", 1)) or self.name

    @property
    def _title(self) -> str:
        return self.title or f"{self.name.capitalize()} view"

    @cached_property
    def widget(self) -> Any:
        """The view as a live widget of the notebook: what is selected comes back as `view.selected`."""
        from .notebook import widget_of

        return widget_of(self)

    @property
    def selected(self) -> dict[str, Any]:
        """What is selected: in the widget once there is one, else what the view opens with."""
        if "widget" not in self.__dict__:  # a cached property lies there once it has been asked for
            return dict(self.state)
        from .notebook import selected_in

        return selected_in(self.widget, self.state)

    def add(self, rows: Any) -> None:
        """Take more rows: a notebook that shows the view draws them in place, and what is selected stays."""
        if self.grow is None:
            raise BadInput(f"The {self.name} view shows what is finished: nothing can be added to it.")
        self.grow(rows)
        if "widget" in self.__dict__:
            from .notebook import refresh

            refresh(self.widget, self)

    def to_frame(self) -> pd.DataFrame:
        """The figures that the view shows, as a tidy table."""
        if self.table is None:
            raise BadInput(f"The {self.name} view has no table of its own.")
        return self.table()

    def figure(self, width: int | float | None = None) -> Plot:
        """The printed figure of what is selected, `width` inches wide."""
        if self.draw is None:
            raise BadInput(f"The {self.name} view has no printed figure: save it as .html.")
        return replace(self.draw(self.selected, width), title=self._title)

    def html(self, title: str | None = None) -> str:
        """One offline page with this view alone, of letters that travel anywhere."""
        return page_html(self, title or self._title, write=base64_text)

    def save(self, path: str | Path, title: str | None = None) -> Path:
        """Write the view as one offline .html file, or its figure as .svg, .pdf or .png; returns the path."""
        path = Path(path)
        if path.suffix.lower() in PAGES:
            return write_page(path, self, title or self._title)
        if path.suffix.lower() not in FIGURES:
            raise BadInput(
                f"A view is saved as .html, .svg, .pdf or .png, but {path.name} ends in {path.suffix or 'no suffix'}."
            )
        return save_figure(self.figure(), path)

    def _ipython_display_(self) -> None:
        """Live where a kernel can talk to its notebook, and a page of its own wherever that is later opened.

        They are two outputs: of one that held both, a site would take the widget, which it may be unable to draw. The
        widget hides the page once it is drawn.
        """
        from .notebook import can_be_live, show

        show(self, live=can_be_live())

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The page, for whoever asks without a notebook."""
        shown = {"text/plain": repr(self), "text/html": self._repr_html_()}
        unwanted = exclude if exclude is not None else ()
        wanted = [kind for kind in shown if (include is None or kind in include) and kind not in unwanted]
        return {kind: shown[kind] for kind in wanted}, {}

    def _repr_html_(self) -> str:
        size = sum(map(len, self.blobs.values())) * 4 // 3
        page = self.html() if size <= LARGEST else ""
        # sandboxed: the page has its own scripts, and nothing of the notebook is theirs to touch
        frame = f'sandbox="allow-scripts" loading="lazy" width="100%" height="{HEIGHT}" frameborder="0"'
        html = f'<iframe {frame} title="{escape(self._title)}" srcdoc="{escape(page)}"></iframe>'
        return html if page and len(html) <= LARGEST else _too_large(self.name, max(size, len(html)))


def plain_name(text: str) -> str:
    """A text as the name of a file that every system takes and a header can hold.

    >>> plain_name("Head: “the café, 50% off” · org/demo"), plain_name("日本語")
    ('head-the-cafe-50-off-org-demo', '')
    """
    letters = normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return "-".join(re.findall(r"[a-z0-9]+", letters))[:LETTERS].rstrip("-")


def _too_large(name: str, size: int) -> str:
    """What a notebook keeps of a view that would choke it."""
    return (
        f"<p>This {escape(name)} view would add {size / 1e6:.0f} MB to the notebook, so it is not kept in it. Make it "
        f'smaller with <code>size_budget=</code> (bytes), write it with <code>view.save("{escape(name)}.html")</code>,'
        " or see it live: <code>pip install 'attnscope[widget]'</code>.</p>"
    )
