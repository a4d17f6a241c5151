"""What each head does, in words: the pattern in which its attention most exceeds what is to be expected anyway.

A position and a part of speech must beat chance, a relation the best fixed offset and what other tokens give to the
same targets. A part of speech must also be attended to as such: where one token of each sentence gets most of it, the
head looks at that token, which may be another sink. Where nothing stands out, a head that gives most of its attention
to special tokens or to another sink rests there, as most heads of BERT do (Clark et al. 2019, section 3.2); one that
does not is called by what its attention is bound to, positions or content.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pandas as pd
import torch
from jaxtyping import Bool
from torch import Tensor

from .batch import Batch, Frame, Pairs
from .exemplars import Exemplars
from .statistic import ROWS, LayerAttention, Need, Reads

RESTING = 0.9
"""A head that gives more than this to one sink does nothing else that counts."""
RESTS_FROM = 0.5
"""A head that gives most of its attention to a sink rests there, unless the other part has a name."""
POSITION_SHARE, REPEAT_SHARE, TAG_SHARE, FOCUS_SHARE = 0.4, 0.2, 0.3, 0.3
REPEAT_LIFT, TAG_LIFT = 4.0, 2.0
MOST = 0.5
"""A tag is not attended to as such if one token has this much of what it could have beyond its due."""
EVEN = 0.8
POSITION_BOUND, CONTENT_BOUND = 0.25, 0.5
LEAST_GAIN, LEAST_LINKS = 0.1, 20
"""How much better than its baselines a head must follow a relation, by at least two standard errors, and how often."""
FEW_SENTENCES = 64
"""With fewer, too many names change from one part of a corpus to another (measured: see docs/survey.md)."""

TAG_NAMES = {
    "ADJ": "adjectives",
    "ADP": "prepositions",
    "ADV": "adverbs",
    "AUX": "auxiliaries",
    "CCONJ": "conjunctions",
    "DET": "determiners",
    "INTJ": "interjections",
    "NOUN": "nouns",
    "NUM": "numbers",
    "PART": "particles",
    "PRON": "pronouns",
    "PROPN": "proper nouns",
    "PUNCT": "punctuation",
    "SCONJ": "subordinating conjunctions",
    "SYM": "symbols",
    "VERB": "verbs",
    "X": "other words",
}
POSITIONS = {"previous": "previous token", "next": "next token", "same": "same token"}
REPEATS = {"repeated": "repeated token", "induction": "induction (what followed last time)"}
SINKS = {"first": "first token (sink)", "special": "special tokens (sink)", "punctuation": "punctuation (sink)"}
RESTS = {
    "special": "rests on special tokens",
    "first": "rests on the first token",
    "punctuation": "rests on punctuation",
}
ONE_TOKEN = "one token of each sentence"
COLUMNS = ["layer", "head", "role", "value", "error", "evidence", "gain"]
HEAD = ["layer", "head"]
BROAD, MIXED = "broad", "mixed"
BOUND = ("bound to position", "bound to content")

NEEDED = ("patterns", "null_attention", "entropy", "variability", "part_of_speech", "dependency_alignment")
"""The tables that roles are derived from, as far as they are there; `patterns` must be."""


def roles(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row for each head: its role, the share that named it, the evidence, and what else it could be called."""
    found = pd.concat([_bound(tables), *_candidates(tables)], ignore_index=True)
    ranked = found.sort_values([*HEAD, "gain"], ascending=[True, True, False], kind="stable", ignore_index=True)
    best = ranked.drop_duplicates(HEAD).drop(columns="gain")
    others = ranked[ranked.duplicated(HEAD) & (ranked["role"] != MIXED)]
    also = others.groupby(HEAD)["role"].agg(lambda names: ", ".join(names.iloc[:3])).rename("also")
    named = best.merge(also, how="left", on=HEAD).fillna({"also": ""}).reset_index(drop=True)
    named["evidence"] = (named["evidence"] + _doubt(tables)).str.strip()
    # a kind of which no head is one leaves columns of no type behind
    return named.astype({"role": str, "evidence": str, "also": str})


def _doubt(tables: Mapping[str, pd.DataFrame]) -> str:
    """What is to be said of every name where too little was read."""
    if "null_attention" not in tables:
        return ""
    sentences = int(tables["null_attention"]["sentences"].iloc[0])
    told = f" So few sentences ({sentences}) were read that others may name it otherwise."
    return told if sentences < FEW_SENTENCES else ""


def _candidates(tables: Mapping[str, pd.DataFrame]) -> list[pd.DataFrame]:
    """What the heads could be called by each table that is there."""
    namings = (
        ("patterns", _patterns),
        ("patterns", _at_rest),
        ("null_attention", _one_token),
        ("entropy", _broad),
        ("part_of_speech", _tags),
        ("dependency_alignment", _relations),
    )
    return [naming(tables[name]) for name, naming in namings if name in tables]


