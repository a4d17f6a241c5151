"""Hugging Face models as a Reader: texts become passages, a decoder writes its own output, one pass is watched."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from ..errors import BadInput
from ..record import Target, Text
from ..record.attention import Stack
from ..record.checks import looks_causal
from ..record.model import EMBEDDINGS, Inputs
from ..record.target import Quantity
from .answers import distribution, resolved_target
from .checkpoints import check_ids, embedding_count
from .collect import Collector
from .encoding import Encoded, Passage, Truncation, by_length, checked_parts, encode, encode_ids, shifted
from .families import CODES_OF_SOUND, size_of
from .hub_model import HubModel, Ids, changed_lookups, lookups
from .reader import Change, Sight
from .request import Request, Size, checked_request
from .verifying import SelfCheck, card_of, self_check
from .watching import Observer, restored, watch_model

GREEDY_TOKENS = 128
"""How far a decoder goes on by itself where the user gives no target text."""
GREEDY = {"do_sample": False, "num_beams": 1}
ONE_SEQUENCE = frozenset(
    {"num_return_sequences", "return_dict_in_generate", "output_scores", "output_logits", "output_attentions"}
    | {"output_hidden_states", "max_length", "max_new_tokens"}
)
"""What would change the form of the output, or how long it is said to be."""
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
        """What the configuration tells of a stack, or None where it does not tell its layers and heads."""
        size = size_of(self.model, request.stack)
        if size is None:
            return None
        config = self.model.config.get_text_config()
        width = getattr(config, "hidden_size", None) or getattr(config, "d_model", None)
        table = self.model.get_output_embeddings() if self.task in ANSWERING else None
        return Size(
            *size,
            width=width if isinstance(width, int) else 0,
            outcomes=0 if table is None else int(getattr(table, "out_features", 0)),
            takes_padding=self.takes_padding,
            generates=self.has_both_sides and self.task != "classifier" and request.stack != "encoder",
        )

    def passage(self, text: Text, text_target: Text | None = None, truncation: Truncation = False) -> Passage:
        """A text as the model reads it; a causal model reads the target as the answer behind the text."""
        source = source_of(self, text, longest=self.longest, truncation=truncation)
        if text_target is not None and self.task == "causal_lm":
            return _answered(self, text, source, text_target)
        return Passage(text, source, _decoder_input(self, text_target, truncation))

    def completed(self, passages: Sequence[Passage], stack: Stack, batch_size: int) -> list[Passage]:
        """The passages of an encoder-decoder with what its decoder reads: the encoder alone asks it for nothing."""
        if not self.has_both_sides:
            return list(passages)
        filled: dict[int, Encoded] = {}
        if self.task == "classifier":
            start = decoder_start(self)
            filled = {place: shifted(self.tokenizer, passage.source, start) for place, passage in enumerate(passages)}
        elif stack == "encoder":
            start_alone = encode_ids(self.tokenizer, [decoder_start(self)])
            filled = dict.fromkeys(range(len(passages)), start_alone)
        else:
            missing = [place for place, passage in enumerate(passages) if passage.target is None]
            for batch in self.groups([passages[place].source.inputs for place in missing], batch_size):
                places = [missing[position] for position in batch]
                filled |= zip(places, _greedy_outputs(self, [passages[place].source for place in places]), strict=True)
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
        with restored(self.model), changed_lookups(self.model, change):
            return self.model(**batch)

    def watch(
        self, batch: Mapping[str, Any], passages: Sequence[Passage], request: Request, change: Change | None
    ) -> Sight:
        """The same, with its attention; the check, where there is one, runs the model before."""
        del passages  # the collector cuts off padding when the records are made
        heads_mean = request.heads == "mean"
        collector = Collector(self.model, request.stack, heads_mean, request.queries_and_keys, request.values)
        check = self_check(self.model, batch, request.verify)
        with changed_lookups(self.model, change):
            output = observed_run(self.model, batch, collector, check)
        return Sight(output, collector.layers, partial(self._fields, collector))

    def _fields(self, collector: Collector, row: int, passage: Passage) -> dict[str, Any]:
        stack = collector.stack
        queries, keys = passage.sides(stack)
        fields = collector.item(row, len(queries), len(keys))
        causal = stack == "decoder" and (len(queries) == 1 or looks_causal(fields["weights"]))
        return {**fields, "stack": stack, "causal": causal, "readout": self.readout(passage, stack)}

    def answers(self, output: Any, items: Sequence[Ids]) -> list[Float[Tensor, " outcome"] | None]:
        """The logits of each item where the model reads its answer, or None where it answers nothing."""
        return [self.logits(output, row, item) for row, item in enumerate(items)]

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
    ) -> tuple[list[Float[Tensor, "batch head query key"]], Float[Tensor, "batch position width"]]:
        """The gradients of a value at the weights of each layer, and at the embeddings."""
        *of_layers, at_embeddings = attention_gradients(self.model, value, layers, embeddings)
        return of_layers, at_embeddings

    def card(self) -> dict[str, Any]:
        """What a reader of the record needs to make it again."""
        return card_of(self.model)


def observed_run(model: PreTrainedModel, batch: Mapping[str, Any], observer: Observer, check: SelfCheck | None) -> Any:
    """Run the model while the observer looks on; the check, where there is one, looks first."""
    if check is None:
        with watch_model(model, observer) as run:
            return run(**batch)
    with watch_model(model, check.observer(observer)) as run, check.around():
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


def _decoder_input(reader: HubModel, text_target: Text | None, truncation: Truncation) -> Encoded | None:
    """What a decoder reads to say the target text."""
    if text_target is None:
        return None
    if not reader.has_both_sides:
        name = type(reader.model).__name__
        raise BadInput(f"{name} writes no text, so text_target= has no use.")
    labels = encode(reader.tokenizer, text_target, reader.longest, truncation=bool(truncation), as_target=True)
    return shifted(reader.tokenizer, labels, decoder_start(reader))


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
    return Passage(text, whole, None, notes={"prompt_tokens": len(source)})


# ---- generation


def decoder_start(reader: HubModel) -> int:
    """The token that begins every output of an encoder-decoder."""
    for holder in (getattr(reader.model, "generation_config", None), reader.model.config):
        start = getattr(holder, "decoder_start_token_id", None)
        if start is not None:
            return int(start)
    raise BadInput("This model's configuration has no decoder_start_token_id, so its decoder cannot begin.")


def _greedy_outputs(reader: HubModel, sources: Sequence[Encoded]) -> list[Encoded]:
    """What an encoder-decoder says to each source, as the input its decoder reads while saying it."""
    room = GREEDY_TOKENS if reader.longest is None else min(GREEDY_TOKENS, reader.longest - 1)
    written = _sequences(reader, sources, room, GREEDY)
    return [encode_ids(reader.tokenizer, _without_end(reader, sequence, 1)) for sequence in written]


def checked_generation(options: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """The user's options of transformers' `generate`, with a seed where they draw; greedy without any."""
    unknown = [name for name in options if name not in vars(GenerationConfig()) or name.startswith("_")]
    if unknown:
        raise BadInput(f"record_generation takes no {unknown[0]}: its options are those of record and of generate.")
    fixed = [name for name in options if name in ONE_SEQUENCE]
    if fixed:
        raise BadInput(
            f"A record is of one sequence and its attention, so {fixed[0]}= has no use in record_generation."
        )
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63):
        raise BadInput(f"seed is a whole number from 0 to 2**63 - 1, not {seed!r}.")
    chosen = {**GREEDY, **options}
    # the random state is put back after each call: without a seed of its own, every call would draw the same text
    return {**chosen, "seed": secrets.randbits(32) if seed is None and chosen["do_sample"] else seed}


def generate(reader: HubModel, source: Encoded, max_new_tokens: int, options: Mapping[str, Any]) -> Encoded:
    """The prompt and its continuation, or an encoder-decoder's output, without the end token that closes it."""
    prompt = [] if reader.has_both_sides else source.inputs["input_ids"].tolist()
    read = len(prompt) or 1
    if isinstance(max_new_tokens, bool) or not isinstance(max_new_tokens, int) or max_new_tokens < 1:
        raise BadInput(f"max_new_tokens must be at least 1, not {max_new_tokens}.")
    if reader.longest is not None and read + max_new_tokens > reader.longest:
        raise BadInput(
            f"{read} tokens and {max_new_tokens} new ones are more than the {reader.longest} the model reads:"
            " lower max_new_tokens."
        )
    sequence = _without_end(reader, _sequences(reader, [source], max_new_tokens, options)[0], read)
    if not prompt:
        return encode_ids(reader.tokenizer, sequence)
    new = sequence[len(prompt) :]
    return source.followed_by(encode_ids(reader.tokenizer, new)) if new else source


