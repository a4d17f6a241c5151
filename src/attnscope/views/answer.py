"""The answer view: an answer as text, what was read for it beside it, and which part of the one goes with the other."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from ..attribution import Answer
from ..attribution.answer_rows import METHODS_OF_ANSWERS
from ..errors import BadInput
from ..record.schema import checked
from .answer_figure import answer_figure
from .answer_parts import Reading, answer_texts, reading_of, word_places
from .answer_scene import ORDERS, AnswerMethod, AnswerScene, check_scene
from .choices import pick_one
from .sides import printable
from .view import View

FIRST = ("rollout", "raw")
"""Methods of the view where nobody says which: they need one forward pass."""
SIGNED: Mapping[str, Mapping[str, Any]] = {
    "gradient_x_input": {"signed": True},
    "integrated_gradients": {"signed": True},
}
"""With their signs these add up over the tokens of a span."""
LENGTHS = "the lengths of the tokens' gradients are added up; answer.scores(span=…) has that of a span's own gradient"
ONE_BY_ONE = (
    "each passage was taken away by itself; for a document its passages are added up, and its own fall is its drop"
)
FITTED = "sampled_ablation is fitted anew for each span, so its scores do not add up: call answer.sampled() for them"
TITLE = 60
"""Letters of a question that a page is called by."""


@checked
def answer(
    answer: Answer,
    *,
    methods: Sequence[str] = FIRST,
    by: str = "sentence",
    drops: str | None = None,
    method: str | None = None,
) -> View:
    """An answer beside what was read for it: point at a word, and the passages that carried it light up.

    The other way round, a passage lights up the words that came of it. Shares are those of a method's score: where it
    goes, which is no proof that the model used what stands there. Drops are measured: by how much the log-probability
    of the words falls when the model reads the rest without a document.

    Args:
        answer: What `attnscope.answer` returns.
        methods: What scores the passages: names of `Answer.scores`. Those of attention need no further run.
        by: What gets one score each: sentence, paragraph, document, turn, or any level of the record's segments.
        drops: "document" deletes each document in turn, and all of them, and runs the model again for each.
        method: The one of them that the view opens with; by default the first.
    """
    reading = reading_of(answer, by)
    found, left_out = _methods(answer, methods, by, reading)
    each, every = _drops(answer, drops, reading)
    texts = answer_texts(answer)
    scene = AnswerScene(
        texts=texts,
        words=word_places(texts),
        probabilities=answer.probabilities.double().numpy(),
        parts=reading.parts,
        passages=reading.passages,
        methods=found,
        notes=(*answer.notes, *left_out),
        drops=each,
        drop_of_all=every,
    )
    return view_of(scene, _title(answer, scene), method)


def view_of(scene: AnswerScene, title: str, method: str | None = None) -> View:
    """The view of a scene; it opens with the whole answer, and the strongest document first.

    That is the one with the largest drop where drops were measured, which are exact, else with the largest share.
    """
    check_scene(scene)
    names = [one.name for one in scene.methods]
    orders = [order for order in ORDERS if order != "drop" or scene.drops is not None]
    state: dict[str, Any] = {
        "method": pick_one(method, names, "method"),
        "order": "strongest" if scene.drops is None else "drop",
        "queries": [],
        "keys": [],
        "special": False,
        "root": False,
    }
    return View(
        "answer",
        scene.describe(),
        state,
        scene.blobs(),
        table=scene.to_frame,
        draw=lambda selected, width: answer_figure(scene, selected, width),
        choices={
            "method": names,
            "order": orders,
            "queries": range(len(scene.texts)),
            "keys": range(len(scene.passages)),
        },
        title=title,
    )


def _methods(answer: Answer, names: Sequence[str], by: str, reading: Reading) -> tuple[list[AnswerMethod], list[str]]:
    """What each method says of every token and passage; of those that cannot be had here, why."""
    found: list[AnswerMethod] = []
    left_out: list[str] = []
    asked = list(dict.fromkeys(names))
    for name in asked:
        try:
            found.append(_method(answer, name, by, reading))
        except BadInput as lacking:
            if len(asked) == 1 or name not in METHODS_OF_ANSWERS:
                raise
            left_out.append(f"{name} is left out: {lacking}")
    if not found:
        raise BadInput(" ".join(left_out) or f"Name at least one method: {', '.join(METHODS_OF_ANSWERS)}.")
    return found, left_out


def _method(answer: Answer, name: str, by: str, reading: Reading) -> AnswerMethod:
    if name == "sampled_ablation":
        raise BadInput(f"{FITTED}.")
    if name == "blank_out":
        ablation = answer.leave_one_out(by)
        return AnswerMethod(name, reading.spread(ablation.drops.T.double().numpy(), ablation.segments), (ONE_BY_ONE,))
    rows, said = answer.rows(name, [[token] for token in range(len(answer.tokens))], **SIGNED.get(name, {}))
    return AnswerMethod(name, reading.sums(rows.double()), (*said, *((LENGTHS,) if name == "gradient" else ())))


def _drops(
    answer: Answer, drops: str | None, reading: Reading
) -> tuple[Float64[np.ndarray, "token part"] | None, Float64[np.ndarray, " token"] | None]:
    """By how much each token's log-probability falls without each part, and without all documents."""
    if drops is None:
        return None, None
    if drops != "document":
        raise BadInput(f'The view measures drops="document", not {drops!r}: answer.drops(by={drops!r}) has others.')
    ablation = answer.leave_one_out(reading.outer)
    each = np.full((len(answer.tokens), len(reading.parts)), math.nan)
    parts = reading.removable_parts
    for part, fell in zip(parts, ablation.drops.double().numpy(), strict=True):
        # a turn in pieces around its documents was never taken away whole
        if parts.count(part) == 1:
            each[:, part] = fell
    has_documents = any(part.kind == "document" for part in reading.parts)
    every = answer.origin("raw")["without_documents"].to_numpy(dtype=np.float64) if has_documents else None
    return each, every


def _title(answer: Answer, scene: AnswerScene) -> str:
    """The view, the beginning of the question, and the model."""
    asked = [passage.text for passage in scene.passages if scene.parts[passage.part].kind == "question"]
    text = " ".join("".join(asked or scene.texts).split()).removeprefix("Question: ")
    cut = text if len(text) <= TITLE else f"{text[: TITLE - 1].rstrip()}…"
    model = answer.record.card.get("model")
    return f"Answer view: “{printable(cut)}”" + (f" · {printable(str(model))}" if model else "")
