"""The agreement model's training: its split, its folder, and that a kill changes nothing."""

import json
import sys
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
import torch
from typer.testing import CliRunner

from attnscope.cli import app
from attnscope.errors import BadInput
from attnscope.lab import TASKS, agreement, lesson
from attnscope.lab.batches import Batches
from attnscope.lab.data import AgreementExample
from attnscope.lab.data.examples_file import write_examples
from attnscope.lab.models import AgreementTransformer

FILES = {"README.md", "lab_model.json", "model.safetensors", "training_log.jsonl", "vocabulary.json"}


def examples(count: int) -> list[AgreementExample]:
    """The number of the first noun decides; the second may mislead."""
    dice, made = Random(0), []
    for _ in range(count):
        first, second = dice.choice(["key", "keys"]), dice.choice(["cabinet", "cabinets"])
        words = ("the", dice.choice(["old", "new", "red"]), first, "to", f"w{dice.randrange(30)}", second)
        number = "plural" if first == "keys" else "singular"
        made.append(AgreementExample(words, number, int((second == "cabinets") != (number == "plural")), 2, "is"))
    return made


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """A small model, tiny batches, and a checkpoint as often as there may be one."""
    monkeypatch.setattr(agreement, "SENTENCES_PER_STEP", 8)
    monkeypatch.setattr(agreement, "STEPS_PER_LOOK", 20)
    monkeypatch.setattr(lesson, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(
        agreement, "AgreementTransformer", partial(AgreementTransformer, layers=2, heads=2, width=16, deviation=0.3)
    )
    path = tmp_path / "examples.jsonl"
    write_examples(path, examples(400))
    return SimpleNamespace(data=path)


def test_killed_and_resumed_it_writes_the_same_files(
    quick: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    whole = TASKS["agreement"](tmp_path / "whole", seed=3, steps=70, data=quick.data)
    assert torch.equal(torch.get_rng_state(), before), "training must not disturb the caller's random numbers"
    assert {path.name for path in whole.iterdir()} == FILES

    class Dying(Batches):
        def __getitem__(self, step: int) -> list[int]:
            return super().__getitem__(step) if step < 55 else sys.exit(9)

    with monkeypatch.context() as patch:
        patch.setattr(agreement, "Batches", Dying)
        with pytest.raises(SystemExit):
            TASKS["agreement"](tmp_path / "killed", seed=3, steps=70, data=quick.data)
    assert [path.name for path in (tmp_path / "killed").iterdir()] == ["unfinished"]
    with pytest.raises(BadInput, match="belongs to"):
        TASKS["agreement"](tmp_path / "killed", seed=4, resume=True, steps=70, data=quick.data)
    killed = TASKS["agreement"](tmp_path / "killed", seed=3, resume=True, steps=70, data=quick.data)
    for name in FILES:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    log = [json.loads(line) for line in (whole / "training_log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in log if "validation" in row] == [20, 40, 60, 70]

    model = AgreementTransformer.load(killed).instrumented()
    assert {label for label, _ in model.record("the old keys to w1 cabinet").prediction} == {"singular", "plural"}
    card = (killed / "README.md").read_text()
    assert "examples.jsonl" in card
    assert "| **all** |" in card


def test_it_learns_what_decides(quick: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "PEAK", 1e-2)
    parts = agreement.split(examples(600))
    calm = {"residual_dropout": 0.1, "attention_dropout": 0.1, "embedding_dropout": 0.0}
    begin = partial(agreement.agreement_lesson, parts, "ours", steps=150, settings=calm)
    learned, log = lesson.learn(begin, tmp_path / "checkpoint")
    model = learned.model
    counts = agreement.accuracy_by_attractors(model, parts[2])
    assert set(counts) == {0, 1}
    assert all(right / total >= 0.9 for right, total in counts.values()), (counts, log)
    model = model.instrumented()
    assert model.record("the red key to w3 cabinets").prediction[0][0] == "singular"
    assert model.record("the red keys to w3 cabinet").prediction[0][0] == "plural"


def test_no_words_are_in_two_parts() -> None:
    parts = [{example.words for example in part} for part in agreement.split(examples(500))]
    assert all(parts)
    assert len(parts[0] | parts[1] | parts[2]) == sum(map(len, parts))


def test_the_grammar_gives_examples() -> None:
    for example in agreement.grammar_examples(5):
        assert example.verb not in example.words[-1:]
        assert example.words[example.subject]


def test_the_command_trains_and_tells_what_is_wrong(
    quick: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    done = runner.invoke(app, ["train", "agreement", "--data", str(quick.data), "--steps", "20", "--seed", "1"])
    assert done.exit_code == 0, done.output
    assert done.stdout == "Written: agreement\n"
    assert {path.name for path in Path("agreement").iterdir()} == FILES
    for arguments, sentence in [
        (["train", "agreement", "--data", "nowhere.jsonl", "--out", "other"], "There is no file nowhere.jsonl"),
        (["train", "demo", "--data", "nowhere.jsonl", "--out", "other"], "The task demo takes no --data"),
        (["train", "agreement", "--model", "demo", "--out", "other"], "The task agreement takes no --model"),
        (["train", "agreement", "--steps", "0", "--out", "other"], "--steps must be at least 1"),
        (["train", "opera"], "There is no task 'opera'"),
        (["train", "agreement", "--data", str(quick.data)], "agreement already holds a finished training"),
    ]:
        refused = runner.invoke(app, arguments)
        assert refused.exit_code == 2, arguments
        assert sentence in refused.stderr
        assert not Path("other").exists()
    write_examples(tmp_path / "few.jsonl", examples(3))
    with pytest.raises(BadInput, match="too few"):
        TASKS["agreement"](tmp_path / "other", data=tmp_path / "few.jsonl")
