"""What drives the scores of words while dot-product attention learns to tell two classes: the terms A to F.

Sun & Lu 2020, Eq. 19 and 27: along minus the gradient of the loss over all texts, without dropout,

    ds_e/dτ = A + B + C    and    da_e/dτ = D + E + F,

exactly. With y = ±1, β = 1 - σ(y s) and w = y β α of each occurrence, π(e) = Σ w and ρ(e) = Σ w (s_e - s) over the
occurrences of e; m is the number of texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...errors import BadInput
from ..data.packed import PackedTexts
from ..models.attention_classifier import AttentionClassifier
from .penalty import penalty_slope

NAMES = ("A", "B", "C", "D", "E", "F")


@dataclass(frozen=True, eq=False)
class ScoreTerms:
    """The terms of the chosen words; the last two are those of a penalty on V·W, zero where there is none."""

    tokens: Int[Tensor, " token"]
    A: Float[Tensor, " token"]
    """(V·W / λ) ρ(e) / m: what opens a gap between the polarity scores of both classes where λ is small."""
    B: Float[Tensor, " token"]
    """|W|² π(e) / m."""
    C: Float[Tensor, " token"]
    """Σ w e·e_j / m over all words of all texts."""
    D: Float[Tensor, " token"]
    """V·W π(e) / (m λ): what opens a gap between the attention scores of both classes where λ is large."""
    E: Float[Tensor, " token"]
    """|V|² ρ(e) / (m λ²)."""
    F: Float[Tensor, " token"]
    """Σ w (s_j - s) e·e_j / (m λ²) over all words of all texts."""
    penalty_on_polarity: Float[Tensor, " token"]
    """-k λ a_e, where k is the slope of the penalty at V·W: c sign(V·W), or 2 c V·W for the square."""
    penalty_on_attention: Float[Tensor, " token"]
    """-k s_e / λ."""

    @property
    def polarity(self) -> Float[Tensor, " token"]:
        """ds_e/dτ."""
        return self.A + self.B + self.C + self.penalty_on_polarity

    @property
    def attention(self) -> Float[Tensor, " token"]:
        """da_e/dτ."""
        return self.D + self.E + self.F + self.penalty_on_attention


def score_terms(
    model: AttentionClassifier,
    texts: PackedTexts,
    tokens: Sequence[int] | Int[Tensor, " token"],
    *,
    penalty: int | float = 0.0,
    penalty_kind: str = "absolute",
) -> ScoreTerms:
    """The terms for these words, by their numbers, over all of these texts; `penalty` is c of that on V·W.

    Raises:
        BadInput: If the model is another variant than "dot", or has more than two classes.
    """
    if model.settings.variant != "dot" or len(model.classes) != 2:
        raise BadInput("Terms A to F hold for the variant dot and two classes: use group_terms for this model.")
    chosen = torch.as_tensor(tokens, dtype=torch.long)
    table, context = model.embeddings.weight.detach(), model.context.detach()
    output, scaling = model.output.weight.detach()[0], float(model.settings.scaling)
    polarity, attention = table @ output, table @ context / scaling
    pi, rho = _pi_and_rho(texts, polarity, attention)
    many, product = len(texts), context @ output
    slope = penalty_slope(product, penalty, penalty_kind)
    embeddings = table[chosen]
    return ScoreTerms(
        tokens=chosen,
        A=product / scaling * rho[chosen] / many,
        B=output @ output * pi[chosen] / many,
        C=embeddings @ (pi @ table) / many,
        D=product * pi[chosen] / (many * scaling),
        E=context @ context * rho[chosen] / (many * scaling**2),
        F=embeddings @ (rho @ table) / (many * scaling**2),
        penalty_on_polarity=-slope * scaling * attention[chosen],
        penalty_on_attention=-slope * polarity[chosen] / scaling,
    )


def _pi_and_rho(
    texts: PackedTexts, polarity: Float[Tensor, " word"], attention: Float[Tensor, " word"]
) -> tuple[Float[Tensor, " word"], Float[Tensor, " word"]]:
    """π and ρ of every word of the vocabulary, text by text in one go over all occurrences."""
    words = torch.from_numpy(texts.tokens).long()
    owners = torch.arange(len(texts)).repeat_interleave(torch.from_numpy(texts.lengths))
    empty = polarity.new_zeros(len(texts))
    # subtracting the largest score of each text keeps its exponentials finite
    highest = (empty - torch.inf).scatter_reduce(0, owners, attention[words], "amax")
    grown = (attention[words] - highest[owners]).exp()
    shares = grown / empty.index_add(0, owners, grown)[owners]
    told = empty.index_add(0, owners, shares * polarity[words])
    signs = 2 * torch.from_numpy(texts.labels).to(told) - 1
    occurrences = (signs * torch.sigmoid(-signs * told))[owners] * shares
    nothing = torch.zeros_like(polarity)
    pi = nothing.index_add(0, words, occurrences)
    return pi, nothing.index_add(0, words, occurrences * (polarity[words] - told[owners]))
