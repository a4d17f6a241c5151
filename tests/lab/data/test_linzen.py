"""Linzen's own file and the subset of it, read from tiny files of exactly their form."""

import csv
import gzip
from pathlib import Path

import pytest

from attnscope.errors import BadInput
from attnscope.lab.data import AgreementExample, read_linzen, read_subset
from attnscope.lab.data.linzen import MarkedVerb

HEADER = (
    "sentence orig_sentence pos_sentence subj verb subj_pos has_rel has_nsubj verb_pos subj_index verb_index "
    "n_intervening last_intervening n_diff_intervening distance max_depth all_nouns nouns_up_to_verb"
).split()
ROWS = [
    [
        "the NN to the cabinets is `` rusty '' .",
        "the axolotl to the cabinets is `` rusty '' .",
        "DT NN TO DT NNS VBZ `` JJ '' .",
        *("axolotl", "is", "NN", "False", "False", "VBZ", "2", "6", "1", "NNS", "1", "4", "0"),
        "NN cabinets",
        "NN cabinets",
    ],
    [
        'five " foot men run .',
        'five " foot men run .',
        "CD '' NN NNS VBP .",
        *("men", "run", "NNS", "False", "False", "VBP", "4", "5", "0", "na", "0", "1", "0"),
        "foot men",
        "foot men",
    ],
]
EXAMPLES = [
    AgreementExample(("the", "NN", "to", "the", "cabinets"), "singular", 1, 1, "is"),
    AgreementExample(("five", '"', "foot", "men"), "plural", 0, 3, "run"),
]


def write_rows(path: Path, rows: list[list[str]], header: list[str] = HEADER) -> Path:
    """As their script does: csv with tabs, which quotes a field that has a quotation mark in it."""
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else path.open("w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([header, *rows])
    return path


@pytest.mark.parametrize("name", ["agr.tsv", "agr.tsv.gz"])
def test_linzens_file(tmp_path: Path, name: str) -> None:
    path = write_rows(tmp_path / name, ROWS)
    assert list(read_linzen(path)) == EXAMPLES


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("verb_pos", "VBD", "Line 2 .* verb tag 'VBD'"),
        ("verb_index", "x", "Line 2 .* not a whole number"),
        ("verb_index", "30", r"its verb at 30 of 10 words"),
        ("subj_index", "7", "its subject at 7 and its verb at 6"),
    ],
)
def test_a_bad_row_is_told_with_its_line(tmp_path: Path, column: str, value: str, message: str) -> None:
    row = list(ROWS[0])
    row[HEADER.index(column)] = value
    with pytest.raises(BadInput, match=message):
        list(read_linzen(write_rows(tmp_path / "agr.tsv", [row])))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no column verb_pos"):
        list(read_linzen(write_rows(tmp_path / "agr.tsv", [], [name for name in HEADER if name != "verb_pos"])))
    (tmp_path / "empty.tsv").write_text("")
    with pytest.raises(BadInput, match="not the file of Linzen"):
        list(read_linzen(tmp_path / "empty.tsv"))
    with pytest.raises(BadInput, match=r"Line 2 .* has 3 columns where the header has 18"):
        list(read_linzen(write_rows(tmp_path / "agr.tsv", [["a", "b", "c"]])))


TEXT = "the keys to the cabinet are rusty . <eos>\nwe are the fallen . <eos>\nmen wherein <eos>\nactors pass <eos>\n"
GOLD = "5\tare\tis\t1\n1\tAre\tIs\t0\n1\twherein\twherein\t0\n1\tpass\tpasses\t0\n"


def test_the_subset(tmp_path: Path) -> None:
    text, gold = tmp_path / "subset.text", tmp_path / "subset.gold.gz"
    text.write_text(TEXT)
    gold.write_bytes(gzip.compress(GOLD.encode()))
    assert list(read_subset(text, gold)) == [
        MarkedVerb(("the", "keys", "to", "the", "cabinet", "are", "rusty", "."), 5, "plural", 1),
        MarkedVerb(("we", "are", "the", "fallen", "."), 1, "plural", 0),
        MarkedVerb(("actors", "pass"), 1, "plural", 0),
    ]


@pytest.mark.parametrize(
    ("text", "gold", "message"),
    [
        (TEXT, GOLD + "1\tis\tare\t0\n", "not as many lines: line 5"),
        ("dogs bark <eos>\n", "1\tbark\tbarks\n", "Line 1 .* is not a position"),
        ("dogs bark <eos>\n", "x\tbark\tbarks\t0\n", "Line 1 .* is not a position"),
        ("dogs bark <eos>\n", "0\tbark\tbarks\t0\n", "Line 1 .* the verb 'bark' at 0"),
        ("dogs bark <eos>\n", "7\tbark\tbarks\t0\n", "Line 1 .* the verb 'bark' at 7"),
    ],
)
def test_a_subset_that_does_not_fit(tmp_path: Path, text: str, gold: str, message: str) -> None:
    (tmp_path / "t").write_text(text)
    (tmp_path / "g").write_text(gold)
    with pytest.raises(BadInput, match=message):
        list(read_subset(tmp_path / "t", tmp_path / "g"))
