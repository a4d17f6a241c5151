"""Which statistics are taken: those that were named, or all that the corpus has the annotation for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import BadInput
from ..statistics import NEEDED, PARSE, ROLE_EXEMPLARS, ROLES, STATISTICS, TAGS
from ..syntax import Corpus

MEANINGS = {TAGS: "parts of speech", PARSE: "heads and relations"}
OUR_NAMES: dict[Any, str] = {kind: name for name, kind in STATISTICS.items()}

Kinds = dict[str, type[Any]]


@dataclass(frozen=True)
class Choice:
    """The statistics of a survey by name, whether roles are told from them, and what the corpus did not allow."""

    statistics: Kinds
    wants_roles: bool
    left_out: dict[str, str]
    """Statistics that were not taken for want of annotation, and what they need."""

    @property
    def names(self) -> list[str]:
        """The names of the tables."""
        of_roles = [(ROLES, self.wants_roles), (ROLE_EXEMPLARS, self.wants_role_exemplars)]
        return [*self.statistics, *(name for name, wanted in of_roles if wanted)]

    @property
    def wants_role_exemplars(self) -> bool:
        """Whether cases of each role are shown beside the largest weights."""
        return self.wants_roles and "exemplars" in self.statistics

    @property
    def needs(self) -> frozenset[str]:
        """The annotation that every sentence must have."""
        return frozenset(need for kind in self.statistics.values() for need in kind.needs)


def named_statistics(asked: Sequence[str | type[Any]] | None) -> tuple[Kinds, bool] | None:
    """The statistics that were asked for, and whether roles were; None is all that can be taken."""
    if asked is None:
        return None
    if isinstance(asked, str) or not asked:
        raise BadInput(f"statistics= is a list of {', '.join(STATISTICS)}, {ROLES}, not {asked!r}.")
    named: Kinds = {}
    for one in asked:
        if one != ROLES:
            name, kind = _named(one)
            if name in named and named[name] is not kind:
                raise BadInput(f"Two statistics are called {name}: give each a name of its own.")
            named[name] = kind
    return named, ROLES in asked


def chosen_statistics(named: tuple[Kinds, bool] | None, corpus: Corpus) -> Choice:
    """What is taken on this corpus; what was named and cannot be is refused."""
    offered = _annotation(corpus)
    possible = {name: kind for name, kind in STATISTICS.items() if offered >= set(kind.needs)}
    if named is None:
        missing = {name: _meaning(kind.needs) for name, kind in STATISTICS.items() if name not in possible}
        return Choice(possible, True, missing)
    chosen, wants_roles = named
    for name, kind in chosen.items():
        if missing_here := [need for need in kind.needs if need not in offered]:
            raise BadInput(
                f"{name} needs {_meaning(missing_here)}, and the first sentence of {corpus.name} has none: give"
                " annotated ones (CoNLL-U), or a parser (--parser, parser=)."
            )
    if wants_roles:
        chosen = chosen | {name: possible[name] for name in NEEDED if name in possible}
    return Choice(chosen, wants_roles, {})


def _meaning(needs: Sequence[str]) -> str:
    return " and ".join(MEANINGS[need] for need in needs)


def _named(one: Any) -> tuple[str, type[Any]]:
    """A statistic by its name, or a class; a class of ours goes by the name it has here."""
    if isinstance(one, str):
        if one not in STATISTICS:
            raise BadInput(f"There is no statistic {one!r}: choose {', '.join(STATISTICS)} or {ROLES}.")
        return one, STATISTICS[one]
    name = str(OUR_NAMES.get(one) or getattr(one, "__name__", type(one).__name__))
    if not all(hasattr(one, part) for part in ("empty", "update", "from_state", "needs", "second_pass")):
        raise BadInput(f"{name} is no statistic: give a class such as those of STATISTICS.")
    if name in (ROLES, ROLE_EXEMPLARS) or STATISTICS.get(name, one) is not one:
        raise BadInput(f"There is another statistic called {name}: give yours a name of its own.")
    return name, one


def _annotation(corpus: Corpus) -> set[str]:
    """What the first sentence has; a parser that cannot be loaded is told here, before anything is written.

    Later sentences that have less are skipped and counted, as are all that a model cannot read.
    """
    first = next(corpus.sentences())
    parsed = first.heads is not None and first.relations is not None
    return ({TAGS} if first.tags is not None else set()) | ({PARSE} if parsed else set())
