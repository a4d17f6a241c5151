"""Baselines: what they say, and that they say it again."""

import numpy as np
import torch

from attnscope.attribution.comparing import spearman
from attnscope.evaluation.per_text import BASELINES, baseline_scores, frequency_scores, position_scores, random_scores


def test_random_depends_on_seed_and_text_alone():
    assert torch.equal(random_scores(9, seed=1, text=4), random_scores(9, seed=1, text=4))
    others = [random_scores(9, seed=seed, text=text) for seed, text in ((1, 5), (2, 4), (4, 1))]
    assert not any(torch.equal(random_scores(9, seed=1, text=4), other) for other in others)


def test_random_agrees_with_nothing():
    given = torch.rand(12, generator=torch.Generator().manual_seed(0))
    found = [spearman(random_scores(12, 0, text), given) for text in range(2000)]
    assert abs(np.mean(found)) < 0.02


def test_position_is_nearness_to_the_readout():
    first, last = torch.tensor([1.0, 0, 0, 0]), torch.tensor([0, 0, 0, 1.0])
    assert position_scores(first, 4).tolist() == [0, -1, -2, -3]
    assert position_scores(last, 4).tolist() == [-3, -2, -1, 0]
    assert position_scores(torch.full((3,), 1 / 3), 3).argmax() == 1


def test_rarer_is_higher():
    assert frequency_scores(["the", "key", "new"], {"the": 9, "key": 2}).tolist() == [-9, -2, 0]


def test_every_baseline_scores_every_token(demo):
    record = demo.record("the key to the cabinets")
    scores = baseline_scores(record, {"the": 2}, seed=0, text=0)
    assert tuple(scores) == BASELINES
    assert all(len(values) == len(record.tokens) for values in scores.values())
