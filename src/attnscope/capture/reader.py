"""The Reader: what an `InstrumentedModel` asks of a model, whatever it is; and records made over any of them.

There are two: `HuggingFaceReader` for the models of transformers, `ModuleReader` for any other torch module. What they
have in common is here: one watched forward pass, and a backward pass where gradients are wanted, becomes records; and a
model is run again on ids or on embeddings of the caller's choice, for blank-out and integrated gradients.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import BadInput
from ..record import AttentionRecord, Target, Text, VectorRecord
from ..record.attention import Stack
from ..record.model import EMBEDDINGS, Inputs
from ..record.target import SUM, Quantity
from .alignment import segments_of
from .answers import target_value
from .encoding import Passage, Truncation, text_of
from .memory import Size, give_back
from .request import Request

Change = Callable[[Float[Tensor, "batch position width"]], Float[Tensor, "batch position width"]]
"""What takes the place of the embeddings of the tokens as they are looked up; called for each kind of ids in turn."""


@dataclass(frozen=True)
class Sight:
    """What was seen of one batch."""

    output: Any
    """What the model returned."""
    layers: Sequence[Tensor]
    """The weights of each layer as the model computed them, still part of its graph."""
    fields: Callable[[int, Passage], dict[str, Any]]
    """Of one row and its passage, the fields of the record: weights, stack, causal, readout and whatever else."""


@runtime_checkable
class Reader(Protocol):
    """One kind of model: how it is fed, how its attention is watched, where and what it answers."""

    @property
    def model(self) -> nn.Module:
        """The model itself."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def task(self) -> str:
        """What it is for."""

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The stacks it has; the first is the one recorded by default."""

    @property
    def longest(self) -> int | None:
        """How many tokens it can read."""

    @property
    def blank_ids(self) -> dict[str, int]:
        """The ids of the tokens that can stand for no token, by name."""

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The names of its outcomes, where it has any."""

    @property
    def vocabulary_size(self) -> int | None:
        """How many tokens it has embeddings of, where that is known."""

    @property
    def summary(self) -> str:
        """What else is known of it, for its `repr`."""

    @property
    def shows_vectors(self) -> bool:
        """Whether queries and keys can be kept in place of weights."""

    def request(self, **options: Any) -> Request:
        """What a record shall hold, or one sentence about what this model cannot give."""

    def size(self, request: Request) -> Size | None:
        """What decides how much a record takes, where that is known beforehand."""

    def passage(self, text: Text, text_target: Text | None = None, truncation: Truncation = False) -> Passage:
        """A text as the model reads it."""

    def complete(self, passages: Sequence[Passage], stack: Stack, batch_size: int) -> list[Passage]:
        """The passages with whatever the model itself must write before it can be recorded."""

    def groups(self, items: Sequence[Mapping[str, Tensor]], batch_size: int) -> list[list[int]]:
        """Positions of items that may run together."""

    def batch_of(self, items: Sequence[Mapping[str, Tensor]]) -> dict[str, Any]:
        """Items as one batch, as the model takes it."""

    def answer_batch(self, items: Sequence[Mapping[str, Tensor]]) -> dict[str, Any]:
        """The same, where no more is wanted than the answers."""

    def run(self, batch: Mapping[str, Any], change: Change | None) -> Any:
        """What the model returns, unwatched; it is in evaluation mode for the time of the call."""

    def watch(
        self, batch: Mapping[str, Any], passages: Sequence[Passage], request: Request, change: Change | None
    ) -> Sight:
        """The same, with its attention."""

    def answers(self, output: Any, items: Sequence[Mapping[str, Tensor]]) -> list[Float[Tensor, " outcome"] | None]:
        """The logits of each item, or None where the model answers nothing."""

    def answers_again(self, items: Sequence[Inputs]) -> list[Float[Tensor, " outcome"] | None]:
        """The logits of items with the embeddings they bring, by the shortest way there is to them."""

    def sum_read(self, output: Any, row: int, item: Mapping[str, Tensor]) -> Float[Tensor, ""] | None:
        """Without a head, the sum of what is read out; None where that is not known either."""

    def probabilities(self, logits: Float[Tensor, " outcome"]) -> Float[Tensor, " outcome"]:
        """The probability of each outcome."""

    def prediction(self, logits: Float[Tensor, " outcome"] | None) -> tuple[tuple[str, float], ...]:
        """(label, probability) pairs, best first; none where the model answers nothing."""

    def target(
        self,
        outcome: int | str | None,
        against: int | str | None,
        quantity: Quantity,
        probabilities: Float[Tensor, " outcome"],
    ) -> Target:
        """What is meant by an outcome, or by one against another."""

    def embedded(self, item: Inputs) -> dict[str, Tensor]:
        """The inputs with the embeddings that the model looks up for their ids."""

    def gradients(
        self, value: Float[Tensor, ""], layers: Sequence[Tensor], embeddings: Tensor
    ) -> tuple[list[Float[Tensor, "*layer"]], Float[Tensor, "batch position width"]]:
        """The gradients of a value at what each layer shows (weights, or what it put out), and at the embeddings."""

    def card(self) -> dict[str, Any]:
        """What a reader of the record needs to make it again."""


