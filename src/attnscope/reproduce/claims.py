"""A claim of a paper, judged: what the paper found, what was found here, and whether that is the same."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import BadInput
from ..numerals import counted
from ..record.schema import Label, Words, checked, json_of, rows_from_json

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
