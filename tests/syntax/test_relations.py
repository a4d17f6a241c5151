"""Relations under one name, where two schemes mean the same."""

import pytest

from attnscope.syntax import general, universal
from attnscope.syntax.from_spacy import UNIVERSAL

UD = (
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed "
    "flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative xcomp"
).split()


@pytest.mark.parametrize("relation", [*UD, "nsubj:pass", "acl:relcl", "neg", "prep", "pobj", "attr", "dative", "agent"])
def test_what_is_universal_or_has_no_twin_keeps_its_name(relation: str) -> None:
    assert universal(relation) == relation


def test_twins_get_the_universal_name() -> None:
    assert [universal(name) for name in ("nsubjpass", "auxpass", "csubjpass", "dobj", "ROOT", "relcl")] == [
        "nsubj:pass",
        "aux:pass",
        "csubj:pass",
        "obj",
        "root",
        "acl:relcl",
    ]
    for ours, theirs in UNIVERSAL.items():
        assert general(theirs) in UD
        assert universal(theirs) == theirs
        assert ours not in UD


def test_a_relation_without_its_subtype() -> None:
    assert (general("nmod:poss"), general("nsubj"), general("obl:npmod:x")) == ("nmod", "nsubj", "obl")
