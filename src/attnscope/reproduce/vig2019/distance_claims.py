"""Claims on how far and how broadly heads look, on null attention, and on what the corpus says of dependencies."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from ...surveying import Survey
from ..claims import Effect, Finding, Unmeasured, at_chance, claim, ratio
from . import paper
from .measures import (
    AT_REST,
    AWAKE,
    EITHER,
    LEFT_OUT,
    RESTING,
    behind_the_first,
    both,
    correlation,
    curve_of,
    depth_of,
    deviation,
    difference,
    figure,
    first,
    head_name,
    heads_of,
    last,
    layer_names,
    layers_of,
    mean_over,
)

FACTOR = 1.5
"""What rough size means."""
CERTAIN = 0.001
LOW_ENTROPY = 0.25
LEAST_ROWS = 100
"""An entropy over fewer rows than this is not known: such a head rests nearly always."""
INTERVAL = "95%, heads drawn again"
FEW_ROWS = "heads whose entropy rests on fewer than 100 rows are left out"


# Distance and entropy (section 5.3.3).


@claim(
    "distance-greatest-in-deepest-layers",
    rule="the layer with the greatest mean distance (ratio of sums over its heads) is in the last quarter of the "
    "layers, and the mean over that quarter is above that of the others",
    paper="greatest in the deepest layers (Fig. 11)",
)
def distance_is_greatest_at_the_end(survey: Survey) -> Finding:
    """The deepest layers reach furthest."""
    layers = layers_of(survey, "distance")
    deep = last(depth_of(survey), 4)
    rest = set(layers["layer"]) - set(deep)
    peak = layers.loc[layers["value"].idxmax()]
    inside, outside = mean_over(layers, deep), mean_over(layers, rest)
    of_heads = int(layers.loc[layers["mean_of_heads"].idxmax(), "layer"])
    return Finding(
        f"farthest at layer {int(peak['layer'])} ({figure(peak['value'], peak['error'])} tokens)",
        int(peak["layer"]) in deep and inside > outside,
        f"Means: {inside:.2f} tokens in {layer_names(deep)}, {outside:.2f} in the others. By the mean of the heads, "
        f"the farthest is layer {of_heads}.",
        Effect("mean distance in the last quarter over that in the others", ratio(inside, outside)),
        {"layers": len(layers), "sentences": int(survey.card["sentences"])},
    )


@claim(
    "distance-sd",
    rule=f"its standard deviation over heads is within a factor of 1.5 of the paper's (2.4 to 5.4 tokens); {LEFT_OUT}",
    paper="3.6 tokens",
    post_hoc=True,
)
def distance_varies(survey: Survey) -> Finding:
    """The mean distance varies greatly over heads."""
    values = heads_of(survey, "distance")["value"].to_numpy(dtype=float)
    found, (low, high) = deviation(values)
    length = survey.card["tokens"] / survey.card["sentences"]
    return Finding(
        f"{found:.2f} tokens (95% interval over heads {low:.2f} to {high:.2f})",
        paper.SPREAD / FACTOR <= found <= paper.SPREAD * FACTOR,
        f"Texts have {length:.1f} tokens on average, in the paper {paper.LENGTH}: as a share of that, the spread is "
        f"{found / length:.2f} here and {paper.SPREAD / paper.LENGTH:.2f} in the paper.",
        Effect("standard deviation over heads, in tokens", found, low, high, INTERVAL),
        {"heads": len(values)},
    )


def _known_entropy(survey: Survey) -> pd.DataFrame:
    entropy = heads_of(survey, "entropy")
    known = entropy[entropy["rows"] >= LEAST_ROWS]
    if known.empty:
        raise Unmeasured(f"No head has an entropy that rests on at least {LEAST_ROWS} rows in this corpus.")
    return known


def _alignment(survey: Survey) -> pd.DataFrame:
    return heads_of(survey, "dependency_alignment", **EITHER)


@claim(
    "distance-entropy-correlate",
    says="Heads that look far look broadly.",
    rule="r over heads is positive with p < 0.001, and at least two thirds of the paper's (0.41); " + FEW_ROWS,
    paper="r = 0.61, p < 0.001",
    post_hoc=True,
    other_of=_known_entropy,
    r_of_paper=paper.WITH_ENTROPY,
)
@claim(
    "distance-alignment-anticorrelate",
    says="Heads that look far follow dependencies less.",
    rule=f"r over heads is negative with p < 0.001, and at least two thirds of the paper's in size (-0.49); {LEFT_OUT}",
    paper="r = -0.73, p < 0.001",
    post_hoc=True,
    other_of=_alignment,
    r_of_paper=paper.WITH_ALIGNMENT,
)
def distance_correlates(survey: Survey, other_of: Callable[[Survey], pd.DataFrame], r_of_paper: float) -> Finding:
    """The correlation over heads of the mean distance with another figure."""
    other = other_of(survey)
    xs, ys = both(heads_of(survey, "distance"), other)
    r, p, (low, high) = correlation(xs, ys)
    return Finding(
        f"r = {r:.3f}, p {'< 0.001' if p < CERTAIN else f'= {p:.3f}'}",
        p < CERTAIN and r * r_of_paper > 0 and abs(r) >= abs(r_of_paper) / FACTOR,
        f"Pearson's r over {len(xs)} heads; 95% interval {low:.2f} to {high:.2f} when the heads are drawn again.",
        Effect("Pearson's r", r, low, high, INTERVAL),
        {"heads": len(xs)},
    )


@claim(
    "far-but-sharp-head",
    rule="the head with the greatest mean distance has an entropy in the lowest quarter of the heads; "
    + FEW_ROWS
    + f", {AT_REST}, and neither does one whose distance is not above the mean of heads by two standard errors",
    paper="14.2 tokens and 0.41 nats at layer 5, head 1",
    post_hoc=True,
)
def far_but_sharp(survey: Survey) -> Finding:
    """The head that looks furthest is not broad: it has one of the lowest entropies."""
    keys = ["layer", "head"]
    entropy = _known_entropy(survey)[[*keys, "value", "error", "rows_share"]]
    joint = heads_of(survey, "distance").merge(entropy, on=keys, suffixes=("", "_entropy"))
    if len(joint) < 4:
        raise Unmeasured("Fewer than four heads have both a distance and an entropy.")
    joint["rank"] = joint["value_entropy"].rank(method="min")
    best = joint.loc[joint["value"].idxmax()]
    found = Finding(
        f"{figure(best['value'], best['error'])} tokens and {figure(best['value_entropy'], best['error_entropy'])} nats"
        f" at {head_name(best)}",
        bool(best["rank"] <= LOW_ENTROPY * len(joint)),
        f"Its entropy is number {int(best['rank'])} from below of {len(joint)} heads; the mean is "
        f"{joint['value_entropy'].mean():.2f}. It rests on {best['rows_share']:.0%} of the rows; the others are null.",
        Effect("rank of its entropy as a share of the heads", float(best["rank"] / len(joint))),
        {"heads": len(joint)},
    )
    if best["rows_share"] < AWAKE:
        return at_chance(found, f"The head has {best['rows_share']:.1%} of its rows left.")
    mean = float(joint["value"].mean())
    if best["value"] - 2 * np.nan_to_num(best["error"]) <= mean:
        return at_chance(found, f"It is not certain that this head looks far: the mean of heads is {mean:.1f} tokens.")
    return found


# The first layers (sections 5.3.2 and 5.3.3, Figures 10 to 12).


@claim(
    "first-layers-by-position",
    rule="the mean variability of the heads in the first sixth of the layers is below that of the others, and so is "
    "95% of the difference when the heads are drawn again",
    paper="many heads in the initial layers (Fig. 10)",
    post_hoc=True,
)
def first_layers_vary_little(survey: Survey) -> Finding:
    """Heads in the first layers look by position rather than by content: they vary little."""
    heads = heads_of(survey, "variability")
    early = heads["layer"].isin(first(depth_of(survey), 6))
    ours, others = (heads.loc[chosen, "value"].to_numpy(dtype=float) for chosen in (early, ~early))
    found, (low, high) = difference(ours, others)
    return Finding(
        f"{ours.mean():.3f} in {layer_names(first(depth_of(survey), 6))}, {others.mean():.3f} in the others",
        high < 0,
        f"The difference is {found:.3f}, {low:.3f} to {high:.3f} when the heads are drawn again.",
        Effect("variability of the first layers less that of the others", found, low, high, INTERVAL),
        {"heads": len(heads)},
    )


MANY, BROAD = 0.5, 0.75


@claim(
    "first-layers-broad",
    rule="at least half of the heads in the first sixth of the layers are in the highest quarter by entropy; "
    + FEW_ROWS,
    paper="many heads in layers 0 and 1 (Fig. 12)",
    post_hoc=True,
)
def first_layers_are_broad(survey: Survey) -> Finding:
    """Many heads in the first layers have high entropy."""
    heads = _known_entropy(survey)
    layers = first(depth_of(survey), 6)
    early = heads["layer"].isin(layers)
    if not early.any():
        raise Unmeasured(f"No head in {layer_names(layers)} has an entropy that is known.")
    broad = heads["value"] >= heads["value"].quantile(BROAD)
    share = float(broad[early].mean())
    return Finding(
        f"{int(broad[early].sum())} of {int(early.sum())} heads in {layer_names(layers)} ({share:.2f})",
        share >= MANY,
        f"Their mean is {heads.loc[early, 'value'].mean():.2f} nats, that of the others "
        f"{heads.loc[~early, 'value'].mean():.2f}.",
        Effect("share of the first layers' heads in the highest quarter", share),
        {"heads": len(heads)},
    )


@claim(
    "first-layers-reach-further",
    rule="the mean distance (ratio of sums over the heads of a layer) over the first sixth of the layers is above that "
    "over the quarter behind it",
    paper="layers 0 and 1 above layers 2–4 (Fig. 11)",
    post_hoc=True,
)
def first_layers_reach_further(survey: Survey) -> Finding:
    """The first layers reach further than those right behind them."""
    layers, depth = layers_of(survey, "distance"), depth_of(survey)
    ours, others = (mean_over(layers, chosen) for chosen in (first(depth, 6), behind_the_first(depth)))
    return Finding(
        f"{ours:.2f} tokens in {layer_names(first(depth, 6))}, {others:.2f} in {layer_names(behind_the_first(depth))}",
        ours > others,
        "",
        Effect("distance in the first layers over that in those behind them", ours / others),
        {"layers": len(layers), "sentences": int(survey.card["sentences"])},
    )


# One head that looks at the previous token (section 5.3.2).


AT_PREVIOUS = 0.5


@claim(
    "previous-token-head",
    rule="the head that gives most to the previous token gives it more than half, and has of all heads the highest "
    f"alignment and the lowest variability; {LEFT_OUT}",
    paper="0.42 and 0.004 at layer 4, head 11",
    post_hoc=True,
)
def previous_token_head(survey: Survey) -> Finding:
    """The head with the highest dependency alignment has the lowest variability: it looks at the previous token."""
    alignment = _alignment(survey)
    variability = heads_of(survey, "variability")
    keys = ["layer", "head"]
    previous = heads_of(survey, "patterns", pattern="previous")[[*keys, "value"]].rename(columns={"value": "previous"})
    joint = alignment.merge(variability[[*keys, "value", "error"]], on=keys, suffixes=("", "_variability"))
    joint = joint.merge(previous, on=keys)
    if joint.empty:
        raise Unmeasured("No head has both an alignment and a variability.")
    joint["above"] = joint["value"].rank(ascending=False, method="min")
    joint["below"] = joint["value_variability"].rank(method="min")
    best = joint.loc[joint["previous"].idxmax()]
    aligned = joint.loc[joint["value"].idxmax()]
    return Finding(
        f"{figure(best['value'], best['error'])} and {best['value_variability']:.3f} at {head_name(best)}",
        bool(best["previous"] > AT_PREVIOUS and best["above"] == 1 and best["below"] == 1),
        f"This head gives {best['previous']:.2f} to the previous token; of {len(joint)} heads its alignment is number "
        f"{int(best['above'])} from above, its variability number {int(best['below'])} from below. The highest "
        f"alignment is {aligned['value']:.2f}, at {head_name(aligned)}, which gives {aligned['previous']:.2f} to the "
        "previous token.",
        Effect("its share of attention to the previous token", float(best["previous"])),
        {"heads": len(joint)},
    )


# Null attention (section 5.2.3).


NULLS = {
    "first": "Null attention is attention to the first token.",
    "sinks": "Null attention is here attention to the first token and to tokens that many heads rest on.",
    "special": "Null attention is here attention to the special tokens, on which such a model rests.",
    "none": "Nothing was left out as null attention; this is attention to the first token.",
}


@claim(
    "null-attention-share",
    rule="the mean share over heads is within a factor of 1.5 of the paper's (0.38 to 0.86)",
    paper="0.57",
)
def null_attention_is_large(survey: Survey) -> Finding:
    """On average heads rest about half of their attention, or more, on null tokens."""
    heads = heads_of(survey, "null_attention")
    mean = float(heads["value"].mean())
    # heads share their sentences, so their errors do not average out
    return Finding(
        figure(mean, float(heads["error"].mean())),
        paper.NULL / FACTOR <= mean <= paper.NULL * FACTOR,
        f"The mean over {len(heads)} heads. {_what_is_null(survey)}",
        Effect("mean share of null attention", mean),
        {"heads": len(heads)},
    )


@claim(
    "some-null-above-97",
    rule="at least two heads have more than 0.97 of null attention",
    paper="some heads (Fig. 5)",
)
def some_heads_rest(survey: Survey) -> Finding:
    """Some heads rest almost all their attention."""
    heads = heads_of(survey, "null_attention")
    above = heads[heads["value"] > RESTING]
    best = heads.loc[heads["value"].idxmax()]
    return Finding(
        f"{len(above)} of {len(heads)} heads; the most is {figure(best['value'], best['error'])} at {head_name(best)}",
        len(above) >= 2,
        _what_is_null(survey),
        Effect("share of heads above 0.97", len(above) / len(heads)),
        {"heads": len(heads)},
    )


def _what_is_null(survey: Survey) -> str:
    return NULLS.get(str(survey.card.get("null")), f"Null attention is here attention to {survey.card.get('null')}.")


# What the corpus itself says of dependencies (section 5.3.3).


@claim(
    "dependency-by-distance",
    rule="at 1, 5 and 10 tokens it is within a factor of 1.5 of the paper's, and falls from each to the next",
    paper="0.42, 0.07, 0.02 at 1, 5, 10 tokens",
)
def links_fall_with_distance(survey: Survey) -> Finding:
    """The probability that two tokens are linked falls with their distance."""
    curve = curve_of(survey).set_index("distance")
    if not set(paper.CURVE) <= set(curve.index):
        raise Unmeasured("No sentence of this corpus is long enough for a distance of ten tokens.")
    rows = [curve.loc[distance] for distance in paper.CURVE]
    values = [float(row["value"]) for row in rows]
    near = [
        value <= FACTOR * published and published <= FACTOR * value
        for value, published in zip(values, paper.CURVE.values(), strict=True)
    ]
    falling = values[0] > values[1] > values[2]
    rises = np.flatnonzero(np.diff(curve["value"].to_numpy(dtype=float)) >= 0)
    until = int(rises[0]) + 1 if len(rises) else len(curve)
    return Finding(
        ", ".join(figure(value, float(row.get("error", np.nan))) for value, row in zip(values, rows, strict=True)),
        all(near) and falling,
        f"It falls at every step up to a distance of {until} (in the paper up to {paper.REACH}).",
        Effect("probability of a link of adjacent tokens", values[0]),
        {"links": int(curve["linked"].sum())},
    )


@claim(
    "dependency-distance",
    rule="the mean is within a factor of 1.5 of the paper's, and the share within 18 tokens at most one point of a "
    "hundred below it",
    paper="3.89 tokens; 0.998 of the links within 18",
)
def dependencies_are_short(survey: Survey) -> Finding:
    """Dependencies span short distances."""
    curve = curve_of(survey)
    linked = curve["linked"].to_numpy(dtype=float)
    mean = float((curve["distance"] * linked).sum() / linked.sum())
    within = float(linked[curve["distance"] <= paper.REACH].sum() / linked.sum())
    return Finding(
        f"{mean:.2f} tokens; {within:.3f} of the links within {paper.REACH}",
        paper.DISTANCE / FACTOR <= mean <= paper.DISTANCE * FACTOR and within >= paper.LEAST_WITHIN,
        f"Over {int(linked.sum()):,} linked pairs of tokens; all pieces of two linked words are linked.",
        Effect("mean distance of linked tokens", mean),
        {"links": int(linked.sum())},
    )
