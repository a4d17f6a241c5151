"""The second pass: how attention varies over texts, by hand and for sentences that are all the same."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from attnscope import survey

N = 10


def test_the_same_sentence_again_and_again_does_not_vary(tiny, lab) -> None:
    for family in ("gpt2", "bert"):
        found = survey(tiny.load(family), lab.sentences(1, [12]) * 7, ["variability"], shard_size=2)
        table = found["variability"].result()
        assert (table["sentences"] == 7).all()
        assert table["value"].abs().max() < 1e-6
        assert found["variability"].by_layer()["value"].abs().max() < 1e-6


def test_two_sentences_by_hand(tiny) -> None:
    """The mean of two is half way, so each deviates by half their difference."""
    model = tiny.load("gpt2")
    texts = ["the key to the cabinets is on the table .", "a boy that runs , the red dogs see a table"]
    maps = [model.record(text).weights.double().numpy()[:, :, :N, :N].copy() for text in texts]
    for of_text in maps:
        of_text[..., 0] = 0  # null attention
    expected = np.abs(maps[0] - maps[1]).sum((2, 3)) / (2 * (maps[0] + maps[1]).sum((2, 3)))
    for shard_size in (1, 2):
        found = survey(model, texts, ["variability"], shard_size=shard_size)
        table = found["variability"].result()
        assert np.allclose(table["value"].to_numpy().reshape(expected.shape), expected, atol=1e-6)
        assert (table["sentences"] == 2).all()


def test_short_sentences_are_not_counted(tiny, lab) -> None:
    long, short = lab.sentences(2, [10, 11, 12]), lab.sentences(3, [1, 4, 6])
    alone, among = (survey(tiny.load("gpt2"), corpus, ["variability"]) for corpus in (long, [*long, *short]))
    assert (among["variability"].result()["sentences"] == 3).all()
    assert np.allclose(alone["variability"].result()["value"], among["variability"].result()["value"], atol=1e-6)


def test_where_no_sentence_is_long_enough_there_is_no_figure(tiny, lab) -> None:
    table = survey(tiny.load("gpt2"), lab.sentences(4, [1, 2, 2]), ["variability", "roles"])["variability"].result()
    assert table["value"].isna().all()
    assert (table["sentences"] == 0).all()


@pytest.mark.parametrize(("first", "second", "value"), [([1, 0], [0, 1], 0.5), ([1, 0], [1, 0], 0.0)])
def test_the_extremes(first: list[int], second: list[int], value: float, sample: SimpleNamespace) -> None:
    """Two texts: at most one half, as the mean of two lies between them; the same map: nothing."""
    from attnscope.statistics import STATISTICS, Reading
    from attnscope.syntax import Sentence

    words = ("w",) * 12
    readings = [
        Reading(place, Sentence(words), tuple(range(12)), words, (False,) * 12, tuple(range(12))) for place in (0, 1)
    ]
    weights = torch.zeros(1, 2, 1, 12, 12)
    for number, (near, far) in enumerate((first, second)):
        weights[0, number, 0, :, 1] = near
        weights[0, number, 0, :, 2] = far
    frame = sample.frame(readings, weights, False, "none")
    table = sample.measured(STATISTICS["variability"], readings, weights, frame).result()
    assert table["value"].tolist() == [value]
