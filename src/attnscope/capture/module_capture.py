"""One tapped forward pass of a torch module, and a backward pass where gradients are wanted, turned into records."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import BadInput
from ..record import AttentionRecord, Target, Text
from ..record.checks import looks_causal
from .card import card_of_module
from .evaluating import evaluated
from .forward import as_text
from .module_attention import Sources, as_heads, tapped
from .module_inputs import IDS, Feeder, Item
from .module_readout import Readout, learned_readout, read_by, said_readout
from .outcomes import prediction_of, resolved_target, target_value
from .request import Request


@dataclass(frozen=True, eq=False)
class ModuleReader:
    """A torch module with all that was said about it: how it is fed, where it attends, where and what it answers."""

    feeder: Feeder
    sources: Sources
    lookup: nn.Module | None
    """The submodule that looks up the embeddings of the tokens."""
    readout: Readout | None
    pooling: nn.Module | None
    """The submodule whose output is the read-out, where it is learned."""
    answer: Callable[[Any], Any] | None
    probabilities: Callable[[Tensor], Tensor]
    """From the logits of one text."""
    labels: tuple[str, ...] | None

    @property
    def module(self) -> nn.Module:
        """The module itself."""
        return self.feeder.module

    def logits(self, output: Any) -> Float[Tensor, "batch outcome"] | None:
        """What the module says of each outcome, or None where it answers nothing."""
        found = output if self.answer is None else self.answer(output)
        if self.answer is None and not isinstance(found, Tensor):
            found = found.get("logits") if isinstance(found, Mapping) else getattr(output, "logits", None)
            if found is None and isinstance(output, (tuple, list)) and output and isinstance(output[0], Tensor):
                found = output[0]
        if not isinstance(found, Tensor) or found.ndim not in (1, 2) or not found.is_floating_point():
            if self.answer is None:
                return None
            raise BadInput("answer= must give one row of logits for each text, [batch, outcome].")
        rows = found if found.ndim == 2 else found.unsqueeze(1)
        if self.labels is not None and len(self.labels) != rows.shape[1]:
            raise BadInput(f"{len(self.labels)} labels were given for a module of {rows.shape[1]} outcomes.")
        return rows

    def target(self, outcome: int | str | None, quantity: Any, logits: Float[Tensor, " outcome"]) -> Target:
        """What is meant by an outcome."""
        return resolved_target(outcome, quantity, self.probabilities(logits), self.labels, None)


def capture_module(reader: ModuleReader, items: Sequence[Item], request: Request) -> list[AttentionRecord]:
    """The records of one batch."""
    batch = reader.feeder.batched([item.inputs for item in items])
    # a backward pass needs ordinary tensors, also where the user's code runs in inference mode
    mode = torch.inference_mode(mode=False) if request.gradients else nullcontext()
    with mode, torch.set_grad_enabled(request.gradients), evaluated(reader.module, reader.module):
        with (
            tracked(reader, batch, request.gradients) as embeddings,
            tapped(reader.sources) as taken,
            read_by(reader.pooling) as read,
        ):
            output = reader.feeder.run(batch)
        raw = list(taken) if reader.sources.asked is None else _asked(reader, batch)
        layers = _whole(reader, [as_heads(weights) for weights in raw], items)
        logits = reader.logits(output)
        targets: list[Target | None] = [None] * len(items)
        gradients: Float[Tensor, "batch position width"] | None = None
        of_layers: list[Tensor] = []
        if request.gradients:
            if logits is None:
                raise BadInput(f"{type(reader.module).__name__} gives no prediction to take a gradient of.")
            found = [reader.target(request.target, request.quantity, row.detach()) for row in logits]
            targets = list(found)
            value = sum_of(reader, found, logits)
            gradients, of_layers = _gradients(value, embeddings[0], raw if request.heads == "all" else [])
    kept = [layer.float().mean(1, keepdim=True) if request.heads == "mean" else layer for layer in layers]
    card = card_of_module(reader.module)
    pooled = None if reader.pooling is None else learned_readout(reader.pooling, read, len(items), layers[0].shape[2])
    records = []
    for row, item in enumerate(items):
        queries, keys = len(item.query_tokens or item.tokens), len(item)
        weights = torch.stack([layer[row, :, :queries, :keys].detach().cpu() for layer in kept])
        causal = not item.query_tokens and looks_causal(weights)
        if pooled is None:
            readout = said_readout(reader.readout, item.query_tokens or item.tokens, causal)
        else:
            readout = pooled[row, :queries].cpu()
        fields: dict[str, Any] = {}
        if gradients is not None:
            fields["embeddings"] = embeddings[0][row, :keys].detach().float().cpu().clone()
            fields["embedding_gradients"] = gradients[row, :keys].float().cpu().clone()
            if of_layers:
                cut = [as_heads(layer)[row, :, :queries, :keys].float().cpu() for layer in of_layers]
                fields["attention_gradients"] = torch.stack(cut)
        answer = None if logits is None else reader.probabilities(logits[row].detach()).cpu()
        records.append(
            AttentionRecord(
                **fields,
                weights=weights,
                query_tokens=item.query_tokens or item.tokens,
                key_tokens=item.tokens,
                query_word_ids=() if item.query_tokens else item.word_ids,
                key_word_ids=item.word_ids,
                query_special=() if item.query_tokens else item.special,
                key_special=item.special,
                stack="cross" if item.query_tokens else "decoder" if causal else "encoder",
                causal=causal,
                readout=readout,
                prediction=() if answer is None else prediction_of(answer, reader.labels, None),
                target=targets[row],
                pooled="mean" if request.heads == "mean" else None,
                text=_text(item.text),
                inputs=item.inputs if item.runs_again else {},
                card=card,
            )
        )
    return records


def sum_of(
    reader: ModuleReader, targets: Sequence[Target], logits: Float[Tensor, "batch outcome"]
) -> Float[Tensor, ""]:
    """The values of the targets of a batch, added up: texts do not touch each other, so gradients stay apart."""
    return torch.stack(
        [target_value(target, row, reader.probabilities(row)) for target, row in zip(targets, logits, strict=True)]
    ).sum()


@contextmanager
def tracked(reader: ModuleReader, batch: Mapping[str, Tensor], wanted: bool) -> Iterator[list[Tensor]]:
    """The token embeddings as they are looked up, made the start of the gradient's graph."""
    looked_up: list[Tensor] = []
    if not wanted:
        yield looked_up
        return

    def start_here(output: Tensor) -> Tensor:
        looked_up.append(output.detach().requires_grad_())
        return looked_up[-1].clone()

    with hooked(reader, batch, start_here):
        yield looked_up


