"""Claims on parts of speech (section 5.3.1), and on which layers follow dependency relations (5.3.2)."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from ...statistics.roles import is_of_one_token
from ...surveying import Survey
from ..claims import Effect, Finding, Unmeasured, at_chance, claim, ratio
from .measures import (
    AT_REST,
    AWAKE,
    EITHER,
    LEFT_OUT,
    depth_of,
    figure,
    first,
    halves,
    head_name,
    heads_of,
    last,
    layer_names,
    layers_of,
    mean_over,
    middle_half,
    relations_in_use,
    rows_left,
    tags_in_use,
)

TWICE = 2.0
NOUN_LIFT = 2.05 / 1.5
"""The paper's .43 over .21 is 2.05; rough size is a factor of 1.5."""
ALL_TAGS = "Tags of less than 0.1% of the token pairs are left out."


def _tags_with_a_head(survey: Survey, direction: str) -> tuple[list[str], list[str], list[str]]:
    """The tags in use, those with a head above twice the mean over heads, and those of them beyond two errors."""
    used = tags_in_use(survey, direction)
    if not used:
        raise Unmeasured("No tag is frequent enough in this corpus.")
    above, clearly = [], []
    for tag in used:
        heads = heads_of(survey, "part_of_speech", direction=direction, tag=tag)
        bar = TWICE * heads["value"].mean()
        if (heads["value"] > bar).any():
            above.append(tag)
        if (heads["value"] - 2 * heads["error"].fillna(0) > bar).any():
            clearly.append(tag)
    return used, above, clearly


def _count_tags(used: list[str], above: list[str], clearly: list[str]) -> tuple[str, str]:
    without = [tag for tag in used if tag not in above]
    here = f"{len(above)} of {len(used)} tags ({len(above) / len(used):.2f})"
    note = (
        f"{len(clearly)} of them by more than two standard errors. Without such a head: {', '.join(without) or 'none'}."
    )
    return here, f"{note} {ALL_TAGS}"


@claim(
    "tags-with-specialised-head-to",
    rule=f"this is so for at least 13/16 of the tags in use; {LEFT_OUT}",
    paper="13 of 16 tags (0.81)",
    post_hoc=True,
)
def specialised_heads_to(survey: Survey) -> Finding:
    """For most tags there is a head that gives them more than twice what heads give them on average."""
    used, above, clearly = _tags_with_a_head(survey, "to")
    here, note = _count_tags(used, above, clearly)
    effect = Effect("share of tags with such a head", len(above) / len(used))
    return Finding(here, len(above) / len(used) >= 13 / 16, note, effect, {"tags": len(used)})


@claim(
    "tags-with-specialised-head-from",
    rule="this is so for at least 7/16 of the tags in use, and for a smaller share of them than attention to tags; "
    + LEFT_OUT,
    paper="7 of 16 tags (0.44)",
    post_hoc=True,
)
def specialised_heads_from(survey: Survey) -> Finding:
    """The same for attention from a tag, which is less pronounced."""
    used, above, clearly = _tags_with_a_head(survey, "from")
    used_to, above_to, _ = _tags_with_a_head(survey, "to")
    share, share_to = len(above) / len(used), len(above_to) / len(used_to)
    here, note = _count_tags(used, above, clearly)
    note, effect = f"To: {share_to:.2f} of the tags. {note}", Effect("share of tags with such a head", share)
    return Finding(here, 7 / 16 <= share < share_to, note, effect, {"tags": len(used)})


@claim(
    "nouns-head-share",
    rule="the head that gives nouns most gives at least 1.37 times the mean over heads (the paper's 2.05 over 1.5); "
    f"{AT_REST}",
    paper="0.43 at layer 9, head 0, against 0.21",
    post_hoc=True,
)
def nouns_have_a_head(survey: Survey) -> Finding:
    """One head gives nouns far more attention than heads give them on average."""
    heads = heads_of(survey, "part_of_speech", direction="to", tag="NOUN")
    best = heads.loc[heads["value"].idxmax()]
    mean = float(heads["value"].mean())
    found = Finding(
        f"{figure(best['value'], best['error'])} at {head_name(best)}, against {mean:.2f}",
        float(best["value"]) >= NOUN_LIFT * mean,
        f"{best['value'] / mean:.2f} times the mean over heads; nouns are {best['chance']:.2f} of the token pairs.",
        Effect("its share over the mean of heads", ratio(best["value"], mean)),
        {"heads": len(heads)},
    )
    left = rows_left(survey, best)
    return at_chance(found, f"The head has {left:.1%} of its rows left.") if left < AWAKE else found


