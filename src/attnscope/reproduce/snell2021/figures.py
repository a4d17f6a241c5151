"""The report: the paper's figures drawn again, and its tables with ours and the paper's rows in turn."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from ...paint import CATEGORICAL
from ...views.printing import COLUMN, INK, PAGE, QUIET, Plot, drawn_figure, legend_below
from ..claims import NOTHING, rows_with
from ..document import Block, Figure, Heading, Paragraph, Table, Words, under
from ..experiment import Attempt, Report
from . import paper as of_paper
from .claims import Evidence
from .counts import count_blocks
from .disclosing import facts_of
from .paper import TITLES, InPaper, Options, Scale
from .theory import COPIED

TOY = (
    "Texts and pairs are made up and the models small: this run shows that the experiment works, and is not meant to "
    "confirm the paper's claims."
)
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


def report_of(attempt: Attempt[Scale, Options], evidence: Evidence) -> Report:
    """What was run, the tables and figures, what theory says, and the settings of every stage."""
    blocks: list[Block] = [
        *count_blocks(),
        *figure_blocks(evidence.tables),
        *_statistics(evidence.tables),
        *agreement_tables(evidence.tables),
        *_optimum(evidence.tables),
        *_theory(evidence.tables),
    ]
    settings: list[Sequence[Words]] = [[name, words] for name, words in _settings(attempt.scale, attempt.stages)]
    how: list[str | Block] = [*HOW, Table(["stage", "settings"], settings)]
    facts = facts_of(attempt.scale_name, attempt.stages, evidence, attempt["vectors"])
    return Report(facts, blocks, how, evidence.tables, TOY if attempt.scale.toy else "")


def _settings(scale: Scale, stages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The settings of these stages in words, those of each data set of texts by themselves."""
    for stage in stages:
        settings: dict[str, Any] = asdict(getattr(scale, stage))
        sets = settings.pop("data", {})
        yield stage, _in_words(settings)
        yield from ((f"{stage}: {name}", _in_words(each)) for name, each in sets.items())


def _in_words(settings: Mapping[str, Any]) -> str:
    named = {
        name.replace("_", " "): value for name, value in settings.items() if value is not None and value is not False
    }
    return ", ".join(f"{name} {_in_words(each) if isinstance(each, dict) else each}" for name, each in named.items())


# Figures 3, 6 and 7, and the agreements over training.


Tables = Mapping[str, pd.DataFrame]
"""What the stages gave, by name; a table of a stage that was not run is not there."""


def figure_blocks(tables: Tables) -> Iterator[Block]:
    """Every figure that these tables suffice for."""
    if "copying" in tables:
        figure = Figure("fig03_copying", copying_curves(tables["copying"]), "A curve for each seed.")
        yield from under("Figure 3: copying", figure)
    if len(tables.get("heads", ())):
        yield Heading("Figure 6: several heads", 2)
        yield Figure("fig06_heads", head_curves(tables["heads"]), "A curve for each combination of heads.")
    if "locality" in tables:
        yield Heading("Figure 7: where the keyword is known", 2)
        yield Figure("fig07_locality", locality_curves(tables["locality"]), "Means over seeds and positive sequences.")
    if "agreements" in tables:
        table = rows_with(tables["agreements"], part="validation", seeds="two")
        yield Heading("Agreements over training", 2)
        yield Figure("agreements", agreement_curves(table), "Validation data, two seeds; the paper gives maxima.")


BAD, WELL, THIRD = CATEGORICAL[5], CATEGORICAL[0], CATEGORICAL[2]
TASKS = {
    "same": ("permutations of the same words", BAD, "-"),
    "choice": ("words drawn from a larger set", WELL, "--"),
    "mixture": ("permutations of one of two sets", BAD, "-"),
    "reordered": ("a fixed order of the output", THIRD, ":"),
}
KINDS = {
    "bad": ("eight bad heads", BAD, "-"),
    "good": ("seven bad, one good", WELL, "--"),
    "random": ("eight at random", THIRD, ":"),
}
CONTEXTS = {"mean": "contexts averaged", "sum": "contexts summed"}
PLACES = {
    "keyword": ("at the keyword", WELL, "-"),
    "after": ("one further", THIRD, "--"),
    "mean": ("mean of all", QUIET, ":"),
    "last": ("at the end", BAD, "-."),
}
FIRST_STEPS = 20
CURVES = {
    "attention_uniform": ("A(α, β_uf)", CATEGORICAL[0], "-"),
    "uniform_proxy": ("A(β_uf, β_px)", CATEGORICAL[1], "--"),
    "saliency_uniform": ("A(Δ, β_uf)", CATEGORICAL[2], ":"),
    "attention_lexical": ("A(α, β)", CATEGORICAL[5], "-."),
    "attention_attention": ("A(α, α̂)", INK, "-"),
}
"""What is drawn of each data set, by the names that tables have."""


