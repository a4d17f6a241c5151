"""What a record shall hold, checked before anything runs, and what it will take: bytes and forward passes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Integral
from pathlib import Path
from types import NoneType
from typing import Literal, cast, get_args

from ..errors import BadInput
from ..numerals import counted, in_words
from ..record.attention import Stack
from ..record.schema import quote
from ..record.target import SUM, Quantity
from .encoding import by_length, windows
from .memory import (
    FLOAT32_BYTES,
    Held,
    Rerun,
    Size,
    keeping_vectors_bytes,
    recording_bytes,
    running_bytes,
    vectors_bytes,
)
from .memory import record_bytes as bytes_of_record
from .verifying import Verify

HeadsKept = Literal["all", "mean"]
"""Every head by itself, or their mean alone."""
Keep = Literal["weights", "vectors", "bfloat16 vectors", "auto"]
"""What of attention a record holds: its weights, or the queries and keys they follow from, whole or as bfloat16."""
ALL_STACKS = "all"
"""What asks for all three stacks of an encoder-decoder in one record."""
FEWEST_STEPS = 9
"""Steps of integrated gradients on a smooth way."""
SMALL = 2**28
"""Bytes up to which a record with weights and values is nothing to worry about."""
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
    all_stacks: bool = False
    """Whether cross-attention has the attention of encoder and decoder to themselves beside it."""


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
    _check_stack(stack, stacks, keep)
    if heads not in get_args(HeadsKept):
        raise BadInput(f'heads is "all" or "mean" at capture, not {heads!r}; record.select(heads=...) chooses heads.')
    if heads == "mean" and (queries_and_keys or values):
        raise BadInput('Queries, keys and values belong to single heads: take them with heads="all".')
    if keep not in get_args(Keep):
        raise BadInput(f'keep is "weights", "vectors", "bfloat16 vectors" or "auto", not {quote(keep)}.')
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
        stack="cross" if stack == ALL_STACKS else cast(Stack, stack or stacks[0]),
        gradients=gradients,
        target=target,
        against=against,
        quantity=cast(Quantity, quantity),
        heads=cast(HeadsKept, heads),
        queries_and_keys=queries_and_keys,
        values=values,
        verify=_checked_verify(verify),
        keep=cast(Keep, keep),
        all_stacks=stack == ALL_STACKS,
    )


def _check_stack(stack: str | None, stacks: Sequence[Stack], keep: str) -> None:
    """Refuse a stack that the model does not have; all three are those of an encoder-decoder."""
    if stack is None or stack in stacks:
        return
    if stack != ALL_STACKS:
        raise BadInput(f"This model has no {stack} stack: choose from {', '.join(sorted(stacks))}.")
    if "cross" not in stacks:
        raise BadInput(
            'stack="all" is for encoder-decoders, and this model has one stack'
            f" ({', '.join(stacks)}): leave stack= out."
        )
    if keep != "weights":
        raise BadInput(f'keep="{keep}" is for one stack: with stack="all" keep weights, or their mean by heads="mean".')


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


def check_sources(
    text: object,
    inputs: object,
    conversation: Iterable[object],
    others: Mapping[str, object],
    generation: Iterable[str],
) -> None:
    """Refuse what is not one of a text, a processor's inputs and a conversation, and options of one for another."""
    converses = any(given is not None for given in conversation)
    if (text is not None) + (inputs is not None) + converses != 1:
        raise BadInput("record takes a text, or inputs= that a processor made, or a conversation: one of them.")
    beside = [f"{name}=" for name, value in others.items() if value is not None]
    if text is None and beside:
        raise BadInput(
            f"{', '.join(beside)}: they are for texts, not for {'conversations' if converses else 'inputs='}."
        )
    if not converses and (unknown := next(iter(generation), None)) is not None:
        raise BadInput(f"record takes no {unknown} beside a text or inputs=: record_generation generates.")


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
class Estimate:
    """What recording, or a method that runs the model again, would take; `str()` says it in words."""

    texts: int
    longest: int
    forward_passes: int
    record_bytes: int
    """The weights of all records together, as float32; vectors, where they are kept instead."""
    peak_bytes: int
    """What is alive at once beside the model: attention, outputs, the records that wait for their turn, and copies."""
    head_mean_bytes: int
    """The weights of all records together with heads="mean"."""
    generates: bool
    """Whether the model first writes its own output for each text, which takes further passes."""
    method: Rerun | None = None
    """The method that runs the model again, where the estimate is of one."""
    is_bound: bool = False
    """Whether `peak_bytes` is no more than a bound: it may take less."""

    def __str__(self) -> str:
        passes = "1 forward pass" if self.forward_passes == 1 else f"{self.forward_passes:,} forward passes"
        most = "at most " if self.is_bound else ""
        peak = f"{most}{in_words(self.peak_bytes)} at peak, over the loaded model"
        texts = f"{counted(self.texts, 'text')} of up to {self.longest:,} tokens"
        if self.method is not None:
            return f"{texts}: {passes}, {peak} and beside the record"
        writing = " after writing the output of each text" if self.generates else ""
        return (
            f"{texts}: {passes}{writing}, {in_words(self.record_bytes)} of attention weights ({peak};"
            f" {in_words(self.head_mean_bytes)} of them with heads='mean')"
        )


