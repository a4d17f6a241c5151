"""Penn's tags told from parts of speech and features."""

from collections import Counter
from pathlib import Path

import pytest

from attnscope.syntax.from_conllu import penn_tag
from attnscope.syntax.lines import numbered_lines


@pytest.mark.parametrize(
    ("part", "features", "tag"),
    [
        ("NOUN", {"Number": "Sing"}, "NN"),
        ("NOUN", {"Number": "Plur"}, "NNS"),
        ("NOUN", {"Number": "Ptan"}, "NNS"),
        ("PROPN", {"Number": "Plur"}, "NNPS"),
        ("VERB", {"VerbForm": "Fin", "Tense": "Pres", "Person": "1", "Number": "Sing"}, "VBP"),
        ("VERB", {"VerbForm": "Fin", "Tense": "Pres", "Person": "3", "Number": "Sing"}, "VBZ"),
        ("VERB", {"VerbForm": "Fin", "Tense": "Past"}, "VBD"),
        ("VERB", {"VerbForm": "Part", "Tense": "Past"}, "VBN"),
        ("VERB", {"VerbForm": "Part", "Tense": "Pres"}, "VBG"),
        ("VERB", {"VerbForm": "Ger"}, "VBG"),
        ("VERB", {"VerbForm": "Fin", "Mood": "Imp"}, "VB"),
        ("AUX", {"VerbForm": "Fin"}, "MD"),
        ("ADJ", {"Degree": "Cmp"}, "JJR"),
        ("ADV", {"Degree": "Sup"}, "RBS"),
        ("ADJ", {"Degree": "Pos"}, "JJ"),
        ("DET", {}, "DT"),
        ("KEY", {}, "KEY"),
    ],
)
def test_tags(part: str, features: dict[str, str], tag: str) -> None:
    assert penn_tag(part, features) == tag


def test_nouns_and_verbs_of_the_real_treebank(ewt: Path) -> None:
    """The tags that agreement asks for are those of the annotators, all but a few."""
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for _, line in numbered_lines(ewt):
        columns = line.split("\t")
        if len(columns) == 10 and columns[4] in {"NN", "NNS", "VBZ", "VBP", "VBD", "MD"}:
            features = dict(pair.split("=") for pair in columns[5].split("|")) if columns[5] != "_" else {}
            asked[columns[4]] += 1
            right[columns[4]] += penn_tag(columns[3], features) == columns[4]
    for tag, number in asked.items():
        assert right[tag] / number > 0.95, tag
