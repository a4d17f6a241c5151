"""The count tables of Figures 1, 4, 5 and 8, the facts at the top of a report, and the data sets that are brought."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from attnscope.errors import BadInput
from attnscope.lab.models.word_translation import WordTranslation
from attnscope.reproduce.snell2021.brought import brought_files, brought_pairs, brought_texts, missing_brought
from attnscope.reproduce.snell2021.claims import Evidence
from attnscope.reproduce.snell2021.counts import EXAMPLES, count_table, count_tables, translation_shares
from attnscope.reproduce.snell2021.disclosing import facts_of
from attnscope.reproduce.snell2021.paper import BROUGHT, SCALES, TABLE_5, TABLE_9, TITLES

BY_FIGURE = {example.figure: translation_shares(count_table(example.pairs)) for example in EXAMPLES}


def test_the_tables_are_those_the_paper_prints():
    five = BY_FIGURE[5]
    assert five.loc["great"].tolist() == [1, 0]
    assert five.loc["bad"].tolist() == [0, 1]
    assert five.loc["movie"].tolist() == [0.5, 0.5]
    assert (BY_FIGURE[4].to_numpy() == 0.25).all()
    eight = BY_FIGURE[8]
    assert eight.shape == (8, 8)
    assert (eight.iloc[:4, :4].to_numpy() == 0.25).all()
    assert (eight.iloc[:4, 4:].to_numpy() == 0).all()
    one = BY_FIGURE[1]
    assert (one.to_numpy().argmax(1) == range(4)).all()
    assert one.loc["Film"].tolist() == [0.25, 0.5, 0.0, 0.25]


def test_the_counts_are_those_of_ibm_model_1():
    pairs = EXAMPLES[0].pairs
    table = count_table(pairs)
    sources, targets = (
        [[list(names).index(word) for word in pair[side].split()] for pair in pairs]
        for side, names in ((0, table.index), (1, table.columns))
    )
    counts = WordTranslation.learned(sources, targets, outputs=len(table.columns)).counts.toarray()
    np.testing.assert_allclose(counts, table.to_numpy())


def test_the_figure_has_a_grid_for_each():
    plot = count_tables()
    assert [axes.images[0].get_array().shape for axes in plot.figure.axes] == [
        table.shape for table in BY_FIGURE.values()
    ]


def test_the_facts_tell_sizes_seeds_and_steps():
    tables = {
        "table_9": pd.DataFrame([{"data": "imdb", "train": 10_000, "validation": 800}]),
        "copying": pd.DataFrame(
            {"task": ["same", "same", "mixture"], "attention": "learned", "seed": [0, 1, 0], "step": [0, 200, 200]}
        ),
        "heads": pd.DataFrame({"contexts": ["mean"] * 2, "kind": "bad", "combination": [0, 1], "step": [0, 300]}),
        "performance": pd.DataFrame({"data": "imdb", "kind": "learned", "seed": [0, 1], "step": [0, 750]}),
    }
    facts = facts_of("cpu", ["copying"], Evidence(tables, {"yelp": "It is not here."}))
    assert facts["data"] == "IMDB 10,000 and 800"
    assert facts["seeds"] == "copying mixture 1, same 2; heads (mean of contexts) 2 bad; IMDB 2"
    assert facts["steps"] == "copying mixture 200, same 200; heads 300; IMDB 750"
    assert "IMDB 10,000 of 25,000" in facts["differs from the paper"]
    assert facts["not run"] == "Yelp"


def test_sst_has_the_papers_sizes():
    for scale in ("cpu", "paper"):
        chosen = SCALES[scale].classification.data["sst"]
        assert (chosen.train, chosen.validation) == (TABLE_9["sst"].train, TABLE_9["sst"].validation)


def test_every_data_set_that_is_brought_has_a_row_of_the_paper_and_says_why_it_is_not_run(tmp_path):
    assert set(BROUGHT) <= set(TITLES)
    assert set(BROUGHT) <= set(TABLE_5)
    reasons = dict(missing_brought(list(BROUGHT), tmp_path))
    assert set(reasons) == set(BROUGHT)
    assert "yelp/yelp_academic_dataset_review.json" in reasons["yelp"]
    with pytest.raises(BadInput, match=r"train\.de, train\.en, valid\.de, valid\.en"):
        brought_files("iwslt14", tmp_path)


def test_what_is_brought_is_read(tmp_path):
    (tmp_path / "yelp").mkdir()
    with gzip.open(tmp_path / "yelp" / "yelp_academic_dataset_review.json.gz", "wt") as file:
        for number in range(60):
            file.write(json.dumps({"stars": 1 + 4 * (number % 2), "text": f"good food number {number}"}) + "\n")
    texts = brought_texts("yelp", tmp_path)
    assert texts.name == "yelp"
    assert len(texts.train) + len(texts.test) == 60
    assert dict(missing_brought(["yelp"], tmp_path)) == {}


def test_pairs_that_are_brought_are_read(tmp_path):
    pytest.importorskip("sentencepiece")
    (tmp_path / "news_commentary").mkdir()
    lines = [f"house {word}\tcasa {word}x\n" for word in ("red blue old new big tall low far near wide").split()] * 8
    (tmp_path / "news_commentary" / "news-commentary-v14.it-pt.tsv").write_text("".join(lines))
    texts = brought_pairs("news_it_pt", tmp_path)
    assert (texts.name, texts.languages) == ("news_it_pt", ("it", "pt"))
    assert len(texts.train) + len(texts.dev) == 80
