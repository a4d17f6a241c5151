"""The names of dependency relations: spaCy's English labels in the terms of Universal Dependencies.

spaCy's English models speak the labels of ClearNLP. A label is renamed only where both schemes mean the same relation
between the same two words. What has no twin keeps its name:

- `prep`, `pobj`, `pcomp`, `agent`: ClearNLP hangs the noun on its preposition, UD the preposition on its noun (`case`)
  and the noun on the verb (`obl`, `nmod`), so that neither arc of the one is an arc of the other.
- `attr`, `acomp`, `oprd`: ClearNLP hangs the predicate on "be", UD "be" on the predicate (`cop`).
- `dative`: UD's `iobj` for "give me", but a preposition for "give it to me".
- `neg`: UD has no relation for negations (`advmod` and `det` hold them); papers speak of it, so it stays.
- `npadvmod`, `quantmod`, `meta`: wider or narrower than any one relation of UD.

`nmod`, `case`, `mark`, `xcomp` and `ccomp` are names in both schemes and do not cover quite the same: ClearNLP's `case`
is only the possessive 's, its `nmod` what fits nowhere else.
"""

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
