"""One experiment, one runner: a paper says what it runs and claims, and everything else is done here for all papers.

A paper is an `Experiment`. Calling it makes a folder, writes down the recipe, runs the stages, judges the claims and
writes the report; a run that was stopped continues with `resume=True` to the very same result. `docs/adding-a-paper.md`
shows the smallest one.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import pandas as pd

from ..engine import RECIPE, Store, checked_folder
from ..errors import BadInput
from ..progress import tell_stage
from .claims import CLAIMS, Claim, Rule, claims_blocks, details_blocks, without_verdicts
from .document import Block, Document, Figure, Heading, Paragraph, Table
from .writing import Reproduction, compare, write_reproduction

WHAT = "reproduction"
DONE = "done"
"""The part of the store that names the stages that were run."""
ScaleT = TypeVar("ScaleT")
OptionsT = TypeVar("OptionsT")


@dataclass(eq=False)
class Attempt(Generic[ScaleT, OptionsT]):
    """An experiment at work: where, at which scale, with which options, and what its stages have given so far."""

    folder: Path
    scale_name: str
    scale: ScaleT
    """The entry of the paper's `scales`."""
    options: OptionsT
    """An instance of the paper's `options`."""
    stages: tuple[str, ...]
    """Those that are run: all, unless the paper lets its user choose."""
    results: dict[str, Any] = field(default_factory=dict)
    """What each stage gave, by its name; `prepare` may put here what it has read."""

    def __getitem__(self, stage: str) -> Any:
        return self.results[stage]


@dataclass(frozen=True, eq=False)
class Report:
    """What a paper has to say of a run, beside its claims."""

    facts: Mapping[str, str]
    """What was run: the paper stands before them, the versions behind them."""
    blocks: Sequence[Block]
    """The paper's tables and figures, made again."""
    how: Sequence[str | Block]
    """How it was measured."""
    tables: Mapping[str, pd.DataFrame]
    """What is written as tables/*.csv."""
    caution: str = ""
    """What a reader must know before anything else; a run with one is a trial, and gives no verdicts."""
    title: str = ""
    """In place of the paper's, where that does not say enough."""


