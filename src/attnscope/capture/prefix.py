"""What texts have in common at their beginning is run once: how a causal model is asked again and again, exactly.

What a causal model computes at a position depends on nothing behind it. Runs that differ from some token on, as those
of blank-out do, therefore share the keys and values of all that stands before it; they are computed once, on a trunk
that grows along one of the runs, and every other goes on from where it leaves the trunk, a few together. Whether a
model is causal in this sense is not taken from a table: one of the runs is compared with the same run from its first
token, and a model that differs by more than rounding is run whole from then on.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
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
ENOUGH = 384
"""Tokens that are run together: fewer do not repay fetching the weights, more would leave the trunk too early."""
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


def planned_runs(leaves: Sequence[int], length: int, most: int) -> list[list[int]]:
    """Which runs of this length go together, by where each leaves the trunk: neighbours, of `most` tokens at most.

    All of a batch begin where the first of them leaves it.

    >>> planned_runs([3, 0, 1, 2], 4, 7), planned_runs([0, 9, 9], 10, 100)
    ([[1], [2, 3], [0]], [[0, 1, 2]])
    """
    batches: list[list[int]] = []
    for run in sorted(range(len(leaves)), key=lambda run: leaves[run]):
        begun = batches[-1] if batches else []
        if begun and (len(begun) + 1) * (length - leaves[begun[0]]) <= most:
            begun.append(run)
        else:
            batches.append([run])
    return batches


def answers_behind_prefix(
    reader: HubModel,
    items: Sequence[Inputs],
    batch_size: int,
    run_whole: Callable[[Sequence[Inputs]], Sequence[Tensor | None]],
) -> list[Float[Tensor, " outcome"]] | None:
    """The logits of items of one length, or None where nothing is gained or this model cannot go on from a beginning.

    No more tokens run together than in a batch of whole items. `run_whole` gives the logits of items that are run from
    their first token on, which the others are held against.
    """
    length = len(items[0][IDS])
    if any(set(item) - {GIVEN} != {IDS} or len(item[IDS]) != length for item in items) or not may_go_on(reader):
        return None
    read = [reader.position({IDS: item[IDS]}) for item in items]
    positions = [position for position in read if position is not None]
    if len(positions) < len(items):
        return None
    # where the answer is read must run with the rest
    leaves = [min(common_length([item, items[-1]]), place) for item, place in zip(items, positions, strict=True)]
    batches = planned_runs(leaves, length, min(ENOUGH, batch_size * length))
    starts = [leaves[batch[0]] for batch in batches]
    needed = starts[-1] + sum(len(batch) * (length - start) for batch, start in zip(batches, starts, strict=True))
    if needed > (1 - WORTH) * len(items) * length:
        return None
    answers = _go_on(reader, items, batches, starts, positions)
    if answers is not None and length > _checked.get(reader.model, 0):
        compared = batches[-1][0]  # of which most was run on the trunk
        whole = run_whole([items[compared]])[0]
        most = LAYER_TOLERANCES.get(answers[compared].dtype, LAYER_TOLERANCES[torch.bfloat16])
        within = whole is not None and relative_difference(answers[compared], whole) <= most
        _checked[reader.model] = length if within else -1
        answers = answers if within else None
    return answers


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
    reader: HubModel,
    items: Sequence[Inputs],
    batches: Sequence[Sequence[int]],
    starts: Sequence[int],
    positions: Sequence[int],
) -> list[Float[Tensor, " outcome"]] | None:
    """The logits of items, each batch from its start on; None where the model keeps no keys and values.

    The last item is the trunk, which grows from start to start.
    """
    trunk, grown = DynamicCache(config=reader.model.config), 0
    answers: dict[int, Float[Tensor, " outcome"]] = {}
    for batch, start in zip(batches, starts, strict=True):
        if start > grown:
            _run(reader, [{name: tensor[:start] for name, tensor in items[-1].items()}], grown, trunk)
            grown = start
            if trunk.get_seq_length() != grown:
                _checked[reader.model] = -1
                return None
        cache = deepcopy(trunk)
        if grown:
            cache.batch_repeat_interleave(len(batch))
        output = _run(reader, [items[place] for place in batch], start, cache)
        found = _read(output, len(items[0][IDS]), [positions[place] for place in batch])
        answers.update(zip(batch, found, strict=True))
    return [answers[place] for place in range(len(items))]


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
