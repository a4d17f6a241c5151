"""The report of one survey: what was run, every claim beside the paper's figure, every figure and table."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ...numerals import counted
from ...surveying import Survey
from ..claims import Claim, claims_blocks, details_blocks
from ..document import Block, Document, Emphasis, Heading, Paragraph, Strong, Table, Words
from .corpus import example_block, example_heads, exemplar_block, exemplars_of, heads_table, specific_heads
from .drawing import drawn

PAPER = "Vig & Belinkov (2019), Analyzing the Structure of Attention in a Transformer Language Model"
NULLS = {
    "first": "attention to the first token is left out everywhere but in Figure 5, as in the paper",
    "special": "attention to and from special tokens is left out everywhere but in Figure 5",
    "none": "nothing is left out",
}
CHOSEN = (
    ". The heads are those that rest most of the time and give nearly all their attention to one token in their "
    "exemplars, at most one from a layer (in GPT-2: those of the paper)."
)
HOW = (
    "Equations 3 to 6 are ratios of sums over the corpus. Every piece of a word has its tag and its relations; pieces "
    "of one word are not linked. Figures by layer are ratios of sums over the heads of the layer; the tables have the "
    "mean of the heads beside them. Standard errors (±) come from leaving out one group of sentences at a time. Layers "
    "and heads count from zero. Where the paper speaks of layers by number, the rule is in terms of depth: its last "
    "three of 12 layers are the last quarter. Figures 1 to 3 of the paper are views of a single text and are not part "
    "of this."
)


def report_of(survey: Survey, claims: Sequence[Claim], caution: str = "") -> tuple[Document, dict[str, pd.DataFrame]]:
    """The report, and the tables behind its figures."""
    heads = heads_table(survey)
    examples = example_heads(heads)
    specific = specific_heads(survey)
    exemplars = exemplars_of(survey, specific)
    blocks: list[Block] = [
        *_what_was_run(survey.card),
        *claims_blocks(claims),
        Heading("The paper's figures"),
        Heading("Figure 4: example heads", 2),
        Paragraph("The heads that are most of each kind, with their figures over the whole corpus."),
        example_block(examples),
        *drawn(survey),
        Heading("Tables 1 to 3: exemplars"),
        Paragraph(
            [
                "For three heads the sentences with the largest single weight: the attending token is ",
                Strong("bold"),
                ", the attended one in ",
                Emphasis("italics"),
                CHOSEN,
            ]
        ),
        *_exemplars(survey, exemplars, specific),
        Heading("The claims one by one"),
        *details_blocks(claims),
        Heading("How it was measured"),
        Paragraph(HOW),
    ]
    return Document(title_of(survey.card), blocks, caution), tables_of(survey, heads, examples, exemplars)


def title_of(card: Mapping[str, Any]) -> str:
    """What was run, in a line."""
    return f"Vig & Belinkov (2019) on {card['model']['name']}, {card['corpus']}"


def _what_was_run(card: Mapping[str, Any]) -> list[Block]:
    null = NULLS.get(str(card["null"]), f"attention to {card['null']} is left out")
    rows: list[Sequence[Words]] = [
        ["paper", PAPER],
        ["model", f"{card['model']['name']} ({card['class']}), {_size(card)}"],
        ["corpus", f"{card['corpus']}: {_read(card)}"],
        ["annotation", "as the corpus has it" if card["parser"] is None else f"by spaCy's {card['parser']}"],
        ["null attention", null],
        ["skipped", "; ".join(f"{number:,}: {reason}" for reason, number in card["skipped"].items()) or "none"],
        ["versions", ", ".join(f"{name} {number}" for name, number in card["versions"].items())],
    ]
    return [Table(["", ""], rows)]


def _size(card: Mapping[str, Any]) -> str:
    return f"{counted(card['layers'], 'layer')} of {counted(card['heads'], 'head')}"


def _read(card: Mapping[str, Any]) -> str:
    length = card["tokens"] / card["sentences"]
    return f"{counted(card['sentences'], 'text')} read, {counted(card['tokens'], 'token')}, {length:.1f} in each"


def _exemplars(survey: Survey, exemplars: pd.DataFrame, heads: Sequence[tuple[int, int]]) -> list[Block]:
    blocks: list[Block] = []
    nulls = survey.tables["null_attention"].set_index(["layer", "head"])["value"]
    roles = survey.tables["roles"].set_index(["layer", "head"])
    for number, (layer, head) in enumerate(heads, start=1):
        rows = exemplars[(exemplars["layer"] == layer) & (exemplars["head"] == head)]
        role, also = roles.loc[(layer, head), ["role", "also"]]
        blocks.append(Heading(f"Table {number}: layer {layer}, head {head}", 2))
        called = f"{role}, also {also}" if also else f"{role}"
        blocks.append(Paragraph(f"Null attention {nulls[layer, head]:.2f}. Role over the corpus: {called}."))
        blocks.append(exemplar_block(rows))
    return blocks


def tables_of(
    survey: Survey, heads: pd.DataFrame, examples: pd.DataFrame, exemplars: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """The tables behind the figures, small enough to be kept with the report; the survey has all there is."""
    found = {
        "fig04_example_heads": examples,
        "heads": heads,
        "distance_by_layer": survey["distance"].by_layer(),
        "entropy_by_layer": survey["entropy"].by_layer(),
        "null_attention_by_layer": survey["null_attention"].by_layer(),
        "tables_1_to_3_exemplars": exemplars.drop(columns=["tokens"]),
    }
    if "part_of_speech" in survey:
        found["part_of_speech"] = survey["part_of_speech"].result()
    if "dependency_alignment" in survey:
        alignment = survey["dependency_alignment"].by_layer()
        found["dependency_alignment_by_layer"] = alignment[alignment["relation"] == "any"]
        found["dependency_type_by_layer"] = survey["dependency_type"].by_layer()
        found["dependency_by_distance"] = survey["dependency_by_distance"].result()
    return found