def _patterns(table: pd.DataFrame) -> pd.DataFrame:
    pattern, value, chance = table["pattern"], table["value"], table["chance"]
    position = pattern.isin(POSITIONS) & (value >= POSITION_SHARE) & (value >= TAG_LIFT * chance)
    repeat = pattern.isin(REPEATS) & (value >= REPEAT_SHARE) & (value >= REPEAT_LIFT * chance)
    sink = pattern.isin(SINKS) & (value >= RESTING)
    chosen = table[position | repeat | sink]
    evidence = [
        f"{row.value:.0%} of {'all its attention' if row.pattern in SINKS else 'its attention, sinks left out'}"
        f" ({row.chance:.0%} by chance)."
        for row in chosen.itertuples()
    ]
    # a head at rest does nothing else that counts, whatever the rest of its attention looks like
    gain = (chosen["value"] - chosen["chance"]).where(~chosen["pattern"].isin(SINKS), chosen["value"] + 1)
    return _named(chosen, chosen["pattern"].map({**POSITIONS, **REPEATS, **SINKS}), evidence, gain)


def _at_rest(table: pd.DataFrame) -> pd.DataFrame:
    """Most of its attention rests, but not all: where the rest of it has no better name, this is what the head does."""
    order = {pattern: place for place, pattern in enumerate(RESTS)}  # [CLS] is the first token and special: special
    chosen = table[table["pattern"].isin(RESTS) & table["value"].between(RESTS_FROM, RESTING, inclusive="left")]
    chosen = chosen.sort_values("pattern", key=lambda names: names.map(order), kind="stable").drop_duplicates(HEAD)
    evidence = [f"{row.value:.0%} of all its attention ({row.chance:.0%} by chance)." for row in chosen.itertuples()]
    # before those names of the rest that say how it looks but not at what, which follow with the same gain
    return _named(chosen, chosen["pattern"].map(RESTS), evidence, pd.Series(LEAST_GAIN, index=chosen.index))


def _one_token(table: pd.DataFrame) -> pd.DataFrame:
    share, chance = table["one_token"], table["one_token_chance"]
    # the bar of parts of speech, since it is those that such a head is taken for
    chosen = table[(share >= TAG_SHARE) & (share >= TAG_LIFT * chance)]
    evidence = [
        f"{row.one_token:.0%} of its attention, sinks left out, goes to one token of each sentence"
        f" ({row.one_token_chance:.0%} by chance): another sink, or what the sentence turns on."
        for row in chosen.itertuples()
    ]
    figures = chosen.assign(value=chosen["one_token"], error=chosen["one_token_error"])
    # like "broad" it says how the head looks but not at what, so that any name that does goes before it
    return _named(figures, ONE_TOKEN, evidence, pd.Series(LEAST_GAIN, index=chosen.index))


def _broad(table: pd.DataFrame) -> pd.DataFrame:
    chosen = table[table["evenness"] >= EVEN]
    evidence = [
        f"Its rows have {row.evenness:.0%} of the entropy of looking at everything alike ({row.value:.1f} nats)."
        for row in chosen.itertuples()
    ]
    even = chosen.assign(value=chosen["evenness"], error=chosen["error"] * chosen["evenness"] / chosen["value"])
    return _named(even, BROAD, evidence, pd.Series(LEAST_GAIN, index=chosen.index))


def is_of_one_token(table: pd.DataFrame) -> "pd.Series[bool]":
    """Where a head's share of a part of speech is that of one token in each sentence, rather than of all that have it.

    As for relations, a small gain says nothing: where hardly a sentence has two of a tag, one has nearly all anyway.
    """
    beyond_its_due = table["one_token"] - table["one_token_chance"]
    return (beyond_its_due >= LEAST_GAIN) & (beyond_its_due >= MOST * (1 - table["one_token_chance"]))


def _tags(table: pd.DataFrame) -> pd.DataFrame:
    mean = table.groupby(["direction", "tag"])["value"].transform("mean")
    enough = (table["value"] >= TAG_SHARE) & (table["value"] >= TAG_LIFT * table["chance"])
    chosen = table.assign(mean=mean)[enough & ~is_of_one_token(table)]
    words = chosen["tag"].map(lambda tag: TAG_NAMES.get(tag, tag))
    evidence = [
        f"{row.value:.0%} of its attention, sinks left out, goes {row.direction} {TAG_NAMES.get(row.tag, row.tag)}"
        f" ({row.mean:.0%} over all heads, {row.chance:.0%} by chance)."
        for row in chosen.itertuples()
    ]
    return _named(chosen, chosen["direction"] + " " + words, evidence, chosen["value"] - chosen["chance"])


def _relations(table: pd.DataFrame) -> pd.DataFrame:
    expected = table[["focus_offset_value", "focus_of_others"]].max(axis=1)
    gain = table["focus"] - expected
    follows = (table["focus"] >= FOCUS_SHARE) & (gain >= LEAST_GAIN) & (gain >= 2 * table["focus_error"])
    single = (table["relation"] != "any") & (table["direction"] != "either")
    chosen = table.assign(gain=gain)[follows & single & (table["links"] >= LEAST_LINKS)]
    to_head = chosen["direction"] == "dependent_to_head"
    names = (chosen["relation"] + " → its head").where(to_head, "head → its " + chosen["relation"])
    evidence = [
        f"Of the attention of tokens that have one, {row.focus:.0%} follows the relation {row.relation} (looking at"
        f" {row.focus_offset:+d} would get {row.focus_offset_value:.0%}, other tokens give {row.focus_of_others:.0%})."
        for row in chosen.itertuples()
    ]
    return _named(chosen.assign(value=chosen["focus"], error=chosen["focus_error"]), names, evidence, chosen["gain"])


