"""Several methods at once: names and functions become named functions, and each scores a record."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ..errors import BadInput
from ..record import AttentionRecord, Model, TokenScores
from ..record.schema import checked, quote

Method = Callable[..., TokenScores]
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


def named_methods(methods: Sequence[str | Method]) -> dict[str, Method]:
    """The methods by name: a name of METHODS, or any function under its own `__name__`."""
    from . import METHODS

    chosen: dict[str, Method] = {}
    for method in methods:
        if isinstance(method, str) and method not in METHODS:
            raise BadInput(f"There is no method {method!r}: choose one of {', '.join(METHODS)}, or pass a function.")
        name = method if isinstance(method, str) else getattr(method, "__name__", type(method).__name__)
        if name in chosen:
            raise BadInput(f"Two methods are called {name!r}: give each function a name of its own.")
        chosen[name] = METHODS[method] if isinstance(method, str) else method
    return chosen


def every_method() -> dict[str, Method]:
    """METHODS, with a method that has two names under its first."""
    from . import METHODS

    first_names: dict[Method, str] = {}
    for name, method in METHODS.items():
        first_names.setdefault(method, name)
    return {name: method for method, name in first_names.items()}


def runs_model(method: Method) -> bool:
    """Whether a method runs the model again: it says so by a parameter called model."""
    return "model" in inspect.signature(method).parameters


def has_sign(scores: TokenScores) -> bool:
    """Whether scores below zero speak against the answer: so they do where a method can be asked for its signs."""
    method = every_method().get(scores.method)
    return method is not None and "signed" in inspect.signature(method).parameters


def score(
    record: AttentionRecord,
    name: str,
    method: Method,
    model: Model | None,
    by: str = "token",
    options: Mapping[str, Any] = NO_OPTIONS,
) -> TokenScores:
    """What a method says of the tokens of a record, or of its words or sentences, under the name it was chosen by.

    Of the options a method is given those that it knows.
    """
    if model is None and runs_model(method):
        raise BadInput(f"The method {name} runs the model again: pass the model too.")
    known = inspect.signature(method).parameters
    asked = {option: value for option, value in options.items() if option in known}
    if by != "token" and "by" in known:
        return replace(_finite(attribute(record, method, model, by=by, **asked), name), method=name)
    scores = _finite(attribute(record, method, model, **asked), name)
    if len(scores.scores) != len(record.key_tokens):
        raise BadInput(
            f"The method {name} scores {len(scores.scores)} tokens, but the record has {len(record.key_tokens)}."
        )
    return replace(scores if by == "token" else scores.sum_by(by), method=name)


def _finite(scores: TokenScores, name: str) -> TokenScores:
    if not bool(scores.scores.isfinite().all()):
        raise BadInput(f"The method {name} gives scores that are not finite numbers on this text.")
    return scores


def score_what_can_be(
    record: AttentionRecord,
    methods: Mapping[str, Method],
    model: Model | None,
    by: str = "token",
    options: Mapping[str, Any] = NO_OPTIONS,
) -> tuple[dict[str, TokenScores], dict[str, str]]:
    """The scores of the methods that have all they need here; of the others, the sentence that says what is lacking."""
    scores: dict[str, TokenScores] = {}
    left_out: dict[str, str] = {}
    for name, method in methods.items():
        try:
            scores[name] = score(record, name, method, model, by, options)
        except BadInput as lacking:
            left_out[name] = str(lacking)
    return scores, left_out


# A method by its name, or any function of your own.


@checked
def attribute(
    record: AttentionRecord, method: str | Callable[..., TokenScores], model: Model | None = None, **options: Any
) -> TokenScores:
    """Score the tokens of a record by a method: a name in METHODS, or any callable that takes a record.

    `model` is handed to methods that run the model again.
    """
    from . import METHODS

    if isinstance(method, str):
        if method not in METHODS:
            raise BadInput(f"There is no method {method!r}: choose one of {', '.join(METHODS)}, or pass a function.")
        method = METHODS[method]
    try:
        parameters = inspect.signature(method).parameters
    except ValueError:
        raise BadInput(f"{quote(method)} is no method: give a function that takes a record.") from None
    if "model" in parameters:
        options["model"] = model
    scores = method(record, **options)
    if not isinstance(scores, TokenScores):
        raise BadInput(f"A method gives TokenScores for a record, but this one gave {quote(scores)}.")
    return scores
