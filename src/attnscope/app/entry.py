"""One text that was looked at: its records, what the methods said, and the views made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Any

from torch import Tensor

from ..attribution import Comparison
from ..attribution.choosing import every_method, runs_model, score
from ..capture import InstrumentedModel
from ..errors import BadInput
from ..evaluation import Trust
from ..explaining import quantity_options, record_with_everything
from ..progress import tell
from ..record import AttentionRecord, Text, TokenScores
from ..surveying import Survey
from ..views import View
from ..views.weights import OnDemand
from .turns import Work

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
    survey: Survey | None = None
    trust: Trust | None = None
    scores: dict[str, TokenScores] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    rich: AttentionRecord | None = None
    vectors: AttentionRecord | None = None
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

    def keep_view(self, key: str, view: View) -> None:
        """Keep a view that was made, and count it."""
        self.views[key] = view
        self.payload_bytes += _plain_bytes(view.payload)

    @property
    def default_methods(self) -> list[str]:
        """The methods that are run where none are chosen."""
        if self.record is None:
            return []
        if len(self.record.key_tokens) <= QUICK_TOKENS:
            return list(every_method())
        return list(QUICK)

    def needs_model(self, methods: Sequence[str]) -> bool:
        """Whether these methods run the model: again, or for the gradients that the record does not hold."""
        missing = [name for name in methods if name not in self.scores and name not in self.left_out]
        return self.model is not None and any(
            need_of(name) == "model" or (self.rich is None and name not in ON_WEIGHTS) for name in missing
        )

    def with_everything(self) -> AttentionRecord:
        """The record with gradients and values, as far as there are any."""
        if self.rich is None and self.model is not None and self.text is not None:
            self.rich = record_with_everything(self.model, self.text)
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
            self.vectors = self.model.record(self.text, queries_and_keys=True)
        return self.vectors

    def compare(self, methods: Sequence[str], work: Work) -> Comparison:
        """What these methods say, each computed once; of those that cannot be used here, why."""
        for name in methods:
            if name in self.scores or name in self.left_out:
                continue
            work.on(name)
            tell(0, 0)
            record = self.record if name in ON_WEIGHTS and self.record is not None else self.with_everything()
            try:
                self.scores[name] = score(record, name, every_method()[name], self.model, options=self._options(name))
            except BadInput as lacking:
                self.left_out[name] = str(lacking)
        found = tuple(self.scores[name] for name in methods if name in self.scores)
        left_out = {name: self.left_out[name] for name in methods if name in self.left_out}
        if not found:
            raise BadInput(" ".join(left_out.values()) or "Choose at least one method.")
        return Comparison(found, left_out)

    def _options(self, name: str) -> dict[str, Any]:
        """What a method is asked: with signs, and what of the outcome it follows."""
        return {"signed": True} if self.model is None else {"signed": True, **quantity_options(name, self.model)}


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