def _bound(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What a head is bound to, where variability was measured: the name of heads that have no better one."""
    if "variability" not in tables:
        heads = tables["patterns"][HEAD].drop_duplicates()
        return _named(heads.assign(value=math.nan, error=math.nan), MIXED, [""] * len(heads), 0.0)
    table = tables["variability"]
    names = pd.Series(MIXED, index=table.index)
    names[table["value"] <= POSITION_BOUND] = BOUND[0]
    names[table["value"] >= CONTENT_BOUND] = BOUND[1]
    evidence = [
        "No text was long enough to tell how its attention varies."
        if math.isnan(row.value)
        else f"Its attention varies by {row.value:.2f} from text to text (0 to 1)."
        for row in table.itertuples()
    ]
    return _named(table, names, evidence, 0.0)


def _named(rows: pd.DataFrame, names: pd.Series | str, evidence: list[str], gain: pd.Series | float) -> pd.DataFrame:
    return rows[[*HEAD, "value", "error"]].assign(role=names, evidence=evidence, gain=gain)[COLUMNS]


# Cases of a head's role: of the pairs that the role is about, those with the largest weights.


SHOWN = 5


@dataclass
class RoleExemplars:
    """For each head the sentences with the largest weight on a pair that its role speaks of.

    A head that rests, or is broad or mixed, has none: its role speaks of no pairs. The roles must be known, so the
    corpus is read again for them.
    """

    needs: ClassVar[tuple[Need, ...]] = ()
    reads: ClassVar[Reads] = ROWS
    errors: ClassVar[Mapping[str, str]] = {}
    second_pass: ClassVar[None] = None

    roles: Sequence[Sequence[str]]
    """By layer and head."""
    exemplars: Exemplars

    @classmethod
    def after(cls, roles: pd.DataFrame, frame: Frame) -> "RoleExemplars":
        """One that knows the roles and has seen nothing."""
        ordered = roles.sort_values(["layer", "head"])
        by_layer = [ordered[ordered["layer"] == layer]["role"].tolist() for layer in range(frame.layers)]
        return cls(by_layer, Exemplars.empty(frame))

    def update(self, attention: LayerAttention) -> None:
        """Take in one layer of one batch."""
        names = self.roles[attention.layer]
        about = {name: pairs_of_role(name, attention.batch) for name in set(names)}
        mask = torch.stack([about[name] for name in names], dim=1).to(attention.weights)
        self.exemplars.update(LayerAttention(attention.batch, attention.layer, attention.weights * mask))

    def state(self) -> dict[str, Any]:
        """What has been seen."""
        return self.exemplars.state()

    @staticmethod
    def table(state: Mapping[str, Any]) -> pd.DataFrame:
        """The table of what `state` gave: that of exemplars, a few of each head."""
        found = Exemplars.from_state(state).result()
        return found[found["rank"] < SHOWN].reset_index(drop=True)


def pairs_of_role(role: str, batch: Batch) -> Bool[Tensor, "sentence query key"]:
    """The pairs of tokens that a role speaks of: none where it speaks of no single ones."""
    offsets = {POSITIONS["previous"]: -1, POSITIONS["next"]: 1, POSITIONS["same"]: 0}
    if role in offsets:
        return (batch.ahead == offsets[role]).expand_as(batch.kept)
    if role in REPEATS.values():
        return _mark(batch.repeated if role == REPEATS["repeated"] else batch.induction, batch)
    for number, tag in enumerate(batch.frame.tags):
        words, of_tag = TAG_NAMES.get(tag, tag), batch.tags == number
        if role in (f"to {words}", f"from {words}"):
            marks = of_tag.unsqueeze(1) if role.startswith("to") else batch.at_queries(of_tag).unsqueeze(2)
            return marks.expand_as(batch.kept)
    for number, relation in enumerate(batch.frame.relations):
        related = batch.relations == number
        if role == f"{relation} → its head":
            return batch.dependent_to_head & batch.at_queries(related).unsqueeze(2)
        if role == f"head → its {relation}":
            return batch.head_to_dependent & related.unsqueeze(1)
    return torch.zeros_like(batch.kept)


def _mark(pairs: Pairs, batch: Batch) -> Bool[Tensor, "sentence query key"]:
    marks = torch.zeros_like(batch.kept)
    marks[pairs.sentence, pairs.query, pairs.key] = True
    return marks


# ---- How each role is drawn: its letters, its colour and its kind, the same in every map, on the screen and on paper.
#
# The kind has the colour; the letters tell every role from every other one, also where colours cannot be seen. They are
# one or two capitals or signs, so that no two differ by case alone. What says at what a head looks is coloured, syntax
# most strongly; what says only where attention gathers is grey, the darker the more of it lies in one place.


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
