"""Answer: what a causal model said, token by token, with how likely each was, and what of the context it came from."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..record import AnsweringModel, AttentionRecord, readable
from ..record.schema import checked, quote
from ..record.segments import MARKER
from ..record.words import units
from .answer_rows import BACKWARD, METHODS_OF_ANSWERS, attention_rows, gradient_rows
from .rerunning import input_positions
from .segment_ablation import Ablation, Question, Sample, leave_one_out, sampled_ablation

if TYPE_CHECKING:
    import pandas as pd

Where = str | tuple[int, int] | range
"""A part of the answer: a text that stands in it once, characters from and to, or a range of its tokens."""
Found = TypeVar("Found")
ANSWER, SINK = "answer", "sink"
CONTEXT = ("document", "question", "prompt")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answer:
    """An answer of a causal model: its record with the conversation before it, and the probability of each token.

    The scores of an answer token are those of the query that foretold it, the position before it: what stands behind
    has no part in it. Methods that follow attention need the record alone; what runs again needs the `model`.
    """

    record: AttentionRecord
    log_probabilities: Float[Tensor, " answer_token"]
    """Of each token of the answer, given all that stands before it."""
    model: AnsweringModel | None = None
    notes: tuple[str, ...] = ()
    """What must be said of this answer: of one that another model wrote, that its likelihood is this model's."""
    _ablations: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        record = self.record
        if record.segments is None or not isinstance(record.card.get("prompt_tokens"), int):
            raise BadInput("This record holds no answer: take it with model.record(messages=…) or attnscope.answer.")
        if not record.causal or not 0 < self.start < len(record.key_tokens):
            raise BadInput("An answer stands behind a prompt, in a record of a causal model.")
        if len(self.log_probabilities) != len(record.key_tokens) - self.start:
            raise BadInput(
                f"There are {len(self.log_probabilities)} probabilities for an answer of"
                f" {len(record.key_tokens) - self.start} tokens."
            )

    @property
    def start(self) -> int:
        """The position of the answer's first token in the record."""
        return int(self.record.card["prompt_tokens"]) + self.record.added_tokens

    @property
    def text(self) -> str:
        """What was answered."""
        segments = self.record.segments
        assert segments is not None  # noqa: S101 -- checked when the answer was made
        return segments.text[segments.offsets[self.start][0] :]

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of the answer."""
        return self.record.key_tokens[self.start :]

    @property
    def probabilities(self) -> Float[Tensor, " answer_token"]:
        """The probability of each token of the answer, given all that stands before it."""
        return self.log_probabilities.exp()

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """The characters of the answer that each of its tokens covers."""
        segments = self.record.segments
        assert segments is not None  # noqa: S101 -- checked when the answer was made
        first = segments.offsets[self.start][0]
        return [(start - first, end - first) for start, end in segments.offsets[self.start :]]

    def tokens_of(self, span: Where) -> list[int]:
        """The numbers of the answer's tokens that a part of it touches.

        A part is a text that stands in the answer once, its characters (start, end), or a range of its tokens.
        """
        if isinstance(span, range):
            found = [*span]
            if not found or not all(0 <= place < len(self.tokens) for place in found):
                raise BadInput(f"{span} is no range of the {len(self.tokens)} tokens of this answer.")
            return found
        if isinstance(span, str):
            start = self.text.find(span) if span.strip() else -1
            if start < 0 or self.text.find(span, start + 1) >= 0:
                told = "stands more than once" if start >= 0 else "does not stand"
                raise BadInput(f"{quote(span)} {told} in the answer: give its characters, span=(start, end).")
            span = (start, start + len(span))
        start, end = span
        if not 0 <= start < end <= len(self.text):
            raise BadInput(f"The span ({start}, {end}) is outside the answer, which has {len(self.text)} characters.")
        return [
            place
            for place, (first, last) in enumerate(self.offsets)
            if (first < end and start < last) or start <= first == last < end
        ]

    # ---- scores

    @checked
    def scores(
        self,
        method: str = "rollout",
        by: str = "sentence",
        span: str | tuple[int, int] | range | None = None,
        **options: Any,
    ) -> "pd.DataFrame":
        """The score of each segment for each token of the answer, or for one part of it (`span`): a table.

        A row is an answer token, a column a segment of the level `by` (token, word, sentence, document, turn, …); the
        answer's own earlier tokens are the last column, "answer". Methods that follow attention (raw, rollout,
        layerwise_tracing, flow, value_weighted, effective) score a span by the mean over its tokens; gradient,
        gradient_x_input and integrated_gradients follow the log-probability of the span; blank_out is `drops`, and
        sampled_ablation `sampled`. `table.attrs` has the kind of each segment, and what must be said of the scores.
        """
        import pandas as pd

        wanted = [[place] for place in range(len(self.tokens))] if span is None else [self.tokens_of(span)]
        names = [*readable(self.tokens)] if span is None else ["".join(readable([self.tokens[p] for p in wanted[0]]))]
        said: tuple[str, ...] = ()
        if method in ("blank_out", "sampled_ablation"):
            run = self.leave_one_out if method == "blank_out" else self.sampled
            ablated = run(by, **options)
            table, labels, kinds = ablated.of_tokens(wanted), ablated.segments, ablated.kinds
        else:
            rows, said = self.rows(method, wanted, **options)
            groups, labels, kinds = self.groups(by)
            table = torch.stack([rows[:, group].sum(-1) for group in groups], -1)
        frame = pd.DataFrame(table.double().numpy(), index=names, columns=list(labels))
        frame.attrs = {"method": method, "by": by, "kinds": list(kinds), "warnings": [*said, *self.notes]}
        return frame

    def rows(
        self, method: str, wanted: Sequence[Sequence[int]], **options: Any
    ) -> tuple[Float[Tensor, "row key"], tuple[str, ...]]:
        """The score of every key token for each set of answer tokens, and what must be said of them."""
        if method not in METHODS_OF_ANSWERS:
            raise BadInput(f"There is no method {quote(method)} for answers: choose {', '.join(METHODS_OF_ANSWERS)}.")
        if method in BACKWARD:
            found, said = gradient_rows(self.record, self._running(method), len(self.tokens), wanted, method, **options)
        else:
            numbers = sorted({place for some in wanted for place in some})
            of_tokens = attention_rows(self.record, [self.start + place - 1 for place in numbers], method, **options)
            rank = {place: row for row, place in enumerate(numbers)}
            found, said = torch.stack([of_tokens[[rank[place] for place in some]].mean(0) for some in wanted]), ()
        return found, said

    def groups(self, by: str) -> tuple[list[list[int]], tuple[str, ...], tuple[str, ...]]:
        """The positions of each segment of a level, what it is called and its kind; the whole answer is one."""
        record, segments = self.record, self.record.segments
        assert segments is not None  # noqa: S101 -- checked when the answer was made
        if by in segments.levels:
            groups, labels, kinds = segments.groups(by, record.key_tokens, record.key_special)
        else:
            groups, labels = units(record.key_tokens, record.key_special, record.key_word_ids, by, segments)
            kinds = tuple(self.kinds[group[0]] for group in groups)
        kept = [place for place, group in enumerate(groups) if group[0] < self.start]
        before = [[position for position in groups[place] if position < self.start] for place in kept]
        answered = list(range(self.start, len(record.key_tokens)))
        return (
            [*before, answered],
            (*(labels[place] for place in kept), ANSWER),
            (*(kinds[place] for place in kept), ANSWER),
        )

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """What each token of the record is: document, question, prompt (what else is asked), sink, or answer.

        Sinks are where attention rests that has nothing to do: role markers, special tokens and the first token.
        """
        record, segments = self.record, self.record.segments
        assert segments is not None  # noqa: S101 -- checked when the answer was made
        kinds = ["prompt"] * len(record.key_tokens)
        for level in segments.levels:
            groups, _, kinds_of_groups = segments.groups(level, record.key_tokens, record.key_special)
            for group, kind in zip(groups, kinds_of_groups, strict=True):
                for position in group:
                    kinds[position] = kind if kind in CONTEXT else kinds[position]
        for position, quiet in enumerate(record.key_special):
            kinds[position] = SINK if quiet or position == 0 else kinds[position]
        kinds[self.start :] = [ANSWER] * len(self.tokens)
        return tuple(kinds)

    # ---- without some of the context

    @checked
    def drops(
        self,
        by: str = "document",
        span: str | tuple[int, int] | range | None = None,
        replacement: str = "delete",
        batch_size: int = 16,
    ) -> "pd.DataFrame":
        """By how much the log-probability of the answer, or of a part of it, falls without each segment: exact.

        A column segment, its `drop`, and the log-probability `before` and `after`. A segment is taken away by deleting
        its tokens, so that those behind it move up; another `replacement` (unk, mask, pad, zero) leaves its places
        there, as in `blank_out`. The answer stays as it is. Role markers are not taken away.
        """
        import pandas as pd

        found = self.leave_one_out(by, replacement, batch_size)
        wanted = [list(range(len(self.tokens))) if span is None else self.tokens_of(span)]
        drops = found.of_tokens(wanted)[0]
        before = float(found.before[wanted[0]].sum())
        frame = pd.DataFrame({"segment": list(found.segments), "drop": drops.tolist()})
        return frame.assign(before=before, after=[before - drop for drop in drops.tolist()])

    def leave_one_out(self, by: str = "document", replacement: str = "delete", batch_size: int = 16) -> Ablation:
        """The log-probability of every token of the answer, as it is and without each segment of a level."""
        return self._once(
            ("leave_one_out", by, replacement),
            lambda: leave_one_out(self._question(replacement), self._removable(by), batch_size),
        )

    def drops_of_sets(
        self, by: str, sets: Sequence[Collection[int]], tokens: Sequence[int], batch_size: int = 16
    ) -> list[float]:
        """By how much the log-probability of these answer tokens falls without each set of removable segments."""
        places = self._removable(by)[0]
        runs = [sorted(place for number in some for place in places[number]) for some in sets]
        if not runs:
            return []
        after = self._question("delete").ask(runs, batch_size)[:, list(tokens)].sum(-1)
        return (self.log_probabilities[list(tokens)].sum() - after).tolist()

    @checked
    def sampled(
        self, by: str = "sentence", masks: int = 64, seed: int = 0, replacement: str = "delete", batch_size: int = 16
    ) -> Sample:
        """The weight of each segment in a sparse linear model of what the answer's log-odds are without some of them.

        Cohen-Wang et al. 2024 (ContextCite), section 3: each of so many `masks` keeps every segment by chance 1/2; the
        log-odds of the answer under each are fitted by a Lasso. See `sampled_ablation`.
        """
        return self._once(
            ("sampled", by, masks, seed, replacement),
            lambda: sampled_ablation(self._question(replacement), self._removable(by), masks, seed, batch_size),
        )

    def _once(self, key: tuple[Any, ...], make: Callable[[], Found]) -> Found:
        """What was computed before, else what is computed now."""
        if key not in self._ablations:
            self._ablations[key] = make()
        found: Found = self._ablations[key]
        return found

    def _running(self, method: str) -> AnsweringModel:
        if self.model is None or not self.record.inputs:
            raise BadInput(f"{method} runs the model again: make the answer with it, attnscope.answer(model, …).")
        return self.model

    def _question(self, replacement: str) -> Question:
        return Question(self.record, self._running("Taking segments away"), len(self.tokens), replacement)

    def removable(self, by: str) -> list[int]:
        """Which segments of a level (of `groups`) can be taken away: no markers, and not the answer."""
        groups, _, kinds = self.groups(by)
        taken = [
            place
            for place, (group, kind) in enumerate(zip(groups, kinds, strict=True))
            if kind not in (ANSWER, MARKER, SINK) and not all(self.record.key_special[position] for position in group)
        ]
        if not taken:
            raise BadInput(f"There is no segment of the level {by!r} before this answer that could be taken away.")
        return taken

    def _removable(self, by: str) -> tuple[list[list[int]], tuple[str, ...], tuple[str, ...]]:
        """The same with their places in the inputs, what they are called and their kinds."""
        groups, labels, kinds = self.groups(by)
        taken = self.removable(by)
        return (
            [input_positions(self.record, groups[place]) for place in taken],
            tuple(labels[place] for place in taken),
            tuple(kinds[place] for place in taken),
        )

    # ---- was it in the context?

    @checked
    def origin(self, method: str = "rollout", span: str | tuple[int, int] | range | None = None) -> "pd.DataFrame":
        """Where each token of the answer, or a part of it, comes from: shares of its score, and what it loses.

        The shares are those of documents, question, the rest of the prompt, the answer so far, and sinks (role markers,
        special tokens and the first token, where attention rests that has nothing to do). With the model there are
        also `without_documents`, the fall of its log-probability when all documents are taken away, and `strongest`,
        the one whose absence costs it most, with that `drop`. What loses nothing was from memory, or from the question.
        """
        import pandas as pd

        wanted = [[place] for place in range(len(self.tokens))] if span is None else [self.tokens_of(span)]
        rows, _ = self.rows(method, wanted)
        sizes = rows.abs()
        shares = sizes / sizes.sum(-1, keepdim=True).clamp_min(torch.finfo(sizes.dtype).tiny)
        columns: dict[str, Any] = {
            "token": ["".join(readable([self.tokens[place] for place in some])) for some in wanted],
            "probability": [float(self.log_probabilities[some].sum().exp()) for some in wanted],
        }
        for kind in (*CONTEXT, ANSWER, SINK):
            places = [position for position, other in enumerate(self.kinds) if other == kind]
            columns[kind] = shares[:, places].sum(-1).tolist()
        if self.model is not None and "document" in self.kinds:
            columns |= self._losses(wanted)
        return pd.DataFrame(columns)

    def _losses(self, wanted: Sequence[Sequence[int]]) -> Mapping[str, Any]:
        """What sets of answer tokens lose without all documents, and without the one that costs them most."""
        documents = [position for position, kind in enumerate(self.kinds) if kind == "document"]
        places = input_positions(self.record, documents)
        everything = self._once(
            ("without documents",),
            lambda: leave_one_out(self._question("delete"), ([places], ("documents",), ("document",)), 16),
        )
        single = self.leave_one_out("document")
        only = [place for place, kind in enumerate(single.kinds) if kind == "document"]
        drops = single.of_tokens(wanted)[:, only]
        strongest = drops.argmax(-1).tolist()
        return {
            "without_documents": everything.of_tokens(wanted)[:, 0].tolist(),
            "strongest": [single.segments[only[place]] for place in strongest],
            "drop": drops.amax(-1).tolist(),
        }

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, ready for JSON."""
        return {
            "answer": self.text,
            "tokens": [*readable(self.tokens)],
            "offsets": self.offsets,
            "probabilities": self.probabilities.tolist(),
            "notes": [*self.notes],
        }

    def __repr__(self) -> str:
        chance = float(self.log_probabilities.mean().exp())
        return (
            f"Answer({self.text[:60]!r}: {len(self.tokens)} tokens behind {self.start}, each {chance:.3f} likely in the"
            " (geometric) mean)"
        )
