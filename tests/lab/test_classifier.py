"""A classifier fine-tuned from an encoder: its data, its folder, and that a kill changes nothing."""

import gzip
import json
import sys
from pathlib import Path
from random import Random

import pytest
import torch
from transformers import BertConfig, BertModel

import attnscope
from attnscope.errors import BadInput
from attnscope.lab import TASKS, classifier, demo_model, lesson
from attnscope.lab.batches import Batches
from attnscope.lab.data.labelled import Labelled, labelled_splits

TREES = """\
(4 (2 The) (3 (3 good) (2 (2 -LRB-) (2 keys))))
(2 (2 so) (2 so))
(0 (2 a) (1 (0 bad) (2 either\\/or)))
"""


def test_trees_are_read_without_the_neutral_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "sst"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        (folder / f"{split}.txt.gz").write_bytes(gzip.compress(TREES.encode()))
    expected = [Labelled("The good ( keys", "positive"), Labelled("a bad either/or", "negative")]
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path))
    assert labelled_splits("sst") == dict.fromkeys(("train", "dev", "test"), expected)
    (folder / "dev.txt.gz").write_bytes(gzip.compress(b"no tree\n"))
    with pytest.raises(BadInput, match=r"Line 1 of .* is no tree"):
        labelled_splits("sst")


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A tiny BERT without a head, with the demo model's words."""
    tokenizer = demo_model.build_tokenizer()
    torch.manual_seed(0)
    model = BertModel(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
            architectures=["BertModel"],
        )
    )
    folder = tmp_path / "encoder"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """The word "key" means yes, "keys" no."""
    dice = Random(0)
    path = tmp_path / "texts.jsonl"
    rows = []
    for _ in range(300):
        word = dice.choice(["key", "keys"])
        words = [dice.choice(["the", "to", "of", "old", "men"]) for _ in range(dice.randrange(2, 9))]
        words.insert(dice.randrange(len(words)), word)
        rows.append({"text": " ".join(words), "label": "yes" if word == "key" else "no"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_killed_and_resumed_it_writes_the_same_folder(
    encoder: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classifier, "TEXTS_PER_STEP", 4)
    monkeypatch.setattr(classifier, "PEAK", 3e-3)
    monkeypatch.setattr(lesson, "CHECKPOINT_SECONDS", 0.0)
    options = {"seed": 2, "model": str(encoder), "data": str(texts)}
    whole = TASKS["classifier"](tmp_path / "whole", **options)

    class Dying(Batches):
        def __getitem__(self, step: int) -> list[int]:
            return super().__getitem__(step) if step < 108 else sys.exit(9)

    with monkeypatch.context() as patch:
        patch.setattr(classifier, "Batches", Dying)
        with pytest.raises(SystemExit):
            TASKS["classifier"](tmp_path / "killed", **options)
    killed = TASKS["classifier"](tmp_path / "killed", resume=True, **options)
    files = {path.name for path in whole.iterdir()}
    assert files >= {"README.md", "config.json", "model.safetensors", "tokenizer.json", "training_log.jsonl"}
    for name in files:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name

    splits = labelled_splits(str(texts))
    model = attnscope.load(killed)
    said = [model.record(item.text).prediction[0][0] for item in splits["test"]]
    right = sum(answer == item.label for answer, item in zip(said, splits["test"], strict=True))
    assert right / len(said) > 0.8
    assert f"**{right / len(said):.2%}**" in (killed / "README.md").read_text()


def test_what_is_wrong_is_one_sentence_and_nothing_is_written(encoder: Path, texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "bad.jsonl").write_text('{"text": "a"}\n')
    (tmp_path / "three.jsonl").write_text(
        "".join(json.dumps({"text": f"t{number}", "label": number % 3}) + "\n" for number in range(200))
    )
    for options, sentence in [
        ({"data": str(texts)}, "name one with --model"),
        ({"model": "no/such", "data": str(texts)}, "cannot be fine-tuned"),
        ({"model": str(encoder), "data": "nowhere"}, "no data set or file 'nowhere'"),
        ({"model": str(encoder), "data": "wikitext2"}, "has no texts with one of two labels"),
        ({"model": str(encoder), "data": str(tmp_path / "bad.jsonl")}, 'is not JSON with "text" and "label"'),
        ({"model": str(encoder), "data": str(tmp_path / "three.jsonl")}, "has 3"),
    ]:
        with pytest.raises(BadInput, match=sentence):
            TASKS["classifier"](out, **options)
        assert not out.exists()
