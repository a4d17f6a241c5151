"""The grammar's sentences are well parsed, agree, and tell their number before the verb."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from itertools import islice, pairwise
from types import SimpleNamespace

import pytest

from attnscope.syntax import agreement_sentences, lexicon, vocabulary
from attnscope.syntax.lexicon import PLURAL, SINGULAR

# Words, tags, heads (as in CoNLL-U: from one, 0 for the root) and relations, annotated by hand from the UD guidelines.
BY_HAND = [
    (
        "the key to the cabinets is rusty .",
        "DET NOUN ADP DET NOUN AUX ADJ PUNCT",
        "2 7 5 5 2 7 0 7",
        "det nsubj case det nmod cop root punct",
    ),
    (
        "the key to the cabinets near the doors is rusty .",
        "DET NOUN ADP DET NOUN ADP DET NOUN AUX ADJ PUNCT",
        "2 10 5 5 2 8 8 5 10 0 10",
        "det nsubj case det nmod case det nmod cop root punct",
    ),
    (
        "the key to both the cabinets and the door is rusty .",
        "DET NOUN ADP CCONJ DET NOUN CCONJ DET NOUN AUX ADJ PUNCT",
        "2 11 6 6 6 2 9 9 6 11 0 11",
        "det nsubj case cc:preconj det nmod cc det conj cop root punct",
    ),
    (
        "the dog that sleeps there is small .",
        "DET NOUN PRON VERB ADV AUX ADJ PUNCT",
        "2 7 4 2 4 7 0 7",
        "det nsubj nsubj acl:relcl advmod cop root punct",
    ),
    (
        "the key that is small is rusty .",
        "DET NOUN PRON AUX ADJ AUX ADJ PUNCT",
        "2 7 5 5 2 7 0 7",
        "det nsubj nsubj cop acl:relcl cop root punct",
    ),
    (
        "my key and your keys that open the doors are rusty .",
        "PRON NOUN CCONJ PRON NOUN PRON VERB DET NOUN AUX ADJ PUNCT",
        "2 11 5 5 2 7 5 9 7 11 0 11",
        "nmod:poss nsubj cc nmod:poss conj nsubj acl:relcl det obj cop root punct",
    ),
    (
        "the key that the men like is rusty .",
        "DET NOUN PRON DET NOUN VERB AUX ADJ PUNCT",
        "2 8 6 5 6 2 8 0 8",
        "det nsubj obj det nsubj acl:relcl cop root punct",
    ),
    (
        "the key the men like is rusty .",
        "DET NOUN DET NOUN VERB AUX ADJ PUNCT",
        "2 7 4 5 2 7 0 7",
        "det nsubj det nsubj acl:relcl cop root punct",
    ),
    (
        "both the key and the door are rusty .",
        "CCONJ DET NOUN CCONJ DET NOUN AUX ADJ PUNCT",
        "3 3 8 6 6 3 8 0 8",
        "cc:preconj det nsubj cc det conj cop root punct",
    ),
    (
        "the two keys are in the garden .",
        "DET NUM NOUN AUX ADP DET NOUN PUNCT",
        "3 3 7 7 7 7 0 7",
        "det nummod nsubj cop case det root punct",
    ),
    (
        "my dogs often see the author .",
        "PRON NOUN ADV VERB DET NOUN PUNCT",
        "2 4 4 0 6 4 4",
        "nmod:poss nsubj advmod root det obj punct",
    ),
    (
        "many apples near the tree are red .",
        "ADJ NOUN ADP DET NOUN AUX ADJ PUNCT",
        "2 7 5 5 2 7 0 7",
        "amod nsubj case det nmod cop root punct",
    ),
    (
        "in the garden , the dog sleeps here .",
        "ADP DET NOUN PUNCT DET NOUN VERB ADV PUNCT",
        "3 3 7 3 6 7 0 7 7",
        "case det obl punct det nsubj root advmod punct",
    ),
    (
        "while the wolves chase our friend , my nurse is busy .",
        "SCONJ DET NOUN VERB PRON NOUN PUNCT PRON NOUN AUX ADJ PUNCT",
        "4 3 4 11 6 4 4 9 11 11 0 11",
        "mark det nsubj advcl nmod:poss obj punct nmod:poss nsubj cop root punct",
    ),
    ("anna likes the dog .", "PROPN VERB DET NOUN PUNCT", "2 0 4 2 2", "nsubj root det obj punct"),
]

NOUN_NUMBER = {
    form: number
    for pairs in lexicon.NOUNS.values()
    for pair in pairs
    for form, number in zip(pair, (SINGULAR, PLURAL), strict=True)
} | dict.fromkeys(lexicon.NAMES, SINGULAR)
PRONOUN_NUMBER = {
    **dict.fromkeys("he she it him everybody everyone nobody someone everything nothing something".split(), SINGULAR),
    **dict.fromkeys("we they us them".split(), PLURAL),
}
VERB_NUMBER = {"is": SINGULAR, "are": PLURAL} | {
    form: number
    for table in (lexicon.TRANSITIVE_VERBS, lexicon.INTRANSITIVE_VERBS)
    for pairs in table.values()
    for pair in pairs
    for form, number in zip(pair, (PLURAL, SINGULAR), strict=True)
}


@pytest.fixture(scope="module")
def drawn() -> list[SimpleNamespace]:
    """Many sentences with the fields of AgreementSentence, drawn in a process of their own.

    Here, where the tests check every type at run time, drawing them would take minutes.
    """
    script = (
        "import json\n"
        "from dataclasses import asdict\n"
        "from itertools import islice\n"
        "from attnscope.syntax import agreement_sentences\n"
        "for item in islice(agreement_sentences(17), 20_000):\n"
        "    print(json.dumps(asdict(item)))\n"
    )
    command, environment = [sys.executable, "-c", script], os.environ | {"PYTHONHASHSEED": "5"}
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return [json.loads(line, object_hook=lambda row: SimpleNamespace(**row)) for line in output.splitlines()]


def own_number(item: SimpleNamespace, position: int) -> str | None:
    word, tag = item.sentence.words[position], item.sentence.tags[position]
    return {"NOUN": NOUN_NUMBER, "PROPN": NOUN_NUMBER, "PRON": PRONOUN_NUMBER}.get(tag, {}).get(word)


def children(item: SimpleNamespace, head: int, relation: str) -> list[int]:
    rows = zip(item.sentence.heads, item.sentence.relations, strict=True)
    return [position for position, row in enumerate(rows) if row == (head, relation)]


def subject_number(item: SimpleNamespace, subject: int) -> str | None:
    return PLURAL if children(item, subject, "conj") else own_number(item, subject)


def shape(words: list[str], tags: list[str]) -> tuple[tuple[str, str | None], ...]:
    """What decides the parse: the tags, and the words that introduce clauses and coordinations."""
    return tuple(
        (tag, word if word in {"that", "both", "and"} else None) for word, tag in zip(words, tags, strict=True)
    )


@pytest.mark.parametrize(("text", "tags", "heads", "relations"), BY_HAND, ids=[row[0] for row in BY_HAND])
def test_sentences_like_this_are_parsed_as_by_hand(
    drawn: list[SimpleNamespace], text: str, tags: str, heads: str, relations: str
) -> None:
    wanted = shape(text.split(), tags.split())
    alike = [item.sentence for item in drawn if shape(item.sentence.words, item.sentence.tags) == wanted]
    assert alike
    for sentence in alike:
        assert sentence.heads == [int(head) - 1 for head in heads.split()], sentence.words
        assert sentence.relations == relations.split(), sentence.words


def test_every_tree_is_projective(drawn: list[SimpleNamespace]) -> None:
    for item in drawn[:2000]:
        arcs = [tuple(sorted(arc)) for arc in enumerate(item.sentence.heads) if arc[1] >= 0]
        crossing = [(a, b) for a in arcs for b in arcs if a[0] < b[0] < a[1] < b[1]]
        assert not crossing, item.sentence.words


def test_relations_join_the_right_parts_of_speech(drawn: list[SimpleNamespace]) -> None:
    nominal = frozenset({"NOUN", "PROPN", "PRON"})
    dependent_tags = {
        "det": {"DET"},
        "case": {"ADP"},
        "amod": {"ADJ"},
        "nummod": {"NUM"},
        "nmod:poss": {"PRON"},
        "cop": {"AUX"},
        "advmod": {"ADV"},
        "mark": {"SCONJ"},
        "cc": {"CCONJ"},
        "cc:preconj": {"CCONJ"},
        "punct": {"PUNCT"},
        **dict.fromkeys(("nsubj", "obj", "obl", "nmod", "conj"), nominal),
        **dict.fromkeys(("root", "acl:relcl", "advcl"), nominal | {"VERB", "ADJ"}),
    }
    for item in drawn:
        sentence = item.sentence
        for position, (tag, head, relation) in enumerate(
            zip(sentence.tags, sentence.heads, sentence.relations, strict=True)
        ):
            assert tag in dependent_tags[relation], sentence.words
            if relation in {"det", "amod", "nummod", "nmod:poss"}:
                assert sentence.tags[head] == "NOUN", sentence.words
                assert position < head, sentence.words
            if relation in {"nmod", "obl"}:
                assert len(children(item, position, "case")) == 1, sentence.words


def test_the_verb_shows_the_number_of_its_subject(drawn: list[SimpleNamespace]) -> None:
    for item in drawn:
        assert VERB_NUMBER[item.sentence.words[item.verb]] == item.number
        assert subject_number(item, item.subject) == item.number
        assert item.sentence.relations[item.subject] == "nsubj"


def test_verbs_inside_relative_clauses_agree_with_their_own_subject(drawn: list[SimpleNamespace]) -> None:
    checked = Counter[str]()
    for item in drawn:
        sentence = item.sentence
        for clause in (position for position, name in enumerate(sentence.relations) if name == "acl:relcl"):
            (verb,) = children(item, clause, "cop") or [clause]
            (subject,) = children(item, clause, "nsubj")
            relative = sentence.words[subject] in {"that", "who"}
            # The clause is about the noun alone, also where that noun is the first of two.
            number = own_number(item, sentence.heads[clause]) if relative else subject_number(item, subject)
            assert VERB_NUMBER[sentence.words[verb]] == number, sentence.words
            checked["subject" if relative else "object"] += 1
    assert min(checked["subject"], checked["object"]) > 1000


def test_attractors_are_the_nouns_of_the_other_number_on_the_way(drawn: list[SimpleNamespace]) -> None:
    spread = Counter[int]()
    for item in drawn:
        others = {
            position
            for position in range(item.subject + 1, item.verb)
            if own_number(item, position) not in {None, item.number}
        }
        assert item.attractors == len(others - set(children(item, item.subject, "conj"))), item.sentence.words
        spread[min(item.attractors, 3)] += 1
    assert all(spread[attractors] > 0.08 * len(drawn) for attractors in range(4)), spread


def test_the_words_before_the_verb_decide_its_number(drawn: list[SimpleNamespace]) -> None:
    numbers: dict[tuple[str, ...], str] = {}
    for item in drawn:
        prefix = tuple(item.sentence.words[: item.verb])
        assert numbers.setdefault(prefix, item.number) == item.number, prefix
    assert 0.4 < sum(item.number == PLURAL for item in drawn) / len(drawn) < 0.6


def test_and_without_both_joins_only_where_it_cannot_be_misread(drawn: list[SimpleNamespace]) -> None:
    for item in drawn:
        sentence = item.sentence
        for conjunct in (position for position, name in enumerate(sentence.relations) if name == "conj"):
            first = sentence.heads[conjunct]
            if not children(item, first, "cc:preconj"):
                assert sentence.relations[first] == "nsubj", sentence.words
                assert not children(item, first, "nmod"), sentence.words
                assert not children(item, first, "acl:relcl"), sentence.words


def test_the_article_fits_the_next_word(drawn: list[SimpleNamespace]) -> None:
    articles = [pair for item in drawn for pair in pairwise(item.sentence.words) if pair[0] in {"a", "an"}]
    assert articles
    assert all((article == "an") == (following[0] in "aeiou") for article, following in articles)


def test_the_vocabulary_is_exactly_the_words_that_occur(drawn: list[SimpleNamespace]) -> None:
    occurring = {word for item in drawn for word in item.sentence.words}
    assert occurring == set(vocabulary())
    assert list(vocabulary()) == sorted(set(vocabulary()))
    assert 400 <= len(vocabulary()) <= 700
    assert all(word == word.lower() for word in vocabulary())
    assert {"key", "keys", "cabinet", "cabinets", "the", "to", "dog", "author"} <= set(vocabulary())


def test_no_form_is_both_noun_and_verb_or_of_two_numbers() -> None:
    assert not NOUN_NUMBER.keys() & VERB_NUMBER.keys()
    nouns = [form for pairs in lexicon.NOUNS.values() for pair in pairs for form in pair]
    assert len(nouns) == len(set(nouns))


def test_sentences_stay_short(drawn: list[SimpleNamespace]) -> None:
    assert max(len(item.sentence.words) for item in drawn) <= 30


def test_the_seed_alone_decides_in_every_process(drawn: list[SimpleNamespace]) -> None:
    for here, there in zip(islice(agreement_sentences(17), 100), drawn, strict=False):
        assert json.loads(json.dumps(asdict(here)), object_hook=lambda row: SimpleNamespace(**row)) == there
    assert list(next(agreement_sentences(18)).sentence.words) != drawn[0].sentence.words


def test_the_prefix_ends_before_the_verb() -> None:
    item = next(agreement_sentences(3))
    assert (*item.prefix, item.sentence.words[item.verb]) == item.sentence.words[: item.verb + 1]
