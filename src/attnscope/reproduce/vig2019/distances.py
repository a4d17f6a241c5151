"""Claims on null attention (section 5.2.3), and on how far and how broadly heads look (5.3.3)."""

import pandas as pd

from ...surveying import Survey
from ..claims import Criterion, Finding, Unmeasured
from .dependencies import EITHER, FACTOR
from .evidence import (
    both,
    correlation,
    depth_of,
    figure,
    head_name,
    heads_of,
    last,
    layers_of,
    mean_over,
    named,
    spread,
)

PAPER_SPREAD, PAPER_NULL, PAPER_LENGTH = 3.6, 0.57, 27.7
WITH_ENTROPY, WITH_ALIGNMENT = 0.61, -0.73
CERTAIN = 0.001
LOW_ENTROPY = 0.25
ALMOST_ALL = 0.97
LEAST_ROWS = 100
"""An entropy over fewer rows than this is not known: such a head rests nearly always."""
FEW_ROWS = "heads whose entropy rests on fewer than 100 rows are left out"
NULLS = {
    "first": "Null attention is attention to the first token.",
    "special": "Null attention is here attention to the special tokens, on which such a model rests.",
    "none": "Nothing was left out as null attention; this is attention to the first token.",
}


def _deepest(survey: Survey) -> Finding:
    layers = layers_of(survey, "distance")
    deep = last(depth_of(survey), 4)
    rest = set(layers["layer"]) - set(deep)
    peak = layers.loc[layers["value"].idxmax()]
    inside, outside = mean_over(layers, deep), mean_over(layers, rest)
    of_heads = int(layers.loc[layers["mean_of_heads"].idxmax(), "layer"])
    return Finding(
        f"farthest at layer {int(peak['layer'])} ({figure(peak['value'], peak['error'])} tokens)",
        int(peak["layer"]) in deep and inside > outside,
        f"Means: {inside:.2f} tokens in {named(deep)}, {outside:.2f} in the others. By the mean of the heads, the "
        f"farthest is layer {of_heads}.",
    )


def _spread(survey: Survey) -> Finding:
    values = heads_of(survey, "distance")["value"].to_numpy(dtype=float)
    found, (low, high) = spread(values)
    length = survey.card["tokens"] / survey.card["sentences"]
    return Finding(
        f"{found:.2f} tokens (95% interval over heads {low:.2f} to {high:.2f})",
        PAPER_SPREAD / FACTOR <= found <= PAPER_SPREAD * FACTOR,
        f"Texts have {length:.1f} tokens on average, in the paper {PAPER_LENGTH}: as a share of that, the spread is "
        f"{found / length:.2f} here and {PAPER_SPREAD / PAPER_LENGTH:.2f} in the paper.",
    )


def _known_entropy(survey: Survey) -> pd.DataFrame:
    entropy = heads_of(survey, "entropy")
    known = entropy[entropy["rows"] >= LEAST_ROWS]
    if known.empty:
        raise Unmeasured(f"No head has an entropy that rests on at least {LEAST_ROWS} rows in this corpus.")
    return known


def _correlates(survey: Survey, other: pd.DataFrame, paper: float) -> Finding:
    xs, ys = both(heads_of(survey, "distance"), other)
    r, p, (low, high) = correlation(xs, ys)
    return Finding(
        f"r = {r:.3f}, p {'< 0.001' if p < CERTAIN else f'= {p:.3f}'}",
        p < CERTAIN and r * paper > 0 and abs(r) >= abs(paper) / FACTOR,
        f"Pearson's r over {len(xs)} heads; 95% interval {low:.2f} to {high:.2f} when the heads are drawn again.",
    )


def _with_entropy(survey: Survey) -> Finding:
    return _correlates(survey, _known_entropy(survey), WITH_ENTROPY)


def _with_alignment(survey: Survey) -> Finding:
    return _correlates(survey, heads_of(survey, "dependency_alignment", **EITHER), WITH_ALIGNMENT)


