"""What texts have in common at their beginning is run once: how a causal model is asked again and again, exactly.

What a causal model computes at a position depends on nothing behind it. Runs that differ from some token on, as those
of blank-out do, therefore share the keys and values of all that stands before it; they are computed once and every run
goes on from there. Whether a model is causal in this sense is not taken from a table: one of the runs is compared with
the same run from its first token, and a model that differs by more than rounding is run whole from then on.
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from ..record.model import EMBEDDINGS, Inputs
from .hub_model import HubModel, changed_lookups
from .verifying import LAYER_TOLERANCES, relative_difference
from .watching import evaluation_mode

IDS, GIVEN = next(iter(EMBEDDINGS.items()))
WORTH = 0.1
"""The share of the work that a common beginning must save before it is run by itself."""
KEPT_LAYERS = (DynamicLayer, DynamicSlidingWindowLayer)
"""Layers whose keys and values are all that is passed on; a recurrent state, for one, is not cut so easily."""

_checked: WeakKeyDictionary[PreTrainedModel, float] = WeakKeyDictionary()
"""The longest text on which a model was found to go on from a common beginning exactly; minus one: it does not."""


def common_length(items: Sequence[Inputs]) -> int:
    """How many tokens all items have in common from the first one on, ids and embeddings alike."""
    first = items[0]
    same = torch.ones(min(len(item[IDS]) for item in items), dtype=torch.bool)
    for item in items[1:]:
        same &= item[IDS][: len(same)] == first[IDS][: len(same)]
        if GIVEN in item or GIVEN in first:
            if not (GIVEN in item and GIVEN in first):
                return 0  # one is looked up and the other brought: they are not compared
            same &= (item[GIVEN][: len(same)] == first[GIVEN][: len(same)]).all(-1)
    return int(same.long().cumprod(0).sum())


def answers_behind_prefix(
    reader: HubModel, items: Sequence[Inputs], run_whole: Callable[[Sequence[Inputs]], Sequence[Tensor | None]]
) -> list[Float[Tensor, " outcome"]] | None:
    """The logits of items that begin alike, or None where nothing is gained or this model cannot go on from there.

    `run_whole` gives the logits of items that are run from their first token on, which the others are held against.
    """
    length = len(items[0][IDS])
    if any(set(item) - {GIVEN} != {IDS} or len(item[IDS]) != length for item in items) or not may_go_on(reader):
        return None
    read = [reader.position({IDS: item[IDS]}) for item in items]
    positions = [position for position in read if position is not None]
    # where the answer is read must run with the rest
    shared = min([common_length(items), *positions]) if len(positions) == len(items) else 0
    if (len(items) - 1) * shared < WORTH * len(items) * length:
        return None
    answers = _go_on(reader, items, shared, positions)
    if answers is not None and length > _checked.get(reader.model, 0):
        whole = run_whole(items[-1:])[0]
        most = LAYER_TOLERANCES.get(answers[-1].dtype, LAYER_TOLERANCES[torch.bfloat16])
        within = whole is not None and relative_difference(answers[-1], whole) <= most
        _checked[reader.model] = length if within else -1
        answers = answers if within else None
    return answers


def is_known_exact(reader: HubModel, length: int) -> bool:
    """Whether a model was found to go on from a common beginning exactly, on a text of such a length."""
    return length <= _checked.get(reader.model, 0)


def is_exact(reader: HubModel, ours: Tensor, whole: Tensor, length: int) -> bool:
    """Whether what followed a common beginning is what a whole run gives; remembered of the model for such lengths."""
    most = LAYER_TOLERANCES.get(reader.model.dtype, LAYER_TOLERANCES[torch.bfloat16])
    within = relative_difference(ours, whole) <= most
    _checked[reader.model] = max(length, _checked.get(reader.model, 0)) if within else -1
    return within


def may_go_on(reader: HubModel) -> bool:
    """Whether a model takes the keys and values of what it has read, as transformers' own causal models do."""
    model = reader.model
    if (
        reader.task != "causal_lm"
        or _checked.get(model, 0) < 0
        or not type(model).__module__.startswith("transformers.")
    ):
        return False
    if any(name not in reader.accepted for name in ("past_key_values", "use_cache", "attention_mask")):
        return False
    return all(type(layer) in KEPT_LAYERS for layer in DynamicCache(config=model.config).layers)


def _go_on(
    reader: HubModel, items: Sequence[Inputs], shared: int, positions: Sequence[int]
) -> list[Float[Tensor, " outcome"]] | None:
    """The logits of items that have so many tokens in common; None where the model keeps no keys and values."""
    cache = DynamicCache(config=reader.model.config)
    beginning = {name: tensor[:shared] for name, tensor in items[0].items()}
    _run(reader, [beginning], 0, cache)
    if cache.get_seq_length() != shared:
        _checked[reader.model] = -1
        return None
    cache.batch_repeat_interleave(len(items))
    output = _run(reader, items, shared, cache)
    return _read(output, len(items[0][IDS]), positions)


def _run(reader: HubModel, items: Sequence[Inputs], start: int, cache: DynamicCache) -> Any:
    """What the model returns for items from some position on, the cache holding what stands before it."""
    device = reader.device
    ids = torch.stack([item[IDS] for item in items]).to(device)

    def bring(looked_up: Tensor) -> Tensor:
        return torch.stack([item[GIVEN][start:] for item in items]).to(looked_up)

    batch = {
        IDS: ids[:, start:],
        "attention_mask": torch.ones_like(ids),
        "past_key_values": cache,
        "use_cache": True,
        **reader.only_answers([{IDS: item[IDS]} for item in items]),
    }
    if "return_dict" in reader.accepted:
        batch["return_dict"] = True
    with evaluation_mode(reader.model), changed_lookups(reader.model, bring if GIVEN in items[0] else None):
        return reader.model(**batch)


def _read(output: Any, length: int, positions: Sequence[int]) -> list[Float[Tensor, " outcome"]]:
    """The logits where each item is read; those that were not asked for are missing at the front."""
    missing = length - output.logits.shape[1]
    return [output.logits[row, position - missing] for row, position in enumerate(positions)]
