"""How claims are judged: each by a criterion that is fixed beforehand, on whatever was measured."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from .claims import NOTHING, Claim

Evidence = TypeVar("Evidence")
TOY_NOTE = "A toy run: this is what would be measured, and it is not judged."


class Unmeasured(ValueError):
    """Raised where a claim cannot be judged; the reason is a sentence for the reader."""


@dataclass(frozen=True)
class Finding:
    """What was found here, and whether that is what the criterion asks for."""

    here: str
    holds: bool | None
    """None where what was measured does not decide it."""
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


def without_verdicts(claims: Iterable[Claim], caution: str, derived: Collection[str] = ()) -> list[Claim]:
    """The claims of a run that a caution calls a toy: measured, but not judged; all as they are where there is none.

    Those of `derived` are about equations, which hold for a toy as for any model, and keep their verdict.
    """
    return [
        replace(claim, holds=None, note=f"{TOY_NOTE} {claim.note}".strip())
        if caution and claim.holds is not None and claim.id not in derived
        else claim
        for claim in claims
    ]