def _sequences(
    reader: HubModel, sources: Sequence[Encoded], max_new_tokens: int, options: Mapping[str, Any]
) -> list[list[int]]:
    if not reader.model.can_generate():
        raise BadInput(f"{type(reader.model).__name__} cannot generate: give the decoder's text as text_target=.")
    batch = reader.batched([source.inputs for source in sources])
    inputs: dict[str, Any] = {name: tensor for name, tensor in batch.items() if isinstance(tensor, torch.Tensor)}
    if reader.has_both_sides:
        inputs["decoder_start_token_id"] = decoder_start(reader)
    wishes = {name: value for name, value in options.items() if name != "seed"}
    # what the user's generation config may say about the form of the output must not reach us
    form = {"num_return_sequences": 1, "return_dict_in_generate": False, "max_new_tokens": max_new_tokens}
    with torch.no_grad(), restored(reader.model):
        if options.get("seed") is not None:
            torch.manual_seed(options["seed"])
        try:
            sequences = reader.model.generate(  # type: ignore[operator]
                **{"pad_token_id": reader.padding, **inputs, **wishes, **form}
            )
        except (TypeError, ValueError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".:")
            raise BadInput(f"The model cannot generate with these options: {reason}.") from None
    return [list(sequence) for sequence in sequences.tolist()]


def _without_end(reader: HubModel, sequence: list[int], read: int) -> list[int]:
    """The sequence without the end token, and without the padding behind it, that close it."""
    config = getattr(reader.model, "generation_config", None)
    named = [getattr(config, "eos_token_id", None), reader.tokenizer.eos_token_id, reader.padding]
    ends = {end for name in named if name is not None for end in (name if isinstance(name, list) else [name])}
    while len(sequence) > read and sequence[-1] in ends:
        sequence = sequence[:-1]
    return sequence
