"""The answer view: an answer as text, what was read for it beside it, and which part of the one goes with the other."""

from typing import Any

from .answer_figure import answer_figure
from .answer_scene import ORDERS, AnswerScene, check_scene
from .choices import pick_one
from .view import View


def view_of(scene: AnswerScene, title: str, method: str | None = None) -> View:
    """The view of a scene; it opens with the whole answer, and the document with the largest share first."""
    check_scene(scene)
    names = [one.name for one in scene.methods]
    state: dict[str, Any] = {
        "method": pick_one(method, names, "method"),
        "order": ORDERS[0],
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
            "order": ORDERS,
            "queries": range(len(scene.texts)),
            "keys": range(len(scene.passages)),
        },
        title=title,
    )
