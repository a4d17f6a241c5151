"""Synthetic tables in the shape that a survey gives, small or large, with whatever a hostile corpus may hold."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

TAGS = ["ADJ", "ADP", "DET", "NOUN", "PRON", "PROPN", "PUNCT", "VERB"]
RELATIONS = ["any", "nsubj", "obj", "det", "amod", "advmod", "case", "conj", "nsubj:pass", "punct"]
PATTERNS = ["previous", "next", "same", "first", "special", "punctuation", "repeated", "induction"]
DIRECTIONS = ["head_to_dependent", "dependent_to_head", "either"]
ROLES = [
    "previous token", "first token (sink)", "nsubj → its verb", "broad", "punctuation", "induction", "same token",
    "det ← its noun", "repeated token", "proper nouns",
]  # fmt: skip
HOSTILE = ["<script>throw 1</script>", "</script>", '"', "'&amp;", " שלום", " 👩‍👩‍👧", "\u202e evil", " x" * 40]


def labelled(layers: int, heads: int, seed: int, columns: dict[str, list[str]]) -> pd.DataFrame:
    """One row for each head and each combination of labels, with values that lean on layer and head."""
    random = np.random.default_rng(seed)
    levels = [range(layers), range(heads), *columns.values()]
    table = pd.MultiIndex.from_product(levels, names=["layer", "head", *columns]).to_frame(index=False)
    table["value"] = random.beta(0.8, 5, len(table)) * (0.4 + 0.6 * np.sin(np.pi * (table["layer"] + 1) / (layers + 1)))
    table["error"] = 0.02 * table["value"] + 0.0003
    return table


def survey_tables(layers: int = 6, heads: int = 8, relations: int = len(RELATIONS)) -> dict[str, pd.DataFrame]:
    names = (RELATIONS + [f"relation{number}" for number in range(relations)])[:relations]
    speech = labelled(layers, heads, 0, {"direction": ["to", "from"], "tag": TAGS})
    speech["chance"] = speech["tag"].map({tag: 0.04 + 0.03 * place for place, tag in enumerate(TAGS)})
    alignment = labelled(layers, heads, 1, {"direction": DIRECTIONS, "relation": names})
    alignment["chance"] = 0.04
    alignment["best_offset"] = -1
    alignment["offset_value"] = alignment["value"] * 0.8
    alignment["focus"] = np.minimum(1, alignment["value"] * 1.5)
    alignment["focus_offset"] = -2
    alignment["focus_offset_value"] = alignment["value"] * 0.7
    kind = labelled(layers, heads, 2, {"relation": names[1:]}).assign(chance=0.05)
    distance = labelled(layers, heads, 3, {})
    distance["value"] = 1 + 15 * distance["value"] + distance["layer"] / 4
    distance["signed"] = distance["value"] * np.where(distance["head"] % 2, 0.9, -0.3)
    entropy = labelled(layers, heads, 4, {})
    entropy["value"] = 0.3 + 0.15 * distance["value"] + entropy["value"]
    entropy["rows"], entropy["rows_share"] = 1200, 0.6
    entropy.loc[entropy.index.isin([1, 5]), ["value", "error"]] = np.nan
    variability = labelled(layers, heads, 5, {}).assign(sentences=900)
    null = labelled(layers, heads, 6, {})
    null["value"] = np.clip(null["value"] * 3, 0, 0.99)
    patterns = labelled(layers, heads, 7, {"pattern": PATTERNS}).assign(chance=0.03)
    far = np.arange(1, 21)
    curve = pd.DataFrame(
        {"distance": far, "value": 0.42 / far, "error": 0.004, "pairs": 5000 // far, "linked": 2100 // far**2}
    )
    return {
        "part_of_speech": speech, "dependency_alignment": alignment, "dependency_type": kind, "distance": distance,
        "entropy": entropy, "variability": variability, "null_attention": null, "patterns": patterns,
        "exemplars": exemplars(layers, heads), "dependency_by_distance": curve, "roles": roles(layers, heads),
    }  # fmt: skip


def exemplars(layers: int, heads: int, each: int = 4) -> pd.DataFrame:
    random = np.random.default_rng(8)
    plain = "The| key| to| the| cab|inets| on| the| wall| was| lost|,| and| nobody| noticed| it|.".split("|")
    rows = []
    for layer in range(layers):
        for head in range(heads):
            for rank in range(each):
                tokens = plain if rank else HOSTILE + plain
                query = int(random.integers(3, len(tokens)))
                key = int(random.integers(0, query))
                rows.append(
                    {
                        "layer": layer, "head": head, "rank": rank, "value": 0.97 - 0.05 * rank, "error": float("nan"),
                        "query": query, "key": key, "query_token": tokens[query], "key_token": tokens[key],
                        "tokens": tokens, "text": "".join(tokens),
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def roles(layers: int, heads: int) -> pd.DataFrame:
    table = labelled(layers, heads, 9, {})
    random = np.random.default_rng(10)
    weights = 1 / np.arange(1, len(ROLES) + 1)
    table["role"] = random.choice(ROLES, len(table), p=weights / weights.sum())
    table["value"] = random.uniform(0.4, 0.95, len(table))
    table["evidence"] = [f"{value:.0%} of its attention goes there, against 4% by chance." for value in table["value"]]
    table["also"] = np.where(table["head"] % 3 == 0, "punctuation", "")
    return table


def by_layer(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """What `survey[name].by_layer()` gives for each statistic that has layers and heads."""
    made = {}
    for name, table in tables.items():
        if "head" not in table or name in {"exemplars", "roles"}:
            continue
        labels = [column for column in ("direction", "tag", "relation", "pattern") if column in table]
        grouped = table.groupby(["layer", *labels], sort=False, as_index=False)
        made[name] = grouped.agg(value=("value", "mean"), mean_of_heads=("value", "mean"), error=("error", "mean"))
    return made


CARD = {
    "model": "a <b>small</b> model", "layers": 6, "heads": 8, "corpus": "ewt dev", "sentences": 2001, "tokens": 25148,
    "skipped": {"one token covers several words": 3}, "null": "first", "statistics": ["distance"], "attnscope": "0.1.0",
}  # fmt: skip


@pytest.fixture(scope="session")
def make_tables() -> Callable[..., dict[str, pd.DataFrame]]:
    """Make tables of any size: `make_tables(layers, heads, relations)`."""
    return survey_tables


@pytest.fixture(scope="session")
def make_by_layer() -> Callable[[dict[str, pd.DataFrame]], dict[str, pd.DataFrame]]:
    return by_layer


@pytest.fixture
def tables() -> dict[str, pd.DataFrame]:
    return survey_tables()


@pytest.fixture
def card() -> dict[str, object]:
    return dict(CARD)
