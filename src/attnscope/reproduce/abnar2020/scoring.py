"""Tables 1 and 2: what raw attention, rollout and flow give each token of a sentence, and how far the model uses it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from ...attribution import blank_out, flow, gradient, raw, rollout
from ...attribution.comparing import ranks, round_scores
from ...engine import Store
from ...evaluation.per_text import position_scores, random_scores
from ...evaluation.tables import interval, means, resampled_means
from ...lab.data import AgreementExample
from ...lab.models import AgreementTransformer
from ...record import AttentionRecord, Model
from ..evenness import evenness

METHODS = ("raw", "rollout", "flow")
BASELINES = ("random", "position")
REFERENCES = ("blank_out", "gradient", "gradient_sum")
"""Blank-out; the length of the gradient; and the size of its sum over dimensions, which is what the authors take.

LayerNorm takes out what all dimensions have in common, and in GPT-2's blocks one stands on every way from the input to
the answer: that sum is 0, and what a computer gives for it is rounding.
"""


@dataclass(frozen=True, eq=False)
class SentenceScores:
    """The scores of one sentence; a token is [CLS], a word, or the verb's place."""

    methods: Float64[Tensor, "method layer token"]
    """The row of [CLS] at every layer, in the order of METHODS; flows are divided by their sum."""
    baselines: Float64[Tensor, "baseline token"]
    references: Float64[Tensor, "reference token"]
    saturated: Float64[Tensor, " layer"]
    """The share of the flows from [CLS] that are just their trivial cut."""
    subject: int
    """The position of the subject among the tokens, -1 where nobody knows."""
    attractors: int
    right: bool
    """Whether the model gives the verb its number."""


def score_sentence(
    example: AgreementExample, record: AttentionRecord, model: Model, *, seed: int = 0, number: int = 0
) -> SentenceScores:
    """All scores of a sentence whose record holds the gradient of p(right) - p(wrong).

    `seed` and the sentence's `number` make its random scores. Blank-out puts [UNK] in the place of each token, [CLS]
    and the verb's place too, and follows the probability of the right number, as the authors do.
    """
    tokens = len(record.tokens)
    flows = flow(record, queries=[0])
    reaching = flows.map[:, 0]
    rows = (raw(record).map[:, 0].double(), rollout(record).map[:, 0].double(), shares(reaching))
    removed = blank_out(record, model, replacement="unk", target=example.number, batch_size=tokens + 1)
    lengths, sums = (gradient(record, reduce).scores.double() for reduce in ("norm", "abs_sum"))
    longest = lengths.max()  # as shares of it, sums that are only rounding still have an order
    chance = random_scores(tokens, seed, number)
    return SentenceScores(
        methods=torch.stack(rows),
        baselines=torch.stack([chance, position_scores(record.readout, tokens)]),
        references=torch.stack([removed.scores.double(), lengths / longest, sums / longest]),
        saturated=flows.saturated,
        subject=example.subject + 1 if example.subject >= 0 else -1,
        attractors=example.attractors,
        right=record.prediction[0][0] == example.number,
    )


def shares(flows: Float64[Tensor, "layer token"]) -> Float64[Tensor, "layer token"]:
    """Flows divided by their sum, as the paper shows them."""
    return flows / flows.sum(-1, keepdim=True)


# All sentences of Tables 1 and 2, scored for one model.


PART = 100
"""Sentences between two looks at the disk: some seconds of work."""

State = dict[str, Any]


def score_sentences(
    model: AgreementTransformer,
    weights: str,
    examples: Sequence[AgreementExample],
    folder: Path,
    seed: int,
    watch: Callable[[int, int], None],
) -> list[SentenceScores]:
    """The scores of all sentences in their order; each part of them is kept in `folder`.

    `weights` tells this model from others.
    """
    work = partial(_score_part, model, seed)
    store = Store(folder, "model", {"weights": weights})
    parts = store.in_parts(examples, PART, work, AgreementExample.to_dict, watch)
    return [SentenceScores(**state) for state in chain.from_iterable(parts)]


def _score_part(
    model: AgreementTransformer, seed: int, examples: Sequence[AgreementExample], start: int
) -> list[State]:
    """The scores of some sentences; gradients are of p(right) - p(wrong), one target to a run."""
    instrumented = model.instrumented()
    found: dict[int, State] = {}
    for number in sorted({example.number for example in examples}):
        places = [place for place, example in enumerate(examples) if example.number == number]
        texts = [list(examples[place].words) for place in places]
        records = instrumented.records(texts, gradients=True, target=number, quantity="difference")
        for place, record in zip(places, records, strict=True):
            found[place] = vars(score_sentence(examples[place], record, instrumented, seed=seed, number=start + place))
    return [found[place] for place in range(len(examples))]


