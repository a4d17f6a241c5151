"""Texts as Snell et al. 2021 prepare them, from files written here, and real ones beside their Table 9."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from attnscope.corpora import DATA
from attnscope.errors import BadInput
from attnscope.lab.data import WORD_LEVEL, ClassifiedTexts, toy_polarity, yelp
from attnscope.lab.data.packed import load_texts, save_texts
from attnscope.lab.data.word_level import word_level_statistics, word_level_texts
from attnscope.reproduce.snell2021.paper import TABLE_9

DOMAINS = ("books", "dvd", "electronics", "kitchen")


def decoded(texts: ClassifiedTexts, part: str) -> list[str]:
    return [" ".join(texts.vocabulary.decode(text.tolist())) for text in getattr(texts, part)]


def packed(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(content)


def test_rare_words_are_unknown_and_texts_have_ends() -> None:
    train = [(["a", "b", "a"], 1), (["a", "b", "b", "c", "c"], 0)]
    texts = word_level_texts("small", ("n", "p"), train, [(["c", "a"], 1)] * 3)
    assert texts.vocabulary.tokens == ("[PAD]", "[UNK]", "[BOS]", "[EOS]", "a", "b")
    assert decoded(texts, "train") == ["[BOS] a b a [EOS]", "[BOS] a b b [UNK] [UNK] [EOS]"]
    assert decoded(texts, "dev") == ["[BOS] [UNK] a [EOS]"] * 3
    row = word_level_statistics(texts).iloc[0]
    assert (row["train_length"], row["train"], row["validation_length"], row["vocabulary"]) == (4, 2, 2, 6)
    with pytest.raises(BadInput, match="no texts to learn from"):
        word_level_texts("small", ("n", "p"), [], train)


def test_at_most_four_thousand_texts_are_looked_at_and_always_the_same() -> None:
    held_out = [([f"w{number}"], number % 2) for number in range(4_100)]
    texts = [word_level_texts("many", ("n", "p"), held_out, held_out) for _ in range(2)]
    assert (len(texts[0].dev), len(texts[0].test)) == (4_000, 4_100)
    assert texts[0].dev.labels.tolist() == texts[1].dev.labels.tolist()


def test_amazon_reviews_are_told_by_their_file_and_long_ones_left_out(tmp_path: Path) -> None:
    for domain in DOMAINS:
        for label in ("negative", "positive"):
            said = [f"A {label} thing, number {number}!" for number in range(9)] + ["too long " * 200]
            content = "".join(
                f"<review>\n<title>\nx\n</title>\n<review_text>\n{text}\n</review_text>\n</review>\n" for text in said
            )
            packed(tmp_path / "amazon" / f"{domain}.{label}.review.gz", content)
    texts = WORD_LEVEL["amazon"](tmp_path)
    assert (len(texts.train), len(texts.dev)) == (64, 8)
    for part in ("train", "dev"):
        for text, label in zip(decoded(texts, part), getattr(texts, part).labels, strict=True):
            assert text.startswith(f"[BOS] a {('negative', 'positive')[label]} thing number")
    packed(tmp_path / "amazon" / "dvd.negative.review.gz", "<review>\n<title>\nx\n</title>\n</review>\n")
    with pytest.raises(BadInput, match="1 reviews and 0 texts"):
        WORD_LEVEL["amazon"](tmp_path)


def test_ag_news_is_world_against_business_without_long_numbers(tmp_path: Path) -> None:
    rows = ['"1","Peace in 2004","It took 3 ""long"" years"', '"3","Stocks up","By 45 points"', '"2","Goal","Sports"']
    packed(tmp_path / "ag_news" / "test.csv.gz", "\n".join(rows * 10) + "\n")
    texts = WORD_LEVEL["ag_news"](tmp_path)
    assert (len(texts.train), len(texts.dev)) == (16, 4)
    assert set(zip(decoded(texts, "train"), texts.train.labels.tolist(), strict=True)) == {
        ("[BOS] peace in [UNK] it took 3 long years [EOS]", 0),
        ("[BOS] stocks up by [UNK] points [EOS]", 1),
    }
    packed(tmp_path / "ag_news" / "test.csv.gz", '"1","Peace"\n')
    with pytest.raises(BadInput, match="Row 1"):
        WORD_LEVEL["ag_news"](tmp_path)


def test_messages_are_ham_or_spam(tmp_path: Path) -> None:
    packed(tmp_path / "sms_spam" / "SMSSpamCollection.gz", "ham\tSee you, ok?\nspam\tWIN cash now\n" * 10)
    texts = WORD_LEVEL["sms"](tmp_path)
    assert (len(texts.train), len(texts.dev), texts.classes) == (16, 4, ("ham", "spam"))
    packed(tmp_path / "sms_spam" / "SMSSpamCollection.gz", "eggs\tSee you\n")
    with pytest.raises(BadInput, match="Line 1"):
        WORD_LEVEL["sms"](tmp_path)
    packed(tmp_path / "sms_spam" / "SMSSpamCollection.gz", "")
    with pytest.raises(BadInput, match="no texts to learn from"):
        WORD_LEVEL["sms"](tmp_path)


def test_postings_keep_their_headers_and_are_parted_at_low_lines(tmp_path: Path) -> None:
    postings = [
        {"group": f"rec.sport.{sport}", "id": str(number), "text": f"Subject: {sport} 1993\n\nA _great_ game_day, 7"}
        for number in range(3)
        for sport in ("baseball", "hockey")
    ]
    other = {"group": "sci.med", "id": "9", "text": "Subject: x\n\ny"}
    for part in ("train", "test"):
        packed(tmp_path / "20news" / f"{part}.jsonl.gz", "".join(json.dumps(row) + "\n" for row in [*postings, other]))
    texts = WORD_LEVEL["20news"](tmp_path)
    assert texts.classes == ("baseball", "hockey")
    assert decoded(texts, "train")[1] == "[BOS] subject hockey [UNK] a great game day 7 [EOS]"
    assert texts.dev.labels.tolist() == [0, 1, 0, 1, 0, 1]


def test_yelp_is_bad_against_good_reviews(tmp_path: Path) -> None:
    rows = [{"stars": stars, "text": f"It has {stars} stars", "user_id": "x"} for stars in (1, 2, 3, 4, 5)] * 30
    file = tmp_path / "yelp_academic_dataset_review.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    texts = yelp(file)
    assert len(texts.train) + len(texts.dev) == 120
    for text, label in zip(decoded(texts, "train"), texts.train.labels, strict=True):
        assert (text.split()[3] in "45") == bool(label)
    file.write_text('{"text": "no stars"}\n')
    with pytest.raises(BadInput, match=r'Line 1 .* "stars"'):
        yelp(file)


def test_a_data_set_comes_back_from_its_file(tmp_path: Path) -> None:
    texts = toy_polarity()
    save_texts(tmp_path / "texts.safetensors", texts)
    kept = load_texts(tmp_path / "texts.safetensors")
    assert (kept.name, kept.classes, kept.vocabulary) == (texts.name, texts.classes, texts.vocabulary)
    for part in ("train", "dev", "test"):
        for name in ("tokens", "starts", "labels"):
            one, other = (getattr(getattr(each, part), name) for each in (kept, texts))
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["20news", "sms", "ag_news"])
def test_real_data_is_like_that_of_the_paper(name: str) -> None:
    place = os.environ.get(DATA)
    if not place or not any((Path(place) / folder).is_dir() for folder in (name, f"{name}_spam")):
        pytest.skip(f"The data set {name} is not here: set {DATA} to the folder of data sets.")
    row, paper = word_level_statistics(WORD_LEVEL[name](place)).iloc[0], TABLE_9[name]
    exact = {"20news": ("train_length", "train", "validation_length", "validation"), "sms": ("train_length", "train")}
    for column in exact.get(name, ()):
        assert row[column] == getattr(paper, column)
    assert row["train_length"] == pytest.approx(paper.train_length, abs=1)
    assert row["validation_length"] == pytest.approx(paper.validation_length, abs=1)
