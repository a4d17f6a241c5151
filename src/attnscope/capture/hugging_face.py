"""Hugging Face models as a Reader: texts become passages, a decoder writes its own output, one pass is watched."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from ..errors import BadInput
from ..record import Target, Text
from ..record.attention import Stack
from ..record.checks import looks_causal
from ..record.model import EMBEDDINGS, Inputs
from ..record.target import Quantity
from .answers import distribution, resolved_target
from .checkpoints import check_ids, embedding_count
from .collect import Collector
from .encoding import Encoded, Passage, Truncation, by_length, checked_parts, encode, encode_ids, shift_right
from .families import CODES_OF_SOUND, inner_widths, size_of
from .hub_model import HubModel, Ids, changed_lookups, decoder_start, greedy_outputs, lookups
from .memory import Size
from .prefix import answers_behind_prefix
from .reader import Change, Sight, plain_answers
from .request import Request, checked_count, checked_request
from .vectors import VectorCollector, watch_vectors
from .verifying import card_of, observed_run, self_check
from .watching import AttentionCall, evaluation_mode, implementation_of, on_interface

BLANKS = ("unk", "mask", "pad")
"""Tokens that can stand for no token, by the names tokenizers give them."""
ANSWERING = ("causal_lm", "masked_lm", "encoder_decoder")
"""Tasks whose answer is a number for each token of the vocabulary."""


class HuggingFaceReader(HubModel):
    """A model of transformers, read."""

    @property
    def blank_ids(self) -> dict[str, int]:
        """The ids of the blank tokens that both the tokenizer and the model know."""
        known = embedding_count(self.model)
        if self.given_tokenizer is None or known is None:
            return {}
        found = {name: getattr(self.tokenizer, f"{name}_token_id", None) for name in BLANKS}
        return {name: int(index) for name, index in found.items() if index is not None and index < known}

    @property
    def vocabulary_size(self) -> int | None:
        """How many tokens the model has embeddings of."""
        return embedding_count(self.model)

    @property
    def summary(self) -> str:
        """Its task, its size and where it reads its answer."""
        size = size_of(self.model, self.stacks[0])
        layers = "" if size is None else f" {size[0]} layers x {size[1]} heads,"
        return f"{self.task},{layers} reads {self.pooling}"

    def request(self, **options: Any) -> Request:
        """What a record shall hold, or one sentence about what this model cannot give."""
        return checked_request(self.stacks, **options)

    def size(self, request: Request) -> Size | None:
        """What the configuration and the modules tell of a stack, or None where its layers and heads are not told."""
        if request.stack not in self._sizes:
            self._sizes[request.stack] = self._size(request.stack)
        size = self._sizes[request.stack]
        return self._all_stacks(size) if request.all_stacks and size is not None else size

    def _all_stacks(self, size: Size) -> Size:
        """The size of three stacks in one record, by that of cross-attention: a bound where their heads differ."""
        below = size_of(self.model, "encoder")
        heads = size.heads if below is None else max(size.heads, below[1])
        return replace(size, layers=size.attentions, heads=heads, is_bound=True)

    @cached_property
    def _sizes(self) -> dict[Stack, Size | None]:
        return {}

    def _size(self, stack: Stack) -> Size | None:
        size = size_of(self.model, stack)
        if size is None:
            return None
        layers, heads = size
        config = self.model.config.get_text_config()
        width = getattr(config, "hidden_size", None) or getattr(config, "d_model", None)
        width = width if isinstance(width, int) else 0
        head_width, groups = (_of_all_layers(config, name) for name in ("head_dim", "num_key_value_heads"))
        table = self.model.get_output_embeddings() if self.task in ANSWERING else None
        below = size_of(self.model, "encoder") if self.has_both_sides else None
        above = (size_of(self.model, "decoder") or size)[0]
        inner, saved = inner_widths(self.model, heads, groups or heads, head_width or width // heads)
        names = [name for name, _ in self.model.named_modules()]
        has_biases = any(name.endswith("relative_attention_bias") for name in names)
        return Size(
            layers=layers,
            heads=heads,
            width=width,
            head_width=head_width or width // heads,
            groups=groups or heads,
            outcomes=0 if table is None else int(getattr(table, "out_features", 0)),
            answers_everywhere=self.task != "causal_lm" or "logits_to_keep" not in self.accepted,
            takes_padding=self.takes_padding,
            generates=self.has_both_sides and self.task != "classifier" and stack != "encoder",
            number_bytes=self.model.dtype.itemsize,
            attentions=layers if below is None else below[0] + 2 * above,
            inner=inner,
            saved=saved,
            biased=0 if not has_biases else layers if below is None else below[0] + above,
            has_softcap=getattr(config, "attn_logit_softcapping", None) is not None,
            has_windows=getattr(config, "sliding_window", None) is not None,
            is_fused=implementation_of(self.model) != "eager",
            is_bound=any(name.endswith("experts") for name in names),
        )

    def passage(self, text: Text, text_target: Text | None = None, truncation: Truncation = False) -> Passage:
        """A text as the model reads it; a causal model reads the target as the answer behind the text."""
        source = source_of(self, text, longest=self.longest, truncation=truncation)
        if text_target is not None and self.task == "causal_lm":
            return _answered(self, text, source, text_target)
        return Passage(text, source, _decoder_input(self, text_target, truncation))

    def complete(self, passages: Sequence[Passage], stack: Stack, batch_size: int) -> list[Passage]:
        """The passages of an encoder-decoder with what its decoder reads: the encoder alone asks it for nothing."""
        if not self.has_both_sides:
            return list(passages)
        filled: dict[int, Encoded] = {}
        if self.task == "classifier":
            start = decoder_start(self)
            filled = {
                place: shift_right(self.tokenizer, passage.source, start) for place, passage in enumerate(passages)
            }
        elif stack == "encoder":
            start_alone = encode_ids(self.tokenizer, [decoder_start(self)])
            filled = dict.fromkeys(range(len(passages)), start_alone)
        else:
            missing = [place for place, passage in enumerate(passages) if passage.target is None]
            for batch in self.groups([passages[place].source.inputs for place in missing], batch_size):
                places = [missing[position] for position in batch]
                filled |= zip(places, greedy_outputs(self, [passages[place].source for place in places]), strict=True)
        return [replace(passage, target=passage.target or filled[place]) for place, passage in enumerate(passages)]

    def groups(self, items: Sequence[Mapping[str, Tensor]], batch_size: int) -> list[list[int]]:
        """Positions of items of like length; one by one where padding would change the answer.

        An encoder-decoder that classifies answers where both copies of its text end, so they must be of one length.
        """
        for item in items:
            if self.task == "classifier" and len(item.get("decoder_input_ids", item["input_ids"])) != len(
                item["input_ids"]
            ):
                raise BadInput(
                    f"{type(self.model).__name__} reads its text on both sides, so a token cannot be deleted on one:"
                    " replace it instead."
                )
        return by_length([len(item["input_ids"]) for item in items], batch_size if self.takes_padding else 1)

    def run(self, batch: Mapping[str, Any], change: Change | None) -> Any:
        """What the model returns, unwatched."""
        with evaluation_mode(self.model), changed_lookups(self.model, change):
            return self.model(**batch)

    def watch(
        self, batch: Mapping[str, Any], passages: Sequence[Passage], request: Request, change: Change | None
    ) -> Sight:
        """The same, with its attention; the check, where there is one, runs the model before."""
        if request.keep != "weights":
            return self._watch_vectors(batch, request, change)
        del passages  # the collector cuts off padding when the records are made
        heads_mean = request.heads == "mean"
        collector = Collector(self.model, request.stack, heads_mean, request.queries_and_keys, request.values)
        others: tuple[Stack, ...] = ("encoder", "decoder") if request.all_stacks else ()
        beside = [Collector(self.model, stack, heads_mean, queries_and_keys=False, values=False) for stack in others]

        in_turn: list[Stack] = []

        def each_stack(call: AttentionCall) -> None:
            if call.module is not None:  # else it comes when the model is through, and tells nothing of the order
                in_turn.append(call.stack)
            for one in (collector, *beside):
                one(call)

        check = self_check(self.model, batch, request.verify)
        with changed_lookups(self.model, change):
            output = observed_run(self.model, batch, each_stack, check)
        if request.all_stacks:
            self._check_order([stack for stack in in_turn if stack != "encoder"])
        return Sight(output, collector.layers, partial(self._fields, collector, beside))

    def _check_order(self, in_turn: Sequence[Stack]) -> None:
        """Refuse a decoder whose layers do not attend to what they have read first, and then to the source."""
        if list(in_turn) != ["decoder", "cross"] * (len(in_turn) // 2):
            raise BadInput(
                f"Not every layer of the decoder of {type(self.model).__name__} attends first to what it has read and"
                " then to the source, so its stacks cannot be joined: record one of them."
            )

    @property
    def shows_vectors(self) -> bool:
        """Whether the model computes its attention where its queries and keys can be read."""
        return on_interface(self.model)

    def _watch_vectors(self, batch: Mapping[str, Any], request: Request, change: Change | None) -> Sight:
        """The same with queries and keys in place of weights."""
        dtype = torch.bfloat16 if request.keep == "bfloat16 vectors" else torch.float32
        # the gradient at a weight is that of what the layer put out, times the key's value
        collector = VectorCollector(self.model, request.stack, request.values or request.gradients, dtype)
        check = self_check(self.model, batch, request.verify)
        with watch_vectors(self.model, collector) as run, changed_lookups(self.model, change):
            output = run(**batch)
        if check is not None:
            check.finish(output)
        return Sight(output, collector.outputs, partial(self._vector_fields, collector))

    def _vector_fields(self, collector: VectorCollector, _row: int, passage: Passage) -> dict[str, Any]:
        fields = collector.fields()
        stack = collector.stack
        causal = stack == "decoder" and (len(passage.sides(stack)[0]) == 1 or set(fields["ahead"]) == {0})
        return {**fields, "stack": stack, "causal": causal, "readout": self.readout(passage, stack)}

    def _fields(self, collector: Collector, beside: Sequence[Collector], row: int, passage: Passage) -> dict[str, Any]:
        stack = collector.stack
        queries, keys = passage.sides(stack)
        fields = collector.item(row, len(queries), len(keys))
        for other in beside:
            length = len(passage.sides(other.stack)[0])
            fields[f"{other.stack}_weights"] = other.joinable(row, length, len(fields["weights"]))
        causal = stack == "decoder" and (len(queries) == 1 or looks_causal(fields["weights"]))
        return {**fields, "stack": stack, "causal": causal, "readout": self.readout(passage, stack)}

    def answers(self, output: Any, items: Sequence[Ids]) -> list[Float[Tensor, " outcome"] | None]:
        """The logits of each item where the model reads its answer, or None where it answers nothing."""
        missing = _positions_missing(output, items) if self.task == "causal_lm" else 0
        return [self.logits(output, row, item, missing) for row, item in enumerate(items)]

    def answer_batch(self, items: Sequence[Ids]) -> dict[str, Any]:
        """Items as one batch that asks for logits only from where they are read."""
        return self.batch_of(items) | self.only_answers(items)

    def answers_again(self, items: Sequence[Inputs]) -> list[Float[Tensor, " outcome"] | None]:
        """The logits of items, with the embeddings they bring; what they have in common at the front is run once."""
        found = answers_behind_prefix(self, items, partial(plain_answers, self))
        return plain_answers(self, items) if found is None else [*found]

    def sum_read(self, output: Any, row: int, item: Ids) -> Float[Tensor, ""] | None:
        """The sum of the last hidden states that are read out, where the model returns them."""
        hidden = getattr(output, "last_hidden_state", None)
        if hidden is None:
            return None
        length = len(item.get("decoder_input_ids", item["input_ids"]))
        read: Tensor = distribution(self.position(item), length).to(hidden) @ hidden[row, :length]
        return read.sum()

    def target(
        self,
        outcome: int | str | None,
        against: int | str | None,
        quantity: Quantity,
        probabilities: Float[Tensor, " outcome"],
    ) -> Target:
        """What is meant by an outcome: a class or token by number or name, None the prediction."""
        return resolved_target(outcome, quantity, probabilities, self.labels, self.given_tokenizer, against)

    def embedded(self, item: Inputs) -> dict[str, Tensor]:
        """The inputs with the embeddings the model looks up for their ids."""
        found = dict(item)
        for (ids_name, name), module in zip(EMBEDDINGS.items(), lookups(self.model), strict=False):
            with torch.no_grad():
                found[name] = module(item[ids_name].to(cast(Tensor, module.weight).device)).float().cpu()
        return found

    def gradients(
        self, value: Float[Tensor, ""], layers: Sequence[Tensor], embeddings: Tensor
    ) -> tuple[list[Float[Tensor, "*layer"]], Float[Tensor, "batch position width"]]:
        """The gradients of a value at what each layer shows (weights, or what it put out), and at the embeddings."""
        *of_layers, at_embeddings = attention_gradients(self.model, value, layers, embeddings)
        return of_layers, at_embeddings

    def card(self) -> dict[str, Any]:
        """What a reader of the record needs to make it again."""
        return card_of(self.model)


def _positions_missing(output: Any, items: Sequence[Ids]) -> int:
    """How many positions at the front have no logits, because nobody asked for them."""
    logits = getattr(output, "logits", None)
    if logits is None or logits.ndim < 3:
        return 0
    return max(max(len(item["input_ids"]) for item in items) - int(logits.shape[1]), 0)


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


# ---- texts


def source_of(reader: HubModel, text: Text, *, longest: int | None, truncation: Truncation = False) -> Encoded:
    """The tokens of a text, at most `longest` of them, with only the inputs that this model takes."""
    if reader.model.config.model_type in CODES_OF_SOUND:
        raise BadInput(
            f"{type(reader.model).__name__} reads or writes several codes of a sound at each position, so a text is not"
            " enough for it: record it with inputs=, with the codes among them."
        )
    embedded = embedding_count(reader.model)
    encoded = encode(reader.tokenizer, text, longest, truncation=truncation, embedded=embedded)
    taken = {name: ids for name, ids in encoded.inputs.items() if name == "input_ids" or name in reader.accepted}
    return replace(encoded, inputs=taken)


def lengths_of(reader: HubModel, given: Any) -> list[int]:
    """How many tokens a text, texts, or numbers of tokens have."""
    one = isinstance(given, (str, tuple, int))
    if not one and not isinstance(given, Iterable):
        raise BadInput(f"estimate takes a text, texts, or numbers of tokens, not {type(given).__name__}.")
    items = [given] if one else list(given)
    if not items:
        raise BadInput("There is nothing to estimate: give a text, texts, or numbers of tokens.")
    return [
        checked_count("A number of tokens", item)
        if isinstance(item, (Integral, float))
        else len(source_of(reader, item, longest=None))
        for item in items
    ]


def _decoder_input(reader: HubModel, text_target: Text | None, truncation: Truncation) -> Encoded | None:
    """What a decoder reads to say the target text."""
    if text_target is None:
        return None
    if not reader.has_both_sides:
        name = type(reader.model).__name__
        raise BadInput(f"{name} writes no text, so text_target= has no use.")
    labels = encode(reader.tokenizer, text_target, reader.longest, truncation=bool(truncation), as_target=True)
    return shift_right(reader.tokenizer, labels, decoder_start(reader))


def _of_all_layers(config: Any, name: str) -> int | None:
    """A number of the configuration; None where it has none, or another one for each layer (Gemma 4)."""
    try:
        number = getattr(config, name, None)
    except RuntimeError:  # which transformers raises for what differs between layers
        return None
    return number if isinstance(number, int) else None


def _answered(reader: HubModel, text: Text, source: Encoded, answer: Text) -> Passage:
    """What a causal model reads when a given answer stands behind the prompt; its tokens are its own, as generated."""
    first, second = checked_parts(answer)
    if not isinstance(first, str) or second is not None:
        raise BadInput("The answer of a causal model is one string, as it goes on from the prompt.")
    ids = list(reader.tokenizer(first, add_special_tokens=False, verbose=False)["input_ids"])
    check_ids(reader.tokenizer, ids, embedding_count(reader.model))
    if reader.longest is not None and len(source) + len(ids) > reader.longest:
        raise BadInput(
            f"{len(source)} tokens and an answer of {len(ids)} are more than the {reader.longest} the model reads."
        )
    whole = source.followed_by(encode_ids(reader.tokenizer, ids))
    return Passage(text, whole, None, notes={"prompt_tokens": len(source), "answer": first})