# How scores and references agree on the order of a sentence's tokens: by average ranks, and as the authors ranked.
# The authors' code puts dense ranks (ties share a rank, and the next rank follows at once) into the formula for
# scores without ties. Scores that are often tied then seem to agree: with half the tokens tied, independent ones get
# about +.22.


RANKS = ("authors", "average")
"""The authors' formula on dense ranks, and Spearman's correlation proper: Pearson's of average ranks."""


def dense_ranks(scores: Float[np.ndarray, " token"]) -> Int64[np.ndarray, " token"]:
    """Ranks from 1 for the smallest without gaps: ties share one, and the next score has the next.

    >>> dense_ranks(np.array([0.2, 0.7, 0.2, 0.9]))
    array([1, 2, 1, 3])
    """
    places: Int64[np.ndarray, " token"] = np.unique(round_scores(scores), return_inverse=True)[1] + 1
    return places


def by_authors(
    scores: Float[np.ndarray, "row token"], references: Float[np.ndarray, "reference token"]
) -> Float64[np.ndarray, "reference row"]:
    """1 - 6 Σ d² / (n (n² - 1)) with d the difference of dense ranks, as the authors' code has it; NaN below two."""
    count = scores.shape[1]
    if count < 2:
        return np.full((len(references), len(scores)), np.nan)
    of_scores, of_references = (np.array([dense_ranks(row) for row in table]) for table in (scores, references))
    apart = of_references[:, None, :] - of_scores[None, :, :]
    found: Float64[np.ndarray, "reference row"] = 1 - 6 * (apart**2).sum(-1) / (count * (count**2 - 1))
    return found


def by_average_ranks(
    scores: Float[np.ndarray, "row token"], references: Float[np.ndarray, "reference token"]
) -> Float64[np.ndarray, "reference row"]:
    """Spearman's correlation of each row with each reference; NaN where one of them is all ties."""
    of_scores, of_references = (np.array([ranks(row) for row in table]) for table in (scores, references))
    of_scores, of_references = (table - table.mean(1, keepdims=True) for table in (of_scores, of_references))
    together = of_references @ of_scores.T
    spread = np.sqrt(np.outer((of_references**2).sum(1), (of_scores**2).sum(1)))
    found: Float64[np.ndarray, "reference row"] = np.full_like(together, np.nan)
    np.divide(together, spread, out=found, where=spread > 0)
    return found


def correlations(
    scores: Float[np.ndarray, "row token"], references: Float[np.ndarray, "reference token"]
) -> Float64[np.ndarray, "ranks reference row"]:
    """Every row with every reference, in both ways of RANKS."""
    return np.stack([by_authors(scores, references), by_average_ranks(scores, references)])


# The tables themselves: each figure is a mean over sentences, with its spread and the interval of the mean.


TOKENS = ("all", "words")
"""All tokens, as the authors rank them; and the words alone, without [CLS] and the verb's place."""
KEYS = ["reference", "method", "layer", "ranks", "tokens"]

Cell = tuple[str, str, int, str, str]
"""Reference, method, layer from 1 (0 for a baseline, which has none), ranks and tokens."""


@dataclass(frozen=True, eq=False)
class Correlations:
    """What every sentence gives one model for every cell of a table; `seed` is None where there is but one model."""

    seed: int | None
    cells: tuple[Cell, ...]
    values: Float64[np.ndarray, "sentence cell"]
    """NaN where a sentence ranks nothing."""

    @property
    def name(self) -> str:
        """The model in words."""
        return "the classifier" if self.seed is None else f"seed {self.seed}"

    @cached_property
    def _place(self) -> dict[Cell, int]:
        return {cell: place for place, cell in enumerate(self.cells)}

    def mean(self, cell: Cell) -> float:
        """The mean over the sentences that have it; NaN where none has."""
        return float(means(self.values[:, [self._place[cell]]])[0])

    def difference(self, one: Cell, other: Cell) -> tuple[float, float, float]:
        """How much higher one is than the other where a sentence has both: the mean, and its 95% interval.

        The interval is that of the mean when sentences are drawn again.
        """
        apart = self.values[:, [self._place[one]]] - self.values[:, [self._place[other]]]
        low, high = interval(resampled_means(apart, seed=0))
        return float(means(apart)[0]), float(low[0]), float(high[0])

    def table(self) -> pd.DataFrame:
        """One row for each cell: mean, population SD over sentences, interval of the mean, sentences that have it."""
        low, high = interval(resampled_means(self.values, seed=0))
        rows = pd.DataFrame(list(self.cells), columns=KEYS)
        spread = np.array([np.nan if np.isnan(column).all() else np.nanstd(column) for column in self.values.T])
        there = (~np.isnan(self.values)).sum(0)
        return rows.assign(seed=self.seed, mean=means(self.values), sd=spread, low=low, high=high, sentences=there)[
            ["seed", *KEYS, "mean", "sd", "low", "high", "sentences"]
        ]