@dataclass(frozen=True, eq=False)
class Editions:
    """A run of which each part gets claims and a report of its own, and which ends in a comparison of them."""

    evidence: Mapping[str, Any]
    title: str
    figures: Sequence[Figure] = ()
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class NoOptions:
    """The options of a paper that has none."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """A paper: how much is run at each scale, what its user may choose, what is run, judged and written.

    `options` is a dataclass whose fields are the keyword arguments of a call; those that are annotated with a help
    text (`Annotated[str | None, "What it is."]`) are options of the command line too. A field `stages` lets the user
    choose among the stages.
    """

    name: str
    title: str
    """Authors, year and title of the paper."""
    scales: Mapping[str, Any]
    stages: Mapping[str, Callable[[Attempt[Any, Any]], Any]]
    """What is run, in this order; each keeps its own parts in `attempt.folder`, and its result is `attempt[name]`."""
    evidence: Callable[[Attempt[Any, Any]], Any]
    """What the claims are judged on, or `Editions` of it."""
    rules: Sequence[Rule]
    """The claims, as `rules_in` finds them in the modules of the paper."""
    report: Callable[[Attempt[Any, Any], Any], Report]
    """From the attempt and its evidence."""
    options: type = NoOptions
    prepare: Callable[[Attempt[Any, Any]], Mapping[str, Any]] = lambda attempt: {"scale": attempt.scale_name}
    """Read and check everything before anything is written, and give the recipe: what tells this run from another."""
    needs: Sequence[str] = ()
    """The data sets, as name:split, that it cannot do without beyond a trial."""
    needs_at: Sequence[str] = ("cpu", "paper")
    """The scales at which it is checked beforehand that nothing is missing."""
    replaces: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Which of them an option of the user stands in for."""
    spares: Callable[[Mapping[str, Any]], Iterable[str]] = lambda _given: ()
    """Which of them the options given leave out."""
    leaves_out: str = ""
    """The option by which the user does so."""
    takes: Mapping[str, str] = field(default_factory=dict)
    """How long a scale took where it was measured, in words."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """What must be installed beyond a trial: the package, and the extra that brings it."""
    lacks: Callable[[str, Mapping[str, Any]], Iterator[str]] = lambda _scale, _given: iter(())
    """What else is missing here for a scale and the options given, in words."""

    def __call__(self, out: str | Path, *, scale: str = "smoke", resume: bool = False, **options: Any) -> Reproduction:
        """Run the paper at a scale into the folder `out`; with `resume`, continue a run that was stopped.

        Raises:
            BadInput: If the scale or an option is not known, data or a model is missing, or the folder is another's.
        """
        known = [option.name for option in fields(self.options)]
        if unknown := [name for name in options if name not in known]:
            raise BadInput(f"{self.name} takes no --{unknown[0].replace('_', '-')}.")
        attempt = Attempt(
            folder=Path(out),
            scale_name=scale,
            scale=scale_named(self.scales, scale),
            options=self.options(**options),
            stages=self._chosen(options.get("stages")),
        )
        if find_spec("matplotlib") is None:
            raise BadInput("A reproduction draws figures, which needs matplotlib: pip install 'attnscope[figures]'.")
        checked_folder(attempt.folder, WHAT, resume=resume, finished=CLAIMS, unfinished=(RECIPE,))
        # before `prepare`, which reads what all of them need
        done = Store(attempt.folder, WHAT, {}).find(DONE) or ()
        attempt.stages = tuple(name for name in self.stages if name in (*attempt.stages, *done))
        store = Store(attempt.folder, WHAT, self.prepare(attempt)).begin()
        with _nothing_left_of_bad_input(attempt.folder):
            for number, name in enumerate(attempt.stages, start=1):
                tell_stage(f"{self.name}, stage {number} of {len(attempt.stages)}: {name.replace('_', ' ')}")
                attempt.results[name] = self.stages[name](attempt)
        store.keep(DONE, list(attempt.stages))
        evidence = self.evidence(attempt)
        if not isinstance(evidence, Editions):
            return self._write(attempt, evidence, attempt.folder)
        runs = {name: self._write(attempt, one, attempt.folder / name) for name, one in evidence.evidence.items()}
        return compare(
            attempt.folder,
            {name: run.folder for name, run in runs.items()},
            evidence.title,
            caution=next(iter(runs.values())).caution,
            figures=evidence.figures,
            tables=evidence.tables,
        )

    def _chosen(self, stages: str | Sequence[str] | None) -> tuple[str, ...]:
        """The stages asked for, in their order."""
        if stages is None:
            return tuple(self.stages)
        asked = [name.strip() for name in stages.split(",")] if isinstance(stages, str) else list(stages)
        if unknown := [name for name in asked if name not in self.stages]:
            raise BadInput(f"There is no stage {unknown[0]!r}: choose of {', '.join(self.stages)}.")
        return tuple(name for name in self.stages if name in asked)

    def judge(self, evidence: Any) -> list[Claim]:
        """Every claim, judged on this evidence, in the order of the paper."""
        return [rule.claim(evidence) for rule in self.rules]

    def _write(self, attempt: Attempt[Any, Any], evidence: Any, folder: Path) -> Reproduction:
        """Judge the claims and write the folder."""
        report = self.report(attempt, evidence)
        claims = self.judge(evidence)
        if report.caution:
            claims = without_verdicts(claims)
        versions = ", ".join(f"{name} {version(name)}" for name in ("attnscope", "torch", "transformers"))
        facts = {"paper": self.title, **report.facts, "versions": versions}
        blocks = [
            Table(["", ""], [[name, fact] for name, fact in facts.items()]),
            *claims_blocks(claims),
            Heading("The paper's tables and figures"),
            *report.blocks,
            Heading("The claims one by one"),
            *details_blocks(claims),
            Heading("How it was measured"),
            *(Paragraph(block) if isinstance(block, str) else block for block in report.how),
        ]
        document = Document(report.title or self.title, blocks, report.caution)
        return write_reproduction(folder, document, claims, report.tables)


def scale_named(scales: Mapping[str, ScaleT], name: str) -> ScaleT:
    """The scale, if there is one of that name.

    >>> scale_named({"smoke": 1, "cpu": 2}, "gpu")
    Traceback (most recent call last):
    attnscope.errors.BadInput: There is no scale 'gpu': choose smoke, cpu.
    """
    if name not in scales:
        raise BadInput(f"There is no scale {name!r}: choose {', '.join(scales)}.")
    return scales[name]


@contextmanager
def _nothing_left_of_bad_input(folder: Path) -> Iterator[None]:
    """Who asked for what cannot be done finds nothing written, unless there is work to continue."""
    try:
        yield
    except BadInput:
        if [path.name for path in folder.rglob("*") if path.is_file()] == [RECIPE]:
            shutil.rmtree(folder)
        raise


@dataclass(frozen=True)
class CommandOption:
    """An option of a paper as the command line has it."""

    name: str
    type: Any
    default: Any
    help: str


def command_options(options: type) -> Iterator[CommandOption]:
    """The fields with a help text."""
    hints = get_type_hints(options, include_extras=True)
    for option in fields(options):
        if get_origin(hint := hints[option.name]) is Annotated:
            of_type, about, *_ = get_args(hint)
            yield CommandOption(option.name, str | None if of_type is Any else of_type, option.default, about)
