"""The letters and the family of each role: the same in every map, so that two maps can be laid side by side.

The family has the colour, the letters tell the roles of a family apart. Families that say what a head looks at come
first, syntax before all; those that say little of it come last, and are grey wherever they are drawn.
"""

from typing import NamedTuple

from .roles import BOUND, BROAD, MIXED, ONE_TOKEN, POSITIONS, REPEATS, RESTS, SINKS, TAG_NAMES

FAMILIES = ("to its head", "to its dependent", "to words", "from words", "position", "repetition", "other", "at rest")
"""In the order in which they are listed; each has the colour of its place, and the last is grey."""
OTHER, AT_REST = FAMILIES.index("other"), FAMILIES.index("at rest")

TAG_LETTERS = dict(
    pair.split("=")
    for pair in (
        "ADJ=Aj ADP=Ap ADV=Av AUX=Ax CCONJ=Cc DET=D INTJ=Ij NOUN=N NUM=Nu PART=Pt PRON=Pn PROPN=Pr PUNCT=Pu SCONJ=Sc"
        " SYM=Sy VERB=V X=X"
    ).split()
)
RELATION_LETTERS = dict(
    pair.split("=")
    for pair in (
        "acl=ac advcl=al advmod=av amod=aj appos=ap aux=ax case=ca cc=cc ccomp=co clf=cf compound=cd conj=cj cop=cu"
        " csubj=cs dep=dp det=d discourse=di dislocated=dl expl=ex fixed=fx flat=fl goeswith=gw iobj=io list=li mark=m"
        " nmod=nm nsubj=s nummod=nu obj=o obl=ob orphan=or parataxis=pa punct=pu reparandum=rp root=rt vocative=vo"
        " xcomp=xc"
    ).split()
)
"""Two letters for each relation of Universal Dependencies, one for the commonest; a subtype adds its first letter."""
SINK_LETTERS = {"first": "f", "special": "z", "punctuation": "u"}
LETTERS = (
    {POSITIONS["previous"]: "P", POSITIONS["next"]: "N", POSITIONS["same"]: "S"}
    | {REPEATS["repeated"]: "R", REPEATS["induction"]: "I"}
    | {SINKS[sink]: letter.upper() for sink, letter in SINK_LETTERS.items()}
    | {RESTS[sink]: letter for sink, letter in SINK_LETTERS.items()}
    | {ONE_TOKEN: "1", BROAD: "B", MIXED: "M", BOUND[0]: "p", BOUND[1]: "c"}
)
TAGS_BY_NAME = {name: tag for tag, name in TAG_NAMES.items()}


class RoleSymbol(NamedTuple):
    """How a role is drawn."""

    letters: str
    family: int
    """Its place in `FAMILIES`."""


def role_symbol(role: str) -> RoleSymbol:
    """The letters and the family of a role; one that is not ours has its initials.

    >>> role_symbol("nsubj → its head"), role_symbol("head → its obj")
    (RoleSymbol(letters='s', family=0), RoleSymbol(letters='o', family=1))
    >>> role_symbol("to nouns").letters, role_symbol("broad").family, role_symbol("my own role").letters
    ('N', 7, 'mo')
    """
    if role in LETTERS:
        family = "position" if role in POSITIONS.values() else "repetition" if role in REPEATS.values() else "at rest"
        return RoleSymbol(LETTERS[role], FAMILIES.index(family))
    start, _, end = role.partition(" → its ")
    if end:
        to_head = end == "head"
        return RoleSymbol(_relation_letters(start if to_head else end), 0 if to_head else 1)
    direction, _, words = role.partition(" ")
    if direction in ("to", "from") and words:
        tag = TAGS_BY_NAME.get(words, words)
        return RoleSymbol(TAG_LETTERS.get(tag, tag[:2]), FAMILIES.index(f"{direction} words"))
    return RoleSymbol("".join(word[0] for word in role.split())[:2], OTHER)


def _relation_letters(relation: str) -> str:
    general, _, subtype = relation.partition(":")
    return RELATION_LETTERS.get(general, general[:2]) + subtype[:1]
