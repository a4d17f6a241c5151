"""CoNLL-U: what the treebanks write, and what is wrong with files that are malformed."""

import builtins
import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from attnscope.errors import BadInput
from attnscope.syntax import Sentence, documents, from_conllu, genre, read_conllu

Write = Callable[[str, str | bytes], Path]


def row(number: object, form: str, tag: str = "X", head: object = 0, relation: str = "root", misc: str = "_") -> str:
    return "\t".join(map(str, (number, form, "_", tag, "_", "_", head, relation, "_", misc)))


def text(*lines: str) -> str:
    return "\n".join(lines) + "\n\n"


DO_NOT = text(
    "# newdoc id = email-7",
    "# sent_id = email-7-0001",
    "# text = I don't care.",
    row(1, "I", "PRON", 4, "nsubj"),
    row("2-3", "don't", "_", "_", "_"),
    row(2, "do", "AUX", 4, "aux"),
    row(3, "n't", "PART", 4, "advmod"),
    row("3.1", "really", "ADV", "_", "_"),
    row(4, "care", "VERB", 0, "root", "SpaceAfter=No"),
    row(5, ".", "PUNCT", 4, "punct", "Foo|SpaceAfter=No|Bar=1"),
)


def test_words_tags_heads_relations_and_spaces(written: Write) -> None:
    assert list(read_conllu(written("one.conllu", DO_NOT))) == [
        Sentence(
            words=("I", "do", "n't", "care", "."),
            tags=("PRON", "AUX", "PART", "VERB", "PUNCT"),
            heads=(3, 3, 3, -1, 3),
            relations=("nsubj", "aux", "advmod", "root", "punct"),
            spaces=(True, False, True, False, False),
            name="email-7-0001",
            document="email-7",
        )
    ]
    assert next(read_conllu(written("one.conllu", DO_NOT))).text == "I don't care."


def test_the_same_gzipped_with_other_line_ends_a_mark_and_no_last_line(written: Write) -> None:
    expected = list(read_conllu(written("one.conllu", DO_NOT)))
    for name, content in {
        "one.conllu.gz": gzip.compress(DO_NOT.encode()),
        "windows.conllu": DO_NOT.replace("\n", "\r\n"),
        "mark.conllu": "\ufeff" + DO_NOT,
        "open.conllu": DO_NOT.rstrip("\n"),
        "gaps.conllu": "\n\n" + DO_NOT + "\n\n",
    }.items():
        assert list(read_conllu(written(name, content))) == expected, name


def test_pieces_that_do_not_spell_the_token_are_words_with_spaces(written: Write) -> None:
    french = text(
        row(1, "près", head=3),
        row("2-3", "du", "_", "_", "_", misc="SpaceAfter=No"),
        row(2, "de", head=3, misc="SpaceAfter=No"),
        row(3, "le"),
        row(4, "!", head=3),
    )
    sentence = next(read_conllu(written("du.conllu", french)))
    assert sentence.spaces == (True, True, False, True)
    assert sentence.text == "près de le!"


def test_a_token_of_three_words_and_two_tokens_in_a_row(written: Write) -> None:
    content = text(
        row("1-3", "I'da", "_", "_", "_", misc="SpaceAfter=No"),
        row(1, "I"),
        row(2, "'d", head=1),
        row(3, "a", head=1),
        row("4-5", "cannot", "_", "_", "_"),
        row(4, "can", head=1),
        row(5, "not", head=1),
    )
    assert next(read_conllu(written("three.conllu", content))).text == "I'dacannot"


def test_what_nobody_annotated_is_none(written: Write) -> None:
    bare = text(row(1, "a", "_", "_", "_"), row(2, "b", "_", "_", "_"))
    sentence = next(read_conllu(written("bare.conllu", bare)))
    assert (sentence.words, sentence.tags, sentence.heads, sentence.relations) == (("a", "b"), None, None, None)
    partly = text(row(1, "a", "_"), row(2, "b", "NOUN", 1))
    assert next(read_conllu(written("partly.conllu", partly))).tags == ("_", "NOUN")


def test_a_word_may_hold_spaces(written: Write) -> None:
    assert next(read_conllu(written("space.conllu", text(row(1, "10  000"))))).words == ("10  000",)


def test_documents_go_on_until_the_next(written: Write) -> None:
    names = ["# newdoc id = a", None, "# newdoc", None, "# newdoc", "# newdoc id = b"]
    content = "".join(text(*([name] if name else []), row(1, f"w{number}")) for number, name in enumerate(names))
    path = written("documents.conllu", content)
    found = [sentence.document for sentence in read_conllu(path)]
    assert found == ["a", "a", "document 1", "document 1", "document 2", "b"]
    assert [document.text for document in documents(read_conllu(path))] == ["w0 w1", "w2 w3", "w4", "w5"]
    assert [document.parts for document in documents(read_conllu(path))] == [2, 2, 1, 1]


def test_sentences_of_no_document_stay_alone(written: Write) -> None:
    path = written("none.conllu", text(row(1, "a")) + text(row(1, "b")))
    assert [sentence.text for sentence in documents(read_conllu(path))] == ["a", "b"]


def test_the_genre_is_the_first_part_of_the_name(written: Write) -> None:
    assert genre(next(read_conllu(written("one.conllu", DO_NOT)))) == "email"
    assert genre(Sentence(("a",), document="weblog-x")) == "weblog"
    assert genre(Sentence(("a",))) is None


def test_the_limit_stops_before_what_is_wrong_later(written: Write) -> None:
    path = written("late.conllu", DO_NOT + "wrong")
    assert len(list(read_conllu(path, limit=1))) == 1
    with pytest.raises(BadInput, match="Line 12 of"):
        list(read_conllu(path))