def scores_of(layers: int) -> list[tuple[str, int]]:
    """The rows that are ranked: every method at every layer, from 1, and the baselines, which have none."""
    return [(method, layer + 1) for method in METHODS for layer in range(layers)] + [(name, 0) for name in BASELINES]


def cells_of(layers: int) -> tuple[Cell, ...]:
    """Every cell, in the order of what `correlations` gives."""
    return tuple(
        (reference, method, layer, ranks, tokens)
        for tokens in TOKENS
        for ranks in RANKS
        for reference in REFERENCES
        for method, layer in scores_of(layers)
    )


def correlate(seed: int, sentences: Sequence[SentenceScores]) -> Correlations:
    """All cells of all sentences."""
    layers = sentences[0].methods.shape[1]
    values = np.array([list(_cell_values(sentence)) for sentence in sentences])
    return Correlations(seed, cells_of(layers), values)


def _cell_values(sentence: SentenceScores) -> Iterator[float]:
    scores = np.concatenate([sentence.methods.flatten(0, 1).numpy(), sentence.baselines.numpy()])
    references = sentence.references.numpy()
    for tokens in (slice(None), slice(1, -1)):
        yield from correlations(scores[:, tokens], references[:, tokens]).ravel().tolist()


Scores = Mapping[int, Sequence[SentenceScores]]
"""What all sentences of the tables give the model of each seed."""


def _for_each_seed(
    columns_of: Callable[[Sequence[SentenceScores]], dict[str, Any]],
) -> Callable[[Scores], pd.DataFrame]:
    """Let what is measured on the sentences of one model be a table of the models of all seeds."""

    @wraps(columns_of)
    def table(scores: Scores) -> pd.DataFrame:
        tables = [pd.DataFrame({"seed": seed, **columns_of(sentences)}) for seed, sentences in scores.items()]
        return pd.concat(tables, ignore_index=True)

    return table


@_for_each_seed
def saturation_table(sentences: Sequence[SentenceScores]) -> dict[str, Any]:
    """The share of the flows from [CLS] that are just their trivial cut, and of tokens tied with another, by layer."""
    saturated = np.stack([sentence.saturated.numpy() for sentence in sentences])
    low, high = interval(resampled_means(saturated, seed=0))
    ties = np.stack([_tie_shares(sentence.methods[METHODS.index("flow")].numpy()) for sentence in sentences])
    layers = range(1, saturated.shape[1] + 1)
    return {"layer": layers, "saturated": saturated.mean(0), "low": low, "high": high, "tied": ties.mean(0)}


def _tie_shares(flows: Float64[np.ndarray, "layer token"]) -> Float64[np.ndarray, " layer"]:
    """The share of tokens whose flow another token has too."""
    found = [np.unique(round_scores(row), return_inverse=True, return_counts=True) for row in flows]
    return np.array([(count[place] > 1).mean() for _, place, count in found])


@_for_each_seed
def evenness_table(sentences: Sequence[SentenceScores]) -> dict[str, Any]:
    """How evenly each method spreads over the tokens, by layer: its entropy as a share of the largest."""
    values = np.stack([evenness(sentence.methods.numpy()).ravel() for sentence in sentences])
    low, high = interval(resampled_means(values, seed=0))
    names = scores_of(sentences[0].methods.shape[1])[: values.shape[1]]  # without the baselines, which come last
    methods, layers = zip(*names, strict=True)
    return {"method": methods, "layer": layers, "evenness": means(values), "low": low, "high": high}


