"""The rules of the grammar: noun phrases, what modifies them, and clauses, each drawn at random with its parse."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from . import lexicon
from .lexicon import PLURAL, SINGULAR

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
    return modified(dice, simple_noun_phrase(dice, kind, number, lexicon.DETERMINERS), depth)


def modified(dice: Random, noun: Node, depth: int) -> Node:
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


# The names of dependency relations: spaCy's English labels in the terms of Universal Dependencies.
# spaCy's English models speak the labels of ClearNLP. A label is renamed only where both schemes mean the same
# relation between the same two words. What has no twin keeps its name:
# - `prep`, `pobj`, `pcomp`, `agent`: ClearNLP hangs the noun on its preposition, UD the preposition on its noun
# (`case`) and the noun on the verb (`obl`, `nmod`), so that neither arc of the one is an arc of the other. - `attr`,
# `acomp`, `oprd`: ClearNLP hangs the predicate on "be", UD "be" on the predicate (`cop`). - `dative`: UD's `iobj` for
# "give me", but a preposition for "give it to me". - `neg`: UD has no relation for negations (`advmod` and `det` hold
# them); papers speak of it, so it stays. - `npadvmod`, `quantmod`, `meta`: wider or narrower than any one relation of
# UD.
# `nmod`, `case`, `mark`, `xcomp` and `ccomp` are names in both schemes and do not cover quite the same: ClearNLP's
# `case` is only the possessive 's, its `nmod` what fits nowhere else.


UNIVERSAL = {
    "ROOT": "root",
    "auxpass": "aux:pass",
    "csubjpass": "csubj:pass",
    "dobj": "obj",
    "intj": "discourse",
    "nsubjpass": "nsubj:pass",
    "poss": "nmod:poss",
    "preconj": "cc:preconj",
    "predet": "det:predet",
    "prt": "compound:prt",
    "relcl": "acl:relcl",
}
"""ClearNLP's labels, and what UD calls the same relation."""


def universal(relation: str) -> str:
    """The relation as Universal Dependencies call it, where they have the same one; else unchanged.

    >>> universal("nsubjpass"), universal("nsubj:pass"), universal("pobj")
    ('nsubj:pass', 'nsubj:pass', 'pobj')
    """
    return UNIVERSAL.get(relation, relation)


def general(relation: str) -> str:
    """The relation without its subtype.

    >>> general("nsubj:pass")
    'nsubj'
    """
    return relation.partition(":")[0]
