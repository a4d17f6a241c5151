"""The folder of a reproduction: the report, its tables and figures, and the claims, which come last."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import BadInput
from ..files import written_atomically
from ..views.printing import Plot
from .claims import CLAIMS, NOTHING, Claim, claims_json, count, name_claim, read_claims, spread_of, verdict_words
from .document import Block, Document, Figure, Heading, Link, Paragraph, Table, Words, markdown_of, page_of, under

REPORT, PAGE, TABLES, FIGURES = "report.md", "report.html", "tables", "figures"
SURVEY = "survey"
"""The folder inside, where the survey grows that the report is made of."""
DIGITS = "%.6g"
"""How tables write numbers: more digits than any standard error here is worth."""
LARGEST_DRAWING = 200_000
"""A figure whose shapes take more bytes than this may be shown as a picture of dots, so that pages stay small."""


@dataclass(frozen=True)
class Reproduction:
    """A finished reproduction of a paper: where it is, and how its claims fared."""

    folder: Path
    title: str
    claims: tuple[Claim, ...]
    caution: str = ""
    """What a reader must know before the claims."""

    def summary(self) -> str:
        """What each claim has come to, the paper's figure above ours, and how many hold."""
        lines = [f"{claim.claimed} ({claim.id}): {claim.verdict}{self._figures(claim)}" for claim in self.claims]
        said = count(self.claims)
        last = [f"{said[:1].upper()}{said[1:]}.", *([self.caution] if self.caution else [])]
        return "\n".join([self.title, *lines, *last])

    def _figures(self, claim: Claim) -> str:
        """Both figures, or why there are none; why there is no verdict, unless the caution says it of all."""
        if claim.here == NOTHING:
            return f". {claim.note}"
        why = f"\n    note   {claim.note}" if claim.holds is None and not self.caution else ""
        return f"\n    paper  {claim.paper}\n    here   {claim.here}{why}"

    def to_json(self) -> list[dict[str, Any]]:
        """The claims as plain data."""
        return [asdict(claim) for claim in self.claims]


def write_reproduction(
    folder: Path, document: Document, claims: Sequence[Claim], tables: Mapping[str, pd.DataFrame]
) -> Reproduction:
    """Write everything, each file at once and the claims last, so that a folder with claims is whole."""
    for name, table in tables.items():
        with written_atomically(folder / TABLES / f"{name}.csv") as temporary:
            table.to_csv(temporary, index=False, float_format=DIGITS, lineterminator="\n")
    drawings = {name: draw_figure(plot, folder / FIGURES / name) for name, plot in document.figures.items()}
    _write(folder / REPORT, markdown_of(document, {name: f"{FIGURES}/{path.name}" for name, path in drawings.items()}))
    _write(folder / PAGE, page_of(document, drawings))
    _write(folder / CLAIMS, claims_json(claims))
    return Reproduction(folder, document.title, tuple(claims), document.caution)


def draw_figure(plot: Plot, stem: Path) -> Path:
    """Draw a figure as shapes, or as a picture of dots where those take many bytes and a picture takes fewer.

    A name may have a point in it, such as `penalty_0.001`, which is no suffix.
    """
    shapes = plot.save(stem.with_name(f"{stem.name}.svg"))
    if shapes.stat().st_size <= LARGEST_DRAWING:
        return shapes
    dots = plot.save(stem.with_name(f"{stem.name}.png"))
    smaller, larger = sorted([shapes, dots], key=lambda path: path.stat().st_size)
    larger.unlink()
    return smaller


def _write(path: Path, text: str) -> None:
    with written_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


# Several reproductions of one paper side by side: which claims hold for which model, corpus or genre.


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
    summaries, rows, details = [], [], []
    for place in range(len(ids)):
        of_runs = {name: of_run[place] for name, of_run in claims.items()}
        verdicts = {name: verdict_words(claim) for name, claim in of_runs.items()}
        summary = _summarise(of_runs)
        found = [[name, claim.here, verdicts[name], claim.note] for name, claim in of_runs.items()]
        compared = Table(["run", "here", "verdict", "note"], [["paper", summary.paper, "", ""], *found])
        summaries.append(summary)
        rows.append([name_claim(summary), *verdicts.values()])
        details += under(summary.id, Paragraph(summary.statement), compared)
    counts: list[Sequence[Words]] = [[name, count(of_run), _link(out, runs[name])] for name, of_run in claims.items()]
    blocks: list[Block] = [
        Heading("How many claims hold"),
        Table(["run", "claims", "report"], counts),
        Heading("Which claims hold where"),
        Table(["claim", *claims], rows),
        *figures,
        Heading("The figures"),
        *details,
    ]
    table = pd.DataFrame(
        {
            "claim": claim.id,
            "kind": claim.kind,
            "run": name,
            "paper": claim.paper,
            "here": claim.here,
            "verdict": claim.verdict,
        }
        for name, of_run in claims.items()
        for claim in of_run
    ).sort_values("claim", kind="stable")
    return write_reproduction(out, Document(title, blocks, caution), summaries, {"claims": table, **(tables or {})})


def _summarise(of_runs: Mapping[str, Claim]) -> Claim:
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
        f"Holds in {sum(verdicts)} of {len(verdicts)} runs that decide it." if verdicts else first.note,
        first.kind,
        first.post_hoc,
        spread_of(claim.effect for claim in of_runs.values()),
        {"runs": len(of_runs)},
    )


def _link(out: Path, folder: str | Path) -> Words:
    """Where the report of a run is, seen from this one; no path of this machine."""
    folder = Path(folder)
    if not folder.resolve().is_relative_to(out.resolve()):
        return folder.name
    return [Link("report", f"{folder.resolve().relative_to(out.resolve()).as_posix()}/{Path(REPORT).stem}")]
