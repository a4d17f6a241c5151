"""The sentiment model on stories: each window's valence, its record, and training that survives a kill."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import attnscope
from attnscope.errors import BadInput
from attnscope.lab import lesson, sentiment_training
from attnscope.lab.batches import Batches
from attnscope.lab.data import standin_stories
from attnscope.lab.data.sst_trees import parse_tree
from attnscope.lab.data.story import Story, windows_of
from attnscope.lab.models import SentimentTransformer
from attnscope.lab.train import LogRow
from attnscope.lab.word_vectors import WordVectors
from attnscope.reproduce.wu2020 import stories as story_training
from attnscope.reproduce.wu2020.stories import StoryModel, predicted_series, valences

SIZE = {"layers": 2, "heads": 2, "head_width": 4, "width": 8}
WORDS = ("awful", "poor", "plain", "good", "great", "film")
LONG = Story("long", windows_of([["a", "good", "film"], [], ["awful"], ["poor", "film"]]), (0.1, 0.2, -0.5, -0.6))
SHORT = Story("short", windows_of([["great"], ["plain", "film"]]), (0.9, 0.1))


def made(**settings: object) -> SentimentTransformer:
    table = torch.randn(len(WORDS), 8, generator=torch.Generator().manual_seed(1))
    return SentimentTransformer.for_send(WordVectors(WORDS, table, "Made up."), **SIZE, **settings)


def test_a_series_is_that_of_the_lstm_window_by_window() -> None:
    torch.manual_seed(0)
    model = made().eval()
    state, expected = None, []
    for window in LONG.windows:
        batch = model.batch([window.read])
        context = model.contexts(model.words(batch["input_ids"]), batch["attention_mask"])
        hidden, state = model.decoder.memory(context[None], state)
        expected.append(model.decoder.answer(hidden)[0, 0, 0].item())
    assert predicted_series(model, [LONG])[0] == pytest.approx(expected, abs=1e-5)
    # a shorter story beside it changes nothing, nor is it changed
    together, real = valences(model, [LONG, SHORT])
    assert real.tolist() == [[True] * 4, [True, True, False, False]]
    assert together[0].tolist() == pytest.approx(expected, abs=1e-5)
    assert together[1, :2].tolist() == pytest.approx(predicted_series(model, [SHORT])[0], abs=1e-5)


def test_records_of_a_story_have_the_gradient_of_all_windows() -> None:
    torch.manual_seed(0)
    model = made()
    read = StoryModel(model, [LONG])
    records = list(read.records(read.windows, gradients=True))
    assert [record.tokens for record in records] == [("a", "good", "film"), ("awful",), ("poor", "film")]
    assert model.training, "it is left as it was"
    model.eval()
    # a small step along one dimension of "awful", in the third window
    record, step = records[1], 1e-2
    place = model.vocabulary.encode(["awful"])[0]
    with torch.no_grad():
        model.words.weight[place, 3] += step
        up = sum(predicted_series(model, [LONG])[0])
        model.words.weight[place, 3] -= 2 * step
        down = sum(predicted_series(model, [LONG])[0])
    assert record.embedding_gradients[0, 3].item() == pytest.approx((up - down) / (2 * step), rel=0.05, abs=1e-5)
    assert attnscope.layerwise_tracing(records[0]).scores.sum().item() == pytest.approx(2, abs=1e-5)
    assert attnscope.gradient(records[0], reduce="squared", target="sum").scores.min() > 0


def test_killed_and_resumed_it_ends_with_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trees = [parse_tree(f"({label} ({label} {WORDS[label]}) (2 film))") for label in range(5)]
    training, validation = standin_stories(trees, 12, windows=5), standin_stories(trees, 4, windows=5, seed=1)
    subject = replace(story_training.STORIES, size=4, patience=99)
    splits = {"train": training, "dev": validation, "test": validation}
    monkeypatch.setattr(lesson, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(sentiment_training, "RATE", 1e-2)

    def learn(checkpoint: Path) -> tuple[SentimentTransformer, list[LogRow]]:
        done, log = lesson.learn(
            lambda: sentiment_training.sentiment_lesson(subject, splits, "ours", made(), steps=60), checkpoint
        )
        return done.model, log

    whole, log = learn(tmp_path / "whole")

    class Dying(Batches):
        def __getitem__(self, step: int) -> list[int]:
            return super().__getitem__(step) if step < 55 else sys.exit(9)

    with monkeypatch.context() as patch:
        patch.setattr(sentiment_training, "Batches", Dying)
        with pytest.raises(SystemExit):
            learn(tmp_path / "killed")
    killed, again = learn(tmp_path / "killed")
    assert again == log
    for name, tensor in whole.state_dict().items():
        assert torch.equal(killed.state_dict()[name], tensor), name
    looks = [row["validation"] for row in log if "validation" in row]
    assert story_training.mean_concordance(whole, validation) == pytest.approx(max(looks), abs=1e-5)
    assert max(looks) > looks[0]


def test_classes_over_time_are_refused() -> None:
    model = SentimentTransformer.for_sst5(**SIZE)
    with pytest.raises(BadInput, match="for_send"):
        predicted_series(model, [LONG])
