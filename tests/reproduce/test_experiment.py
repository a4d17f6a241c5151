"""A sixth experiment in one file, as `docs/adding-a-paper.md` shows it, and what the runner does for it."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import attnscope
from attnscope.commands.reproduce import PAPERS, _command_of
from attnscope.engine import Store
from attnscope.errors import BadInput
from attnscope.reproduce import EXPERIMENTS, Experiment, read_claims
from attnscope.reproduce.claims import Evidence, Finding, Rule, Unmeasured, claim, count, rules_in
from attnscope.reproduce.document import Heading, Paragraph
from attnscope.reproduce.experiment import Attempt, Editions, Report, command_options, scale_named

# docs/adding-a-paper.md shows what stands between these two lines
# --8<-- [start:tiny]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much is read."""

    texts: int


@dataclass(frozen=True)
class Options:
    """What may be chosen."""

    model: Annotated[str, "The model that is looked at."] = "demo"


def record_texts(attempt: Attempt[Scale, Options]) -> pd.DataFrame:
    """One row for each text: how much the last layer gives the first token."""
    model = attnscope.load(attempt.options.model)
    store = Store(attempt.folder / "texts", "stage", {"texts": attempt.scale.texts})

    def one_text(number: int) -> dict[str, Any]:
        record = model.record("the dogs near the house see " + "the cat " * (number + 1))
        return {"text": number, "share": float(record.weights[-1, :, -1, 0].mean())}

    rows = [store.once(f"{number}", lambda: one_text(number)) for number in range(attempt.scale.texts)]  # noqa: B023
    return pd.DataFrame(rows)


def evidence_of(attempt: Attempt[Scale, Options]) -> Evidence:
    """What the claim is judged on."""
    return Evidence({"shares": attempt["texts"]})


@claim(
    "first-token-is-attended",
    says="The last token attends to the first one.",
    rule="the mean share over texts is above zero",
    paper="seen in Figure 1",
)
def first_token_is_attended(evidence: Evidence) -> Finding:
    """The mean over texts of what the first token gets."""
    mean = evidence.where("shares")["share"].mean()
    return Finding(f"{mean:.2f}", bool(mean > 0))


def report_of(attempt: Attempt[Scale, Options], evidence: Evidence) -> Report:
    """What is told beside the claims."""
    return Report(
        facts={"model": attempt.options.model},
        blocks=[Heading("Figure 1", 2), Paragraph("One share for each text.")],
        how=["The share is the mean over heads."],
        tables=dict(evidence.tables),
    )


reproduce_tiny2026 = Experiment(
    name="tiny2026",
    title="Tiny (2026), What the Last Token Looks At",
    scales={"smoke": Scale(texts=2), "cpu": Scale(texts=4)},
    options=Options,
    stages={"texts": record_texts},
    evidence=evidence_of,
    rules=rules_in(inspect.getmodule(record_texts)),
    report=report_of,
)

# --8<-- [end:tiny]


def test_one_claim_one_stage_one_file(tmp_path):
    result = reproduce_tiny2026(tmp_path / "run")
    (found,) = read_claims(tmp_path / "run")
    assert (found.id, found.holds) == ("first-token-is-attended", True)
    assert found.statement.endswith("Holds if the mean share over texts is above zero.")
    assert result.summary().startswith("Tiny (2026)")
    shares = pd.read_csv(tmp_path / "run" / "tables" / "shares.csv")
    model = attnscope.load("demo")
    by_hand = [
        model.record("the dogs near the house see " + "the cat " * count).weights[-1, :, -1, 0].mean().item()
        for count in (1, 2)
    ]
    assert shares["share"].tolist() == pytest.approx(by_hand, abs=1e-6)
    report = (tmp_path / "run" / "report.md").read_text()
    assert "The share is the mean over heads." in report
    assert report.index("What holds") < report.index("Figure 1") < report.index("The claims one by one")


