"""What a record shall hold, checked before anything runs, and what it will take: bytes and forward passes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Integral
from pathlib import Path
from types import NoneType
from typing import Literal, cast, get_args

from ..errors import BadInput
from ..numerals import in_words
from ..record.attention import Stack
from ..record.schema import quote
from ..record.target import SUM, Quantity
from .encoding import by_length, windows
from .verifying import Verify

HeadsKept = Literal["all", "mean"]
"""Every head by itself, or their mean alone."""
Keep = Literal["weights", "vectors", "bfloat16 vectors"]
"""What of attention a record holds: its weights, or the queries and keys they follow from, whole or as bfloat16."""
FLOAT32_BYTES = 4
COPIES_OF_RECORD = 0.5
"""Beside a layer's weights and the record's: the slack of the allocator, measured on MiniLM and SmolLM2 at 256 to 1,157
tokens."""
COPIES_OF_LAYER = 3
"""What one layer holds while it computes: scores, masked scores, their softmax."""
COPIES_OF_BIAS = 4
ANSWERS = 2
"""The run's own, and those of the unobserved run of the self-check."""
WIDTHS_KEPT_FOR_GRADIENTS = 24
"""How many numbers a layer keeps of each token for the backward pass, in units of the model's width."""
WIDTHS_AT_WORK = 16
"""How many numbers a layer works with for each token, in units of the model's width."""
COPIES_OF_VECTORS = 1.3
"""Beside the vectors of a record: what is copied of them at a time while they become one tensor."""
MEMORY = Path("/proc/meminfo")


@dataclass(frozen=True)
class Request:
    """What a record shall hold."""

    stack: Stack
    gradients: bool
    target: int | str | None
    against: int | str | None
    quantity: Quantity
    heads: HeadsKept
    queries_and_keys: bool
    values: bool
    verify: Verify
    keep: Keep = "weights"


def checked_request(
    stacks: Sequence[Stack],
    *,
    stack: str | None = None,
    gradients: bool = False,
    target: int | str | None = None,
    against: int | str | None = None,
    quantity: str = "logit",
    heads: str = "all",
    queries_and_keys: bool = False,
    values: bool = False,
    verify: str = "once",
    keep: str = "weights",
) -> Request:
    """What the user asks of a model with these stacks, or one sentence about what it cannot give."""
    if stack is not None and stack not in stacks:
        raise BadInput(f"This model has no {stack} stack: choose from {', '.join(sorted(stacks))}.")
    if heads not in get_args(HeadsKept):
        raise BadInput(f'heads is "all" or "mean" at capture, not {heads!r}; record.select(heads=...) chooses heads.')
    if heads == "mean" and (queries_and_keys or values):
        raise BadInput('Queries, keys and values belong to single heads: take them with heads="all".')
    if keep not in get_args(Keep):
        raise BadInput(f'keep is "weights", "vectors" or "bfloat16 vectors", not {quote(keep)}.')
    if keep != "weights" and (queries_and_keys or heads != "all"):
        raise BadInput(f'keep="{keep}" keeps queries and keys of all heads: leave queries_and_keys= and heads= out.')
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
    _check_outcomes(gradients, quantity, target=target, against=against)
    return Request(
        stack=cast(Stack, stack or stacks[0]),
        gradients=gradients,
        target=target,
        against=against,
        quantity=cast(Quantity, quantity),
        heads=cast(HeadsKept, heads),
        queries_and_keys=queries_and_keys,
        values=values,
        verify=_checked_verify(verify),
        keep=cast(Keep, keep),
    )


def _check_outcomes(gradients: bool, quantity: str, **outcomes: object) -> None:
    for name, outcome in outcomes.items():
        if isinstance(outcome, bool) or not isinstance(outcome, (int, str, NoneType)):
            raise BadInput(f"{name} is a number, a name, or None, not {type(outcome).__name__}.")
        if outcome is not None and not gradients:
            raise BadInput(f"{name} says what gradients are taken of: pass gradients=True with it.")
    if outcomes["against"] is not None and (outcomes["target"] == SUM or quantity == "difference"):
        raise BadInput("against= is for one outcome and its logit or probability: not for a sum or a difference.")


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


# ---- the price beforehand


@dataclass(frozen=True)
class Size:
    """What of a model decides how much a record of it takes."""

    layers: int
    heads: int
    width: int
    head_width: int
    groups: int
    """How many heads of keys and values there are, which query heads may share."""
    outcomes: int
    """How many numbers it gives for each token: its vocabulary, or none."""
    takes_padding: bool
    """Whether texts of different lengths run together."""
    generates: bool
    """Whether it first writes its own output for each text."""

    def weight_bytes(self, length: int, heads: HeadsKept) -> int:
        """The attention weights in the record of a text of so many tokens."""
        return self.layers * (self.heads if heads == "all" else 1) * length**2 * FLOAT32_BYTES

    def vector_bytes(self, length: int, request: "Request") -> int:
        """The queries, keys and values in the record of vectors of a text of so many tokens."""
        heads = self.heads + self.groups * (2 if request.values else 1)
        number = FLOAT32_BYTES // 2 if request.keep == "bfloat16 vectors" else FLOAT32_BYTES
        return self.layers * length * (heads * self.head_width * number + self.heads * FLOAT32_BYTES)


