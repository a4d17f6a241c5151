"""The figures: copying by seed (Figure 3), several heads (6), log-odds by place (7), and agreements over training."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ...views.palette import CATEGORICAL
from ...views.printing import COLUMN, INK, PAGE, QUIET, Plot, drawn_figure, legend_below
from .paper import TITLES

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
PLACES = {
    "keyword": ("at the keyword", WELL, "-"),
    "after": ("one further", THIRD, "--"),
    "mean": ("mean of all", QUIET, ":"),
    "last": ("at the end", BAD, "-."),
}
FIRST_STEPS = 20
PAIRS = {
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
    """Figure 6: accuracy over steps, a curve for each combination of heads."""
    with drawn_figure(COLUMN, 2.2) as figure:
        axes = figure.subplots()
        for kind, style in KINDS.items():
            _draw_curves(axes, table[table["kind"] == kind], "combination", style)
        axes.set(xlabel="steps", ylabel="accuracy", ylim=(0, 1.03))
        legend_below(figure, axes)
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
        figure.axes[0].set(ylabel="log-odds γ of the positive class", title="the first steps")
        figure.axes[1].set(title="all of training")
        legend_below(figure, figure.axes[0])
    return Plot(figure, "Log-odds by place while a keyword is learned under uniform attention, mean over seeds.")


def agreement_curves(table: pd.DataFrame, chance: Mapping[str, float]) -> Plot:
    """Agreements over training, a panel for each data set; the baseline as a thin line."""
    sets = [name for name in TITLES if name in set(table["data"])]
    across = min(3, len(sets))
    with drawn_figure(PAGE, 1.75 * -(-len(sets) // across) + 0.4) as figure:
        grid = list(figure.subplots(-(-len(sets) // across), across, squeeze=False, sharey=True).flat)
        for axes, name in zip(grid, sets, strict=False):
            rows = table[table["data"] == name]
            for pair, (label, ink, line) in PAIRS.items():
                curve = rows[rows["pair"] == pair].sort_values("step")
                axes.plot(curve["step"], curve["agreement"], color=ink, linestyle=line, linewidth=1, label=label)
            axes.axhline(chance[name], color=QUIET, linewidth=0.5)
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
