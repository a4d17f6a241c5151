"""InstrumentedModel: a model whose attention can be read, and which can be run again."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import BadInput
from ..record import AttentionRecord, Text
from ..record.attention import Stack
from .batching import by_length, windows
from .encoding import encode
from .estimate import Estimate, price
from .forward import capture
from .generation import decoder_start, generated, greedy_output
from .instrument import restored
from .passage import Passage, shifted
from .reader import Reader
from .request import Request, wished


class InstrumentedModel:
    """A Hugging Face model that gives attention records; made by `attnscope.load`.

    The model is never changed for good: it is switched for the time of a call and given back as it was.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        # switching a model's attention is not for two threads at once
        self._lock = threading.RLock()

    @property
    def model(self) -> PreTrainedModel:
        """The Hugging Face model itself."""
        return self.reader.model

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Its tokenizer."""
        return self.reader.tokenizer

    @property
    def task(self) -> str:
        """What the model is for: classifier, masked_lm, causal_lm, encoder or encoder_decoder."""
        return self.reader.task

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The stacks this model has; the first is the one recorded by default."""
        return self.reader.stacks

    def record(
        self,
        text: Text,
        *,
        text_target: Text | None = None,
        stack: str | None = None,
        gradients: bool = False,
        target: int | str | None = None,
        quantity: str = "logit",
        heads: str = "all",
        queries_and_keys: bool = False,
        values: bool = False,
        truncate: bool = False,
    ) -> AttentionRecord:
        """What the model does on a text, a pair of texts (a tuple) or words already split (a list).

        `stack` is encoder, decoder or cross; an encoder-decoder records its cross-attention by default, over
        `text_target` or else over its own greedy output. `gradients` adds the gradients of `target` (a class or token,
        `"sum"` of all, or the prediction) with respect to embeddings and attention; `quantity` says whether of its
        logit, its probability or the `difference` to the next best. `heads="mean"` keeps only the mean over heads, for
        long inputs.
        """
        options: dict[str, Any] = {
            "stack": stack, "gradients": gradients, "target": target, "quantity": quantity, "heads": heads,
            "queries_and_keys": queries_and_keys, "values": values, "truncate": truncate,
        }  # fmt: skip
        targets = None if text_target is None else [text_target]
        return next(self.records([text], batch_size=1, text_targets=targets, **options))

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
        if batch_size < 1:
            raise BadInput(f"batch_size must be at least 1, not {batch_size}.")
        if isinstance(texts, str):
            raise BadInput("records takes several texts; for one, use record(text).")
        request = wished(self.stacks, **options)
        pairs = zip(texts, repeat(None) if text_targets is None else text_targets, strict=text_targets is not None)
        return self._streamed(pairs, batch_size, truncate, request)

    def _streamed(
        self, pairs: Iterable[tuple[Text, Text | None]], batch_size: int, truncate: bool, request: Request
    ) -> Iterator[AttentionRecord]:
        for window in windows(pairs, batch_size):
            passages = [self._passage(text, target, truncate) for text, target in window]
            yield from self._in_order(passages, batch_size, request)

    def record_generation(self, prompt: Text, max_new_tokens: int = 20, **options: Any) -> AttentionRecord:
        """Generate greedily, then record the whole sequence in one forward pass. Options as in `record`."""
        request = wished(self.stacks, **options)
        source = encode(self.tokenizer, prompt, self.reader.longest, truncate=False)
        if self.task not in ("causal_lm", "encoder_decoder"):
            raise BadInput(f"{type(self.model).__name__} does not generate text; use record(text).")
        with self._lock:
            written = generated(self.reader, source, max_new_tokens)
        passage = Passage(prompt, source, written) if self.reader.has_both_sides else Passage(prompt, written, None)
        return next(self._in_order([passage], 1, request))

    def probabilities(
        self, inputs: Sequence[Mapping[str, Int[Tensor, " _"]]], batch_size: int = 16
    ) -> Float[Tensor, "item outcome"]:
        """The probability of every outcome, a class or a token, for inputs that look like `record.inputs`."""
        if not inputs:
            raise BadInput("There are no inputs to run.")
        rows: dict[int, Tensor] = {}
        for batch in by_length([len(item["input_ids"]) for item in inputs], self._batch_limit(batch_size)):
            with self._lock, torch.no_grad(), restored(self.model):
                output = self.model(**self.reader.batched([inputs[position] for position in batch]))
            for row, position in enumerate(batch):
                logits = self.reader.logits(output, row, inputs[position])
                if logits is None:
                    raise BadInput(f"{type(self.model).__name__} answers nothing here, so it has no probabilities.")
                rows[position] = self.reader.probabilities(logits).cpu()
        return torch.stack([rows[position] for position in range(len(inputs))])

    def estimate(self, text_or_lengths: Any, batch_size: int = 16) -> Estimate:
        """Bytes and forward passes needed, before running: for a text, texts, or numbers of tokens."""
        items = [text_or_lengths] if isinstance(text_or_lengths, (str, tuple, int)) else list(text_or_lengths)
        if not items:
            raise BadInput("There is nothing to estimate: give a text, texts, or numbers of tokens.")
        lengths = [
            item if isinstance(item, int) else len(encode(self.tokenizer, item, None, truncate=False)) for item in items
        ]
        size = self._batch_limit(batch_size)
        batches = list(chain.from_iterable(by_length(window, size) for window in windows(lengths, batch_size)))
        config = self.model.config
        return price(lengths, batches, config.num_hidden_layers, config.num_attention_heads)

    def _batch_limit(self, batch_size: int) -> int:
        return batch_size if self.reader.takes_batches else 1

    def _passage(self, text: Text, text_target: Text | None, truncate: bool) -> Passage:
        source = encode(self.tokenizer, text, self.reader.longest, truncate=truncate)
        if not self.reader.has_both_sides:
            if text_target is not None:
                raise BadInput(
                    f"{type(self.model).__name__} has no decoder beside an encoder, so text_target= has no use."
                )
            return Passage(text, source, None)
        if self.task == "classifier":
            return Passage(text, source, shifted(self.tokenizer, source, decoder_start(self.reader)))
        if text_target is None:
            with self._lock:
                return Passage(text, source, greedy_output(self.reader, source))
        labels = encode(self.tokenizer, text_target, self.reader.longest, truncate=truncate, as_target=True)
        return Passage(text, source, shifted(self.tokenizer, labels, decoder_start(self.reader)))

    def _in_order(self, passages: Sequence[Passage], batch_size: int, request: Request) -> Iterator[AttentionRecord]:
        """Run passages of like length together, and give their records in the order of the passages."""
        records: dict[int, AttentionRecord] = {}
        for batch in by_length([len(passage.source) for passage in passages], self._batch_limit(batch_size)):
            with self._lock:
                captured = capture(self.reader, [passages[position] for position in batch], request)
            records.update(zip(batch, captured, strict=True))
        for position in range(len(passages)):
            yield records.pop(position)

    def __repr__(self) -> str:
        config = self.model.config
        return (
            f"InstrumentedModel({config.name_or_path or type(self.model).__name__}: {self.task},"
            f" {config.num_hidden_layers} layers x {config.num_attention_heads} heads, reads {self.reader.pooling})"
        )
