"""Subjects and verbs found in sentences parsed by hand, whose attractors are known."""

from collections.abc import Callable

import pytest

from attnscope.errors import BadInput
from attnscope.lab.data.linzen import AFTER, DISAGREE, NO_NOUN, NOT_PRESENT, Agreement, agreements
from attnscope.syntax import Sentence

Parsed = Callable[[str], Sentence]

PLAIN = """
The DET DT 2 det
dogs NOUN NNS 3 nsubj
bark VERB VBP 0 root
. PUNCT . 3 punct
"""
COPULA = """
The DET DT 2 det
keys NOUN NNS 7 nsubj
to ADP IN 5 case
the DET DT 5 det
cabinet NOUN NN 2 nmod
are AUX VBP 7 cop
rusty ADJ JJ 0 root
"""
TWO_ATTRACTORS = """
The DET DT 2 det
key NOUN NN 9 nsubj
to ADP IN 4 case
cabinets NOUN NNS 2 nmod
of ADP IN 6 case
kings NOUN NNS 4 nmod
in ADP IN 8 case
Rome PROPN NNP 6 nmod
opens VERB VBZ 0 root
"""
SAME_NUMBER_BETWEEN = """
The DET DT 2 det
key NOUN NN 5 nsubj
to ADP IN 4 case
Rome PROPN NNPS 2 nmod
opens VERB VBZ 0 root
"""
RELATIVE_CLAUSE = """
The DET DT 2 det
men NOUN NNS 9 nsubj
that PRON WDT 5 obj
the DET DT 5 det
woman NOUN NN 6 nsubj
sees VERB VBZ 2 acl:relcl
are AUX VBP 9 aux
still ADV RB 9 advmod
waiting VERB VBG 0 root
"""
PASSIVE = """
The DET DT 2 det
letters NOUN NNS 5 nsubj:pass
have AUX VBP 5 aux
been AUX VBN 5 aux:pass
sent VERB VBN 0 root
"""
COORDINATED_SINGULARS = """
The DET DT 2 det
cat NOUN NN 5 nsubj
and CCONJ CC 4 cc
dog NOUN NN 2 conj
sleep VERB VBP 0 root
"""
COORDINATED_PLURALS = """
The DET DT 2 det
cats NOUN NNS 6 nsubj
and CCONJ CC 5 cc
the DET DT 5 det
dog NOUN NN 2 conj
sleep VERB VBP 0 root
"""
SECOND_VERB = """
Dogs NOUN NNS 2 nsubj
bark VERB VBP 0 root
and CCONJ CC 4 cc
bite VERB VBP 2 conj
men NOUN NNS 4 obj
"""
THERE = """
There PRON EX 2 expl
are VERB VBP 0 root
dogs NOUN NNS 2 nsubj
"""
PRONOUN = """
She PRON PRP 2 nsubj
sleeps VERB VBZ 0 root
"""
NAME = """
Rome PROPN NNP 2 nsubj
sleeps VERB VBZ 0 root
"""
PAST = """
The DET DT 2 det
dogs NOUN NNS 3 nsubj
barked VERB VBD 0 root
"""
MODAL = """
The DET DT 2 det
dogs NOUN NNS 4 nsubj
will AUX MD 4 aux
bark VERB VB 0 root
"""
QUESTION = """
Do AUX VBP 4 aux
the DET DT 3 det
dogs NOUN NNS 4 nsubj
bark VERB VB 0 root
? PUNCT . 4 punct
"""
CONTRACTION = """
The DET DT 2 det
dog NOUN NN 5 nsubj
does AUX VBZ 5 aux
n't PART RB 5 advmod
bark VERB VB 0 root
"""
CLAUSE_AS_PREDICATE = """
The DET DT 2 det
problems NOUN NNS 6 nsubj:outer
are AUX VBP 6 cop
that SCONJ IN 6 mark
rain NOUN NN 6 nsubj
falls VERB VBZ 0 root
"""
SPACY_COPULA = """
The DET DT 2 det
keys NOUN NNS 6 nsubj
to ADP IN 2 prep
the DET DT 5 det
cabinet NOUN NN 3 pobj
are AUX VBP 0 root
rusty ADJ JJ 6 acomp
"""
SPACY_PASSIVE = """
The DET DT 2 det
letter NOUN NN 4 nsubj:pass
is AUX VBZ 4 aux:pass
sent VERB VBN 0 root
"""


@pytest.mark.parametrize(
    ("text", "subject", "verb", "number", "attractors"),
    [
        (PLAIN, 1, 2, "plural", 0),
        (COPULA, 1, 5, "plural", 1),
        (TWO_ATTRACTORS, 1, 8, "singular", 2),
        (SAME_NUMBER_BETWEEN, 1, 4, "singular", 0),
        (PASSIVE, 1, 2, "plural", 0),
        (COORDINATED_PLURALS, 1, 5, "plural", 1),
        (SECOND_VERB, 0, 1, "plural", 0),
        (CONTRACTION, 1, 2, "singular", 0),
        (SPACY_COPULA, 1, 5, "plural", 1),
        (SPACY_PASSIVE, 1, 2, "singular", 0),
    ],
)
def test_the_pair_that_is_found(
    parsed: Parsed, text: str, subject: int, verb: int, number: str, attractors: int
) -> None:
    assert list(agreements(parsed(text))) == [Agreement(subject, verb, number, attractors)]


def test_a_relative_clause_has_a_pair_of_its_own(parsed: Parsed) -> None:
    assert list(agreements(parsed(RELATIVE_CLAUSE))) == [
        Agreement(1, 6, "plural", 1),
        Agreement(4, 5, "singular", 0),
    ]


def test_a_clause_that_is_a_predicate_has_a_subject_of_its_own(parsed: Parsed) -> None:
    assert list(agreements(parsed(CLAUSE_AS_PREDICATE))) == [
        Agreement(1, 2, "plural", 0),
        Agreement(4, 5, "singular", 0),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (COORDINATED_SINGULARS, DISAGREE),
        (THERE, AFTER),
        (PRONOUN, NO_NOUN),
        (NAME, NO_NOUN),
        (PAST, NOT_PRESENT),
        (MODAL, NOT_PRESENT),
        (QUESTION, AFTER),
    ],
)
def test_what_is_left_out_says_why(parsed: Parsed, text: str, reason: str) -> None:
    assert [pair.reason for pair in agreements(parsed(text))] == [reason]


def test_a_sentence_without_a_parse_is_refused() -> None:
    with pytest.raises(BadInput, match="no heads, relations and Penn tags"):
        next(agreements(Sentence(("dogs", "bark"))))
