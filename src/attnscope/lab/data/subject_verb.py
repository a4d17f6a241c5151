"""Subjects and the verbs that agree with them, found in a parsed sentence, as Linzen et al. 2016 chose them.

- The subject is a common noun (NN, NNS) that stands before its verb: pronouns, names and numbers are left out, and so
  are questions, inversions and what follows "there is".
- The verb is the word that shows the number: the first auxiliary or copula if there is any, else the main verb. It is
  in the present tense (VBZ, VBP): after "will" or "was" nothing is shown that the paper's task asks for.
- Both show the same number. Where they do not, the parse is wrong or another word decides ("the cat and the dog are",
  "a number of people are"), and the pair is left out. A subject such as "dogs and a cat" is kept by its first noun.
- Attractors are common nouns between the two whose number is the other one. Names (NNP) are not counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ...errors import BadInput
from ...syntax import Sentence, general
from .examples_file import Number

NOUNS: dict[str, Number] = {"NN": "singular", "NNS": "plural"}
VERBS: dict[str, Number] = {"VBZ": "singular", "VBP": "plural"}
FINITE = {*VERBS, "VBD", "MD"}
HELPING = {"aux", "cop"}
OUTER = "nsubj:outer"

NO_NOUN = "the subject is no common noun"
AFTER = "the subject stands after the verb"
NOT_PRESENT = "the verb is not in the present tense"
DISAGREE = "subject and verb differ in number"


@dataclass(frozen=True)
class Agreement:
    """A subject and its verb, by their positions in the sentence; `reason` says why it is left out, if it is."""

    subject: int
    verb: int
    number: Number
    attractors: int
    reason: str | None = None


def agreements(sentence: Sentence) -> Iterator[Agreement]:
    """Yield every subject with the verb that shows its number, in the order of the subjects.

    Those with a `reason` are no examples; they are given so that they can be counted. The sentence needs heads,
    relations and Penn's tags.

    >>> found = agreements(Sentence(
    ...     words=("the", "keys", "to", "the", "cabinet", "are", "rusty"),
    ...     heads=(1, 6, 4, 4, 1, 6, -1),
    ...     relations=("det", "nsubj", "case", "det", "nmod", "cop", "root"),
    ...     fine_tags=("DT", "NNS", "IN", "DT", "NN", "VBP", "JJ"),
    ... ))
    >>> next(found)
    Agreement(subject=1, verb=5, number='plural', attractors=1, reason=None)
    """
    if sentence.heads is None or sentence.relations is None or sentence.fine_tags is None:
        raise BadInput(
            f"{sentence.text!r} has no heads, relations and Penn tags: parse it before looking for subjects."
        )
    for subject, relation in enumerate(sentence.relations):
        if general(relation) == "nsubj" and sentence.heads[subject] != -1:
            yield _agreement(sentence.fine_tags, subject, _shows_number(sentence, subject))


def _agreement(tags: tuple[str, ...], subject: int, verb: int) -> Agreement:
    number = NOUNS.get(tags[subject], "singular")
    if tags[verb] not in VERBS:
        return Agreement(subject, verb, number, 0, NOT_PRESENT)
    if tags[subject] not in NOUNS:
        return Agreement(subject, verb, number, 0, NO_NOUN)
    if subject > verb:
        return Agreement(subject, verb, number, 0, AFTER)
    attractors = sum(tag in NOUNS and tag != tags[subject] for tag in tags[subject:verb])
    return Agreement(subject, verb, number, attractors, None if VERBS[tags[verb]] == number else DISAGREE)


def _shows_number(sentence: Sentence, subject: int) -> int:
    """The word that shows the number of a subject: the first finite one of its clause, or else the head of it."""
    assert sentence.heads is not None  # noqa: S101 -- the caller has looked
    assert sentence.relations is not None  # noqa: S101
    assert sentence.fine_tags is not None  # noqa: S101
    head = sentence.heads[subject]
    inner = [place for place in _dependents(sentence, head) if sentence.relations[place] in {"nsubj", "nsubj:pass"}]
    outer = [place for place in _dependents(sentence, head) if sentence.relations[place] == OUTER]
    words = [place for place in _dependents(sentence, head) if general(sentence.relations[place]) in HELPING]
    words = sorted([*words, head])
    if outer and inner:
        # "the problem is that dogs bark": "is" and "bark" hang together, but each has a subject of its own
        first = min(inner)
        words = [place for place in words if (place < first) == (sentence.relations[subject] == OUTER)]
    return next((place for place in words if sentence.fine_tags[place] in FINITE), head)


def _dependents(sentence: Sentence, head: int) -> list[int]:
    return [place for place, above in enumerate(sentence.heads or ()) if above == head]
