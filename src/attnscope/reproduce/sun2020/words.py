"""The words of a classifier: of which kind they are, which scores they have, and how kinds and groups of them compare.

Symbols of the paper (section 5): f+ and f- are the counts of a word in positive and negative texts, and
γ = (f+ - f-) / (f+ + f-). A word has a polarity score s, an attention score a and, in a text, an attention weight α.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64, Int64

from ...errors import BadInput
from ...lab.data import ClassifiedTexts, PackedTexts
from ...lab.models import AttentionClassifier
from ...lab.polarity import global_scores, local_scores, mean_attention_weights
from ...lab.sweep import TrainedRun
from ...lab.word_vectors import WordVectors

# Which words belong to which class, by how often they occur in its training texts.


MOST_NEUTRAL, LEAST_POLAR = 0.1, 0.5
"""A neutral word has |γ| below the first, a polar one above the second."""
RARE = 5
"""A polar word occurs more often than this in texts of its class; the counts of a neutral one differ by less."""
LABEL_SHARE, LABEL_RARE, NEUTRAL_EXCESS = 0.65, 25, 0.07
"""Of several classes, which share of a word's occurrences makes it a label's, how many it must have more than, and how
far above an even share it stays neutral. The paper states none of them. These are chosen by counts alone, before any
model: on 20News II they give 57, 261 and 185 words and 191 neutral ones, where the supplement has 49, 268, 192 and 164.
"""


@dataclass(frozen=True, eq=False)
class TokenClasses:
    """The numbers of the words of each kind, in rising order; most words are of none."""

    positive: Int64[np.ndarray, " positive"]
    negative: Int64[np.ndarray, " negative"]
    neutral: Int64[np.ndarray, " neutral"]

    @property
    def polar(self) -> Int64[np.ndarray, " polar"]:
        """Positive and negative words together, in rising order."""
        return np.sort(np.concatenate([self.positive, self.negative]))


@dataclass(frozen=True, eq=False)
class LabelTokens:
    """Of several classes, the numbers of the words that go with each, and of those that go with none."""

    labels: tuple[Int64[np.ndarray, " _"], ...]
    neutral: Int64[np.ndarray, " neutral"]


def class_counts(texts: PackedTexts, classes: int, words: int) -> Int64[np.ndarray, "class token"]:
    """How often each word occurs in the texts of each class, every occurrence counted."""
    owners = np.repeat(texts.labels, texts.lengths)
    return np.bincount(owners * words + texts.tokens, minlength=classes * words).reshape(classes, words)


def gamma(counts: Int64[np.ndarray, "class token"]) -> Float64[np.ndarray, " token"]:
    """γ of each word, from -1 (only in negative texts) to 1; not a number for a word that does not occur.

    >>> gamma(np.array([[0, 1, 3, 0], [4, 3, 3, 0]])).tolist()
    [1.0, 0.5, 0.0, nan]
    """
    negative, positive = _two(counts)
    total = negative + positive
    known = np.full(len(total), np.nan)
    np.divide(positive - negative, total, out=known, where=total > 0)
    return known


def token_classes(counts: Int64[np.ndarray, "class token"]) -> TokenClasses:
    """Positive, negative and neutral words: γ > .5 and f+ > 5, γ < -.5 and f- > 5, |γ| < .1 and |f+ - f-| < 5.

    γ of exactly 1 and -1 counts, which the paper's text leaves out and its counts do not: it gives just the 412, 265
    and 1,384 words that its supplement has for SST. Neutral words may be as rare as they like, and most are.
    """
    negative, positive = _two(counts)
    known = gamma(counts)
    return TokenClasses(
        positive=np.flatnonzero((known > LEAST_POLAR) & (positive > RARE)),
        negative=np.flatnonzero((known < -LEAST_POLAR) & (negative > RARE)),
        neutral=np.flatnonzero((np.abs(known) < MOST_NEUTRAL) & (np.abs(positive - negative) < RARE)),
    )


def words_of_like_frequency(
    counts: Int64[np.ndarray, "class token"], tokens: Int64[np.ndarray, " polar"]
) -> Int64[np.ndarray, " polar"]:
    """For each of these words, a word of |γ| < .1 that occurs about as often: a control for how rare neutral words are.

    The nearest count wins; of several as near, the one used least so far, then the one with the lowest number. A word
    may be used again where there are not enough.
    """
    totals = counts.sum(0)
    candidates = np.flatnonzero(np.abs(gamma(counts)) < MOST_NEUTRAL)
    if not len(candidates):
        raise BadInput(
            f"No word occurs about evenly in both classes (|γ| < {MOST_NEUTRAL}): there is nothing to match with."
        )
    uses = np.zeros(len(candidates), np.int64)
    matched = np.empty(len(tokens), np.int64)
    for place, token in enumerate(tokens):
        distances = np.abs(totals[candidates] - totals[token])
        nearest = np.flatnonzero(distances == distances.min())
        chosen = nearest[uses[nearest].argmin()]
        uses[chosen] += 1
        matched[place] = candidates[chosen]
    return matched


def label_tokens(
    counts: Int64[np.ndarray, "class token"],
    share: int | float = LABEL_SHARE,
    rare: int = LABEL_RARE,
    excess: int | float = NEUTRAL_EXCESS,
) -> LabelTokens:
    """Of several classes, the words whose occurrences are in one of them with more than this share, and often enough.

    Neutral are words that occur as often over all, and whose largest share is below an even one plus `excess`.
    """
    totals = counts.sum(0)
    shares = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    labels = tuple(np.flatnonzero((shares[label] > share) & (counts[label] > rare)) for label in range(len(counts)))
    even = 1 / len(counts)
    return LabelTokens(labels, np.flatnonzero((shares.max(0) < even + excess) & (totals > rare)))


def _two(counts: Int64[np.ndarray, "class token"]) -> Sequence[Int64[np.ndarray, " token"]]:
    if len(counts) != 2:
        raise BadInput(f"Positive and negative are told of two classes, not of {len(counts)}: use label_tokens.")
    return list(counts)


# What each word has in a trained classifier: its kind, its polarity and attention score, and its mean weight.


POSITIVE, NEGATIVE, NEUTRAL, MATCHED = "positive", "negative", "neutral", "neutral of like frequency"
OUTLIER = "is this progress"
"""A test sentence of SST whose last word has a large weight by chance of its neighbours (section 5, on Figure 5)."""


def model_of(data: ClassifiedTexts, run: TrainedRun, width: int) -> AttentionClassifier:
    """The classifier with the best weights of a run."""
    variant, scaling = run.settings.variant, run.settings.scaling
    model = AttentionClassifier(data.vocabulary, variant=variant, scaling=scaling, classes=data.classes, width=width)
    model.load_state_dict(run.weights)
    return model.eval()


def kinds_of(data: ClassifiedTexts) -> dict[str, np.ndarray]:
    """The numbers of the words of each kind, by the training texts alone.

    Of two classes: positive, negative, neutral, for each polar word one neutral word about as frequent, and those of
    OUTLIER. Of more: the words of each label, and neutral ones.
    """
    counts = counts_in_training(data)
    if len(data.classes) > 2:
        found = label_tokens(counts)
        return {**dict(zip(data.classes, found.labels, strict=True)), NEUTRAL: found.neutral}
    kinds = token_classes(counts)
    known = all(word in data.vocabulary for word in OUTLIER.split())
    return {
        POSITIVE: kinds.positive,
        NEGATIVE: kinds.negative,
        NEUTRAL: kinds.neutral,
        MATCHED: words_of_like_frequency(counts, kinds.polar),
        **({OUTLIER: np.array(data.vocabulary.encode(OUTLIER.split()))} if known else {}),
    }


def counts_in_training(data: ClassifiedTexts) -> Int64[np.ndarray, "class token"]:
    """How often each word occurs in the training texts of each class."""
    return class_counts(data.train, len(data.classes), len(data.vocabulary))


def word_table(data: ClassifiedTexts, model: AttentionClassifier, kinds: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """A row for each word of each kind: word, kind, count in training texts, γ, attention score, weight, polarity.

    The weight is the mean over the word's occurrences in test texts. Polarity is the logit's of two classes, and of
    more that of the word's own label (of a neutral word, the highest). For an LSTM, scores are those of the word alone,
    and `local_…` the means over its occurrences in training texts.
    """
    alone = global_scores(model)
    columns = {"attention": alone.attention, "weight": mean_attention_weights(model, data.test)}
    polarity = {"polarity": alone.polarity}
    if model.settings.variant == "dot_lstm":
        local = local_scores(model, data.train)
        columns["local_attention"], polarity["local_polarity"] = local.attention, local.polarity

    def columns_of(kind: str) -> dict[str, np.ndarray]:
        own = data.classes.index(kind) if len(data.classes) > 2 and kind in data.classes else None
        found = columns | {name: _one_polarity(values, own) for name, values in polarity.items()}
        return {name: values.numpy() for name, values in found.items()}

    return table_by_kind(data, kinds, columns_of)


def _one_polarity(polarity: torch.Tensor, own: int | None) -> torch.Tensor:
    """One polarity score for each word."""
    if polarity.shape[1] == 1:
        return polarity[:, 0]
    return polarity.amax(1) if own is None else polarity[:, own]


def table_by_kind(
    data: ClassifiedTexts, kinds: Mapping[str, np.ndarray], columns_of: Callable[[str], Mapping[str, np.ndarray]]
) -> pd.DataFrame:
    """The words kind by kind with their count and γ, and further columns, which have a value for every word."""
    counts = counts_in_training(data)
    known = gamma(counts) if len(data.classes) == 2 else np.full(len(data.vocabulary), np.nan)
    tables = []
    for kind, numbers in kinds.items():
        columns = {"count": counts.sum(0), "gamma": known, **columns_of(kind)}
        values = {name: column[numbers] for name, column in columns.items()}
        tables.append(pd.DataFrame({"word": data.vocabulary.decode(numbers.tolist()), "kind": kind, **values}))
    return pd.concat(tables, ignore_index=True)


# Two groups of words compared: how often one of the first stands above one of the second, and by how much chance.


@dataclass(frozen=True)
class RankSum:
    """The share of pairs in which the first is above (ties count half), and p of the rank-sum test that it is not."""

    above: float
    p: float

    def __str__(self) -> str:
        return f"{self.above:.1%} (p {self.p:.2g})"


def rank_sum(first: np.ndarray, second: np.ndarray) -> RankSum:
    """By the rank-sum test of Mann and Whitney, one-sided: whether the first group stands above the second.

    >>> rank_sum(np.array([3.0, 4.0]), np.array([1.0, 2.0])).above
    1.0
    """
    from scipy.stats import mannwhitneyu

    found = mannwhitneyu(first, second, alternative="greater")
    return RankSum(float(found.statistic) / (len(first) * len(second)), float(found.pvalue))


# The words of all runs in short: how many of each kind there are, what their scores are, and how kinds compare.


RUN = ["data", "variant", "scaling", "seed", "penalty"]
"""What tells one run from another."""
PRODUCT = "context_dot_output"
"""V·W of a run."""
SCORES = ("polarity", "attention", "weight", "local_polarity", "local_attention")
AGAINST = ((POSITIVE, NEUTRAL), (NEGATIVE, NEUTRAL), (POSITIVE, MATCHED), (NEGATIVE, MATCHED), (POSITIVE, NEGATIVE))


def score_summary(words: pd.DataFrame) -> pd.DataFrame:
    """The median and quartiles of each score over the words of each kind in each run."""
    rows = []
    for (*run, kind), table in words[words["kind"] != OUTLIER].groupby([*RUN, "kind"], sort=False):
        for score in SCORES:
            if score in table and table[score].notna().any():
                low, middle, high = table[score].quantile([0.25, 0.5, 0.75])
                row = dict(zip(RUN, run, strict=True)) | {"kind": kind, "score": score}
                row |= {"words": int(table[score].notna().sum()), "median": middle}
                rows.append(row | {"quartile_1": low, "quartile_3": high})
    return pd.DataFrame(rows)


def comparisons(words: pd.DataFrame) -> pd.DataFrame:
    """For each run, score and two kinds of words: the share of pairs in which the first is above, and p of that.

    V·W of the run stands beside them where it is known.
    """
    rows = []
    for run, table in words.groupby(RUN, sort=False):
        kinds = dict(list(table.groupby("kind")))
        pairs = [pair for pair in AGAINST if set(pair) <= set(kinds)]
        pairs = pairs or [(kind, NEUTRAL) for kind in kinds if kind != NEUTRAL]
        product = {name: table[name].iloc[0] for name in (PRODUCT,) if name in table}
        for first, second in pairs:
            for score in (name for name in SCORES if name in table):
                one, other = (kinds[kind][score].dropna().to_numpy(float) for kind in (first, second))
                if len(one) and len(other):
                    found = rank_sum(one, other)
                    row = {"first": first, "second": second, "score": score, "above": found.above, "p": found.p}
                    rows.append(dict(zip(RUN, run, strict=True)) | row | product)
    return pd.DataFrame(rows)


# Rare words with a pretrained vector: which are near a polar word, and what those gain from it.


NEAR = 0.6
"""The least cosine to the nearest polar word: on SST it parts rare words into halves."""
RAREST = 2
"""How often a rare word occurs in training texts, at most."""
UNSEEN, SELDOM = "unseen", "once or twice"
NEAR_POSITIVE, NEAR_NEGATIVE, NEAR_NEITHER = "near a positive word", "near a negative word", "near neither"
SIDES = {NEAR_POSITIVE: 1, NEAR_NEGATIVE: -1}


def rare_words(data: ClassifiedTexts, found: WordVectors) -> pd.DataFrame:
    """Rare words that have a pretrained vector, each with the polar word whose vector is nearest.

    Columns: number, word, count, rarity, neighbour, cosine, group. The nearest polar word is taken, positive or
    negative; if even that is further away than NEAR, the word is near neither.
    """
    counts = counts_in_training(data)
    kinds, total = token_classes(counts), counts.sum(0)
    numbers, rows = found.places(data.vocabulary)
    vectors = found.table[torch.from_numpy(rows)].double().numpy()
    directions = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(float).tiny)
    polar, rare = np.isin(numbers, kinds.polar), total[numbers] <= RAREST
    rare &= ~polar
    if not polar.any():
        raise BadInput("None of the polar words has a pretrained vector: give vectors of their language.")
    products = directions[rare] @ directions[polar].T
    nearest, cosines = numbers[polar][products.argmax(1)], products.max(1)
    sides = np.where(np.isin(nearest, kinds.positive), NEAR_POSITIVE, NEAR_NEGATIVE)
    return pd.DataFrame(
        {
            "number": numbers[rare],
            "word": data.vocabulary.decode(numbers[rare].tolist()),
            "count": total[numbers[rare]],
            "rarity": np.where(total[numbers[rare]] == 0, UNSEEN, SELDOM),
            "neighbour": data.vocabulary.decode(nearest.tolist()),
            "cosine": cosines,
            "group": np.where(cosines >= NEAR, sides, NEAR_NEITHER),
        }
    )


def rare_word_groups(words: pd.DataFrame) -> pd.DataFrame:
    """A row for each beginning, seed, rarity and group of rare words, set against those near neither.

    Columns: words (how many), polarity and attention (means), with_sign (the share whose polarity has the sign of the
    neighbour), polarity_above (the share of pairs in which the word is further to its neighbour's side than one near
    neither) with polarity_p, attention_above with attention_p (the same of higher attention), test_accuracy.
    """
    rows = []
    for (beginning, seed, rarity), run in words.groupby(["beginning", "seed", "rarity"], sort=False):
        neither = run[run["group"] == NEAR_NEITHER]
        for group in (NEAR_POSITIVE, NEAR_NEGATIVE, NEAR_NEITHER):
            members = run[run["group"] == group]
            if members.empty:
                continue
            row: dict[str, Any] = {
                "beginning": beginning,
                "seed": seed,
                "rarity": rarity,
                "group": group,
                "words": len(members),
            }
            row |= {name: members[name].mean() for name in ("polarity", "attention", "test_accuracy")}
            if side := SIDES.get(group):
                row["with_sign"] = float((side * members["polarity"] > 0).mean())
            if side and len(neither):
                of_polarity = rank_sum(*(side * part["polarity"].to_numpy() for part in (members, neither)))
                of_attention = rank_sum(*(part["attention"].to_numpy() for part in (members, neither)))
                row |= {"polarity_above": of_polarity.above, "polarity_p": of_polarity.p}
                row |= {"attention_above": of_attention.above, "attention_p": of_attention.p}
            rows.append(row)
    columns = ["beginning", "seed", "rarity", "group", "words", "polarity", "with_sign", "polarity_above", "polarity_p"]
    return pd.DataFrame(rows, columns=[*columns, "attention", "attention_above", "attention_p", "test_accuracy"])
