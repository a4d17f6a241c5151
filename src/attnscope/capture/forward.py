"""One watched forward pass, and a backward pass where gradients are wanted, turned into records."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from ..errors import BadInput
from ..record import AttentionRecord, Target, Text
from ..record.checks import looks_causal
from ..record.target import SUM
from .card import card_of
from .collect import Collector
from .lookups import hooked_lookups
from .outcomes import resolved_target, target_value
from .passage import Passage
from .reader import Reader
from .request import Request
from .watching import watched


def capture(reader: Reader, passages: Sequence[Passage], request: Request) -> list[AttentionRecord]:
    """The records of one batch."""
    stack = request.stack
    collector = Collector(reader.model, stack, request.heads == "mean", request.queries_and_keys, request.values)
    items = [passage.inputs for passage in passages]
    # a backward pass needs ordinary tensors, also where the user's code runs in inference mode
    mode = torch.inference_mode(mode=False) if request.gradients else nullcontext()
    with (
        mode,
        torch.set_grad_enabled(request.gradients),
        _tracked_embeddings(reader.model, request.gradients) as embeddings,
    ):
        with watched(reader.model, collector) as run:
            output = run(**reader.batched(items))
        logits = [reader.logits(output, row, item) for row, item in enumerate(items)]
        readouts = [reader.readout(passage, stack) for passage in passages]
        targets: list[Target | None] = [None] * len(passages)
        gradients: tuple[Tensor, ...] = ()
        key_embeddings = embeddings[1 if stack == "decoder" and passages[0].target else 0] if embeddings else None
        if request.gradients and key_embeddings is not None:
            goals = [_goal(reader, output, row, logits[row], readouts[row], request) for row in range(len(passages))]
            targets = [target for target, _ in goals]
            weights = collector.layers if request.heads == "all" else []
            starts = [key_embeddings, *weights]
            found = torch.autograd.grad(torch.stack([value for _, value in goals]).sum(), starts, allow_unused=True)
            gradients = tuple(
                torch.zeros_like(start) if gradient is None else gradient
                for start, gradient in zip(starts, found, strict=True)
            )
    card = card_of(reader.model)
    records = []
    for row, passage in enumerate(passages):
        queries, keys = passage.sides(stack)
        fields = collector.item(row, len(queries), len(keys))
        if gradients and key_embeddings is not None:
            fields["embeddings"] = key_embeddings[row, : len(keys)].detach().float().cpu().clone()
            fields["embedding_gradients"] = gradients[0][row, : len(keys)].float().cpu().clone()
            if len(gradients) > 1:
                fields["attention_gradients"] = torch.stack(
                    [gradient[row, :, : len(queries), : len(keys)].float().cpu() for gradient in gradients[1:]]
                )
        records.append(
            AttentionRecord(
                **fields,
                query_tokens=queries.tokens,
                key_tokens=keys.tokens,
                query_word_ids=queries.word_ids,
                key_word_ids=keys.word_ids,
                query_special=queries.special,
                key_special=keys.special,
                stack=stack,
                causal=stack == "decoder" and (len(queries) == 1 or looks_causal(fields["weights"])),
                readout=readouts[row],
                prediction=reader.prediction(logits[row]),
                target=targets[row],
                pooled="mean" if request.heads == "mean" else None,
                text=as_text(passage.text),
                inputs=passage.inputs,
                card=card,
            )
        )
    return records


def _goal(
    reader: Reader,
    output: Any,
    row: int,
    logits: Float[Tensor, " outcome"] | None,
    readout: Float[Tensor, " query"],
    request: Request,
) -> tuple[Target, Float[Tensor, ""]]:
    """The target of one text and its value; without a head, the sum of what is read out is all there is."""
    if logits is None:
        hidden = getattr(output, "last_hidden_state", None)
        if request.target != SUM or hidden is None:
            raise BadInput(
                f"{type(reader.model).__name__} gives no prediction to take a gradient of: give target={SUM!r}."
            )
        return Target(SUM, None, "logit"), (readout.to(hidden) @ hidden[row, : len(readout)]).sum()
    probabilities = reader.probabilities(logits)
    target = resolved_target(request.target, request.quantity, probabilities, reader.labels, reader.tokenizer)
    return target, target_value(target, logits, probabilities)


@contextmanager
def _tracked_embeddings(model: PreTrainedModel, wanted: bool) -> Iterator[list[Float[Tensor, "batch position width"]]]:
    """The token embeddings in the order looked up (encoder first), each made the start of the gradient's graph."""
    looked_up: list[Tensor] = []
    if not wanted:
        yield looked_up
        return

    def start_here(_module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        looked_up.append(output.detach().requires_grad_())
        return looked_up[-1].clone()  # some models change their embeddings in place

    with hooked_lookups(model, start_here):
        yield looked_up


def as_text(text: Text) -> str | tuple[str, ...]:
    """A pair of texts as a tuple; words already split as one string."""
    if isinstance(text, tuple):
        return tuple(part if isinstance(part, str) else " ".join(part) for part in text)
    return text if isinstance(text, str) else " ".join(text)
