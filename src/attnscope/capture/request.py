"""What a record shall hold, checked before anything runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from inspect import signature
from numbers import Integral
from types import NoneType
from typing import Literal, cast, get_args

from ..errors import BadInput
from ..record.attention import Stack
from ..record.target import SUM, Quantity
from .verifying import Verify


@dataclass(frozen=True)
class Request:
    """What a record shall hold."""

    stack: Stack
    gradients: bool
    target: int | str | None
    quantity: Quantity
    heads: Literal["all", "mean"]
    queries_and_keys: bool
    values: bool
    verify: Verify


def checked_request(
    stacks: Sequence[Stack],
    *,
    stack: str | None = None,
    gradients: bool = False,
    target: int | str | None = None,
    quantity: str = "logit",
    heads: str = "all",
    queries_and_keys: bool = False,
    values: bool = False,
    verify: str = "once",
) -> Request:
    """What the user asks of a model with these stacks, or one sentence about what it cannot give."""
    if stack is not None and stack not in stacks:
        raise BadInput(f"This model has no {stack} stack: choose from {', '.join(sorted(stacks))}.")
    if heads not in ("all", "mean"):
        raise BadInput(f'heads is "all" or "mean" at capture, not {heads!r}; record.select(heads=...) chooses heads.')
    if heads == "mean" and (queries_and_keys or values):
        raise BadInput('Queries, keys and values belong to single heads: take them with heads="all".')
    if quantity not in get_args(Quantity):
        raise BadInput(f"A gradient is of a logit, probability or difference, not of {quantity!r}.")
    if target == SUM and quantity == "difference":
        raise BadInput(
            'The sum of all outcomes has no difference to another: ask for quantity="logit" or "probability".'
        )
    switches = {"gradients": gradients, "queries_and_keys": queries_and_keys, "values": values}
    for name, switch in switches.items():
        if not isinstance(switch, bool):
            raise BadInput(f"{name} is True or False, not {switch!r}.")
    if isinstance(target, bool) or not isinstance(target, (int, str, NoneType)):
        raise BadInput(f"A target is a number, a name, or None for the prediction, not {type(target).__name__}.")
    if target is not None and not gradients:
        raise BadInput("A target is what gradients are taken of: pass gradients=True with it.")
    return Request(
        stack=cast(Stack, stack or stacks[0]),
        gradients=gradients,
        target=target,
        quantity=cast(Quantity, quantity),
        heads=cast(Literal["all", "mean"], heads),
        queries_and_keys=queries_and_keys,
        values=values,
        verify=_checked_verify(verify),
    )


def _checked_verify(verify: object) -> Verify:
    if verify not in get_args(Verify):
        raise BadInput(f"verify is once, always or never, not {verify!r}.")
    return cast(Verify, verify)


def check_names(method: str, options: Iterable[str]) -> None:
    """Refuse an option that no record has."""
    known = set(signature(checked_request).parameters) - {"stacks"}
    for name in options:
        if name not in known:
            raise BadInput(f"{method} takes no {name}=: its options are {', '.join(sorted(known))}.")


def checked_count(name: str, count: object) -> int:
    """A whole number from 1."""
    if isinstance(count, bool) or not isinstance(count, Integral):
        raise BadInput(f"{name} is a whole number, not {count!r}.")
    if count < 1:
        raise BadInput(f"{name} must be at least 1, not {count}.")
    return int(count)
