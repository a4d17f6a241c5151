"""The report: what was run, every claim beside the paper's figure, the tables and figures, and what theory says."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from ..claims import Claim, claims_blocks, details_blocks
from ..document import Block, Document, Figure, Heading, Paragraph, Table, Words
from .agreement_tables import agreement_tables
from .drawing import agreement_curves, copying_curves, head_curves, locality_curves
from .measuring import Evidence, Measured
from .paper import NETWORK_BLEU, OPTIMAL_AGREEMENT, OPTIMAL_BLEU, TABLE_9, TITLE, TITLES
from .theory import COPIED

HOW = (
    (
        "Copying: one LSTM layer each side, one embedding for both, dot attention; Adam at .001, fresh sequences at "
        "every step, accuracy with the right words before."
    ),
    (
        "Several heads: GRUs, contexts averaged, a head is its query map and its context map, as in the authors' "
        "code. All combinations share their other weights and see the same sequences."
    ),
    (
        "Locality: an LSTM that reads one way, which the paper does not say. The mean is over all places, those "
        "before the keyword included."
    ),
    (
        "Texts: an LSTM each way, embeddings that begin at random unless vectors are named above (the authors load "
        "GloVe and then overwrite it), bos and eos are positions, 32 texts to a step. Translation is from German to "
        "English, as in the authors' loader; sources end with eos."
    ),
    (
        "α is that of run A at its best checkpoint, chosen by accuracy on the same validation data; β, and α̂ of ξ, "
        "are of other seeds; β_uf is of a run whose attention is uniform; Δ is minus the derivative of the loss by a "
        "factor on the embedding, so that what helps is positive. A(u, v) asks whether the highest place of u is "
        "among the highest 5% of v; what the paper writes A(β_uf, β_px) has u = β_px, as in the authors' code. Each "
        "agreement but A(α, α̂) is of one pair of runs, as in the paper: its error is of texts, or of sentences in "
        "translation, and says nothing of seeds."
    ),
    (
        "What was trained, and for how long, stands below; in the paper it is width 256, 200 to 300 steps of "
        "copying, 4,000 steps on texts, and 20 epochs of translation."
    ),
)


def report_of(
    found: Measured, claims: Sequence[Claim], facts: Mapping[str, str], settings: Mapping[str, str], caution: str = ""
) -> Document:
    """The report of everything that was measured; `settings` say what was trained in each stage."""
    evidence = found.evidence
    rows: list[Sequence[Words]] = [[name, said] for name, said in facts.items()]
    blocks: list[Block] = [
        Table(["", ""], rows),
        *claims_blocks(claims),
        Heading("The paper's tables and figures"),
        *_figures(evidence),
        *_statistics(found.statistics),
        *agreement_tables(evidence),
        *_optimum(evidence, found.performance),
        *_theory(evidence),
        Heading("The claims one by one"),
        *details_blocks(claims),
        Heading("How it was measured"),
        *map(Paragraph, HOW),
        Table(["stage", "settings"], [[stage, said] for stage, said in settings.items()]),
    ]
    return Document(TITLE, blocks, caution)


def _figures(evidence: Evidence) -> Iterator[Block]:
    if len(evidence.copying):
        yield Heading("Figure 3: copying", 2)
        yield Figure("fig03_copying", copying_curves(evidence.copying), "A curve for each seed.")
    if len(evidence.heads):
        yield Heading("Figure 6: several heads", 2)
        yield Figure("fig06_heads", head_curves(evidence.heads), "A curve for each combination of heads.")
    if len(evidence.locality):
        yield Heading("Figure 7: where the keyword is known", 2)
        yield Figure("fig07_locality", locality_curves(evidence.locality), "Means over seeds and positive sequences.")
    if len(evidence.agreements):
        table = evidence.agreements
        table = table[(table["part"] == "validation") & (table["seeds"] == "two")]
        chance = table.groupby("data")["chance"].first().to_dict()
        yield Heading("Agreements over training", 2)
        yield Figure(
            "agreements", agreement_curves(table, chance), "Validation data, two seeds; the paper gives maxima."
        )


def _statistics(statistics: pd.DataFrame) -> Iterator[Block]:
    if statistics.empty:
        return
    yield Heading("Table 9: the data", 2)
    rows: list[Sequence[Words]] = []
    for row in statistics.to_dict("records"):
        data = str(row["data"])
        rows.append([TITLES.get(data, data), "here", *_told(row)])
        if data in TABLE_9:
            rows.append(["", "paper", *_told(asdict(TABLE_9[data]))])
    columns = ["", "", "train: median length", "texts", "validation: median length", "texts", "vocabulary"]
    yield Table(columns, rows)


def _told(row: Mapping[str, Any]) -> Iterator[str]:
    """A row of Table 9; where there are outputs, their length stands behind that of the sources."""
    for name in ("train", "validation"):
        lengths = [row[f"{name}_length"], row.get(f"{name}_target_length")]
        yield ", ".join(f"{length:g}" for length in lengths if length is not None and not pd.isna(length))
        yield "–" if row[name] is None else f"{int(row[name]):,}"
    yield f"{int(row['vocabulary']):,}"


def _optimum(evidence: Evidence, performance: pd.DataFrame) -> Iterator[Block]:
    """A.1: the attention that is best for each word, on Multi30k."""
    table = evidence.agreements
    found = table[(table["pair"] == "optimal_lexical") & (table["part"] == "validation")] if len(table) else table
    if found.empty:
        return
    # both models by one rule: the first seed, at the checkpoint with the best accuracy
    first = performance[
        (performance["part"] == "validation") & (performance["seed"] == 0) & performance["bleu"].notna()
    ]
    best = first.loc[first.groupby("kind")["accuracy"].idxmax()].set_index("kind")["bleu"]
    agreed = 100 * found.set_index("seeds")["agreement"]
    yield Heading("The best attention (A.1)", 2)
    yield Table(
        ["", "A(α_opt, β)", "with β of the same run", "BLEU of softmax(W(c + d))", "BLEU of the main model"],
        [
            ["here", f"{agreed['two']:.1f}", f"{agreed['same']:.1f}", f"{best['sum']:.1f}", f"{best['learned']:.1f}"],
            ["paper", f"{OPTIMAL_AGREEMENT}", "–", f"{OPTIMAL_BLEU}", f"{NETWORK_BLEU}"],
        ],
    )


def _theory(evidence: Evidence) -> Iterator[Block]:
    if not evidence.theory:
        return
    yield Heading("What is derived")
    gradient = evidence.theory["initial_gradient"].groupby("width").mean()
    rows: list[Sequence[Words]] = [
        [f"{width:,}", *(f"{100 * row[name]:.1f}%" for name in ("logits_error", "corrected_error", "printed_error"))]
        for width, row in gradient.iterrows()
    ]
    yield Paragraph(
        "How far the first change of the proxy is from 2(C - mean C), as a share of that: of logits (Eq. 53), of "
        "probabilities with a factor 1/|O|, and of probabilities as Eq. 15 is printed."
    )
    yield Table(["width", "logits", "probabilities · |O|", "probabilities"], rows)
    blind = evidence.theory["permutations"].groupby("task").mean()
    found, chance = 100 * blind["right"], 100 * blind.loc["same", "chance"]
    yield Paragraph(
        f"The proxy on sequences of {COPIED} words to be copied finds the right place of a word in "
        f"{found['same']:.0f}% of cases where each sequence has the same words (chance {chance:.1f}%), and in "
        f"{found['choice']:.0f}% where words differ. Another order of the source changes its logits by no more than "
        f"{blind['order_effect'].max():.0g}."
    )
