"""The folder of a reproduction: the report, its tables and figures, and the claims, which come last."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import BadInput
from ..files import written_atomically
from ..views.plots import Plot
from .claims import CLAIMS, Claim, claims_json, count
from .document import Document
from .markdown import markdown_of
from .page import page_of

REPORT, PAGE, TABLES, FIGURES = "report.md", "report.html", "tables", "figures"
SURVEY = "survey"
"""The folder inside, where the survey grows that the report is made of."""
DIGITS = "%.6g"
"""How tables write numbers: more digits than any standard error here is worth."""
LARGEST_DRAWING = 200_000
"""A figure whose shapes take more bytes than this is shown as a picture of dots, so that pages stay small."""


@dataclass(frozen=True)
class Reproduction:
    """A finished reproduction of a paper: where it lies, and how its claims fared."""

    folder: Path
    title: str
    claims: tuple[Claim, ...]

    def summary(self) -> str:
        """A line for each claim, and how many hold."""
        width = max((len(claim.id) for claim in self.claims), default=0)
        lines = [f"{claim.id:{width}}  {claim.verdict:13}  {claim.here}" for claim in self.claims]
        return "\n".join([self.title, *lines, f"{count(self.claims).capitalize()}."])

    def to_json(self) -> list[dict[str, Any]]:
        """The claims as plain data."""
        return [asdict(claim) for claim in self.claims]


def checked_folder(out: str | Path, *, resume: bool) -> Path:
    """The folder, if it is empty or not there, or holds a reproduction that shall go on, and figures can be drawn."""
    if find_spec("matplotlib") is None:
        raise BadInput("A reproduction draws figures, which needs matplotlib: pip install 'attnscope[figures]'.")
    out = Path(out)
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return out
    if not out.is_dir():
        raise BadInput(f"A reproduction is kept in a folder, but {out} is a file.")
    finished = (out / CLAIMS).exists()
    if not finished and not any((folder / SURVEY).exists() for folder in (out, *out.iterdir())):
        raise BadInput(f"{out} is not empty and holds no reproduction: choose another folder.")
    if not resume:
        state = "a finished reproduction" if finished else "an unfinished reproduction"
        raise BadInput(f"{out} already holds {state}: choose another folder, or go on with it (--resume, resume=True).")
    return out


def write_reproduction(
    folder: Path, document: Document, claims: Sequence[Claim], tables: Mapping[str, pd.DataFrame]
) -> Reproduction:
    """Write everything, each file at once and the claims last, so that a folder with claims is whole."""
    for name, table in tables.items():
        with written_atomically(folder / TABLES / f"{name}.csv") as temporary:
            table.to_csv(temporary, index=False, float_format=DIGITS, lineterminator="\n")
    drawings = {name: _draw(plot, folder / FIGURES / name) for name, plot in document.figures.items()}
    _write(folder / REPORT, markdown_of(document, {name: f"{FIGURES}/{path.name}" for name, path in drawings.items()}))
    _write(folder / PAGE, page_of(document, drawings))
    _write(folder / CLAIMS, claims_json(claims))
    return Reproduction(folder, document.title, tuple(claims))


def _draw(plot: Plot, stem: Path) -> Path:
    """Draw a figure, as shapes or as a picture of dots."""
    drawing = plot.save(stem.with_suffix(".svg"))
    if drawing.stat().st_size <= LARGEST_DRAWING:
        return drawing
    drawing.unlink()
    return plot.save(stem.with_suffix(".png"))


def _write(path: Path, text: str) -> None:
    with written_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
