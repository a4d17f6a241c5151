"""Several reproductions of one paper side by side: which claims hold for which model, corpus or genre."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from ..errors import BadInput
from .claims import NOTHING, Claim, count, read_claims
from .document import Block, Document, Figure, Heading, Link, Paragraph, Strong, Table, Words
from .telling import said
from .writing import REPORT, SURVEY, Reproduction, write_reproduction

TITLE = "Reproductions side by side"


def compare(
    out: str | Path,
    runs: Mapping[str, str | Path],
    title: str = TITLE,
    *,
    caution: str = "",
    figures: Sequence[Figure] = (),
    tables: Mapping[str, pd.DataFrame] | None = None,
) -> Reproduction:
    """Write a report that compares finished reproductions of the same paper, each given by its name and folder.

    A claim holds in the comparison if it holds in every run that measured it, and has no verdict if none did.
    """
    out = Path(out)
    if (out / SURVEY).exists():
        raise BadInput(f"{out} holds a reproduction of its own: write the comparison into another folder.")
    claims = {name: read_claims(folder) for name, folder in runs.items()}
    if not claims:
        raise BadInput("There is nothing to compare: give at least one finished reproduction.")
    ids = [claim.id for claim in next(iter(claims.values()))]
    for name, of_run in claims.items():
        if [claim.id for claim in of_run] != ids:
            raise BadInput(f"{name} is no reproduction of the same paper as the others: its claims are not theirs.")
    together = [_together({name: of_run[place] for name, of_run in claims.items()}) for place in range(len(ids))]
    rows: list[Sequence[Words]] = [
        [said(together[place]), *(_short(of_run[place]) for of_run in claims.values())] for place in range(len(ids))
    ]
    counts: list[Sequence[Words]] = [[name, count(of_run), _link(out, runs[name])] for name, of_run in claims.items()]
    blocks: list[Block] = [
        Heading("How many claims hold"),
        Table(["run", "claims", "report"], counts),
        Heading("Which claims hold where"),
        Table(["claim", *claims], rows),
        *figures,
        Heading("The figures"),
    ]
    for place, claim in enumerate(together):
        blocks.append(Heading(claim.id, 2))
        blocks.append(Paragraph(claim.statement))
        found: list[Sequence[Words]] = [
            [name, of_run[place].here, _short(of_run[place]), of_run[place].note] for name, of_run in claims.items()
        ]
        blocks.append(Table(["run", "here", "verdict", "note"], [["paper", claim.paper, "", ""], *found]))
    return write_reproduction(
        out, Document(title, blocks, caution), together, {"claims": _table(claims), **(tables or {})}
    )


def _together(of_runs: Mapping[str, Claim]) -> Claim:
    """One claim for all runs."""
    first = next(iter(of_runs.values()))
    measured = any(claim.here != NOTHING for claim in of_runs.values())
    verdicts = [claim.holds for claim in of_runs.values() if claim.holds is not None]
    return Claim(
        first.id,
        first.statement,
        first.paper,
        "; ".join(f"{name}: {claim.here}" for name, claim in of_runs.items()) if measured else NOTHING,
        all(verdicts) if verdicts else None,
        f"Holds in {sum(verdicts)} of {len(verdicts)} runs that measured it." if verdicts else first.note,
    )


def _short(claim: Claim) -> Words:
    return [Strong(claim.verdict)] if claim.holds else claim.verdict


def _link(out: Path, folder: str | Path) -> Words:
    """Where the report of a run lies, seen from this one; no path of this machine."""
    folder = Path(folder)
    if not folder.resolve().is_relative_to(out.resolve()):
        return folder.name
    return [Link("report", f"{folder.resolve().relative_to(out.resolve()).as_posix()}/{Path(REPORT).stem}")]


def _table(claims: Mapping[str, Sequence[Claim]]) -> pd.DataFrame:
    rows = [
        {"claim": claim.id, "run": name, "paper": claim.paper, "here": claim.here, "verdict": claim.verdict}
        for name, of_run in claims.items()
        for claim in of_run
    ]
    return pd.DataFrame(rows).sort_values("claim", kind="stable")
