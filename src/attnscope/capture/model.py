"""InstrumentedModel: a model whose attention can be read, and which can be run again."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from numbers import Integral
from types import NoneType
from typing import Any, overload

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import BadInput
from ..record import AttentionRecord, Target, Text
from ..record.attention import Stack
from ..record.model import Inputs
from . import rerun
from .batching import by_length, windows
from .estimate import Estimate, estimate_of, refuse_too_large, size_for_estimate
from .families import size_of
from .forward import capture
from .generation import checked_generation, generated
from .long_texts import windows_of, with_places
from .outcomes import resolved_target
from .passage import Passage
from .reader import Reader
from .reading import answered, record_bytes, source_of, target_of, with_decoder_inputs
from .request import Request, check_names, checked_count, checked_request
from .senses import record_inputs

WINDOWS_TOGETHER = 16
"""How many windows of a long text run as one batch."""
PLAIN = (str, int, float, NoneType)
"""What of the options of `generate` a card can hold."""


class InstrumentedModel:
    """A Hugging Face model that gives attention records; made by `attnscope.load`.

    The model is never changed for good: it is switched for the time of a call and given back as it was.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    @property
    def model(self) -> PreTrainedModel:
        """The Hugging Face model itself."""
        return self.reader.model

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Its tokenizer."""
        return self.reader.tokenizer

    @property
    def name(self) -> str:
        """What it is called: its name on the hub, its folder, or its class."""
        return str(self.model.config.name_or_path or type(self.model).__name__)

    @property
    def task(self) -> str:
        """What the model is for: classifier, masked_lm, causal_lm, encoder or encoder_decoder."""
        return self.reader.task

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The stacks this model has; the first is the one recorded by default."""
        return self.reader.stacks

    def tokens(self, text: Text, truncate: bool = False) -> tuple[str, ...]:
        """The tokens of a text, as the model reads it."""
        return source_of(self.reader, text, longest=self.reader.longest, truncate=truncate).tokens

    @overload
    def record(self, text: Text, *, window: None = None, stride: None = None, **options: Any) -> AttentionRecord: ...

    @overload
    def record(
        self, text: Text, *, window: int, stride: int | None = None, **options: Any
    ) -> list[AttentionRecord]: ...

    @overload
    def record(self, *, inputs: Mapping[str, Any], **options: Any) -> AttentionRecord: ...

    def record(  # type: ignore[misc] # above, "options" are the keywords that follow here
        self,
        text: Text | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        window: int | None = None,
        stride: int | None = None,
        text_target: Text | None = None,
        stack: str | None = None,
        gradients: bool = False,
        target: int | str | None = None,
        quantity: str = "logit",
        heads: str = "all",
        queries_and_keys: bool = False,
        values: bool = False,
        verify: str = "once",
        truncate: bool = False,
    ) -> AttentionRecord | list[AttentionRecord]:
        """What the model does on a text, a pair of texts (a tuple) or words already split (a list).

        `inputs` takes what the model's processor makes of a picture or a sound in place of a text: patches and frames
        are then the tokens, named by their place, and `record.grid` has the rows and columns of a picture.

        `stack` is encoder, decoder or cross; an encoder-decoder records its cross-attention by default, over
        `text_target` or else over its own greedy output. A causal model reads `text_target` as the answer behind the
        text (`card["prompt_tokens"]` tells where it begins). `gradients` adds the gradients of `target` (a class or
        token, `"sum"` of all, or the prediction) with respect to embeddings and attention; `quantity` says whether of
        its logit, its probability or the `difference` to the next best. `heads="mean"` keeps only the mean over heads,
        for long inputs.

        The first time a loaded model is recorded, what is observed is compared with a run that nobody observes, and the
        weights of each layer with what the layer put out; a model that fails is refused. `verify="always"` compares
        every time, `"never"` not at all; `record.card["verified"]` says what was found.

        A text longer than the model reads is recorded in windows of `window` tokens, special tokens counted, each of
        which begins `stride` tokens after the last (by default half a window). What comes back is then a list of
        records, one for each window, in the order of the text; `record.card["window"]` says which tokens and characters
        of the text it has read. Each is a run of its own: nothing is seen across windows.
        """
        request = checked_request(
            self.stacks,
            stack=stack,
            gradients=gradients,
            target=target,
            quantity=quantity,
            heads=heads,
            queries_and_keys=queries_and_keys,
            values=values,
            verify=verify,
        )
        if (text is None) == (inputs is None):
            raise BadInput("record takes a text, or inputs= that a processor made: one of them.")
        if inputs is not None:
            if window is not None or stride is not None or text_target is not None or truncate:
                raise BadInput("window=, stride=, text_target= and truncate= are for texts, not for inputs=.")
            return record_inputs(self.reader, inputs, request)
        assert text is not None  # noqa: S101 -- one of the two is there
        if window is not None:
            checked_count("window", window)
            if stride is not None:
                checked_count("stride", stride)
            return self._windows(text, text_target, window, stride, request)
        if stride is not None:
            raise BadInput("stride= is how far windows lie apart: give window= too.")
        return next(self._in_order([self._passage(text, text_target, truncate)], 1, request))

    def _windows(
        self, text: Text, text_target: Text | None, window: int, stride: int | None, request: Request
    ) -> list[AttentionRecord]:
        """The records of a text window by window, several windows in a batch."""
        if text_target is not None:
            raise BadInput("A text in windows has no one target text: leave text_target= or window= out.")
        if self.reader.longest is not None and window > self.reader.longest:
            raise BadInput(f"A window of {window} tokens is longer than the {self.reader.longest} the model reads.")
        whole = source_of(self.reader, text, longest=None, truncate=False)
        passages = windows_of(whole, text, window, stride)
        return with_places(list(self._in_order(passages, WINDOWS_TOGETHER, request)), passages)

    def records(
        self,
        texts: Iterable[Text],
        batch_size: int = 16,
        *,
        text_targets: Iterable[Text] | None = None,
        truncate: bool = False,
        **options: Any,
    ) -> Iterator[AttentionRecord]:
        """What the model does on each text, in order, texts of like length together. Options as in `record`."""
        checked_count("batch_size", batch_size)
        if isinstance(texts, str):
            raise BadInput("records takes several texts; for one, use record(text).")
        for name, several in (("texts", texts), ("text_targets", text_targets)):
            if isinstance(several, str) or not isinstance(several, (Iterable, NoneType)):
                raise BadInput(f"records takes a list of {name}, not {type(several).__name__}.")
        check_names("records", options)
        request = checked_request(self.stacks, **options)
        return self._streamed(texts, text_targets, batch_size, truncate, request)

    def _streamed(
        self,
        texts: Iterable[Text],
        text_targets: Iterable[Text] | None,
        batch_size: int,
        truncate: bool,
        request: Request,
    ) -> Iterator[AttentionRecord]:
        size = size_of(self.model, request.stack)
        kept = size if size is None or request.heads == "all" else (size[0], 1)
        passages = self._passages(texts, text_targets, truncate)
        for window in windows(passages, batch_size, lambda passage: record_bytes(passage, kept)):
            yield from self._in_order(window, batch_size, request)

    def _passages(
        self, texts: Iterable[Text], text_targets: Iterable[Text] | None, truncate: bool
    ) -> Iterator[Passage]:
        """The texts as the model reads them; an error says which text it is about."""
        targets = None if text_targets is None else iter(text_targets)
        for number, text in enumerate(texts):
            target = None if targets is None else next(targets, None)
            if targets is not None and target is None:
                raise BadInput(f"Text {number} has no target: give text_targets one entry for each text.")
            try:
                yield self._passage(text, target, truncate)
            except BadInput as error:
                raise BadInput(f"Text {number}: {error}") from None

    def record_generation(
        self,
        prompt: Text,
        max_new_tokens: int = 20,
        *,
        truncate: bool = False,
        seed: int | None = None,
        **options: Any,
    ) -> AttentionRecord:
        """Generate, then record the whole sequence in one forward pass.

        Options are those of `record` and of transformers' `generate` (`do_sample`, `temperature`, `num_beams` …);
        without any of the latter the text is greedy. `card["prompt_tokens"]` says how many tokens of a causal model
        are the prompt. The read-out is the last token, which foretells what would come next: token `n` of the answer
        was foretold at position `n - 1`, so `scores.at(query=n - 1)` is what it was made from.
        """
        known = signature(checked_request).parameters
        request = checked_request(self.stacks, **{name: options.pop(name) for name in list(options) if name in known})
        generation = checked_generation(options, seed)
        if self.task not in ("causal_lm", "encoder_decoder"):
            raise BadInput(f"{type(self.model).__name__} does not generate text; use record(text).")
        source = source_of(self.reader, prompt, longest=self.reader.longest, truncate=truncate)
        written = generated(self.reader, source, max_new_tokens, generation)
        notes = {"generation": {name: value for name, value in generation.items() if isinstance(value, PLAIN)}}
        if self.reader.has_both_sides:
            passage = Passage(prompt, source, written, notes=notes)
        else:
            passage = Passage(prompt, written, None, notes={"prompt_tokens": len(source), **notes})
        return next(self._in_order([passage], 1, request))

    @property
    def blank_ids(self) -> dict[str, int]:
        """The ids of the tokens that can stand for no token, by name: unk, mask and pad, as far as there are any."""
        return rerun.blank_ids(self.reader)

    def probabilities(self, inputs: Sequence[Inputs], batch_size: int = 16) -> Float[Tensor, "item outcome"]:
        """The probability of every outcome, a class or a token, for inputs that look like `record.inputs`."""
        if not inputs:
            raise BadInput("There are no inputs to run.")
        rows: dict[int, Tensor] = {}
        for batch in by_length([len(item["input_ids"]) for item in inputs], self._batch_limit(batch_size)):
            found = rerun.probabilities(self.reader, [inputs[position] for position in batch])
            rows.update(zip(batch, found, strict=True))
        return torch.stack([rows[position] for position in range(len(inputs))])

    def target(self, inputs: Inputs, outcome: int | str | None = None, quantity: str = "logit") -> Target:
        """What is meant by an outcome of these inputs: a class or token by number or name, None the prediction."""
        request = checked_request(self.stacks, gradients=True, target=outcome, quantity=quantity)
        probabilities = self.probabilities([inputs])[0]
        return resolved_target(outcome, request.quantity, probabilities, self.reader.labels, self.tokenizer)

    def embedded(self, inputs: Inputs) -> dict[str, Tensor]:
        """The same inputs with the embeddings that the model looks up for their ids."""
        return rerun.embedded(self.reader, inputs)

    def target_gradients(
        self, inputs: Sequence[Inputs], target: Target
    ) -> tuple[Float[Tensor, " item"], Float[Tensor, "item position width"]]:
        """The target's value for each of these inputs, all of one length, and its gradient at the embeddings given."""
        size = self._batch_limit(len(inputs))
        found = [
            rerun.target_gradients(self.reader, inputs[start : start + size], target)
            for start in range(0, len(inputs), size)
        ]
        return torch.cat([values for values, _ in found]), torch.cat([gradients for _, gradients in found])

    def estimate(
        self,
        text_or_lengths: Any,
        batch_size: int = 16,
        *,
        stack: str | None = None,
        heads: str = "all",
        **options: Any,
    ) -> Estimate:
        """Bytes and forward passes needed, before running: for a text, texts, or numbers of tokens.

        Options as in `record`: gradients, queries, keys and values are counted in `peak_bytes`. A list is several texts
        here, also a list of words. A decoder's output is taken to be as long as its source.
        """
        checked_count("batch_size", batch_size)
        one = isinstance(text_or_lengths, (str, tuple, int))
        if not one and not isinstance(text_or_lengths, Iterable):
            raise BadInput(f"estimate takes a text, texts, or numbers of tokens, not {type(text_or_lengths).__name__}.")
        items = [text_or_lengths] if one else list(text_or_lengths)
        if not items:
            raise BadInput("There is nothing to estimate: give a text, texts, or numbers of tokens.")
        lengths = [
            checked_count("A number of tokens", item)
            if isinstance(item, (Integral, float))
            else len(source_of(self.reader, item, longest=None, truncate=False))
            for item in items
        ]
        check_names("estimate", options)
        found = self._estimate(lengths, batch_size, checked_request(self.stacks, stack=stack, heads=heads, **options))
        if found is None:
            raise BadInput(f"The configuration of {type(self.model).__name__} does not tell its layers and heads.")
        return found

    def _estimate(self, lengths: Sequence[int], batch_size: int, request: Request) -> Estimate | None:
        size = size_for_estimate(self.model, request, self.task)
        if size is None:
            return None
        writes = self.reader.has_both_sides and self.task != "classifier" and request.stack != "encoder"
        return estimate_of(lengths, batch_size, size, request, padded=self.reader.takes_padding, generates=writes)

    def _batch_limit(self, batch_size: int) -> int:
        return batch_size if self.reader.takes_padding else 1

    def _passage(self, text: Text, text_target: Text | None, truncate: bool) -> Passage:
        source = source_of(self.reader, text, longest=self.reader.longest, truncate=truncate)
        if text_target is not None and self.task == "causal_lm":
            return answered(self.reader, text, source, text_target)
        return Passage(text, source, target_of(self.reader, text_target, truncate=truncate))

    def _in_order(self, passages: Sequence[Passage], batch_size: int, request: Request) -> Iterator[AttentionRecord]:
        """Run passages of like length together, and give their records in the order of the passages."""
        size = self._batch_limit(batch_size)
        price = self._estimate([len(passage.source) for passage in passages], size, request)
        if price is not None and self.model.device.type == "cpu":
            refuse_too_large(price)
        whole = with_decoder_inputs(self.reader, passages, request.stack, size)
        records: dict[int, AttentionRecord] = {}
        for batch in by_length([len(passage.source) for passage in whole], size):
            captured = capture(self.reader, [whole[position] for position in batch], request)
            records.update(zip(batch, captured, strict=True))
        for position, passage in enumerate(whole):
            record = records.pop(position)
            yield replace(record, card={**record.card, **passage.notes}) if passage.notes else record

    def __repr__(self) -> str:
        size = size_of(self.model, self.stacks[0])
        layers = "" if size is None else f" {size[0]} layers x {size[1]} heads,"
        return f"InstrumentedModel({self.name}: {self.task},{layers} reads {self.reader.pooling})"