@claim(
    "propn-heads-deep",
    says="The heads that attend to proper nouns are deep.",
    rule=f"the top five heads are all in the last quarter of the layers; {LEFT_OUT}",
    paper="5 of 5 in the last three of 12 layers",
    post_hoc=True,
    tag="PROPN",
    direction="to",
    count=5,
    layers_of_depth=partial(last, parts=4),
)
@claim(
    "det-heads-shallow",
    says="The heads that attend to determiners are shallow.",
    rule="the top five heads are all in the first third of the layers; it is not decided where most of them give the "
    "tag's share to one token of each sentence, which may be a sink, or where that is not known",
    paper="5 of 5 in the first four of 12 layers",
    post_hoc=True,
    tag="DET",
    direction="to",
    count=5,
    layers_of_depth=partial(first, parts=3),
)
@claim(
    "punct-from-heads-deep",
    says="The heads whose attention comes from punctuation are deep.",
    rule=f"the top ten heads are all in the last half of the layers; {LEFT_OUT}",
    paper="10 of 10 in the last six of 12 layers",
    post_hoc=True,
    tag="PUNCT",
    direction="from",
    count=10,
    layers_of_depth=partial(last, parts=2),
)
def top_heads_are_there(
    survey: Survey, tag: str, direction: str, count: int, layers_of_depth: Callable[[int], range]
) -> Finding:
    """Whether the heads with most attention to or from a tag are all in one part of the layers."""
    layers = layers_of_depth(depth_of(survey))
    heads = heads_of(survey, "part_of_speech", direction=direction, tag=tag)
    if len(heads) < 2 * count:
        raise Unmeasured(f"The model has {len(heads)} heads, too few for a top {count}.")
    if tag not in tags_in_use(survey, direction):
        raise Unmeasured(f"{tag} is less than 0.1% of the token pairs of this corpus.")
    top = heads.sort_values("value", ascending=False, kind="stable").head(count)
    inside = int(top["layer"].isin(list(layers)).sum())
    where = ", ".join(f"{int(row.layer)}:{int(row.head)} ({row.value:.2f})" for row in top.itertuples())
    found = Finding(
        f"{inside} of {count} in {layer_names(layers)}",
        inside == count,
        f"The top {count} as layer:head (share): {where}. The mean over heads is {heads['value'].mean():.2f}.",
        Effect("share of the top heads that is there", inside / count),
        {"heads": len(heads)},
    )
    return _unless_of_one_token(found, top, tag) if tag in MAY_REST else found


MAY_REST = ("DET",)
"""Tags whose share a second sink beside the first token may make: the first article of a sentence is one."""


def _unless_of_one_token(found: Finding, top: pd.DataFrame, tag: str) -> Finding:
    """What was found, without a verdict where most heads give the share of a tag to one token of each sentence."""
    if "one_token" not in top:
        return at_chance(
            found, f"Whether these heads give the share of {tag} to one token of each sentence is not kept."
        )
    single = int(is_of_one_token(top).sum())
    if single <= len(top) / 2:
        return found
    why = f"{single} of the {len(top)} give the share of {tag} to one token of each sentence, perhaps a sink"
    return at_chance(found, f"{why}: --null sinks leaves those out.")


@claim(
    "from-shares-uniform-in-early-layers",
    rule="the spread over heads in the first sixth of the layers is at most half of that in the others; " + LEFT_OUT,
    paper="roughly uniform in the initial layers (Fig. 7)",
    post_hoc=True,
)
def early_shares_are_uniform(survey: Survey) -> Finding:
    """In the first layers, which have little null attention, all heads have about the same shares from each tag.

    The spread is that over the heads of a layer, in units of the tag's mean share, weighted by how frequent tags are.
    """
    early = first(depth_of(survey), 6)
    used = tags_in_use(survey, "from")
    tables = [heads_of(survey, "part_of_speech", direction="from", tag=tag) for tag in used]
    if not tables or tables[0].groupby("layer").size().min() < 2:
        raise Unmeasured("A spread over the heads of a layer needs at least two heads in each.")
    heads = pd.concat(tables)
    by_tag = heads.groupby(["layer", "tag"])["value"].std(ddof=0).reset_index()
    means = heads.groupby("tag")["value"].mean()
    by_tag["weight"] = by_tag["tag"].map(means)
    spreads = by_tag.groupby("layer")[["value", "weight"]].sum()
    spreads = (spreads["value"] / spreads["weight"]).rename("value").reset_index()
    inside = mean_over(spreads, early)
    outside = mean_over(spreads, set(spreads["layer"]) - set(early))
    null = layers_of(survey, "null_attention")
    return Finding(
        f"spread {inside:.3f} in {layer_names(early)}, {outside:.3f} in the others",
        inside <= outside / 2,
        "The spread is the standard deviation over the heads of a layer, as a share of the mean. Null attention is "
        f"{mean_over(null, early):.2f} there and {mean_over(null, set(null['layer']) - set(early)):.2f} in the others.",
        Effect("spread there over that in the others", ratio(inside, outside)),
        {"heads": len(tables[0]), "tags": len(used)},
    )