def _far_but_sharp(survey: Survey) -> Finding:
    keys = ["layer", "head"]
    entropy = _known_entropy(survey)[[*keys, "value", "error", "rows_share"]]
    joint = heads_of(survey, "distance").merge(entropy, on=keys, suffixes=("", "_entropy"))
    if len(joint) < 4:
        raise Unmeasured("Fewer than four heads have both a distance and an entropy.")
    joint["rank"] = joint["value_entropy"].rank(method="min")
    best = joint.loc[joint["value"].idxmax()]
    return Finding(
        f"{figure(best['value'], best['error'])} tokens and {figure(best['value_entropy'], best['error_entropy'])} nats"
        f" at {head_name(best)}",
        bool(best["rank"] <= LOW_ENTROPY * len(joint)),
        f"Its entropy is number {int(best['rank'])} from below of {len(joint)} heads; the mean is "
        f"{joint['value_entropy'].mean():.2f}. It rests on {best['rows_share']:.0%} of the rows; the others are null.",
    )


def _null(survey: Survey) -> Finding:
    heads = heads_of(survey, "null_attention")
    mean = float(heads["value"].mean())
    # heads share their sentences, so their errors do not average out
    return Finding(
        figure(mean, float(heads["error"].mean())),
        PAPER_NULL / FACTOR <= mean <= PAPER_NULL * FACTOR,
        f"The mean over {len(heads)} heads. {_what_is_null(survey)}",
    )


def _above(survey: Survey) -> Finding:
    heads = heads_of(survey, "null_attention")
    above = heads[heads["value"] > ALMOST_ALL]
    best = heads.loc[heads["value"].idxmax()]
    return Finding(
        f"{len(above)} of {len(heads)} heads; the most is {figure(best['value'], best['error'])} at {head_name(best)}",
        len(above) >= 2,
        _what_is_null(survey),
    )


def _what_is_null(survey: Survey) -> str:
    return NULLS.get(str(survey.card.get("null")), f"Null attention is here attention to {survey.card.get('null')}.")


CRITERIA: tuple[Criterion[Survey], ...] = (
    Criterion(
        "distance-greatest-in-deepest-layers",
        "The deepest layers reach furthest.",
        "the layer with the greatest mean distance (ratio of sums over its heads) is in the last quarter of the "
        "layers, and the mean over that quarter is above that of the others",
        "greatest in the deepest layers (Fig. 11)",
        _deepest,
    ),
    Criterion(
        "distance-sd",
        "The mean distance varies greatly over heads.",
        "its standard deviation over heads is within a factor of 1.5 of the paper's (2.4 to 5.4 tokens)",
        "3.6 tokens",
        _spread,
    ),
    Criterion(
        "distance-entropy-correlate",
        "Heads that look far look broadly.",
        "r over heads is positive with p < 0.001, and at least two thirds of the paper's (0.41); " + FEW_ROWS,
        "r = 0.61, p < 0.001",
        _with_entropy,
    ),
    Criterion(
        "distance-alignment-anticorrelate",
        "Heads that look far follow dependencies less.",
        "r over heads is negative with p < 0.001, and at least two thirds of the paper's in size (-0.49)",
        "r = -0.73, p < 0.001",
        _with_alignment,
    ),
    Criterion(
        "far-but-sharp-head",
        "The head that looks furthest is not broad: it has one of the lowest entropies.",
        "the head with the greatest mean distance has an entropy in the lowest quarter of the heads; " + FEW_ROWS,
        "14.2 tokens and 0.41 nats at layer 5, head 1",
        _far_but_sharp,
    ),
    Criterion(
        "null-attention-share",
        "On average heads rest about half of their attention, or more, on null tokens.",
        "the mean share over heads is within a factor of 1.5 of the paper's (0.38 to 0.86)",
        "0.57",
        _null,
    ),
    Criterion(
        "some-null-above-97",
        "Some heads rest almost all their attention.",
        "at least two heads have more than 0.97 of null attention",
        "some heads (Fig. 5)",
        _above,
    ),
)
