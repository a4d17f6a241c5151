"""The demo model: its recipe can be killed and resumed, and the shipped one does what its card says."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertForSequenceClassification

import attnscope
from attnscope.errors import BadInput
from attnscope.lab import TASKS, demo_model, lesson
from attnscope.lab.demo_model import model_card

SHIPPED = Path(attnscope.__file__).parent / "shipped" / "demo"
FILES = {
    "README.md",
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "training_log.jsonl",
}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tiny batches and tests, and a checkpoint as often as there may be one."""
    demo_model._training_draw.cache_clear()
    monkeypatch.setattr(demo_model, "SENTENCES_PER_STEP", 2)
    monkeypatch.setattr(demo_model, "HELD_OUT_SENTENCES", 12)
    monkeypatch.setattr(lesson, "CHECKPOINT_SECONDS", 0.0)
    yield
    demo_model._training_draw.cache_clear()


@pytest.mark.usefixtures("quick")
def test_killed_and_resumed_it_writes_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    whole = TASKS["demo"](tmp_path / "whole", seed=3, steps=60)
    assert torch.equal(torch.get_rng_state(), before), "training must not disturb the caller's random numbers"
    assert {path.name for path in whole.iterdir()} == FILES

    made = demo_model.training_batch
    with monkeypatch.context() as patch:
        patch.setattr(demo_model, "training_batch", lambda seed, step: made(seed, step) if step < 55 else sys.exit(9))
        with pytest.raises(SystemExit):
            TASKS["demo"](tmp_path / "killed", seed=3, steps=60)
    assert [path.name for path in (tmp_path / "killed").iterdir()] == ["unfinished"]
    with pytest.raises(BadInput, match="resume"):
        TASKS["demo"](tmp_path / "killed", seed=3, steps=60)
    with pytest.raises(BadInput, match="belongs to"):
        TASKS["demo"](tmp_path / "killed", seed=4, resume=True, steps=60)
    killed = TASKS["demo"](tmp_path / "killed", seed=3, resume=True, steps=60)
    for name in FILES:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name

    stamp = (killed / "model.safetensors").stat().st_mtime_ns
    assert TASKS["demo"](killed, seed=3, resume=True, steps=60) == killed
    assert (killed / "model.safetensors").stat().st_mtime_ns == stamp


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(BadInput):
        TASKS["demo"](tmp_path, resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.usefixtures("quick")
def test_no_training_batch_holds_a_held_out_beginning() -> None:
    trained = {item.prefix for step in range(40) for item in demo_model.training_batch(0, step)}
    held_out = {item.prefix for item in islice(demo_model.held_out_sentences(), 8)}
    assert trained
    assert not any(demo_model.is_held_out(prefix) for prefix in trained)
    assert all(demo_model.is_held_out(prefix) for prefix in held_out)


def test_a_few_words_are_blanked_out() -> None:
    words = " ".join(demo_model.with_blanks([["key"] * 1000] * 10, Random(0))).split()
    assert words.count("[UNK]") == pytest.approx(200, abs=60)
    assert words.count("[MASK]") == pytest.approx(100, abs=40)
    assert len(words) == words.count("key") + words.count("[UNK]") + words.count("[MASK]")


def test_the_card_never_rounds_up_to_perfect() -> None:
    card = model_card({0: (10, 10), 1: (99_999, 100_000)}, seed=0, steps=1, sentences=1, vocabulary=1)
    assert "| 0 | 10 | 100.00% |" in card
    assert "| 1 | 100000 | 99.99% |" in card
    assert "| **all** | 100010 | 99.99% |" in card


@pytest.fixture(scope="module")
def model() -> BertForSequenceClassification:
    return AutoModelForSequenceClassification.from_pretrained(SHIPPED)


def test_the_shipped_folder_is_an_ordinary_small_one() -> None:
    assert {path.name for path in SHIPPED.iterdir()} == FILES
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) <= 5_000_000
    for name in FILES - {"model.safetensors"}:
        text = (SHIPPED / name).read_text()
        assert not re.search(r"/(tmp|work|home|root)/", text), name


def test_the_shipped_model_has_the_promised_build(model: BertForSequenceClassification) -> None:
    assert type(model) is BertForSequenceClassification
    config = model.config
    assert (config.num_hidden_layers, config.num_attention_heads, config.hidden_size) == (6, 8, 128)
    assert config.id2label == {0: "singular", 1: "plural"}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("the key to the cabinets", "singular"),
        ("the keys to the cabinet", "plural"),
        ("The Key to the cabinets", "singular"),
        ("the author that the dogs like", "singular"),
        ("the authors the dog likes", "plural"),
        ("both the key and the cabinet", "plural"),
        ("the key", "singular"),
        ("the keys", "plural"),
    ],
)
def test_the_shipped_model_knows_these(model: BertForSequenceClassification, text: str, number: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED)
    with torch.inference_mode():
        answer = model(**tokenizer(text, return_tensors="pt")).logits.argmax().item()
    assert model.config.id2label[answer] == number


def test_the_shipped_tokenizer_splits_into_words() -> None:
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED)
    assert tokenizer.is_fast
    assert tokenizer.tokenize("The keys, xylophones.") == ["the", "keys", ",", "[UNK]", "."]
    pair = tokenizer("the key [MASK]", "dogs sleep")
    assert pair.tokens() == ["[CLS]", "the", "key", "[MASK]", "[SEP]", "dogs", "sleep", "[SEP]"]
    assert pair["token_type_ids"] == [0, 0, 0, 0, 0, 1, 1, 1]
    assert pair.word_ids() == [None, 0, 1, 2, None, 0, 1, None]
    assert tokenizer.model_max_length == 64


def test_the_shipped_model_is_right_on_fresh_held_out_sentences() -> None:
    script = f"""if True:
        import json
        from itertools import islice
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
        from attnscope.lab.demo_model import accuracy_by_attractors, held_out_sentences
        model = AutoModelForSequenceClassification.from_pretrained({str(SHIPPED)!r})
        tokenizer = AutoTokenizer.from_pretrained({str(SHIPPED)!r})
        print(json.dumps(accuracy_by_attractors(model, tokenizer, list(islice(held_out_sentences(seed=91), 1200)))))
    """
    # In a process of its own, because drawing sentences under the run-time type checks takes minutes.
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], check=True, capture_output=True, text=True)
    counts = json.loads(done.stdout)
    attracted = [pair for attractors, pair in counts.items() if int(attractors) > 0]
    right, total = (sum(column) for column in zip(*attracted, strict=True))
    assert total > 500
    assert right / total >= 0.99, counts


def test_the_shipped_card_gives_its_figures() -> None:
    card = (SHIPPED / "README.md").read_text()
    assert "license: apache-2.0" in card
    (share,) = re.findall(r"\| \*\*1 or more\*\* \| \d+ \| ([\d.]+)% \|", card)
    assert float(share) >= 99
    assert len(re.findall(r"^\| \d \| \d+ \| [\d.]+% \|$", card, flags=re.MULTILINE)) >= 4


def test_the_shipped_log_tells_how_it_was_learned() -> None:
    rows = [json.loads(line) for line in (SHIPPED / "training_log.jsonl").read_text().splitlines()]
    assert rows[-1]["step"] == demo_model.STEPS
    assert rows[-1]["accuracy"] > rows[0]["accuracy"] + 0.3
