"""One watched forward pass, and a backward pass where gradients are wanted, turned into records."""

from collections.abc import Iterator, Mapping, Sequence
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
from .verifying import SelfCheck, self_check
from .watching import Observer, watched


def capture(reader: Reader, passages: Sequence[Passage], request: Request) -> list[AttentionRecord]:
    """The records of one batch."""
    stack = request.stack
    collector = Collector(reader.model, stack, request.heads == "mean", request.queries_and_keys, request.values)
    items = [passage.inputs for passage in passages]
    # a backward pass needs ordinary tensors, also where the user's code runs in inference mode
    mode = torch.inference_mode(mode=False) if request.gradients else nullcontext()
    with mode:
        batch = reader.batched(items)
        check = self_check(reader.model, batch, request.verify)
    with (
        mode,
        torch.set_grad_enabled(request.gradients),
        _tracked_embeddings(reader.model, request.gradients) as embeddings,
    ):
        output = observed_run(reader.model, batch, collector, check)
        logits = [reader.logits(output, row, item) for row, item in enumerate(items)]
        readouts = [reader.readout(passage, stack) for passage in passages]
        targets: list[Target | None] = [None] * len(passages)
        gradients: tuple[Tensor, ...] = ()
        key_embeddings = embeddings[1 if stack == "decoder" and passages[0].target else 0] if embeddings else None
        if request.gradients and key_embeddings is not None:
            goals = [_goal(reader, output, row, logits[row], readouts[row], request) for row in range(len(passages))]
            targets = [target for target, _ in goals]
            weights = collector.layers if request.heads == "all" else []
            value = torch.stack([value for _, value in goals]).sum()
            gradients = attention_gradients(reader.model, value, weights, key_embeddings)
    card = card_of(reader.model)
    records = []
    for row, passage in enumerate(passages):
        queries, keys = passage.sides(stack)
        fields = collector.item(row, len(queries), len(keys))
        leading = fields.pop("leading")
        if gradients and key_embeddings is not None:
            fields["embeddings"] = key_embeddings[row, : len(keys)].detach().float().cpu().clone()
            fields["embedding_gradients"] = gradients[-1][row, : len(keys)].float().cpu().clone()
            if len(gradients) > 1:
                fields["attention_gradients"] = torch.stack(
                    [gradient[row, :, : len(queries), : len(keys)].float().cpu() for gradient in gradients[:-1]]
                )
        record = AttentionRecord(
            **_behind(leading, fields),
            query_tokens=(*leading, *queries.tokens),
            key_tokens=(*leading, *keys.tokens),
            query_word_ids=(*(None for _ in leading), *queries.word_ids),
            key_word_ids=(*(None for _ in leading), *keys.word_ids),
            query_special=(*(True for _ in leading), *queries.special),
            key_special=(*(True for _ in leading), *keys.special),
            added_tokens=len(leading),
            stack=stack,
            causal=stack == "decoder" and (len(queries) == 1 or looks_causal(fields["weights"])),
            readout=torch.nn.functional.pad(readouts[row], (len(leading), 0)),
            prediction=reader.prediction(logits[row]),
            target=targets[row],
            pooled="mean" if request.heads == "mean" else None,
            text=as_text(passage.text),
            inputs=passage.inputs,
            card=card,
        )
        records.append(record)
    return records


def observed_run(model: PreTrainedModel, batch: Mapping[str, Any], observer: Observer, check: SelfCheck | None) -> Any:
    """Run the model while the observer looks on; the check, where there is one, looks first."""
    if check is None:
        with watched(model, observer) as run:
            return run(**batch)
    with watched(model, check.observer(observer)) as run, check.around():
        output = run(**batch)
    check.finish(output)
    return output


def attention_gradients(
    model: PreTrainedModel, value: Float[Tensor, ""], weights: Sequence[Tensor], *more: Tensor
) -> tuple[Tensor, ...]:
    """The gradients of a value with respect to each layer's weights, and to what else is given."""
    found = torch.autograd.grad(value, [*weights, *more], allow_unused=True)
    if any(gradient is None for gradient in found[: len(weights)]):
        raise BadInput(
            f"The attention weights of {type(model).__name__} cannot be traced back from its answer, so they have no"
            ' gradients: take the record with heads="mean", which keeps the gradients of embeddings alone.'
        )
    return tuple(
        torch.zeros_like(start) if gradient is None else gradient
        for start, gradient in zip([*weights, *more], found, strict=True)
    )


def _behind(leading: Sequence[str], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of tokens behind those that are no tokens of the text, which have no embedding and no gradient."""
    count = len(leading)
    pads = {"embeddings": (0, 0, count, 0), "embedding_gradients": (0, 0, count, 0)}
    pads["attention_gradients"] = (count, 0, count, 0)
    return {
        name: torch.nn.functional.pad(value, pads[name]) if count and name in pads else value
        for name, value in fields.items()
    }


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
