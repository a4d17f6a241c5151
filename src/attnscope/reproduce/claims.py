"""A claim of a paper, judged: what the paper found, what was found here, and whether that is the same."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import BadInput
from ..record.schema import Label, Words, checked, json_of, rows_from_json

CLAIMS = "claims.json"
VERDICTS = {True: "holds", False: "does not hold", None: "not measured"}


@dataclass(frozen=True)
class Claim:
    """One claim. `statement` says what is claimed and when it counts as true, as fixed before anything was measured.

    `paper` and `here` are the figures of both. `holds` is None where it was not measured, and `note` then says why.
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
        return VERDICTS[self.holds]


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
    '1 of 2 claims holds, 0 do not hold, 1 was not measured'
    """
    verdicts = [claim.holds for claim in claims]
    true, false, unknown = (sum(verdict is kind for verdict in verdicts) for kind in (True, False, None))
    claimed = "claim" if len(verdicts) == 1 else "claims"
    return (
        f"{true} of {len(verdicts)} {claimed} {'holds' if true == 1 else 'hold'}, "
        f"{false} {'does' if false == 1 else 'do'} not hold, {unknown} {'was' if unknown == 1 else 'were'} not measured"
    )
