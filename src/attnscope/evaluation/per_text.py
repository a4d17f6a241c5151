"""The figures of one text: how well each method's scores follow what the model does there."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ..attribution.blank_out import blank_out, blank_rows
from ..attribution.choosing import Method, score
from ..attribution.comparing import Scores, kendall, round_scores, spearman, top_overlap
from ..attribution.rerunning import blank_embeddings, default_blank, input_positions, key_embeddings, key_ids
from ..record import AttentionRecord, Model, TokenScores
from ..record.model import EMBEDDINGS

# Erasure: what happens to the answer when the tokens a method puts first are taken away, or alone are kept.
# DeYoung et al. 2020 (ERASER), section 4, with p the probability of the predicted class: comprehensiveness is p(text)
# - p(text without the first tokens), sufficiency is p(text) - p(the first tokens alone). Both are averaged over the
# shares of tokens in SHARES, the area over the perturbation curve (AOPC), as in the authors' code; the formula in
# their paper also counts the share 0. A token is not deleted but replaced, as in blank-out, so that positions stay.


SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""The shares of tokens that are taken away or kept, each rounded up to whole tokens."""

Positions = frozenset[int]


@dataclass(frozen=True)
class Erasure:
    """Which positions are replaced, for each share: those a method puts first, and all but those."""

    without_first: tuple[Positions, ...]
    first_alone: tuple[Positions, ...]

    def comprehensiveness(self, intact: float, probability: Mapping[Positions, float]) -> float:
        """How much of the probability goes with the first tokens; higher is better."""
        return _mean_loss(intact, [probability[positions] for positions in self.without_first])

    def sufficiency(self, intact: float, probability: Mapping[Positions, float]) -> float:
        """How much of the probability the first tokens alone do not hold; lower is better."""
        return _mean_loss(intact, [probability[positions] for positions in self.first_alone])


def token_counts(tokens: int) -> tuple[int, ...]:
    """How many tokens each share is.

    >>> token_counts(10), token_counts(200)
    ((1, 1, 1, 2, 5), (2, 10, 20, 40, 100))
    """
    # rounded before, because 0.1 * 30 is a little more than 3
    return tuple(math.ceil(round(share * tokens, 9)) for share in SHARES)


def erasure(scores: Scores, erasable: Sequence[int], lots: Float64[np.ndarray, " token"]) -> Erasure:
    """What to replace to see whether a method has put the right tokens first; only `erasable` positions are touched.

    `lots` decides between equal scores, since the order of the text would favour its beginning.
    """
    values = round_scores(scores)
    order = sorted(erasable, key=lambda position: (-values[position], lots[position]))
    counts = token_counts(len(order))
    return Erasure(
        without_first=tuple(frozenset(order[:count]) for count in counts),
        first_alone=tuple(frozenset(order[count:]) for count in counts),
    )


def distinct(erasures: Collection[Erasure]) -> list[Positions]:
    """Every set of positions once, since methods that agree ask for the same."""
    return list(dict.fromkeys(p for erased in erasures for p in (*erased.without_first, *erased.first_alone)))


def _mean_loss(intact: float, probabilities: Sequence[float]) -> float:
    return sum(intact - probability for probability in probabilities) / len(probabilities)


# Scores that know nothing of the model's answer: a method must beat them before it explains anything.


BASELINES = ("random", "position", "frequency")
SEGMENT_BASELINES = ("random", "position", "length", "bm25")
"""Those of segments of an answer's context."""
KNOW_NOTHING = frozenset((*BASELINES, *SEGMENT_BASELINES))


def random_scores(count: int, seed: int, text: int) -> Float[Tensor, " token"]:
    """Even random numbers: the same for the same seed and number of the text, whatever was computed before."""
    return torch.from_numpy(np.random.default_rng([seed, text]).random(count))


def position_scores(readout: Float[Tensor, " query"], count: int) -> Float[Tensor, " token"]:
    """The nearer to the read-out, the higher: minus the distance to it, expected under the read-out.

    For a classifier that reads [CLS] the first words are highest, for a language model the last ones.
    """
    distance = (torch.arange(len(readout)).unsqueeze(1) - torch.arange(count)).abs().double()
    return -(readout.double() @ distance)


def frequency_scores(tokens: Iterable[str], counts: Mapping[str, int]) -> Float[Tensor, " token"]:
    """The rarer among the texts given, the higher: minus how often the token occurs in them."""
    return -torch.tensor([counts.get(token, 0) for token in tokens], dtype=torch.float64)


def baseline_scores(
    record: AttentionRecord, counts: Mapping[str, int], seed: int, text: int
) -> dict[str, Float[Tensor, " token"]]:
    """Every baseline on one record, in the order of BASELINES."""
    count = len(record.key_tokens)
    scores = (
        random_scores(count, seed, text),
        position_scores(record.readout, count),
        frequency_scores(record.key_tokens, counts),
    )
    return dict(zip(BASELINES, scores, strict=True))


ERASURE = "erasure"
"""What comprehensiveness and sufficiency hold a method against: the model's answer with tokens taken away."""


class Figure(NamedTuple):
    """What one number of a text is of; `layer` is None for the scores that a method gives by itself."""

    method: str
    layer: int | None
    against: str
    measure: str
    special: str


@dataclass(frozen=True)
class Question:
    """What is asked of every text."""

    methods: Mapping[str, Method]
    """The methods and the references, each once."""
    against: tuple[str, ...]
    layers: tuple[int, ...] | None
    """The layers at which a method that has a map is asked, by their number in the model; None for all."""
    counts: Mapping[str, int]
    """How often each token occurs in all texts."""
    top: int
    seed: int
    batch_size: int


