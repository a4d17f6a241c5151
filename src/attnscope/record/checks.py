"""What makes weights attention: checked once, when a record is made, with an error that names layer, head and row."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..errors import BadInput
from .schema import quote

ROW_TOLERANCE = 1e-3
BFLOAT16_ROW_TOLERANCE = 1e-2
"""bfloat16 keeps eight bits: a quarter of real rows miss a sum of one by more than 1e-3, none by more than 3e-3."""
ROUNDING = 2e-6
"""What a row of float32 may miss a sum of one by, from adding up alone."""
AHEAD_TOLERANCE = 1e-6
"""What a causal map may hold above its diagonal."""


def checked_weights(
    weights: Float[Tensor, "layer head query key"], masked_queries: Sequence[bool]
) -> Float[Tensor, "layer head query key"]:
    """The weights as float32 with rows that sum to one, or an error that says which row does not.

    Rows may be all zero where the query is masked, and nowhere else.
    """
    tolerance = BFLOAT16_ROW_TOLERANCE if weights.dtype == torch.bfloat16 else ROW_TOLERANCE
    weights = weights.detach().to(device="cpu", dtype=torch.float32)
    if weights.numel() == 0:
        raise BadInput(f"The attention weights are empty: their shape is {tuple(weights.shape)}.")
    sums = weights.sum(-1)
    _refuse(~sums.isfinite(), "holds a value that is not finite", weights)
    _refuse(weights.amin(-1) < 0, "holds a negative weight", weights)
    off = (sums - 1).abs() > tolerance
    masked = torch.tensor(list(masked_queries), dtype=torch.bool)
    off &= ~((sums == 0) & masked)
    if off.any():
        layer, head, row = _first(off)
        raise BadInput(
            f"The attention row at layer {layer}, head {head}, row {row} sums to {sums[layer, head, row].item():.4f},"
            f" not to one: give weights after the softmax and without dropout (model.eval()){_if_bfloat16(off, sums)}."
        )
    # rows that sum to one but for the last bits stay as the model computed them, so that checking twice changes nothing
    divisors = sums.masked_fill((sums == 0) | ((sums - 1).abs() <= ROUNDING), 1.0)
    return weights if bool((divisors == 1).all()) else weights / divisors.unsqueeze(-1)


def _if_bfloat16(off: Bool[Tensor, "layer head query"], sums: Float[Tensor, "layer head query"]) -> str:
    """A hint where rows miss one by no more than bfloat16 explains."""
    near = bool(((sums - 1).abs()[off] <= BFLOAT16_ROW_TOLERANCE).all())
    return ", and weights computed in bfloat16 as a bfloat16 tensor" if near else ""


def check_causal(weights: Float[Tensor, "layer head query key"]) -> None:
    """Refuse a causal record whose queries look ahead."""
    # layer by layer, here and below: a copy of all weights would be the peak of a recording
    ahead = torch.stack([layer.triu(1).amax(-1) for layer in weights]) > AHEAD_TOLERANCE
    if ahead.any():
        layer, head, row = _first(ahead)
        raise BadInput(
            f"Layer {layer}, head {head}, row {row} attends to a later token, so this is not causal attention:"
            " pass causal=False, or weights that were computed with the causal mask."
        )


def looks_causal(weights: Float[Tensor, "layer head query key"]) -> bool:
    """Whether no query attends to a later token (one token alone says nothing, and counts as not causal)."""
    queries, keys = weights.shape[-2:]
    return queries == keys and keys > 1 and not any(bool((layer.triu(1) > 0).any()) for layer in weights)


def checked_readout(readout: Float[Tensor, " query"]) -> Float[Tensor, " query"]:
    """The read-out as a float32 distribution over the queries."""
    readout = readout.detach().to(device="cpu", dtype=torch.float32)
    total = readout.sum()
    if not bool(total.isfinite()) or bool((readout < 0).any()) or abs(total.item() - 1) > ROW_TOLERANCE:
        raise BadInput(f"The read-out must be a distribution over the query tokens; it sums to {total.item():.4f}.")
    return readout / total


def check_length(name: str, length: int, expected: int, axis: str) -> None:
    """Refuse a field that does not have one entry for each position of an axis."""
    if length != expected:
        raise BadInput(f"{name} has {length} entries, but the attention weights have {expected} {axis} positions.")


def check_finite(name: str, tensor: Tensor | None) -> None:
    """Refuse vectors that hold no numbers; the sum tells it at once, unless it overflows by itself."""
    if tensor is None or bool(tensor.sum(dtype=torch.float32).isfinite()) or bool(tensor.isfinite().all()):
        return
    raise BadInput(f"{name} holds a value that is not a finite number: what the model computed there cannot be used.")


def positions(chosen: Any, length: int, axis: str) -> list[int]:
    """The places that a user means by a number, several of them or a slice, counted from either end; None is all."""
    if chosen is None:
        return list(range(length))
    if isinstance(chosen, slice):
        if not all(bound is None or is_whole(bound) for bound in (chosen.start, chosen.stop, chosen.step)):
            raise BadInput(f"A slice of {axis}s has whole numbers, unlike {quote(chosen)}.")
        if chosen.step == 0:
            raise BadInput(f"A slice of {axis}s cannot have the step 0.")
        chosen = range(length)[chosen]
    listed = [chosen] if is_whole(chosen) else chosen
    if isinstance(listed, (str, bytes, Mapping)) or not isinstance(listed, Iterable):
        raise BadInput(f"{axis.capitalize()}s are whole numbers, lists of them or slices, not {quote(chosen)}.")
    return [position(place, length, axis) for place in _some(list(listed), length, axis)]


def position(place: Any, length: int, axis: str) -> int:
    """A place counted from either end, as counted from zero."""
    if not is_whole(place):
        raise BadInput(f"A {axis} is a whole number, not {quote(place)}.")
    if not -length <= place < length:
        raise BadInput(f"There is no {axis} {place}: this record has {length}, counted from 0.")
    return int(place) % length


def _some(places: list[Any], length: int, axis: str) -> list[Any]:
    if not places:
        raise BadInput(f"No {axis} was chosen: name at least one of the {length}.")
    return places


def is_whole(value: Any) -> bool:
    """Whether this is a whole number; True and False are none, though Python counts them as such."""
    whole = isinstance(value, Integral) or (isinstance(value, Tensor) and value.ndim == 0 and is_whole(value.item()))
    return whole and not isinstance(value, bool)


def _refuse(bad: Bool[Tensor, "layer head query"], what: str, weights: Float[Tensor, "layer head query key"]) -> None:
    if bad.any():
        layer, head, row = _first(bad)
        shown = ", ".join(f"{value:.3g}" for value in weights[layer, head, row, :6].tolist())
        raise BadInput(f"The attention row at layer {layer}, head {head}, row {row} {what} (it begins {shown}).")


def _first(bad: Bool[Tensor, "layer head query"]) -> tuple[int, int, int]:
    layer, head, row = bad.nonzero()[0].tolist()
    return layer, head, row
