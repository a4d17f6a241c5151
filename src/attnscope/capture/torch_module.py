"""`instrument`: any torch module as a Reader, fed by the user's own `tokenize`, watched where the user says."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from ..errors import BadInput
from ..record import Target, Text
from ..record.attention import Stack
from ..record.checks import looks_causal
from ..record.model import EMBEDDINGS, Inputs
from ..record.target import Quantity
from .answers import prediction_of, resolved_target, sigmoids, softmax_unless_single
from .encoding import Encoded, Passage, Truncation, by_length
from .memory import Size
from .model import InstrumentedModel
from .reader import Change, Sight, plain_answers
from .request import Request, checked_request
from .torch_attention import (
    Readout,
    Sources,
    as_heads,
    changed_lookup,
    checked_layers,
    gradients_at,
    learned_readout,
    readout_at,
    returned_by,
    sources_of,
    tap_weights,
    weights_by_function,
    without_fusion,
)
from .verifying import card_of
from .watching import in_evaluation

IDS = "input_ids"
MASKS = ("attention_mask", "src_key_padding_mask", "key_padding_mask", "padding_mask")
"""Arguments that are taken for a mask of the tokens if the user names none."""
READ_AT: dict[str, Readout] = {
    "first": lambda _tokens: 0,
    "last": lambda _tokens: -1,
    "mean": lambda tokens: [1 / len(tokens)] * len(tokens),
}
PROBABILITIES: dict[str, Callable[[Tensor], Tensor]] = {"softmax": softmax_unless_single, "sigmoid": sigmoids}


@dataclass(frozen=True)
class Tokenized:
    """One text as a module reads it; what `tokenize` may return in place of a pair `(tokens, inputs)`.

    `inputs` are the ids of the tokens, or a mapping of the module's arguments, each without the axis of the batch.
    `special` says which tokens are there for the model's sake, `word_ids` the word each belongs to. Where other tokens
    attend than are attended to, as in a decoder or where one query pools a text, `query_tokens` names those.
    """

    tokens: Sequence[str]
    inputs: Any
    special: Sequence[bool] = ()
    word_ids: Sequence[int | None] = ()
    query_tokens: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class ModuleReader:
    """A torch module with all that was said about it: how it is fed, where it attends, where and what it answers.

    An argument whose name ends in `padding_mask` is true where padding is, as torch has it; `attention_mask` is 1 where
    tokens are, as Hugging Face has it; any other is true where tokens are. Without a mask, only texts of equal length
    run together, so padding never reaches a module that could not tell.
    """

    model: nn.Module
    name: str
    tokenize: Callable[[Any], Any]
    longest: int | None
    blank_ids: dict[str, int]
    mask: str | None
    """The argument that hides padding."""
    padding: int
    """The id that fills a batch."""
    sources: Sources
    lookup: nn.Module | None
    """The submodule that looks up the embeddings of the tokens."""
    readout: Readout | None
    pooling: nn.Module | None
    """The submodule whose output is the read-out, where it is learned."""
    answer: Callable[[Any], Any] | None
    scale: Callable[[Tensor], Tensor]
    """What makes probabilities of the logits of one text."""
    labels: tuple[str, ...] | None

    @property
    def task(self) -> str:
        """What the module is for, as far as that is known: a classifier, if it has labels."""
        return "classifier" if self.labels is not None else "module"

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """A module has one stack; whether it is causal or attends to other tokens is seen when it runs."""
        return ("encoder",)

    @property
    def vocabulary_size(self) -> int | None:
        """How many tokens the module has embeddings of, where it looks them up in a table."""
        return self.lookup.num_embeddings if isinstance(self.lookup, nn.Embedding) else None

    @property
    def summary(self) -> str:
        """Where its attention comes from."""
        return f"attention from {'a function' if self.sources.function is not None else self.sources.names}"

    def request(self, **options: Any) -> Request:
        """What the user asks of a torch module, which shows nothing but its weights."""
        request = checked_request(self.stacks, **options)
        if request.queries_and_keys or request.values or request.keep != "weights":
            raise BadInput("Queries, keys and values of a torch module cannot be read; its attention weights can.")
        return request

    shows_vectors = False

    def size(self, request: Request) -> Size | None:
        """Nothing is known before it runs."""
        del request
        return None

    def passage(self, text: Text, text_target: Text | None = None, truncation: Truncation = False) -> Passage:
        """A text through the user's `tokenize`, with a sentence about whatever does not fit."""
        if text_target is not None:
            raise BadInput(f"{type(self.model).__name__} writes no text, so text_target= has no use.")
        if truncation:
            raise BadInput("The texts of a torch module are cut by its own tokenize, not by truncate=True.")
        made = self.tokenize(text)
        if not isinstance(made, Tokenized):
            if not isinstance(made, tuple) or len(made) != 2:
                raise BadInput("tokenize must return a pair of tokens and inputs, or attnscope.Tokenized.")
            made = Tokenized(*made)
        if isinstance(made.tokens, str) or not made.tokens:
            raise BadInput("tokenize must return a list of tokens, at least one.")
        inputs = {
            name: value if isinstance(value, Tensor) else torch.as_tensor(value)
            for name, value in (made.inputs if isinstance(made.inputs, Mapping) else {IDS: made.inputs}).items()
        }
        if IDS in inputs and tuple(inputs[IDS].shape) != (len(made.tokens),):
            raise BadInput(
                f"tokenize returned {len(made.tokens)} tokens and {IDS} of the shape {tuple(inputs[IDS].shape)}: give"
                " one id for each token, without the axis of the batch."
            )
        if self.longest is not None and len(made.tokens) > self.longest:
            raise BadInput(
                f"This text has {len(made.tokens)} tokens and the model reads at most {self.longest}: shorten it."
            )
        source = Encoded(inputs, tuple(made.tokens), tuple(made.word_ids), tuple(made.special))
        queries = Encoded({}, tuple(made.query_tokens), (), ()) if made.query_tokens else None
        return Passage(text, source, queries)

    def complete(self, passages: Sequence[Passage], stack: Stack, batch_size: int) -> list[Passage]:
        """A module writes nothing."""
        del stack, batch_size
        return list(passages)

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The names of what the module's forward pass takes."""
        return tuple(inspect.signature(self.model.forward).parameters)

    @cached_property
    def device(self) -> torch.device:
        """Where the module is."""
        return next((parameter.device for parameter in self.model.parameters()), torch.device("cpu"))

    def groups(self, items: Sequence[Mapping[str, Tensor]], batch_size: int) -> list[list[int]]:
        """Positions of items that may run together."""
        shapes = [tuple(len(tensor) if tensor.ndim else 0 for tensor in item.values()) for item in items]
        if self.mask is not None:
            return by_length([max(shape) for shape in shapes], batch_size)
        alike: dict[tuple[int, ...], list[int]] = {}
        for position, shape in enumerate(shapes):
            alike.setdefault(shape, []).append(position)
        return [
            group[start : start + batch_size]
            for _, group in sorted(alike.items())
            for start in range(0, len(group), batch_size)
        ]

    def batch_of(self, items: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        """Items as one padded batch on the module's device, with its mask where it takes one."""
        batch = {
            name: nn.utils.rnn.pad_sequence(
                [item[name] for item in items], batch_first=True, padding_value=self._filling(name)
            ).to(self.device)
            for name in items[0]
        }
        if self.mask is not None and self.mask not in batch:
            lengths = torch.tensor([len(next(iter(item.values()))) for item in items], device=self.device)
            real = torch.arange(int(lengths.max()), device=self.device) < lengths.unsqueeze(1)
            batch[self.mask] = real.long() if self.mask == "attention_mask" else real
            if self.mask.endswith("padding_mask"):
                batch[self.mask] = ~real
        return batch

    def _filling(self, name: str) -> int:
        """What fills an argument behind the end of a text: a mask that the user gives hides it."""
        return self.padding if name == IDS else int(name.endswith("padding_mask"))

    def _called(self, batch: Mapping[str, Tensor]) -> Any:
        """What the module returns; ids go to the argument `input_ids`, or else to the first."""
        if IDS in batch and IDS not in self.arguments:
            return self.model(batch[IDS], **{name: value for name, value in batch.items() if name != IDS})
        return self.model(**batch)

    def run(self, batch: Mapping[str, Tensor], change: Change | None) -> Any:
        """What the module returns, unwatched."""
        with (
            without_fusion(),
            in_evaluation(self.model, self.model),
            changed_lookup(self.model, self.lookup, batch.get(IDS), change),
        ):
            return self._called(batch)

    def watch(
        self, batch: Mapping[str, Tensor], passages: Sequence[Passage], request: Request, change: Change | None
    ) -> Sight:
        """The same, with its attention and, where a submodule pools the tokens, its read-out."""
        with in_evaluation(self.model, self.model):
            with (
                changed_lookup(self.model, self.lookup, batch.get(IDS), change),
                tap_weights(self.sources) as taken,
                returned_by(self.pooling) as returned,
            ):
                output = self._called(batch)
            raw = list(taken) if self.sources.function is None else weights_by_function(self.sources, self.model, batch)
        queries = max(len(passage.target or passage.source) for passage in passages)
        shape = (len(passages), queries, max(len(passage.source) for passage in passages))
        layers = checked_layers(self.sources, self.model, [as_heads(weights) for weights in raw], shape)
        kept = [layer.float().mean(1, keepdim=True) if request.heads == "mean" else layer for layer in layers]
        pooled = None
        if self.pooling is not None:
            pooled = learned_readout(self.pooling, returned, len(passages), layers[0].shape[2])
        return Sight(output, raw, partial(self._fields, kept, pooled))

    def _fields(
        self, layers: Sequence[Tensor], pooled: Float[Tensor, "text token"] | None, row: int, passage: Passage
    ) -> dict[str, Any]:
        queries, keys = passage.target or passage.source, passage.source
        weights = torch.stack([layer[row, :, : len(queries), : len(keys)].detach().cpu() for layer in layers])
        causal = passage.target is None and looks_causal(weights)
        if pooled is None:
            readout = readout_at(self.readout, queries.tokens, causal)
        else:
            readout = pooled[row, : len(queries)].cpu()
        stack = "cross" if passage.target is not None else "decoder" if causal else "encoder"
        return {"weights": weights, "stack": stack, "causal": causal, "readout": readout}

    def answers(self, output: Any, items: Sequence[Mapping[str, Tensor]]) -> list[Float[Tensor, " outcome"] | None]:
        """The logits of each text, or None where the module answers nothing."""
        rows = self._logits(output)
        return [None] * len(items) if rows is None else list(rows)

    def _logits(self, output: Any) -> Float[Tensor, "batch outcome"] | None:
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

    def sum_read(self, output: Any, row: int, item: Mapping[str, Tensor]) -> Float[Tensor, ""] | None:
        """What a module without an answer puts out is not known."""
        del output, row, item
        return None

    def answer_batch(self, items: Sequence[Mapping[str, Tensor]]) -> dict[str, Any]:
        """Items as one batch: a module answers as it does."""
        return self.batch_of(items)

    def answers_again(self, items: Sequence[Inputs]) -> list[Float[Tensor, " outcome"] | None]:
        """The logits of items, with the embeddings they bring."""
        return plain_answers(self, items)

    def probabilities(self, logits: Float[Tensor, " outcome"]) -> Float[Tensor, " outcome"]:
        """The probability of each outcome."""
        return self.scale(logits)

    def prediction(self, logits: Float[Tensor, " outcome"] | None) -> tuple[tuple[str, float], ...]:
        """(label, probability) pairs, best first; none where the module answers nothing."""
        return () if logits is None else prediction_of(self.scale(logits.detach()).cpu(), self.labels, None)

    def target(
        self,
        outcome: int | str | None,
        against: int | str | None,
        quantity: Quantity,
        probabilities: Float[Tensor, " outcome"],
    ) -> Target:
        """What is meant by an outcome: a class by number or name, None the prediction."""
        return resolved_target(outcome, quantity, probabilities, self.labels, None, against)

    def embedded(self, item: Inputs) -> dict[str, Tensor]:
        """The same inputs with the embeddings that the module looks up for their ids."""
        found: list[Tensor] = []

        def keep(output: Tensor) -> Tensor:
            found.append(output[0].detach().float().cpu())
            return output

        with torch.no_grad():
            self.run(self.batch_of([{name: ids for name, ids in item.items() if name != EMBEDDINGS[IDS]}]), keep)
        return {**item, EMBEDDINGS[IDS]: found[0]}

    def gradients(
        self, value: Float[Tensor, ""], layers: Sequence[Tensor], embeddings: Tensor
    ) -> tuple[list[Float[Tensor, "batch head query key"]], Float[Tensor, "batch position width"]]:
        """The gradients of a value at the weights of each layer, as far as they have any, and at the embeddings."""
        return gradients_at(value, layers, embeddings)

    def card(self) -> dict[str, Any]:
        """What a reader of the record needs to make it again."""
        return card_of(self.model)


def instrument(
    module: nn.Module,
    *,
    tokenize: Callable[[Any], Any],
    attention: Any = None,
    embeddings: str | None = None,
    labels: Sequence[str] | None = None,
    readout: str | int | Callable[[tuple[str, ...]], Any] | None = None,
    answer: Callable[[Any], Any] | None = None,
    probabilities: str = "softmax",
    mask: str | None = None,
    padding: int = 0,
    blanks: Mapping[str, int] | None = None,
    longest: int | None = None,
    name: str | None = None,
) -> InstrumentedModel:
    """Make any torch module a model that gives attention records, and that methods can run again.

    `tokenize(text)` returns the tokens of a text and what the module is given for it: one id for each token, or a
    mapping of the module's arguments, without the axis of the batch; or a `Tokenized`, which can say more. The module
    is called with `[batch, token]` tensors: ids go to its argument `input_ids`, or else to its first.

    `attention` says where the weights come from: names of submodules, or a class of them, that are or hold
    `nn.MultiheadAttention` (as `nn.TransformerEncoder` does) or that return their weights; `"name.attribute"` for an
    attribute in which a module keeps them; or a function `(module, inputs) -> list of weights`, `[batch, head, query,
    key]` each. By default it is every `nn.MultiheadAttention`. Layers are counted in the order in which they run.

    `embeddings` names the submodule that looks up the tokens' ids, for gradients and blank-out (by default the only
    `nn.Embedding`). The logits are what the module returns, `.logits` of it or its first part, as far as that is
    `[batch, outcome]`, or else `answer(output)`; `labels` names the outcomes, and `probabilities` says what is made of
    logits: `"softmax"`, or `"sigmoid"` where each outcome is judged alone. `blanks` are ids that stand for no token:
    `{"unk": 1}`. `longest` is how many tokens the module reads.

    `readout` is `"first"`, `"last"` or `"mean"`, a position, a function of the tokens, or the name of a submodule that
    pools the tokens and returns the share of each, `[batch, token]`; by default the last token of causal attention,
    else all alike.

    Padding: `mask` names the argument that hides it (by default `attention_mask`, 1 where a token is, or one that ends
    in `padding_mask`, true where none is). Without one, only texts of equal length run together. `padding` is the id.

    >>> import torch
    >>> from torch import nn
    >>> class Small(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.words, self.attention = nn.Embedding(9, 8), nn.MultiheadAttention(8, 2, batch_first=True)
    ...     def forward(self, ids):
    ...         vectors = self.words(ids)
    ...         return self.attention(vectors, vectors, vectors)[0].mean(1)[:, :2]
    >>> model = instrument(Small(), tokenize=lambda text: (text.split(), [len(word) for word in text.split()]))
    >>> tuple(model.record("the key to the cabinet").weights.shape)
    (1, 2, 5, 5)

    """
    if isinstance(module, PreTrainedModel):
        raise BadInput(
            f"{type(module).__name__} is a Hugging Face model: use attnscope.load(model, tokenizer=tokenizer)."
        )
    if probabilities not in PROBABILITIES:
        raise BadInput(f"probabilities= is {' or '.join(PROBABILITIES)}, not {probabilities!r}.")
    pooling = _pooling(module, readout)
    reader = ModuleReader(
        model=module,
        name=name or type(module).__name__,
        tokenize=tokenize,
        longest=longest,
        blank_ids=dict(blanks or {}),
        mask=_mask(module, mask),
        padding=padding,
        sources=sources_of(module, attention),
        lookup=_lookup(module, embeddings),
        readout=None if pooling is not None else _readout(readout),
        pooling=pooling,
        answer=answer,
        scale=PROBABILITIES[probabilities],
        labels=None if labels is None else tuple(labels),
    )
    return InstrumentedModel(reader)


def _mask(module: nn.Module, mask: str | None) -> str | None:
    """The argument that masks padding; one that nobody names is found by its usual names."""
    arguments = inspect.signature(module.forward).parameters
    if mask is not None and mask not in arguments:
        raise BadInput(f"The forward pass of {type(module).__name__} takes no {mask}: it takes {', '.join(arguments)}.")
    return mask or next((name for name in MASKS if name in arguments), None)


def _pooling(module: nn.Module, readout: Any) -> nn.Module | None:
    """The submodule that is named as the read-out, if one is."""
    if not isinstance(readout, str) or readout in READ_AT:
        return None
    parts: dict[str, nn.Module] = dict(module.named_modules())
    if not readout or readout not in parts:
        raise BadInput(f"A read-out is {', '.join(READ_AT)}, a position, a function or a submodule, not {readout!r}.")
    return parts[readout]


def _readout(readout: Any) -> Readout | None:
    if isinstance(readout, str):
        return READ_AT[readout]
    return (lambda _tokens: readout) if isinstance(readout, int) else readout


def _lookup(module: nn.Module, name: str | None) -> nn.Module | None:
    """Where embeddings are looked up: the submodule named, or the only one that could; None where that is not clear."""
    parts: dict[str, nn.Module] = dict(module.named_modules())
    if name is None:
        found = [part for part in parts.values() if isinstance(part, nn.Embedding)]
        return found[0] if len(found) == 1 else None
    if name not in parts:
        raise BadInput(f"{type(module).__name__} has no submodule {name!r} to look embeddings up.")
    return parts[name]
