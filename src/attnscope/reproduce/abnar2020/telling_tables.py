"""Tables 1 to 3 and our own as they stand in the report, the paper's figures beside ours."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ..document import Block, Figure, Heading, Paragraph, Table, Words
from .curves import agreement_curves
from .evidence import NAMES, Evidence, share
from .paper import TABLE_1, TABLE_2, TABLE_3, Row
from .scoring import BASELINES, METHODS
from .sentiment import SOURCES
from .tables import Correlations

PAPER = {"blank_out": TABLE_1, "gradient": TABLE_2}
RANKED = {"authors": "as the authors rank", "average": "by average ranks"}
KINDS = [(ranks, tokens) for ranks in RANKED for tokens in ("all", "words")]
AGREEMENT = {"all": "over all tokens", "words": "over the words alone, without [CLS] and the verb's place"}
CLASSIFIER = {"all": "over all tokens", "words": "over the words alone, without special tokens"}
SUM = (
    "The authors take |Σ ∂(p₀ - p₁)/∂x| over the dimensions of x. Every way from the input to the answer passes a "
    "LayerNorm, which takes out what all dimensions have in common: that sum is zero, and what is ranked below is the "
    "rounding of 32-bit numbers, which grows with the gradient and so follows its length from afar."
)


def correlation_blocks(table: pd.DataFrame, evidence: Evidence) -> Iterator[Block]:
    """Tables 1 and 2 in all four ways, as curves and as numbers, and the saturation of flow."""
    yield Heading("Tables 1 and 2 as curves", 2)
    for kind in KINDS:
        said, published = _said(kind, AGREEMENT), kind == KINDS[0]
        panels = {NAMES[reference]: _chosen(table, reference, kind) for reference in PAPER}
        beside = {NAMES[reference]: rows for reference, rows in PAPER.items()} if published else {}
        plot = agreement_curves(panels, beside, f"Agreement by layer, {said}.")
        words = f"One line for each seed, {said}; dotted: scores that know nothing of the model."
        yield Figure(f"tables_1_and_2_{'_'.join(kind)}", plot, words + (" Dashed: the paper." if published else ""))
    for number, reference in enumerate(PAPER, start=1):
        yield Heading(f"Table {number}: agreement with {NAMES[reference]}", 2)
        for kind in KINDS:
            chosen = _chosen(table, reference, kind)
            yield Paragraph(f"{_capital(_said(kind, AGREEMENT))}; mean ± SD over {_sentences(chosen)}.")
            yield _by_layer(chosen, evidence.layers, PAPER[reference] if kind == KINDS[0] else {})
    yield Heading("Table 2 with the authors' sum of gradients", 2)
    yield Paragraph(SUM)
    yield _by_layer(_chosen(table, "gradient_sum", KINDS[0]), evidence.layers, TABLE_2)
    yield Heading("Saturation of flow", 2)
    yield Paragraph(
        "The share of the flows from [CLS] that are just what [CLS] gives in that layer or the token takes in the "
        "first: such a flow says nothing of the layers between. Below it the share of tokens whose flow another token "
        "has too."
    )
    yield _saturation(evidence.saturation, evidence.layers)


def _said(kind: tuple[str, str], tokens: Mapping[str, str]) -> str:
    return f"{RANKED[kind[0]]}, {tokens[kind[1]]}"


def _capital(said: str) -> str:
    return said[0].upper() + said[1:]


def _sentences(table: pd.DataFrame) -> str:
    """How many sentences have a figure: those of one word rank nothing, nor do scores that are all tied."""
    least, most = int(table["sentences"].min()), int(table["sentences"].max())
    return f"{most:,} sentences" if least == most else f"{least:,} to {most:,} sentences"


def _chosen(table: pd.DataFrame, reference: str, kind: tuple[str, str]) -> pd.DataFrame:
    return table[(table["reference"] == reference) & (table["ranks"] == kind[0]) & (table["tokens"] == kind[1])]


def _by_layer(table: pd.DataFrame, layers: int, paper: Mapping[str, Row]) -> Table:
    numbers = range(1, layers + 1)
    rows: list[Sequence[Words]] = []
    for method in METHODS:
        if method in paper:
            shown = [paper[method].get(layer) for layer in numbers]
            rows.append([method, "paper", *("–" if one is None else f"{one[0]:.2f} ± {one[1]:.2f}" for one in shown)])
        for seed, of_seed in table[table["method"] == method].groupby("seed", dropna=False):
            rows.append([method, _model(seed), *(_mean(row) for row in of_seed.to_dict("records"))])
    for baseline in BASELINES:
        found = table[table["method"] == baseline].to_dict("records")
        rows += [[baseline, _model(row["seed"]), _mean(row), *[""] * (layers - 1)] for row in found]
    return Table(["", "", *(f"layer {layer}" for layer in numbers)], rows)


def _model(seed: Any) -> str:
    return "here" if pd.isna(seed) else f"seed {seed}"


def _mean(row: Mapping[Hashable, Any]) -> str:
    return f"{row['mean']:.2f} ± {row['sd']:.2f}"


def _saturation(table: pd.DataFrame, layers: int) -> Table:
    rows: list[Sequence[Words]] = [
        [what, f"seed {seed}", *(f"{value:.2f}" for value in of_seed[what])]
        for what in ("saturated", "tied")
        for seed, of_seed in table.groupby("seed")
    ]
    return Table(["", "", *(f"layer {layer}" for layer in range(1, layers + 1))], rows)


def sentiment_blocks(found: Correlations | str) -> Iterator[Block]:
    """Table 3, or why there is none."""
    yield Heading("Table 3: agreement with input gradients in a sentiment classifier", 2)
    if isinstance(found, str):
        yield Paragraph(found)
        return
    table = found.table()
    layers = int(table["layer"].max())
    panels = {NAMES[source]: _chosen(table, source, KINDS[0]) for source in SOURCES}
    plot = agreement_curves(panels, {NAMES["maximum"]: TABLE_3}, "Agreement by layer in a sentiment classifier.")
    yield Figure("table_3", plot, "As the authors rank, over all tokens. Dashed: the paper, for DistilBERT.")
    for source in SOURCES:
        for kind in KINDS:
            chosen = _chosen(table, source, kind)
            said = f"{_capital(NAMES[source])}, {_said(kind, CLASSIFIER)}"
            yield Paragraph(f"{said}; mean ± SD over {_sentences(chosen)}.")
            yield _by_layer(chosen, layers, TABLE_3 if (source, kind) == ("maximum", KINDS[0]) else {})


def subject_blocks(table: pd.DataFrame) -> Iterator[Block]:
    """How often the subject is found."""
    yield Heading("Do they find the subject?", 2)
    yield Paragraph(
        "The verb's subject decides its number. The share of sentences whose subject has the highest score of all "
        "words (ties share it), by the number of attractors, mean over seeds; only sentences whose subject is known. "
        "Blank-out and gradients say how often the model itself goes by the subject; chance is one word drawn, first "
        "and last are the first word and the last one before the verb. In sentences of Linzen's subset the subject is "
        f"what a parser found. No standard error within a seed is above {table['error'].max():.2f}."
    )
    last = table["layer"].max()
    kept = table[table["layer"].isin([0, 1, last])]
    groups = list(dict.fromkeys(kept["attractors"]))
    counts = kept.groupby("attractors")["sentences"].first()
    rows: list[Sequence[Words]] = []
    for method, layer in dict.fromkeys(zip(kept["method"], kept["layer"], strict=True)):
        one = kept[(kept["method"] == method) & (kept["layer"] == layer)].groupby("attractors")["found"].mean()
        named = f"{method}, layer {layer}" if layer else NAMES.get(method, method)
        rows.append([named, *(f"{one[group]:.2f}" for group in groups)])
    yield Table(["attractors", *(f"{group} ({counts[group]:,} sentences)" for group in groups)], rows)


def accuracy_blocks(evidence: Evidence) -> Iterator[Block]:
    """How often the models are right."""
    yield Heading("How often the models are right", 2)
    rows: list[Sequence[Words]] = []
    for run in evidence.runs:
        for kind, counts in (("held out, of the text trained on", run.held_out), ("tested", run.testing)):
            by = ", ".join(f"{right / of:.3f} of {of:,} with {number}" for number, (right, of) in counts.items() if of)
            rows.append([run.name, kind, f"{share(counts):.3f}", by])
    yield Table(["", "sentences", "right", "by attractors"], rows)
