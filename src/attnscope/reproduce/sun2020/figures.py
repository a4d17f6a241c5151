"""The paper's tables and figures, made again: Tables 1 and 2, Figures 2 to 5, the terms, and the steps beyond."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...lab.data import text_statistics
from ...paint import CATEGORICAL
from ...views import learning
from ...views.printing import COLUMN, INK, PAGE, QUIET, Plot, drawn_figure, legend_below
from ..claims import rows_with
from ..document import Block, Figure, Heading, Paragraph, Table, Words, under
from ..experiment import Attempt, Report
from .claims import BINARY, CERTAIN
from .evidence import Evidence, WordsOfRun
from .next_steps import OWN_SIZE, PRETRAINED, RANDOM
from .paper import LARGE, MODERATE, NAMES, PAPER_HAD, SCALINGS, TABLE_1, TITLES, Options, Scale, accuracy_in_paper
from .stages import SETS
from .words import (
    MATCHED,
    NEGATIVE,
    NEUTRAL,
    POSITIVE,
    SELDOM,
    SIDES,
    UNSEEN,
    comparisons,
    rare_word_groups,
)

MADE_UP_TEXTS = 12_000
TOY = (
    "The sentences are made up and the models small: this run shows that the experiment works, and is not meant to "
    "confirm the paper's claims."
)
GAIN = "Pretrained vectors: do rare words gain from polar neighbours?"
WITH_LOCAL = ("polarity", "attention", "local_polarity", "local_attention")
Panels = dict[str, tuple[pd.DataFrame, str]]
"""By their titles: a table of words, and the column that is drawn."""
TERMS = ("polarity score", "A", "B", "C", "attention score", "D", "E", "F", "V·W")
HOW = (
    "Every λ, variant and seed is trained by the authors' recipe: Adagrad at .02, falling with the updates, 100 texts"
    " to a step, dropout of a half on embeddings and on what attention gives, the first epoch that is best on dev. "
    "Runs of one seed begin alike and see the same texts and dropout masks in the same order. DP-L, DP-A and AD have "
    "an L2 of 1e-4 on all but embeddings (the paper's is not published). Vocabularies are of training, dev and test "
    "texts together, as the authors have it. Kinds of words are told by training texts alone: γ above .5 or below -.5"
    " and more than five occurrences in texts of that class (γ of 1 included), or |γ| below .1 and counts that differ"
    " by less than five. Kinds are compared by rank-sum tests; the share of pairs in which a word of the first kind "
    "stands above one of the second is the effect size. Words of a test are not independent draws, so that p says "
    "little more than its size."
)


def report_of(attempt: Attempt[Scale, Options], evidence: Evidence) -> Report:
    """What was run, Tables 1 and 2, Figures 2 to 5, what drives the scores, and what goes beyond the paper."""
    scale = attempt.scale
    statistics = pd.concat([text_statistics(texts) for texts in attempt[SETS].values()])
    rare, in_context = attempt["next_steps"]
    further = {}
    if rare is not None:
        further["pretrained"] = rare_word_groups(rare)
    if in_context is not None:
        further["contextual"] = comparisons(in_context.assign(data="sst"))
    sizes = {name: (texts.train, texts.dev, texts.test) for name, texts in attempt[SETS].items()}
    data = ", ".join(f"{TITLES[name]} {' / '.join(f'{len(part):,}' for part in of)}" for name, of in sizes.items())
    sentences = scale.made_up.get("texts", MADE_UP_TEXTS)
    read = "all" if scale.longest is None else f"the first {scale.longest} words"
    facts = {
        "model": f"a classifier with one attention: {', '.join(NAMES[variant] for variant in scale.epochs)}; vectors "
        f"of {scale.width} dimensions",
        "weights": "all trained here, from random beginnings",
        "data": f"{data} (training / dev / test), of each text {read}; {sentences:,} made-up sentences",
        "seeds": f"{', '.join(f'{TITLES[name]} {len(seeds)}' for name, seeds in scale.seeds.items())}; "
        f"{len(evidence.accuracies)} runs",
        "steps": f"epochs at most: {', '.join(_limits(scale))}; made-up sentences {scale.made_up_epochs}, with skewed "
        f"classes {scale.skew_epochs}",
        "differs from the paper": f"the paper has {PAPER_HAD}",
    }
    blocks = [
        *_table_1(statistics),
        *_table_2(evidence.accuracies),
        *_score_figures(evidence.words),
        *_terms(attempt["terms"], attempt["made_up"].curves, evidence.skewed),
        *([Heading("Beyond the paper")] if further else []),
        *(under(GAIN, Paragraph(pretrained_finding(further["pretrained"]))) if rare is not None else []),
        *(_contextual(in_context) if in_context is not None else []),
    ]
    tables = {
        "table_1": statistics,
        "table_2": evidence.accuracies,
        "scores": evidence.scores(),
        "comparisons": evidence.comparisons(),
        "made_up": evidence.made_up,
        "skewed": evidence.skewed,
        "signs": evidence.signs,
        **further,
    }
    return Report(facts, blocks, [HOW], tables, TOY if scale.toy else "")


def _limits(scale: Scale) -> Iterator[str]:
    """How long each variant is trained at most, and after how many epochs without a better one it ends."""
    for variant, epochs in scale.epochs.items():
        patience = scale.patience[variant]
        yield f"{NAMES[variant]} {epochs}{'' if patience is None else f' (or {patience} that bring nothing better)'}"


def _table_1(statistics: pd.DataFrame) -> Iterator[Block]:
    rows: list[Sequence[Words]] = []
    for row in statistics.to_dict("records"):
        parts = [str(row[part]) for part in ("train", "dev", "test")]
        rows.append([TITLES[row["data"]], "here", f"{row['mean_length']:.0f}", f"{row['words']:,}", *parts])
        rows.append(["", "paper", *TABLE_1[row["data"]]])
    yield from under("Table 1: the data", Table(["", "", "mean length", "words", "train", "dev", "test"], rows))


def _table_2(accuracies: pd.DataFrame) -> Iterator[Block]:
    plain = accuracies[accuracies["penalty"] == 0]
    means = plain.groupby(["data", "variant", "scaling"])["test_accuracy"].agg(["mean", "min", "max", "size"])
    rows: list[Sequence[Words]] = []
    for data, title in TITLES.items():
        for variant, name in NAMES.items():
            found = [means.loc[key] for scaling in SCALINGS if (key := (data, variant, scaling)) in means.index]
            if found:
                rows.append([title, name, *(f"{100 * one['mean']:.1f}" for one in found)])
                if found[0]["size"] > 1:
                    rows.append(["", "seeds", *(f"{100 * one['min']:.1f}–{100 * one['max']:.1f}" for one in found)])
                rows.append(["", "paper", *(f"{accuracy_in_paper(data, variant, scaling)}" for scaling in SCALINGS)])
    table = Table(["", "λ =", *(f"{scaling:g}" for scaling in SCALINGS)], rows)
    figure = Figure("table_2", accuracy_over_scaling(accuracies), "Means over seeds; the paper's dashed.")
    yield from under("Table 2: accuracy in percent, by λ", table, figure)


def _score_figures(words: pd.DataFrame) -> Iterator[Block]:
    """Figures 2 to 5 of the first seed, and the gap of all."""
    plain = words[(words["penalty"] == 0) & (words["seed"] == words["seed"].min())]

    def table(data: str, variant: str = "dot", scaling: float = MODERATE) -> pd.DataFrame:
        return rows_with(plain, data=data, variant=variant, scaling=scaling)

    def on_sst(table: pd.DataFrame, scores: Sequence[str] = ("polarity", "attention")) -> Panels:
        return {f"SST: {score.replace('_', ' ')}": (table, score) for score in scores}

    binary = {name: found for name in BINARY if len(found := table(name))}
    panels = {
        f"{TITLES[name]}: {score}": (found, score)
        for score in ("polarity", "attention")
        for name, found in binary.items()
    }
    large = on_sst(table("sst", scaling=LARGE))
    if len(three := table("20news2")):
        large["20News II: attention (λ = 10)"] = (three, "attention")
    additive, recurrent = on_sst(table("sst", "additive")), on_sst(table("sst", "dot_lstm"), WITH_LOCAL)
    by_kind, local = "Scores by kind of word", "Local scores are means over the occurrences in training texts."
    for heading, name, shown, caption, below in (
        ("Figure 2: polarity and attention scores, λ = 10", "fig02_scores", panels, "dot products, λ = 10", ""),
        ("Figure 3: λ = 100, and three classes", "fig03_scores", large, "dot products, λ = 100", ""),
        ("Figure 4: additive attention", "fig04_additive", additive, "additive, λ = 10", ""),
        ("Behind an LSTM: words alone, and in their sentences", "fig04_lstm", recurrent, "DP-L on SST, λ = 10", local),
    ):
        plot = score_distributions(shown, f"{caption}." if below else f"{by_kind}, {caption}.")
        yield from under(heading, Figure(name, plot, below or "Seed 1."))
    caption = "Mean attention weight by kind of word, SST, dot products, λ = 10."
    figure = Figure("fig05_weights", weight_boxes(table("sst"), caption), "Seed 1.")
    yield from under("Figure 5: weights in test sentences", figure)
    every = rows_with(words, data="sst", variant="dot")
    gaps = gap_over_product(every[every["scaling"] >= MODERATE])
    figure = Figure("gap_over_vw", gaps, "SST, all seeds, penalties among them at λ = 100.")
    yield from under("V·W and the gap", figure)


def _terms(terms: pd.DataFrame, made_up_curves: pd.DataFrame, skewed: pd.DataFrame) -> Iterator[Block]:
    yield Heading("What drives the scores")
    first = terms[terms["seed"] == terms["seed"].min()]
    for scaling, rows in first.groupby("scaling"):
        plot = _curves(rows.drop(columns=["scaling", "seed"]), f"λ = {scaling:g}", TERMS)
        words = f"Means over the words of each kind while SST is learned, λ = {scaling:g}, the first seed."
        yield Figure(f"terms_{scaling:g}", plot, words)
    yield Heading("Made-up sentences", 2)
    first = rows_with(made_up_curves, set="I", seed=made_up_curves["seed"].min())
    for penalty, rows in first.groupby("penalty"):
        shown = rows.drop(columns=["set", "penalty", "seed"])
        plot = _curves(shown, f"c = {penalty:g}", ("dot products", "attention score", "V·W"))
        yield Figure(f"made_up_{penalty:g}", plot, f"Data I, with a penalty of {penalty:g} |V·W|.")
    yield Figure("skew", skew_curve(skewed), "Four beginnings for each share of positive sentences.")


def _curves(rows: pd.DataFrame, title: str, quantities: Sequence[str]) -> Plot:
    """The curves of these quantities over training, as far as they were seen."""
    seen = set(rows["quantity"])
    return learning(rows, title, [quantity for quantity in quantities if quantity in seen]).figure()


# Beyond the paper: what came of pretrained vectors and of a frozen contextual encoder, in sentences.


def pretrained_finding(table: pd.DataFrame) -> str:
    """What came out for polarity, attention and accuracy: both pretrained beginnings against the random one."""
    if table.empty:
        return "No rare word has a pretrained vector."
    sentences = [sentence for rarity in (UNSEEN, SELDOM) for sentence in _gain(table, rarity)]
    right = table.groupby("beginning")["test_accuracy"].mean()
    sentences.append(f"Test accuracy is {right[RANDOM]:.1%}, {right[PRETRAINED]:.1%} and {right[OWN_SIZE]:.1%}.")
    sentences.append(
        "Vectors of their own size were tried after the first result was seen, which makes them a hint only."
    )
    return " ".join(sentences)


def _gain(table: pd.DataFrame, rarity: str) -> Iterator[str]:
    """The sentence about unseen or about seldom words, if there are any near polar ones and near neither."""
    near = table[(table["rarity"] == rarity) & table["group"].isin(SIDES)].dropna(subset="attention_above")
    if near.empty:
        return
    sign, attended = (_shares(near, column) for column in ("with_sign", "attention_above"))
    whose = {UNSEEN: "that no training text has", SELDOM: "that occur once or twice in training texts"}[rarity]
    yield (
        f"Words {whose} and that are near a polar one have its sign in {sign[RANDOM]} of cases with random beginnings, "
        f"{sign[PRETRAINED]} with pretrained vectors as large and {sign[OWN_SIZE]} with those of their own size, and "
        f"more attention than words near neither in {attended[RANDOM]}, {attended[PRETRAINED]} and "
        f"{attended[OWN_SIZE]} of pairs."
    )


def _shares(near: pd.DataFrame, column: str) -> dict[str, str]:
    """The mean over seeds of a share among words near polar ones, and in how many it is above that of random runs."""
    keys = [near["beginning"], near["seed"]]
    shares = (near[column] * near["words"]).groupby(keys).sum() / near["words"].groupby(keys).sum()
    shown = {RANDOM: f"{shares[RANDOM].mean():.0%}"}
    for beginning in (PRETRAINED, OWN_SIZE):
        more = int((shares[beginning] > shares[RANDOM]).sum())
        shown[beginning] = f"{shares[beginning].mean():.0%} (more in {more} of {len(shares[RANDOM])} seeds)"
    return shown


def _contextual(words: pd.DataFrame) -> Iterator[Block]:
    first = words[words["seed"] == words["seed"].min()]
    panels = {score.replace("_", " "): (first, score) for score in WITH_LOCAL}
    caption = "Scores by kind of word on a frozen encoder: of the word alone, and (local) in training texts."
    figure = Figure("contextual", score_distributions(panels, caption), "The first seed.")
    yield from under("A frozen contextual encoder", Paragraph(contextual_finding(words)), figure)


def contextual_finding(words: pd.DataFrame) -> str:
    """What came out, in three sentences: polarity, attention against words as frequent, accuracy."""
    table = comparisons(words)
    seeds = words["seed"].nunique()

    def shares_of(score: str, *pairs: tuple[str, str]) -> str:
        shares, certain = [], pd.Series(True, index=words["seed"].unique())
        for first, second in pairs:
            rows = rows_with(table, first=first, second=second, score=score)
            shares.append(f"{rows['above'].mean():.0%}")
            certain &= (rows.set_index("seed")["p"] < CERTAIN).reindex(certain.index, fill_value=False)
        return f"{' and '.join(shares)} (p < {CERTAIN} in {int(certain.sum())} of {seeds} seeds)"

    polarity = [shares_of(score, (POSITIVE, NEGATIVE)) for score in ("local_polarity", "polarity")]
    pairs = (POSITIVE, MATCHED), (NEGATIVE, MATCHED)
    attention = [shares_of(score, *pairs) for score in ("local_attention", "attention")]
    right = words.groupby("seed")["test_accuracy"].first().mean()
    return (
        f"A positive word has a higher polarity than a negative one in {polarity[0]} of pairs by its occurrences, and "
        f"in {polarity[1]} alone. Positive and negative words have more attention than neutral ones of like frequency "
        f"in {attention[0]} of pairs by their occurrences, and in {attention[1]} alone. Test accuracy is {right:.1%}."
    )


# The figures: accuracy over λ (Table 2), scores by kind of word (Figures 2 to 4), weights (5), the gap over V·W.


INKS = {POSITIVE: CATEGORICAL[0], NEGATIVE: CATEGORICAL[5], NEUTRAL: QUIET, MATCHED: INK}
LABEL_INKS = (CATEGORICAL[0], CATEGORICAL[5], CATEGORICAL[2])
LINES = {POSITIVE: "-", NEGATIVE: "--", NEUTRAL: ":", MATCHED: "-."}
"""Told apart by more than colour."""
BINS = 40
OUTER = 0.005
"""The share of words at each end that a histogram leaves out."""


def accuracy_over_scaling(accuracies: pd.DataFrame) -> Plot:
    """Table 2 as curves: a panel for each data set, the mean of the seeds for each variant, the paper's dashed."""
    plain = accuracies[accuracies["penalty"] == 0]
    sets = [name for name in TITLES if name in set(plain["data"])]
    with drawn_figure(PAGE if len(sets) > 1 else COLUMN, 1.9 * -(-len(sets) // 2) + 0.4) as figure:
        grid = figure.subplots(-(-len(sets) // 2), min(2, len(sets)), squeeze=False, sharex=True).flat
        for axes, name in zip(grid, sets, strict=False):
            for variant, ink in zip(NAMES, CATEGORICAL, strict=False):
                rows = rows_with(plain, data=name, variant=variant)
                means = [100 * rows.loc[rows["scaling"] == scaling, "test_accuracy"].mean() for scaling in SCALINGS]
                axes.plot(means, color=ink, marker="o", markersize=2.5, linewidth=1, label=NAMES[variant])
                paper = [accuracy_in_paper(name, variant, scaling) for scaling in SCALINGS]
                axes.plot(paper, color=ink, linewidth=0.7, linestyle="--")
            axes.set(title=TITLES[name], ylabel="accuracy (%)")
            axes.set_xticks(range(len(SCALINGS)), labels=[f"{scaling:g}" for scaling in SCALINGS])
        for axes in figure.axes[-min(2, len(sets)) :]:
            axes.set_xlabel("λ")  # of the panels, since a name of the whole figure would be written over its legend
        legend_below(figure, figure.axes[0])
    return Plot(figure, "Accuracy on test texts by λ, mean over seeds; dashed: the paper's, of one run each.")


def score_distributions(panels: Panels, caption: str) -> Plot:
    """Figures 2 to 4: how a score is spread over the words of each kind; a panel is a table of words and a column."""
    across = 2 if len(panels) == 4 else min(3, len(panels))
    with drawn_figure(PAGE, 1.75 * -(-len(panels) // across) + 0.2) as figure:
        grid = list(figure.subplots(-(-len(panels) // across), across, squeeze=False).flat)
        for axes, (title, (table, column)) in zip(grid, panels.items(), strict=False):
            _draw_spread(axes, table, column)
            axes.set(title=title, yticks=[], xlabel=f"{column.replace('_', ' ')} score")
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        legend_below(figure, *grid[: len(panels)])
    return Plot(figure, caption)


def _draw_spread(axes: Any, table: pd.DataFrame, column: str) -> None:
    inks = _inks(table)
    known = table[table["kind"].isin(inks)].dropna(subset=[column])
    low, high = known[column].quantile([OUTER, 1 - OUTER])
    edges = np.linspace(low, high, BINS + 1) if high > low else np.array([low - 0.5, low + 0.5])
    for kind, ink in inks.items():
        values = known.loc[known["kind"] == kind, column]
        style = {"color": ink, "linestyle": LINES.get(kind, "-"), "linewidth": 1, "label": kind}
        axes.hist(values, edges, density=True, histtype="step", **style)
    axes.axvline(0, color=QUIET, linewidth=0.5)


def _inks(table: pd.DataFrame) -> dict[str, str]:
    """The kinds that are drawn, with their colours."""
    if POSITIVE in set(table["kind"]):
        return {kind: INKS[kind] for kind in (POSITIVE, NEGATIVE, NEUTRAL)}
    labels = [kind for kind in table["kind"].unique() if kind != NEUTRAL]
    return {**dict(zip(labels, LABEL_INKS, strict=False)), NEUTRAL: QUIET}


def weight_boxes(table: pd.DataFrame, caption: str) -> Plot:
    """Figure 5: the mean weight of the words of each kind in test texts."""
    kinds = (POSITIVE, NEGATIVE, NEUTRAL, MATCHED)
    groups = [table.loc[table["kind"] == kind, "weight"].dropna() for kind in kinds]
    with drawn_figure(COLUMN, 2.2) as figure:
        axes = figure.subplots()
        style = {"color": INK, "linewidth": 0.8}
        axes.boxplot(
            groups,
            tick_labels=[kind.replace(" of ", "\nof ") for kind in kinds],
            boxprops=style,
            whiskerprops=style,
            capprops=style,
            medianprops={"color": CATEGORICAL[5], "linewidth": 1.2},
            flierprops={"marker": "o", "markersize": 2, "markeredgecolor": QUIET, "markeredgewidth": 0.5},
        )
        axes.set(ylabel="mean attention weight")
    return Plot(figure, caption)


def gap_over_product(words: pd.DataFrame) -> Plot:
    """How far positive words stand above negative ones by attention score, against V·W, a dot for each run."""
    with drawn_figure(COLUMN, 2.4) as figure:
        axes = figure.subplots()
        for number, (scaling, rows) in enumerate(words.groupby("scaling")):
            runs = [WordsOfRun("sst", int(seed), run) for (seed, _), run in rows.groupby(["seed", "penalty"])]
            points = [(run.context_dot_output, run.gap.above) for run in runs]
            ink = CATEGORICAL[number % len(CATEGORICAL)]
            axes.scatter(*zip(*points, strict=True), s=14, color=ink, linewidths=0, label=f"λ = {scaling:g}")
        axes.axhline(0.5, color=QUIET, linewidth=0.5)
        axes.axvline(0, color=QUIET, linewidth=0.5)
        axes.set(xlabel="V·W", ylabel="positive above negative", ylim=(-0.02, 1.02))
        legend_below(figure, axes)
    return Plot(figure, "The share of pairs in which a positive word has the higher attention score, against V·W.")


def skew_curve(skewed: pd.DataFrame) -> Plot:
    """|V·W| at the end against the share of positive sentences: a dot for each beginning, and their mean."""
    sizes = skewed.assign(size=skewed["V·W"].abs())
    means = sizes.groupby("share")["size"].mean()
    with drawn_figure(COLUMN, 2.0) as figure:
        axes = figure.subplots()
        axes.scatter(sizes["share"], sizes["size"], s=10, color=QUIET, linewidths=0)
        axes.plot(means.index, means, color=CATEGORICAL[5], linewidth=1)
        axes.set(xlabel="share of positive sentences", ylabel="|V·W| at the end", ylim=(0, None))
    return Plot(figure, "|V·W| at the end of training on made-up sentences, by the share of positive ones.")