def capture(reader: Reader, passages: Sequence[Passage], request: Request) -> list[AttentionRecord]:
    """The records of one batch."""
    items = [passage.inputs for passage in passages]
    looked_up: list[Tensor] = []

    def start_here(embeddings: Tensor) -> Tensor:
        """Make the embeddings the start of the gradient's graph: the encoder's come first."""
        looked_up.append(embeddings.detach().requires_grad_())
        return looked_up[-1].clone()  # some models change their embeddings in place

    # a backward pass needs ordinary tensors, also where the user's code runs in inference mode
    mode = torch.inference_mode(mode=False) if request.gradients else nullcontext()
    with mode, torch.set_grad_enabled(request.gradients):
        # answers at every position are a vocabulary for each token: of a long text, more than its vectors
        batch = reader.batch_of(items) if request.keep == "weights" else reader.answer_batch(items)
        sight = reader.watch(batch, passages, request, start_here if request.gradients else None)
        logits = reader.answers(sight.output, items)
        targets: list[Target | None] = [None] * len(passages)
        of_layers: list[Tensor] = []
        start = at_start = None
        if looked_up:
            start = looked_up[1 if request.stack == "decoder" and passages[0].target else 0]
            goals = [_goal(reader, sight.output, row, item, logits[row], request) for row, item in enumerate(items)]
            targets = [target for target, _ in goals]
            # texts do not touch each other, so the gradients of their sum stay apart
            value = torch.stack([value for _, value in goals]).sum()
            of_layers, at_start = reader.gradients(value, sight.layers if request.heads == "all" else [], start)
    give_back(sight.layers)
    card = reader.card()
    records = []
    for row, passage in enumerate(passages):
        fields = sight.fields(row, passage)
        leading = fields.pop("leading", ())
        queries, keys = passage.sides(fields["stack"])
        if start is not None and at_start is not None:
            fields["embeddings"] = start[row, : len(keys)].detach().float().cpu().clone()
            fields["embedding_gradients"] = at_start[row, : len(keys)].float().cpu().clone()
            if of_layers and request.keep != "weights":
                of_outputs = [gradient.transpose(0, 1).float().cpu() for gradient in of_layers]
                fields["output_gradients"] = torch.stack(of_outputs)
            elif of_layers:
                fields["attention_gradients"] = torch.stack(
                    [gradient[row, :, : len(queries), : len(keys)].float().cpu() for gradient in of_layers]
                )
        made = AttentionRecord if request.keep == "weights" else VectorRecord
        record = made(
            **_behind(leading, fields),
            query_tokens=(*leading, *queries.tokens),
            key_tokens=(*leading, *keys.tokens),
            query_word_ids=(*(None for _ in leading), *queries.word_ids),
            key_word_ids=(*(None for _ in leading), *keys.word_ids),
            query_special=(*(True for _ in leading), *queries.special),
            key_special=(*(True for _ in leading), *keys.special),
            added_tokens=len(leading),
            prediction=reader.prediction(logits[row]),
            target=targets[row],
            pooled="mean" if request.heads == "mean" else None,
            text=text_of(passage.text),
            segments=segments_of(passage, keys, len(leading)),
            inputs=passage.inputs if passage.runs_again else {},
            card=card,
        )
        records.append(record)
    return records


