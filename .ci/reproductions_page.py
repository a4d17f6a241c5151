"""Draw the figures of docs/reproductions/index.md, the paper's numbers beside ours, and write its counts of claims.

`python .ci/reproductions_page.py` needs no model and no data: the papers' numbers stand in `paper.py`, ours in the
committed tables. What the page says in words is written by hand; between two marks such as `<!-- abnar2020 -->` stands
what is counted. Facts carry over, pictures do not: every figure is drawn here, from numbers.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.stats import t as student

from attnscope.paint import CATEGORICAL
from attnscope.reproduce import PAPERS, read_claims
from attnscope.reproduce.abnar2020.paper import TABLE_1
from attnscope.reproduce.claims import count, rows_with
from attnscope.reproduce.snell2021.paper import TABLE_5, TITLES
from attnscope.reproduce.sun2020.paper import SCALINGS, accuracy_in_paper
from attnscope.reproduce.vig2019.paper import CURVE
from attnscope.reproduce.wu2020.paper import P_GRADIENT, T_QUADRATIC
from attnscope.views.printing import PAGE, QUIET, Plot, drawn_figure, legend_below

REPRODUCTIONS = Path(__file__).parents[1] / "docs" / "reproductions"
INDEX, FIGURES = REPRODUCTIONS / "index.md", REPRODUCTIONS / "figures"
HIGH = 2.0
BLUE, ORANGE, GREEN = CATEGORICAL[0], CATEGORICAL[5], CATEGORICAL[2]


def table_of(paper: str, name: str) -> pd.DataFrame:
    """A committed table."""
    return pd.read_csv(REPRODUCTIONS / paper / "tables" / f"{name}.csv")


def two_panels(figure: Any, **shared: Any) -> tuple[Any, Any]:
    """The paper at the left, we at the right."""
    left, right = figure.subplots(1, 2, **shared)
    left.set_title("paper", loc="left")
    right.set_title("here", loc="left")
    return left, right


# One figure for each paper.


def of_vig2019() -> Plot:
    """How likely two words are linked by their distance, and how much attention follows links in each layer."""
    links, alignment = (
        table_of("vig2019", name) for name in ("dependency_by_distance", "dependency_alignment_by_layer")
    )
    layers = rows_with(alignment, direction="either", relation="any")
    with drawn_figure(PAGE, HIGH) as figure:
        left, right = figure.subplots(1, 2)
        near = links[links["distance"] <= 18]
        left.plot(near["distance"], near["value"], color=BLUE, label="here, wikitext-2")
        left.plot(list(CURVE), list(CURVE.values()), "s", color=ORANGE, label="paper, Wikipedia")
        left.set(title="two tokens are linked", xlabel="distance", ylabel="share of pairs", ylim=(0, None))
        left.set_xticks([1, 5, 10, 15])
        left.legend()
        right.plot(layers["layer"], layers["value"], color=BLUE, label="here, SmolLM2")
        right.plot(layers["layer"], layers["chance"], color=QUIET, linestyle=":", label="chance")
        right.axvspan(layers["layer"].max() / 4, 3 * layers["layer"].max() / 4, color=QUIET, alpha=0.12, linewidth=0)
        right.set(title="attention on links, by layer", xlabel="layer", ylim=(0, None))
        right.legend()
    return Plot(figure, "Left, how likely two tokens are linked; right, attention that follows links in SmolLM2.")


def of_abnar2020() -> Plot:
    """Table 1: agreement with blank-out by layer."""
    table = rows_with(table_of("abnar2020", "tables_1_and_2"), reference="blank_out", ranks="authors", tokens="all")
    table = rows_with(table, part=table["part"].iloc[0])
    with drawn_figure(PAGE, HIGH) as figure:
        left, right = two_panels(figure, sharey=True)
        for (method, row), ink, mark in zip(TABLE_1.items(), (ORANGE, BLUE, GREEN), "so^", strict=True):
            left.plot(list(row), [mean for mean, _ in row.values()], color=ink, marker=mark, markersize=3, label=method)
            for number, (_, rows) in enumerate(table[table["method"] == method].groupby("seed")):
                name = method if number == 0 else None
                right.plot(rows["layer"], rows["mean"], color=ink, marker=mark, markersize=3, label=name)
        left.set(xlabel="layer", ylabel="rank correlation")
        right.set(xlabel="layer")
        legend_below(figure, left)
    return Plot(figure, "How raw attention, rollout and flow agree with blank-out, by layer; ours with a line a seed.")


def of_wu2020() -> Plot:
    """How clear the quadratic term is, by t: tracing and gradients."""
    table = rows_with(table_of("wu2020", "regressions"), scaling="softmax")
    gradient = float(student.isf(P_GRADIENT["sst"] / 2, 2335 - 3))  # the paper gives p, of 2,335 words
    bars = {"paper": (T_QUADRATIC["sst"], gradient)}
    for seed, rows in table.groupby("seed"):
        by = rows.set_index("method")["b2_t"]
        bars[f"seed {seed}"] = (by["layerwise_tracing"], by["gradient_of_sum"])
    with drawn_figure(PAGE, HIGH) as figure:
        axes = figure.subplots()
        for place, (name, values) in enumerate(bars.items()):
            for side, (value, ink) in enumerate(zip(values, (BLUE, ORANGE), strict=True)):
                label = ("tracing", "gradient")[side] if place == 0 else None
                axes.bar(place + 0.36 * side, value, 0.34, color=ink, label=label, alpha=1 if name == "paper" else 0.7)
        axes.axhline(1.96, color=QUIET, linewidth=0.6, linestyle=":")
        axes.set_xticks([place + 0.18 for place in range(len(bars))], list(bars))
        axes.set(ylabel="t of the quadratic term", title="emotional words stand out, by how people rate them")
        axes.legend()
    return Plot(figure, "How clearly scores bend up for very positive and very negative words; dotted: p = .05.")


def of_sun2020() -> Plot:
    """Table 2 on SST: accuracy over the scaling λ."""
    table = rows_with(table_of("sun2020", "table_2"), data="sst", penalty=0)
    names = {"dot": ("dot products", BLUE, "o"), "dot_lstm": ("behind an LSTM", ORANGE, "s")}
    with drawn_figure(PAGE, HIGH) as figure:
        left, right = two_panels(figure, sharey=True)
        for variant, (name, ink, mark) in names.items():
            style = {"color": ink, "marker": mark, "markersize": 3, "label": name}
            left.plot(SCALINGS, [accuracy_in_paper("sst", variant, scaling) for scaling in SCALINGS], **style)
            mean = 100 * rows_with(table, variant=variant).groupby("scaling")["test_accuracy"].mean()
            right.plot(mean.index, mean, **style)
        for axes in (left, right):
            axes.set(xscale="log", xlabel="λ")
            shown = (0.001, 1, 10, 100, 10_000)
            axes.set_xticks(shown, [f"{scaling:,g}" for scaling in shown])
            axes.set_xticks([], minor=True)
        left.set_ylabel("accuracy, %")
        legend_below(figure, left)
    return Plot(figure, "Accuracy on SST over the scaling of attention.")


def of_snell2021() -> Plot:
    """A(α, β_uf) on each data set, at its best and at the end, with chance."""
    table = rows_with(table_of("snell2021", "agreements"), part="validation", seeds="two", pair="attention_uniform")
    names = [name for name in TITLES if name in set(table["data"]) and name in TABLE_5]
    with drawn_figure(PAGE, HIGH) as figure:
        left, right = two_panels(figure, sharey=True)
        for place, name in enumerate(names):
            rows = table[table["data"] == name].sort_values("step")
            left.bar(place, TABLE_5[name].attention_uniform, 0.7, color=ORANGE)
            left.plot([place - 0.35, place + 0.35], [TABLE_5[name].chance] * 2, color=QUIET)
            right.bar(place, 100 * rows["agreement"].max(), 0.7, color=BLUE, alpha=0.45)
            right.bar(place, 100 * rows["agreement"].iloc[-1], 0.35, color=BLUE)
            right.plot([place - 0.35, place + 0.35], [100 * rows["chance"].iloc[0]] * 2, color=QUIET)
        for axes in (left, right):
            axes.set_xticks(range(len(names)), [TITLES[name] for name in names], rotation=30)
        left.set_ylabel("A(α, β_uf), %")
        right.set_title("here: at its best (wide) and at the end (narrow)", loc="left")
    return Plot(figure, "How often attention looks where a model with uniform attention learned most; grey is chance.")


DRAWN: dict[str, Callable[[], Plot]] = {
    "vig2019": of_vig2019,
    "abnar2020": of_abnar2020,
    "wu2020": of_wu2020,
    "sun2020": of_sun2020,
    "snell2021": of_snell2021,
}


# The counts, between their marks.


def claims_that_hold(paper: str) -> str:
    """How many claims of a paper hold, of how many, as the table of the page has it.

    A claim without a verdict is counted among all and told apart.
    """
    claims = [claim for claim in read_claims(REPRODUCTIONS / paper) if claim.kind == "paper"]
    hold, fail = (sum(claim.holds is verdict for claim in claims) for verdict in (True, False))
    return f"**{hold}** hold, {fail} do not, {len(claims) - hold - fail} undecided"


MARKED = re.compile(r"(<!-- (\w+)(?: ([\w-]+))? -->).*?(<!-- / -->)")
"""A paper for the count of its own claims, with `whole` for that of all, or with a claim for what was found."""


def with_counts(page: str) -> str:
    """The page with the counts and findings of today between their marks."""
    return MARKED.sub(lambda found: f"{found[1]}{_between(found[2], found[3])}{found[4]}", page)


def _between(paper: str, what: str | None) -> str:
    claims = read_claims(REPRODUCTIONS / paper)
    if what is None:
        return claims_that_hold(paper)
    return f"{count(claims)}." if what == "whole" else next(claim.here for claim in claims if claim.id == what)


def pages() -> list[Path]:
    """The page of all papers, and those of each."""
    return [INDEX, *(REPRODUCTIONS / paper / INDEX.name for paper in PAPERS)]


def main() -> None:
    """Figures and counts."""
    FIGURES.mkdir(exist_ok=True)
    for paper, draw in DRAWN.items():
        draw().save(FIGURES / f"{paper}.svg")
    for page in pages():
        page.write_text(with_counts(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
