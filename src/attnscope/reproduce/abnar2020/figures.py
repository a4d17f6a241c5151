"""The paper's tables and figures, made again: Tables 1 to 3 as numbers and as curves, and two tables of our own."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ...paint import CATEGORICAL
from ...views.printing import COLUMN, PAGE, QUIET, Plot, drawn_figure, legend_below, whole_numbers
from ..claims import rows_with
from ..document import Block, Figure, Heading, Paragraph, Table, Words, under
from ..experiment import Attempt, Report
from .claims import NAMES, Evidence, share
from .drawing import figures_of, illustrate
from .paper import TABLE_1, TABLE_2, TABLE_3, Options, Row, Scale
from .pronoun_pairs import PronounStudy
from .pronouns import pronoun_blocks
from .scoring import BASELINES, METHODS, Correlations
from .sentiment import SOURCES
from .stages import is_toy

TOY = (
    "The shipped grammar is a toy and the model of a smoke run hardly trained: this run shows that the experiment "
    "works, and is not meant to confirm the paper's claims."
)
HOW = (
    "Heads are averaged; in rollout and flow half of every layer is the residual. Scores are the row of [CLS]; flows "
    "are divided by their sum. Blank-out puts [UNK] in the place of each token, [CLS] and the verb's place too, and "
    "follows the probability of the right number. Gradients are of p(right) - p(wrong) at the embeddings, by their "
    "length. Correlations are per sentence; a table shows their mean ± population SD, and intervals are those of "
    "means when sentences are drawn again (1,000 times). Scores are rounded to 1e-9 before they are ranked. Claims "
    "about Tables 1 and 2 are judged as the paper has them, by the authors' ranks over all tokens, and again by "
    "average ranks and over the words alone. Layers count from one, as in the paper."
)
DIFFERENT = (
    "The paper's model learned from a tenth of Linzen's sentences and, as its code shows, from the answers of an "
    "LSTM; these learn from the right numbers alone, at a higher rate (1e-3), and stop when held-out sentences get "
    "no better. Padding is masked, which theirs was not. Training, validation and held-out examples never have the "
    "same words, but two verbs of one long sentence may be in two of them. Sentences of more than 62 words before "
    "the verb are left out; for Table 3, those of more than 64 tokens."
)


def report_of(attempt: Attempt[Scale, Options], evidence: Evidence) -> Report:
    """What was run, Tables 1 to 3, Figures 1 to 4, and what is beyond the paper."""
    model = attempt["models"][attempt.scale.seeds[0]]
    study: PronounStudy | None = attempt["pronouns"]
    correlations = correlation_table(evidence)
    blocks: list[Block] = [
        *correlation_blocks(correlations, evidence),
        *sentiment_blocks(evidence.sentiment),
        *figures_of(illustrate(model)),
        *pronoun_blocks(None if study is None else study.published),
        *pair_blocks(study),
        Heading("Beyond the paper"),
        *subject_blocks(evidence.tables["subjects"]),
        *under("How often the models are right", accuracy_block(evidence)),
    ]
    tables = {"tables_1_and_2": correlations, **evidence.tables, "accuracy": accuracy_table(evidence)}
    if not isinstance(evidence.sentiment, str):
        tables["table_3"] = evidence.sentiment.table().rename(columns={"reference": "source"}).drop(columns="seed")
    return Report(facts_of(attempt, evidence), blocks, [HOW, DIFFERENT], tables, TOY if is_toy(attempt) else "")


HEADLINE = "natural, right"
LESS = (
    "models learn from the right numbers alone (the paper's also from an LSTM's answers) at a rate of 1e-3, with "
    "padding masked; gradients by their length, not their sum; MiniLM in place of DistilBERT and BERT"
)
"""How every run here differs from the paper's, whatever its scale."""


