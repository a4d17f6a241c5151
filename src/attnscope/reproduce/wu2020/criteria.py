"""Every claim with the rule by which it is judged: for sentences (SST), and again for stories (SEND)."""

from collections.abc import Iterator
from functools import partial

from ...evaluation.lexicons import NEGATIVE, POSITIVE
from ..claims import Claim, Criterion, judged
from .judges import (
    AGREE,
    CERTAIN,
    DOUBTFUL,
    EVEN,
    SPECIAL,
    TOLERANCE,
    TOP,
    Evidence,
    correlate,
    emotional_words_on_top,
    heads_above_chance,
    is_accurate,
    is_not_quadratic,
    is_quadratic,
    some_head_specialises,
    stop_words_not_on_top,
    top_layer_is_even,
)
from .scales import ACCURACY, CONCORDANCE, P_GRADIENT, SPEARMAN, T_QUADRATIC

EVERY = "in every seed"


def _on_words(data: str, suffix: str) -> Iterator[Criterion[Evidence]]:
    yield Criterion(
        f"lat-quadratic-positive-{data}",
        "Layer-wise tracing gives words that people find very positive or very negative the highest scores.",
        f"{EVERY} the quadratic term is positive with p < {CERTAIN} and the parabola turns within the range of valence",
        f"t {T_QUADRATIC[data]}, p < .001",
        partial(is_quadratic, data, "softmax", CERTAIN),
    )
    yield Criterion(
        f"gradient-not-quadratic-{data}",
        "Gradients show no such curve.",
        f"{EVERY} the quadratic term of the gradient of all outcomes added up has p of {DOUBTFUL} or more",
        f"p {P_GRADIENT[data]}",
        partial(is_not_quadratic, data),
    )
    yield Criterion(
        f"lat-gradient-correlate-{data}",
        "Layer-wise tracing and gradients put words in a like order.",
        f"{EVERY} Spearman's correlation over the rated words is at least {AGREE[data]}",
        f"{SPEARMAN[data]}",
        partial(correlate, data),
    )
    for kind, tag in (("positive", POSITIVE), ("negative", NEGATIVE)):
        yield Criterion(
            f"heads-above-chance-{kind}{suffix}",
            f"Every head brings more attention to {tag} words than even attention would.",
            f"{EVERY} the share of each head is above chance (Eq. 14)",
            "all heads",
            partial(heads_above_chance, data, tag),
        )
    yield Criterion(
        f"emotional-words-on-top{suffix}",
        "Emotional words have the highest scores.",
        f"{EVERY} very positive and very negative words are more frequent among the top {TOP:.0%} of the words that "
        f"stand there twice or more than among the others (Fisher's exact test, p < {DOUBTFUL})",
        "seen in Figure 4",
        partial(emotional_words_on_top, data),
    )
    yield Criterion(
        f"stop-words-not-on-top{suffix}",
        "Stop words have not.",
        f"{EVERY} they are less frequent there than among the others (Fisher's exact test, p < {DOUBTFUL})",
        "seen in Figure 4",
        partial(stop_words_not_on_top, data),
    )
    yield Criterion(
        f"top-layer-spreads-evenly{suffix}",
        "The highest layer spreads the local attention nearly evenly, the lower ones funnel it.",
        f"{EVERY} traced attention has at least {EVEN:.0%} of the largest entropy at the highest layer, and more than "
        "at the input",
        "seen in Figure 3",
        partial(top_layer_is_even, data),
    )
    yield Criterion(
        f"some-head-specialises{suffix}",
        "Some head specialises in very positive or very negative words.",
        f"{EVERY} some head brings at least {SPECIAL} times chance to words of one of the kinds",
        "24% against 15% (SEND, head 4, very negative words)",
        partial(some_head_specialises, data),
    )
    yield Criterion(
        f"lat-quadratic-survives-length-correction{suffix}",
        "Ours: the curve of layer-wise tracing is not made by the lengths of sentences.",
        f"{EVERY} the quadratic term of scores times the words of their sentence is positive with p < {DOUBTFUL}, and "
        "the parabola turns within the range of valence",
        "not looked at; softmax makes scores about 1 / N",
        partial(is_quadratic, data, "length_corrected", DOUBTFUL),
    )


CRITERIA = (
    Criterion(
        "sst5-accuracy",
        "The model tells the right one of five classes in 47.5% of SST's test sentences.",
        f"the mean over seeds is no more than {TOLERANCE:.0%} below",
        "47.5 (SD over runs .2)",
        partial(is_accurate, ACCURACY - TOLERANCE, "sst"),
    ),
    Criterion(
        "send-ccc",
        "The model follows the valence of stories with a mean concordance of .54.",
        "the mean over seeds is at least .50, what people reach",
        f"{CONCORDANCE} (SD over runs .02)",
        partial(is_accurate, 0.50, "send"),
    ),
    *_on_words("sst", ""),
    *_on_words("send", "-send"),
)


def claims_of(evidence: Evidence) -> list[Claim]:
    """The paper's claims, judged on these models."""
    return judged(CRITERIA, evidence)