@dataclass(frozen=True)
class Estimate:
    """What recording would take; `str()` says it in words."""

    texts: int
    longest: int
    forward_passes: int
    record_bytes: int
    """The weights of all records together, as float32."""
    peak_bytes: int
    """What is alive at once beside the model: attention, outputs, the records that wait for their turn, and copies."""
    head_mean_bytes: int
    """The weights of all records together with heads="mean"."""
    generates: bool
    """Whether the model first writes its own output for each text, which takes further passes."""

    def __str__(self) -> str:
        passes = "1 forward pass" if self.forward_passes == 1 else f"{self.forward_passes} forward passes"
        writing = " after writing the output of each text" if self.generates else ""
        words = in_words
        return (
            f"{self.texts} text(s) of up to {self.longest} tokens: {passes}{writing}, {words(self.record_bytes)} of"
            f" attention weights ({words(self.peak_bytes)} at peak; {words(self.head_mean_bytes)} with heads='mean')"
        )


def estimate_of(lengths: Sequence[int], batch_size: int, size: Size, request: Request) -> Estimate:
    """From the tokens of each text and the size of the stack; a decoder's output is as long as its source here."""
    if request.keep != "weights":
        return _estimate_of_vectors(lengths, size, request)
    kept_heads = size.heads if request.heads == "all" else 1
    per_pair = size.layers * kept_heads * FLOAT32_BYTES
    passes, peak = 0, 0.0
    for window in windows(lengths, batch_size, lambda length: size.weight_bytes(length, request.heads)):
        batches = by_length(window, batch_size if size.takes_padding else 1)
        passes += len(batches)
        records = sum(_record_bytes(length, per_pair, size, request) for length in window)
        running = max(_batch_bytes([window[place] for place in batch], per_pair, size, request) for batch in batches)
        peak = max(peak, records + running)
    weights = sum(size.weight_bytes(length, request.heads) for length in lengths)
    return Estimate(
        texts=len(lengths),
        longest=max(lengths),
        forward_passes=passes,
        record_bytes=weights,
        peak_bytes=int(peak),
        head_mean_bytes=weights // kept_heads,
        generates=size.generates,
    )


def _estimate_of_vectors(lengths: Sequence[int], size: Size, request: Request) -> Estimate:
    """The same for records of vectors, text by text: what is kept, and what a layer works with."""
    kept = [size.vector_bytes(length, request) for length in lengths]
    running = max(lengths) * size.width * FLOAT32_BYTES * WIDTHS_AT_WORK + ANSWERS * size.outcomes * FLOAT32_BYTES
    return Estimate(
        texts=len(lengths),
        longest=max(lengths),
        forward_passes=len(lengths),
        record_bytes=sum(kept),
        peak_bytes=int(max(kept) * COPIES_OF_VECTORS + running),
        head_mean_bytes=sum(size.weight_bytes(length, "mean") for length in lengths),
        generates=size.generates,
    )


def _record_bytes(length: int, per_pair: int, size: Size, request: Request) -> int:
    """What the record of a text holds."""
    weights = per_pair * length**2 * (2 if request.gradients and request.heads == "all" else 1)
    return weights + length * _vector_bytes(size, request)


def _vector_bytes(size: Size, request: Request) -> int:
    """The queries, keys and values of one token."""
    of_heads = size.layers * size.width * FLOAT32_BYTES
    return of_heads * (2 * request.queries_and_keys + size.heads * request.values)


def _batch_bytes(lengths: Sequence[int], per_pair: int, size: Size, request: Request) -> float:
    """What is alive while a batch runs and its records are made, beside those records."""
    tokens = len(lengths) * max(lengths)
    pairs = len(lengths) * max(lengths) ** 2
    held = per_pair * (pairs + COPIES_OF_RECORD * max(lengths) ** 2) + tokens * _vector_bytes(size, request)
    held += COPIES_OF_LAYER * size.heads * FLOAT32_BYTES * pairs
    held += ANSWERS * size.outcomes * FLOAT32_BYTES * tokens
    if request.queries_and_keys:
        held += COPIES_OF_BIAS * size.layers * FLOAT32_BYTES * pairs
    if request.gradients:
        held += per_pair * pairs * (request.heads == "all")
        held += WIDTHS_KEPT_FOR_GRADIENTS * size.width * size.layers * FLOAT32_BYTES * tokens
    return held


def available_bytes() -> int | None:
    """How much memory there is for more, or None where the system does not say."""
    try:
        lines = MEMORY.read_text().splitlines()
    except OSError:
        return None
    found = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return None if found is None else int(found) * 1024


def is_too_large(estimate: Estimate) -> bool:
    """Whether it does not fit into memory: the system would kill the process in the midst of it."""
    available = available_bytes()
    return available is not None and estimate.peak_bytes > available


def too_large(estimate: Estimate) -> str:
    """The sentence for what does not fit."""
    return (
        f"Recording {estimate.longest} tokens takes about {in_words(estimate.peak_bytes)} of memory, and"
        f' {in_words(available_bytes() or 0)} are free: pass keep="vectors" or heads="mean", record the text in parts'
        " with window=, or run fewer texts at a time."
    )


def vectors_instead(request: Request) -> Request | None:
    """The same record with vectors in place of weights, where nothing is asked for that needs weights."""
    if request.queries_and_keys or request.heads != "all" or request.keep != "weights":
        return None
    return replace(request, keep="vectors")
