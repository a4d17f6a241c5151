"""The sentences that move a head most (Vig & Belinkov 2019, section 5.4)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pandas as pd
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from .batch import Frame
from .statistic import ROWS, Caption, LayerAttention, Need, Reads

HOW_MANY = 10
NOTHING = -1.0
RANKED_TOGETHER = 256


@dataclass
class Exemplars:
    """For each head the sentences with the largest single weight to no sink, and the pair of tokens that has it.

    Sentences of the same tokens count once. Of equal weights the earlier sentence comes first.
    """

    caption: ClassVar[Caption] = Caption(
        "Exemplars", "", "The ten sentences with the largest single weight, and the pair of tokens that has it."
    )
    needs: ClassVar[tuple[Need, ...]] = ()
    reads: ClassVar[Reads] = ROWS  # the candidates of its blocks are ranked as those of equal texts are
    errors: ClassVar[Mapping[str, str]] = {}
    second_pass: ClassVar[None] = None

    values: Float64[Tensor, "layer head rank"]
    found: Int64[Tensor, "layer head rank 3"]
    """The place of the sentence in the corpus, the query and the key."""
    texts: dict[int, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    """The tokens and the text of each sentence named, by its place."""

    waiting: dict[int, list[tuple[Tensor, Tensor]]] = field(default_factory=dict)
    """Candidates of each layer that are not ranked yet: ranking many at once costs little more than ranking few."""

    @classmethod
    def empty(cls, frame: Frame) -> "Exemplars":
        """One that has seen nothing."""
        size = (frame.layers, frame.heads, HOW_MANY)
        return cls(torch.full(size, NOTHING, dtype=torch.float64), torch.full((*size, 3), -1))

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        readings = attention.batch.readings
        row_values, rows = attention.kept.amax(-1).max(-1)  # [sentence, head]: the first of the best rows
        best_rows = attention.kept.gather(2, rows[..., None, None].expand(-1, -1, 1, attention.kept.shape[-1]))
        places = torch.tensor([reading.place for reading in readings]).unsqueeze(1).expand(rows.shape)
        queries = rows.cpu() + attention.batch.queries.start
        found = torch.stack([places, queries, best_rows.squeeze(2).argmax(-1).cpu()], dim=-1)
        waiting = self.waiting.setdefault(attention.layer, [])
        values = row_values.double().cpu().masked_fill(row_values.cpu() <= 0, NOTHING)
        waiting.append((values.T, found.transpose(0, 1)))
        for reading in readings:
            self.texts.setdefault(reading.place, (reading.tokens, reading.sentence.text))
        if sum(values.shape[1] for values, _ in waiting) >= RANKED_TOGETHER:
            self._rank(attention.layer)

    def _rank(self, layer: int) -> None:
        waiting = self.waiting.pop(layer)
        self.values[layer], self.found[layer] = self._best(
            torch.cat([self.values[layer], *(values for values, _ in waiting)], dim=1),
            torch.cat([self.found[layer], *(found for _, found in waiting)], dim=1),
        )

    def _settle(self) -> None:
        """Rank what waits, and forget the texts that are no longer named."""
        for layer in list(self.waiting):
            self._rank(layer)
        named = set(self.found[..., 0].flatten().tolist())
        self.texts = {place: text for place, text in self.texts.items() if place in named}

    def merge(self, other: "Exemplars") -> None:
        """Take in what another has seen."""
        self._settle()
        other._settle()  # noqa: SLF001 -- one of us
        self.texts = {**self.texts, **other.texts}
        self.values, self.found = self._best(
            torch.cat([self.values, other.values], dim=-1), torch.cat([self.found, other.found], dim=-2)
        )

    def _best(
        self, values: Float64[Tensor, "*head candidate"], found: Int64[Tensor, "*head candidate 3"]
    ) -> tuple[Float64[Tensor, "*head rank"], Int64[Tensor, "*head rank 3"]]:
        """The best candidates, each text once: sorted by place, then by weight, where sorting keeps equals in order."""
        values, found = _sorted(values, found, found[..., 0], descending=False)
        values, found = _sorted(values, found, values, descending=True)
        texts = self._text_numbers(found[..., 0])
        earlier = (texts.unsqueeze(-1) == texts.unsqueeze(-2)).tril(-1).any(-1)
        values = values.masked_fill(earlier, NOTHING)
        values, found = _sorted(values, found, values, descending=True)
        return values[..., :HOW_MANY].clone(), found[..., :HOW_MANY, :].clone()

    def _text_numbers(self, places: Int64[Tensor, "*any"]) -> Int64[Tensor, "*any"]:
        """A number for each text, the same for the same tokens."""
        known, inverse = places.unique(return_inverse=True)
        numbers: dict[tuple[str, ...] | None, int] = {}
        of_place = [
            numbers.setdefault(self.texts[place][0] if place in self.texts else None, len(numbers))
            for place in known.tolist()
        ]
        return torch.tensor(of_place)[inverse]

    def blank(self) -> "Exemplars":
        """The same with nothing seen."""
        return Exemplars(torch.full_like(self.values, NOTHING), torch.full_like(self.found, -1))

    def result(self) -> pd.DataFrame:
        """The table: one row for each layer, head and rank, with the pair and the tokens."""
        self._settle()
        rows = []
        for layer, head, rank in (self.values > NOTHING).nonzero().tolist():
            place, query, key = self.found[layer, head, rank].tolist()
            tokens, text = self.texts[place]
            value = float(self.values[layer, head, rank])
            rows.append((layer, head, rank, value, query, key, tokens[query], tokens[key], list(tokens), text))
        columns = ["layer", "head", "rank", "value", "query", "key", "query_token", "key_token", "tokens", "text"]
        table = pd.DataFrame(rows, columns=columns)
        if rows:
            return table
        # without rows nothing tells what a column holds
        whole, texts = ("layer", "head", "rank", "query", "key"), ("query_token", "key_token", "text")
        return table.astype({**dict.fromkeys(whole, "int64"), "value": "float64", **dict.fromkeys(texts, "str")})

    def by_layer(self) -> None:
        """A layer as such has no exemplars."""

    def state(self) -> dict[str, Any]:
        """What has been seen, with the texts that are named."""
        self._settle()
        texts = {place: list(text) for place, text in self.texts.items()}
        return {"values": self.values, "found": self.found, "texts": texts}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Exemplars":
        """Read what `state` gave."""
        texts = {place: (tuple(tokens), text) for place, (tokens, text) in state["texts"].items()}
        return cls(state["values"], state["found"], texts)


def _sorted(values: Tensor, found: Tensor, by: Tensor, *, descending: bool) -> tuple[Tensor, Tensor]:
    order = by.sort(dim=-1, stable=True, descending=descending).indices
    return values.gather(-1, order), found.gather(-2, order.unsqueeze(-1).expand_as(found))
