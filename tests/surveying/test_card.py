"""What a survey says of itself besides its figures: what was left out, what was not, and how much was read."""

from pathlib import Path

from attnscope import Sentence, Survey, survey

TREE = {"heads": (-1, 0), "relations": ("root", "dep")}
ANNOTATED = Sentence(("the", "key"), ("DET", "NOUN"), **TREE)
UNTAGGED = Sentence(("the", "key"), **TREE)
BARE = Sentence(("the", "dogs", "see"))


def test_null_positions_beyond_every_sentence_are_told(small, tmp_path: Path) -> None:
    corpus = [["the", "key"], ["the", "dogs", "see"]]
    found = survey(small(), corpus, ["distance", "null_attention"], null=[0, 3, -4], out=tmp_path / "out")
    assert found.card["longest"] == 3
    (told,) = found.card["warnings"]
    assert told.startswith("Null attention at 3, -4 is beyond every sentence, of which the longest has 3 tokens")
    assert told in found.summary()
    assert Survey.load(tmp_path / "out").card["warnings"] == [told]


def test_null_positions_that_some_sentence_has_are_not(small) -> None:
    for null in ([2], [-3], [0, -1], "first", "none"):
        assert survey(small(), [["the", "key"], ["the", "dogs", "see"]], ["distance"], null=null).card["warnings"] == []


def test_the_longest_sentence_is_that_of_all_shards(small) -> None:
    corpus = [["the"] * number for number in (2, 9, 3, 5)]
    assert survey(small(), corpus, ["distance"], shard_size=1).card["longest"] == 9


def test_one_is_no_plural(small, tiny) -> None:
    summary = survey(tiny.load("gpt2", n_layer=1, n_head=1), [["the", "key"]], ["distance"]).summary()
    assert "1 layer x 1 head, 1 sentence, 2 tokens" in summary
    assert "2 sentences, 5 tokens" in survey(small(), [["the", "key"], ["the", "dogs", "see"]], ["distance"]).summary()


def test_later_sentences_with_less_annotation_are_skipped_and_told(small, tmp_path: Path) -> None:
    """What is measured is decided by the first sentence; the others are all there or all counted."""
    path = tmp_path / "mixed.conllu"
    tagged = "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tkey\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    unparsed = "1\tthe\t_\tDET\t_\t_\t_\t_\t_\t_\n2\tkey\t_\tNOUN\t_\t_\t_\t_\t_\t_\n\n"
    untagged = tagged.replace("DET", "_").replace("NOUN", "_")
    path.write_text(tagged + untagged + unparsed * 2 + tagged)
    found = survey(small(), path)
    assert found.card["sentences"] == 2
    assert found.card["skipped"] == {"it has no parts of speech": 1, "it has no heads and relations": 2}
    assert "Skipped 2: it has no heads and relations." in found.summary()
    assert found.card["left_out"] == {}
    whole = survey(small(), path, ["distance"])
    assert (whole.card["sentences"], whole.card["skipped"]) == (5, {}), "a statistic that needs none skips none"


def test_where_the_first_sentence_has_less_the_statistics_are_told(small) -> None:
    found = survey(small(), [UNTAGGED, ANNOTATED, BARE])
    assert found.card["left_out"] == {"part_of_speech": "parts of speech"}
    assert "Not taken: part_of_speech, which needs parts of speech; the first sentence has none." in found.summary()
    assert found.card["skipped"] == {"it has no heads and relations": 1}
