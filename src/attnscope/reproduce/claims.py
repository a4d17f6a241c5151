"""A claim of a paper, judged: what the paper found, what was found here, and whether that is the same."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from ..errors import BadInput
from ..numerals import counted
from ..record.schema import Label, Words, checked, json_of, rows_from_json
from .document import Block, Code, Heading, Paragraph, Strong, Table
from .document import Words as Inline

CLAIMS = "claims.json"
VERDICTS = {True: "holds", False: "does not hold"}
NOTHING = "–"
"""What stands for a figure where there is none."""


@dataclass(frozen=True)
class Claim:
    """One claim. `statement` says what is claimed and when it counts as true, as fixed before anything was measured.

    `paper` and `here` are the figures of both. `holds` is None where it was not measured, or what was measured does not
    decide it, and `note` then says why.
    """

    id: Label
    statement: Words
    paper: Words
    here: Words
    holds: bool | None
    note: Words

    @property
    def verdict(self) -> str:
        """The judgement in words."""
        if self.holds is None:
            return "not measured" if self.here == NOTHING else "no verdict"
        return VERDICTS[self.holds]

    @property
    def claimed(self) -> str:
        """What is claimed, without the rule."""
        return self.statement.partition(" Holds if ")[0]


def claims_json(claims: Iterable[Claim]) -> str:
    """The claims as a JSON list.

    >>> claims_json([]).strip()
    '[]'
    """
    return json.dumps([asdict(claim) for claim in claims], indent=1, ensure_ascii=False) + "\n"


@checked
def read_claims(path: str | Path) -> tuple[Claim, ...]:
    """Read the claims of a finished reproduction: its folder, or its claims.json."""
    path = Path(path)
    file = path / CLAIMS if path.is_dir() else path
    if not file.is_file():
        raise BadInput(f"{path} holds no finished reproduction: there is no {CLAIMS}.")
    return tuple(rows_from_json(Claim, json_of(file), f"{file}, the claims of a reproduction,"))


def count(claims: Iterable[Claim]) -> str:
    """How many hold, in words.

    >>> count([Claim("a", "", "", "", True, ""), Claim("b", "", "", "", None, "")])
    '1 of 2 claims holds, 0 do not hold, 0 were not measured, 1 has no verdict'
    """
    verdicts = Counter(claim.verdict for claim in claims)
    true, false, unknown = (verdicts[verdict] for verdict in (*VERDICTS.values(), "not measured"))
    claimed = "claim" if verdicts.total() == 1 else "claims"
    undecided = f", {counted(verdicts['no verdict'], 'has', 'have')} no verdict" if verdicts["no verdict"] else ""
    return (
        f"{true} of {verdicts.total()} {claimed} {'holds' if true == 1 else 'hold'}, "
        f"{false} {'does' if false == 1 else 'do'} not hold, {unknown} {'was' if unknown == 1 else 'were'} not measured"
        f"{undecided}"
    )


# How claims are judged: each by a criterion that is fixed beforehand, on whatever was measured.


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


# How judged claims stand in a report: all at one glance, and each with its rule.


def claims_blocks(claims: Sequence[Claim]) -> list[Block]:
    """The claims at one glance."""
    rows: list[Sequence[Inline]] = [
        [said(claim), claim.paper, claim.here, [Strong(claim.verdict)] if claim.holds else claim.verdict]
        for claim in claims
    ]
    return [
        Heading("What holds"),
        Paragraph(f"{count(claims)}. The rule of each stands below; a claim is about this model and these texts."),
        Table(["claim", "paper", "here", "verdict"], rows),
    ]


def said(claim: Claim) -> Inline:
    """A claim as a sentence, with the name by which files know it."""
    return [f"{claim.claimed} ", Code(claim.id)]


def details_blocks(claims: Sequence[Claim]) -> list[Block]:
    """Every claim with its rule and what is to be said of it."""
    blocks: list[Block] = []
    for claim in claims:
        blocks.append(Heading(f"{claim.id}: {claim.verdict}", 2))
        blocks.append(Paragraph(claim.statement))
        blocks.append(Paragraph(["Paper: ", claim.paper, ". Here: ", Strong(claim.here), f". {claim.note}"]))
    return blocks
