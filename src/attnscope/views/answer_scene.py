"""What the answer view shows: which passages of the prompt the words of an answer took from, and the way back.

Scores come as one array `[token, passage]` for each method. Passages tile what the model read, and the score of a
span of the answer is the sum over its tokens, so that every sum made of them is exact.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from jaxtyping import Float64

from ..errors import BadInput
from .scales import Scale
from .tables import tidy_table, token_column
from .weights import deflate

Kind = Literal["document", "question", "turn", "answer", "marker"]
"""What a part of the prompt is: what was given to read, what was asked, any other turn, the answer's own earlier
tokens, or what no person wrote: markers of roles and sinks, on which attention rests."""
KINDS: tuple[Kind, ...] = get_args(Kind)
SIDE: tuple[Kind, ...] = ("answer", "marker")
"""Kinds that have no ink: a few tokens of these take most of what attention gives."""
ORDERS = ("strongest", "drop", "reading")


@dataclass(frozen=True)
class Part:
    """A document, the question, a turn: what stands under one heading."""

    name: str
    kind: Kind


@dataclass(frozen=True)
class Passage:
    """A sentence or another leaf of a part, as it stands in the prompt with the space behind it."""

    text: str
    part: int


@dataclass(frozen=True, eq=False)
class AnswerMethod:
    """What one method says."""

    name: str
    scores: Float64[np.ndarray, "token passage"]
    warnings: tuple[str, ...] = ()

    @property
    def is_signed(self) -> bool:
        """Whether any of its scores is below zero."""
        return bool((self.scores < 0).any())


@dataclass(frozen=True, eq=False)
class AnswerRows:
    """What a state selects: where the scores of some tokens go, and which words took from some passages."""

    method: AnswerMethod
    tokens: tuple[int, ...]
    """The tokens of the answer that are selected."""
    shares: Float64[np.ndarray, " passage"]
    """The share of each passage in the score of these tokens; of signed scores in their sum without signs."""
    part_shares: Float64[np.ndarray, " part"]
    origin: Mapping[Kind, float]
    """The same by kind of part."""
    order: tuple[int, ...]
    """The parts that are shown, in their order."""
    scale: Scale
    """Of the passages that have ink."""
    source: tuple[int, ...]
    """The passages that words of the answer are coloured by: those that are chosen, or all that was given to read."""
    word_shares: Float64[np.ndarray, " word"]
    """Of the score of each word, the share that these passages have."""
    word_scale: Scale
    drops: Float64[np.ndarray, " part"]
    """By how much the log-probability of the tokens falls without a part; NaN where that was not measured."""
    drop_of_all: float
    """The same without any document."""


@dataclass(frozen=True, eq=False)
class AnswerScene:
    """An answer, what was read for it, and what methods say of the two; page and printed figure draw the same."""

    texts: Sequence[str]
    """The answer token by token: what each adds to the text, nothing where it only begins a letter."""
    words: Sequence[Sequence[int]]
    """The tokens of each word."""
    probabilities: Float64[np.ndarray, " token"]
    parts: Sequence[Part]
    passages: Sequence[Passage]
    methods: Sequence[AnswerMethod]
    notes: tuple[str, ...] = ()
    """What must be said of this answer, whatever the method."""
    drops: Float64[np.ndarray, "token part"] | None = None
    drop_of_all: Float64[np.ndarray, " token"] | None = None

    @cached_property
    def context(self) -> tuple[int, ...]:
        """The passages that were given to read; of a prompt without documents all that was written in it."""
        read = self._passages_of({"document"})
        return read or self._passages_of(set(KINDS) - set(SIDE))

    @cached_property
    def part_places(self) -> list[list[int]]:
        """The passages of each part."""
        places: list[list[int]] = [[] for _ in self.parts]
        for place, passage in enumerate(self.passages):
            places[passage.part].append(place)
        return places

    def _passages_of(self, kinds: Collection[str]) -> tuple[int, ...]:
        return tuple(place for place, passage in enumerate(self.passages) if self.parts[passage.part].kind in kinds)

    def describe(self) -> dict[str, Any]:
        """The payload of a script."""
        return {
            "tokens": list(self.texts),
            "words": [list(word) for word in self.words],
            "probabilities": [float(f"{share:.6g}") for share in self.probabilities],
            "parts": [{"name": part.name, "kind": part.kind} for part in self.parts],
            "passages": [{"text": passage.text, "part": passage.part} for passage in self.passages],
            "context": list(self.context),
            "methods": [
                {"name": method.name, "signed": method.is_signed, "warnings": list(method.warnings)}
                for method in self.methods
            ],
            "notes": list(self.notes),
            "drops": self.drops is not None,
            "dropOfAll": self.drop_of_all is not None,
        }

    def blobs(self) -> dict[str, bytes]:
        """The arrays as 32-bit floats: `scores` of a method's place; `drops` with those of all documents behind."""
        blobs = {f"scores{place}": deflate(method.scores.astype("<f4")) for place, method in enumerate(self.methods)}
        missing = np.full((len(self.texts), 1), math.nan)
        if self.drops is not None or self.drop_of_all is not None:
            drops = np.full((len(self.texts), len(self.parts)), math.nan) if self.drops is None else self.drops
            every = missing if self.drop_of_all is None else self.drop_of_all[:, None]
            blobs["drops"] = deflate(np.concatenate([drops, every], axis=1).astype("<f4"))
        return blobs

    def rows(self, state: Mapping[str, Any]) -> AnswerRows:
        """What a state selects; the same rules as those of the screen, in answer_rows.js."""
        method = next((one for one in self.methods if one.name == state.get("method")), self.methods[0])
        tokens = [place for place in state.get("queries") or () if place < len(self.texts)] or range(len(self.texts))
        chosen = [place for place in state.get("keys") or () if place < len(self.passages)]
        shares = _shares(method.scores[list(tokens)])
        part_shares = np.array([shares[places].sum() for places in self.part_places])
        origin = {
            kind: float(sum(share for share, part in zip(part_shares, self.parts, strict=True) if part.kind == kind))
            for kind in KINDS
        }
        shown = [place for place, part in enumerate(self.parts) if state.get("special") or part.kind not in SIDE]
        drops = None if self.drops is None else self.drops[list(tokens)].sum(0)
        sizes = {"strongest": np.abs(part_shares), "drop": drops}.get(state.get("order", "strongest"))
        if sizes is not None:
            falls = np.nan_to_num(sizes, nan=-math.inf)
            shown.sort(key=lambda place: (KINDS.index(self.parts[place].kind), -falls[place], place))
        inked = [place for place, one in enumerate(self.passages) if self.parts[one.part].kind not in SIDE]
        source = tuple(chosen) or self.context
        word_shares = np.array([_shares(method.scores[list(word)])[list(source)].sum() for word in self.words])
        every = None if self.drop_of_all is None else self.drop_of_all[list(tokens)].sum()
        return AnswerRows(
            method=method,
            tokens=tuple(tokens),
            shares=shares,
            part_shares=part_shares,
            origin=origin,
            order=tuple(shown),
            scale=Scale(0.0, float(np.abs(shares[inked]).max(initial=0.0))),
            source=source,
            word_shares=word_shares,
            word_scale=Scale(0.0, float(np.abs(word_shares).max(initial=0.0))),
            drops=np.full(len(self.parts), math.nan) if drops is None else drops,
            drop_of_all=math.nan if every is None else float(every),
        )

    def to_frame(self) -> pd.DataFrame:
        """Every score as a row: method, position and token of the answer, part, passage, score, and the part's drop."""
        parts = [self.parts[passage.part] for passage in self.passages]
        frames = [
            tidy_table(
                {
                    "method": (0, [method.name]),
                    "position": (1, range(len(self.texts))),
                    "token": (1, token_column(self.texts)),
                    "kind": (2, token_column([part.kind for part in parts])),
                    "part": (2, token_column([part.name for part in parts])),
                    "passage": (2, token_column([passage.text.strip() for passage in self.passages])),
                },
                score=method.scores[None],
            )
            for method in self.methods
        ]
        table = pd.concat(frames, ignore_index=True)
        if self.drops is not None:
            each = self.drops[:, [passage.part for passage in self.passages]]
            table["part_drop"] = np.tile(each.reshape(-1), len(self.methods))
        return table


def _shares(scores: Float64[np.ndarray, "token passage"]) -> Float64[np.ndarray, " passage"]:
    """The sum over tokens, as shares of all of it without signs; nothing where there is nothing."""
    whole = float(np.abs(scores).sum())
    summed: Float64[np.ndarray, " passage"] = scores.sum(0)
    return summed / whole if whole > 0 else np.zeros_like(summed)


def check_scene(scene: AnswerScene) -> None:
    """Refuse what cannot be shown."""
    if not scene.texts:
        raise BadInput("There is nothing to show: the answer has no tokens.")
    if not scene.methods:
        raise BadInput("There is nothing to show: name at least one method.")
    for method in scene.methods:
        if not np.isfinite(method.scores).all():
            raise BadInput(f"{method.name} gives scores that are not numbers: choose other methods.")
