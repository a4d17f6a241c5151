"""How claims are judged: each by a criterion that is fixed beforehand, on whatever was measured."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from .claims import Claim

Evidence = TypeVar("Evidence")
NOTHING = "–"


class Unmeasured(ValueError):
    """Raised where a claim cannot be judged; the reason is a sentence for the reader."""


@dataclass(frozen=True)
class Finding:
    """What was found here, and whether that is what the criterion asks for."""

    here: str
    holds: bool
    note: str = ""


@dataclass(frozen=True)
class Criterion(Generic[Evidence]):
    """A claim with the rule by which it is judged; both are told in the statement."""

    id: str
    claimed: str
    rule: str
    paper: str
    judge: Callable[[Evidence], Finding]

    def claim(self, evidence: Evidence) -> Claim:
        """The claim judged; it has no verdict where the evidence does not suffice."""
        statement = f"{self.claimed} Holds if {self.rule}."
        try:
            found = self.judge(evidence)
        except Unmeasured as reason:
            return Claim(self.id, statement, self.paper, NOTHING, None, str(reason))
        return Claim(self.id, statement, self.paper, found.here, found.holds, found.note)


def judged(criteria: Iterable[Criterion[Evidence]], evidence: Evidence) -> list[Claim]:
    """All claims, in their order."""
    return [criterion.claim(evidence) for criterion in criteria]
