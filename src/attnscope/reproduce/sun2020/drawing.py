"""The figures: accuracy over λ (Table 2), scores by kind of word (Figures 2 to 4), weights (5), the gap over V·W."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...views.palette import CATEGORICAL
from ...views.printing import COLUMN, INK, PAGE, QUIET, Plot, drawn_figure, legend_below
from .paper import NAMES, TITLES, accuracy_in_paper
from .scales import SCALINGS
from .word_tables import MATCHED, NEGATIVE, NEUTRAL, POSITIVE, compared

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
                rows = plain[(plain["data"] == name) & (plain["variant"] == variant)]
                means = [rows.loc[rows["scaling"] == scaling, "test_accuracy"].mean() for scaling in SCALINGS]
                axes.plot(means, color=ink, marker="o", markersize=2.5, linewidth=1, label=NAMES[variant])
                paper = [accuracy_in_paper(name, variant, scaling) / 100 for scaling in SCALINGS]
                axes.plot(paper, color=ink, linewidth=0.7, linestyle="--")
            axes.set(title=TITLES[name], ylabel="accuracy")
            axes.set_xticks(range(len(SCALINGS)), labels=[f"{scaling:g}" for scaling in SCALINGS])
        figure.supxlabel("λ", fontsize=8)
        legend_below(figure, figure.axes[0])
    return Plot(figure, "Accuracy on test texts by λ, mean over seeds; dashed: the paper's, of one run each.")


def score_distributions(panels: Mapping[str, tuple[pd.DataFrame, str]], caption: str) -> Plot:
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
        axes.hist(
            values,
            edges,
            density=True,
            histtype="step",
            color=ink,
            linestyle=LINES.get(kind, "-"),
            linewidth=1,
            label=kind,
        )
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
            points = [_point(run) for _, run in rows.groupby(["seed", "penalty"])]
            ink = CATEGORICAL[number % len(CATEGORICAL)]
            axes.scatter(*zip(*points, strict=True), s=14, color=ink, linewidths=0, label=f"λ = {scaling:g}")
        axes.axhline(0.5, color=QUIET, linewidth=0.5)
        axes.axvline(0, color=QUIET, linewidth=0.5)
        axes.set(xlabel="V·W", ylabel="positive above negative", ylim=(-0.02, 1.02))
        legend_below(figure, axes)
    return Plot(figure, "The share of pairs in which a positive word has the higher attention score, against V·W.")


def _point(run: pd.DataFrame) -> tuple[float, float]:
    groups: Sequence[np.ndarray] = [
        run.loc[run["kind"] == kind, "attention"].to_numpy(dtype=float) for kind in (POSITIVE, NEGATIVE)
    ]
    return float(run["context_dot_output"].iloc[0]), compared(*groups).above


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
