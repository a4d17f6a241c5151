"""The paper's figures and tables, made again of a survey: Figures 4 to 12, A.1 and A.2, Tables 1 to 3."""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from ...numerals import counted
from ...surveying import Survey
from ...views.plots import (
    curve,
    distance_against_entropy,
    head_map,
    head_maps,
    heads_against,
    layer_bars,
    layer_bars_by_label,
)
from ...views.survey import add_spaces, shorten_around
from ..claims import rows_with
from ..document import Block, Emphasis, Figure, Heading, Paragraph, Strong, Table, Words, under
from ..experiment import Attempt, Editions, Report
from . import paper
from .measures import EITHER, relations_in_use, rows_labelled, tags_in_use
from .paper import SHORT_TITLE, Options, Scale
from .stages import licence_of, toy_caution

NULLS = {
    "first": "attention to the first token is left out everywhere but in Figure 5, as in the paper",
    "special": "attention to and from special tokens is left out everywhere but in Figure 5",
    "sinks": "attention to the first token and to what many heads rest on is left out everywhere but in Figure 5",
    "none": "nothing is left out",
}
CHOSEN = (
    ". The heads are those that rest most of the time and give nearly all their attention to one token in their "
    "exemplars, at most one from a layer (in GPT-2: those of the paper)."
)
HOW = (
    "Equations 3 to 6 are ratios of sums over the corpus. Every piece of a word has its tag and its relations; pieces "
    "of one word are not linked. Figures by layer are ratios of sums over the heads of the layer; the tables have the "
    "mean of the heads beside them. Standard errors (±) come from leaving out one group of sentences at a time. Layers "
    "and heads count from zero. Heads that give more than 97% of their attention to null tokens are left out of every "
    "claim but those on null attention. Where the paper speaks of layers by number, the rule is in terms of depth: "
    "its last three of 12 layers are the last quarter. Figures 1 to 3 of the paper are views of a single text and are "
    "not part of this."
)


def report_of(attempt: Attempt[Scale, Options], survey: Survey) -> Report:
    """What was run, every figure, the example heads and the exemplars."""
    scale, options, card = attempt.scale, attempt.options, survey.card
    parser = card["parser"] or options.parser
    corpus = scale.corpus if options.corpus is None else options.corpus
    licence = licence_of(corpus)
    heads = heads_table(survey)
    examples = example_heads(heads)
    specific = specific_heads(survey)
    exemplars = exemplars_of(survey, specific)
    texts, tokens = counted(card["sentences"], "text"), counted(card["tokens"], "token")
    size = f"{counted(card['layers'], 'layer')} of {counted(card['heads'], 'head')}"
    facts = {
        "model": f"{card['model']['name']} ({card['class']}), {size}",
        "weights": options.weights or "as they are in the folder that was named; nothing else is known of them here",
        "data": f"{card['corpus']}: {texts} read, {tokens}, {card['tokens'] / card['sentences']:.1f} in each",
        "licence of the texts": licence or "not known",
        "annotation": "as the corpus has it" if parser is None else f"by spaCy's {parser}",
        "seeds": "none: nothing is trained",
        "steps": "none",
        "differs from the paper": f"the paper has {paper.SET_UP}",
        "null attention": NULLS.get(str(card["null"]), f"attention to {card['null']} is left out"),
        "skipped": "; ".join(f"{number:,}: {reason}" for reason, number in card["skipped"].items()) or "none",
    }
    blocks: list[Block] = [
        Heading("Figure 4: example heads", 2),
        Paragraph("The heads that are most of each kind, with their figures over the whole corpus."),
        example_block(examples),
        *(block for part in FIGURES for block in part(survey)),
        Heading("Tables 1 to 3: exemplars"),
        Paragraph(
            [
                "For three heads the sentences with the largest single weight: the attending token is ",
                Strong("bold"),
                ", the attended one in ",
                Emphasis("italics"),
                CHOSEN,
                f" The sentences are quoted from {card['corpus']} ({licence})." if licence else "",
            ]
        ),
        *_exemplars(survey, exemplars, specific),
    ]
    caution = toy_caution(scale.model if options.model is None else options.model, corpus)
    tables = tables_of(survey, heads, examples, exemplars)
    title = f"{SHORT_TITLE} on {card['model']['name']}, {card['corpus']}"
    return Report(facts, blocks, [HOW], tables, caution, title)


