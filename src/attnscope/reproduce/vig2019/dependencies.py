"""Claims on dependency relations (section 5.3.2), and what the corpus itself says of them (5.3.3)."""

from collections.abc import Sequence

import numpy as np

from ...surveying import Survey
from ..claims import Criterion, Finding, Unmeasured
from .evidence import (
    curve_of,
    depth_of,
    figure,
    first,
    halves,
    head_name,
    heads_of,
    layers_of,
    mean_over,
    middle_half,
    named,
    relations_in_use,
)

EITHER = {"direction": "either", "relation": "any"}
SUBJECTS = ("nsubj", "nsubj:pass", "csubj", "csubj:pass")
LOWER = ("aux", "cc", "det", "expl", "neg")
FACTOR = 1.5
"""What rough size means."""
PAPER_CURVE = {1: 0.42, 5: 0.07, 10: 0.02}
PAPER_DISTANCE, REACH, LEAST_WITHIN = 3.89, 18, 0.988
"""The mean distance, and the share within reach less one point of a hundred."""
AT_PREVIOUS = 0.5


def _middle(survey: Survey) -> Finding:
    layers = layers_of(survey, "dependency_alignment", **EITHER)
    depth = depth_of(survey)
    middle = middle_half(depth)
    peak = layers.loc[layers["value"].idxmax()]
    of_heads = int(layers.loc[layers["mean_of_heads"].idxmax(), "layer"])
    parts = (range(middle.start), middle, range(middle.stop, depth))
    before, inside, behind = (mean_over(layers, part) for part in parts)
    return Finding(
        f"most at layer {int(peak['layer'])} of {depth} ({figure(peak['value'], peak['error'])})",
        int(peak["layer"]) in middle and inside > max(before, behind),
        f"Means: {before:.3f} in {named(parts[0])}, {inside:.3f} in {named(middle)}, {behind:.3f} in {named(parts[2])};"
        f" chance is {peak['chance']:.3f}. By the mean of the heads, the most is at layer {of_heads}.",
    )


def _where_lowest(survey: Survey) -> Finding:
    alignment = layers_of(survey, "dependency_alignment", **EITHER)
    distance = layers_of(survey, "distance")
    count = len(first(depth_of(survey), 4))
    most = set(alignment.nlargest(count, "value")["layer"].astype(int))
    nearest = set(distance.nsmallest(count, "value")["layer"].astype(int))
    r = float(np.corrcoef(alignment["value"], distance["value"])[0, 1])
    return Finding(
        f"{len(most & nearest)} of {count} layers shared",
        len(most & nearest) > count / 2 and r < 0,
        f"Most aligned: {_listed(most)}; least distance: {_listed(nearest)}; r over layers is {r:.2f}.",
    )


def _by_halves(survey: Survey, relations: Sequence[str], *, deeper: bool) -> Finding:
    used = [relation for relation in relations if relation in relations_in_use(survey)]
    if not used:
        raise Unmeasured(f"None of {', '.join(relations)} is frequent enough in this corpus.")
    low, deep = halves(depth_of(survey))
    lines, right = [], []
    for relation in used:
        layers = layers_of(survey, "dependency_type", relation=relation)
        below, above = mean_over(layers, low), mean_over(layers, deep)
        # layers share their sentences, so their errors do not average out: the mean of them is the careful figure
        errors = (mean_over(layers, low, "error"), mean_over(layers, deep, "error"))
        right.append((above > below) == deeper and above != below)
        lines.append(f"{relation} {figure(below, errors[0])} → {figure(above, errors[1])}")
    missing = [relation for relation in relations if relation not in used]
    note = f"Shares of attention in {named(low)} → {named(deep)}."
    note += f" Not judged, because absent or rare: {', '.join(missing)}." if missing else ""
    note += " Universal Dependencies have no neg; negations are advmod there." if "neg" in missing else ""
    return Finding(f"{sum(right)} of {len(used)}: {'; '.join(lines)}", all(right), note)


def _subjects(survey: Survey) -> Finding:
    return _by_halves(survey, SUBJECTS, deeper=True)


def _lower(survey: Survey) -> Finding:
    return _by_halves(survey, LOWER, deeper=False)


def _previous(survey: Survey) -> Finding:
    alignment = heads_of(survey, "dependency_alignment", **EITHER)
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
    )


