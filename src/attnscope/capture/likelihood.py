"""How likely a model finds an answer, token by token: of many contexts at once, and with gradients.

Contexts from which some segments are taken away begin alike. The keys and values of the whole context are computed
once, and each run goes on from where it first differs; runs of like length go together.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from ..errors import BadInput
from ..progress import tell
from ..record.model import Inputs
from .hub_model import HubModel, changed_lookups
from .prefix import GIVEN, IDS, common_length, is_exact, is_known_exact, may_go_on
from .watching import evaluation_mode

MOST_NUMBERS = 5 * 10**7
"""How many logits one batch may have."""
WASTE = 1.05
"""By how much a batch may be more work than its runs one by one, for padding and for beginnings run again."""
SHORT = 256
"""Runs of so few tokens together are quicker as one batch, whatever is wasted."""


def answer_log_probabilities(
    reader: HubModel, items: Sequence[Inputs], count: int, batch_size: int
) -> Float[Tensor, "item answer_token"]:
    """The log-probability of each of the last tokens of each item; the first item is what the others begin like."""
    _check_causal(reader, items, count)
    shared = [0] * len(items)
    cache = None
    goes_on = len(items) > 1 and all(set(item) - {GIVEN} == {IDS} for item in items) and may_go_on(reader)
    if goes_on and all(type(layer) is DynamicLayer for layer in DynamicCache(config=reader.model.config).layers):
        # the answer's first token is foretold by the token before it, which must run with the rest
        shared = [min(common_length([items[0], item]), len(item[IDS]) - count - 1) for item in items]
        cache = _beginning(reader, items[0], max(shared[1:]))
        shared[0] = min(shared[0], max(shared[1:]))
    found: dict[int, Tensor] = {}
    with torch.no_grad():
        batches = _batches([len(item[IDS]) for item in items], shared, batch_size if reader.takes_padding else 1, count)
        for batch in _within(batches, _room(reader), items, count):
            tell(len(found), len(items))
            start = min(shared[place] for place in batch)
            found.update(zip(batch, _run(reader, [items[place] for place in batch], count, start, cache), strict=True))
        if cache is not None and not is_known_exact(reader, len(items[0][IDS])):
            longest = max(range(1, len(items)), key=lambda place: shared[place])
            whole = _run(reader, [items[longest]], count, 0, None)[0]
            if not is_exact(reader, found[longest].exp(), whole.exp(), len(items[0][IDS])):
                return answer_log_probabilities(reader, items, count, batch_size)
    return torch.stack([found[place] for place in range(len(items))])


def answer_gradients(
    reader: HubModel, item: Inputs, count: int, wanted: Sequence[Sequence[int]]
) -> Iterator[tuple[Float[Tensor, ""], Float[Tensor, "position width"]]]:
    """For each set of answer tokens the sum of their log-probabilities, and its gradient at the embeddings given.

    One forward pass serves all; each set takes a backward pass of its own.
    """
    _check_causal(reader, [item], count)
    if GIVEN not in item:
        raise BadInput(f"A gradient is taken at embeddings: give {GIVEN} with the inputs.")
    start = item[GIVEN].detach().requires_grad_()
    with torch.inference_mode(mode=False), torch.enable_grad():
        likely = _run(reader, [{**item, GIVEN: start}], count, 0, None)[0]
    for number, some in enumerate(wanted):
        tell(number, len(wanted))
        # entered for each: a generator that waits must not leave its mode to whoever asks it
        with torch.inference_mode(mode=False), torch.enable_grad():
            value = likely[list(some)].sum()
            (gradient,) = torch.autograd.grad(value, start, retain_graph=number < len(wanted) - 1)
        yield value.detach().float().cpu(), gradient.float().cpu()


def _check_causal(reader: HubModel, items: Sequence[Inputs], count: int) -> None:
    if reader.task != "causal_lm":
        raise BadInput(f"{type(reader.model).__name__} is no causal language model, so it says nothing of an answer.")
    if not items or count < 1 or any(len(item[IDS]) <= count for item in items):
        raise BadInput("An answer has at least one token, and one before it that foretells it.")


def _beginning(reader: HubModel, item: Inputs, length: int) -> DynamicCache | None:
    """The keys and values of the first tokens of an item; None where there is nothing to keep."""
    if length < 1:
        return None
    cache = DynamicCache(config=reader.model.config)
    cut = {name: tensor[:length] for name, tensor in item.items()}
    with torch.no_grad():
        _forward(reader, [cut], 0, cache, 1)
    return cache if cache.get_seq_length() == length else None


def _copy(reader: HubModel, cache: DynamicCache, length: int, rows: int) -> DynamicCache:
    """The first so many keys and values, for so many runs."""
    copied = DynamicCache(config=reader.model.config)
    for number, layer in enumerate(cast(Sequence[DynamicLayer], cache.layers)):
        kept = cast(tuple[Tensor, Tensor], (layer.keys, layer.values))
        keys, values = (tensor[:, :, :length].expand(rows, -1, -1, -1) for tensor in kept)
        copied.update(keys, values, number)
    return copied


def _run(
    reader: HubModel, items: Sequence[Inputs], count: int, start: int, cache: DynamicCache | None
) -> list[Float[Tensor, " answer_token"]]:
    """The log-probabilities of the last tokens of some items, from a common beginning on."""
    kept = None if cache is None or start == 0 else _copy(reader, cache, start, len(items))
    start = 0 if kept is None else start
    lengths = [len(item[IDS]) for item in items]
    first = [length - count - 1 for length in lengths]
    needed = max(lengths) - min(first)
    logits = _forward(reader, items, start, kept, needed).logits
    missing = max(lengths) - logits.shape[1]
    rows = []
    for row, (item, place) in enumerate(zip(items, first, strict=True)):
        likely = logits[row, place - missing : place - missing + count].float().log_softmax(-1)
        said = item[IDS][-count:].to(likely.device)
        rows.append(likely.gather(-1, said.unsqueeze(-1)).squeeze(-1).cpu())
    return rows


def _forward(reader: HubModel, items: Sequence[Inputs], start: int, cache: DynamicCache | None, needed: int) -> Any:
    """What the model returns for items from some position on; logits of the last `needed` positions only, if it can."""
    device = reader.device
    batch = reader.batch_of([{name: ids for name, ids in item.items() if name != GIVEN} for item in items])
    if cache is not None:
        batch |= {IDS: batch[IDS][:, start:], "past_key_values": cache, "use_cache": True}
    if "logits_to_keep" in reader.accepted:
        batch["logits_to_keep"] = needed

    def bring(looked_up: Tensor) -> Tensor:
        rows = looked_up.clone()
        for row, item in enumerate(items):
            if GIVEN in item:
                rows[row, : len(item[GIVEN]) - start] = item[GIVEN][start:].to(device=device, dtype=rows.dtype)
        return rows

    brings = any(GIVEN in item for item in items)
    with evaluation_mode(reader.model), changed_lookups(reader.model, bring if brings else None):
        return reader.model(**batch)


def _room(reader: HubModel) -> int:
    """How many positions of logits one batch may have."""
    outcomes = reader.model.config.get_text_config().vocab_size
    return max(1, int(MOST_NUMBERS // outcomes)) if isinstance(outcomes, int) else 1


def _batches(lengths: Sequence[int], shared: Sequence[int], batch_size: int, count: int) -> Iterator[list[int]]:
    """Places of items that run together: those that begin alike for longest first, while little is wasted."""
    order = sorted(range(len(lengths)), key=lambda place: (-shared[place], lengths[place]))
    batch: list[int] = []
    for place in order:
        grown = [*batch, place]
        start = min(shared[one] for one in grown)
        together = len(grown) * (max(lengths[one] for one in grown) - start)
        alone = sum(max(lengths[one] - shared[one], count + 1) for one in grown)
        if batch and (len(grown) > batch_size or (together > WASTE * alone and together > SHORT)):
            yield batch
            grown = [place]
        batch = grown
    if batch:
        yield batch


def _within(batches: Iterator[list[int]], room: int, items: Sequence[Inputs], count: int) -> Iterator[list[int]]:
    """The same, cut where a batch would have too many logits."""
    for batch in batches:
        lengths = [len(items[place][IDS]) for place in batch]
        wanted = max(lengths) - min(lengths) + count + 1
        step = max(1, room // wanted)
        yield from (batch[first : first + step] for first in range(0, len(batch), step))
