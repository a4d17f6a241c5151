"""Sentiment trees: the labels of sentences, phrases and words."""

import gzip
import os
from pathlib import Path

import pytest

from attnscope.errors import BadInput
from attnscope.lab.data.sst_trees import Phrase, parse_tree, read_sentiment_trees, tree_splits

LINE = "(3 (2 (2 The) (2 film)) (4 (2 (2 is) (1 n't)) (4 (3 -LRB-) (0 good\\/bad))))"


def test_every_phrase_has_its_words_and_its_label() -> None:
    tree = parse_tree(LINE)
    assert tree.words == ("The", "film", "is", "n't", "(", "good/bad")
    assert tree.label == 3
    assert tree.word_labels == (2, 2, 2, 1, 3, 0)
    assert tree.phrases == (
        *(Phrase(0, 1, 2), Phrase(1, 2, 2), Phrase(0, 2, 2)),
        *(Phrase(2, 3, 2), Phrase(3, 4, 1), Phrase(2, 4, 2)),
        *(Phrase(4, 5, 3), Phrase(5, 6, 0), Phrase(4, 6, 4), Phrase(2, 6, 4)),
        Phrase(0, 6, 3),
    )


def test_a_sentence_of_one_word_and_a_space_that_does_not_break() -> None:
    assert parse_tree("(4 Wow)").word_labels == (4,)
    assert parse_tree("(2 (2 8\xa01\\/2) (3 !))").words == ("8\xa01/2", "!")
    # a node around a single word: the label of the word is that next to it
    assert parse_tree("(3 (1 no))").word_labels == (1,)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "good",
        "(5 good)",
        "(3 good",
        "(3 good))",
        "(3 good) (2 bad)",
        "(3)",
        "(3 ())",
        "(3 (2 a) b)",
        ")(",
        "(2 a b)",
    ],
)
def test_a_damaged_tree_is_refused(line: str) -> None:
    with pytest.raises(BadInput, match="no tree"):
        parse_tree(line)


def test_splits_of_a_folder_and_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(f"{LINE}\n(4 Wow)\n")
    (tmp_path / "dev.txt.gz").write_bytes(gzip.compress(b"(0 Ugh)\n"))
    with pytest.raises(BadInput, match=r"test\.txt"):
        tree_splits(tmp_path)
    (tmp_path / "test.txt").write_text("(2 Well)\n(2 oh\n")
    with pytest.raises(BadInput, match=r"Line 2 of .*test\.txt"):
        tree_splits(tmp_path)
    (tmp_path / "test.txt").write_text("(2 Well)\n")
    splits = tree_splits(tmp_path)
    assert {split: [tree.label for tree in trees] for split, trees in splits.items()} == {
        "train": [3, 4],
        "dev": [0],
        "test": [2],
    }
    with pytest.raises(BadInput, match="no sentiment trees"):
        tree_splits("imdb")


def test_the_treebank_itself() -> None:
    path = Path(os.environ.get("ATTNSCOPE_DATA", "nowhere")) / "sst" / "dev.txt.gz"
    if not path.is_file():
        pytest.skip("the Stanford Sentiment Treebank is not in $ATTNSCOPE_DATA")
    trees = list(read_sentiment_trees(path))
    assert len(trees) == 1101
    assert [sum(tree.label == label for tree in trees) for label in range(5)] == [139, 289, 229, 279, 165]
    assert trees[0].words[:5] == ("It", "'s", "a", "lovely", "film")
    assert trees[0].word_labels[:5] == (2, 2, 2, 3, 2)
