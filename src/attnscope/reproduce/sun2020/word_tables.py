"""What each word of a trained classifier has: its kind, its polarity and attention score, and its mean weight."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from ...lab.data import ClassifiedTexts
from ...lab.models import AttentionClassifier
from ...lab.polarity import global_scores, local_scores, mean_attention_weights
from ...lab.sweep import TrainedRun
from ...lab.token_classes import class_counts, frequency_matched, gamma, label_tokens, token_classes

POSITIVE, NEGATIVE, NEUTRAL, MATCHED = "positive", "negative", "neutral", "neutral of like frequency"
OUTLIER = "is this progress"
"""A test sentence of SST whose last word has a large weight by chance of its neighbours (section 5, on Figure 5)."""


def model_of(data: ClassifiedTexts, run: TrainedRun, width: int) -> AttentionClassifier:
    """The classifier with the best weights of a run."""
    said = run.settings
    model = AttentionClassifier(
        data.vocabulary, variant=said.variant, scaling=said.scaling, classes=data.classes, width=width
    )
    model.load_state_dict(run.weights)
    return model.eval()


def kinds_of(data: ClassifiedTexts) -> dict[str, np.ndarray]:
    """The numbers of the words of each kind, told by the training texts alone.

    Of two classes: positive, negative, neutral, for each polar word one neutral word about as frequent, and those of
    OUTLIER. Of more: the words of each label, and neutral ones.
    """
    counts = class_counts(data.train, len(data.classes), len(data.vocabulary))
    if len(data.classes) > 2:
        found = label_tokens(counts)
        return {**dict(zip(data.classes, found.labels, strict=True)), NEUTRAL: found.neutral}
    kinds = token_classes(counts)
    known = all(word in data.vocabulary for word in OUTLIER.split())
    return {
        POSITIVE: kinds.positive,
        NEGATIVE: kinds.negative,
        NEUTRAL: kinds.neutral,
        MATCHED: frequency_matched(counts, kinds.polar),
        **({OUTLIER: np.array(data.vocabulary.encode(OUTLIER.split()))} if known else {}),
    }


def word_table(data: ClassifiedTexts, model: AttentionClassifier, kinds: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """A row for each word of each kind: word, kind, count in training texts, γ, polarity, attention score, weight.

    The weight is the mean over the word's occurrences in test texts. Polarity is the logit's of two classes, and of
    more that of the word's own label (of a neutral word, the highest). For an LSTM, scores are those of the word alone,
    and `local_…` the means over its occurrences in training texts.
    """
    counts = class_counts(data.train, len(data.classes), len(data.vocabulary))
    alone, weights = global_scores(model), mean_attention_weights(model, data.test)
    columns = {"attention": alone.attention, "weight": weights}
    polarity = {"polarity": alone.polarity}
    if model.settings.variant == "dot_lstm":
        local = local_scores(model, data.train)
        columns["local_attention"], polarity["local_polarity"] = local.attention, local.polarity
    known = gamma(counts) if len(data.classes) == 2 else np.full(len(data.vocabulary), np.nan)
    tables = []
    for kind, numbers in kinds.items():
        own = data.classes.index(kind) if len(data.classes) > 2 and kind in data.classes else None
        table = {
            "word": [data.vocabulary.tokens[number] for number in numbers],
            "kind": kind,
            "count": counts.sum(0)[numbers],
            "gamma": known[numbers],
            **{name: values.numpy()[numbers] for name, values in columns.items()},
            **{name: _told(values, own).numpy()[numbers] for name, values in polarity.items()},
        }
        tables.append(pd.DataFrame(table))
    return pd.concat(tables, ignore_index=True)


def _told(polarity: torch.Tensor, own: int | None) -> torch.Tensor:
    """One polarity score for each word."""
    if polarity.shape[1] == 1:
        return polarity[:, 0]
    return polarity.amax(1) if own is None else polarity[:, own]


# Two groups of words compared: how often one of the first stands above one of the second, and by how much chance.


@dataclass(frozen=True)
class Compared:
    """The share of pairs in which the first is above (ties count half), and p of the rank-sum test that it is not."""

    above: float
    p: float

    def __str__(self) -> str:
        return f"{self.above:.2f} (p {self.p:.2g})"


def compared(first: np.ndarray, second: np.ndarray) -> Compared:
    """By the rank-sum test of Mann and Whitney, one-sided: whether the first group stands above the second.

    >>> compared(np.array([3.0, 4.0]), np.array([1.0, 2.0])).above
    1.0
    """
    from scipy.stats import mannwhitneyu

    found = mannwhitneyu(first, second, alternative="greater")
    return Compared(float(found.statistic) / (len(first) * len(second)), float(found.pvalue))


# The words of all runs in short: how many of each kind there are, what their scores are, and how kinds compare.


RUN = ["data", "variant", "scaling", "seed", "penalty"]
SCORES = ("polarity", "attention", "weight", "local_polarity", "local_attention")
AGAINST = ((POSITIVE, NEUTRAL), (NEGATIVE, NEUTRAL), (POSITIVE, MATCHED), (NEGATIVE, MATCHED), (POSITIVE, NEGATIVE))


def score_summary(words: pd.DataFrame) -> pd.DataFrame:
    """The median and quartiles of each score over the words of each kind in each run."""
    rows = []
    for (*run, kind), table in words[words["kind"] != OUTLIER].groupby([*RUN, "kind"], sort=False):
        for score in SCORES:
            if score in table and table[score].notna().any():
                low, middle, high = table[score].quantile([0.25, 0.5, 0.75])
                told = {
                    "words": int(table[score].notna().sum()),
                    "median": middle,
                    "quartile_1": low,
                    "quartile_3": high,
                }
                rows.append(dict(zip(RUN, run, strict=True)) | {"kind": kind, "score": score} | told)
    return pd.DataFrame(rows)


def comparisons(words: pd.DataFrame) -> pd.DataFrame:
    """For each run, score and two kinds of words: the share of pairs in which the first is above, and p of that."""
    rows = []
    for run, table in words.groupby(RUN, sort=False):
        kinds = dict(list(table.groupby("kind")))
        pairs = [pair for pair in AGAINST if set(pair) <= set(kinds)]
        pairs = pairs or [(kind, NEUTRAL) for kind in kinds if kind != NEUTRAL]
        for first, second in pairs:
            for score in (name for name in SCORES if name in table):
                one, other = (kinds[kind][score].dropna().to_numpy(float) for kind in (first, second))
                if len(one) and len(other):
                    found = compared(one, other)
                    told = {"first": first, "second": second, "score": score, "above": found.above, "p": found.p}
                    rows.append(dict(zip(RUN, run, strict=True)) | told)
    return pd.DataFrame(rows)