def facts_of(attempt: Attempt[Scale, Options], evidence: Evidence) -> dict[str, str]:
    """What a reader must know first: models, weights, data, seeds, steps, and how they differ from the paper's."""
    scale, examples, study = attempt.scale, attempt["examples"], attempt["pronouns"]
    settings = attempt["models"][scale.seeds[0]].settings
    scored = ", ".join(f"{len(next(iter(of.values()))):,} {kind}" for kind, of in attempt["scores"].items())
    right = ", ".join(f"{len(run.correlations.values):,}" for run in evidence.runs)
    text = "Linzen's file" if scale.text == "linzen" else f"sentences {examples.source}"
    return {
        "model": f"agreement: {settings.layers} layers of {settings.heads} heads, width {settings.width}; table 3: "
        f"{attempt['sentiment'].about}; figure 4: {'not run' if study is None else study.about}",
        "weights": "agreement models trained here from random beginnings; encoders begin as published and are "
        "fine-tuned as said above",
        "data": f"{len(examples.training):,} sentences to learn from, {len(examples.held_out):,} held out, "
        f"{len(examples.testing):,} tested, {examples.source}; tables 1 and 2 on {scored} sentences, of which the "
        f"headline has those that the model gets right ({right})",
        "seeds": ", ".join(map(str, scale.seeds)),
        "steps": f"up to {scale.steps:,} of 64 sentences, ended where validation no longer rises; {scale.blanked:.0%} "
        "of the words blanked",
        "differs from the paper": f"{text} for a tenth of Linzen's file, in 60 epochs; one checkpoint "
        f"there, {len(scale.seeds)} seeds here; {LESS}",
    }


def correlation_table(evidence: Evidence) -> pd.DataFrame:
    """Tables 1 and 2 of all seeds: those of the headline first, then those on other sentences."""
    parts = [run.table().assign(part=HEADLINE) for run in evidence.agreement]
    for name in dict.fromkeys(name for run in evidence.runs for name in run.others):
        parts += [run.others[name].table().assign(part=name) for run in evidence.runs if name in run.others]
    return pd.concat(parts, ignore_index=True)


def accuracy_table(evidence: Evidence) -> pd.DataFrame:
    """By seed, kind of sentence and attractors: how many verbs are right, and of how many."""
    rows = [
        {"seed": run.correlations.seed, "sentences": kind, "attractors": attractors, "right": right, "of": of}
        for run in evidence.runs
        for kind, counts in (("held out", run.held_out), ("tested", run.testing))
        for attractors, (right, of) in counts.items()
    ]
    return pd.DataFrame(rows)


# Tables 1 to 3 and our own as they stand in the report, the paper's figures beside ours.


PAPER = {"blank_out": TABLE_1, "gradient": TABLE_2}
RANKED = {"authors": "as the authors rank", "average": "by average ranks"}
KINDS = [(ranks, tokens) for ranks in RANKED for tokens in ("all", "words")]
AGREEMENT = {"all": "over all tokens", "words": "over the words alone, without [CLS] and the verb's place"}
FORMS, PRONOUNS = ("his first", "her first"), ("his", "her")
CLASSIFIER = {"all": "over all tokens", "words": "over the words alone, without special tokens"}
SUM = (
    "The authors take |Σ ∂(p₀ - p₁)/∂x| over the dimensions of x. Every way from the input to the answer passes a "
    "LayerNorm, which takes out what all dimensions have in common: that sum is zero, and what is ranked below is the "
    "rounding of 32-bit numbers, which grows with the gradient and so follows its length from afar."
)


def correlation_blocks(table: pd.DataFrame, evidence: Evidence) -> Iterator[Block]:
    """Tables 1 and 2 in all four ways, as curves and as numbers, on other sentences, and the saturation of flow.

    The first part of the table is the headline's.
    """
    whole, table = table, rows_with(table, part=table["part"].iloc[0])
    yield Heading("Tables 1 and 2 as curves", 2)
    for kind in KINDS:
        words, published = _in_words(kind, AGREEMENT), kind == KINDS[0]
        panels = {NAMES[reference]: _rows_of(table, reference, kind) for reference in PAPER}
        beside = {NAMES[reference]: rows for reference, rows in PAPER.items()} if published else {}
        plot = agreement_curves(panels, beside, f"Agreement by layer, {words}.")
        caption = f"One line for each seed, {words}; dotted: scores that know nothing of the model."
        yield Figure(f"tables_1_and_2_{'_'.join(kind)}", plot, caption + (" Dashed: the paper." if published else ""))
    for number, reference in enumerate(PAPER, start=1):
        yield Heading(f"Table {number}: agreement with {NAMES[reference]}", 2)
        for kind in KINDS:
            rows = _rows_of(table, reference, kind)
            yield Paragraph(f"{_capital(_in_words(kind, AGREEMENT))}; mean ± SD over {_sentences(rows)}.")
            yield _by_layer(rows, evidence.layers, PAPER[reference] if kind == KINDS[0] else {})
    yield from other_parts(whole, evidence.layers)
    summed = _by_layer(_rows_of(table, "gradient_sum", KINDS[0]), evidence.layers, TABLE_2)
    yield from under("Table 2 with the authors' sum of gradients", Paragraph(SUM), summed)
    yield from under(
        "Saturation of flow",
        Paragraph(
            "The share of the flows from [CLS] that are just what [CLS] gives in that layer or the token takes in the "
            "first: such a flow says nothing of the layers between. Below it the share of tokens whose flow another "
            "token has too."
        ),
        _saturation(evidence.tables["saturation"], evidence.layers),
    )