def test_a_stopped_run_goes_on_and_another_recipe_is_refused(tmp_path, monkeypatch):
    made = []
    once = Store.once

    def stopped(self, part, make, made_of=None):
        if part == "1" and not made:
            made.append(part)
            raise KeyboardInterrupt
        return once(self, part, make, made_of)

    monkeypatch.setattr(Store, "once", stopped)
    with pytest.raises(KeyboardInterrupt):
        reproduce_tiny2026(tmp_path / "run")
    with pytest.raises(BadInput, match="already holds an unfinished reproduction"):
        reproduce_tiny2026(tmp_path / "run")
    with pytest.raises(BadInput, match="scale was smoke, is now cpu"):
        reproduce_tiny2026(tmp_path / "run", scale="cpu", resume=True)
    reproduce_tiny2026(tmp_path / "run", resume=True)
    reproduce_tiny2026(tmp_path / "whole")
    for name in ("claims.json", "report.md", "tables/shares.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_bad_input_leaves_nothing(tmp_path):
    with pytest.raises(BadInput, match="no scale 'large'"):
        reproduce_tiny2026(tmp_path / "run", scale="large")
    with pytest.raises(BadInput, match="tiny2026 takes no --corpus"):
        reproduce_tiny2026(tmp_path / "run", corpus="x")
    with pytest.raises(BadInput):  # found in a stage, when the recipe is written already
        reproduce_tiny2026(tmp_path / "run", model=str(tmp_path / "nowhere"))
    assert not any(tmp_path.iterdir())


def test_its_options_are_those_of_the_command_line(tmp_path):
    app = typer.Typer()
    app.command()(_command_of(reproduce_tiny2026))
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    assert "--model" in shown
    assert "The model that is looked at." in shown
    assert "--corpus" not in shown
    done = CliRunner().invoke(app, ["--json", "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["claims"][0]["holds"] is True


def test_editions_are_judged_each_and_compared(tmp_path):
    def by_half(attempt: Attempt[Scale, Options]) -> Editions:
        table = attempt["texts"]
        halves = {f"text-{number}": Evidence({"shares": rows}) for number, rows in table.groupby("text")}
        return Editions(halves, "Tiny, text by text")

    parted = Experiment(**{**vars(reproduce_tiny2026), "evidence": by_half})
    result = parted(tmp_path / "run")
    assert (tmp_path / "run" / "text-1" / "claims.json").exists()
    assert result.title == "Tiny, text by text"
    assert "text-0: " in result.claims[0].here


def test_claims_of_a_family_stand_together_label_by_label():
    @claim("a", says="A.", rule="a", paper="1")
    @claim("b", says="B.", rule="b", paper="2", kind="own")
    def alone(evidence: Evidence) -> Finding:
        return Finding("here", True)

    @claim(lambda label: f"c-{label}", says="C.", rule="c", paper=lambda label: label.upper(), each=("x", "y"))
    def first(evidence: Evidence, label: str) -> Finding:
        return Finding(label, True)

    @claim(lambda label: f"d-{label}", says="D.", rule="d", paper="4", each=("x", "y"), least=3)
    def second(evidence: Evidence, label: str, least: int) -> Finding:
        return Finding(f"{label}{least}", None)

    chapter = ModuleType(__name__)
    vars(chapter).update(alone=alone, first=first, second=second)
    rules = rules_in(chapter)
    assert [rule.id for rule in rules] == ["a", "b", "c-x", "d-x", "c-y", "d-y"]
    assert [rule.claim(None).here for rule in rules[2:]] == ["x", "x3", "y", "y3"]
    assert [rule.kind for rule in rules[:2]] == ["paper", "own"]
    assert rules[4].paper == "Y"


def test_evidence_says_why_there_is_none():
    rows = pd.DataFrame({"data": ["sst", "imdb"], "value": [1.0, 2.0]})
    evidence = Evidence({"accuracies": rows}, {"words": "No words were looked at."})
    assert evidence.where("accuracies", data="sst")["value"].tolist() == [1.0]
    with pytest.raises(Unmeasured, match="accuracies has nothing of data yelp"):
        evidence.where("accuracies", data="yelp")
    with pytest.raises(Unmeasured, match=r"No words were looked at\."):
        evidence.where("words")
    judge = Rule("a", "A.", "a", "1", "paper", lambda found: Finding(str(found.where("words")), True))
    assert (judge.claim(evidence).here, judge.claim(evidence).note) == ("–", "No words were looked at.")


# The laws that every experiment obeys.


def test_the_command_line_knows_every_experiment():
    assert set(PAPERS) == set(EXPERIMENTS)
    with pytest.raises(KeyError):
        EXPERIMENTS["vig2018"]


@pytest.mark.parametrize("paper", EXPERIMENTS)
def test_an_experiment_is_what_it_says(paper: str):
    experiment = EXPERIMENTS[paper]
    assert experiment.name == paper
    assert paper[-4:] in experiment.title
    assert {"smoke", "cpu", "paper"} == set(experiment.scales)
    assert len({type(scale) for scale in experiment.scales.values()}) == 1, "scales are one table"
    ids = [rule.id for rule in experiment.rules]
    assert len(ids) == len(set(ids)) > 5
    for rule in experiment.rules:
        assert rule.says.endswith((".", "?")), rule.id
        assert not rule.rule.endswith("."), rule.id
        assert rule.paper, rule.id
    assert all(option.help.endswith(".") for option in command_options(experiment.options))
    assert isinstance(experiment.stages, Mapping)
    assert experiment.stages


@pytest.mark.parametrize("paper", EXPERIMENTS)
def test_the_committed_report_is_judged_by_the_rules_of_today(paper: str):
    folder = Path(__file__).parents[2] / "docs" / "reproductions" / paper
    committed, rules = read_claims(folder), EXPERIMENTS[paper].rules
    today = [(rule.id, rule.statement, rule.paper, rule.kind, rule.post_hoc) for rule in rules]
    stood = [(claim.id, claim.statement, claim.paper, claim.kind, claim.post_hoc) for claim in committed]
    assert stood == today, "run python .ci/rejudge.py"
    assert all(claim.note for claim in committed if claim.holds is None), "what has no verdict says why"
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert count(committed) in report
    assert all(f"`{claim.id}`" in report for claim in committed)


@pytest.mark.parametrize("paper", EXPERIMENTS)
def test_every_slip_is_told_before_anything_is_written(paper: str, tmp_path: Path):
    experiment = EXPERIMENTS[paper]
    with pytest.raises(BadInput, match="There is no scale 'large'"):
        experiment(tmp_path / "run", scale="large")
    with pytest.raises(BadInput, match=f"{paper} takes no --moddel"):
        experiment(tmp_path / "run", moddel="x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="holds no reproduction"):
        experiment(tmp_path / "full")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_a_scale_is_found_by_its_name():
    assert scale_named({"smoke": 1}, "smoke") == 1
