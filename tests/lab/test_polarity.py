"""Scores of all words: alone, in context, and the weights they get."""

import pytest
import torch

from attnscope.lab.data import PackedTexts, toy_polarity
from attnscope.lab.models import AttentionClassifier
from attnscope.lab.models.attention_classifier import VARIANTS
from attnscope.lab.polarity import global_scores, local_scores, mean_attention_weights, padded_batches
from attnscope.lab.vocabulary import Vocabulary
from attnscope.reproduce.sun2020.words import class_counts, token_classes

TEXTS = [[4, 5, 6], [5], [6, 4, 5, 5, 7], [7, 6]]


def made(variant: str, **settings) -> AttentionClassifier:
    torch.manual_seed(1)
    vocabulary = Vocabulary(["a", "b", "c", "d", "e"])
    return AttentionClassifier(vocabulary, variant=variant, scaling=0.5, width=6, **settings).double()


@pytest.mark.parametrize("classes", [("negative", "positive"), ("one", "two", "three")])
@pytest.mark.parametrize("variant", VARIANTS)
def test_global_scores_are_those_of_a_text_of_one_word(variant, classes) -> None:
    model = made(variant, classes=classes)
    found = global_scores(model)
    assert model.training  # as it was
    model.eval()
    # a text of one word attends to it alone, so its logits are the polarity of the word
    torch.testing.assert_close(found.polarity, model(torch.arange(len(model.vocabulary))[:, None]))
    # between two texts that are read apart, α is as the exponentials of a
    if variant != "dot_lstm":
        pair = model.weights(torch.tensor([[4, 7]]))[0]
        assert (pair[0] / pair[1]).log().item() == pytest.approx((found.attention[4] - found.attention[7]).item())


@pytest.mark.parametrize("variant", VARIANTS)
def test_local_scores_are_means_over_occurrences(variant) -> None:
    model = made(variant).eval()
    found = local_scores(model, PackedTexts.of(TEXTS, [0, 1, 0, 1]))
    seen: dict[int, list[tuple[float, float]]] = {}
    for text in TEXTS:
        values, scores = model.values_and_scores(
            model.embeddings(torch.tensor([text])), torch.ones(1, len(text)).bool()
        )
        for place, word in enumerate(text):
            polarity = (values[0, place] @ model.output.weight[0]).item()
            seen.setdefault(word, []).append((polarity, scores[0, place].item()))
    for word, pairs in seen.items():
        polarity, attention = torch.tensor(pairs, dtype=torch.double).mean(0)
        torch.testing.assert_close(found.polarity[word, 0], polarity)
        torch.testing.assert_close(found.attention[word], attention)
    assert found.polarity[8].isnan().all()
    assert found.attention[8].isnan()
    alone = global_scores(model)
    same = torch.allclose(found.attention[4:8], alone.attention[4:8])
    assert same == (variant != "dot_lstm")


def test_mean_weights_are_over_the_occurrences_of_a_word() -> None:
    model = made("dot").eval()
    found = mean_attention_weights(model, PackedTexts.of(TEXTS, [0, 1, 0, 1]))
    weights = [model.weights(torch.tensor([text]))[0] for text in TEXTS]
    expected = (weights[0][1] + weights[1][0] + weights[2][2] + weights[2][3]) / 4
    torch.testing.assert_close(found[5], expected.detach())
    assert found[8].isnan()


def test_learning_made_up_sentences_gives_their_words_polarity_and_attention() -> None:
    data = toy_polarity()
    torch.manual_seed(0)
    model = AttentionClassifier(data.vocabulary, width=20, dropout=0.2)
    steps = torch.optim.Adagrad(model.parameters(), lr=0.05)
    right = torch.from_numpy(data.train.labels)
    for _ in range(15):
        for place, (ids, real) in enumerate(padded_batches(data.train, 40)):
            steps.zero_grad()
            model.loss(model(ids, real), right[place * 40 : place * 40 + 40]).backward()
            steps.step()
    model.eval()
    ids, real = next(padded_batches(data.test, len(data.test)))
    assert (model.predicted(model(ids, real)) == torch.from_numpy(data.test.labels)).double().mean() > 0.9
    kinds = token_classes(class_counts(data.train, 2, len(data.vocabulary)))
    scores = global_scores(model)
    assert (scores.polarity[kinds.positive, 0] > 0).double().mean() > 0.9
    assert (scores.polarity[kinds.negative, 0] < 0).double().mean() > 0.9
    assert scores.attention[kinds.polar].mean() > scores.attention[kinds.neutral].mean()
