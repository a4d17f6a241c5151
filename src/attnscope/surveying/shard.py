"""One shard: some sentences in, the states of the statistics out. This is what runs on a worker."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch

from ..capture import InstrumentedModel, load
from ..capture.checkpoints import embedding_count
from ..capture.encoding import Encoded, encode
from ..capture.hub_model import HubModel
from ..capture.streaming import Shape, body_of, shape_of, stream, stream_vectors
from ..capture.watching import on_interface
from ..errors import BadInput
from ..record.attention import Stack
from ..record.words import readable
from ..statistics import PARSE, TAGS, Frame, Need, Null, Reading, long_observer, observer
from ..statistics.batch import first_counted
from ..statistics.sinks import RestingHeads
from ..syntax import Parser, Sentence, Unaligned, words_of_tokens

PLACES = 2**32
"""Sentences of a shard are numbered from its own number times this."""
LARGEST_MAP = 2**26
"""A text whose attention in one layer would take more bytes than this is surveyed block by block."""
FLOAT32_BYTES = 4

Read = Sequence[tuple[Reading, Encoded]]


@dataclass(frozen=True)
class Job:
    """What every shard of a pass is to do. It travels to the workers, so it holds nothing but plain things."""

    statistics: Mapping[str, type[Any]]
    null: Null
    stack: Stack
    parser: str | None
    needs: frozenset[Need]
    tokens_per_batch: int
    threads: int
    before: Mapping[str, Any] = field(default_factory=dict)
    """In a later pass: what an earlier has found, by the name of the statistic."""

    def fresh(self, frame: Frame) -> dict[str, Any]:
        """The statistics of this pass with nothing seen yet."""
        if not self.before:
            return {name: kind.empty(frame) for name, kind in self.statistics.items()}
        return {name: kind.after(self.before[name], frame) for name, kind in self.statistics.items()}

    @property
    def first_tokens(self) -> int | None:
        """How many tokens of a text this pass looks at, or None for all."""
        wanted: list[int | None] = [getattr(kind, "first_tokens", None) for kind in self.statistics.values()]
        known = [length for length in wanted if length is not None]
        return max(known) if len(known) == len(wanted) else None


class ShardWorker:
    """A model that reads shards. Made once on each worker."""

    def __init__(self, model: InstrumentedModel | str, job: Job) -> None:
        loaded = _on_gpu_if_any(model) if isinstance(model, str) else model
        self.job = job
        self.reader: HubModel = loaded.hugging_face
        self.body = body_of(self.reader)
        torch.set_num_threads(job.threads)

    @cached_property
    def shape(self) -> Shape:
        """The layers and heads of the model, and whether it is causal."""
        return shape_of(self.body, self.job.stack)

    @cached_property
    def parser(self) -> Parser | None:
        """What parses texts, where they come unparsed."""
        return None if self.job.parser is None else Parser(self.job.parser)

    def __call__(self, item: tuple[int, Sequence[Sentence | str]]) -> dict[str, Any]:
        """The states of all statistics on one shard, with how much was read and what was not."""
        number, items = item
        skipped: Counter[str] = Counter()
        read: list[tuple[Reading, Encoded]] = []
        for place, sentence in enumerate(self._sentences(items), start=number * PLACES):
            try:
                read.append(read_sentence(self.reader, sentence, place, self.job.needs))
            except Unaligned as error:
                skipped[error.reason] += 1
        frame = self._frame([reading for reading, _ in read])
        if self.job.null == "sinks":
            read = self._mark_sinks(read, frame)
        statistics = self.job.fresh(frame)
        for batch in self._batches(self._shorten(read)):
            self._show(batch, frame, statistics)
        return {
            "statistics": {name: statistic.state() for name, statistic in statistics.items()},
            "sentences": len(read),
            "words": sum(len(reading.sentence) for reading, _ in read),
            "words_without_token": sum(_without_token(reading) for reading, _ in read if self.job.needs),
            "tokens": sum(len(reading) for reading, _ in read),
            "longest": max((len(reading) for reading, _ in read), default=0),
            "skipped": dict(skipped),
            "sinks": dict(Counter(reading.tokens[place] for reading, _ in read for place in reading.sinks if place)),
        }

    def _show(self, batch: Read, frame: Frame, statistics: Mapping[str, Any]) -> None:
        """Run a batch and show the attention of each layer to the statistics."""
        readings, encodings = [reading for reading, _ in batch], [encoded for _, encoded in batch]
        if self._is_long(readings[0]):
            stream_vectors(self.body, encodings[0], self.job.stack, long_observer(readings[0], frame, statistics))
        else:
            stream(self.body, encodings, self.job.stack, observer(readings, frame, list(statistics.values())))

    def _is_long(self, reading: Reading) -> bool:
        """Whether the map of a layer is too large to be made, in a model that can do without."""
        size = self.shape.heads * len(reading) ** 2 * FLOAT32_BYTES
        return size > LARGEST_MAP and on_interface(self.body.model)

    def _mark_sinks(self, read: Read, frame: Frame) -> list[tuple[Reading, Encoded]]:
        """The sentences with what their heads rest on, for which the model reads them once more, before all else."""
        marked: list[tuple[Reading, Encoded]] = []
        for batch in self._batches(read):
            # the first token of a causal model is one without a look: every row sees it
            readings = [replace(reading, sinks=(0,) if self.shape.causal else ()) for reading, _ in batch]
            resting = RestingHeads(frame)
            encodings = [encoded for _, encoded in batch]
            self._show(list(zip(readings, encodings, strict=True)), frame, {"sinks": resting})
            marked += zip(resting.mark(readings), encodings, strict=True)
        return marked

    def _sentences(self, items: Sequence[Sentence | str]) -> Iterator[Sentence]:
        if self.parser is None:
            for item in items:
                assert isinstance(item, Sentence)  # noqa: S101 -- a corpus without a parser gives sentences
                yield item
            return
        for sentences in self.parser.parse(items):
            yield from sentences

    def _frame(self, readings: Sequence[Reading]) -> Frame:
        tags = {tag for reading in readings for tag in reading.sentence.tags or ()}
        relations = {relation for reading in readings for relation in reading.sentence.relations or ()}
        shape = self.shape
        return Frame(
            shape.layers, shape.heads, shape.causal, self.job.null, tuple(sorted(tags)), tuple(sorted(relations))
        )

    def _shorten(self, read: list[tuple[Reading, Encoded]]) -> list[tuple[Reading, Encoded]]:
        """In a causal model the first tokens are attended to as if nothing followed: then nothing needs to."""
        length, null = self.job.first_tokens, self.job.null
        from_the_end = not isinstance(null, str) and min(null) < 0  # which would be another token of a shorter text
        if length is None or not self.shape.causal or from_the_end:
            return read
        ends = [first_counted(reading, null) + length for reading, _ in read]
        return [(reading.cut(end), _cut_text(encoded, end)) for end, (reading, encoded) in zip(ends, read, strict=True)]

    def _batches(self, read: Read) -> Iterator[list[tuple[Reading, Encoded]]]:
        """Sentences of like length, so many that padding included they stay within the budget; long texts alone."""
        batch: list[tuple[Reading, Encoded]] = []
        for entry in sorted(read, key=lambda entry: len(entry[0])):
            fits = (len(batch) + 1) * len(entry[0]) <= self.job.tokens_per_batch
            if batch and not (fits and self.reader.takes_padding and not self._is_long(entry[0])):
                yield batch
                batch = []
            batch.append(entry)
        if batch:
            yield batch


def _on_gpu_if_any(name: str) -> InstrumentedModel:
    """A model by name on a worker: on its GPU where it was given one, in float32 so that sums are the same."""
    return load(name, device="cuda", dtype=torch.float32) if torch.cuda.is_available() else load(name)


def _without_token(reading: Reading) -> int:
    """How many words have no token, since one that covers several counts as the word it covers most of."""
    return len(reading.sentence) - len({word for word in reading.words if word is not None})


def _cut_text(encoded: Encoded, length: int) -> Encoded:
    inputs = {name: ids[:length] for name, ids in encoded.inputs.items()}
    return Encoded(inputs, encoded.tokens[:length], encoded.word_ids[:length], encoded.special[:length])


# A sentence as a model reads it: every word finds its tokens, or the reason why not is counted.


def read_sentence(reader: HubModel, sentence: Sentence, place: int, needs: frozenset[Need]) -> tuple[Reading, Encoded]:
    """The tokens of a sentence with the word of each; raises `Unaligned` with a reason that can be counted."""
    if TAGS in needs and sentence.tags is None:
        raise Unaligned("it has no parts of speech")
    if PARSE in needs and (sentence.heads is None or sentence.relations is None):
        raise Unaligned("it has no heads and relations")
    try:
        # words already split only where the tokenizer does not tell the characters of a token: splitting loses spacing
        text = sentence.text if reader.tokenizer.is_fast else list(sentence.words)
        encoded = encode(reader.tokenizer, text, None, embedded=embedding_count(reader.model))
    except BadInput as error:
        raise Unaligned("the tokenizer cannot read it") from error
    if reader.longest is not None and len(encoded) > reader.longest:
        raise Unaligned(f"it has more than the {reader.longest} tokens that the model reads")
    inputs = {name: ids for name, ids in encoded.inputs.items() if name == "input_ids" or name in reader.accepted}
    if encoded.offsets is None:
        words = encoded.word_ids
        if needs and {word for word in words if word is not None} != set(range(len(sentence))):
            raise Unaligned("a word has no token")
    else:
        try:
            words = words_of_tokens(sentence.spans, encoded.offsets, encoded.special)
        except Unaligned:
            if needs:
                raise
            words = encoded.word_ids  # no statistic asks for the annotation of words, so any will do
    reading = Reading(
        place=place,
        sentence=sentence,
        token_ids=tuple(encoded.inputs["input_ids"].tolist()),
        tokens=tuple(readable(encoded.tokens)),
        special=encoded.special,
        words=words,
    )
    return reading, Encoded(inputs, encoded.tokens, encoded.word_ids, encoded.special)
