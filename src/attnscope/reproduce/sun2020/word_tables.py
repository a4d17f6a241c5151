"""What each word of a trained classifier has: its kind, its polarity and attention score, and its mean weight."""

from collections.abc import Mapping

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
