"""The paper's figures, drawn from the tables of a survey, and what they showed in the paper."""

from collections.abc import Iterator, Sequence

import pandas as pd

from ...surveying import Survey
from ...views.plots import (
    curve,
    distance_against_entropy,
    head_map,
    head_maps,
    heads_against,
    layer_bars,
    layer_bars_by_label,
)
from ..document import Block, Figure, Heading
from .dependencies import EITHER
from .evidence import chosen, relations_in_use, tags_in_use

EXAMPLE_TAGS = ("PROPN", "NOUN", "VERB", "PRON", "DET", "ADP", "PUNCT", "CCONJ")
DIRECTIONS = {
    "head_to_dependent": ("the attending token is the head", "a"),
    "dependent_to_head": ("the attended token is the head", "b"),
    "either": ("either token is the head", "c"),
}
SHARE = "share of attention"
FARTHEST = 30
"""The curve of linked pairs is drawn up to so many tokens; there is next to nothing behind."""


def null_attention(survey: Survey) -> Iterator[Block]:
    """Fig. 5."""
    yield Heading("Figure 5: null attention", 2)
    plot = head_map(survey.tables["null_attention"], label="share of null attention")
    yield Figure(
        "fig05_null_attention",
        plot,
        "The share of each head's attention that rests on null tokens. In the paper: little in the first two layers, "
        "57% on average, above 97% for some heads.",
    )


def parts_of_speech(survey: Survey) -> Iterator[Block]:
    """Fig. 6, 7, A.1 and A.2."""
    if "part_of_speech" not in survey:
        return
    table = survey.tables["part_of_speech"]
    for direction, number, all_number, said in (
        ("to", 6, 1, "proper nouns draw attention in the last three layers, determiners in the first four"),
        ("from", 7, 2, "the first layers are roughly uniform; the top ten heads from punctuation are in the last six"),
    ):
        used = tags_in_use(survey, direction)
        some = [tag for tag in EXAMPLE_TAGS if tag in used]
        yield Heading(f"Figures {number} and A.{all_number}: attention {direction} each part of speech", 2)
        if some and set(some) != set(used):
            plot = head_maps(_by(table, direction, some), label=f"{SHARE} {direction} the tag")
            yield Figure(f"fig{number:02d}_tags_{direction}", plot, f"Some tags. In the paper {said}.")
        plot = head_maps(_by(table, direction, used), label=f"{SHARE} {direction} the tag")
        words = f"All tags in use, each on its own scale. In the paper {said}."
        yield Figure(f"figA{all_number}_all_tags_{direction}", plot, words)


def _by(table: pd.DataFrame, direction: str, tags: Sequence[str]) -> dict[str, pd.DataFrame]:
    return {tag: table[(table["direction"] == direction) & (table["tag"] == tag)] for tag in tags}


def dependencies(survey: Survey) -> Iterator[Block]:
    """Fig. 8 and 9."""
    if "dependency_alignment" not in survey:
        return
    by_layer = survey["dependency_alignment"].by_layer()
    yield Heading("Figure 8: attention along dependency relations, by layer", 2)
    for direction, (meaning, letter) in DIRECTIONS.items():
        rows = chosen(by_layer, "dependency_alignment", {"direction": direction, "relation": "any"})
        plot = layer_bars(rows, label=SHARE, baseline=float(rows["chance"].iloc[0]), baseline_label="pairs of tokens")
        words = f"({letter}) {meaning.capitalize()}. The line is the share of token pairs that are linked."
        if direction == "either":
            words += " In the paper the middle layers are highest."
        yield Figure(f"fig08{letter}_{direction}", plot, words)
    yield Heading("Figure 9: which dependents are attended to, by layer", 2)
    types = survey["dependency_type"].by_layer()
    types = types[types["relation"].isin(relations_in_use(survey))].sort_values(["relation", "layer"])
    plot = layer_bars_by_label(types, "relation", label=SHARE)
    yield Figure(
        "fig09_dependency_types",
        plot,
        "The share of attention to tokens by their relation to their own head, each on its own scale. In the paper "
        "subjects rise with depth; aux, cc, det, expl and neg fall.",
    )


def position_and_content(survey: Survey) -> Iterator[Block]:
    """Fig. 10."""
    yield Heading("Figure 10: variability", 2)
    plot = head_map(survey.tables["variability"], label="variability")
    words = "How much a head's attention varies from text to text: 0 is bound to position, 1 to content. In the paper "
    yield Figure("fig10_variability", plot, words + "the heads of the first layers vary least.")


def distances(survey: Survey) -> Iterator[Block]:
    """Fig. 11 and 12, and the relations between them."""
    distance, entropy = survey.tables["distance"], survey.tables["entropy"]
    yield Heading("Figure 11: how far heads look", 2)
    plot = head_map(distance, label="mean distance (tokens)")
    yield Figure("fig11a_distance", plot, "By head. In the paper the standard deviation over heads is 3.6 tokens.")
    plot = layer_bars(survey["distance"].by_layer(), label="mean distance (tokens)")
    yield Figure(
        "fig11b_distance_by_layer", plot, "By layer. In the paper least in layers 2–4, greatest in the deepest."
    )
    yield Heading("Figure 12: how broadly heads look", 2)
    plot = head_map(entropy, label="entropy (nats)")
    yield Figure("fig12_entropy", plot, "In the paper many heads of layers 0 and 1 are broad.")
    yield Heading("Distance against entropy and against alignment", 2)
    words = "One dot for each head. In the paper r = 0.61 (p < 0.001)."
    yield Figure("distance_against_entropy", distance_against_entropy(distance, entropy), words)
    if "dependency_alignment" in survey:
        aligned = chosen(survey.tables["dependency_alignment"], "dependency_alignment", dict(EITHER))
        plot = heads_against(distance, aligned, "mean distance (tokens)", "dependency alignment")
        words = "One dot for each head. In the paper r = -0.73 (p < 0.001)."
        yield Figure("distance_against_alignment", plot, words)
        near = survey.tables["dependency_by_distance"]
        near = near[near["distance"] <= FARTHEST]
        yield Heading("Dependencies by distance", 2)
        plot = curve(near, "distance", "value", "distance (tokens)", "share of pairs linked")
        words = "What the corpus itself says. In the paper 0.42 at 1 token, 0.07 at 5 and 0.02 at 10."
        yield Figure("dependency_by_distance", plot, words)


def drawn(survey: Survey) -> list[Block]:
    """All figures, in the paper's order."""
    parts = (null_attention, parts_of_speech, dependencies, position_and_content, distances)
    return [block for part in parts for block in part(survey)]
