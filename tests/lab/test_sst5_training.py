"""The training of the sentiment model: its folder, that a kill changes nothing, and that it learns."""

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
import torch
from typer.testing import CliRunner

from attnscope.cli import app
from attnscope.errors import BadInput
from attnscope.lab import TASKS, lesson
from attnscope.lab import sentiment_training as training
from attnscope.lab.batches import Batches
from attnscope.lab.data.sst_trees import parse_tree
from attnscope.lab.models import SentimentTransformer

FILES = {"README.md", "lab_model.json", "model.safetensors", "training_log.jsonl", "vocabulary.json"}
SIZE = {"layers": 1, "heads": 2, "head_width": 4, "width": 8}
WORDS = ["awful", "poor", "plain", "good", "great"]


def lines(count: int, seed: int = 0) -> list[str]:
    """One word decides; words around it do not."""
    dice, made = Random(seed), []
    for _ in range(count):
        label = dice.randrange(5)
        words = [(label, WORDS[label]), *((2, f"w{dice.randrange(9)}") for _ in range(dice.randrange(1, 5)))]
        dice.shuffle(words)
        made.append(f"({label} " + " ".join(f"({own} {word})" for own, word in words) + ")")
    return made


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """A small model on small data, and a checkpoint as often as there may be one."""
    monkeypatch.setattr(training, "SST5", replace(training.SST5, size=8))
    monkeypatch.setattr(lesson, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(training, "make_model", partial(training.make_model, **SIZE))
    folder = tmp_path / "trees"
    folder.mkdir()
    for seed, (split, count) in enumerate({"train": 160, "dev": 30, "test": 30}.items()):
        (folder / f"{split}.txt").write_text("\n".join(lines(count, seed)) + "\n")
    numbers = Random(5)
    words = [*WORDS, *(f"w{number}" for number in range(9))]
    rows = [" ".join([word, *(f"{numbers.gauss(0, 1):.3f}" for _ in range(4))]) for word in words]
    (tmp_path / "glove.txt").write_text("\n".join(rows) + "\n")
    return SimpleNamespace(data=str(folder), vectors=str(tmp_path / "glove.txt"))


def test_killed_and_resumed_it_writes_the_same_files(
    quick: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    options = {"seed": 3, "steps": 70, "data": quick.data, "vectors": quick.vectors}
    whole = TASKS["sst5"](tmp_path / "whole", **options)
    assert torch.equal(torch.get_rng_state(), before), "training must not disturb the caller's random numbers"
    assert {path.name for path in whole.iterdir()} == FILES

    class Dying(Batches):
        def __getitem__(self, step: int) -> list[int]:
            return super().__getitem__(step) if step < 55 else sys.exit(9)

    with monkeypatch.context() as patch:
        patch.setattr(training, "Batches", Dying)
        with pytest.raises(SystemExit):
            TASKS["sst5"](tmp_path / "killed", **options)
    assert [path.name for path in (tmp_path / "killed").iterdir()] == ["unfinished"]
    with pytest.raises(BadInput, match="belongs to"):
        TASKS["sst5"](tmp_path / "killed", **options | {"seed": 4}, resume=True)
    killed = TASKS["sst5"](tmp_path / "killed", **options, resume=True)
    for name in FILES:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    log = [json.loads(line) for line in (whole / "training_log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in log if "validation" in row] == [20, 40, 60, 70]
    card = (killed / "README.md").read_text()
    assert "The word vectors are those of glove.txt, 4 dimensions, and are not trained." in card

    model = SentimentTransformer.load(killed)
    given = [float(number) for number in Path(quick.vectors).read_text().splitlines()[3].split()[1:]]
    assert model.words.weight[model.vocabulary.encode(["good"])[0]].tolist() == pytest.approx(given)
    assert model.instrumented().record("a good w1").prediction


def test_dropout_is_on_in_every_step_also_after_a_look_at_validation(
    quick: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[bool] = []
    loss = SentimentTransformer.loss
    monkeypatch.setattr(
        SentimentTransformer, "loss", lambda model, *given: modes.append(model.training) or loss(model, *given)
    )
    TASKS["sst5"](tmp_path / "out", steps=45, data=quick.data, vectors=quick.vectors)
    assert modes == [True] * 45


def test_it_learns_from_scratch_what_decides(
    quick: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "RATE", 1e-2)
    splits = {
        split: [parse_tree(line) for line in lines(count, count)]
        for split, count in (("train", 200), ("dev", 50), ("test", 10))
    }
    calm = {"dropout": 0.0, "decoder_dropout": 0.0}
    subject = replace(training.SST5, epochs=6)
    learned, log = lesson.learn(
        lambda: training.sentiment_lesson(
            subject, splits, "ours", training.make_model(subject, splits, "scratch", **calm)
        ),
        tmp_path / "checkpoint",
    )
    model = learned.model
    assert training.accuracy(model, splits["dev"]) > 0.9, log
    assert model.settings.source == "The word vectors are learned with the model, from scratch."
    assert model.instrumented().record("w1 Great w2").prediction[0][0] == "very positive"


def test_the_command_trains_and_tells_what_is_wrong(
    quick: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    given = ["train", "sst5", "--data", quick.data, "--vectors", quick.vectors, "--steps", "4"]
    done = runner.invoke(app, given)
    assert done.exit_code == 0, done.output
    assert done.stdout == "Written: sst5\n"
    assert {path.name for path in Path("sst5").iterdir()} == FILES
    for arguments, sentence in [
        (["train", "sst5", "--data", "nowhere", "--out", "other"], "There is no data set or folder 'nowhere'"),
        (["train", "sst5", "--data", quick.data, "--vectors", "no.txt", "--out", "other"], "There is no file no.txt"),
        (["train", "demo", "--vectors", "scratch", "--out", "other"], "The task demo takes no --vectors"),
    ]:
        refused = runner.invoke(app, arguments)
        assert refused.exit_code == 2, refused.output
        assert sentence in " ".join(refused.stderr.split())
        assert not Path("other").exists()
