"""BagOfWords: the proxy of Snell et al. 2021, Eq. 5, which sees how often each word is in a text and nothing else.

Symbols of the paper: e_i is a row of `embeddings`, W is `output`; p = σ(1/L Σ_l W e_{x_l}), β^px_l = σ(W e_{x_l})_y.
The authors' W has a bias, which β^px leaves out. With one output it tells two classes by a sigmoid, with more it tells
the words of an output by a softmax.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor, nn
from torch.nn import functional as F

from ...errors import BadInput
from ..data.packed import PackedTexts

WIDTH = 256


class BagOfWords(nn.Module):
    """The mean of the vectors of a text's words, and a linear map of it.

    >>> import torch
    >>> model = BagOfWords(words=10, outputs=1)
    >>> one, other = (model(torch.tensor([words]), torch.ones(1, 3).bool()) for words in ([4, 7, 7], [7, 4, 7]))
    >>> bool(torch.isclose(one, other))
    True
    """

    def __init__(self, words: int, outputs: int, width: int = WIDTH) -> None:
        super().__init__()
        if min(words, outputs, width) < 1:
            raise BadInput("A bag of words has at least one word, one output and a width of one.")
        self.embeddings = nn.Embedding(words, width)
        self.output = nn.Linear(width, outputs)

    def forward(
        self, input_ids: Int[Tensor, "batch token"], real: Bool[Tensor, "batch token"]
    ) -> Float[Tensor, "batch output"]:
        """The logits of each text, whatever the order of its words."""
        shares = real.to(self.embeddings.weight) / real.sum(1, keepdim=True)
        pooled = F.embedding_bag(input_ids, self.embeddings.weight, mode="sum", per_sample_weights=shares)
        return self.output(pooled)  # type: ignore[no-any-return]

    def word_logits(self, input_ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token output"]:
        """W e of each word, without the bias."""
        return self.embeddings(input_ids) @ self.output.weight.T  # type: ignore[no-any-return]

    def word_weights(self) -> Float[Tensor, "word output"]:
        """W e of every word there is: what a logistic regression calls its coefficients."""
        return (self.embeddings.weight @ self.output.weight.T).detach()

    def class_loss(self, logits: Float[Tensor, "batch 1"], classes: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        """The cross-entropy of two classes, summed over texts as the authors have it."""
        return F.binary_cross_entropy_with_logits(logits.squeeze(-1), classes.to(logits), reduction="sum")

    def word_loss(
        self,
        logits: Float[Tensor, "batch output"],
        targets: Int[Tensor, "batch target"],
        counted: Bool[Tensor, "batch target"],
    ) -> Float[Tensor, ""]:
        """The cross-entropy of all output words that are counted (Eq. 14), summed; padding and bos should not be."""
        found = logits.log_softmax(-1).gather(1, targets)
        return -found[counted].sum()


# Logistic regression on the words of a text: the twin of the proxy (Snell et al. 2021, A.10), by scikit-learn.


STRENGTHS = tuple(10.0**power for power in range(-5, 5))
"""C, the inverse of the L2 penalty: ten orders of magnitude."""


@dataclass(frozen=True, eq=False)
class LogisticWords:
    """The coefficient β^log of every word for the second class, and how they were found."""

    weights: Float64[np.ndarray, " word"]
    bias: float
    strength: float
    accuracy: float
    """On the texts it was chosen by."""


def word_shares(texts: PackedTexts, words: int) -> scipy.sparse.csr_matrix:
    """The x of Eq. 55: how often each word is in each text, divided by the text's length.

    >>> word_shares(PackedTexts.of([[1, 2, 1, 0]], [1]), 3).toarray().tolist()
    [[0.25, 0.5, 0.25]]
    """
    values = np.repeat(1 / texts.lengths, texts.lengths)
    # a copy, because adding up duplicates would sort the words of the texts themselves
    table = scipy.sparse.csr_matrix((values, texts.tokens, texts.starts), shape=(len(texts), words), copy=True)
    table.sum_duplicates()
    return table


def logistic_words(
    train: PackedTexts, dev: PackedTexts, words: int, strengths: Sequence[float] = STRENGTHS
) -> LogisticWords:
    """The regression with the first C that is best on `dev` by accuracy."""
    shares, held_out = word_shares(train, words), word_shares(dev, words)
    found = [_fitted(shares, train.labels, strength) for strength in strengths]
    right = [float(((held_out @ weights + bias > 0) == dev.labels).mean()) for weights, bias in found]
    best = int(np.argmax(right))
    return LogisticWords(*found[best], strengths[best], right[best])


def _fitted(
    shares: scipy.sparse.csr_matrix, labels: np.ndarray, strength: float
) -> tuple[Float64[np.ndarray, " word"], float]:
    try:
        from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    except ImportError:
        raise BadInput("Logistic regression needs scikit-learn: pip install 'attnscope[lab]'.") from None
    fitted = LogisticRegression(C=strength, max_iter=2_000).fit(shares, labels)
    return fitted.coef_[0], float(fitted.intercept_[0])
