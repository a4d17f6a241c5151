"""Our own grammar of English subject-verb agreement: endless sentences from a seed, each with its gold parse.

A sentence such as "the key to the cabinets that the men like is rusty ." asks whether a reader keeps the number of
"key" in mind past the attractors "cabinets" and "men".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeVar

from . import lexicon
from .lexicon import PLURAL, SINGULAR
from .sentence import Sentence

# The rules of the grammar: noun phrases, what modifies them, and clauses, each drawn at random with its parse.


Option = TypeVar("Option")


@dataclass(frozen=True, eq=False)
class Node:
    """A word and the phrases that depend on it, left and right in their order, each with its relation."""

    word: str
    tag: str
    before: "tuple[tuple[str, Node], ...]" = ()
    after: "tuple[tuple[str, Node], ...]" = ()
    number: str = ""  # of nouns and of pronouns that have one
    kind: str = ""  # of nouns: a key of `lexicon.NOUNS`

    @property
    def agreement(self) -> str:
        """The number of a verb whose subject this is: a coordination is plural."""
        return PLURAL if any(relation == "conj" for relation, _ in self.after) else self.number

    def in_order(self, relation: str = "root", head: "Node | None" = None) -> "Iterator[tuple[Node, str, Node | None]]":
        """Yield (node, relation, head) for every word of the phrase, from left to right."""
        for dependent_relation, dependent in self.before:
            yield from dependent.in_order(dependent_relation, self)
        yield self, relation, head
        for dependent_relation, dependent in self.after:
            yield from dependent.in_order(dependent_relation, self)


Dependents = tuple[tuple[str, Node], ...]


def pick(dice: Random, options: Sequence[Option]) -> Option:
    """One of the options. Uses `random()` alone, the only draw that Python promises never to change."""
    return options[int(dice.random() * len(options))]


def chance(dice: Random, percent: int) -> bool:
    """True in so many of a hundred draws."""
    return dice.random() * 100 < percent


def simple_noun_phrase(dice: Random, kind: str, number: str, determiners: dict[str, tuple[str, ...]]) -> Node:
    """A determiner, perhaps a numeral and an adjective, and a noun."""
    singular, plural = pick(dice, lexicon.NOUNS[kind])
    noun = singular if number == SINGULAR else plural
    word = pick(dice, determiners[number])
    inner: Dependents = ()
    if number == PLURAL and word in lexicon.COUNTABLE_AFTER and chance(dice, 15):
        inner += (("nummod", Node(pick(dice, lexicon.NUMERALS), "NUM")),)
    if chance(dice, 20):
        inner += (("amod", Node(pick(dice, lexicon.ADJECTIVES[kind]), "ADJ")),)
    following = inner[0][1].word if inner else noun
    return Node(noun, "NOUN", (*_determiner(word, following), *inner), number=number, kind=kind)


def _determiner(word: str, following: str) -> Dependents:
    if word == lexicon.BARE:
        return ()
    if word == lexicon.ARTICLE:
        return (("det", Node("an" if following[0] in "aeiou" else "a", "DET")),)
    if word in lexicon.POSSESSIVES:
        return (("nmod:poss", Node(word, "PRON")),)
    if word in lexicon.COUNTING_ADJECTIVES:  # "many keys": an adjective in English UD
        return (("amod", Node(word, "ADJ")),)
    return (("det", Node(word, "DET")),)


def coordination(first: Node, second: Node, preconjunction: bool) -> Node:
    """`first and second`, or `both first and second`; UD makes the first conjunct the head."""
    both: Dependents = (("cc:preconj", Node(lexicon.PRECONJUNCTION, "CCONJ")),) if preconjunction else ()
    second = replace(second, before=(("cc", Node(lexicon.CONJUNCTION, "CCONJ")), *second.before))
    return replace(first, before=(*both, *first.before), after=(*first.after, ("conj", second)))


def simple_coordination(dice: Random, kind: str, preconjunction: bool) -> Node:
    """Two noun phrases of one kind and any numbers, with nothing after their nouns."""
    first, second = (
        simple_noun_phrase(dice, kind, pick(dice, (SINGULAR, PLURAL)), lexicon.PLAIN_DETERMINERS) for _ in range(2)
    )
    return coordination(first, second, preconjunction)


def name(dice: Random) -> Node:
    """A person's name."""
    return Node(pick(dice, lexicon.NAMES), "PROPN", number=SINGULAR, kind="person")


def noun_phrase(dice: Random, depth: int) -> Node:
    """A noun phrase for after a preposition or a verb: modified up to `depth` deep, coordinated, a name or a pronoun.

    A coordination here always says "both": in "the key to the cabinet and the door" nobody could tell whether the door
    is a second subject, and with it the number of the verb.
    """
    kind, number = pick(dice, ("person", "animal", "thing", "thing")), pick(dice, (SINGULAR, PLURAL))
    if chance(dice, 10):
        return simple_coordination(dice, kind, preconjunction=True)
    if chance(dice, 6):
        return name(dice)
    if chance(dice, 5):
        return Node(pick(dice, lexicon.OBJECT_PRONOUNS[number]), "PRON", number=number, kind="person")
    return modify(dice, simple_noun_phrase(dice, kind, number, lexicon.DETERMINERS), depth)


