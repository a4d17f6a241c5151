"""Our own grammar of English subject-verb agreement: endless sentences from a seed, each with its gold parse.

A sentence such as "the key to the cabinets that the men like is rusty ." asks whether a reader keeps the number of
"key" in mind past the attractors "cabinets" and "men".
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from . import lexicon
from .lexicon import PLURAL, SINGULAR
from .phrases import (
    Node,
    chance,
    clause,
    coordination,
    modified,
    name,
    pick,
    place,
    simple_coordination,
    simple_noun_phrase,
)
from .sentence import Sentence

LONGEST = 30  # words; longer draws are thrown away


@dataclass(frozen=True)
class AgreementSentence:
    """A parsed sentence, and the subject and verb in it that must agree.

    `subject` is the position of the subject's head (the first conjunct of a coordination) and `verb` that of the word
    that shows the number: the main verb, or the "is" or "are" of a predicate.

    `number` is the verb's: "singular" or "plural"; a coordinated subject is plural.

    `attractors` counts the nouns, names and pronouns that stand between `subject` and `verb` and whose own number is
    not `number`. Each word counts by itself, also inside a coordination; the conjuncts of the subject are no
    attractors, but what modifies them may be. Relative and possessive pronouns have no number of their own and never
    count.
    """

    sentence: Sentence
    subject: int
    verb: int
    number: str
    attractors: int

    @property
    def prefix(self) -> tuple[str, ...]:
        """The words before the verb, which decide its number."""
        return self.sentence.words[: self.verb]


def agreement_sentences(seed: int) -> Iterator[AgreementSentence]:
    """Yield sentences without end: the same for the same seed, in every process and Python version.

    >>> first = next(agreement_sentences(seed=3))
    >>> first == next(agreement_sentences(seed=3))
    True
    """
    dice = Random(seed)
    while True:
        drawn = _annotated(_sentence(dice))
        # The easy sentences would outnumber the others: two of three without attractors are thrown away.
        if len(drawn.sentence) <= LONGEST and (drawn.attractors > 0 or chance(dice, 33)):
            yield drawn


def vocabulary() -> tuple[str, ...]:
    """Every word form that the grammar can make, sorted."""
    words = {"an", lexicon.COMMA, lexicon.FULL_STOP, lexicon.CONJUNCTION, lexicon.PRECONJUNCTION}
    for table in (lexicon.NOUNS, lexicon.TRANSITIVE_VERBS, lexicon.INTRANSITIVE_VERBS):
        words.update(form for forms_by_kind in table.values() for forms in forms_by_kind for form in forms)
    for choices in (
        lexicon.DETERMINERS,
        lexicon.PERSONAL_PRONOUNS,
        lexicon.OBJECT_PRONOUNS,
        lexicon.INDEFINITE_PRONOUNS,
        lexicon.RELATIVE_PRONOUNS,
        lexicon.ADJECTIVES,
        lexicon.PLACE_PREPOSITIONS,
    ):
        words.update(form for forms in choices.values() for form in forms)
    for forms in (
        lexicon.NAMES,
        lexicon.NUMERALS,
        lexicon.COPULA.values(),
        lexicon.LINK_PREPOSITIONS,
        lexicon.FREQUENCY_ADVERBS,
        lexicon.CLOSING_ADVERBS,
        lexicon.OPENING_ADVERBS,
        lexicon.SUBORDINATORS,
    ):
        words.update(forms)
    return tuple(sorted(words - {lexicon.BARE}))


def _sentence(dice: Random) -> Node:
    """A whole sentence: perhaps something before the subject, then the subject, its clause and a full stop."""
    opening = _opening(dice) if chance(dice, 30) else ()
    subject = _subject(dice)
    root = clause(dice, (*opening, ("nsubj", subject)), subject.kind, subject.agreement, depth=0)
    return replace(root, after=(*root.after, ("punct", Node(lexicon.FULL_STOP, "PUNCT"))))


def _subject(dice: Random) -> Node:
    """The subject of the sentence, most often a noun with attractors behind it."""
    kind, number = pick(dice, tuple(lexicon.NOUNS)), pick(dice, (SINGULAR, PLURAL))
    if chance(dice, 4):
        return Node(pick(dice, lexicon.PERSONAL_PRONOUNS[number]), "PRON", number=number, kind="person")
    if chance(dice, 3):
        return Node("it", "PRON", number=SINGULAR, kind="thing")
    if chance(dice, 4):
        return name(dice)
    if chance(dice, 4) and kind in lexicon.INDEFINITE_PRONOUNS:
        pronoun = pick(dice, lexicon.INDEFINITE_PRONOUNS[kind])
        return modified(dice, Node(pronoun, "PRON", number=SINGULAR, kind=kind), depth=2)
    if chance(dice, 12):
        return _coordinated_subject(dice, kind)
    noun = simple_noun_phrase(dice, kind, number, lexicon.DETERMINERS)
    return modified(dice, noun, depth=pick(dice, (0, 1, 2, 3, 3, 3)))


def _coordinated_subject(dice: Random, kind: str) -> Node:
    """Two subjects joined by "and", or by "both" and "and".

    Only after "both" may something stand behind the first noun: without it, the second subject could as well belong to
    what stands there ("the key to the cabinet and the door").
    """
    preconjunction = chance(dice, 50)
    if chance(dice, 30):
        return simple_coordination(dice, kind, preconjunction)
    first, second = (
        simple_noun_phrase(dice, kind, pick(dice, (SINGULAR, PLURAL)), lexicon.PLAIN_DETERMINERS) for _ in range(2)
    )
    return coordination(
        modified(dice, first, depth=1) if preconjunction else first, modified(dice, second, depth=1), preconjunction
    )


def _opening(dice: Random) -> tuple[tuple[str, Node], ...]:
    """What may stand before the subject, with its comma: an adverb, a place, or a clause of its own."""
    comma = ("punct", Node(lexicon.COMMA, "PUNCT"))
    form = pick(dice, ("adverb", "place", "clause"))
    if form == "adverb":
        return (("advmod", Node(pick(dice, lexicon.OPENING_ADVERBS), "ADV", after=(comma,))),)
    if form == "place":
        phrase = place(dice, depth=pick(dice, (0, 0, 1)))
        return (("obl", replace(phrase, after=(*phrase.after, comma))),)
    kind = pick(dice, tuple(lexicon.NOUNS))
    subject = simple_noun_phrase(dice, kind, pick(dice, (SINGULAR, PLURAL)), lexicon.DETERMINERS)
    mark = ("mark", Node(pick(dice, lexicon.SUBORDINATORS), "SCONJ"))
    inner = clause(dice, (mark, ("nsubj", subject)), kind, subject.number, depth=0)
    return (("advcl", replace(inner, after=(*inner.after, comma))),)


def _annotated(root: Node) -> AgreementSentence:
    """Flatten the tree into a sentence and find the subject, the verb and the attractors in it."""
    rows = list(root.in_order())
    position = {id(node): index for index, (node, _, _) in enumerate(rows)}
    sentence = Sentence(
        words=tuple(node.word for node, _, _ in rows),
        tags=tuple(node.tag for node, _, _ in rows),
        heads=tuple(-1 if head is None else position[id(head)] for _, _, head in rows),
        relations=tuple(relation for _, relation, _ in rows),
    )
    of_root = {relation: node for node, relation, head in rows if head is root}
    subject = of_root["nsubj"]
    first, last = position[id(subject)], position[id(of_root.get("cop", root))]
    number = subject.agreement
    attractors = sum(
        node.number not in ("", number) and not (relation == "conj" and head is subject)
        for node, relation, head in rows[first + 1 : last]
    )
    return AgreementSentence(sentence, first, last, number, attractors)
