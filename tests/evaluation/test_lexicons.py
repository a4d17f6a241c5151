"""Lexicons from VADER, Warriner and files, and how words are found in them."""

import gzip

import pytest

from attnscope.corpora import files_here
from attnscope.errors import BadInput
from attnscope.evaluation.lexicons import NEGATIVE, POSITIVE, Matcher, counted_ways, lemmas, read_lexicon, stem


def test_vader_comes_with_its_package():
    analyzer = pytest.importorskip("vaderSentiment.vaderSentiment", reason="vaderSentiment is missing.")
    theirs = analyzer.SentimentIntensityAnalyzer().lexicon
    ours = read_lexicon("vader")
    assert ours.values["great"] == theirs["great"] == 3.1
    assert {word.lower() for word in theirs} == set(ours.values)
    assert -4 <= min(ours.values.values()) < max(ours.values.values()) <= 4
    assert ours.tag(ours.values["horrible"]) == NEGATIVE
    assert ours.tag(1.5) == POSITIVE
    assert ours.tag(-1.5) is None


def test_warriner_is_the_valence_column_of_its_file():
    if not files_here("warriner"):
        pytest.skip("The data set warriner is missing: attnscope data add warriner FILE, or set $ATTNSCOPE_DATA.")
    ours = read_lexicon("warriner")
    assert ours.values["aardvark"] == 6.26
    assert 13_900 <= len(ours.values) <= 13_915
    assert (ours.tag(6.5), ours.tag(6.49), ours.tag(3.5), ours.tag(3.49)) == (POSITIVE, None, None, NEGATIVE)


def test_a_made_file_of_warriners_layout(tmp_path):
    folder = tmp_path / "warriner"
    folder.mkdir()
    rows = [",Word,V.Mean.Sum,V.SD.Sum", "1,Joy,8.21,1.1", "2,TRUE,7,1.2"]
    (folder / "ratings.csv.gz").write_bytes(gzip.compress("\r\n".join(rows).encode()))
    found = read_lexicon("warriner", tmp_path)
    assert found.values == {"joy": 8.21, "true": 7.0}
    assert found.negative_below == 3.5


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.csv", "good,2\nbad,-2\nso,0\nfine,1\n"),
        ("header.csv", "word,valence\ngood,2\nbad,-2\nso,0\nfine,1\n"),
        ("other.tsv", "pos\tlemma\tvalue\nA\tgood\t2\nA\tbad\t-2\nR\tso\t0\nA\tfine\t1\n"),
        ("mark.tsv", "\ufeffgood\t2\nbad\t-2\n\nso\t0\nFine\t0.5\nfine\t1.5\n"),
    ],
)
def test_files_of_your_own(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    found = read_lexicon(str(path))
    assert found.values == {"good": 2.0, "bad": -2.0, "so": 0.0, "fine": 1.0}
    # the outer fifths of -2 0 1 2
    assert found.negative_below == pytest.approx(-0.8)
    assert found.positive_from == pytest.approx(1.4)
    assert read_lexicon(path, negative_below=-1, positive_from=1).tag(1.0) == POSITIVE


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "no word in the lexicon"),
        ("good\nbad\n", "one column"),
        ("word,value\ngood,2\nbad,much\n", "Row 3 of the lexicon"),
        ("good,inf\n", "no word in the lexicon"),
    ],
)
def test_bad_files_are_told_in_a_sentence(tmp_path, content, sentence):
    path = tmp_path / "lexicon.csv"
    path.write_text(content)
    with pytest.raises(BadInput, match=sentence):
        read_lexicon(path)


def test_other_things_are_refused(tmp_path):
    with pytest.raises(BadInput, match="There is no lexicon 'nope'"):
        read_lexicon("nope")
    with pytest.raises(BadInput, match="overlap"):
        read_lexicon({"a": 1.0}, negative_below=2, positive_from=1)
    with pytest.raises(BadInput, match="finite"):
        read_lexicon({"a": float("nan")})
    packed = tmp_path / "broken.csv.gz"
    for content in (b"no gzip", gzip.compress(b"good,1\n" * 99)[:-9]):
        packed.write_bytes(content)
        with pytest.raises(BadInput, match="is damaged"):
            read_lexicon(packed)


# ---- finding words


@pytest.mark.parametrize(
    ("word", "lemma"),
    [
        ("keys", "key"), ("boxes", "box"), ("churches", "church"), ("cities", "city"), ("wolves", "wolf"),
        ("loved", "love"), ("stopped", "stop"), ("tried", "try"), ("making", "make"), ("staring", "stare"),
        ("running", "run"), ("funnier", "funny"), ("saddest", "sad"), ("nicer", "nice"), ("was", "be"),
        ("felt", "feel"), ("worst", "bad"), ("women", "woman"), ("losses", "loss"), ("fixing", "fix"),
        ("dying", "die"), ("calves", "calf"),
    ],
)  # fmt: skip
def test_lemmas(word, lemma):
    assert lemma in list(lemmas(word))


@pytest.mark.parametrize("word", ["the", "loss", "ring", "bed", "s", "ed", "'s", "!"])
def test_words_that_are_their_own_lemma(word):
    assert word not in list(lemmas(word))
    assert all(len(lemma) > 2 for lemma in lemmas(word))


def test_staring_is_not_of_star():
    assert "star" not in list(lemmas("staring"))
    assert "star" in list(lemmas("starring"))


def test_forms_share_a_stem():
    assert len({stem(word) for word in ("disappoint", "disappointment", "disappointingly", "disappoints")}) == 1
    assert len({stem(word) for word in ("happy", "happily", "happiness", "happiest")}) == 1
    assert stem("quit") != stem("quite")
    assert stem("pain") != stem("painless")


def test_exact_comes_before_lemma_and_lemma_before_forms():
    matcher = Matcher(read_lexicon({"better": 7.0, "good": 8.0, "amaze": 6.0, "amazing": 8.0, "sad": 2.0}))
    words = ["Better", "best", "amazes", "amazingly", "saddest", "xyzzy"]
    matches = [matcher.match(word) for word in words]
    assert [match and (match.value, match.way) for match in matches] == [
        (7.0, "exact"), (8.0, "lemma"), (6.0, "lemma"), (8.0, "forms"), (2.0, "lemma"), None,
    ]  # fmt: skip
    assert counted_ways(matches) == {"exact": 1, "lemma": 3, "forms": 1, "none": 1}


def test_over_forms_the_value_is_their_mean():
    matcher = Matcher(read_lexicon({"charmed": 6.0, "charming": 8.0, "charms": 7.5}))
    match = matcher.match("charmingly")
    assert match.value == pytest.approx((6 + 8 + 7.5) / 3)
    assert match.entries == ("charmed", "charming", "charms")