def copying_curves(table: pd.DataFrame) -> Plot:
    """Figure 3: accuracy over steps, a curve for each seed, each hard task beside the easy one; section 6.2 last."""
    learned = table[table["attention"] == "learned"]
    with drawn_figure(PAGE, 2.2) as figure:
        axes = figure.subplots(1, 3, sharey=True)
        for panel, hard in zip(axes, ("same", "mixture", "reordered"), strict=True):
            for task in ("choice", hard):
                _draw_curves(panel, learned[learned["task"] == task], "seed", TASKS[task])
            panel.set(xlabel="steps", ylim=(0, 1.03))
            panel.set_title(TASKS[hard][0], color=TASKS[hard][1])
        axes[0].set_ylabel("accuracy")
        legend_below(figure, axes[2], only=[TASKS["choice"][0]])
    return Plot(figure, "Accuracy while copying is learned, a curve for each seed.")


def head_curves(table: pd.DataFrame) -> Plot:
    """Figure 6: accuracy over steps, a curve for each combination of heads, a panel for each way of their contexts."""
    ways = [way for way in CONTEXTS if way in set(table["contexts"])]
    with drawn_figure(COLUMN if len(ways) == 1 else PAGE, 2.2) as figure:
        panels = figure.subplots(1, len(ways), sharey=True, squeeze=False)[0]
        for axes, way in zip(panels, ways, strict=True):
            for kind, style in KINDS.items():
                _draw_curves(axes, rows_with(table, kind=kind, contexts=way), "combination", style)
            axes.set(xlabel="steps", ylim=(0, 1.03), title=CONTEXTS[way])
        panels[0].set_ylabel("accuracy")
        legend_below(figure, panels[0])
    return Plot(figure, "Accuracy of models with eight heads, a curve for each combination.")


def locality_curves(table: pd.DataFrame) -> Plot:
    """Figure 7: four log-odds over steps, the mean over seeds; what is local is seen in the first steps alone."""
    means = table.groupby("step")[list(PLACES)].mean()
    with drawn_figure(PAGE, 2.2) as figure:
        for axes, rows in zip(figure.subplots(1, 2), (means[means.index <= FIRST_STEPS], means), strict=True):
            for place, (name, ink, line) in PLACES.items():
                axes.plot(rows.index, rows[place], color=ink, linestyle=line, linewidth=1, label=name)
            axes.set(xlabel="steps")
            axes.locator_params(axis="x", integer=True)
        figure.axes[0].set(ylabel="log-odds γ", title="the first steps")
        figure.axes[1].set(title="all of training")
        legend_below(figure, figure.axes[0])
    return Plot(
        figure,
        "Log-odds γ of the positive class by place while a keyword is learned under uniform attention: means of seeds.",
    )


