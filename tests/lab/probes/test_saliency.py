"""Saliency against finite differences, and that it leaves the model as it was."""

import pytest
import torch
from torch.nn import functional as F

from attnscope.lab.models import RecurrentClassifier
from attnscope.lab.probes.saliency import read_with_saliency, saliency
from attnscope.lab.vocabulary import FRAMED, Vocabulary

LABELS = torch.tensor([1, 0, 1])
TEXTS = [["a", "good", "film"], ["dull"], ["the", "film", "was", "good", "and", "dull"]]


@pytest.fixture
def model() -> RecurrentClassifier:
    torch.manual_seed(5)
    words = sorted({word for text in TEXTS for word in text})
    small = {"width": 5, "hidden": 4, "attention_width": 3}
    return RecurrentClassifier(Vocabulary(words, special=FRAMED), **small).double()


def losses(model: RecurrentClassifier, vectors: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    logits = model.read(vectors, real).logits[:, 0]
    return F.binary_cross_entropy_with_logits(logits, LABELS.double(), reduction="none")


def test_it_is_how_the_loss_falls_as_a_word_s_vector_grows(model) -> None:
    ids, real = model.batch(TEXTS).values()
    found = saliency(model, ids, real, LABELS)
    vectors, small = model.embeddings(ids).detach(), 1e-6
    with torch.no_grad():
        for place in range(ids.shape[1]):
            scales = torch.ones_like(vectors)
            scales[:, place] += small
            less = scales.clone()
            less[:, place] -= 2 * small
            slope = (losses(model, vectors * scales, real) - losses(model, vectors * less, real)) / (2 * small)
            torch.testing.assert_close(found[:, place], -slope * real[:, place], rtol=0, atol=1e-8)
    assert found[~real].eq(0).all()


def test_it_depends_on_its_own_text_alone(model) -> None:
    ids, real = model.batch(TEXTS).values()
    together = saliency(model, ids, real, LABELS)
    for row, text in enumerate(TEXTS):
        alone = saliency(model, *model.batch([text]).values(), LABELS[row : row + 1])
        torch.testing.assert_close(together[row : row + 1, : alone.shape[1]], alone)


def test_reading_is_that_of_the_model_and_leaves_it_ready_to_learn(model) -> None:
    ids, real = model.batch(TEXTS).values()
    model.embeddings.weight.requires_grad_(False)
    with torch.no_grad():
        reading, _ = read_with_saliency(model, ids, real, LABELS)
        torch.testing.assert_close(reading.logits, model(ids, real))
        torch.testing.assert_close(reading.weights, model.weights(ids, real))
    assert not model.embeddings.weight.requires_grad
    assert model.output.weight.requires_grad
    assert all(weights.grad is None for weights in model.parameters())