MALFORMED = {
    "nine columns": (text(row(1, "a")[:-2]), "Line 1 of .* has 9 columns; CoNLL-U has 10"),
    "spaces for tabs": (text("# a", row(1, "a").replace("\t", " ")), "Line 2 of .* has 1 columns"),
    "head no number": (
        text(row(1, "a"), row(2, "b", head="x")),
        "Line 2 of .* has the head 'x', which is not a number",
    ),
    "head negative": (text(row(1, "a", head=-1)), "Line 1 of .* has the head '-1'"),
    "head missing": (text(row(1, "a"), row(2, "b", head="_")), "Line 2 of .* has the head '_'"),
    "head too large": (text(row(1, "a"), "# b", row(2, "b", head=3)), "Line 3 .* head 3, but the sentence has only 2"),
    "no root": (text(row(1, "a")) + text(row(1, "a", head=2), row(2, "b", head=1)), "at line 3 of .* has 0"),
    "two roots": (text("# sent_id = x", row(1, "a"), row(2, "b")), "at line 1 of .* exactly one root, but 'a b' has 2"),
    "circle": (text(row(1, "a"), row(2, "b", head=3), row(3, "c", head=2)), "at line 1 of .* circle"),
    "number twice": (text(row(1, "a"), row(1, "b", head=1)), "Line 2 of .* word number 1 where 2 should stand"),
    "number left out": (text(row(1, "a"), row(3, "b", head=1)), "Line 2 of .* word number 3 where 2 should stand"),
    "no number": (text(row("one", "a")), "Line 1 of .* begins with 'one', which is not the number of a word"),
    "empty number": (text(row("_", "a")), "Line 1 of .* begins with '_'"),
    "range backwards": (text(row("2-1", "ab"), row(1, "a")), "Line 1 of .* begins with '2-1'"),
    "range too late": (text(row(1, "a"), row("1-2", "ab"), row(2, "b", head=1)), "Line 2 of .* multi-word token 1-2"),
    "range twice": (text(row("1-2", "ab"), row(1, "a"), row("2-3", "b"), row(2, "b", head=1)), "Line 3 of .* 2-3"),
    "range too long": (text(row("1-3", "ab"), row(1, "a"), row(2, "b", head=1)), "Line 1 of .* has only 2 words"),
    "no sentences": ("# only a comment\n\n", "There are no sentences in"),
    "nothing": ("", "There are no sentences in"),
}


@pytest.mark.parametrize(("content", "message"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_files_name_the_line(written: Write, content: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        list(read_conllu(written("bad.conllu", content)))
    assert "bad.conllu" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_text(written: Write, tmp_path: Path) -> None:
    packed = gzip.compress(DO_NOT.encode() * 50)
    for name, content, message in (
        ("latin.conllu", DO_NOT.encode() + row(1, "é").encode("latin-1"), "Line 12 of .* is not text in UTF-8"),
        ("cut.conllu.gz", packed[:-20], "damaged"),
        ("flipped.conllu.gz", packed[:30] + bytes([packed[30] ^ 255]) + packed[31:], "damaged"),
        ("plain.conllu.gz", DO_NOT.encode(), "damaged"),
    ):
        with pytest.raises(BadInput, match=message):
            list(read_conllu(written(name, content)))
    with pytest.raises(BadInput, match="There is no file"):
        list(read_conllu(tmp_path / "missing.conllu"))
    with pytest.raises(BadInput, match="There is no file"):
        list(read_conllu(tmp_path))


def test_without_the_library_one_sentence_names_the_extra(written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: object) -> object:
        if name == "conllu":
            raise ImportError(name)
        return real(name, *rest)

    from_conllu._library.cache_clear()
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(BadInput, match=r"pip install 'attnscope\[syntax\]'"):
        list(read_conllu(written("one.conllu", DO_NOT)))


def test_the_treebank_reads_as_its_own_texts_say(ewt: Path) -> None:
    with gzip.open(ewt, "rt", encoding="utf-8") if ewt.suffix == ".gz" else ewt.open(encoding="utf-8") as lines:
        texts = [line.removeprefix("# text = ").rstrip("\n") for line in lines if line.startswith("# text = ")]
    sentences = list(read_conllu(ewt))
    # A no-break space between two words is an ordinary one here.
    assert [sentence.text for sentence in sentences] == [line.replace("\xa0", " ") for line in texts]
    assert set(Counter(map(genre, sentences))) == {"answers", "email", "newsgroup", "reviews", "weblog"}
    together = list(documents(sentences))
    assert sum(document.parts for document in together) == len(sentences)
    assert 100 < len(together) < len(sentences)


def test_fine_tags_are_read_or_told_from_features(written: Write) -> None:
    plural = "1\tdogs\tdog\tNOUN\t{}\tNumber=Plur\t0\troot\t_\t_\n\n"
    assert next(read_conllu(written("a.conllu", plural.format("NNS")))).fine_tags == ("NNS",)
    assert next(read_conllu(written("b.conllu", plural.format("_")))).fine_tags == ("NNS",)
    assert next(read_conllu(written("c.conllu", text(row(1, "dogs"))))).fine_tags is None


@pytest.mark.parametrize("place", [0, 6])
def test_numbers_of_thousands_of_digits(tmp_path, place: int) -> None:
    columns = ["1", "dogs", "_", "NOUN", "_", "_", "0", "root", "_", "_"]
    columns[place] = "9" * 5_000
    path = tmp_path / "long.conllu"
    path.write_text("\t".join(columns) + "\n\n")
    with pytest.raises(BadInput, match=r"^Line 1 of .*long\.conllu (has the head|begins with) '?9{40}'?, ") as raised:
        list(read_conllu(path))
    assert len(str(raised.value)) < 400
