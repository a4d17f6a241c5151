"""Single heads that show what the paper's examples show: Fig. 4, and the exemplars of Tables 1 to 3."""

from collections.abc import Sequence

import pandas as pd

from ...surveying import Survey
from ...views.exemplars import shortened, spaced
from ..document import Emphasis, Strong, Table, Words
from .dependencies import EITHER
from .evidence import chosen

HEAD = ["layer", "head"]
KINDS = {"same": "current token", "evenness": "broad", "repeated": "repeated words"}
PAPER_EXAMPLES = {
    "same": "layer 0: alignment 0.04",
    "evenness": "layer 0: alignment 0.10",
    "repeated": "layer 5, head 1: distance 14.2, entropy 0.41",
}
PAPER_HEADS = ((10, 10), (11, 2), (11, 10))
"""The heads of Tables 1 to 3, in GPT-2 small."""
SHOWN = 3
AWAKE = 0.5
"""The share of rows that are not mostly null, of a head that is called broad."""


def heads_table(survey: Survey) -> pd.DataFrame:
    """One row for each head with every figure that has one: what the maps show, side by side."""
    tables = survey.tables
    columns = {
        "null_attention": tables["null_attention"],
        "distance": tables["distance"],
        "entropy": tables["entropy"],
        "variability": tables["variability"],
    }
    if "dependency_alignment" in survey:
        columns["alignment"] = chosen(tables["dependency_alignment"], "dependency_alignment", dict(EITHER))
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
    kept = "kind layer head share_of_pattern null_attention variability distance entropy alignment".split()
    table = pd.DataFrame(rows)
    return table[[name for name in kept if name in table]]


def example_block(examples: pd.DataFrame) -> Table:
    """Fig. 4 as a table of the report."""
    measures = [name for name in examples if name not in {"kind", "layer", "head"}]
    papers = dict(zip(KINDS.values(), PAPER_EXAMPLES.values(), strict=True))
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
        return list(PAPER_HEADS)
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
    asked = [(table["layer"] == layer) & (table["head"] == head) & (table["rank"] < SHOWN) for layer, head in heads]
    columns = ["layer", "head", "rank", "value", "query_token", "key_token", "tokens", "text", "query", "key"]
    return pd.concat([table[:0], *(table[mask] for mask in asked)])[columns].reset_index(drop=True)


def exemplar_block(exemplars: pd.DataFrame) -> Table:
    """The exemplars of one head as a table of the report."""
    rows = [[str(row["rank"] + 1), f"{row['value']:.2f}", _marked(row)] for row in exemplars.to_dict("records")]
    return Table(["rank", "weight", "sentence"], rows)


def _marked(row: dict[str, object]) -> Words:
    """The sentence with the attending token strong and the attended one emphasised."""
    tokens = spaced([str(token) for token in row["tokens"]], str(row["text"]))  # type: ignore[attr-defined]
    tokens, query, key = shortened(tokens, int(str(row["query"])), int(str(row["key"])))
    return [
        Strong(token) if place == query else Emphasis(token) if place == key else token
        for place, token in enumerate(tokens)
    ]