def other_parts(table: pd.DataFrame, layers: int) -> Iterator[Block]:
    """Tables 1 and 2 side by side on each part of the sentences, means over seeds, as the authors rank all tokens."""
    parts = list(dict.fromkeys(table["part"]))
    if len(parts) < 2:
        return
    yield Heading("Tables 1 and 2, right and wrong answers apart", 2)
    yield Paragraph(
        "Sentences in their natural mix, and those of Linzen's subset, which are chosen for their attractors; means "
        "over seeds, as the authors rank all tokens. How many sentences a part has is the least of the seeds."
    )
    rows: list[Sequence[Words]] = []
    for reference in PAPER:
        for part in parts:
            found = rows_with(_rows_of(table, reference, KINDS[0]), part=part)
            named = f"{part} ({int(found['sentences'].min()):,})"
            for method in METHODS:
                by = found[found["method"] == method].groupby("layer")["mean"].mean()
                rows.append([NAMES[reference], named, method, *(f"{by[layer]:.2f}" for layer in range(1, layers + 1))])
    yield Table(["", "sentences", "", *(f"layer {layer}" for layer in range(1, layers + 1))], rows)


def _in_words(kind: tuple[str, str], tokens: Mapping[str, str]) -> str:
    return f"{RANKED[kind[0]]}, {tokens[kind[1]]}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _sentences(table: pd.DataFrame) -> str:
    """How many sentences have a figure: those of one word rank nothing, nor do scores that are all tied."""
    least, most = int(table["sentences"].min()), int(table["sentences"].max())
    return f"{most:,} sentences" if least == most else f"{least:,} to {most:,} sentences"


def _rows_of(table: pd.DataFrame, reference: str, kind: tuple[str, str]) -> pd.DataFrame:
    return rows_with(table, reference=reference, ranks=kind[0], tokens=kind[1])


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
    panels = {NAMES[source]: _rows_of(table, source, KINDS[0]) for source in SOURCES}
    plot = agreement_curves(panels, {NAMES["maximum"]: TABLE_3}, "Agreement by layer in a sentiment classifier.")
    yield Figure("table_3", plot, "As the authors rank, over all tokens. Dashed: the paper, for DistilBERT.")
    for source in SOURCES:
        for kind in KINDS:
            rows = _rows_of(table, source, kind)
            words = f"{_capital(NAMES[source])}, {_in_words(kind, CLASSIFIER)}"
            yield Paragraph(f"{words}; mean ± SD over {_sentences(rows)}.")
            yield _by_layer(rows, layers, TABLE_3 if (source, kind) == ("maximum", KINDS[0]) else {})


def pair_blocks(study: PronounStudy | None) -> Iterator[Block]:
    """The pairs of sentences with exchanged names, if there was a model for them."""
    if study is None:
        return
    yield Heading("Figure 4 on pairs of our own", 2)
    yield Paragraph(
        f"{study.about}. Each sentence stands twice, with the two names exchanged, so that no method is right by the "
        "place of a name. Right is a method whose larger share, in the last layer, is that of the name which the "
        "likelier pronoun means."
    )
    yield pair_summary(study.table())


