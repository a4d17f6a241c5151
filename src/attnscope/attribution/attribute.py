"""A method by its name, or any function of your own."""

import inspect
from collections.abc import Callable
from typing import Any

from ..errors import BadInput
from ..record import AttentionRecord, Model, TokenScores


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
    if "model" in inspect.signature(method).parameters:
        options["model"] = model
    return method(record, **options)
