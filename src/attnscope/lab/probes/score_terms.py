"""What drives the scores of words while dot-product attention learns to tell two classes: the terms A to F.

Sun & Lu 2020, Eq. 19 and 27: along minus the gradient of the loss over all texts, without dropout,

    ds_e/dτ = A + B + C    and    da_e/dτ = D + E + F,

exactly. With y = ±1, β = 1 - σ(y s) and w = y β α of each occurrence, π(e) = Σ w and ρ(e) = Σ w (s_e - s) over the
occurrences of e; m is the number of texts.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor

from ...capture.watching import in_evaluation
from ...errors import BadInput
from ..data.packed import PackedTexts
from ..models.attention_classifier import AttentionClassifier
from ..polarity import TEXTS, global_scores, padded_batches, scores_alone

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
    logits = empty.index_add(0, owners, shares * polarity[words])
    signs = 2 * torch.from_numpy(texts.labels).to(logits) - 1
    occurrences = (signs * torch.sigmoid(-signs * logits))[owners] * shares
    nothing = torch.zeros_like(polarity)
    pi = nothing.index_add(0, words, occurrences)
    return pi, nothing.index_add(0, words, occurrences * (polarity[words] - logits[owners]))


# The penalty on V·W that keeps the attention scores of two classes together: c |V·W|, or c (V·W)².


PENALTIES: Mapping[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "absolute": (torch.abs, torch.sign),
    "square": (torch.square, lambda product: 2 * product),
}
"""The penalty of each kind as a function of V·W, and its slope."""


def penalty_slope(product: Float[Tensor, "*logit"], strength: int | float, kind: str) -> Float[Tensor, "*logit"]:
    """How fast the penalty grows with V·W: c sign(V·W), or 2 c V·W for the square.

    >>> penalty_slope(torch.tensor(-3.0), 0.5, "square").item()
    -3.0
    """
    return strength * _penalty(kind)[1](product)


def penalty_value(product: Float[Tensor, "*logit"], strength: int | float, kind: str) -> Float[Tensor, ""]:
    """The penalty itself, added up over the logits where there are several."""
    return strength * _penalty(kind)[0](product).sum()


def _penalty(kind: str) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    if kind not in PENALTIES:
        raise BadInput(f"A penalty on V·W is {' or '.join(PENALTIES)}, not {kind!r}.")
    return PENALTIES[kind]


# How alike the vectors of words are, within a class and between classes, and the product of V and W.


def dot_products(model: AttentionClassifier, kinds: Mapping[str, Int64[np.ndarray, " _"]]) -> dict[str, float]:
    """The mean e_i · e_j over all pairs of words of each two kinds, a word with itself left out; V·W, |V| and |W|.

    A kind is named and given as the numbers of its words; "positive-neutral" is the name of a pair. Of a kind with no
    word, or with one by itself, there is no mean. With more than two classes, V·W and |W| have the number of the class
    behind them.
    """
    table = model.embeddings.weight.detach().double()
    vectors = {name: table[torch.from_numpy(numbers)] for name, numbers in kinds.items()}
    sums = {name: rows.sum(0) for name, rows in vectors.items()}
    found: dict[str, float] = {}
    for first, second in combinations_with_replacement(kinds, 2):
        total = sums[first] @ sums[second]
        pairs = len(vectors[first]) * len(vectors[second])
        if first == second:
            total, pairs = total - vectors[first].square().sum(), pairs - len(vectors[first])
        if pairs:
            found[f"{first}-{second}"] = float(total / pairs)
    context, output = model.context.detach().double(), model.output.weight.detach().double()
    found["|V|"] = float(context.norm())
    for number, row in enumerate(output):
        place = f"_{number}" if len(output) > 1 else ""
        found[f"V·W{place}"], found[f"|W|{place}"] = float(row @ context), float(row.norm())
    return found


# WatchedTerms: the terms A to F and the dot products of words while a classifier learns, as rows of its log.


@dataclass(frozen=True, eq=False)
class WatchedTerms:
    """A probe of a model with the variant dot and two classes: means over the words of each kind.

    `kinds` are the numbers of words by a name, such as those of `TokenClasses`. A row has the scores themselves as
    "polarity_positive" and "attention_positive", the terms as "A_positive" and the like, and what `dot_products` gives.
    """

    model: AttentionClassifier
    texts: PackedTexts
    kinds: Mapping[str, Int64[np.ndarray, " _"]]
    steps: Container[int] = field(default_factory=lambda: range(0))
    name: str = "score_terms"
    penalty: int | float = 0.0
    penalty_kind: str = "absolute"
    watch: Callable[[Mapping[str, int | float | str]], None] | None = None
    """Told each row as it is seen, such as a view that grows."""

    def __call__(self, step: int) -> Mapping[str, int | float | str]:
        """The row of a step, from the model as it is then."""
        row: dict[str, int | float | str] = {"step": step, **dot_products(self.model, self.kinds)}
        every = np.concatenate(list(self.kinds.values())).tolist()
        terms = score_terms(self.model, self.texts, every, penalty=self.penalty, penalty_kind=self.penalty_kind)
        scores = global_scores(self.model)
        for kind, numbers in self.kinds.items():
            row[f"polarity_{kind}"] = float(scores.polarity[numbers, 0].mean())
            row[f"attention_{kind}"] = float(scores.attention[numbers].mean())
        sizes = [len(numbers) for numbers in self.kinds.values()]
        by_term = {term: getattr(terms, term).split(sizes) for term in NAMES}
        for place, kind in enumerate(self.kinds):
            row |= {f"{term}_{kind}": float(parts[place].mean()) for term, parts in by_term.items()}
        if self.watch is not None:
            self.watch({"probe": self.name, **row})
        return row


# The Probe protocol: what watches a training loop, a step in, a row out.


@runtime_checkable
class Probe(Protocol):
    """Looks at a model at chosen steps of its training.

    A step is the number of updates done: at 0 the model is as it was made, and at the number of steps it is finished.
    The model is in evaluation mode, without gradients (`torch.enable_grad()` brings them back). The rows go into the
    training's log, each with the step and the probe's name, and survive a kill with it.
    """

    @property
    def name(self) -> str:
        """What its rows are called in the log."""
        ...

    @property
    def steps(self) -> Container[int]:
        """When it looks: a range, a set, or anything else that knows what is in it."""
        ...

    def __call__(self, step: int) -> Mapping[str, int | float | str]:
        """What it sees."""
        ...


# What drives the scores of words in any attention classifier: one exact term for each group of its weights.
# Along minus the gradient of the loss over all texts, without dropout, the scores of a word alone change by
# ds_e/dτ = - Σ_g ∂s_e/∂g · ∂ℓ/∂g and da_e/dτ = - Σ_g ∂a_e/∂g · ∂ℓ/∂g
# over the groups g: embeddings, encoder (affine layer or LSTM), output (W) and context (V). Nothing is approximated,
# where Sun & Lu 2020 take tanh x for x.


GROUPS = ("embeddings", "encoder", "output", "context")


@dataclass(frozen=True, eq=False)
class GroupTerms:
    """The terms of the chosen words by group; their sums are the true derivatives."""

    tokens: Int[Tensor, " token"]
    polarity: Mapping[str, Float[Tensor, "token logit"]]
    attention: Mapping[str, Float[Tensor, " token"]]


def group_terms(
    model: AttentionClassifier,
    texts: PackedTexts,
    tokens: Sequence[int] | Int[Tensor, " token"],
    *,
    penalty: int | float = 0.0,
    penalty_kind: str = "absolute",
) -> GroupTerms:
    """The terms for these words, by their numbers, over all of these texts; `penalty` is c of that on V·W.

    It takes one backward pass for each word and score, so choose few words.
    """
    chosen = torch.as_tensor(tokens, dtype=torch.long)
    with torch.enable_grad(), in_evaluation(model, model):
        slopes = loss_slopes(model, texts, penalty=penalty, penalty_kind=penalty_kind)
        own = slopes.pop("embeddings.weight")[chosen]
        shared = {name: weights for name, weights in model.named_parameters() if name in slopes}
        vectors = model.embeddings.weight.detach()[chosen].requires_grad_()
        polarity, attention = scores_alone(model, vectors)
        rows = []
        # words alone do not touch each other: only its own vector and the shared weights move a score
        for place in range(len(chosen)):
            for score in (*polarity[place], attention[place]):
                found = torch.autograd.grad(score, [vectors, *shared.values()], retain_graph=True, allow_unused=True)
                row = dict.fromkeys(GROUPS, polarity.new_zeros(()))
                if found[0] is not None:
                    row["embeddings"] = -(found[0][place] * own[place]).sum()
                for name, slope in zip(shared, found[1:], strict=True):
                    if slope is not None:
                        row[_group(name)] = row[_group(name)] - (slope * slopes[name]).sum()
                rows.append(torch.stack([row[group] for group in GROUPS]))
    table = torch.stack(rows).detach().reshape(len(chosen), -1, len(GROUPS))
    return GroupTerms(
        tokens=chosen,
        polarity={group: table[:, :-1, place] for place, group in enumerate(GROUPS)},
        attention={group: table[:, -1, place] for place, group in enumerate(GROUPS)},
    )


def loss_slopes(
    model: AttentionClassifier, texts: PackedTexts, *, penalty: int | float = 0.0, penalty_kind: str = "absolute"
) -> dict[str, Tensor]:
    """∂ℓ/∂ of every weight by its name, over all texts; the model is as it is, so put it in evaluation mode before."""
    weights = dict(model.named_parameters())
    slopes = {name: torch.zeros_like(tensor) for name, tensor in weights.items()}

    def add(loss: Tensor) -> None:
        found = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
        for name, slope in zip(weights, found, strict=True):
            if slope is not None:
                slopes[name] += slope

    labels = torch.from_numpy(texts.labels).split(TEXTS)
    for (ids, real), of in zip(padded_batches(texts, TEXTS), labels, strict=True):
        add(model.loss(model(ids, real), of) * len(ids) / len(texts))
    if penalty:
        add(penalty_value(model.output.weight @ model.context, penalty, penalty_kind))
    return slopes


def _group(name: str) -> str:
    """The group of a weight: affine and LSTM are the encoder."""
    first = name.partition(".")[0]
    return first if first in GROUPS else "encoder"