def pair_summary(table: pd.DataFrame) -> Table:
    """How often each method is right, by the form of the sentence and by the pronoun."""
    rows: list[Sequence[Words]] = []
    for method in METHODS:
        one = rows_with(table, method=method)
        parts = [one, *(one[one["form"] == form] for form in FORMS), *(one[one["predicted"] == p] for p in PRONOUNS)]
        rows.append([method, *(f"{part['agrees'].mean():.0%} of {len(part)}" if len(part) else "–" for part in parts)])
    names = [f"where {form}" for form in FORMS] + [f"where {pronoun} is likelier" for pronoun in PRONOUNS]
    return Table(["", "right", *names], rows)


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
    shown = table[table["layer"].isin([0, 1, last])]
    groups = list(dict.fromkeys(shown["attractors"]))
    counts = shown.groupby("attractors")["sentences"].first()
    rows: list[Sequence[Words]] = []
    for method, layer in dict.fromkeys(zip(shown["method"], shown["layer"], strict=True)):
        one = rows_with(shown, method=method, layer=layer).groupby("attractors")["found"].mean()
        named = f"{method}, layer {layer}" if layer else NAMES.get(method, method)
        rows.append([named, *(f"{one[group]:.2f}" for group in groups)])
    yield Table(["attractors", *(f"{group} ({counts[group]:,} sentences)" for group in groups)], rows)


def accuracy_block(evidence: Evidence) -> Table:
    """How often the models are right."""
    rows: list[Sequence[Words]] = []
    for run in evidence.runs:
        for kind, counts in (("held out, of the text trained on", run.held_out), ("tested", run.testing)):
            by = ", ".join(f"{right / of:.3f} of {of:,} with {number}" for number, (right, of) in counts.items() if of)
            rows.append([run.name, kind, f"{share(counts):.3f}", by])
    return Table(["", "sentences", "right", "by attractors"], rows)


# Tables 1 to 3 as curves: how each method agrees with what the model uses, layer by layer, the paper's beside it.


COLOURS = dict(zip(METHODS, (CATEGORICAL[5], CATEGORICAL[0], CATEGORICAL[2]), strict=True))
MARKS = dict(zip(METHODS, "so^", strict=True))
"""Told apart by more than colour."""


def agreement_curves(
    panels: Mapping[str, pd.DataFrame],
    paper: Mapping[str, Mapping[str, Row]],
    caption: str,
    label: str = "rank correlation",
) -> Plot:
    """One panel for each table with seed, method, layer and mean: a line for each seed, the paper's dashed.

    Baselines, which have no layer, are dotted lines.
    """
    wide = PAGE if len(panels) > 1 else COLUMN
    with drawn_figure(wide, 2.5) as figure:
        every = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (name, table) in zip(every, panels.items(), strict=True):
            for method in METHODS:
                _draw_method(axes, table[table["method"] == method], method, paper.get(name, {}).get(method, {}))
            # one name at the left and one at the right, or they would meet
            for baseline, (where, side) in zip(BASELINES, ((1, "left"), (table["layer"].max(), "right")), strict=True):
                mean = table.loc[table["method"] == baseline, "mean"].mean()
                axes.axhline(mean, color=QUIET, linewidth=0.6, linestyle=":")
                style = {"textcoords": "offset points", "ha": side, "color": QUIET, "fontsize": 7, "zorder": 5}
                # on a ground of its own, so that no curve strikes it through
                style["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.85}
                axes.annotate(baseline, (where, mean), (0, 1), **style)
            axes.set(title=name, xlabel="layer")
            axes.xaxis.set_major_locator(whole_numbers(12))
        every[0].set(ylabel=label)
        legend_below(figure, every[-1])
    return Plot(figure, caption)


def _draw_method(axes: Any, table: pd.DataFrame, method: str, paper: Row) -> None:
    style = {"color": COLOURS[method], "linewidth": 1, "marker": MARKS[method], "markersize": 3}
    for number, (_, rows) in enumerate(table.groupby("seed", dropna=False)):
        axes.plot(rows["layer"], rows["mean"], label=method if number == 0 else None, **style)
    if paper:
        means = [mean for mean, _ in paper.values()]
        axes.plot(list(paper), means, color=COLOURS[method], linewidth=0.8, linestyle="--")
