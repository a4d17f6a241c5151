"""The proxy: blind to order, a logistic regression in disguise, and for translation a softmax over output words."""

import numpy as np
import pytest
import torch

from attnscope.errors import BadInput
from attnscope.lab.data import PackedTexts, toy_polarity
from attnscope.lab.models.bag_of_words import BagOfWords, LogisticWords, logistic_words, word_shares


@pytest.fixture
def model() -> BagOfWords:
    torch.manual_seed(0)
    return BagOfWords(12, 3, 5).double()


def test_logits_are_the_mean_of_those_of_the_words_and_the_bias(model) -> None:
    ids = torch.tensor([[3, 4, 3, 0], [7, 0, 0, 0]])
    real = torch.tensor([[True, True, True, False], [True, False, False, False]])
    words = model.word_logits(ids)
    expected = torch.stack([words[0, :3].mean(0), words[1, 0]]) + model.output.bias
    torch.testing.assert_close(model(ids, real), expected)
    torch.testing.assert_close(model.word_weights()[ids], words)


def test_it_is_blind_to_permutations_so_that_it_cannot_learn_to_copy_them(model) -> None:
    generator = torch.Generator().manual_seed(1)
    orders = torch.stack([torch.randperm(12, generator=generator) for _ in range(6)])
    logits = model(orders, torch.ones_like(orders).bool())
    torch.testing.assert_close(logits, logits[:1].expand_as(logits))


def test_the_loss_of_output_words_counts_only_those_that_are_told(model) -> None:
    ids, targets = torch.tensor([[3, 4], [5, 6]]), torch.tensor([[0, 2, 2], [1, 0, 0]])
    counted = torch.tensor([[True, True, True], [True, False, False]])
    chances = model(ids, torch.ones_like(ids).bool()).softmax(-1)
    expected = -(chances[0, 0].log() + 2 * chances[0, 2].log() + chances[1, 1].log())
    torch.testing.assert_close(model.word_loss(model(ids, torch.ones_like(ids).bool()), targets, counted), expected)


def test_the_strength_of_the_penalty_is_chosen_by_held_out_accuracy() -> None:
    data = toy_polarity()
    words = len(data.vocabulary)
    found = logistic_words(data.train, data.dev, words)
    assert isinstance(found, LogisticWords)
    scores = {
        strength: logistic_words(data.train, data.dev, words, [strength]).accuracy for strength in (1e-5, 1.0, 1e4)
    }
    assert found.accuracy >= max(scores.values())
    told = [data.vocabulary.tokens[number] for number in np.argsort(found.weights)]
    assert all(word.startswith("negative") for word in told[:5])
    assert all(word.startswith("positive") for word in told[-5:])


def test_shares_of_words_leave_the_texts_as_they_are() -> None:
    packed = PackedTexts.of([[3, 1, 3], [2, 0]], [1, 0])
    shares = word_shares(packed, 4).toarray()
    np.testing.assert_allclose(shares, [[0, 1 / 3, 0, 2 / 3], [0.5, 0, 0.5, 0]])
    assert [text.tolist() for text in packed] == [[3, 1, 3], [2, 0]]


def test_sizes_are_checked() -> None:
    with pytest.raises(BadInput, match="at least one word"):
        BagOfWords(0, 1)
