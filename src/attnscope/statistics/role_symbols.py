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


def _symbol(letters: str, kind: str) -> RoleSymbol:
    return RoleSymbol(letters, ROLE_KINDS[kind], kind)


def _relation_symbols(relation: str, letters: str) -> dict[str, RoleSymbol]:
    return {
        f"{relation} → its head": _symbol(letters, "to its head"),
        f"head → its {relation}": _symbol(letters[::-1], "to its dependent"),
    }


def _tag_symbols(words: str, letters: str) -> dict[str, RoleSymbol]:
    return {f"to {words}": _symbol(f"→{letters}", "to words"), f"from {words}": _symbol(f"{letters}→", "from words")}


ROLE_SYMBOLS: dict[str, RoleSymbol] = {
    role: symbol
    for symbols in (
        *(_relation_symbols(relation, letters) for relation, letters in RELATION_LETTERS.items()),
        *(_tag_symbols(TAG_NAMES[tag], letters) for tag, letters in TAG_LETTERS.items()),
        {POSITIONS[name]: _symbol(name[0].upper(), "position") for name in POSITIONS},
        {REPEATS[name]: _symbol(name[0].upper(), "repetition") for name in REPEATS},
        {SINKS[name]: _symbol(2 * name[0].upper(), "sink") for name in SINKS},
        {RESTS[name]: _symbol(f"R{name[0].upper()}", "rests") for name in RESTS},
        {ONE_TOKEN: _symbol("1T", "one token")},
        {BOUND[0]: _symbol("BP", "bound"), BOUND[1]: _symbol("BC", "bound")},
        {BROAD: _symbol("B", "spread"), MIXED: _symbol("M", "spread")},
    )
    for role, symbol in symbols.items()
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
        return _tag_symbols(words, words[:2].upper())[role]
    return _symbol("".join(word[0] for word in role.split())[:2].upper(), "other")


def _other_relation(relation: str) -> str:
    """The letters of a relation that the table does not have: a subtype has one more than its relation."""
    general, _, subtype = relation.partition(":")
    return RELATION_LETTERS.get(general, general[:2].upper()) + subtype[:1].upper()
