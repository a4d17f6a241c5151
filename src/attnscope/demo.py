"""The demo: every capability on the shipped model, in the terminal and as a report."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from .attribution import raw
from .capture import load
from .errors import BadInput
from .record import AttentionRecord, TokenScores
from .report import percent, summary, write_report
from .terminal import scored

TEXTS = ("the key to the cabinets", "the keys to the cabinet")
"""A minimal pair: the verb agrees with the first noun, and the noun nearer to it differs in number."""
TITLE = "Is it “is” or “are”? What the demo model looks at"


@dataclass(frozen=True)
class DemoResult:
    """What the demo found: a record and scores for each text, and the report that shows them."""

    records: tuple[AttentionRecord, ...]
    scores: tuple[TokenScores, ...]
    report: Path

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, ready for JSON."""
        return {"report": str(self.report), "texts": [summary(record) for record in self.records]}


def run_demo(out: Path) -> DemoResult:
    """Record the shipped model on a minimal pair, and write `report.html` into the folder `out`."""
    if out.exists() and not out.is_dir():
        raise BadInput(f"The demo writes its report into a folder, but {out} is a file.")
    model = load("demo")
    records = tuple(model.record(text) for text in TEXTS)
    report = write_report(out / "report.html", records, TITLE)
    return DemoResult(records, tuple(raw(record) for record in records), report)


def show(console: Console, result: DemoResult) -> None:
    """Print what the demo found, and what to try next."""
    console.print("The demo model reads a sentence up to its verb and tells whether the verb is singular or plural.")
    for record, scores in zip(result.records, result.scores, strict=True):
        console.print()
        _show_text(console, record, scores)
    console.print(Text("\nRaw attention shows where [CLS], the model's read-out, looks; it is no explanation yet."))
    console.print(Text(f"\nAll heads, with every number: {result.report}"), soft_wrap=True)
    console.print(Text("Your own model and text:      attnscope report MODEL TEXT -o report.html"))


def _show_text(console: Console, record: AttentionRecord, scores: TokenScores) -> None:
    label, probability = record.prediction[0]
    console.print(Text.assemble(str(record.text), " → ", (label, "bold"), f" {percent(probability)}"))
    rows = (record.readout @ scores.map).tolist()
    largest = max(max(row) for row in rows)
    for layer, row in zip(record.layers, rows, strict=True):
        line = scored(console, record.key_tokens, record.key_special, row, largest)
        console.print(Text(f"  layer {layer}  ").append_text(line), soft_wrap=True)
    console.print(
        f"  Raw attention from the read-out, mean over heads, linear from 0 to {largest:.3f}.", highlight=False
    )
