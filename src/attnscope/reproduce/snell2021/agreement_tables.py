"""Tables 2 to 8, 10 and 11 as the report shows them: ours and the paper's in turn, for each data set that was run."""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from ..document import Block, Heading, Paragraph, Table, Words
from .measuring import Evidence
from .paper import TABLE_3, TABLE_4, TABLE_5, TABLE_6, TABLE_7, TABLE_8, TABLE_10, TABLE_11, TITLES, InPaper

PAIRS = {
    "attention_uniform": "α, β_uf",
    "uniform_proxy": "β_uf, β_px",
    "saliency_uniform": "Δ, β_uf",
    "attention_lexical": "α, β",
}
NONE = "–"


def agreement_tables(evidence: Evidence) -> Iterator[Block]:
    """All of them, as far as their data sets were run."""
    texts, pairs = "accuracy", "bleu"
    for heading, paper, part, by, measure in (
        ("Tables 2 and 5: agreement on validation data", TABLE_5, "validation", "agreement", texts),
        ("Table 6: with BLEU", TABLE_6, "validation", "agreement", pairs),
        ("Table 3: Kendall's τ", TABLE_3, "validation", "tau", texts),
        ("Table 4: Kendall's τ with BLEU", TABLE_4, "validation", "tau", pairs),
        ("Table 7: on a sample of the training data", TABLE_7, "training", "agreement", texts),
        ("Table 8: on a sample of the training data, with BLEU", TABLE_8, "training", "agreement", pairs),
    ):
        rows = _rows(evidence, paper, part, by, measure)
        if rows:
            yield Heading(heading, 2)
            symbol = "A" if by == "agreement" else "τ"
            yield Table(
                [
                    "",
                    "",
                    *(f"{symbol}({name})" for name in PAIRS.values()),
                    "Â" if by == "agreement" else "by chance",
                    *(f"ξ({name})" for name in PAIRS.values()),
                    "ξ*",
                ],
                rows,
            )
    yield Paragraph(
        "Each agreement is between two runs of different seeds, at the checkpoint where it is highest, as the paper "
        "has it; Â is chance, exactly. ξ is how well other seeds do at their first checkpoint whose attention agrees "
        "more with α than the two that are named agree; a star says that there is none. ξ* is how well they do at "
        "the end, so that ξ may lie above it. The files of tables hold every checkpoint, and variants with one seed."
    )
    yield from _frozen_and_logistic(evidence)
    yield from _counted(evidence)


def _rows(
    evidence: Evidence, paper: Mapping[str, InPaper], part: str, by: str, measure: str
) -> "list[Sequence[Words]]":
    rows: list[Sequence[Words]] = []
    agreements, contexts = evidence.agreements, evidence.contexts
    if not len(contexts):
        return rows
    chosen = contexts[
        (contexts["part"] == part)
        & (contexts["by"] == by)
        & (contexts["measure"] == measure)
        & (contexts["seeds"] == "two")
    ]
    for data, title in TITLES.items():
        found = chosen[chosen["data"] == data].set_index("pair")
        if found.empty:
            continue
        chance = agreements[(agreements["data"] == data) & (agreements["part"] == part)]["chance"].iloc[0]
        here = [_share(found, pair, "agreement") for pair in PAIRS]
        worth = [_share(found, pair, "performance") + _star(found, pair) for pair in PAIRS]
        by_chance = 100 * chance if by == "agreement" else 0.0
        best = 100 * float(found["best"].iloc[0])
        rows.append([title, "here", *here, _figure(by_chance), *worth, _figure(best)])
        if data in paper:
            row = paper[data]
            told = [_figure(getattr(row, pair)) for pair in PAIRS]
            worth = [_figure(getattr(row, f"context_{pair}")) + "*" * (pair in row.starred) for pair in PAIRS]
            rows.append(["", "paper", *told, _figure(row.chance), *worth, _figure(row.best)])
    return rows


def _best(evidence: Evidence, data: str) -> "dict[str, float]":
    """The highest agreement of each pair on a data set, in percent: validation data, two seeds."""
    table = evidence.agreements
    if table.empty:
        return {}
    table = table[(table["data"] == data) & (table["part"] == "validation") & (table["seeds"] == "two")]
    return dict(100 * table.groupby("pair")["agreement"].max())


def _frozen_and_logistic(evidence: Evidence) -> Iterator[Block]:
    logistic = {data: figures[1] for data, figures in TABLE_11.items()}
    for heading, pair, name, other, paper in (
        ("Table 10: attention that learns alone", "attention_frozen", "A(α, α_fr)", "attention_uniform", TABLE_10),
        ("Table 11: logistic regression", "uniform_logistic", "A(β_uf, β_log)", "uniform_proxy", logistic),
    ):
        rows: list[Sequence[Words]] = []
        for data, title in TITLES.items():
            best = _best(evidence, data)
            if pair in best:
                told = f"{paper[data]:g}" if data in paper else NONE
                rows.append([title, f"{best[pair]:.1f}", f"{best[other]:.1f}", told])
        if rows:
            yield Heading(heading, 2)
            yield Table(["", name, f"A({PAIRS[other]})", f"paper: {name}"], rows)


def _counted(evidence: Evidence) -> Iterator[Block]:
    """How far counts of words alone tell what the networks know: IBM Model 1, on the data sets of translation."""
    rows: list[Sequence[Words]] = []
    for data, title in TITLES.items():
        best = _best(evidence, data)
        for name in sorted(pair.removeprefix("proxy_") for pair in best if pair.startswith("proxy_counts")):
            shown = [f"{best[pair]:.1f}" for pair in (f"attention_{name}", f"{name}_uniform", f"proxy_{name}")]
            rows.append([title, name.removeprefix("counts") or "0", *shown])
    if rows:
        yield Heading("Counts alone: IBM Model 1", 2)
        yield Table(["", "steps of EM", "A(α, β_IBM)", "A(β_IBM, β_uf)", "A(β_px, β_IBM)"], rows)


def _figure(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}"


def _share(found: pd.DataFrame, pair: str, column: str) -> str:
    return _figure(100 * float(found.loc[pair, column]) if pair in found.index else None)


def _star(found: pd.DataFrame, pair: str) -> str:
    return "*" if pair in found.index and not found.loc[pair, "reached"] else ""