# Dependency relations, by layer.


@claim(
    "alignment-peaks-in-middle-layers",
    rule="the layer with the highest alignment (either direction, ratio of sums over its heads) is in the middle half "
    "of the layers, and the mean over that half is above the means of the first and of the last quarter",
    paper="highest in the middle layers (2–4 of 12 by section 5.3.3; Fig. 8)",
    post_hoc=True,
)
def alignment_peaks_in_the_middle(survey: Survey) -> Finding:
    """Attention follows dependency relations most in the middle layers."""
    layers = layers_of(survey, "dependency_alignment", **EITHER)
    depth = depth_of(survey)
    middle = middle_half(depth)
    peak = layers.loc[layers["value"].idxmax()]
    of_heads = int(layers.loc[layers["mean_of_heads"].idxmax(), "layer"])
    parts = (range(middle.start), middle, range(middle.stop, depth))
    before, inside, behind = (mean_over(layers, part) for part in parts)
    means = ", ".join(f"{mean_over(layers, part):.3f} in {layer_names(part)}" for part in parts)
    return Finding(
        f"most at layer {int(peak['layer'])} of {depth} ({figure(peak['value'], peak['error'])})",
        int(peak["layer"]) in middle and inside > max(before, behind),
        f"Means: {means}; chance is {peak['chance']:.3f}. By the mean of the heads, the most is at layer {of_heads}.",
        Effect("mean alignment of the middle half over the larger of the others", ratio(inside, max(before, behind))),
        {"layers": depth, "sentences": int(survey.card["sentences"])},
    )


@claim(
    "alignment-peaks-where-distance-lowest",
    rule="more than half of the quarter of layers with the highest alignment is also in the quarter with the least "
    "mean distance, and the two are negatively correlated over layers",
    paper="the same three of 12 layers (2–4)",
)
def alignment_peaks_where_distance_is_least(survey: Survey) -> Finding:
    """The layers that follow dependencies most are those that reach least far."""
    alignment = layers_of(survey, "dependency_alignment", **EITHER)
    distance = layers_of(survey, "distance")
    count = len(first(depth_of(survey), 4))
    most = set(alignment.nlargest(count, "value")["layer"].astype(int))
    nearest = set(distance.nsmallest(count, "value")["layer"].astype(int))
    r = float(np.corrcoef(alignment["value"], distance["value"])[0, 1])
    return Finding(
        f"{len(most & nearest)} of {count} layers shared",
        len(most & nearest) > count / 2 and r < 0,
        f"Most aligned: {_list(most)}; least distance: {_list(nearest)}; r over layers is {r:.2f}.",
        Effect("Pearson's r over layers", r),
        {"layers": len(alignment)},
    )


def _list(layers: set[int]) -> str:
    return ", ".join(map(str, sorted(layers)))


@claim(
    "subjects-deeper",
    says="Subjects (nsubj, csubj and their passives) are attended to more in deeper layers.",
    rule="the mean share over the deeper half of the layers is above that of the lower half for each of them in use",
    paper="4 of 4 (Fig. 9)",
    relations=("nsubj", "nsubj:pass", "csubj", "csubj:pass"),
    deeper=True,
)
@claim(
    "aux-cc-det-expl-neg-lower",
    says="Auxiliaries, conjunctions, determiners, expletives and negations are attended to more in lower layers.",
    rule="the mean share over the lower half of the layers is above that of the deeper half for each of them in use",
    paper="5 of 5 (Fig. 9)",
    relations=("aux", "cc", "det", "expl", "neg"),
    deeper=False,
)
def relations_part_by_depth(survey: Survey, relations: Sequence[str], *, deeper: bool) -> Finding:
    """Whether one half of the layers attends more to tokens of each of these relations."""
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
    note = f"Shares of attention in {layer_names(low)} → {layer_names(deep)}."
    note += f" Not judged, because absent or rare: {', '.join(missing)}." if missing else ""
    note += " Universal Dependencies have no neg; negations are advmod there." if "neg" in missing else ""
    effect = Effect("share of the relations for which it is so", sum(right) / len(used))
    here = f"{sum(right)} of {len(used)}: {'; '.join(lines)}"
    return Finding(here, all(right), note, effect, {"relations": len(used)})
