"""Every claim with the rule by which it is judged; the rules were written before any model was looked at."""

from collections.abc import Iterator
from functools import partial

from ..claims import Claim, Criterion, judged
from .evidence import Evidence
from .judges import (
    APART,
    BARELY,
    BINARY,
    CERTAIN,
    CLOSED,
    COLLAPSE,
    FLAT,
    LOST,
    NEAR_ZERO,
    ONE,
    POOR,
    SMALLEST,
    additive_alike,
    dot_products_apart,
    falls,
    gap_follows_sign,
    is_flat,
    labels_attended,
    penalty_closes_gap,
    polar_attended,
    polarity_signs,
    relative_outlier,
    smaller_when_balanced,
    stays,
    weights_above_neutral,
    weights_follow_scores,
)
from .paper import TITLES, accuracy_in_paper
from .scales import PENALTIES, SCALINGS
from .word_tables import MATCHED, NEUTRAL, OUTLIER

EVERY = "in every seed"
ATTENDED = (
    f"in every data set and seed both kinds of polar words stand above neutral ones (rank-sum test, p < {CERTAIN})"
)


def _on_accuracy(data: str) -> Iterator[Criterion[Evidence]]:
    title = TITLES[data]

    def in_paper(variant: str, *scalings: float) -> str:
        return ", ".join(f"{accuracy_in_paper(data, variant, scaling)}" for scaling in scalings)

    yield Criterion(
        f"dp-collapses-at-lambda-0001-{data}",
        f"Dot-product attention learns next to nothing of {title} with λ = .001.",
        f"{EVERY} accuracy is at least {COLLAPSE:.0%} below that with λ = 10",
        f"{in_paper('dot', 0.001)} against {in_paper('dot', 10.0)}",
        partial(falls, data, "dot", SMALLEST, COLLAPSE),
    )
    yield Criterion(
        f"dp-poor-at-lambda-1-{data}",
        f"With λ = 1 it does worse on {title} than with 10.",
        f"{EVERY} accuracy is at least {POOR:.0%} below that with λ = 10",
        f"{in_paper('dot', 1.0)} against {in_paper('dot', 10.0)}",
        partial(falls, data, "dot", ONE, POOR),
    )
    yield Criterion(
        f"dp-flat-from-lambda-10-{data}",
        f"From λ = 10 on it does equally well on {title}.",
        f"mean accuracies from 10 to 10,000 differ by no more than {FLAT:.0%}",
        in_paper("dot", *SCALINGS[2:]),
        partial(is_flat, data),
    )
    yield Criterion(
        f"dpl-barely-affected-{data}",
        f"Behind an LSTM, λ hardly matters on {title}.",
        f"{EVERY} accuracy with λ = .001 is no more than {BARELY:.0%} below that with 10",
        f"{in_paper('dot_lstm', 0.001)} against {in_paper('dot_lstm', 10.0)}",
        partial(stays, data, "dot_lstm", SMALLEST, BARELY),
    )


CRITERIA = (
    *(criterion for data in TITLES for criterion in _on_accuracy(data)),
    Criterion(
        "polarity-signs-at-lambda-10",
        "With λ = 10 positive words have positive polarity scores, negative ones negative, neutral ones about none.",
        f"in every data set and seed the medians have these signs, that of neutral words is within {NEAR_ZERO:.0%} of "
        f"the smaller of the two, and both rank-sum tests have p < {CERTAIN}",
        "seen in Figure 2",
        partial(polarity_signs, BINARY, "dot"),
    ),
    Criterion(
        "polar-tokens-attended-at-lambda-10",
        "With λ = 10 both kinds of polar words have higher attention scores than neutral ones.",
        ATTENDED,
        "seen in Figure 2",
        partial(polar_attended, BINARY, "dot", NEUTRAL),
    ),
    Criterion(
        "gap-follows-sign-of-vw-at-lambda-100",
        "With λ = 100 positive and negative words part by their attention scores, in the direction of the sign of V·W.",
        f"{EVERY} the rank-sum test in that direction has p < {CERTAIN}",
        "positive below negative (Figure 3, one seed)",
        gap_follows_sign,
    ),
    Criterion(
        "penalty-closes-gap-without-accuracy-loss",
        "A penalty on |V·W| closes that gap and costs no accuracy.",
        f"with one strength of {', '.join(f'{strength:g}' for strength in PENALTIES)} no more than {CLOSED:.0%} of the "
        f"gap is left {EVERY}, and mean accuracy is no more than {LOST:.0%} lower",
        "almost none left, no significant difference",
        penalty_closes_gap,
    ),
    Criterion(
        "label-tokens-attended-20news2",
        "With three classes, words that go with one label have higher attention scores than neutral ones.",
        f"{EVERY} the rank-sum test has p < {CERTAIN}",
        "seen in Figure 3c",
        labels_attended,
    ),
    Criterion(
        "additive-behaves-alike",
        "Additive attention shows the same signs, and the same attention to polar words.",
        f"the rules for dot products hold for it on SST {EVERY}",
        "seen in Figure 4",
        additive_alike,
    ),
    Criterion(
        "polar-weights-above-neutral",
        "Polar words have larger attention weights in test sentences than neutral ones.",
        f"{EVERY} both rank-sum tests have p < {CERTAIN}",
        "seen in Figure 5",
        weights_above_neutral,
    ),
    Criterion(
        "synthetic-dot-products",
        "On made-up sentences vectors of like polar words point the same way, those of opposite ones apart, and "
        "neutral ones to neither.",
        f"{EVERY} mean dot products have these signs, and are more than {APART:g} times those with neutral words",
        "seen in the supplement",
        dot_products_apart,
    ),
    Criterion(
        "vw-smaller-when-balanced",
        "V·W stays smaller where both classes are equally frequent.",
        "of five shares of positive sentences the mean |V·W| over four beginnings is smallest at one half",
        "seen in the supplement",
        smaller_when_balanced,
    ),
    Criterion(
        "weights-follow-scores",
        "Of positive and negative words, those with the lower attention scores have the lower weights.",
        f"{EVERY} the order of both kinds is the same by scores and by weights",
        "positive below negative in Figures 2d and 5",
        weights_follow_scores,
    ),
    Criterion(
        "relative-weight-outlier",
        "A word may have a large weight for want of better neighbours.",
        f'{EVERY} the last word of "{OUTLIER}" has the largest weight there, while the scores of all three are below '
        "the median of polar words",
        "so for this sentence",
        relative_outlier,
    ),
    Criterion(
        "neutral-effect-survives-frequency-matching",
        "Ours: polar words are attended because they are polar, not because neutral ones are rare.",
        f"{ATTENDED}, where each polar word has a neutral one that is about as frequent",
        "not looked at; 1,170 of 1,384 neutral words on SST occur ten times or less",
        partial(polar_attended, BINARY, "dot", MATCHED),
    ),
)


def claims_of(evidence: Evidence) -> list[Claim]:
    """The paper's claims, judged on these models."""
    return judged(CRITERIA, evidence)
