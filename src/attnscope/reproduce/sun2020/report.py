"""The report: what was run, every claim beside the paper's figure, Tables 1 and 2, and the figures."""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from ...views import learning
from ..claims import Claim, claims_blocks, details_blocks
from ..document import Block, Document, Figure, Heading, Paragraph, Table, Words
from .drawing import accuracy_over_scaling, gap_over_product, score_distributions, skew_curve, weight_boxes
from .evidence import Evidence
from .paper import NAMES, TABLE_1, TITLES, accuracy_in_paper
from .scales import SCALINGS
from .sweeping import LARGE, MODERATE

TITLE = "Sun & Lu (2020), Understanding Attention for Text Classification"
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


def report_of(
    evidence: Evidence,
    claims: Sequence[Claim],
    facts: Mapping[str, str],
    statistics: pd.DataFrame,
    terms: pd.DataFrame,
    made_up_curves: pd.DataFrame,
    more: Sequence[Block] = (),
    caution: str = "",
) -> Document:
    """The report of everything that was measured; `more` is what goes beyond the paper."""
    rows: list[Sequence[Words]] = [[name, said] for name, said in facts.items()]
    blocks: list[Block] = [
        Table(["", ""], rows),
        *claims_blocks(claims),
        Heading("The paper's tables and figures"),
        *_table_1(statistics),
        *_table_2(evidence.accuracies),
        *_score_figures(evidence.words),
        *_terms(terms, made_up_curves, evidence.skewed),
        *more,
        Heading("The claims one by one"),
        *details_blocks(claims),
        Heading("How it was measured"),
        Paragraph(HOW),
    ]
    return Document(TITLE, blocks, caution)


def _table_1(statistics: pd.DataFrame) -> Iterator[Block]:
    yield Heading("Table 1: the data", 2)
    rows: list[Sequence[Words]] = []
    for row in statistics.to_dict("records"):
        said = [
            f"{row['mean_length']:.0f}",
            f"{row['words']:,}",
            *(str(row[part]) for part in ("train", "dev", "test")),
        ]
        rows.append([TITLES[row["data"]], "here", *said])
        rows.append(["", "paper", *TABLE_1[row["data"]]])
    yield Table(["", "", "mean length", "words", "train", "dev", "test"], rows)


def _table_2(accuracies: pd.DataFrame) -> Iterator[Block]:
    yield Heading("Table 2: accuracy by λ", 2)
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
    yield Table(["", "λ =", *(f"{scaling:g}" for scaling in SCALINGS)], rows)
    yield Figure("table_2", accuracy_over_scaling(accuracies), "Means over seeds; the paper's dashed.")


def _score_figures(words: pd.DataFrame) -> Iterator[Block]:
    """Figures 2 to 5 of the first seed, and the gap of all."""
    plain = words[(words["penalty"] == 0) & (words["seed"] == words["seed"].min())]

    def table(data: str, variant: str, scaling: float) -> pd.DataFrame:
        return plain[(plain["data"] == data) & (plain["variant"] == variant) & (plain["scaling"] == scaling)]

    binary = {name: found for name in ("sst", "imdb", "20news1") if len(found := table(name, "dot", MODERATE))}
    yield Heading("Figure 2: polarity and attention scores, λ = 10", 2)
    panels = {
        f"{TITLES[name]}: {score}": (found, score)
        for score in ("polarity", "attention")
        for name, found in binary.items()
    }
    yield Figure(
        "fig02_scores", score_distributions(panels, "Scores by kind of word, dot products, λ = 10."), "Seed 1."
    )
    yield Heading("Figure 3: λ = 100, and three classes", 2)
    large = {f"SST: {score}": (table("sst", "dot", LARGE), score) for score in ("polarity", "attention")}
    if len(three := table("20news2", "dot", MODERATE)):
        large["20News II: attention (λ = 10)"] = (three, "attention")
    yield Figure(
        "fig03_scores", score_distributions(large, "Scores by kind of word, dot products, λ = 100."), "Seed 1."
    )
    yield Heading("Figure 4: additive attention", 2)
    additive = {f"SST: {score}": (table("sst", "additive", MODERATE), score) for score in ("polarity", "attention")}
    yield Figure(
        "fig04_additive", score_distributions(additive, "Scores by kind of word, additive, λ = 10."), "Seed 1."
    )
    lstm = table("sst", "dot_lstm", MODERATE)
    kept = ("polarity", "attention", "local_polarity", "local_attention")
    yield Heading("Behind an LSTM: words alone, and in their sentences", 2)
    yield Figure(
        "fig04_lstm",
        score_distributions(
            {f"SST: {score.replace('_', ' ')}": (lstm, score) for score in kept}, "DP-L on SST, λ = 10."
        ),
        "Local scores are means over the occurrences in training texts.",
    )
    yield Heading("Figure 5: weights in test sentences", 2)
    caption = "Mean attention weight by kind of word, SST, dot products, λ = 10."
    yield Figure("fig05_weights", weight_boxes(table("sst", "dot", MODERATE), caption), "Seed 1.")
    yield Heading("V·W and the gap", 2)
    every = words[(words["data"] == "sst") & (words["variant"] == "dot") & (words["scaling"] >= MODERATE)]
    yield Figure("gap_over_vw", gap_over_product(every), "SST, all seeds, penalties among them at λ = 100.")


def _terms(terms: pd.DataFrame, made_up_curves: pd.DataFrame, skewed: pd.DataFrame) -> Iterator[Block]:
    yield Heading("What drives the scores")
    for scaling, rows in terms.groupby("scaling"):
        shown = [quantity for quantity in TERMS if quantity in set(rows["quantity"])]
        plot = learning(rows.drop(columns="scaling"), f"λ = {scaling:g}", shown).figure()
        yield Figure(
            f"terms_{scaling:g}", plot, f"Means over the words of each kind while SST is learned, λ = {scaling:g}."
        )
    yield Heading("Made-up sentences", 2)
    first = made_up_curves[(made_up_curves["set"] == "I") & (made_up_curves["seed"] == made_up_curves["seed"].min())]
    for penalty, rows in first.groupby("penalty"):
        shown = [
            quantity for quantity in ("dot products", "attention score", "V·W") if quantity in set(rows["quantity"])
        ]
        plot = learning(rows.drop(columns=["set", "penalty", "seed"]), f"c = {penalty:g}", shown).figure()
        yield Figure(f"made_up_{penalty:g}", plot, f"Data I, with a penalty of {penalty:g} |V·W|.")
    yield Figure("skew", skew_curve(skewed), "Four beginnings for each share of positive sentences.")