@contextmanager
def hooked(reader: ModuleReader, batch: Mapping[str, Tensor], change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Within this, `change(embeddings)` takes the place of the embeddings that the module looks up for the tokens."""
    if reader.lookup is None:
        raise BadInput(
            f"Where {type(reader.module).__name__} looks up its embeddings is not known: name that submodule as"
            " embeddings= in attnscope.instrument."
        )
    done: list[bool] = []

    def hook(_module: nn.Module, given: Any, output: Tensor) -> Tensor | None:
        if done or not given or not isinstance(given[0], Tensor) or not torch.equal(given[0], batch[IDS]):
            return None
        done.append(True)
        return change(output)

    handle = reader.lookup.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()
    if not done:
        raise BadInput(
            f"The submodule named as embeddings= ({type(reader.lookup).__name__}) is not given the ids of the tokens,"
            " [batch, token], so it cannot be where they are looked up."
        )


def _asked(reader: ModuleReader, batch: Mapping[str, Tensor]) -> list[Tensor]:
    """What the user's function says the attention is."""
    assert reader.sources.asked is not None  # noqa: S101 -- the caller has looked
    with torch.no_grad():
        found = reader.sources.asked(reader.module, batch)
    if isinstance(found, Tensor) or not isinstance(found, Sequence):
        raise BadInput("A function given as attention= must return a list with the weights of each layer.")
    return list(found)


def _whole(reader: ModuleReader, layers: list[Tensor], items: Sequence[Item]) -> list[Tensor]:
    """The layers, if there are any, they are alike, and they cover the tokens."""
    name = type(reader.module).__name__
    if not layers:
        told = f"it never called {reader.sources.names}" if reader.sources.asked is None else "the function gave none"
        raise BadInput(f"No attention of {name} was captured: {told}.")
    if len({tuple(layer.shape) for layer in layers}) > 1:
        shapes = ", ".join(sorted({" x ".join(map(str, layer.shape)) for layer in layers}))
        raise BadInput(
            f"The attention layers of {name} differ in shape ({shapes}): name those of one stack as attention=."
        )
    queries = max(len(item.query_tokens or item.tokens) for item in items)
    keys = max(len(item) for item in items)
    if tuple(layers[0].shape[i] for i in (0, 2, 3)) != (len(items), queries, keys):
        shape = " x ".join(map(str, layers[0].shape))
        raise BadInput(
            f"The attention of {name} has the shape {shape}, which does not fit {len(items)} texts of {queries} queries"
            f" and {keys} keys: batch, head, query, key."
        )
    return layers


def _gradients(value: Tensor, embeddings: Tensor, layers: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """The gradients at the embeddings and at the weights of each layer; none of these where a layer has none.

    What a module returns is often a view of the weights it went on with (so in `nn.MultiheadAttention`), and the
    gradient is then found at what it is a view of.
    """
    tracked_layers = all(layer.requires_grad for layer in layers)
    starts = list(layers) if tracked_layers else []
    bases = [_viewed(layer) for layer in starts]
    found = torch.autograd.grad(value, [embeddings, *starts, *bases], allow_unused=True)
    at_embeddings = torch.zeros_like(embeddings) if found[0] is None else found[0]
    own, viewed = found[1 : 1 + len(starts)], found[1 + len(starts) :]
    of_layers = [
        gradient if gradient is not None else None if base is None else base.reshape(layer.shape)
        for layer, gradient, base in zip(starts, own, viewed, strict=True)
    ]
    if any(gradient is None for gradient in of_layers):
        return at_embeddings, []
    return at_embeddings, [gradient for gradient in of_layers if gradient is not None]


def _viewed(layer: Tensor) -> Tensor:
    """What a tensor is another shape of, or the tensor itself."""
    base = layer._base  # noqa: SLF001 -- torch has no other name for it
    same = base is not None and base.numel() == layer.numel() and base.is_contiguous() and layer.is_contiguous()
    return base if same and base is not None else layer


def _text(text: Text | None) -> str | tuple[str, ...] | None:
    return None if text is None else as_text(text)
