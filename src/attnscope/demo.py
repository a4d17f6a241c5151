"""The demo: every capability on the shipped model, in the terminal and as a report."""

from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from .capture import load
from .errors import BadInput
from .evaluation import Trust, trust
from .explaining import Explanation, explain
from .explaining import show as show_explanation
from .files import check_can_be_made
from .numerals import counted
from .record import AttentionRecord
from .report import write_report
from .surveying import Survey, survey
from .syntax import agreement_sentences, sentences_of

TEXTS = ("the key to the cabinets", "the keys to the cabinet")
"""A minimal pair: the verb agrees with the first noun, and the noun nearer to it differs in number."""
TITLE = "Is it “is” or “are”? What the demo model looks at"
TRUST_METHODS = ("raw", "rollout", "flow", "layerwise_tracing", "gradient_rollout")
TRUST_SENTENCES = 30
"""The fewest that a verdict rests on; `attnscope trust demo demo` takes more."""
TOGETHER = 128
"""Runs of so short a text that go together."""
SURVEY_SENTENCES = 128
"""Enough to name the heads in seconds; `attnscope survey demo demo --out FOLDER` takes more."""
UNSEEN = 10**9 + 7
"""A seed that no training uses."""


@dataclass(frozen=True)
class DemoResult:
    """What the demo found: an explanation of each text, which methods to trust, what heads do, and two pages."""

    explanations: tuple[Explanation, ...]
    trust: Trust
    survey: Survey
    report: Path
    head_map: Path

    @property
    def records(self) -> tuple[AttentionRecord, ...]:
        """The record of each text."""
        return tuple(explanation.record for explanation in self.explanations)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, ready for JSON."""
        return {
            "report": str(self.report),
            "head_map": str(self.head_map),
            "texts": [explanation.to_dict() for explanation in self.explanations],
            "trust": self.trust.to_dict(),
            "roles": self.survey["roles"].result()[["layer", "head", "role"]].to_dict("records"),
        }


def run_demo(out: Path) -> DemoResult:
    """Explain a minimal pair, measure which method to trust, survey the heads; write two pages into `out`."""
    check_can_be_made(out)
    if out.exists() and not out.is_dir():
        raise BadInput(f"The demo writes its report into a folder, but {out} is a file.")
    model = load("demo")
    explanations = tuple(explain(model, text) for text in TEXTS)
    sentences = list(islice(agreement_sentences(UNSEEN), SURVEY_SENTENCES))
    prefixes = [" ".join(drawn.prefix) for drawn in sentences[:TRUST_SENTENCES]]
    measured = trust(model, prefixes, TRUST_METHODS, batch_size=TOGETHER)
    heads = survey(model, replace(sentences_of(sentences), name="the shipped grammar"))
    report = write_report(out / "report.html", explanations, TITLE, measured)
    return DemoResult(explanations, measured, heads, report, heads.report(out / "survey.html"))


def show(console: Console, result: DemoResult) -> None:
    """Print what the demo found, and what to try next."""
    console.print("The demo model reads a sentence up to its verb and tells whether the verb is singular or plural.")
    for explanation in result.explanations:
        console.print()
        show_explanation(console, explanation)
    console.print(Text(f"\nWhich of them to trust, measured on {TRUST_SENTENCES} other sentences:\n", style="bold"))
    console.print(result.trust)
    console.print(Text(f"\nWhat its heads do, over {SURVEY_SENTENCES} sentences:\n", style="bold"))
    roles = result.survey["roles"].result()["role"].value_counts()
    for role, count in roles.items():
        console.print(f"  {counted(count, 'head'):>9}  {role}", highlight=False)
    console.print(f"\nThe map of its heads, with the sentences that move each: {result.head_map}", soft_wrap=True)
    console.print(
        f"All layers and heads on the two texts, with every number: {result.report}", soft_wrap=True, highlight=False
    )
    console.print("Your own model and text:  attnscope explain MODEL TEXT", highlight=False)
    console.print("                          attnscope report MODEL TEXT -o report.html", highlight=False)
    console.print("Your own corpus:          attnscope survey MODEL CORPUS --out FOLDER", highlight=False)
    console.print("All of it in a browser:   attnscope serve --open", highlight=False)