FOLLOWED = {"quantity": "moving"}
"""Blank-out follows the log-odds where the probability hardly moves: ranks of what is left of it would be noise."""


def figures_of(
    record: AttentionRecord, model: Model, question: Question, text: int
) -> tuple[dict[Figure, float], bool]:
    """Every figure of one text, `text` being its number; and whether blank-out followed the log-odds there.

    A figure is NaN where it is not defined.
    """
    given = {
        name: score(record, name, method, model, options=FOLLOWED if method is blank_out else {})
        for name, method in question.methods.items()
    }
    on_log_odds = any(
        "log-odds" in warning
        for name, scores in given.items()
        for warning in scores.warnings
        if question.methods[name] is blank_out
    )
    own = {name: scores.scores for name, scores in given.items()}
    own |= baseline_scores(record, question.counts, question.seed, text)
    ranked: dict[tuple[str, int | None], Float[Tensor, " token"]] = {}
    for name, scores in own.items():
        ranked[name, None] = scores
        if name in given:
            ranked |= {(name, layer): row for layer, row in layer_scores(record, given[name], question.layers).items()}
    positions = {
        "with": list(range(len(record.key_tokens))),
        "without": [position for position, quiet in enumerate(record.key_special) if not quiet],
    }
    references = {name: own[name] for name in question.against}
    figures = rank_figures(ranked, references, positions, question.top)
    return figures | erasure_figures(record, model, own, positions, question, text), on_log_odds


def layer_scores(
    record: AttentionRecord, scores: TokenScores, layers: Sequence[int] | None
) -> dict[int, Float[Tensor, " token"]]:
    """What a method that has a map says at each layer, as the read-out sees it; nothing for one that has none.

    Only the rows that the read-out looks at are computed.
    """
    if scores.compute_row is None:
        return {}
    read = torch.where(record.readout > 0)[0].tolist()
    found = {}
    for place, layer in enumerate(record.layers):
        if layers is None or layer in layers:
            rows = torch.stack([scores.at(query, place) for query in read])
            found[layer] = record.readout[read].to(rows.dtype) @ rows
    return found


def rank_figures(
    ranked: Mapping[tuple[str, int | None], Float[Tensor, " token"]],
    references: Mapping[str, Float[Tensor, " token"]],
    positions: Mapping[str, Sequence[int]],
    top: int,
) -> dict[Figure, float]:
    """Rank agreement of every method and layer with every reference but itself, over all tokens and the text's own."""
    measures: dict[str, Callable[[Scores, Scores], float]] = {
        "spearman": spearman,
        "kendall": kendall,
        "top_overlap": partial(top_overlap, k=top),
    }
    # cut to its tokens and made ready once, as each is compared many times
    cut = {
        (of, special): scores.detach().cpu().numpy()[kept]
        for of, scores in ranked.items()
        for special, kept in positions.items()
    }
    held = {
        (of, special): scores.detach().cpu().numpy()[kept]
        for of, scores in references.items()
        for special, kept in positions.items()
    }
    return {
        Figure(method, layer, reference, measure, special): agreement(
            cut[(method, layer), special], held[reference, special]
        )
        for method, layer in ranked
        for reference in references
        if method != reference
        for measure, agreement in measures.items()
        for special in positions
    }


def erasure_figures(
    record: AttentionRecord,
    model: Model,
    own: Mapping[str, Float[Tensor, " token"]],
    positions: Mapping[str, Sequence[int]],
    question: Question,
    text: int,
) -> dict[Figure, float]:
    """Comprehensiveness and sufficiency of every method, where all tokens may be erased or only the text's own."""
    lots = np.random.default_rng([question.seed, text, 1]).random(len(record.key_tokens))
    erasures = {
        (name, special): erasure(scores, erasable, lots)
        for name, scores in own.items()
        for special, erasable in positions.items()
    }
    intact, probability = probabilities_without(record, model, distinct(erasures.values()), question.batch_size)
    figures = {}
    for (name, special), erased in erasures.items():
        figures[Figure(name, None, ERASURE, "comprehensiveness", special)] = erased.comprehensiveness(
            intact, probability
        )
        figures[Figure(name, None, ERASURE, "sufficiency", special)] = erased.sufficiency(intact, probability)
    return figures


# The model run again on a text with some of its tokens blanked out, by the rule of blank-out.


def probabilities_without(
    record: AttentionRecord, model: Model, erased: Sequence[Positions], batch_size: int
) -> tuple[float, dict[Positions, float]]:
    """The probability of the predicted outcome on the whole text, and with each of these sets of positions blanked."""
    name = EMBEDDINGS[key_ids(record)]
    embeddings, blanks = key_embeddings(record, model), blank_embeddings(record, model, default_blank(model))
    whole = model.probabilities([record.inputs])[0]
    outcome = int(whole.argmax())
    found: dict[Positions, float] = {}
    # batch by batch, as the embeddings of all variants at once grow with the square of the text
    for start in range(0, len(erased), batch_size):
        batch = erased[start : start + batch_size]
        variants = [
            {**record.inputs, name: blank_rows(embeddings, blanks, input_positions(record, sorted(positions)))}
            for positions in batch
        ]
        found.update(zip(batch, model.probabilities(variants, batch_size)[:, outcome].tolist(), strict=True))
    return float(whole[outcome]), found