def _curve(survey: Survey) -> Finding:
    curve = curve_of(survey).set_index("distance")
    if not set(PAPER_CURVE) <= set(curve.index):
        raise Unmeasured("No sentence of this corpus is long enough for a distance of ten tokens.")
    rows = [curve.loc[distance] for distance in PAPER_CURVE]
    values = [float(row["value"]) for row in rows]
    near = [
        value <= FACTOR * paper and paper <= FACTOR * value
        for value, paper in zip(values, PAPER_CURVE.values(), strict=True)
    ]
    falling = values[0] > values[1] > values[2]
    until = _falls_until(curve["value"].to_numpy(dtype=float))
    return Finding(
        ", ".join(figure(value, float(row.get("error", np.nan))) for value, row in zip(values, rows, strict=True)),
        all(near) and falling,
        f"It falls at every step up to a distance of {until} (in the paper up to {REACH}).",
    )


def _distance(survey: Survey) -> Finding:
    curve = curve_of(survey)
    linked = curve["linked"].to_numpy(dtype=float)
    mean = float((curve["distance"] * linked).sum() / linked.sum())
    within = float(linked[curve["distance"] <= REACH].sum() / linked.sum())
    return Finding(
        f"{mean:.2f} tokens; {within:.1%} within {REACH}",
        PAPER_DISTANCE / FACTOR <= mean <= PAPER_DISTANCE * FACTOR and within >= LEAST_WITHIN,
        f"Over {int(linked.sum()):,} linked pairs of tokens; all pieces of two linked words are linked.",
    )


def _falls_until(values: np.ndarray) -> int:
    """The last distance up to which each value is below the one before."""
    rises = np.flatnonzero(np.diff(values) >= 0)
    return int(rises[0]) + 1 if len(rises) else len(values)


def _listed(layers: set[int]) -> str:
    return ", ".join(map(str, sorted(layers)))


CRITERIA: tuple[Criterion[Survey], ...] = (
    Criterion(
        "alignment-peaks-in-middle-layers",
        "Attention follows dependency relations most in the middle layers.",
        "the layer with the highest alignment (either direction, ratio of sums over its heads) is in the middle half "
        "of the layers, and the mean over that half is above the means of the first and of the last quarter",
        "highest in the middle layers (2–4 of 12 by section 5.3.3; Fig. 8)",
        _middle,
    ),
    Criterion(
        "alignment-peaks-where-distance-lowest",
        "The layers that follow dependencies most are those that reach least far.",
        "more than half of the quarter of layers with the highest alignment is also in the quarter with the least mean "
        "distance, and the two are negatively correlated over layers",
        "the same three of 12 layers (2–4)",
        _where_lowest,
    ),
    Criterion(
        "subjects-deeper",
        "Subjects (nsubj, csubj and their passives) are attended to more in deeper layers.",
        "the mean share over the deeper half of the layers is above that of the lower half for each of them in use",
        "4 of 4 (Fig. 9)",
        _subjects,
    ),
    Criterion(
        "aux-cc-det-expl-neg-lower",
        "Auxiliaries, conjunctions, determiners, expletives and negations are attended to more in lower layers.",
        "the mean share over the lower half of the layers is above that of the deeper half for each of them in use",
        "5 of 5 (Fig. 9)",
        _lower,
    ),
    Criterion(
        "previous-token-head",
        "The head with the highest dependency alignment has the lowest variability: it looks at the previous token.",
        "the head that gives most to the previous token gives it more than half, and has of all heads the highest "
        "alignment and the lowest variability",
        "0.42 and 0.004 at layer 4, head 11",
        _previous,
    ),
    Criterion(
        "dependency-by-distance",
        "The probability that two tokens are linked falls with their distance.",
        "at 1, 5 and 10 tokens it is within a factor of 1.5 of the paper's, and falls from each to the next",
        "0.42, 0.07, 0.02 at 1, 5, 10 tokens",
        _curve,
    ),
    Criterion(
        "dependency-distance",
        "Dependencies span short distances.",
        "the mean is within a factor of 1.5 of the paper's, and the share within 18 tokens at most one point of a "
        "hundred below it",
        "3.89 tokens; 99.8% within 18",
        _distance,
    ),
)