@_for_each_seed
def residual_table(sentences: Sequence[SentenceScores]) -> dict[str, Any]:
    """What [CLS] has from itself (`own`) and how evenly it has from the words (`even`), by method and layer.

    For the second, [CLS] and the verb's place are left out and the rest divided by its sum: as the residual fades, the
    whole row becomes more even, whatever becomes of the words. Sentences of one word have no evenness.
    """
    names = scores_of(sentences[0].methods.shape[1])[: -len(BASELINES)]
    methods, layers = zip(*names, strict=True)
    own = np.stack([sentence.methods[..., 0].numpy().ravel() for sentence in sentences])
    even = np.stack([_evenness_of_words(sentence) for sentence in sentences])
    found: dict[str, Any] = {"method": methods, "layer": layers}
    for name, values in (("own", own), ("even", even)):
        low, high = interval(resampled_means(values, seed=0))
        found |= {name: means(values), f"{name}_low": low, f"{name}_high": high}
    return found


def _evenness_of_words(sentence: SentenceScores) -> Float64[np.ndarray, " row"]:
    words = sentence.methods[..., 1:-1].flatten(0, 1).numpy()
    if words.shape[1] < 2:
        return np.full(len(words), np.nan)
    return evenness(words / words.sum(1, keepdims=True))


def first_layer_gap(sentences: Sequence[SentenceScores]) -> float:
    """The largest difference of any token's share between rollout and flow at the first layer."""
    rollout, flow = METHODS.index("rollout"), METHODS.index("flow")
    return float(max((one.methods[rollout, 0] - one.methods[flow, 0]).abs().max().item() for one in sentences))


# A table of our own: how often the word that decides, the verb's subject, is the highest of all words.


MANY = 4
"""Sentences with so many attractors or more are one group."""


def subject_table(scores: Scores) -> pd.DataFrame:
    """By seed, attractors, method and layer: the share of sentences whose subject is highest.

    [CLS] and the verb's place are left out. Words that share the highest score are each it with the same probability.
    Beside the methods stand blank-out and the gradient, which say how often the model itself goes by the subject;
    `chance`, one word drawn; `first` and `last`, the first and the last word. Sentences whose subject nobody knows are
    left out.
    """
    rows = []
    for seed, sentences in scores.items():
        for attractors, group in _by_attractors([sentence for sentence in sentences if sentence.subject > 0]):
            hits = [dict(_hits(sentence)) for sentence in group]
            for method, layer in hits[0]:
                values = np.array([hit[method, layer] for hit in hits])
                labels = {"seed": seed, "attractors": attractors, "method": method, "layer": layer}
                error = values.std() / np.sqrt(len(values))
                rows.append(labels | {"found": values.mean(), "error": error, "sentences": len(values)})
    return pd.DataFrame(rows)


def _by_attractors(sentences: Sequence[SentenceScores]) -> Iterator[tuple[str, Sequence[SentenceScores]]]:
    """All sentences, then those with each number of attractors that some have."""
    if sentences:
        yield "all", sentences
    for number in range(MANY + 1):
        if group := [sentence for sentence in sentences if min(sentence.attractors, MANY) == number]:
            yield f"{number}{' or more' if number == MANY else ''}", group


def _hits(sentence: SentenceScores) -> Iterator[tuple[tuple[str, int], float]]:
    """How likely the subject is the highest word, by method and layer (0 where there is no layer)."""
    subject, words = sentence.subject - 1, sentence.methods.shape[-1] - 2
    for method, layers in zip(METHODS, sentence.methods.numpy(), strict=True):
        for layer, row in enumerate(layers):
            yield (method, layer + 1), share_of_top(row[1:-1], subject)
    for reference, row in zip(REFERENCES[:2], sentence.references.numpy(), strict=False):
        yield (reference, 0), share_of_top(row[1:-1], subject)
    yield ("chance", 0), 1 / words
    yield ("first", 0), float(subject == 0)
    yield ("last", 0), float(subject == words - 1)


def share_of_top(scores: Float64[np.ndarray, " word"], place: int) -> float:
    """How likely a word is the highest when ties are broken at random.

    >>> share_of_top(np.array([0.5, 0.5, 0.1]), 0), share_of_top(np.array([0.5, 0.5, 0.1]), 2)
    (0.5, 0.0)
    """
    values = round_scores(scores)
    highest = values == values.max()
    return float(highest[place] / highest.sum())
