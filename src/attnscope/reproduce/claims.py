"""A claim of a paper, judged: what the paper found, what was found here, and whether that is the same."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import wraps
from inspect import getdoc
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pandas as pd

from ..errors import BadInput
from ..numerals import counted
from ..record.schema import Label, Words, checked, json_of, rows_from_json
from .document import Block, Code, Heading, Paragraph, Strong, Table, under
from .document import Words as Inline

CLAIMS = "claims.json"
VERDICTS = {True: "holds", False: "does not hold"}
NOTHING = "–"
"""What stands for a figure where there is none."""


Kind = Literal["paper", "reading", "derived", "by-definition", "own"]
KINDS: Mapping[Kind, str] = {
    "paper": "claims of the paper",
    "reading": "readings of its tables",
    "derived": "derivations",
    "by-definition": "true by definition",
    "own": "of our own",
}
"""What is judged, in the words of a headline."""


@dataclass(frozen=True)
class Effect:
    """How large what a claim is about is here, with an interval where there is one."""

    of: Words
    """What is measured, in words."""
    size: float
    low: float | None = None
    high: float | None = None
    interval: Words = ""
    """What lies between the two: a 95% interval, or the range of all runs."""

    def __str__(self) -> str:
        ends = "" if self.low is None or self.high is None else f" [{self.low:.3g}, {self.high:.3g}]"
        return f"{self.of} {self.size:.3g}{ends}{f' ({self.interval})' if ends and self.interval else ''}"


@dataclass(frozen=True)
class Claim:
    """One claim. `statement` says what is claimed and when it counts as true.

    `paper` and `here` are the figures of both. `holds` is None where it was not measured, or what was measured does not
    decide it, and `note` then says why. `kind` says who claims it: the paper in its text, our reading of its tables,
    its equations, a definition, or we ourselves. `post_hoc` says that the rule was changed or added after results had
    been seen. `n` says of how many runs, heads, words or texts the effect is.
    """

    id: Label
    statement: Words
    paper: Words
    here: Words
    holds: bool | None
    note: Words
    kind: Kind = "paper"
    post_hoc: bool = False
    effect: Effect | None = None
    n: Mapping[str, int] = field(default_factory=dict)

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


def count(claims: Sequence[Claim]) -> str:
    """How many claims of the paper hold, in words, and beside them how many of each other kind.

    >>> own = Claim("c", "", "", "", True, "", kind="own")
    >>> count([Claim("a", "", "", "", True, ""), Claim("b", "", "", "", None, ""), own])
    '1 of 2 claims of the paper holds, 0 do not hold, 1 has no verdict; beside them 1 of 1 of our own'
    """
    by_kind = {kind: [claim for claim in claims if claim.kind == kind] for kind in KINDS}
    if claims and all(claim.holds is None for claim in claims):
        silent = sum(claim.here == NOTHING for claim in claims)
        return f"no claim is judged: {counted(len(claims) - silent, 'was', 'were')} measured and {silent} not"
    others = [
        f"{sum(claim.holds is True for claim in of_kind)} of {len(of_kind)} {KINDS[kind]}"
        for kind, of_kind in by_kind.items()
        if of_kind and kind != "paper"
    ]
    return "; beside them ".join([*_count_verdicts(by_kind["paper"]), *([", ".join(others)] if others else [])])


def _count_verdicts(claims: Sequence[Claim]) -> Iterator[str]:
    verdicts = Counter(claim.verdict for claim in claims)
    true, false, unknown, undecided = (
        verdicts[verdict] for verdict in (*VERDICTS.values(), "not measured", "no verdict")
    )
    if claims:
        parts = [
            f"{true} of {counted(len(claims), 'claim')} of the paper {'holds' if true == 1 else 'hold'}",
            f"{counted(false, 'does', 'do')} not hold",
            *([f"{counted(unknown, 'was', 'were')} not measured"] if unknown else []),
            *([f"{counted(undecided, 'has', 'have')} no verdict"] if undecided else []),
        ]
        yield ", ".join(parts)


# How claims are judged: by functions that say of themselves what they judge, by a rule that is fixed beforehand.


Judge = Callable[..., "Finding"]
"""From the evidence, and what the claim binds by name, to what was found."""
Text = str | Callable[[str], str]
"""A sentence, or how it reads for each label of a claim that is made several times."""
TOY_NOTE = "A toy run: this is what would be measured, and it is not judged."
NO_RUN = "Nothing was run that could tell."


class Unmeasured(ValueError):
    """Raised where a claim cannot be judged; the reason is a sentence for the reader."""


@dataclass(frozen=True)
class Finding:
    """What was found here, and whether that is what the rule asks for."""

    here: str
    holds: bool | None
    """None where what was measured does not decide it."""
    note: str = ""
    effect: Effect | None = None
    n: Mapping[str, int] = field(default_factory=dict)


def at_chance(found: Finding, why: str) -> Finding:
    """What was found, without a verdict, because it decides nothing; `why` is a sentence."""
    return replace(found, holds=None, note=f"{why} {found.note}".strip())


@dataclass(frozen=True)
class Rule:
    """One line of a paper's argument: what it says, when that counts as true, the paper's figure, and who judges."""

    id: str
    says: str
    rule: str
    paper: str
    kind: Kind
    judge: Judge
    post_hoc: bool = False

    @property
    def statement(self) -> str:
        """What is claimed, and when that counts as true."""
        return f"{self.says} Holds if {self.rule}."

    def claim(self, evidence: Any) -> Claim:
        """The claim judged; it has no verdict where the evidence does not suffice."""
        try:
            found = self.judge(evidence)
        except Unmeasured as reason:
            found = Finding(NOTHING, None, str(reason))
        effect = found.effect if found.effect is not None and math.isfinite(found.effect.size) else None
        said = (self.id, self.statement, self.paper, found.here, found.holds, found.note)
        return Claim(*said, self.kind, self.post_hoc, effect, found.n)


@dataclass(frozen=True)
class _Line:
    """What one `@claim` says, before it is spelled out for each of its labels."""

    id: Text
    says: Text
    rule: Text
    paper: Text
    kind: Kind | Callable[[str], Kind]
    post_hoc: bool
    each: tuple[str, ...]
    bound: Mapping[str, Any]

    def spell(self, judge: Judge, label: str | None) -> Rule:
        texts = (self.id, self.says, self.rule, self.paper)
        id_, says, rule, paper = (text if isinstance(text, str) else text(label or "") for text in texts)
        labels = () if label is None else (label,)
        kind: Kind = self.kind(label or "") if callable(self.kind) else self.kind
        judged = lambda evidence: judge(evidence, *labels, **self.bound)  # noqa: E731 - bound to this label
        return Rule(id_, says, rule, paper, kind, judged, self.post_hoc)


def claim(
    id: Text,  # noqa: A002 - what it is called in claims.json
    *,
    says: Text = "",
    rule: Text,
    paper: Text,
    kind: Kind | Callable[[str], Kind] = "paper",
    post_hoc: bool = False,
    each: Iterable[str] = (),
    **bound: Any,
) -> Callable[[Judge], Judge]:
    """Let a function judge a claim; a function with several of these judges each of them, from the top down.

    What is claimed is the first paragraph of the judge's docstring, unless `says` says it. `bound` are further
    arguments of the judge. With `each` the claim is made once for every label, such as a data set:
    the judge is given the label behind the evidence, and a text may be a function of it. Claims that follow each other
    and have the same labels stand together in a report, label by label.

    `kind` says what is judged: what the paper says ("paper"), our reading of its tables ("reading"), what follows from
    equations ("derived"), what is so by definition, or what we ask ourselves ("own"). `post_hoc` says that the rule was
    changed or added after results had been seen.
    """

    def mark(judge: Judge) -> Judge:
        claimed = says or (getdoc(judge) or "").partition("\n\n")[0]
        line = _Line(id, claimed, rule, paper, kind, post_hoc, tuple(each), bound)
        lines: tuple[_Line, ...] = getattr(judge, LINES, ())
        setattr(judge, LINES, (line, *lines))  # decorators are applied from the bottom up
        return judge

    return mark


LINES = "claims_it_judges"


def in_every(runs_of: Callable[..., Iterable[Any]]) -> Callable[[Judge], Judge]:
    """Let a function that judges one run judge them all: what it shows of each, and whether it holds in each.

    `runs_of` finds the runs, which have a `title`, by the evidence and the label of a claim that has some. One run that
    fails decides; one that decides nothing leaves all undecided, and so it is where there is no run.
    """

    def widen(judge: Judge) -> Judge:
        @wraps(judge)
        def judge_all(evidence: Any, *labels: str, **bound: Any) -> Finding:
            found = [(run.title, judge(run, **bound)) for run in runs_of(evidence, *labels)]
            if not found:
                raise Unmeasured(NO_RUN)
            here = "; ".join(f"{title}: {one.here}" for title, one in found)
            note = " ".join(f"{title}: {one.note}" for title, one in found if one.note)
            effect = spread_of(one.effect for _, one in found)
            return Finding(here, together(one.holds for _, one in found), note, effect, {"runs": len(found)})

        return judge_all

    return widen


def together(verdicts: Iterable[bool | None]) -> bool | None:
    """The verdict on all: false if one is, undecided if one is or there are none, true otherwise.

    >>> together([True, None]), together([True, None, False]), together([True]), together([])
    (None, False, True, None)
    """
    seen = set(verdicts)
    return False if False in seen else True if seen == {True} else None


def spread_of(effects: Iterable[Effect | None]) -> Effect | None:
    """One effect of several runs: their mean, between the smallest and the largest."""
    known = [effect for effect in effects if effect is not None]
    return mean_effect(known[0].of, [effect.size for effect in known]) if known else None


def ratio(one: float, other: float) -> float:
    """One over the other; nothing, which is no effect, where the other is zero.

    >>> ratio(1.0, 2.0), ratio(1.0, 0.0)
    (0.5, nan)
    """
    return float(one) / float(other) if other else math.nan


def mean_effect(of: str, sizes: Iterable[float], of_what: str = "runs") -> Effect:
    """The mean of several sizes, between the smallest and the largest.

    >>> str(mean_effect("accuracy", [0.4, 0.6]))
    'accuracy 0.5 [0.4, 0.6] (range of 2 runs)'
    """
    known = [float(size) for size in sizes]
    mean = sum(known) / len(known)
    if len(known) == 1:
        return Effect(of, mean)
    return Effect(of, mean, min(known), max(known), f"range of {len(known)} {of_what}")


def rules_in(*modules: ModuleType) -> tuple[Rule, ...]:
    """Every claim that is judged in these modules, in the order in which they stand there."""
    lines = [
        (line, judge)
        for module in modules
        for judge in vars(module).values()
        if getattr(judge, "__module__", None) == module.__name__
        for line in getattr(judge, LINES, ())
    ]
    families = [(each, list(family)) for each, family in groupby(lines, key=lambda pair: pair[0].each)]
    return tuple(
        line.spell(judge, label) for each, family in families for label in each or (None,) for line, judge in family
    )


def without_verdicts(claims: Iterable[Claim]) -> list[Claim]:
    """The claims of a toy run: what would be measured, and none of it judged."""
    return [
        claim if claim.here == NOTHING else replace(claim, holds=None, note=f"{TOY_NOTE} {claim.note}".strip())
        for claim in claims
    ]


# What claims are judged on: tables, of which a judge asks for the rows that its claim is about.


def rows_with(table: pd.DataFrame, /, **labels: Any) -> pd.DataFrame:
    """The rows that have these labels in the columns of their names.

    >>> rows_with(pd.DataFrame({"seed": [1, 2], "step": [5, 5]}), seed=2, step=5).index.tolist()
    [1]
    """
    for name, label in labels.items():
        table = table[table[name] == label]
    return table


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was measured, as tables by their names; `missing` says of a table that is not there why that is so."""

    tables: Mapping[str, pd.DataFrame]
    missing: Mapping[str, str] = field(default_factory=dict)

    def where(self, table: str, /, **labels: Any) -> pd.DataFrame:
        """The rows of a table with these labels, at least one.

        Raises:
            Unmeasured: If there are none, with the reason.
        """
        rows = self.tables.get(table)
        if rows is None or (rows.empty and table in self.missing):
            raise Unmeasured(self.missing.get(table, f"The table {table} was not measured."))
        rows = rows_with(rows, **labels)
        if rows.empty:
            asked = ", ".join(f"{name.replace('_', ' ')} {label}" for name, label in labels.items())
            raise Unmeasured(self.missing.get(table, f"The table {table} has nothing of {asked or 'anything'}."))
        return rows


