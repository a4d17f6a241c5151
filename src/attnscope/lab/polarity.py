"""The polarity and the attention score of every word a classifier knows, and the weight it gets (Sun & Lu 2020).

Symbols of the paper: s_e = h_e · W is the polarity score of a word, a_e = h_e · V / λ its attention score, α its
attention weight in a text. There is no dropout in them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..capture.watching import in_evaluation
from .data.packed import PackedTexts
from .models.attention_classifier import AttentionClassifier

TEXTS, WORDS = 256, 4096
"""How many are read at once."""


@dataclass(frozen=True, eq=False)
class WordScores:
    """Of each word in the vocabulary: one polarity score for each logit, and its attention score."""

    polarity: Float[Tensor, "token logit"]
    attention: Float[Tensor, " token"]


def global_scores(model: AttentionClassifier) -> WordScores:
    """Each word as the model reads it alone, as a text of one word; only an LSTM would read it otherwise elsewhere."""
    with torch.no_grad(), in_evaluation(model, model):
        found = [scores_alone(model, vectors) for vectors in model.embeddings.weight.split(WORDS)]
    polarity, attention = (torch.cat(parts) for parts in zip(*found, strict=True))
    return WordScores(polarity, attention)


def scores_alone(
    model: AttentionClassifier, vectors: Float[Tensor, "token width"]
) -> tuple[Float[Tensor, "token logit"], Float[Tensor, " token"]]:
    """Polarity and attention scores of words alone, from their vectors; gradients flow."""
    values, scores = model.values_and_scores(vectors.unsqueeze(1), vectors.new_ones(len(vectors), 1).bool())
    return values.squeeze(1) @ model.output.weight.T, scores.squeeze(1)


def local_scores(model: AttentionClassifier, texts: PackedTexts) -> WordScores:
    """The mean over all occurrences in these texts; not a number for a word that does not occur."""
    words = len(model.vocabulary)
    polarity = torch.zeros(words, model.output.out_features, dtype=torch.double)
    attention = torch.zeros(words, dtype=torch.double)
    with torch.no_grad(), in_evaluation(model, model):
        for ids, real in padded_batches(texts, TEXTS):
            values, scores = model.values_and_scores(model.embeddings(ids), real)
            polarity.index_add_(0, ids[real], (values[real] @ model.output.weight.T).double())
            attention.index_add_(0, ids[real], scores[real].double())
    counts = _counts(texts, words)
    return WordScores(polarity / counts[:, None], attention / counts)


def mean_attention_weights(model: AttentionClassifier, texts: PackedTexts) -> Float[Tensor, " token"]:
    """The mean weight α of each word over its occurrences in these texts (Fig. 5); not a number where it has none."""
    words = len(model.vocabulary)
    weights = torch.zeros(words, dtype=torch.double)
    with torch.no_grad(), in_evaluation(model, model):
        for ids, real in padded_batches(texts, TEXTS):
            weights.index_add_(0, ids[real], model.weights(ids, real)[real].double())
    return weights / _counts(texts, words)


def padded_batches(
    texts: PackedTexts, size: int
) -> Iterator[tuple[Int[Tensor, "text token"], Bool[Tensor, "text token"]]]:
    """The texts as numbers of words with zeros behind, so many at a time in their order, and where words are."""
    for start in range(0, len(texts), size):
        ids, real = texts.padded(np.arange(start, min(start + size, len(texts))))
        yield torch.from_numpy(ids), torch.from_numpy(real)


def _counts(texts: PackedTexts, words: int) -> Float[Tensor, " token"]:
    return torch.from_numpy(np.bincount(texts.tokens, minlength=words).astype(float))
