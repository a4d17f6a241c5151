"""A method by its name, or any function of your own."""

import inspect
from collections.abc import Callable
from typing import Any

from ..errors import BadInput
from ..record import AttentionRecord, Model, TokenScores
from ..record.schema import checked, shown


@checked
def attribute(
    record: AttentionRecord, method: str | Callable[..., TokenScores], model: Model | None = None, **options: Any
) -> TokenScores:
    """Score the tokens of a record by a method: a name in METHODS, or any callable that takes a record.

    `model` is handed to methods that run the model again.
    """
    from . import METHODS  # the index imports every method, so it cannot be imported while it is being made

    if isinstance(method, str):
        if method not in METHODS:
            raise BadInput(f"There is no method {method!r}: choose one of {', '.join(METHODS)}, or pass a function.")
        method = METHODS[method]
    try:
        parameters = inspect.signature(method).parameters
    except ValueError:
        raise BadInput(f"{shown(method)} is no method: give a function that takes a record.") from None
    if "model" in parameters:
        options["model"] = model
    scores = method(record, **options)
    if not isinstance(scores, TokenScores):
        raise BadInput(f"A method gives TokenScores for a record, but this one gave {shown(scores)}.")
    return scores
