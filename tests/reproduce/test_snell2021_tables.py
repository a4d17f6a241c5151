"""The tables of agreements on figures made by hand: the highest checkpoint, the star, and the paper's row beneath."""

from itertools import pairwise

import pandas as pd
import pytest

from attnscope.reproduce.document import Heading, Table
from attnscope.reproduce.snell2021.figures import agreement_tables

CURVES = {
    "attention_uniform": (0.1, 0.5, 0.3),
    "uniform_proxy": (0.2, 0.25, 0.4),
    "attention_frozen": (0.15, 0.12, 0.11),
    "uniform_logistic": (0.3, 0.35, 0.2),
    "attention_counts": (0.21, 0.0, 0.0),
    "counts_uniform": (0.1, 0.33, 0.2),
    "proxy_counts": (0.44, 0.0, 0.0),
}


def measured_tables() -> dict[str, pd.DataFrame]:
    agreements = pd.DataFrame(
        {
            "data": data,
            "part": part,
            "seeds": seeds,
            "pair": pair,
            "step": step,
            # the other part and the other variant are higher, and must not be told
            "agreement": value + (part == "training") * 0.01 + (seeds == "same") * 0.02,
            "chance": 0.06,
        }
        for data in ("sst", "multi30k")
        for part in ("validation", "training")
        for seeds in ("two", "same")
        for pair, values in CURVES.items()
        if (data == "multi30k") == ("counts" in pair) or pair in ("attention_uniform", "uniform_proxy")
        for step, value in enumerate(values)
    )
    contexts = pd.DataFrame(
        {
            "data": "sst",
            "part": part,
            "seeds": seeds,
            "by": by,
            "measure": "accuracy",
            "pair": pair,
            "agreement": max(CURVES[pair])
            + (part == "training") * 0.01
            + (seeds == "same") * 0.02
            - (by == "tau") * 0.1,
            "performance": 0.7 + (by == "tau") * 0.05,
            "reached": pair == "attention_uniform",
            "best": 0.8,
        }
        for part in ("validation", "training")
        for seeds in ("two", "same")
        for by in ("agreement", "tau")
        for pair in ("attention_uniform", "uniform_proxy")
    )
    return {"agreements": agreements, "contexts": contexts}


@pytest.fixture(scope="module")
def tables() -> dict[str, Table]:
    blocks = list(agreement_tables(measured_tables()))
    return {
        block.text: after
        for block, after in pairwise(blocks)
        if isinstance(block, Heading) and isinstance(after, Table)
    }


def test_the_highest_checkpoint_stands_above_the_papers(tables) -> None:
    here, paper = tables["Tables 2 and 5: agreement on validation data"].rows
    assert list(here) == ["SST", "here", "50.0", "40.0", "–", "–", "6.0", "70.0", "70.0*", "–", "–", "80.0"]
    assert list(paper)[:7] == ["", "paper", "19.9", "33.6", "22.4", "25.3", "8.4"]
    assert list(paper)[7:] == ["78.2", "83.5*", "78.2", "82.4", "83.5"]  # with the star that the paper prints


def test_ranks_have_no_chance_and_training_its_own_figures(tables) -> None:
    ranks = tables["Table 3: Kendall's τ"].rows[0]
    assert list(ranks)[2:9] == ["40.0", "30.0", "–", "–", "0.0", "75.0", "75.0*"]
    assert list(tables["Table 7: on a sample of the training data"].rows[0])[2:4] == ["51.0", "41.0"]
    assert not [heading for heading in tables if "BLEU" in heading]


def test_what_learns_alone_and_what_counts_alone(tables) -> None:
    rows = {heading: [list(row) for row in table.rows] for heading, table in tables.items()}
    assert rows["Table 10: attention that learns alone"] == [["SST", "15.0", "50.0", "14"]]
    assert rows["Table 11: logistic regression"] == [["SST", "35.0", "40.0", "46"]]
    assert rows["Counts alone: IBM Model 1"] == [["Multi30k", "0", "21.0", "33.0", "44.0"]]


def test_nothing_measured_gives_no_table() -> None:
    blocks = agreement_tables({})
    assert not [block for block in blocks if isinstance(block, Table)]
