"""One text that was looked at: its records, what the methods said, and the views made of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from ..attribution import Comparison
from ..attribution.choosing import every_method, runs_model, score
from ..capture import InstrumentedModel
from ..errors import BadInput
from ..explaining import record_with_everything
from ..progress import tell
from ..record import AttentionRecord, Text, TokenScores
from ..surveying import Survey
from ..views import View
from ..views.packing import OnDemand
from .turns import Work

RICH_TOKENS = 128
"""Tokens up to which a text is recorded with gradients and values at once; longer ones when a method asks for them."""
QUICK_TOKENS = 48
"""Tokens up to which every method is asked unasked."""
QUICK = ("raw", "rollout", "layerwise_tracing")
"""Methods that are asked unasked of any text."""
ON_WEIGHTS = (*QUICK, "flow")
"""Methods that need the weights alone."""
HELD = 5
"""Bytes that a view of maps holds for each deflated byte: its figures are 64-bit floats."""


@dataclass(eq=False)
class Entry:
    """What is kept of one text, or of a record or survey that was opened."""

    name: str
    record: AttentionRecord | None = None
    model_name: str | None = None
    model: InstrumentedModel | None = None
    text: Text | None = None
    survey: Survey | None = None
    scores: dict[str, TokenScores] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    rich: AttentionRecord | None = None
    vectors: AttentionRecord | None = None

    @property
    def size(self) -> int:
        """Bytes of its records, counted once each, and of what its views hold ready."""
        records = {id(record): record for record in (self.record, self.rich, self.vectors) if record is not None}
        # a list first: another thread may be making a view
        made = [view.blobs for view in list(self.views.values()) if not isinstance(view.blobs, OnDemand)]
        held = HELD * sum(len(blob) for blobs in made for blob in blobs.values())
        return held + sum(_record_bytes(record) for record in records.values())

    @property
    def default_methods(self) -> list[str]:
        """The methods that are asked unasked."""
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

    def compared(self, methods: Sequence[str], work: Work) -> Comparison:
        """What these methods say, each computed once; of those that cannot be used here, why."""
        for name in methods:
            if name in self.scores or name in self.left_out:
                continue
            work.on(name)
            tell(0, 0)
            record = self.record if name in ON_WEIGHTS and self.record is not None else self.with_everything()
            try:
                self.scores[name] = score(record, name, every_method()[name], self.model)
            except BadInput as lacking:
                self.left_out[name] = str(lacking)
        found = tuple(self.scores[name] for name in methods if name in self.scores)
        left_out = {name: self.left_out[name] for name in methods if name in self.left_out}
        if not found:
            raise BadInput(" ".join(left_out.values()) or "Choose at least one method.")
        return Comparison(found, left_out)


def need_of(method: str) -> str:
    """What a method needs: the weights alone, gradients or values in the record, or the model itself."""
    if method in ON_WEIGHTS:
        return "weights"
    return "model" if runs_model(every_method()[method]) else "gradients"


def _record_bytes(record: AttentionRecord) -> int:
    """Bytes of a record's tensors."""
    return sum(value.nbytes for value in vars(record).values() if isinstance(value, Tensor))