def _behind(leading: Sequence[str], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of tokens behind those that are no tokens of the text, which have no embedding and no gradient."""
    count = len(leading)
    pads = {
        "readout": (count, 0),
        "embeddings": (0, 0, count, 0),
        "embedding_gradients": (0, 0, count, 0),
        "attention_gradients": (count, 0, count, 0),
    }
    return {
        name: torch.nn.functional.pad(value, pads[name]) if count and name in pads else value
        for name, value in fields.items()
    }


def _goal(
    reader: Reader,
    output: Any,
    row: int,
    item: Mapping[str, Tensor],
    logits: Float[Tensor, " outcome"] | None,
    request: Request,
) -> tuple[Target, Float[Tensor, ""]]:
    """The target of one text and its value; without a head, the sum of what is read out is all there is."""
    if logits is not None:
        probabilities = reader.probabilities(logits)
        target = reader.target(request.target, request.against, request.quantity, probabilities.detach())
        return target, target_value(target, logits, probabilities)
    value = reader.sum_read(output, row, item)
    if value is None or request.target != SUM:
        instead = "" if value is None else f": give target={SUM!r}"
        raise BadInput(f"{type(reader.model).__name__} gives no prediction to take a gradient of{instead}.")
    return Target(SUM, None, "logit"), value


# ---- run again


def probabilities_again(reader: Reader, items: Sequence[Inputs]) -> list[Float[Tensor, " outcome"]]:
    """The probability of every outcome, a class or a token, for one batch."""
    with torch.no_grad():
        answers = reader.answers_again(items)
    if any(logits is None for logits in answers):
        raise BadInput(f"{type(reader.model).__name__} gives no prediction, so it has no probabilities.")
    return [reader.probabilities(logits).cpu() for logits in answers if logits is not None]


def plain_answers(reader: Reader, items: Sequence[Inputs]) -> list[Float[Tensor, " outcome"] | None]:
    """The logits of items with the embeddings they bring, each run from its first token on."""
    return reader.answers(_output_again(reader, items), [_ids(item) for item in items])


def gradients_again(
    reader: Reader, items: Sequence[Inputs], target: Target
) -> list[tuple[Float[Tensor, ""], Float[Tensor, "position width"]]]:
    """The target's value for each item of one batch, and its gradient at the embeddings that the item brings."""
    known = [name for ids_name, name in EMBEDDINGS.items() if ids_name in items[0]]
    given = next((name for name in known if all(name in item for item in items)), None)
    if given is None:
        raise BadInput(f"A gradient is taken at embeddings: give {' or '.join(known)} with the inputs.")
    starts = [item[given].detach().requires_grad_() for item in items]
    started = [{**item, given: start} for item, start in zip(items, starts, strict=True)]
    ids = [_ids(item) for item in items]
    with torch.enable_grad():
        output = _output_again(reader, started)
        answers = reader.answers(output, ids)
        values = [_value(reader, output, row, item, answers[row], target) for row, item in enumerate(ids)]
        gradients = torch.autograd.grad(torch.stack(values).sum(), starts)
    return [(value.detach().float().cpu(), gradient.float()) for value, gradient in zip(values, gradients, strict=True)]


def _value(
    reader: Reader,
    output: Any,
    row: int,
    item: Mapping[str, Tensor],
    logits: Float[Tensor, " outcome"] | None,
    target: Target,
) -> Float[Tensor, ""]:
    """The number the target names; without a head, the sum of what is read out, as at capture."""
    if logits is not None:
        return target_value(target, logits, reader.probabilities(logits))
    value = None if target.index is not None else reader.sum_read(output, row, item)
    if value is None:
        raise BadInput(f"{type(reader.model).__name__} gives no prediction, so {target} has no value.")
    return value


def _ids(item: Inputs) -> dict[str, Tensor]:
    """What the model is given as ids."""
    return {name: tensor for name, tensor in item.items() if name not in EMBEDDINGS.values()}


def _output_again(reader: Reader, items: Sequence[Inputs]) -> Any:
    """What the model returns for a batch, with the embeddings that the items bring in place of those it looks up.

    They come in by a hook rather than by the model's own `inputs_embeds`: that would hide the ids, which families need
    to count positions (RoBERTa) or to find the end of the text (BART, causal classifiers).
    """
    names = iter(EMBEDDINGS.values())

    def bring(looked_up: Tensor) -> Tensor:
        name = next(names, "")
        brought = {row: item[name] for row, item in enumerate(items) if name in item}
        rows = looked_up.clone() if brought else looked_up
        for row, embeddings in brought.items():
            rows[row, : len(embeddings)] = embeddings.to(rows)
        return rows

    brings = any(name in item for item in items for name in EMBEDDINGS.values())
    return reader.run(reader.answer_batch([_ids(item) for item in items]), bring if brings else None)