def _exemplars(survey: Survey, exemplars: pd.DataFrame, heads: Sequence[tuple[int, int]]) -> Iterator[Block]:
    """Tables 1 to 3, each with the null attention and the role of its head."""
    for number, (layer, head) in enumerate(heads, start=1):
        null = rows_with(survey.tables["null_attention"], layer=layer, head=head)["value"].iloc[0]
        role, also = rows_with(survey.tables["roles"], layer=layer, head=head)[["role", "also"]].iloc[0]
        known_as = f"{role}, also {also}" if also else f"{role}"
        rows: list[Sequence[Words]] = [
            [str(row["rank"] + 1), f"{row['value']:.2f}", _mark_pair(row)]
            for row in rows_with(exemplars, layer=layer, head=head).to_dict("records")
        ]
        yield from under(
            f"Table {number}: layer {layer}, head {head}",
            Paragraph(f"Null attention {null:.2f}. Role over the corpus: {known_as}."),
            Table(["rank", "weight", "sentence"], rows),
        )


def tables_of(
    survey: Survey, heads: pd.DataFrame, examples: pd.DataFrame, exemplars: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """The tables behind the figures, small enough to be kept with the report; the survey has all there is."""
    found = {
        "fig04_example_heads": examples,
        "heads": heads,
        "distance_by_layer": survey["distance"].by_layer(),
        "entropy_by_layer": survey["entropy"].by_layer(),
        "null_attention_by_layer": survey["null_attention"].by_layer(),
        "tables_1_to_3_exemplars": exemplars.drop(columns=["tokens"]),
    }
    if "part_of_speech" in survey:
        found["part_of_speech"] = survey["part_of_speech"].result()
    if "dependency_alignment" in survey:
        alignment = survey["dependency_alignment"].by_layer()
        found["dependency_alignment_by_layer"] = alignment[alignment["relation"] == "any"]
        found["dependency_type_by_layer"] = survey["dependency_type"].by_layer()
        found["dependency_by_distance"] = survey["dependency_by_distance"].result()
    return found


# The figures.


EXAMPLE_TAGS = ("PROPN", "NOUN", "VERB", "PRON", "DET", "ADP", "PUNCT", "CCONJ")
DIRECTIONS = {
    "head_to_dependent": ("the attending token is the head", "a"),
    "dependent_to_head": ("the attended token is the head", "b"),
    "either": ("either token is the head", "c"),
}
SHARE = "share of attention"
FARTHEST = 30
"""The curve of linked pairs is drawn up to so many tokens; there is next to nothing behind."""


def null_attention(survey: Survey) -> Iterator[Block]:
    """Fig. 5."""
    plot = head_map(survey.tables["null_attention"], label="share of null attention")
    words = (
        "The share of each head's attention that rests on null tokens. In the paper: little in the first two layers, "
        "57% on average, above 97% for some heads."
    )
    yield from under("Figure 5: null attention", Figure("fig05_null_attention", plot, words))


def parts_of_speech(survey: Survey) -> Iterator[Block]:
    """Fig. 6, 7, A.1 and A.2."""
    if "part_of_speech" not in survey:
        return
    table = survey.tables["part_of_speech"]
    for direction, number, all_number, finding in (
        ("to", 6, 1, "proper nouns draw attention in the last three layers, determiners in the first four"),
        ("from", 7, 2, "the first layers are roughly uniform; the top ten heads from punctuation are in the last six"),
    ):
        used = tags_in_use(survey, direction)
        some = [tag for tag in EXAMPLE_TAGS if tag in used]
        yield Heading(f"Figures {number} and A.{all_number}: attention {direction} each part of speech", 2)
        if some and set(some) != set(used):
            plot = head_maps(_by(table, direction, some), label=f"{SHARE} {direction} the tag")
            yield Figure(f"fig{number:02d}_tags_{direction}", plot, f"Some tags. In the paper {finding}.")
        plot = head_maps(_by(table, direction, used), label=f"{SHARE} {direction} the tag")
        words = f"All tags in use, each on its own scale. In the paper {finding}."
        yield Figure(f"figA{all_number}_all_tags_{direction}", plot, words)


def _by(table: pd.DataFrame, direction: str, tags: Sequence[str]) -> dict[str, pd.DataFrame]:
    return {tag: rows_with(table, direction=direction, tag=tag) for tag in tags}


def dependencies(survey: Survey) -> Iterator[Block]:
    """Fig. 8 and 9."""
    if "dependency_alignment" not in survey:
        return
    by_layer = survey["dependency_alignment"].by_layer()
    yield Heading("Figure 8: attention along dependency relations, by layer", 2)
    for direction, (meaning, letter) in DIRECTIONS.items():
        rows = rows_labelled(by_layer, "dependency_alignment", {"direction": direction, "relation": "any"})
        plot = layer_bars(rows, label=SHARE, baseline=float(rows["chance"].iloc[0]), baseline_label="pairs of tokens")
        words = f"({letter}) {meaning.capitalize()}. The line is the share of token pairs that are linked."
        if direction == "either":
            words += " In the paper the middle layers are highest."
        yield Figure(f"fig08{letter}_{direction}", plot, words)
    types = survey["dependency_type"].by_layer()
    types = types[types["relation"].isin(relations_in_use(survey))].sort_values(["relation", "layer"])
    words = (
        "The share of attention to tokens by their relation to their own head, each on its own scale. In the paper "
        "subjects rise with depth; aux, cc, det, expl and neg fall."
    )
    figure = Figure("fig09_dependency_types", layer_bars_by_label(types, "relation", label=SHARE), words)
    yield from under("Figure 9: which dependents are attended to, by layer", figure)


def distances(survey: Survey) -> Iterator[Block]:
    """Fig. 10 to 12, and the relations between them."""
    distance, entropy = survey.tables["distance"], survey.tables["entropy"]
    plot = head_map(survey.tables["variability"], label="variability")
    words = "How much a head's attention varies from text to text: 0 is bound to position, 1 to content. In the paper "
    words += "the heads of the first layers vary least."
    yield from under("Figure 10: variability", Figure("fig10_variability", plot, words))
    by_head = head_map(distance, label="mean distance (tokens)")
    by_layer = layer_bars(survey["distance"].by_layer(), label="mean distance (tokens)")
    words = "By layer. In the paper least in layers 2–4, greatest in the deepest."
    yield from under(
        "Figure 11: how far heads look",
        Figure("fig11a_distance", by_head, "By head. In the paper the standard deviation over heads is 3.6 tokens."),
        Figure("fig11b_distance_by_layer", by_layer, words),
    )
    plot, words = head_map(entropy, label="entropy (nats)"), "In the paper many heads of layers 0 and 1 are broad."
    yield from under("Figure 12: how broadly heads look", Figure("fig12_entropy", plot, words))
    plot, words = (
        distance_against_entropy(distance, entropy),
        "One dot for each head. In the paper r = 0.61 (p < 0.001).",
    )
    figure = Figure("distance_against_entropy", plot, words)
    yield from under("Distance against entropy and against alignment", figure)
    if "dependency_alignment" in survey:
        aligned = rows_labelled(survey.tables["dependency_alignment"], "dependency_alignment", EITHER)
        plot = heads_against(distance, aligned, "mean distance (tokens)", "dependency alignment")
        words = "One dot for each head. In the paper r = -0.73 (p < 0.001)."
        yield Figure("distance_against_alignment", plot, words)
        near = survey.tables["dependency_by_distance"].query("distance <= @FARTHEST")
        plot = curve(near, "distance", "value", "distance (tokens)", "share of pairs linked")
        words = "What the corpus itself says. In the paper 0.42 at 1 token, 0.07 at 5 and 0.02 at 10."
        yield from under("Dependencies by distance", Figure("dependency_by_distance", plot, words))


FIGURES = (null_attention, parts_of_speech, dependencies, distances)
"""In the paper's order."""


# Single heads that show what the paper's examples show: Fig. 4, and the exemplars of Tables 1 to 3.


HEAD = ["layer", "head"]
KINDS = {"same": "current token", "evenness": "broad", "repeated": "repeated words"}
SHOWN = 3
AWAKE = 0.5
"""The share of rows that are not mostly null, of a head that is called broad."""


def heads_table(survey: Survey) -> pd.DataFrame:
    """One row for each head with every figure that has one: what the maps show, side by side."""
    tables = survey.tables
    columns = {name: tables[name] for name in ("null_attention", "distance", "entropy", "variability")}
    if "dependency_alignment" in survey:
        columns["alignment"] = rows_labelled(tables["dependency_alignment"], "dependency_alignment", EITHER)
    heads = tables["null_attention"][HEAD]
    for name, table in columns.items():
        renamed = table[[*HEAD, "value", "error"]].rename(columns={"value": name, "error": f"{name}_error"})
        heads = heads.merge(renamed, how="left", on=HEAD)
    heads = heads.merge(tables["entropy"][[*HEAD, "evenness", "rows_share"]], how="left", on=HEAD)
    patterns = tables["patterns"].pivot_table(index=HEAD, columns="pattern", values="value", dropna=False)
    heads = heads.merge(patterns[["previous", "same", "repeated"]].reset_index(), how="left", on=HEAD)
    return heads.merge(tables["roles"][[*HEAD, "role"]], how="left", on=HEAD)


def example_heads(heads: pd.DataFrame) -> pd.DataFrame:
    """The head that is most of each kind, with its figures (Fig. 4)."""
    rows = []
    for column, kind in KINDS.items():
        # what is left of a head at rest says little of how broad it is
        awake = heads[(heads["rows_share"] >= AWAKE) | (column != "evenness")]
        if awake[column].notna().any():
            best = awake.loc[awake[column].idxmax()]
            rows.append({"kind": kind, "share_of_pattern": best[column], **best.to_dict()})
    columns = "kind layer head share_of_pattern null_attention variability distance entropy alignment".split()
    table = pd.DataFrame(rows)
    return table[[name for name in columns if name in table]]


def example_block(examples: pd.DataFrame) -> Table:
    """Fig. 4 as a table of the report."""
    measures = [name for name in examples if name not in {"kind", "layer", "head"}]
    papers = dict(zip(KINDS.values(), paper.EXAMPLES.values(), strict=True))
    rows = [
        [
            row["kind"],
            f"layer {row['layer']}, head {row['head']}",
            *(f"{row[name]:.2f}" for name in measures),
            papers[row["kind"]],
        ]
        for row in examples.to_dict("records")
    ]
    return Table(["pattern", "head", *(name.replace("_", " ") for name in measures), "in the paper"], rows)


def specific_heads(survey: Survey) -> list[tuple[int, int]]:
    """Three heads that rest most of the time and, in their exemplars, give one token nearly everything.

    These are the paper's own heads if this is the paper's own model. Heads that attend to the attending token itself
    show nothing and are passed over, and each layer has one head at most.
    """
    card = survey.card
    if str(card["model"]["name"]).rpartition("/")[2] == "gpt2" and (card["layers"], card["heads"]) == (12, 12):
        return list(paper.HEADS)
    best = survey.tables["exemplars"]
    best = best[best["rank"] < SHOWN]
    itself = best.assign(itself=best["query"] == best["key"]).groupby(HEAD)["itself"].any()
    scores = best.groupby(HEAD)["value"].mean().rename("weight").reset_index()
    scores = scores.merge(survey.tables["null_attention"][[*HEAD, "value"]], on=HEAD)
    scores = scores.merge(itself.reset_index(), on=HEAD)
    scores = scores[~scores["itself"]].assign(score=lambda rows: rows["weight"] + rows["value"])
    ranked = scores.sort_values("score", ascending=False, kind="stable").drop_duplicates("layer").head(SHOWN)
    return sorted((int(layer), int(head)) for layer, head in ranked[HEAD].to_numpy())


def exemplars_of(survey: Survey, heads: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """The first exemplars of some heads, with the pair of tokens."""
    table = survey.tables["exemplars"]
    first = table[table["rank"] < SHOWN]
    asked = [rows_with(first, layer=layer, head=head) for layer, head in heads]
    columns = ["layer", "head", "rank", "value", "query_token", "key_token", "tokens", "text", "query", "key"]
    return pd.concat([table[:0], *asked])[columns].reset_index(drop=True)


def _mark_pair(row: dict[str, object]) -> Words:
    """The sentence with the attending token strong and the attended one emphasised."""
    tokens = add_spaces([str(token) for token in row["tokens"]], str(row["text"]))  # type: ignore[attr-defined]
    tokens, query, key = shorten_around(tokens, int(str(row["query"])), int(str(row["key"])))
    return [
        Strong(token) if place == query else Emphasis(token) if place == key else token
        for place, token in enumerate(tokens)
    ]


# What differs between genres: alignment and distance by layer, side by side.


def _side_by_side(surveys: Mapping[str, Survey], statistic: str, labels: Mapping[str, str]) -> pd.DataFrame:
    """The figures of each layer, one genre below the other."""
    tables = [
        rows_labelled(found[statistic].by_layer(), statistic, labels).assign(genre=name)
        for name, found in surveys.items()
    ]
    return pd.concat(tables, ignore_index=True)


def genre_figures(surveys: Mapping[str, Survey]) -> tuple[list[Figure], dict[str, pd.DataFrame]]:
    """The figures of the comparison, and the tables behind them."""
    distance = _side_by_side(surveys, "distance", {})
    tables = {"distance_by_layer": distance}
    plot = layer_bars_by_label(distance, "genre", label="mean distance (tokens)", shared=True)
    figures = [Figure("distance_by_layer", plot, "Mean distance by layer in each genre, on one scale (Fig. 11).")]
    if all("dependency_alignment" in found for found in surveys.values()):
        alignment = _side_by_side(surveys, "dependency_alignment", EITHER)
        tables["dependency_alignment_by_layer"] = alignment
        plot = layer_bars_by_label(alignment, "genre", label="share of attention", shared=True)
        words = "Attention along dependency relations by layer in each genre, either direction, on one scale (Fig. 8)."
        figures.insert(0, Figure("dependency_alignment_by_layer", plot, words))
    return figures, tables


def evidence_of(attempt: Attempt[Scale, Options]) -> Survey | Editions:
    """The survey, or those of all genres with what differs between them."""
    surveys: dict[str, Survey] = attempt["survey"]
    if not attempt.options.by_genre:
        return surveys[""]
    card = next(iter(surveys.values())).card
    corpus = str(card["corpus"]).rpartition(",")[0]
    figures, tables = genre_figures(surveys)
    return Editions(surveys, f"{SHORT_TITLE} on {card['model']['name']}, {corpus}, by genre", figures, tables)
