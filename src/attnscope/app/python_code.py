"""The Python that makes what is on the screen."""

from collections.abc import Mapping
from typing import Any

from ..views import View
from .entry import Entry


def python_of(entry: Entry, view: View, state: Mapping[str, Any]) -> str:
    """A few lines that end in a view with the same things selected."""
    chosen = {name: value for name, value in state.items() if name in view.state and value != view.state[name]}
    selecting = "".join(f", {name}={value!r}" for name, value in chosen.items()).lstrip(", ")
    last = f"view = {_made(entry, view)}" + (f".selecting({selecting})" if selecting else "")
    return "\n".join(["import attnscope", "", *_before(entry, view), last, f'view.save("{view.name}.html")', ""])


def _before(entry: Entry, view: View) -> list[str]:
    if entry.survey is not None:
        return ['survey = attnscope.Survey.load("FOLDER")  # the folder that was opened']
    if entry.model_name is None:
        return ['record = attnscope.AttentionRecord.load("FILE.safetensors")  # the file that was opened']
    lines = [f"model = attnscope.load({entry.model_name!r})"]
    if view.name == "neuron":
        return [*lines, f"record = model.record({entry.text!r}, queries_and_keys=True)"]
    if view.name != "scores":
        return [*lines, f"record = model.record({entry.text!r})"]
    target = ', target="sum"' if entry.model is not None and entry.model.task == "encoder" else ""
    rich = f", gradients=True{target}, values=True" if entry.rich is not None else ""
    methods = [method["name"] for method in view.payload["methods"]]
    return [
        *lines,
        f"record = model.record({entry.text!r}{rich})",
        f"comparison = attnscope.compare(record, model, {methods!r})",
    ]


def _made(entry: Entry, view: View) -> str:
    if view.name == "survey":
        return "survey.view()"
    if view.name == "scores":
        compared = "comparison" if entry.model_name is not None else "attnscope.compare(record)"
        return f"attnscope.views.scores({compared}, record=record)"
    if view.name == "flow" and entry.record is not None and len(view.payload["computed"]["sources"]):
        sources = view.payload["computed"]["sources"]
        if len(sources) < len(entry.record.query_tokens):
            return f"attnscope.views.flow(record, {sources!r}, queries={sources!r})"
    return f"attnscope.views.{view.name}(record)"
