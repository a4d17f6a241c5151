"""Pairs of sentences as subwords; the real Multi30k where it is found."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from attnscope.corpora import dataset_file
from attnscope.errors import BadInput
from attnscope.reproduce.snell2021.sentence_pairs import (
    Subwords,
    iwslt,
    learn_subwords,
    multi30k,
    news_commentary,
    pair_batch,
    plain_text,
    read_sides,
    translated_texts,
    translation_statistics,
    word_for_word,
)

NOUNS = {"hund": "dog", "katze": "cat", "mann": "man", "frau": "woman", "ball": "ball", "baum": "tree"}
PAIRS = [
    (f"ein {one} sieht {two} im garten", f"a {NOUNS[one]} sees {NOUNS[two]} in the garden")
    for one in NOUNS
    for two in NOUNS
]


@pytest.fixture(scope="module")
def subwords_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("subwords") / "kept.model"
    learn_subwords((line for pair in PAIRS for line in pair), 60, path)
    return path


def test_subwords_are_the_librarys_and_survive_the_disk(subwords_file) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=subwords_file.read_bytes())
    subwords = Subwords(subwords_file.read_bytes())
    lines = [line for pair in PAIRS for line in pair] + ["ein Q hund"]
    assert subwords.encode(lines) == processor.encode(lines)
    assert list(subwords.vocabulary.tokens) == [processor.id_to_piece(n) for n in range(processor.get_piece_size())]
    assert [plain_text(subwords.vocabulary, row) for row in subwords.encode(lines)] == processor.decode(
        processor.encode(lines)
    )


def test_kept_subwords_are_taken(subwords_file) -> None:
    again = learn_subwords(iter(()), 60, subwords_file)
    assert again.vocabulary == Subwords(subwords_file.read_bytes()).vocabulary
    with pytest.raises(BadInput, match="no model of SentencePiece"):
        Subwords(b"not a model")


def test_a_data_set_of_pairs(subwords_file) -> None:
    texts = translated_texts(
        "made up", ("de", "en"), {"train": PAIRS[:30], "dev": PAIRS[30:]}, subwords_file=subwords_file
    )
    end = texts.vocabulary.number("eos")
    assert len(texts.train) == 30
    assert texts.dev.references == tuple(target for _, target in PAIRS[30:])
    for source, target, (first, second) in zip(texts.dev.sources, texts.dev.targets, PAIRS[30:], strict=True):
        assert source[-1] == target[-1] == end
        assert (plain_text(texts.vocabulary, source), plain_text(texts.vocabulary, target)) == (first, second)
    table = translation_statistics(texts)
    assert table[["train", "validation", "vocabulary"]].to_numpy().tolist() == [[30, 6, len(texts.vocabulary)]]
    assert table["validation_length"].item() == np.median([len(source) for source in texts.dev.sources])
    assert table["train_target_length"].item() == np.median([len(target) for target in texts.train.targets])
    with pytest.raises(BadInput, match="no pairs of sentences for dev"):
        translated_texts("made up", ("de", "en"), {"train": PAIRS}, subwords_file=subwords_file)


def test_a_batch_reads_what_is_right_one_step_later() -> None:
    texts = word_for_word(words=9, longest=6, train=20, dev=5)
    batch = pair_batch(texts.vocabulary, texts.train, [3, 0, 7])
    begin, end, pad = (texts.vocabulary.number(name) for name in ("bos", "eos", "pad"))
    for row, number in enumerate([3, 0, 7]):
        source, target = texts.train.sources[number], texts.train.targets[number]
        assert batch.source[row, batch.real[row]].tolist() == list(source)
        assert batch.target_out[row, batch.words[row]].tolist() == list(target)
        assert batch.target_in[row, batch.words[row]].tolist() == [begin, *target[:-1]]
        assert target[-1] == end
    assert (batch.target_out[~batch.words] == pad).all()
    assert (batch.source[~batch.real] == pad).all()


def test_word_for_word_has_one_translation_for_each_word() -> None:
    texts = word_for_word(words=9, longest=6, train=50, dev=10, seed=4)
    seen = {
        pair
        for part in (texts.train, texts.dev)
        for source, target in zip(part.sources, part.targets, strict=True)
        for pair in zip(source, target, strict=True)
    }
    assert len({one for one, _ in seen}) == len({other for _, other in seen}) == len(seen) == 10
    assert texts.train.references[0].split()[0].startswith("b")


def test_sides_must_have_as_many_lines(tmp_path) -> None:
    (tmp_path / "a").write_text("eins\n\ndrei\n")
    (tmp_path / "b").write_text("one\ntwo\nthree\n")
    assert read_sides(tmp_path / "a", tmp_path / "b") == [("eins", "one"), ("drei", "three")]
    (tmp_path / "b").write_text("one\n")
    with pytest.raises(BadInput, match="line by line"):
        read_sides(tmp_path / "a", tmp_path / "b")


def test_iwslt_as_users_have_it(tmp_path, subwords_file) -> None:
    for name, pairs in (("train", PAIRS[:30]), ("valid", PAIRS[30:])):
        for side, language in enumerate(("de", "en")):
            content = "".join(f"{pair[side]}\n" for pair in pairs)
            with gzip.open(tmp_path / f"{name}.{language}.gz", "wt", encoding="utf-8") as file:
                file.write(content)
    texts = iwslt(tmp_path, subwords_file=subwords_file)
    assert (len(texts.train), len(texts.dev), texts.languages) == (30, 6, ("de", "en"))
    with pytest.raises(BadInput, match=r"train\.fr"):
        iwslt(tmp_path, target="fr", subwords_file=subwords_file)


def test_news_commentary_as_it_is_downloaded(tmp_path, subwords_file) -> None:
    path = tmp_path / "news-commentary-v14.de-en.tsv"
    lines = [f"{source}\t{target}" for source, target in PAIRS] + ["", "12.5\t12,5", "ein mann\t", "2019 –\t2019 –"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    texts = news_commentary(path, subwords_file=subwords_file)
    assert (texts.name, len(texts.train), len(texts.dev)) == ("news-de-en", 32, 4)
    turned = news_commentary(path, source="en", subwords_file=subwords_file)
    assert (turned.name, turned.languages) == ("news-en-de", ("en", "de"))
    assert {*turned.train.references, *turned.dev.references} == {source for source, _ in PAIRS}
    with pytest.raises(BadInput, match="not named like"):
        news_commentary(tmp_path / "pairs.tsv")
    with pytest.raises(BadInput, match="not 'fr'"):
        news_commentary(path, source="fr")


def test_multi30k_as_it_is(subwords_file) -> None:
    try:
        dataset_file("multi30k", "train.de")
    except BadInput as missing:
        pytest.skip(str(missing))
    # a few subwords serve here, since learning 8,000 takes half a minute
    texts = multi30k(subwords_file=subwords_file)
    assert (len(texts.train), len(texts.dev), texts.languages) == (29_000, 1_014, ("de", "en"))
    assert texts.dev.references[0] == "A group of men are loading cotton onto a truck"
    assert multi30k(source="en", subwords_file=subwords_file).languages == ("en", "de")
    with pytest.raises(BadInput, match="not 'fr'"):
        multi30k(source="fr")


def test_what_sentencepiece_cannot_learn_is_told() -> None:
    with pytest.raises(BadInput, match="cannot learn"):
        learn_subwords(io.StringIO(""), 60)