def agreement_curves(table: pd.DataFrame) -> Plot:
    """Agreements over training, a panel for each data set; the baseline as a thin line."""
    sets = [name for name in TITLES if name in set(table["data"])]
    across = min(3, len(sets))
    with drawn_figure(PAGE, 1.75 * -(-len(sets) // across) + 0.4) as figure:
        grid = list(figure.subplots(-(-len(sets) // across), across, squeeze=False, sharey=True).flat)
        for axes, name in zip(grid, sets, strict=False):
            rows = table[table["data"] == name]
            for pair, (label, ink, line) in CURVES.items():
                curve = rows[rows["pair"] == pair].sort_values("step")
                axes.plot(curve["step"], curve["agreement"], color=ink, linestyle=line, linewidth=1, label=label)
            axes.axhline(rows["chance"].iloc[0], color=QUIET, linewidth=0.5)
            axes.set(title=TITLES[name], xlabel="steps", ylim=(0, 1))
        for axes in grid[len(sets) :]:
            axes.set_visible(False)
        grid[0].set_ylabel("agreement")
        legend_below(figure, grid[0])
    return Plot(figure, "Agreements on validation data over training; the thin line is chance.")


def _draw_curves(axes: Any, rows: pd.DataFrame, by: str, style: tuple[str, str, str]) -> None:
    """A thin curve for each run, named once."""
    label, ink, line = style
    names: Sequence[str | None] = [label, *[None] * len(rows)]
    for (_, curve), name in zip(rows.sort_values("step").groupby(by), names, strict=False):
        axes.plot(curve["step"], curve["accuracy"], color=ink, linestyle=line, linewidth=0.7, alpha=0.7, label=name)


# Tables 2 to 8, 10 and 11, for each data set that was run.


PAIRS = {
    "attention_uniform": "α, β_uf",
    "uniform_proxy": "β_uf, β_px",
    "saliency_uniform": "Δ, β_uf",
    "attention_lexical": "α, β",
}


def agreement_tables(tables: Tables) -> Iterator[Block]:
    """All of them, as far as their data sets were run."""
    texts, pairs = "accuracy", "bleu"
    for heading, paper, part, by, measure in (
        ("Tables 2 and 5: agreement on validation data", of_paper.TABLE_5, "validation", "agreement", texts),
        ("Table 6: with BLEU", of_paper.TABLE_6, "validation", "agreement", pairs),
        ("Table 3: Kendall's τ", of_paper.TABLE_3, "validation", "tau", texts),
        ("Table 4: Kendall's τ with BLEU", of_paper.TABLE_4, "validation", "tau", pairs),
        ("Table 7: on a sample of the training data", of_paper.TABLE_7, "training", "agreement", texts),
        ("Table 8: on a sample of the training data, with BLEU", of_paper.TABLE_8, "training", "agreement", pairs),
    ):
        if rows := _agreement_rows(tables, paper, part, by, measure):
            symbol, chance = ("A", "Â") if by == "agreement" else ("τ", "by chance")
            agreements, contexts = ([f"{sign}({name})" for name in PAIRS.values()] for sign in (symbol, "ξ"))
            yield from under(heading, Table(["", "", *agreements, chance, *contexts, "ξ*"], rows))
    yield Paragraph(
        "Each agreement is between two runs of different seeds, at the checkpoint where it is highest, as the paper "
        "has it; Â is chance, exactly. ξ is how well other seeds do at their first checkpoint whose attention agrees "
        "more with α than the two that are named agree; a star says that there is none. ξ* is how well they do at "
        "the end, so that ξ may lie above it. The files of tables hold every checkpoint, and variants with one seed."
    )
    yield from _frozen_and_logistic(tables)
    yield from _counts_alone(tables)


def _agreement_rows(
    tables: Tables, paper: Mapping[str, InPaper], part: str, by: str, measure: str
) -> "list[Sequence[Words]]":
    rows: list[Sequence[Words]] = []
    if "contexts" not in tables:
        return rows
    agreements, contexts = tables["agreements"], tables["contexts"]
    asked = rows_with(contexts, part=part, by=by, measure=measure, seeds="two")
    for data, title in TITLES.items():
        found = asked[asked["data"] == data].set_index("pair")
        if found.empty:
            continue
        chance = rows_with(agreements, data=data, part=part)["chance"].iloc[0]
        here = [_share(found, pair, "agreement") for pair in PAIRS]
        starred = set(found.index[~found["reached"].astype(bool)])
        worth = [_share(found, pair, "performance") + "*" * (pair in starred) for pair in PAIRS]
        by_chance = 100 * chance if by == "agreement" else 0.0
        best = 100 * float(found["best"].iloc[0])
        rows.append([title, "here", *here, _figure(by_chance), *worth, _figure(best)])
        if data in paper:
            row = paper[data]
            there = [_figure(getattr(row, pair)) for pair in PAIRS]
            worth = [_figure(getattr(row, f"context_{pair}")) + "*" * (pair in row.starred) for pair in PAIRS]
            rows.append(["", "paper", *there, _figure(row.chance), *worth, _figure(row.best)])
    return rows


def _best(tables: Tables, data: str) -> "dict[str, float]":
    """The highest agreement of each pair on a data set, in percent: validation data, two seeds."""
    if "agreements" not in tables:
        return {}
    table = rows_with(tables["agreements"], data=data, part="validation", seeds="two")
    return dict(100 * table.groupby("pair")["agreement"].max())


def _frozen_and_logistic(tables: Tables) -> Iterator[Block]:
    logistic = {data: figures[1] for data, figures in of_paper.TABLE_11.items()}
    frozen, uniform = "attention_frozen", "attention_uniform"
    for heading, pair, name, other, paper in (
        ("Table 10: attention that learns alone", frozen, "A(α, α_fr)", uniform, of_paper.TABLE_10),
        ("Table 11: logistic regression", "uniform_logistic", "A(β_uf, β_log)", "uniform_proxy", logistic),
    ):
        rows: list[Sequence[Words]] = []
        for data, title in TITLES.items():
            best = _best(tables, data)
            if pair in best:
                there = f"{paper[data]:g}" if data in paper else NOTHING
                rows.append([title, f"{best[pair]:.1f}", f"{best[other]:.1f}", there])
        if rows:
            yield from under(heading, Table(["", name, f"A({PAIRS[other]})", f"paper: {name}"], rows))


def _counts_alone(tables: Tables) -> Iterator[Block]:
    """How far counts of words alone give what the networks know: IBM Model 1, on the data sets of translation."""
    rows: list[Sequence[Words]] = []
    for data, title in TITLES.items():
        best = _best(tables, data)
        for name in sorted(pair.removeprefix("proxy_") for pair in best if pair.startswith("proxy_counts")):
            shown = [f"{best[pair]:.1f}" for pair in (f"attention_{name}", f"{name}_uniform", f"proxy_{name}")]
            rows.append([title, name.removeprefix("counts") or "0", *shown])
    if rows:
        columns = ["", "steps of EM", "A(α, β_IBM)", "A(β_IBM, β_uf)", "A(β_px, β_IBM)"]
        yield from under("Counts alone: IBM Model 1", Table(columns, rows))


def _figure(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}"


def _share(found: pd.DataFrame, pair: str, column: str) -> str:
    return _figure(100 * float(found.loc[pair, column]) if pair in found.index else None)


# Table 9, the best attention (A.1), and what is derived.


def _statistics(tables: Tables) -> Iterator[Block]:
    if "table_9" not in tables:
        return
    rows: list[Sequence[Words]] = []
    for row in tables["table_9"].to_dict("records"):
        data = str(row["data"])
        rows.append([TITLES.get(data, data), "here", *_table_9(row)])
        if data in of_paper.TABLE_9:
            rows.append(["", "paper", *_table_9(asdict(of_paper.TABLE_9[data]))])
    columns = ["", "", "train: median length", "texts", "validation: median length", "texts", "vocabulary"]
    yield from under("Table 9: the data", Table(columns, rows))


def _table_9(row: Mapping[str, Any]) -> Iterator[str]:
    """A row of Table 9; where there are outputs, their length stands behind that of the sources."""
    for name in ("train", "validation"):
        lengths = [row[f"{name}_length"], row.get(f"{name}_target_length")]
        yield ", ".join(f"{length:g}" for length in lengths if length is not None and not pd.isna(length))
        yield NOTHING if row[name] is None else f"{int(row[name]):,}"
    yield f"{int(row['vocabulary']):,}"


def _optimum(tables: Tables) -> Iterator[Block]:
    """A.1: the attention that is best for each word, on Multi30k."""
    if "agreements" not in tables:
        return
    found = rows_with(tables["agreements"], pair="optimal_lexical", part="validation")
    if found.empty:
        return
    # both models by one rule: the first seed, at the checkpoint with the best accuracy
    whole = tables["performance"].fillna({"data": "multi30k"})
    first = rows_with(whole, part="validation", seed=0, data="multi30k").dropna(subset="bleu")
    best = first.loc[first.groupby("kind")["accuracy"].idxmax()].set_index("kind")["bleu"]
    agreed = 100 * found.set_index("seeds")["agreement"]
    yield Heading("The best attention (A.1)", 2)
    yield Table(
        ["", "A(α_opt, β)", "with β of the same run", "BLEU of softmax(W(c + d))", "BLEU of the main model"],
        [
            ["here", f"{agreed['two']:.1f}", f"{agreed['same']:.1f}", f"{best['sum']:.1f}", f"{best['learned']:.1f}"],
            ["paper", f"{of_paper.OPTIMAL_AGREEMENT}", "–", f"{of_paper.OPTIMAL_BLEU}", f"{of_paper.NETWORK_BLEU}"],
        ],
    )


def _theory(tables: Tables) -> Iterator[Block]:
    if "initial_gradient" not in tables:
        return
    yield Heading("What is derived")
    gradient = tables["initial_gradient"].groupby("width").mean()
    rows: list[Sequence[Words]] = [
        [f"{width:,}", *(f"{100 * row[name]:.1f}%" for name in ("logits_error", "corrected_error", "printed_error"))]
        for width, row in gradient.iterrows()
    ]
    yield Paragraph(
        "How far the first change of the proxy is from 2(C - mean C), as a share of that: of logits (Eq. 53), of "
        "probabilities with a factor 1/|O|, and of probabilities as Eq. 15 is printed."
    )
    yield Table(["width", "logits", "probabilities · |O|", "probabilities"], rows)
    blind = tables["permutations"].groupby("task").mean()
    found, chance = 100 * blind["right"], 100 * blind.loc["same", "chance"]
    yield Paragraph(
        f"The proxy on sequences of {COPIED} words to be copied finds the right place of a word in "
        f"{found['same']:.0f}% of cases where each sequence has the same words (chance {chance:.1f}%), and in "
        f"{found['choice']:.0f}% where words differ. Another order of the source changes its logits by no more than "
        f"{blind['order_effect'].max():.0g}."
    )
