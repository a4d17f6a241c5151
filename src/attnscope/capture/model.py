"""InstrumentedModel: a model whose attention can be read, and which can be run again."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from types import NoneType
from typing import Any, TypeVar, overload

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ..errors import BadInput
from ..numerals import in_words
from ..record import AttentionRecord, Segments, Target, Text
from ..record.attention import Stack
from ..record.model import EMBEDDINGS, Inputs
from .alignment import with_segments
from .answers import prediction_of
from .conversation import Documents, Message, conversation_passage, generated_passage
from .encoding import Passage, Truncation, checked_truncation, windows, windows_of, with_places
from .hub_model import checked_generation
from .hugging_face import HuggingFaceReader, lengths_of, source_of
from .likelihood import answer_gradients, answer_log_probabilities
from .prefix import may_go_on
from .reader import Reader, capture, gradients_again, probabilities_again
from .request import (
    Estimate,
    Request,
    check_names,
    check_sources,
    checked_count,
    checked_request,
    estimate_of,
    estimate_of_method,
    is_too_large,
    settled,
    too_large,
    vectors_instead,
)
from .senses import record_inputs
from .streaming import See, stream_layers

WINDOWS_TOGETHER = 16
"""How many windows of a long text run as one batch."""
Found = TypeVar("Found")


class InstrumentedModel:
    """A model that gives attention records, and can be run again; made by `attnscope.load` or `attnscope.instrument`.

    The model is never changed for good: it is switched for the time of a call and given back as it was.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    @property
    def model(self) -> Any:
        """The Hugging Face model or the torch module itself."""
        return self.reader.model

    @property
    def hugging_face(self) -> HuggingFaceReader:
        """The reader of a Hugging Face model; a torch module is refused."""
        if not isinstance(self.reader, HuggingFaceReader):
            raise BadInput(
                f"{self.name} is a torch module with a tokenize of its own, and this is for Hugging Face models: load"
                " one with attnscope.load."
            )
        return self.reader

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The tokenizer of a Hugging Face model."""
        return self.hugging_face.tokenizer

    @property
    def name(self) -> str:
        """What it is called: its name on the hub, its folder, or its class."""
        return self.reader.name

    @property
    def task(self) -> str:
        """What the model is for: classifier, masked_lm, causal_lm, encoder or encoder_decoder; else module."""
        return self.reader.task

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The stacks this model has; the first is the one recorded by default."""
        return self.reader.stacks

    def tokens(self, text: Text, truncate: bool = False, truncation: Truncation = False) -> tuple[str, ...]:
        """The tokens of a text, as the model reads it."""
        return self.reader.passage(text, truncation=checked_truncation(truncation, truncate)).source.tokens

    @overload
    def record(self, text: Text, *, window: None = None, stride: None = None, **options: Any) -> AttentionRecord: ...

    @overload
    def record(
        self, text: Text, *, window: int, stride: int | None = None, **options: Any
    ) -> list[AttentionRecord]: ...

    @overload
    def record(self, *, inputs: Mapping[str, Any] | None = None, **options: Any) -> AttentionRecord: ...

    def record(
        self,
        text: Text | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        messages: Sequence[Message] | None = None,
        documents: Documents | None = None,
        question: str | None = None,
        answer: str | None = None,
        window: int | None = None,
        stride: int | None = None,
        text_target: Text | None = None,
        segments: Segments | None = None,
        stack: str | None = None,
        gradients: bool = False,
        target: int | str | None = None,
        against: int | str | None = None,
        quantity: str = "logit",
        heads: str = "all",
        queries_and_keys: bool = False,
        values: bool = False,
        verify: str = "once",
        keep: str = "weights",
        truncate: bool = False,
        truncation: Truncation = False,
        **generation: Any,
    ) -> AttentionRecord | list[AttentionRecord]:
        """What the model does on a text, a pair of texts (a tuple) or words already split (a list).

        A torch module takes whatever its `tokenize` takes. A text that is too long is refused, unless `truncation` says
        as in transformers how it is cut: True, or `"longest_first"`, `"only_first"` or `"only_second"` of a pair;
        `truncate=True` is the same as `truncation=True`.

        `inputs` takes what the model's processor makes of a picture or a sound in place of a text: patches and frames
        are then the tokens, named by their place, and `record.grid` has the rows and columns of a picture.

        `stack` is encoder, decoder or cross; an encoder-decoder records its cross-attention by default, over
        `text_target` or else over its own greedy output. `stack="all"` puts the encoder's and the decoder's attention
        to themselves beside it, all of one pass, so that rollout can follow an output token to the source. A causal
        model reads `text_target` as the answer behind the text (`card["prompt_tokens"]` tells where it begins).
        `gradients` adds the gradients of `target` (a class or token, `"sum"` of all, or the prediction) with respect to
        embeddings and attention; `quantity` says whether of its logit, its probability or the `difference` to the next
        best, and `against` another outcome takes that one's off: why this and not that? `heads="mean"` keeps only the
        mean over heads, for long inputs.

        `keep="vectors"` keeps queries and keys in place of the weights between them (a `VectorRecord`), so that memory
        grows with the tokens and not with their square; `"bfloat16 vectors"` takes half of that, and `"auto"` keeps
        weights of short texts only. A text whose weights do not fit is recorded with vectors, with a warning.

        The first time a loaded model is recorded, what is observed is compared with a run that nobody observes, and the
        weights of each layer with what the layer put out; a model that fails is refused. `verify="always"` compares
        every time, `"never"` not at all; `record.card["verified"]` says what was found.

        `messages` is a conversation, {"role": …, "content": …} for each turn, which a causal model reads as its chat
        template writes it; `documents` (texts, or pairs of title and text) and a `question` are put into the last turn
        of the user, and a model without a template reads them as plain text. `answer` is what was said to it, or the
        assistant's turn at the end; else the model writes one, with `max_new_tokens`, `seed` and the options of
        `generate`. The record has the levels turn, document and sentence; `attnscope.answer` explains it.
        `segments` are named spans of the text (`attnscope.Segments`): levels that `record.by` and `scores.by` know.
        A text longer than the model reads is recorded in windows of `window` tokens, special tokens counted, each of
        which begins `stride` tokens after the last (by default half a window). What comes back is then a list of
        records, one for each window, in the order of the text; `record.card["window"]` says which tokens and characters
        of the text it has read. Each is a run of its own: nothing is seen across windows.
        """
        request = self.reader.request(
            stack=stack,
            gradients=gradients,
            target=target,
            against=against,
            quantity=quantity,
            heads=heads,
            queries_and_keys=queries_and_keys,
            values=values,
            verify=verify,
            keep=keep,
        )
        cut = checked_truncation(truncation, truncate)
        conversation = (messages, documents, question, answer)
        others = {"window": window, "stride": stride, "text_target": text_target, "truncate": cut or None}
        check_sources(text, inputs, conversation, others, generation)
        if inputs is not None:
            if segments is not None or request.keep != "weights":
                raise BadInput("Segments and vectors are of texts: record inputs= without segments=, and with weights.")
            return record_inputs(self.hugging_face, inputs, request)
        if text is None:
            passage = conversation_passage(self.hugging_face, *conversation, segments, generation)
            return next(self._in_order([passage], 1, request))
        if window is not None:
            checked_count("window", window)
            if stride is not None:
                checked_count("stride", stride)
            if text_target is not None:
                raise BadInput("A text in windows has no one target text: leave text_target= or window= out.")
            return self._windows(text, window, stride, request, segments)
        if stride is not None:
            raise BadInput("stride= is how far windows lie apart: give window= too.")
        passage = with_segments(self.reader, self.reader.passage(text, text_target, cut), segments)
        return next(self._in_order([passage], 1, request))

    def _windows(
        self, text: Text, window: int, stride: int | None, request: Request, segments: Segments | None
    ) -> list[AttentionRecord]:
        """The records of a text window by window, several windows in a batch."""
        reader = self.hugging_face
        if reader.longest is not None and window > reader.longest:
            raise BadInput(f"A window of {window} tokens is longer than the {reader.longest} the model reads.")
        whole = source_of(reader, text, longest=None)
        whole = with_segments(reader, Passage(text, whole, None), segments).source
        passages = [replace(passage, segments=segments) for passage in windows_of(whole, text, window, stride)]
        return with_places(list(self._in_order(passages, WINDOWS_TOGETHER, request)), passages)

    def records(
        self,
        texts: Iterable[Text],
        batch_size: int = 16,
        *,
        text_targets: Iterable[Text] | None = None,
        truncate: bool = False,
        truncation: Truncation = False,
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
        request = self.reader.request(**options)
        passages = self._passages(texts, text_targets, checked_truncation(truncation, truncate))
        return self._streamed(passages, batch_size, request)

    def stream(
        self, text: Text, see: See, *, stack: str | None = None, text_target: Text | None = None, truncate: bool = False
    ) -> None:
        """Show each layer's weights[head, query, key] to `see(layer, weights)` as the model computes them; keep none.

        So a long text takes the memory of one layer, also in families that do not give queries and keys. What a learned
        sink takes is missing in a row's sum. Layers are counted in the order in which the model comes to them.
        """
        request, reader = self.reader.request(stack=stack), self.hugging_face
        if request.all_stacks:
            raise BadInput('stream shows the layers of one stack: give stack="encoder", "decoder" or "cross".')
        passage = reader.passage(text, text_target, checked_truncation(False, truncate))
        stream_layers(reader, reader.complete([passage], request.stack, 1)[0], request, see)

    def _streamed(self, passages: Iterator[Passage], batch_size: int, request: Request) -> Iterator[AttentionRecord]:
        size = self.reader.size(request)

        def weight_bytes(passage: Passage) -> int:
            return 0 if size is None else size.weight_bytes(len(passage.source), request.heads)

        for window in windows(passages, batch_size, weight_bytes):
            yield from self._in_order(window, batch_size, request)

    def _passages(
        self, texts: Iterable[Text], text_targets: Iterable[Text] | None, truncation: Truncation
    ) -> Iterator[Passage]:
        """The texts as the model reads them; an error says which text it is about."""
        targets = None if text_targets is None else iter(text_targets)
        for number, text in enumerate(texts):
            target = None if targets is None else next(targets, None)
            if targets is not None and target is None:
                raise BadInput(f"Text {number} has no target: give text_targets one entry for each text.")
            try:
                yield self.reader.passage(text, target, truncation)
            except BadInput as error:
                raise BadInput(f"Text {number}: {error}") from None

    def record_generation(
        self,
        prompt: Text,
        max_new_tokens: int = 20,
        *,
        truncate: bool = False,
        truncation: Truncation = False,
        seed: int | None = None,
        **options: Any,
    ) -> AttentionRecord:
        """Generate, then record the whole sequence in one forward pass.

        Options are those of `record` and of transformers' `generate` (`do_sample`, `temperature`, `num_beams` …);
        without any of the latter the text is greedy. `card["answer"]` is what was generated, `card["prompt_tokens"]`
        how many tokens of a causal model are the prompt. The read-out, and with it `prediction`, is of the last token,
        which foretells what would come next: token `n` of the answer was foretold at position `n - 1`, so
        `scores.at(query=n - 1)` is what it was made from.
        """
        known = signature(checked_request).parameters
        request = self.reader.request(**{name: options.pop(name) for name in list(options) if name in known})
        cut = checked_truncation(truncation, truncate)
        generation = checked_generation(options, seed)
        if self.task not in ("causal_lm", "encoder_decoder"):
            raise BadInput(f"{type(self.model).__name__} does not generate text; use record(text).")
        reader = self.hugging_face
        source = source_of(reader, prompt, longest=reader.longest, truncation=cut)
        passage = generated_passage(reader, prompt, source, max_new_tokens, generation)
        return next(self._in_order([passage], 1, request))

    @property
    def blank_ids(self) -> dict[str, int]:
        """The ids of the tokens that can stand for no token, by name: unk, mask and pad, as far as there are any."""
        return self.reader.blank_ids

    @property
    def vocabulary_size(self) -> int | None:
        """How many tokens it has embeddings of, where that is known."""
        return self.reader.vocabulary_size

    @property
    def shares_beginnings(self) -> bool:
        """Whether runs that begin alike have their beginning computed once, as far as is known."""
        return isinstance(self.reader, HuggingFaceReader) and may_go_on(self.reader)

    def probabilities(self, inputs: Sequence[Inputs], batch_size: int = 16) -> Float[Tensor, "item outcome"]:
        """The probability of every outcome, a class or a token, for inputs that look like `record.inputs`."""
        if not inputs:
            raise BadInput("There are no inputs to run.")
        return torch.stack(self._in_groups(inputs, batch_size, lambda some: probabilities_again(self.reader, some)))

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The names of its outcomes, of a classifier."""
        return self.reader.labels

    def predictions(
        self, texts: Iterable[Text], batch_size: int = 16, *, truncate: bool = False
    ) -> Iterator[tuple[tuple[str, float], ...]]:
        """(label, probability) pairs of each text, best first, in order: what a classifier says, without a record."""
        checked_count("batch_size", batch_size)
        labels = self.labels
        if labels is None:
            raise BadInput(f"{self.name} has no labels to choose from: predictions are for classifiers.")
        passages = self._passages(texts, None, checked_truncation(False, truncate))
        for some in windows(passages, batch_size, lambda _: 0):
            rows = self.probabilities([passage.inputs for passage in some], batch_size)
            yield from (prediction_of(row, labels, None) for row in rows)

    def target(self, inputs: Inputs, outcome: int | str | None = None, quantity: str = "logit") -> Target:
        """What is meant by an outcome of these inputs: a class or token by number or name, None the prediction."""
        request = self.reader.request(gradients=True, target=outcome, quantity=quantity)
        return self.reader.target(outcome, None, request.quantity, self.probabilities([inputs])[0])

    def embedded(self, inputs: Inputs) -> dict[str, Tensor]:
        """The same inputs with the embeddings that the model looks up for their ids."""
        return self.reader.embedded(inputs)

    def target_gradients(
        self, inputs: Sequence[Inputs], target: Target
    ) -> tuple[Float[Tensor, " item"], Float[Tensor, "item position width"]]:
        """The target's value for each of these inputs, all of one length, and its gradient at the embeddings given."""
        found = self._in_groups(inputs, len(inputs), lambda some: gradients_again(self.reader, some, target))
        return torch.stack([value for value, _ in found]), torch.stack([gradient for _, gradient in found])

    def answer_log_probabilities(
        self, inputs: Sequence[Inputs], count: int, batch_size: int = 16
    ) -> Float[Tensor, "item answer_token"]:
        """The log-probability of each of the last `count` tokens of each of these inputs, given all before it."""
        return answer_log_probabilities(self.hugging_face, inputs, count, batch_size)

    def answer_gradients(
        self, inputs: Inputs, count: int, wanted: Sequence[Sequence[int]]
    ) -> Iterator[tuple[Float[Tensor, ""], Float[Tensor, "position width"]]]:
        """For each set of those tokens the sum of their log-probabilities, and its gradient at the embeddings given."""
        return answer_gradients(self.hugging_face, inputs, count, wanted)

    def _in_groups(
        self, inputs: Sequence[Inputs], batch_size: int, run: Callable[[list[Inputs]], Sequence[Found]]
    ) -> list[Found]:
        """What is found for each of these inputs, those together that may be, in the order given."""
        ids = [{name: tensor for name, tensor in item.items() if name not in EMBEDDINGS.values()} for item in inputs]
        found: dict[int, Found] = {}
        for group in self.reader.groups(ids, batch_size):
            found.update(zip(group, run([inputs[place] for place in group]), strict=True))
        return [found[place] for place in range(len(inputs))]

    def estimate(
        self,
        text_or_lengths: Any,
        batch_size: int = 16,
        *,
        stack: str | None = None,
        heads: str = "all",
        method: str | None = None,
        **options: Any,
    ) -> Estimate:
        """Bytes and forward passes needed, before running: for a text, texts, or numbers of tokens.

        Options as in `record`: gradients, queries, keys and values are counted in `peak_bytes`, which is what is alive
        at once over the loaded model. `method="blank_out"` or `"integrated_gradients"` asks what these take in batches
        of `batch_size` runs, beside the record. A list is several texts here, also a list of words. A decoder's output
        is taken to be as long as its source.
        """
        checked_count("batch_size", batch_size)
        lengths = lengths_of(self.hugging_face, text_or_lengths)
        check_names("estimate", options)
        request = self.reader.request(stack=stack, heads=heads, **options)
        size = self.hugging_face.size(request)
        if size is None:
            raise BadInput(f"The configuration of {type(self.model).__name__} does not tell its layers and heads.")
        if method is not None:
            size = replace(size, shares_beginnings=self.shares_beginnings)
            return estimate_of_method(lengths, batch_size, size, method)
        return estimate_of(lengths, batch_size, size, request)

    def _in_order(self, passages: Sequence[Passage], batch_size: int, request: Request) -> Iterator[AttentionRecord]:
        """Run passages of like length together, and give their records in the order of the passages."""
        request = self._that_fits(passages, batch_size, request)
        batch_size = batch_size if request.keep == "weights" else 1  # vectors have no padding to be cut off
        whole = self.reader.complete(passages, request.stack, batch_size)
        records: dict[int, AttentionRecord] = {}
        for group in self.reader.groups([passage.source.inputs for passage in whole], batch_size):
            captured = capture(self.reader, [whole[position] for position in group], request)
            records.update(zip(group, captured, strict=True))
        for position, passage in enumerate(whole):
            record = records.pop(position)
            yield replace(record, card={**record.card, **passage.notes}) if passage.notes else record

    def _that_fits(self, passages: Sequence[Passage], batch_size: int, request: Request) -> Request:
        """The request, if there is memory for it; else one for vectors, where the model shows any, with a warning."""
        size, lengths = self.reader.size(request), [len(passage.source) for passage in passages]
        request = settled(request, lengths, size, self.reader.shows_vectors)
        if size is None or self.model.device.type != "cpu":
            return request
        estimate = estimate_of(lengths, batch_size, size, request)
        if not is_too_large(estimate):
            return request
        instead = vectors_instead(request) if self.reader.shows_vectors else None
        lighter = None if instead is None else estimate_of(lengths, 1, size, instead)
        if instead is None or lighter is None or is_too_large(lighter):
            raise BadInput(too_large(estimate))
        warnings.warn(
            f"The attention weights of {max(lengths)} tokens would take {in_words(estimate.record_bytes)}: queries and"
            f" keys are kept instead ({in_words(lighter.record_bytes)}), from which rows and scores follow exactly.",
            stacklevel=5,
        )
        return instead

    def __repr__(self) -> str:
        return f"InstrumentedModel({self.name}: {self.reader.summary})"
