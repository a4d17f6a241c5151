"""A model run again, on ids or on embeddings of the caller's choice, for blank-out and integrated gradients."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from ..errors import BadInput
from ..record.model import EMBEDDINGS, Inputs
from ..record.target import Target
from .lookups import hooked_lookups, lookups
from .outcomes import target_value
from .reader import Inputs as Ids
from .reader import Reader
from .readout import distribution
from .watching import restored

BLANKS = ("unk", "mask", "pad")
"""Tokens that can stand for no token, by the names tokenizers give them."""


def blank_ids(reader: Reader) -> dict[str, int]:
    """The ids of the blank tokens that both the tokenizer and the model know."""
    if reader.given_tokenizer is None:
        return {}
    known = cast(nn.Embedding, reader.model.get_input_embeddings()).num_embeddings
    found = {name: getattr(reader.tokenizer, f"{name}_token_id", None) for name in BLANKS}
    return {name: int(index) for name, index in found.items() if index is not None and index < known}


def embedded(reader: Reader, item: Inputs) -> dict[str, Tensor]:
    """The inputs with the embeddings the model looks up for their ids."""
    found = dict(item)
    for (ids_name, name), module in zip(EMBEDDINGS.items(), lookups(reader.model), strict=False):
        with torch.no_grad():
            found[name] = module(item[ids_name].to(cast(Tensor, module.weight).device)).float().cpu()
    return found


def probabilities(reader: Reader, items: Sequence[Inputs]) -> Float[Tensor, "item outcome"]:
    """The probability of every outcome, a class or a token, for one batch."""
    ids = [_ids(item) for item in items]
    _check_both_sides(reader, ids)
    with torch.no_grad(), restored(reader.model), _given_embeddings(reader.model, items):
        output = reader.model(**reader.batched(ids))
    rows = []
    for row, item in enumerate(ids):
        logits = reader.logits(output, row, item)
        if logits is None:
            raise BadInput(f"{type(reader.model).__name__} gives no prediction, so it has no probabilities.")
        rows.append(reader.probabilities(logits).cpu())
    return torch.stack(rows)


def target_gradients(
    reader: Reader, items: Sequence[Inputs], target: Target
) -> tuple[Float[Tensor, " item"], Float[Tensor, "item position width"]]:
    """The target's value for one batch, and its gradient at the embeddings that the items bring."""
    given = next((name for name in EMBEDDINGS.values() if name in items[0]), None)
    if given is None:
        raise BadInput(f"A gradient is taken at embeddings: give {' or '.join(EMBEDDINGS.values())} with the inputs.")
    starts = [item[given].detach().requires_grad_() for item in items]
    started = [{**item, given: start} for item, start in zip(items, starts, strict=True)]
    ids = [_ids(item) for item in items]
    with torch.enable_grad(), restored(reader.model), _given_embeddings(reader.model, started):
        output = reader.model(**reader.batched(ids))
        values = torch.stack([_value(reader, output, row, item, target) for row, item in enumerate(ids)])
        gradients = torch.autograd.grad(values.sum(), starts)
    return values.detach().float().cpu(), torch.stack(gradients).float()


def _ids(item: Inputs) -> Ids:
    """What the model is given as ids."""
    return {name: tensor for name, tensor in item.items() if name not in EMBEDDINGS.values()}


def _value(reader: Reader, output: Any, row: int, item: Ids, target: Target) -> Float[Tensor, ""]:
    """The number the target names; without a head, the sum of what is read out, as at capture."""
    logits = reader.logits(output, row, item)
    if logits is not None:
        return target_value(target, logits, reader.probabilities(logits))
    hidden = getattr(output, "last_hidden_state", None)
    if target.index is not None or hidden is None:
        raise BadInput(f"{type(reader.model).__name__} gives no prediction, so {target} has no value.")
    length = len(item.get("decoder_input_ids", item["input_ids"]))
    read: Tensor = distribution(reader.position(item), length).to(hidden) @ hidden[row, :length]
    return read.sum()


def _check_both_sides(reader: Reader, items: Sequence[Ids]) -> None:
    """Refuse what an encoder-decoder that classifies cannot read: it answers where both copies of its text end."""
    if reader.task == "classifier" and reader.has_both_sides:
        for item in items:
            if len(item["input_ids"]) != len(item["decoder_input_ids"]):
                raise BadInput(
                    f"{type(reader.model).__name__} reads its text on both sides, so a token cannot be deleted on one:"
                    " replace it instead."
                )


@contextmanager
def _given_embeddings(model: PreTrainedModel, items: Sequence[Inputs]) -> Iterator[None]:
    """Within this, embeddings that the items bring replace those the model looks up.

    A hook rather than the model's own `inputs_embeds`: that would hide the ids, which families need to count positions
    (RoBERTa) or to find the end of the text (BART, causal classifiers).
    """
    names = iter(EMBEDDINGS.values())

    def replaced(_module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        name = next(names, "")
        brought = {row: item[name] for row, item in enumerate(items) if name in item}
        output = output.clone() if brought else output
        for row, embeddings in brought.items():
            output[row, : len(embeddings)] = embeddings.to(output)
        return output

    with hooked_lookups(model, replaced):
        yield
