"""Every claim with the rule by which it is judged, in the order of the paper's argument."""

from collections.abc import Iterator
from functools import partial

from ..claims import Claim, Criterion, judged
from .evidence import Evidence
from .judges import (
    ACCURATE,
    EVEN,
    FOCUSED,
    SAME,
    SATURATED,
    TIE,
    first_layer_is_the_same,
    flow_beats_rollout,
    flow_is_saturated,
    is_accurate,
    order_survives,
    raw_collapses,
    raw_is_best_at_first,
    raw_is_even,
    rollout_beats_raw,
    rollout_is_focused,
    sentiment_order,
)


def _criteria() -> Iterator[Criterion[Evidence]]:
    every, apart = "in every seed", "with the 95% interval of the difference above zero"
    yield Criterion(
        "layer1-rollout-equals-flow",
        "In the first layer rollout and flow are the same.",
        f"no token's share differs by more than {SAME:g}",
        "the same, by definition",
        first_layer_is_the_same,
    )
    yield Criterion(
        "raw-collapses-after-layer1",
        "Raw attention agrees with what the model uses in the first layer only.",
        f"{every}, for blank-out and for gradients, its correlation is highest at layer 1, by 95% intervals, and less "
        "than half of that at layers 2 to 4",
        "blank-out .69 .10 -.11 -.09 .20 .29; gradient .53 .16 -.06 .00 .24 .46",
        raw_collapses,
    )
    for reference, name, said, paper in (
        ("blank_out", "blankout", "blank-out", "rollout .51 .62 .70 .71, raw -.11 -.09 .20 .29"),
        ("gradient", "gradient", "gradients", "rollout .39 .47 .53 .54, raw -.06 .00 .24 .46"),
    ):
        yield Criterion(
            f"rollout-beats-raw-from-layer3-{name}",
            f"From the third layer on rollout agrees better with {said} than raw attention does.",
            f"{every} its mean correlation is higher at each of these layers, {apart}",
            paper,
            partial(rollout_beats_raw, reference),
        )
    for reference, name, said, last, paper in (
        ("blank_out", "blankout", "blank-out", 4, "flow .44 .70 .70, rollout .38 .51 .62"),
        ("gradient", "gradient", "gradients", 6, "flow .31 .54 .61 .60 .61, rollout .27 .39 .47 .53 .54"),
    ):
        yield Criterion(
            f"flow-above-rollout-layers2-{last}-{name}",
            f"At layers 2 to {last} flow agrees better with {said} than rollout does.",
            f"{every} its mean correlation is higher at each of these layers, {apart}",
            paper,
            partial(flow_beats_rollout, reference, last),
        )
    yield Criterion(
        "raw-best-at-layer1",
        "At the first layer raw attention agrees better than rollout and flow do.",
        f"{every}, for blank-out and for gradients, its mean correlation is higher than both, {apart}",
        "blank-out .69 against .32; gradient .53 against .22",
        raw_is_best_at_first,
    )
    yield Criterion(
        "raw-near-uniform-above-layer3",
        "Above the third layer raw attention is nearly uniform.",
        f"{every} the row of [CLS] has on average {EVEN:.0%} of the largest entropy or more at each of these layers, "
        "and more than at layer 1, by 95% intervals",
        "seen in Figures 1 and 2",
        raw_is_even,
    )
    yield Criterion(
        "rollout-more-focused-than-flow",
        "Rollout is more focused than flow.",
        f"{every} its mean entropy at the last layer is lower by more than {FOCUSED:.0%} of the largest, by 95% "
        "intervals",
        "seen in Figure 3",
        rollout_is_focused,
    )
    yield Criterion(
        "accuracy-096",
        "The model finds the number of 96% of the verbs.",
        f"the mean over seeds is at least {ACCURATE:.0%}, on held-out sentences of the text trained on, in its own mix",
        ".96",
        is_accurate,
    )
    order = "From the third layer on flow is level with or above rollout, and rollout above raw attention, also "
    rule = (
        f"{every}, at each of these layers, for blank-out and gradients, by 95% intervals rollout is above raw and "
        "flow no more than "
    )
    yield Criterion(
        "order-survives-without-cls",
        f"{order}without [CLS] and the verb's place.",
        f"{rule}{TIE} below rollout, over the words alone",
        "the authors' run without [CLS], layer 6, blank-out: raw .26, rollout .41, flow .49",
        partial(order_survives, ("authors", "words")),
    )
    yield Criterion(
        "order-survives-average-ranks",
        f"{order}with average ranks, which are right where scores are tied.",
        f"{rule}{TIE} below rollout, by average ranks",
        "dense ranks only",
        partial(order_survives, ("average", "all")),
    )
    yield Criterion(
        "sst2-rollout-and-flow-above-raw",
        "From the third layer on rollout and flow agree better with gradients in a sentiment classifier than raw does.",
        "the mean correlation of both is higher at each of these layers, by the authors' maximum over sources, "
        f"{apart}",
        "layers 3, 5, 6: rollout .12 .13 .13, flow .11 .12 .14, raw .09 .08 .09",
        sentiment_order,
    )
    yield Criterion(
        "deep-flow-is-saturated",
        "Ours: deep flow is no more than what one token can give or the other take in a single layer.",
        f"{every} at least {SATURATED:.0%} of the flows from [CLS] at the last layer are that, by 95% intervals",
        "not looked at; flow hardly changes from layer 3 on",
        flow_is_saturated,
    )


CRITERIA = tuple(_criteria())


def claims_of(evidence: Evidence) -> list[Claim]:
    """The paper's claims, judged on these models."""
    return judged(CRITERIA, evidence)
