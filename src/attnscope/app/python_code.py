"""The Python that makes what is on the screen."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..record.words import Level
from ..views import View
from .entry import Entry

if TYPE_CHECKING:
    from .requests import AnswerRequest


def python_of(entry: Entry, view: View, state: Mapping[str, Any], by: Level) -> str:
    """A few lines that end in a view with the same things selected."""
    chosen = {name: value for name, value in state.items() if name in view.state and value != view.state[name]}
    selecting = "".join(f", {name}={value!r}" for name, value in chosen.items()).lstrip(", ")
    before = _lines_of_answer(entry.asked, view) if entry.asked is not None else _lines_before(entry, view, by)
    last = f"view = {_call_of(entry, view, by)}" + (f".selecting({selecting})" if selecting else "")
    return "\n".join(["import attnscope", "", *before, last, f'view.save("{view.name}.html")', ""])


def _lines_of_answer(asked: "AnswerRequest", view: View) -> list[str]:
    given = ", ".join(f"{name}={value!r}" for name, value in asked.options.items())
    record = [] if view.name == "answer" else ["record = answer.record"]
    return [f"model = attnscope.load({asked.model!r})", f"answer = attnscope.answer(model, {given})", *record]


def _lines_before(entry: Entry, view: View, by: Level) -> list[str]:
    if entry.survey is not None:
        return ['survey = attnscope.Survey.load("FOLDER")  # the folder that was opened']
    if entry.model_name is None:
        return ['record = attnscope.AttentionRecord.load("FILE.safetensors")  # the file that was opened']
    lines = [f"model = attnscope.load({entry.model_name!r})"]
    cut = ", truncate=True" * entry.truncate
    if view.name == "neuron":
        return [*lines, f"record = model.record({entry.text!r}, queries_and_keys=True{cut})"]
    if view.name != "scores":
        return [*lines, f"record = model.record({entry.text!r}{cut})"]
    options: dict[str, Any] = {
        "methods": [method["name"] for method in view.payload["methods"]],
        **({} if entry.target is None else {"target": entry.target}),
        **({} if entry.against is None else {"against": entry.against}),
        "by": by,
    }
    asked = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return [*lines, f"explained = attnscope.explain(model, {entry.text!r}, {asked}{cut})"]


def _call_of(entry: Entry, view: View, by: Level) -> str:
    if view.name == "answer":
        drops = ', drops="document"' if view.payload["drops"] else ""
        return (
            f"attnscope.views.answer(answer, methods={[method['name'] for method in view.payload['methods']]!r}{drops})"
        )
    if view.name == "survey":
        return "survey.view()"
    if view.name == "scores":
        layout = ', layout="text"' if by == "sentence" else ""
        if entry.model_name is None:
            return "attnscope.views.scores(attnscope.compare(record), record=record)"
        return f"attnscope.views.scores(explained.comparison, record=explained.record{layout})"
    if view.name == "flow" and entry.record is not None and len(view.payload["computed"]["sources"]):
        sources = view.payload["computed"]["sources"]
        if len(sources) < len(entry.record.query_tokens):
            return f"attnscope.views.flow(record, {sources!r}, queries={sources!r})"
    return f"attnscope.views.{view.name}(record)"
