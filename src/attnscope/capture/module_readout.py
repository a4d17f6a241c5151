"""Where a torch module reads its answer: as the user says it, or as a submodule of it decides anew for each text."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import BadInput
from .module_attention import ROW_TOLERANCE, tensors_in
from .readout import distribution

Readout = Callable[[tuple[str, ...]], Any]
"""Given the tokens that attend, a position or a distribution over them."""


def said_readout(readout: Readout | None, tokens: tuple[str, ...], causal: bool) -> Float[Tensor, " query"]:
    """Where the module reads its answer; by default at the last token if it is causal, else everywhere alike."""
    if readout is None:
        return distribution(len(tokens) - 1 if causal else None, len(tokens))
    said = readout(tokens)
    if isinstance(said, int):
        if not -len(tokens) <= said < len(tokens):
            raise BadInput(f"The read-out is at position {said}, but there are {len(tokens)} tokens that attend.")
        return distribution(said % len(tokens), len(tokens))
    return torch.as_tensor(said, dtype=torch.float32)


@contextmanager
def read_by(part: nn.Module | None) -> Iterator[list[Any]]:
    """Within this, each call of the submodule that pools the tokens appends what it returns."""
    returned: list[Any] = []
    if part is None:
        yield returned
        return

    def keep(_module: nn.Module, _given: Any, output: Any) -> None:
        returned.append(output)

    handle = part.register_forward_hook(keep)
    try:
        yield returned
    finally:
        handle.remove()


def learned_readout(part: nn.Module, returned: list[Any], texts: int, tokens: int) -> Float[Tensor, "text token"]:
    """The one distribution over the tokens of each text, padding included, that the submodule has returned."""
    name = type(part).__name__
    if len(returned) != 1:
        raise BadInput(
            f"The submodule named as readout= ({name}) ran {len(returned)} times in one pass: name one that runs once."
        )
    rows = [tensor.detach().float() for tensor in tensors_in(returned[0]) if _shape(tensor) == (texts, tokens)]
    found = [row.reshape(texts, tokens) for row in rows]
    spread = [row for row in found if (row >= 0).all() and ((row.sum(-1) - 1).abs() <= ROW_TOLERANCE).all()]
    if len(spread) != 1:
        many = "no" if not spread else f"{len(spread)}"
        raise BadInput(
            f"The submodule named as readout= ({name}) returns {many} tensors with one share for each token that sum to"
            f" one, [{texts} texts, {tokens} tokens]: name the one that pools the tokens."
        )
    return spread[0]


def _shape(tensor: Tensor) -> tuple[int, ...] | None:
    """[text, token], also where an axis of length one stands for a single query or score."""
    if not tensor.is_floating_point() or tensor.ndim not in (2, 3):
        return None
    if tensor.ndim == 2:
        return tuple(tensor.shape)
    texts, *others = tensor.shape
    return (texts, max(others)) if 1 in others else None
