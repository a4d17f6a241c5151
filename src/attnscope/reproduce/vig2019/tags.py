"""Claims on parts of speech (section 5.3.1)."""

import pandas as pd

from ...surveying import Survey
from ..claims import Criterion, Finding, Unmeasured
from .evidence import depth_of, figure, first, head_name, heads_of, last, layers_of, mean_over, named, tags_in_use

TWICE = 2.0
NOUN_LIFT = 2.05 / 1.5
"""The paper's .43 over .21 is 2.05; rough size is a factor of 1.5."""
ALL_TAGS = "Tags of less than 0.1% of the token pairs are left out."


def _specialised(survey: Survey, direction: str) -> tuple[list[str], list[str], list[str]]:
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


def _counted(used: list[str], above: list[str], clearly: list[str]) -> tuple[str, str]:
    without = [tag for tag in used if tag not in above]
    here = f"{len(above)} of {len(used)} tags ({len(above) / len(used):.2f})"
    note = (
        f"{len(clearly)} of them by more than two standard errors. Without such a head: {', '.join(without) or 'none'}."
    )
    return here, f"{note} {ALL_TAGS}"


def _to(survey: Survey) -> Finding:
    used, above, clearly = _specialised(survey, "to")
    here, note = _counted(used, above, clearly)
    return Finding(here, len(above) / len(used) >= 13 / 16, note)


def _from(survey: Survey) -> Finding:
    used, above, clearly = _specialised(survey, "from")
    used_to, above_to, _ = _specialised(survey, "to")
    share, share_to = len(above) / len(used), len(above_to) / len(used_to)
    here, note = _counted(used, above, clearly)
    return Finding(here, 7 / 16 <= share < share_to, f"To: {share_to:.2f} of the tags. {note}")


def _nouns(survey: Survey) -> Finding:
    heads = heads_of(survey, "part_of_speech", direction="to", tag="NOUN")
    best = heads.loc[heads["value"].idxmax()]
    mean = float(heads["value"].mean())
    return Finding(
        f"{figure(best['value'], best['error'])} at {head_name(best)}, against {mean:.2f}",
        float(best["value"]) >= NOUN_LIFT * mean,
        f"{best['value'] / mean:.2f} times the mean over heads; nouns are {best['chance']:.2f} of the token pairs.",
    )


def _top(survey: Survey, tag: str, direction: str, count: int, layers: range) -> Finding:
    heads = heads_of(survey, "part_of_speech", direction=direction, tag=tag)
    if len(heads) < 2 * count:
        raise Unmeasured(f"The model has {len(heads)} heads, too few for a top {count}.")
    if tag not in tags_in_use(survey, direction):
        raise Unmeasured(f"{tag} is less than 0.1% of the token pairs of this corpus.")
    top = heads.sort_values("value", ascending=False, kind="stable").head(count)
    inside = int(top["layer"].isin(list(layers)).sum())
    where = ", ".join(f"{int(row.layer)}:{int(row.head)} ({row.value:.2f})" for row in top.itertuples())
    return Finding(
        f"{inside} of {count} in {named(layers)}",
        inside == count,
        f"The top {count} as layer:head (share): {where}. The mean over heads is {heads['value'].mean():.2f}.",
    )


def _proper_nouns(survey: Survey) -> Finding:
    return _top(survey, "PROPN", "to", 5, last(depth_of(survey), 4))


def _determiners(survey: Survey) -> Finding:
    return _top(survey, "DET", "to", 5, first(depth_of(survey), 3))


def _punctuation(survey: Survey) -> Finding:
    return _top(survey, "PUNCT", "from", 10, last(depth_of(survey), 2))


def _uniform(survey: Survey) -> Finding:
    """The spread over the heads of a layer, in units of the tag's mean share, weighted by how frequent tags are."""
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
        f"spread {inside:.3f} in {named(early)}, {outside:.3f} in the others",
        inside <= outside / 2,
        "The spread is the standard deviation over the heads of a layer, as a share of the mean. Null attention is "
        f"{mean_over(null, early):.2f} there and {mean_over(null, set(null['layer']) - set(early)):.2f} in the others.",
    )


CRITERIA: tuple[Criterion[Survey], ...] = (
    Criterion(
        "tags-with-specialised-head-to",
        "For most tags there is a head that gives them more than twice what heads give them on average.",
        "this is so for at least 13/16 of the tags in use",
        "13 of 16 tags (0.81)",
        _to,
    ),
    Criterion(
        "tags-with-specialised-head-from",
        "The same for attention from a tag, which is less pronounced.",
        "this is so for at least 7/16 of the tags in use, and for a smaller share of them than attention to tags",
        "7 of 16 tags (0.44)",
        _from,
    ),
    Criterion(
        "nouns-head-share",
        "One head gives nouns far more attention than heads give them on average.",
        "the head that gives nouns most gives at least 1.37 times the mean over heads (the paper's 2.05 over 1.5)",
        "0.43 at layer 9, head 0, against 0.21",
        _nouns,
    ),
    Criterion(
        "propn-heads-deep",
        "The heads that attend to proper nouns are deep.",
        "the top five heads are all in the last quarter of the layers",
        "5 of 5 in the last three of 12 layers",
        _proper_nouns,
    ),
    Criterion(
        "det-heads-shallow",
        "The heads that attend to determiners are shallow.",
        "the top five heads are all in the first third of the layers",
        "5 of 5 in the first four of 12 layers",
        _determiners,
    ),
    Criterion(
        "punct-from-heads-deep",
        "The heads whose attention comes from punctuation are deep.",
        "the top ten heads are all in the last half of the layers",
        "10 of 10 in the last six of 12 layers",
        _punctuation,
    ),
    Criterion(
        "from-shares-uniform-in-early-layers",
        "In the first layers, which have little null attention, all heads have about the same shares from each tag.",
        "the spread over heads in the first sixth of the layers is at most half of that in the others",
        "roughly uniform in the initial layers (Fig. 7)",
        _uniform,
    ),
)
