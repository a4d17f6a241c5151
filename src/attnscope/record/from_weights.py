"""Any attention weights, any model: what users have in hand, brought to `[layer, head, query, key]`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from .checks import check_length, is_whole
from .schema import quote, reason_of

NO_WEIGHTS = (
    "These attentions hold no weights: sdpa and flash attention never build the matrix, so the model returns None or an"
    ' empty tuple; load it with attn_implementation="eager" and call it with output_attentions=True, or let'
    " attnscope.load(model, tokenizer=tokenizer).record(text) do it."
)


def stacked_layers(attentions: Any, index: int | None) -> Float[Tensor, "layer head query key"]:
    """Bring attentions of any common form to one tensor.

    Taken are: a tuple per layer of `(batch, heads, query, key)` as Hugging Face models return it, or of `(heads, query,
    key)`; an array or nested list `[layer, head, query, key]`, `[layer, batch, head, query, key]`, one layer `[head,
    query, key]` or one map `[query, key]`; and the per-step tuples of `generate()`. Arrays may be torch, NumPy or
    nested lists. `index` chooses the item of a batch.
    """
    if attentions is None:
        raise BadInput(NO_WEIGHTS)
    if hasattr(attentions, "beam_indices") or hasattr(attentions, "attentions"):
        raise BadInput("Give the attentions of this output, for example output.attentions, not the output itself.")
    if not _is_sequence_of_arrays(attentions):
        return _from_array(_tensor(attentions), index)
    if len(attentions) == 0 or any(layer is None for layer in attentions):
        raise BadInput(NO_WEIGHTS)
    if all(_is_sequence_of_arrays(step) for step in attentions):
        if index not in (None, 0):
            raise BadInput("The steps of generate() are of one sequence, so index= has no use.")
        return _from_steps([[None if layer is None else _tensor(layer) for layer in step] for step in attentions])
    layers = [_one_layer(_tensor(layer), number, index) for number, layer in enumerate(attentions)]
    shapes = {tuple(layer.shape) for layer in layers}
    if len(shapes) > 1:
        raise BadInput(f"The layers differ in shape ({', '.join(map(str, sorted(shapes)))}); give one stack at a time.")
    return torch.stack(layers)


def _is_sequence_of_arrays(value: Any, levels: int = 2) -> bool:
    """Whether this is a tuple or list of arrays (or None, or again such tuples), not of plain nested numbers."""
    if not isinstance(value, (tuple, list)) or not levels:
        return False
    return all(
        entry is None or len(getattr(entry, "shape", ())) > 0 or _is_sequence_of_arrays(entry, levels - 1)
        for entry in value
    )


def _tensor(values: Any) -> Tensor:
    try:
        tensor = values.detach() if isinstance(values, Tensor) else torch.tensor(np.array(values))
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise BadInput(f"These attention weights are not an array of numbers ({reason_of(error)}).") from None
    if tensor.is_complex():
        raise BadInput("These attention weights are complex numbers: give the weights after the softmax.")
    return tensor if tensor.is_floating_point() else tensor.to(torch.float32)


def kept_positions(mask: Any, index: int | None, length: int) -> list[int]:
    """The places that an attention mask calls real: 1 for a token, 0 for padding; of a batch, those of one text."""
    try:
        flags = torch.as_tensor(mask)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise BadInput(f"attention_mask= is not an array of 0 and 1 ({reason_of(error)}).") from None
    if flags.ndim == 2:
        row = index or 0
        if not -len(flags) <= row < len(flags):
            raise BadInput(f"index={row} is outside this attention mask of {len(flags)} texts.")
        flags = flags[row]
    if flags.ndim != 1 or not bool(((flags == 0) | (flags == 1)).all()):
        raise BadInput("attention_mask= is one row of 0 and 1 for each text: 1 for a token, 0 for padding.")
    check_length("attention_mask", len(flags), length, "query")
    kept: list[int] = flags.nonzero().flatten().tolist()
    if not kept:
        raise BadInput("attention_mask= is all zeros, so that no token is left: it must be 1 for every real token.")
    return kept


def distribution(readout: Any, length: int, causal: bool) -> Float[Tensor, " query"]:
    """A read-out from what a user gives: nothing, a position, or weights."""
    if readout is None:
        return torch.eye(length)[-1] if causal else torch.full((length,), 1 / length)
    if is_whole(readout):
        if not -length <= int(readout) < length:
            raise BadInput(f"readout={readout} is outside the {length} query tokens.")
        return torch.eye(length)[int(readout)]
    try:
        given = torch.as_tensor(readout)
    except (ValueError, TypeError, RuntimeError, OverflowError):
        given = torch.empty(())
    if given.ndim != 1 or given.is_complex() or given.dtype == torch.bool:
        raise BadInput(f"Here a read-out is a position or a distribution over the query tokens, not {quote(readout)}.")
    return given.to(torch.float32)


def _from_array(array: Tensor, index: int | None) -> Float[Tensor, "layer head query key"]:
    if array.numel() == 0:
        raise BadInput(NO_WEIGHTS)
    if array.ndim == 5:
        return torch.stack([_one_layer(layer, number, index) for number, layer in enumerate(array)])
    if index is not None:
        if array.ndim != 4:
            raise BadInput(f"index= chooses of a batch, and weights of shape {tuple(array.shape)} have none.")
        return _one_layer(array, 0, index).unsqueeze(0)
    if array.ndim not in (2, 3, 4):
        raise BadInput(
            f"Attention weights of shape {tuple(array.shape)} cannot be read: give [layer, head, query, key], or a"
            " tuple per layer of (batch, heads, query, key)."
        )
    return array.reshape((1,) * (4 - array.ndim) + tuple(array.shape))


def _one_layer(layer: Tensor, number: int, index: int | None) -> Float[Tensor, "head query key"]:
    if layer.ndim == 2:
        return layer.unsqueeze(0)
    if layer.ndim == 3:
        return layer
    if layer.ndim != 4:
        raise BadInput(f"Layer {number} has the shape {tuple(layer.shape)}; (batch, heads, query, key) was expected.")
    batch = layer.shape[0]
    if index is None and batch > 1:
        raise BadInput(
            f"These attentions are of a batch of {batch} texts: say which one with index=0 to index={batch - 1}."
        )
    if index is not None and not -batch <= index < batch:
        raise BadInput(f"index={index} is outside this batch of {batch}.")
    return layer[index or 0]


def _from_steps(steps: Sequence[Sequence[Tensor | None]]) -> Float[Tensor, "layer head query key"]:
    """Stitch the steps of `generate()`: the prompt's square, then one row per new token.

    The last token generated has no row, as the model never read it. A sliding-window layer returns only the last keys
    it still holds, so short rows are aligned to the right.
    """
    blocks = [[layer for layer in step if layer is not None] for step in steps]
    if any(len(kept) < max(len(step), 1) for kept, step in zip(blocks, steps, strict=True)):
        raise BadInput(NO_WEIGHTS)
    if any(layer.ndim != 4 for step in blocks for layer in step):
        raise BadInput("Give each layer as one array (heads, query, key), not as a list of maps.")
    if any(layer.shape[0] != 1 for step in blocks for layer in step):
        raise BadInput(
            "These are the steps of generate() for several sequences (a batch, or beams, which reorder them): generate"
            " one prompt with num_beams=1, or use attnscope.load(model).record_generation(prompt)."
        )
    if len({len(step) for step in blocks}) > 1:
        raise BadInput("The steps of generate() differ in their number of layers; give one stack at a time.")
    queries = sum(step[0].shape[2] for step in blocks)
    first_queries, first_keys = blocks[0][0].shape[2:]
    # over itself a decoder sees no more keys than it has tokens; over a source it sees the whole source at every step
    same_keys = len(blocks) > 1 and {step[0].shape[3] for step in blocks} == {first_keys}
    cross = first_keys > first_queries or (same_keys and first_queries == 1)
    keys = first_keys if cross else queries
    layers = []
    for number in range(len(blocks[0])):
        rows = blocks[0][number].new_zeros(blocks[0][number].shape[1], queries, keys)
        seen = 0
        for step in blocks:
            block = step[number][0]
            seen += block.shape[1]
            end = keys if cross else seen
            if block.shape[2] > end:
                raise BadInput(f"A step of generate() attends to {block.shape[2]} keys after only {end} tokens.")
            rows[:, seen - block.shape[1] : seen, end - block.shape[2] : end] = block
        layers.append(rows)
    return torch.stack(layers)
