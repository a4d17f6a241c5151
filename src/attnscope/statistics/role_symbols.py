"""How each role is drawn: its letters, its colour and its kind, the same in every map, on the screen and on paper.

The kind has the colour; the letters tell every role from every other one, also where colours cannot be seen. They are
one or two capitals or signs, so that no two differ by case alone. What says at what a head looks is coloured, syntax
most strongly; what says only where attention gathers is grey, the darker the more of it lies in one place.
"""

from typing import NamedTuple

from .roles import BOUND, BROAD, MIXED, ONE_TOKEN, POSITIONS, REPEATS, RESTS, SINKS, TAG_NAMES

ROLE_KINDS = {
    "to its head": "#0072b2",
    "to its dependent": "#d55e00",
    "to words": "#009e73",
    "from words": "#cc79a7",
    "position": "#56b4e9",
    "repetition": "#e69f00",
    "other": "#f0e442",
    "sink": "#505050",
    "rests": "#6e6e6e",
    "one token": "#8c8c8c",
    "bound": "#aaaaaa",
    "spread": "#c8c8c8",
}
"""The kinds of roles in the order in which they are listed, each with its colour (Okabe and Ito 2008) or its grey.

The greys keep away from black and white, so that what says little shines on no ground, light or dark.
"""
UNINFORMATIVE = ("sink", "rests", "one token", "bound", "spread")
"""The kinds that say how a head looks, but not at what: they are grey."""


def _pairs(text: str) -> dict[str, str]:
    """What stands before and after each equals sign."""
    return dict(pair.split("=") for pair in text.split())


TAG_LETTERS = _pairs("ADJ=A ADP=P ADV=R AUX=X CCONJ=& DET=D INTJ=! NOUN=N NUM=# PART=T PRON=Y PROPN=M PUNCT=? SCONJ=C"
                     " SYM=$ VERB=V X=*")  # fmt: skip
"""One letter or sign for each part of speech; an arrow before it is to such words, one after it from them."""
RELATION_LETTERS = _pairs(
    "acl=AC acl:relcl=RC advcl=AL advcl:relcl=AR advmod=AV advmod:emph=AE amod=AJ appos=AP aux=AX aux:pass=AU case=CE"
    " cc=CO cc:preconj=PK ccomp=CM clf=CF compound=CD compound:prt=PT conj=CJ cop=CP csubj=CU csubj:outer=CT"
    " csubj:pass=CV dep=DP det=DT det:predet=DE discourse=DI dislocated=DL expl=EX expl:pv=EV fixed=FX flat=FL"
    " flat:foreign=FO flat:name=FN goeswith=GW iobj=IO list=LI mark=MK nmod=NM nmod:npmod=NP nmod:poss=PS nmod:tmod=NT"
    " nmod:unmarked=NK nsubj=NS nsubj:outer=SO nsubj:pass=SV nummod=NU obj=OB obl=OL obl:agent=OA obl:arg=OG"
    " obl:npmod=ON obl:tmod=OT obl:unmarked=OK orphan=OR parataxis=PX punct=PU reparandum=RE root=RT vocative=VO"
    " xcomp=XC"
    # what spaCy's English models say and Universal Dependencies do not
    " acomp=AM agent=AG attr=AT dative=DV meta=ME neg=NG npadvmod=NA oprd=OD pcomp=PM pobj=PJ prep=PE quantmod=QM"
)
"""Two letters for each relation from the dependent to its head; the other way round is the other direction."""


class RoleSymbol(NamedTuple):
    """How a role is drawn."""

    letters: str
    colour: str
    """As `#rrggbb`."""
    kind: str
    """One of `ROLE_KINDS`."""


LETTERS = {
    "to its head": {f"{relation} → its head": letters for relation, letters in RELATION_LETTERS.items()},
    "to its dependent": {f"head → its {relation}": letters[::-1] for relation, letters in RELATION_LETTERS.items()},
    "to words": {f"to {TAG_NAMES[tag]}": f"→{letter}" for tag, letter in TAG_LETTERS.items()},
    "from words": {f"from {TAG_NAMES[tag]}": f"{letter}→" for tag, letter in TAG_LETTERS.items()},
    "position": {role: name[0].upper() for name, role in POSITIONS.items()},
    "repetition": {role: name[0].upper() for name, role in REPEATS.items()},
    "sink": {role: 2 * name[0].upper() for name, role in SINKS.items()},
    "rests": {role: f"R{name[0].upper()}" for name, role in RESTS.items()},
    "one token": {ONE_TOKEN: "1T"},
    "bound": {BOUND[0]: "BP", BOUND[1]: "BC"},
    "spread": {BROAD: "B", MIXED: "M"},
}
"""The letters of each role, by its kind."""
ROLE_SYMBOLS: dict[str, RoleSymbol] = {
    role: RoleSymbol(letters, ROLE_KINDS[kind], kind)
    for kind, of_kind in LETTERS.items()
    for role, letters in of_kind.items()
}
"""Every role that heads get, and how it is drawn."""


def role_symbol(role: str) -> RoleSymbol:
    """How a role is drawn; one that the table does not have, by the letters that its name begins with.

    >>> role_symbol("nsubj → its head")
    RoleSymbol(letters='NS', colour='#0072b2', kind='to its head')
    >>> role_symbol("to nouns").letters, role_symbol("broad").kind, role_symbol("my own role").letters
    ('→N', 'spread', 'MO')
    """
    if role in ROLE_SYMBOLS:
        return ROLE_SYMBOLS[role]
    start, _, end = role.partition(" → its ")
    if end == "head":
        return _symbol(_other_relation(start), "to its head")
    if end:
        return _symbol(_other_relation(end)[::-1], "to its dependent")
    direction, _, words = role.partition(" ")
    if direction in ("to", "from") and words:
        letters = words[:2].upper()
        return _symbol(f"→{letters}", "to words") if direction == "to" else _symbol(f"{letters}→", "from words")
    return _symbol("".join(word[0] for word in role.split())[:2].upper(), "other")


def _symbol(letters: str, kind: str) -> RoleSymbol:
    return RoleSymbol(letters, ROLE_KINDS[kind], kind)


def _other_relation(relation: str) -> str:
    """The letters of a relation that the table does not have: a subtype has one more than its relation."""
    general, _, subtype = relation.partition(":")
    return RELATION_LETTERS.get(general, general[:2].upper()) + subtype[:1].upper()