# How judged claims stand in a report: all at one glance, and each with its rule.


def claims_blocks(claims: Sequence[Claim]) -> list[Block]:
    """The claims at one glance."""
    rows: list[Sequence[Inline]] = [
        [name_claim(claim), WHO_SAYS[claim.kind], claim.paper, claim.here, verdict_words(claim)] for claim in claims
    ]
    said = count(claims)
    return [
        Heading("What holds"),
        Paragraph(
            f"{said[:1].upper()}{said[1:]}. The rule of each stands below; a claim is about this model and these texts."
        ),
        Table(["claim", "who says it", "paper", "here", "verdict"], rows),
    ]


WHO_SAYS: Mapping[Kind, str] = {
    "paper": "the paper",
    "reading": "our reading of its tables",
    "derived": "its equations",
    "by-definition": "a definition",
    "own": "we",
}
POST_HOC = "The rule was changed or added after results had been seen."


def name_claim(claim: Claim) -> Inline:
    """A claim as a sentence, with the name by which files know it."""
    return [f"{claim.claimed} ", Code(claim.id)]


def verdict_words(claim: Claim) -> Inline:
    """The verdict, which stands out where the claim holds."""
    return [Strong(claim.verdict)] if claim.holds else claim.verdict


def details_blocks(claims: Sequence[Claim]) -> list[Block]:
    """Every claim with its rule and what is to be said of it."""
    blocks: list[Block] = []
    for claim in claims:
        both = Paragraph(["Paper: ", claim.paper, ". Here: ", Strong(claim.here), f". {claim.note}"])
        said = [f"Said by {WHO_SAYS[claim.kind]}."] if claim.kind != "own" else ["Asked by ourselves."]
        said += [POST_HOC] * claim.post_hoc
        if claim.effect is not None:
            said.append(f"Effect: {claim.effect}.")
        if claim.n:
            said.append(f"Of {', '.join(f'{number:,} {what}' for what, number in claim.n.items())}.")
        blocks += under(f"{claim.id}: {claim.verdict}", Paragraph(claim.statement), both, Paragraph(" ".join(said)))
    return blocks
