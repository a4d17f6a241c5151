"""A view as a live widget of a notebook, through anywidget, which only this file imports."""

import json
import re
import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

from ..errors import BadInput
from .page import HERE, module_text, style_text
from .view import View


def widget_of(view: View) -> Any:
    """The view as an anywidget: its payload, its arrays as bytes, and a synced trait for all that can be selected.

    A trait has the name that the view has for it; where every widget has that name for something else, as `keys`, an
    underscore follows it. What is set in Python is drawn, what is chosen in the notebook is set in Python.
    """
    made = _widget_class(view.name, tuple(view.state))
    traits = {trait_of(name): value for name, value in view.state.items()}
    return made(payload=dict(view.payload), kept=view.kept, blobs=dict(view.blobs), page=uuid4().hex, **traits)


def show(view: View, *, live: bool) -> None:
    """Display a view: live, and below it the page that is seen wherever the widget is not drawn."""
    display = import_module("IPython.display").display  # by its name: only IPython calls this, so that it is there
    page = {"text/html": view._repr_html_(), "text/plain": repr(view)}
    if live:
        bundle, _ = view.widget._repr_mimebundle_()
        bundle.pop("text/html", None)
        display({**bundle, "text/plain": repr(view)}, raw=True)
        page = {"text/html": f'<div data-attnscope="{view.widget.page}">{page["text/html"]}</div>', "text/plain": ""}
    display(page, raw=True)


def refresh(widget: Any, view: View) -> None:
    """Send what has changed in a view to the notebook, in one message: arrays that are the same stay where they are."""
    with widget.hold_sync():
        widget.payload, widget.blobs = dict(view.payload), dict(view.blobs)


def selected_in(widget: Any, names: Iterable[str]) -> dict[str, Any]:
    """What a widget has selected, by the names of its view."""
    return {name: getattr(widget, trait_of(name)) for name in names}


def trait_of(name: str) -> str:
    """The trait that holds what a view calls by this name.

    >>> trait_of("layer"), trait_of("keys")
    ('layer', 'keys_')
    """
    return f"{name}_" if hasattr(_anywidget().AnyWidget, name) else name


def can_be_live() -> bool:
    """Whether anywidget is there, and a kernel that can talk to its notebook."""
    # asked of what is loaded: whoever runs in a kernel has IPython, and nobody else needs it
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None and find_spec("anywidget") is not None


@cache
def _widget_class(name: str, names: tuple[str, ...]) -> Any:
    anywidget = _anywidget()
    import traitlets

    traits = {trait_of(chosen): traitlets.Any().tag(sync=True) for chosen in names}
    body = {
        "__module__": __name__,
        "__doc__": f"The {name} view in a notebook.",
        "_esm": _module(name, names),
        "_css": style_text([name]),
        "payload": traitlets.Dict().tag(sync=True),
        "kept": traitlets.Dict().tag(sync=True),
        "blobs": traitlets.Dict().tag(sync=True),
        "page": traitlets.Unicode().tag(sync=True),
        **traits,
    }
    # a name of its own: the style of a widget is kept by the name of its class
    return type(f"{name.capitalize()}Widget", (anywidget.AnyWidget,), body)


def _module(name: str, names: tuple[str, ...]) -> str:
    """The script of a view, with what a notebook needs around it."""
    renamed = {chosen: trait_of(chosen) for chosen in names if trait_of(chosen) != chosen}
    hosting = (HERE / "notebook.js").read_text(encoding="utf-8")
    # anywidget would take an exported `render` for the widget, and pass over the one that is the default
    plain = re.sub("^export ", "", f"{module_text(name)}\n{hosting}", flags=re.MULTILINE)
    return f"{plain}\nexport default inNotebook(render, {json.dumps(renamed)});\n"


def _anywidget() -> Any:
    try:
        import anywidget
    except ImportError as error:
        raise BadInput("A live widget needs anywidget: pip install 'attnscope[widget]'.") from error
    return anywidget
