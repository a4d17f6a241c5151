"""A saved survey or trust table from a stranger: what does not fit is refused, by what is wrong with it."""

import json

import pandas as pd
import pytest

from attnscope import BadInput, Survey, Trust

CARD = {
    "model": {"name": "tiny", "fingerprint": "0"}, "corpus": "demo", "statistics": ["patterns"], "null": [0],
    "layers": 2, "heads": 2, "sentences": 1, "tokens": 1, "skipped": {},
}  # fmt: skip
ROWS = {"layer": [0, 1], "head": [1, 0], "pattern": ["next", "next"], "value": [0.5, 0.25]}


def saved(folder, card, rows):
    (folder / "tables").mkdir()
    (folder / "survey.json").write_text(json.dumps({**CARD, **card}))
    pd.DataFrame({**ROWS, **rows}).to_parquet(folder / "tables" / "patterns.parquet")
    return folder


def test_what_fits_is_read(tmp_path):
    assert Survey.load(saved(tmp_path, {"more": [1]}, {}))["patterns"].result()["value"].tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    ("card", "rows", "sentence"),
    [
        ({"layers": "2"}, {}, "layers must be a whole number, not '2'"),
        ({"model": "tiny"}, {}, "model must be"),
        ({"skipped": [1]}, {}, "skipped must be a"),
        ({"left_out": None}, {}, "left_out must be a"),
        ({"statistics": ["../patterns"]}, {}, r"statistics\[0\] must be a name that fits"),
        ({"more": float("nan")}, {}, "it must be finite numbers only"),
        ({}, {"layer": [0, 5]}, "a layer that is not one of the 2 of its card"),
        ({}, {"head": [0.0, 1.0]}, "'head' holds double"),
        ({}, {"value": ["a", "b"]}, "'value' holds"),
        ({}, {"pattern": ["next", None]}, "the column pattern has a gap"),
        ({}, {"pattern": [["next"], ["next"]]}, "'pattern' holds list"),
        ({"layers": 10**6, "heads": 10**6}, {}, "a map of more than"),
    ],
)
def test_a_survey_that_does_not_fit_is_refused(tmp_path, card, rows, sentence):
    with pytest.raises(BadInput, match=sentence):
        Survey.load(saved(tmp_path, card, rows))


def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path):
    many = 300_000
    rows = {"layer": [0] * many, "head": [0] * many, "pattern": ["x" * 1000] * many, "value": [0.5] * many}
    folder = saved(tmp_path, {}, rows)
    assert (folder / "tables" / "patterns.parquet").stat().st_size < 100_000
    with pytest.raises(BadInput, match="more than 200 MB of text"):
        Survey.load(folder)


@pytest.mark.parametrize(
    ("table", "card", "sentence"),
    [
        ("", "{}", "its columns are not method, layer"),
        ("a,b\n1,2\n", "{}", "its columns are not method, layer"),
        ("HEADER\nraw,,gradient,spearman,without,all,x,,,3,,,,\n", "{}", "could not convert"),
        ("HEADER\nraw,,gradient,spearman,without,all,inf,,,3,,,,\n", "{}", "value is not finite"),
        ("HEADER\nraw,,gradient,spearman,without,all,1,,,-3,,,,\n", "{}", "texts is -3"),
        ("HEADER\nraw,1,gradient,spearman,without,all,1,,,3,,,,\n", "{}", "none over all texts"),
        ("HEADER\nraw,,gradient,spearman,without,all,1,,,3,,,,\n", "[" * 100_000, "recursion limit"),
        ("HEADER\nraw,,gradient,spearman,without,all,1,,,3,,,,\n", '{"model": 1}', "model must be a text, not 1"),
    ],
)
def test_a_trust_table_that_does_not_fit_is_refused(tmp_path, table, card, sentence):
    columns = "method,layer,against,measure,special,bucket,value,low,high,texts,baseline,above,above_low,above_high"
    (tmp_path / "trust.csv").write_text(table.replace("HEADER", columns))
    (tmp_path / "trust.json").write_text(card)
    with pytest.raises(BadInput, match=sentence):
        Trust.load(tmp_path)
