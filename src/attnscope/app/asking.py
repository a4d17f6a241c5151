"""Questions about documents: the answer that a model writes or is given, and the view of what it goes with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..answering import answer as answer_question
from ..attribution import Answer
from ..attribution.answer_rows import METHODS_OF_ANSWERS
from ..attribution.choosing import every_method
from ..capture import InstrumentedModel
from ..errors import BadInput
from ..progress import written_to
from ..views import VIEWS, View
from .entry import Entry
from .turns import Work

if TYPE_CHECKING:
    from .requests import AnswerRequest

VIEWS_OF_AN_ANSWER = ("answer", "head", "model")
"""The views of an answer, in the order in which they are offered."""
DEFAULT_METHODS = ("raw", "rollout")
"""Methods that a new answer is shown by: they need one forward pass."""
AT_ONCE = {"raw", "rollout", "layerwise_tracing", "flow", "value_weighted", "effective"}
"""Methods that need no more than the answer's record."""


def writes(model: Any) -> bool:
    """Whether a model can be asked."""
    return bool(model.task == "causal_lm")


def ask_model(
    model: InstrumentedModel, model_name: str, name: str, asked: "AnswerRequest", work: Work, budget: int
) -> Entry:
    """The model's answer to a question, or the given one, explained by the same model."""
    if not writes(model):
        raise BadInput(f"{model_name} writes no text, so it cannot be asked: choose a language model.")
    _check_room(model, asked, budget)

    def heard(text: str) -> None:
        work.said = text

    work.on("reading" if asked.answer is not None else "writing")
    with written_to(heard):
        found = answer_question(model, **asked.options)
    return Entry(name, record=found.record, model_name=model_name, model=model, answer=found, asked=asked)


def _check_room(model: InstrumentedModel, asked: "AnswerRequest", budget: int) -> None:
    """Refuse what would not fit on the shelf before anything is run; roles and titles take little."""
    read = [document.text for document in asked.documents]
    read += [text for turn in asked.turns for text in (turn.question, turn.answer)]
    tokens = len(model.tokens("\n\n".join([*read, asked.question, asked.answer or ""])))
    tokens += asked.tokens * (asked.answer is None)
    size = model.estimate(tokens, keep="auto", values=True).record_bytes
    if size > budget:
        raise BadInput(
            f"These documents have about {tokens} tokens, and the attention of an answer to them would take"
            f" {size / 1e6:.0f} MB, more than the {budget / 1e6:.0f} MB that this server keeps: give less to read, or"
            " start it with a larger --memory."
        )


def describe_answer(entry: Entry) -> dict[str, Any]:
    """What a client is told of an answer."""
    found, asked = _answer_of(entry)
    card = found.record.card
    plain = card.get("form") != "chat"
    sentences = ["This model has no chat template: documents and question were read as plain text."] if plain else []
    documents = len(asked.documents)
    return {
        "id": entry.name,
        "text": found.text,
        "given": asked.answer is not None,
        "stopped": len(found.tokens) < asked.tokens,
        "goes_on": not plain,
        "tokens": len(found.tokens),
        "prompt_tokens": card["prompt_tokens"],
        "sentences": sentences,
        "views": [{"name": name, "why_not": None} for name in VIEWS_OF_AN_ANSWER],
        "default_methods": list(DEFAULT_METHODS),
        # each by itself, and all together
        "drop_runs": documents and documents + 1,
    }


def answer_view(entry: Entry, methods: Sequence[str], drops: str | None) -> View:
    """The view of an answer by these methods; `drops` is what is deleted, one after the other."""
    return VIEWS["answer"](_answer_of(entry)[0], methods=list(methods) or list(DEFAULT_METHODS), drops=drops)


def runs_again(methods: Sequence[str], drops: str | None) -> bool:
    """Whether this view of an answer runs the model."""
    return drops is not None or not AT_ONCE.issuperset(methods)


def describe_answer_methods() -> list[dict[str, str]]:
    """The methods an answer can be shown by, as a client chooses among them."""
    known = every_method()
    return [
        {
            "name": name,
            "needs": "weights" if name in AT_ONCE else "model",
            "about": (known[name].__doc__ or "").strip().split("\n")[0],
        }
        for name in METHODS_OF_ANSWERS
        if name in known  # the others are no method of a view
    ]


def _answer_of(entry: Entry) -> "tuple[Answer, AnswerRequest]":
    if entry.answer is None or entry.asked is None:
        raise BadInput("This text was not asked as a question: it has no answer to show.")
    return entry.answer, entry.asked