def modify(dice: Random, noun: Node, depth: int) -> Node:
    """The noun with a prepositional phrase, a relative clause, both or none after it."""
    if depth > 0 and chance(dice, 70):
        phrase = prepositional_phrase(dice, noun_phrase(dice, depth - 1), linked=chance(dice, 50))
        noun = replace(noun, after=(("nmod", phrase),))
    if depth > 0 and chance(dice, 45):
        noun = replace(noun, after=(*noun.after, ("acl:relcl", relative_clause(dice, noun, depth - 1))))
    return noun


def prepositional_phrase(dice: Random, noun: Node, linked: bool) -> Node:
    """The noun phrase with a preposition before it, one that links two nouns or one that tells a place."""
    prepositions = lexicon.LINK_PREPOSITIONS if linked else lexicon.PLACE_PREPOSITIONS[noun.kind]
    return replace(noun, before=(("case", Node(pick(dice, prepositions), "ADP")), *noun.before))


def relative_clause(dice: Random, noun: Node, depth: int) -> Node:
    """A clause about the noun, which is its subject ("that opens the doors") or its object ("that the men like")."""
    if chance(dice, 50):
        pronoun = Node(pick(dice, lexicon.RELATIVE_PRONOUNS[noun.kind]), "PRON")
        return clause(dice, (("nsubj", pronoun),), noun.kind, noun.number, depth)
    subject = relative_subject(dice, depth)
    # "the key to the door the men like" would be about the door, so what stands apart from its noun says "that".
    that: Dependents = (("obj", Node("that", "PRON")),) if noun.after or chance(dice, 50) else ()
    verb = _form(pick(dice, lexicon.TRANSITIVE_VERBS[subject.kind]), subject.agreement)
    return Node(verb, "VERB", (*that, ("nsubj", subject), *_adverb_before_verb(dice)))


def relative_subject(dice: Random, depth: int) -> Node:
    """The subject inside an object relative: it has a determiner, so that its beginning shows without "that" too."""
    kind, number = pick(dice, ("person", "person", "animal")), pick(dice, (SINGULAR, PLURAL))
    if chance(dice, 20):
        return Node(pick(dice, lexicon.PERSONAL_PRONOUNS[number]), "PRON", number=number, kind="person")
    if chance(dice, 10):
        return name(dice)
    if chance(dice, 12):
        return simple_coordination(dice, kind, preconjunction=False)
    noun = simple_noun_phrase(dice, kind, number, lexicon.PLAIN_DETERMINERS)
    if depth > 0 and chance(dice, 40):
        # No relative clause inside: nobody follows "the key the man the dog likes sees".
        modifier = prepositional_phrase(dice, noun_phrase(dice, 0), linked=chance(dice, 50))
        return replace(noun, after=(("nmod", modifier),))
    return noun


def clause(dice: Random, before: Dependents, kind: str, number: str, depth: int) -> Node:
    """A verb or copula that agrees with `number`, with what follows it; `before` holds the subject and what leads it.

    The root is the verb, or with a copula the predicate, as UD has it.
    """
    before += _adverb_before_verb(dice)
    copula = ("cop", Node(lexicon.COPULA[number], "AUX"))
    form = pick(dice, ("transitive", "transitive", "intransitive", "adjective", "place"))
    if form == "transitive":
        verb = _form(pick(dice, lexicon.TRANSITIVE_VERBS[kind]), number)
        return Node(verb, "VERB", before, (("obj", noun_phrase(dice, depth)),))
    if form == "intransitive":
        verb = _form(pick(dice, lexicon.INTRANSITIVE_VERBS[kind]), number)
        if chance(dice, 50):
            return Node(verb, "VERB", before, (("advmod", Node(pick(dice, lexicon.CLOSING_ADVERBS), "ADV")),))
        return Node(verb, "VERB", before, (("obl", place(dice, depth)),))
    if form == "adjective":
        return Node(pick(dice, lexicon.ADJECTIVES[kind]), "ADJ", (*before, copula))
    predicate = place(dice, depth)
    return replace(predicate, before=(*before, copula, *predicate.before))


def place(dice: Random, depth: int) -> Node:
    """Where something is: "in the garden"."""
    return prepositional_phrase(dice, noun_phrase(dice, depth), linked=False)


def _adverb_before_verb(dice: Random) -> Dependents:
    return (("advmod", Node(pick(dice, lexicon.FREQUENCY_ADVERBS), "ADV")),) if chance(dice, 15) else ()


def _form(verb: tuple[str, str], number: str) -> str:
    plural, singular = verb
    return plural if number == PLURAL else singular


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
    tables = [table for name, table in vars(lexicon).items() if name.isupper() and name not in ("SINGULAR", "PLURAL")]
    return tuple(sorted({"an", *_forms(tables)} - {lexicon.BARE}))


def _forms(words: Any) -> Iterator[str]:
    """The words in a nest of tables and lists."""
    if isinstance(words, str):
        yield words
    else:
        for inner in words.values() if isinstance(words, Mapping) else words:
            yield from _forms(inner)


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
        return modify(dice, Node(pronoun, "PRON", number=SINGULAR, kind=kind), depth=2)
    if chance(dice, 12):
        return _coordinated_subject(dice, kind)
    noun = simple_noun_phrase(dice, kind, number, lexicon.DETERMINERS)
    return modify(dice, noun, depth=pick(dice, (0, 1, 2, 3, 3, 3)))


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
        modify(dice, first, depth=1) if preconjunction else first, modify(dice, second, depth=1), preconjunction
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