def estimate_of(lengths: Sequence[int], batch_size: int, size: Size, request: Request) -> Estimate:
    """From the tokens of each text and the size of the stack; a decoder's output is as long as its source here."""
    if request.keep != "weights":
        return _estimate_of_vectors(lengths, size, request)
    kept_heads = size.heads if request.heads == "all" else 1
    held = Held(kept_heads, request.gradients, request.queries_and_keys, request.values)
    passes = peak = 0
    for window in windows(lengths, batch_size, lambda length: size.weight_bytes(length, request.heads)):
        waiting = 0
        for batch in by_length(window, batch_size if size.takes_padding else 1):
            passes += 1
            together = [window[place] for place in batch]
            peak = max(peak, waiting + recording_bytes(size, held, len(together), max(together)))
            waiting += sum(bytes_of_record(size, held, length) for length in together)
    weights = sum(size.weight_bytes(length, request.heads) for length in lengths)
    return Estimate(
        texts=len(lengths),
        longest=max(lengths),
        forward_passes=passes,
        record_bytes=weights,
        peak_bytes=peak,
        head_mean_bytes=weights // kept_heads,
        generates=size.generates,
        is_bound=size.is_bound,
    )


def _estimate_of_vectors(lengths: Sequence[int], size: Size, request: Request) -> Estimate:
    """The same for records of vectors, text by text."""
    number_bytes = FLOAT32_BYTES // 2 if request.keep == "bfloat16 vectors" else FLOAT32_BYTES
    return Estimate(
        texts=len(lengths),
        longest=max(lengths),
        forward_passes=len(lengths),
        record_bytes=sum(vectors_bytes(size, length, request.values, number_bytes) for length in lengths),
        peak_bytes=keeping_vectors_bytes(size, max(lengths), request.values, number_bytes),
        head_mean_bytes=sum(size.weight_bytes(length, "mean") for length in lengths),
        generates=size.generates,
        is_bound=size.is_bound,
    )


def estimate_of_method(lengths: Sequence[int], batch_size: int, size: Size, method: str) -> Estimate:
    """Of running the model again on each text by itself, in batches of so many runs.

    Integrated gradients takes as few steps together as it needs, so that a whole batch is a bound.
    """
    if method not in get_args(Rerun):
        raise BadInput(
            f"Estimates are of recording, or of a method that runs the model again ({', '.join(get_args(Rerun))}), not"
            f" of {quote(method)}: it takes what the record takes."
        )
    again = cast(Rerun, method)
    by_gradients = again == "integrated_gradients"
    together = [batch_size if by_gradients else min(batch_size, length + 1) for length in lengths]
    peaks = [running_bytes(size, again, texts, length) for texts, length in zip(together, lengths, strict=True)]
    return Estimate(
        texts=len(lengths),
        longest=max(lengths),
        forward_passes=len(lengths) * FEWEST_STEPS if by_gradients else sum(length + 1 for length in lengths),
        record_bytes=0,
        peak_bytes=max(peaks),
        head_mean_bytes=0,
        generates=False,
        method=again,
        is_bound=size.is_bound or by_gradients,
    )


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


def settled(request: Request, lengths: Sequence[int], size: Size | None, shows_vectors: bool) -> Request:
    """The request with `keep="auto"` settled: weights where they are few, else vectors if the model shows any."""
    if request.keep != "auto":
        return request
    weights = replace(request, keep="weights")
    if not shows_vectors or size is None:
        return replace(weights, values=False)
    small = estimate_of(lengths, 1, size, weights).record_bytes <= SMALL
    return weights if small else replace(request, keep="vectors")


def vectors_instead(request: Request) -> Request | None:
    """The same record with vectors in place of weights, where nothing is asked for that needs weights."""
    if request.queries_and_keys or request.heads != "all" or request.keep != "weights" or request.all_stacks:
        return None
    return replace(request, keep="vectors")
