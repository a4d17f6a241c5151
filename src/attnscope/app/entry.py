"""One text that was looked at: its records, what the methods said, and the views made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ..attribution import Answer, Comparison
from ..attribution.choosing import every_method, runs_model, score
from ..attribution.phrases import Phrase, phrases
from ..capture import InstrumentedModel
from ..errors import BadInput
from ..evaluation import Trust
from ..explaining import (
    carried_words,
    explained_words,
    phrases_in_words,
    quantity_options,
    record_with_everything,
)
from ..progress import tell
from ..record import AttentionRecord, Text, TokenScores
from ..record.words import Level
from ..report.answer import OUTCOMES_SHOWN
from ..surveying import Survey
from ..views import View
from ..views.weights import OnDemand
from .turns import Work

if TYPE_CHECKING:
    from .requests import AnswerRequest

RICH_TOKENS = 128
"""Tokens up to which a text is recorded with gradients and values at once; longer ones when a method asks for them."""
QUICK_TOKENS = 48
"""Tokens up to which every method is run by default."""
QUICK = ("raw", "rollout", "layerwise_tracing")
"""Methods that are run on any text by default."""
ON_WEIGHTS = (*QUICK, "flow")
"""Methods that need the weights alone."""
HELD = 5
"""Bytes that a view of maps holds for each deflated byte: its figures are 64-bit floats."""


@dataclass(eq=False)
class Entry:
    """What is kept of one text, or of a record, survey or trust table that was opened."""

    name: str
    record: AttentionRecord | None = None
    model_name: str | None = None
    model: InstrumentedModel | None = None
    text: Text | None = None
    target: str | None = None
    """The outcome that is explained; the predicted one if none was asked for."""
    against: str | None = None
    """Another outcome, where it is asked why it is not that one."""
    truncate: bool = False
    """Whether what the model cannot read of a long text is left out."""
    survey: Survey | None = None
    trust: Trust | None = None
    scores: dict[tuple[str, Level], TokenScores] = field(default_factory=dict)
    left_out: dict[tuple[str, Level], str] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    levels: dict[str, Level] = field(default_factory=dict)
    """What the scores of a view are of: tokens, words or sentences."""
    answer: Answer | None = None
    asked: "AnswerRequest | None" = None
    """The question about documents that it answers."""
    rich: AttentionRecord | None = None
    vectors: AttentionRecord | None = None
    found_phrases: tuple[Phrase, ...] | None = None
    opened_bytes: int = 0
    """What an opened file takes beside the tensors of a record."""
    payload_bytes: int = 0

    @property
    def size(self) -> int:
        """Bytes of its records, counted once each, of what its views hold, and of what was opened."""
        records = {id(record): record for record in (self.record, self.rich, self.vectors) if record is not None}
        # a list first: another thread may be making a view
        blobs = [view.blobs for view in list(self.views.values())]
        held = HELD * sum(len(blob) for made in blobs if not isinstance(made, OnDemand) for blob in made.values())
        own = sum(_record_bytes(record) for record in records.values())
        # a view whose layers are made on demand makes them of a copy of the record
        copies = sum(isinstance(made, OnDemand) for made in blobs) * (_record_bytes(self.record) if self.record else 0)
        return own + held + copies + self.payload_bytes + self.opened_bytes

    def keep_view(self, key: str, view: View, by: Level) -> None:
        """Keep a view that was made, and count it."""
        self.views[key] = view
        self.levels[key] = by
        self.payload_bytes += _plain_bytes(view.payload)

    @property
    def default_methods(self) -> list[str]:
        """The methods that are run where none are chosen."""
        if self.record is None:
            return []
        if len(self.record.key_tokens) <= QUICK_TOKENS:
            return list(every_method())
        return list(QUICK)

    def needs_model(self, methods: Sequence[str], by: Level) -> bool:
        """Whether these methods run the model: again, or for the gradients that the record does not hold."""
        missing = [name for name in methods if (name, by) not in self.scores and (name, by) not in self.left_out]
        # whoever went away while phrases were looked for has left the scores without them
        looking = self.found_phrases is None and "blank_out" in methods and self._is_lost(by)
        runs = any(need_of(name) == "model" or (self.rich is None and name not in ON_WEIGHTS) for name in missing)
        return self.model is not None and (looking or runs)

    def with_everything(self) -> AttentionRecord:
        """The record with gradients and values, as far as there are any."""
        if self.rich is None and self.model is not None and self.text is not None:
            self.rich = record_with_everything(self.model, self.text, self.target, self.truncate, self.against)
        record = self.rich if self.rich is not None else self.record
        if record is None:
            raise BadInput("A survey has no text that methods could score.")
        return record

    def with_vectors(self) -> AttentionRecord:
        """The record with queries and keys."""
        if self.record is not None and self.record.queries is not None:
            return self.record
        if self.model is None or self.text is None:
            raise BadInput("This record holds no queries and keys: take it with queries_and_keys=True.")
        if self.vectors is None:
            self.vectors = self.model.record(self.text, queries_and_keys=True, truncate=self.truncate)
        return self.vectors

    def compare(self, methods: Sequence[str], by: Level, work: Work) -> Comparison:
        """What these methods say, each computed once; of those that cannot be used here, why."""
        for name in methods:
            if (name, by) in self.scores or (name, by) in self.left_out:
                continue
            work.on(name)
            tell(0, 0)
            record = self.record if name in ON_WEIGHTS and self.record is not None else self.with_everything()
            try:
                self.scores[name, by] = score(
                    record, name, every_method()[name], self.model, by, self._options(name, record)
                )
            except BadInput as lacking:
                self.left_out[name, by] = str(lacking)
        found = tuple(self.scores[name, by] for name in methods if (name, by) in self.scores)
        left_out = {name: self.left_out[name, by] for name in methods if (name, by) in self.left_out}
        if not found:
            raise BadInput(" ".join(left_out.values()) or "Choose at least one method.")
        return Comparison(found, left_out)

    def phrases_for(self, comparison: Comparison, by: Level, work: Work) -> tuple[Phrase, ...]:
        """Words that carry the answer together, looked for once, where blank-out finds none that carries it alone."""
        if self.model is None or "blank_out" not in comparison.methods or not self._is_lost(by):
            return ()
        if self.found_phrases is None:
            work.on("phrases")
            tell(0, 0)
            try:
                self.found_phrases = phrases(self.with_everything(), self.model)
            except BadInput:  # a model with a single output has no log-odds that a phrase could change
                self.found_phrases = ()
        return self.found_phrases

    def _is_lost(self, by: Level) -> bool:
        """Whether blank-out was asked, and found nothing but noise."""
        return ("blank_out", by) in self.scores and bool(self.scores["blank_out", by].noise)

    def _options(self, name: str, record: AttentionRecord) -> dict[str, Any]:
        """What a method is asked: with signs, and what of the outcome it follows."""
        followed = {} if self.model is None else quantity_options(name, self.model, record)
        return {"signed": True, **followed}


def describe_question(entry: Entry) -> dict[str, Any]:
    """What is explained where it was asked for, as the model spells it, and what could be asked for."""
    record, model = entry.record, entry.model
    if record is None or model is None:
        return {"target": None, "against": None, "outcomes": []}
    labels = [label for label, _ in record.prediction]
    return {
        "target": None if entry.target is None or record.target is None else record.target.outcome,
        "against": None if entry.against is None or record.target is None else record.target.against,
        "outcomes": labels if model.task == "classifier" else labels[:OUTCOMES_SHOWN],
    }


def headline(entry: Entry, comparison: Comparison, method: str, found: Sequence[Phrase], by: Level) -> str:
    """What carried the answer that was asked for, in words."""
    record = entry.rich if entry.rich is not None else entry.record
    said = [
        "" if record is None else explained_words(record),
        carried_words(comparison, method, by, record),
        phrases_in_words(found) if found else "",
    ]
    return " ".join(sentence.strip() for sentence in said if sentence)


def need_of(method: str) -> str:
    """What a method needs: the weights alone, gradients or values in the record, or the model itself."""
    if method in ON_WEIGHTS:
        return "weights"
    return "model" if runs_model(every_method()[method]) else "gradients"


def _plain_bytes(value: object) -> int:
    """Bytes of numbers, texts, and what holds them."""
    seen: dict[int, object] = {}
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple)):
            waiting += one
    return sum(map(getsizeof, seen.values()))


def _record_bytes(record: AttentionRecord) -> int:
    """Bytes of a record's tensors."""
    return sum(value.nbytes for value in vars(record).values() if isinstance(value, Tensor))
