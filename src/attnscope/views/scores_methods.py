"""The rows of the scores view: each method with its name, and what it says for a layer and a query."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import pandas as pd
import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from ..attribution import Comparison
from ..errors import BadInput
from ..record import AttentionRecord, TokenScores
from ..record.words import Level, units

if TYPE_CHECKING:
    from collections.abc import Iterator


Scores = TokenScores | Comparison | Sequence[TokenScores]
"""What the view takes."""
SAME = 1e-5
"""Scores that differ by no more are the same row of a map."""
SHARES = 1e-3
"""Scores that sum to one within this are shares of one whole, and so comparable between methods."""
SLOW = ("flow",)
"""Methods whose maps take long: each figure is an optimum of its own."""
WORK = 1_500_000
"""Layers x queries x tokens x tokens up to which a slow method is computed: 48 tokens and 12 layers, a second or so."""
ELEMENTS = 50_000_000
"""Numbers of a map that is computed only to take a few rows of it."""


@dataclass(frozen=True, eq=False)
class Method:
    """One method of the view."""

    name: str
    """What the method is called here: its own name, numbered where it comes more than once."""
    scores: TokenScores
    readout: Float64[Tensor, " query"] | None
    """Where the model reads its answer, where it is known."""
    by_layer: Float64[Tensor, "layer key"] | None = None
    """What the read-out gets at each layer, where a page takes it along."""
    map: Float64[Tensor, "layer query key"] | None = None
    """What every query gets at each layer, where a page takes it along."""
    without: str = ""
    """Why there is no map, in words."""

    @property
    def has_map(self) -> bool:
        """Whether it scores tokens for other queries and layers too."""
        return self.scores.compute_row is not None and self.scores.size[0] > 0

    @property
    def sources(self) -> list[int]:
        """The queries that the answer is read from."""
        return [] if self.readout is None else [int(place) for place in self.readout.nonzero().flatten()]

    @property
    def own(self) -> Float64[Tensor, " key"]:
        """What the method says by itself, of the read-out."""
        return self.scores.scores.detach().double()

    @property
    def is_signed(self) -> bool:
        """Whether any of its scores is below zero."""
        return any(bool((part < 0).any()) for part in (self.own, self.by_layer, self.map) if part is not None)

    def row(self, layer: int | None, queries: Sequence[int]) -> Float64[Tensor, " key"] | None:
        """The scores for a layer by its place (the last if none) and the mean over queries, or for the read-out.

        None where they are not here, and where nothing but the method's own scores is asked for.
        """
        if queries:
            return None if self.map is None else self.map[-1 if layer is None else layer, list(queries)].mean(0)
        return None if layer is None or self.by_layer is None else self.by_layer[layer]

    @property
    def is_shares(self) -> bool:
        """Whether its scores are shares of one whole."""
        beside = 0.0 if self.scores.prefix is None else float(self.scores.prefix.scores.sum())
        return bool((self.own >= 0).all()) and abs(float(self.own.sum()) + beside - 1) <= SHARES

    def is_quick(self, queries: int) -> bool:
        """Whether the rows of so many queries at every layer are computed without a long wait."""
        layers, keys = self.scores.size[0], len(self.scores.tokens)
        # a cached property lies in the instance's dictionary once it has been computed
        known = "map" in self.scores.__dict__
        return known or self.scores.method not in SLOW or layers * queries * keys * keys <= WORK

    def of_readout(self, layer: int) -> Float64[Tensor, " key"]:
        """What the read-out gets at a layer."""
        if self.readout is None:
            raise BadInput(f"The read-out of the scores of {self.name} is not known: give the record as record=.")
        # one row may be had without the whole map
        if self.scores.method not in SLOW and len(self.sources) > 1:
            return self.readout @ self.scores.map[layer].detach().double()
        rows = torch.stack([self.scores.at(query, layer).detach().double() for query in self.sources])
        return self.readout[self.sources] @ rows


def has_whole_map(scores: TokenScores) -> bool:
    """Whether a map can be had at once: of a record of vectors it comes row by row."""
    try:
        return scores.map is not None
    except BadInput:
        return False


def methods_of(scores: Scores, record: AttentionRecord | None) -> list[Method]:
    """The methods of the view, checked to be of the same tokens."""
    several = scores.scores if isinstance(scores, Comparison) else scores
    given = [several] if isinstance(several, TokenScores) else several
    if not given:
        raise BadInput("There is nothing to show: give the scores of at least one method.")
    _check_same_tokens(given, record)
    of_tokens = record is not None and level_of(given[0], record) == "token"
    readout = record.readout.double() if record is not None and of_tokens else _readout_in(given)
    counts: dict[str, int] = {}
    methods = []
    for one in given:
        counts[one.method] = counts.get(one.method, 0) + 1
        name = one.method if counts[one.method] == 1 else f"{one.method} {counts[one.method]}"
        methods.append(Method(name, one, readout))
    return methods


def level_of(scored: TokenScores, record: AttentionRecord) -> Level | None:
    """What of a record was scored: its tokens, words or sentences; None where it was another record."""
    levels: tuple[Level, ...] = get_args(Level)
    known = (record.key_tokens, record.key_special, record.key_word_ids)
    return next((level for level in levels if units(*known, level)[1] == scored.tokens), None)


def _check_same_tokens(given: Sequence[TokenScores], record: AttentionRecord | None) -> None:
    first = given[0]
    for other in given[1:]:
        if other.tokens != first.tokens:
            raise BadInput(
                f"Methods stand side by side on the same tokens, but {first.method} scores {_some(first.tokens)} and"
                f" {other.method} {_some(other.tokens)}: score one record by both, at the same level."
            )
        if first.size[1] and other.size[1] and first.size != other.size:
            raise BadInput(
                f"The map of {first.method} has {first.size[0]} layers and {first.size[1]} queries, and that of"
                f" {other.method} {other.size[0]} and {other.size[1]}: score one record by both."
            )
    if not first.tokens:
        raise BadInput("There is nothing to show: these scores are of no tokens.")
    if record is None:
        return
    if level_of(first, record) is None:
        raise BadInput(
            f"This record is not the one that was scored: it has {_some(record.key_tokens)}, the scores are of"
            f" {_some(first.tokens)}."
        )
    sizes = {one.size for one in given if one.size[0]}
    if sizes and sizes != {(len(record.layers), len(record.query_tokens))}:
        layers, queries = next(iter(sizes))
        raise BadInput(
            f"This record is not the one that was scored: it has {len(record.layers)} layers and"
            f" {len(record.query_tokens)} queries, the scores {layers} and {queries}."
        )


def _some(tokens: Sequence[str]) -> str:
    start = " ".join(token[:12] for token in tokens[:3])
    return f"{len(tokens)} token{'s' * (len(tokens) != 1)} ({start}{' …' * (len(tokens) > 3)})"


def _readout_in(given: Sequence[TokenScores]) -> Float64[Tensor, " query"] | None:
    """Where the answer is read, as the scores themselves tell: one row of a map is they, or the mean of all rows is."""
    for method in given:
        for readout in _readouts(method):
            return readout
    return None


def _readouts(method: TokenScores) -> "Iterator[Float64[Tensor, ' query']]":
    layers, queries, keys = *method.size, len(method.tokens)
    quick = layers * queries * keys * keys <= WORK if method.method in SLOW else layers * queries * keys <= ELEMENTS
    if not layers or not quick or not has_whole_map(method):
        return
    scores = method.scores.detach().double()
    for layer in reversed(range(layers)):
        rows = method.map[layer].detach().double()
        same: Bool[Tensor, " query"] = ((rows - scores).abs() <= SAME).all(-1)
        if int(same.sum()) == 1:
            yield torch.eye(len(rows), dtype=torch.float64)[int(same.nonzero()[0, 0])]
        if bool(((rows.mean(0) - scores).abs() <= SAME).all()):
            yield torch.full((len(rows),), 1 / len(rows), dtype=torch.float64)


# How far each method can be trusted on this model, as it stands beside the method's name.


AGAINST = ("blank_out", "gradient")
"""What the methods of a trust table are held against; the first of these that is there counts."""
PLAIN = "Trust: how well the method follows this model, with its interval."


def trust_of(trust: Any) -> tuple[dict[str, dict[str, float]], str]:
    """Value, low and high of each method, and what they are in a sentence.

    Taken are a mapping of methods to {"value", "low", "high"}, and the table of `attnscope.trust` or what holds it.
    """
    if trust is None:
        return {}, ""
    table = getattr(trust, "table", trust)
    if isinstance(table, pd.DataFrame):
        return _of_table(table)
    if not isinstance(table, Mapping):
        raise BadInput('trust is a mapping of methods to {"value", "low", "high"}, or the table of attnscope.trust().')
    return {str(name): _figures(str(name), figures) for name, figures in table.items()}, PLAIN


def _figures(name: str, figures: Any) -> dict[str, float]:
    if not isinstance(figures, Mapping) or "value" not in figures:
        raise BadInput(f'The trust in {name} is {{"value", "low", "high"}}, not {figures!r}.')
    found = {key: float(figures[key]) for key in ("value", "low", "high") if figures.get(key) is not None}
    return {key: value for key, value in found.items() if math.isfinite(value)}


def _of_table(table: pd.DataFrame) -> tuple[dict[str, dict[str, float]], str]:
    """The rank agreement over all texts, special tokens set aside, of the scores that a method gives by itself."""
    missing = {"method", "against", "measure", "special", "bucket", "layer", "value", "low", "high"} - set(table)
    if missing:
        raise BadInput(f"This is no trust table: it lacks {', '.join(sorted(missing))}.")
    rows = table[(table["bucket"] == "all") & table["layer"].isna() & (table["special"] == "without")]
    rows = rows[rows["measure"] == "spearman"]
    against = next((name for name in AGAINST if name in set(rows["against"])), None)
    rows = rows[rows["against"] == against]
    plain = rows[["method", "value", "low", "high"]].to_dict("records")
    figures = {str(row["method"]): _figures(str(row["method"]), row) for row in plain}
    sentence = f"Trust: rank agreement with {against} on texts of this model without special tokens, and its interval."
    return figures, sentence if figures else ""
