"""Figures stay exact where sums are long, labels odd and texts short."""

import numpy as np
import pytest
import torch

from attnscope.statistics import STATISTICS, Batch, Frame, LayerAttention, Reading
from attnscope.statistics.shape import Variability
from attnscope.syntax import Sentence


def reading(tokens: int, place: int = 0, relations=None, ids=None) -> Reading:
    """One token to a word, each word the head of the next."""
    sentence = Sentence(
        words=tuple(f"w{word}" for word in range(tokens)),
        tags=("NOUN",) * tokens,
        heads=tuple(range(-1, tokens - 1)),
        relations=relations or ("root", *["dep"] * (tokens - 1)),
    )
    return Reading(
        place, sentence, ids or tuple(range(tokens)), sentence.words, (False,) * tokens, tuple(range(tokens))
    )


def fed(name, readings, weights, **options):
    relations = tuple(sorted({one for each in readings for one in each.sentence.relations}))
    frame = Frame(1, weights.shape[1], tags=("NOUN",), relations=relations, **options)
    statistic = STATISTICS[name].empty(frame)
    statistic.update(LayerAttention(Batch(readings, frame), 0, weights))
    return statistic.result()


@pytest.mark.parametrize("causal", [True, False])
def test_distance_is_exact_on_a_long_text(causal):
    tokens = 1024
    scores = torch.randn(1, 2, tokens, tokens, generator=torch.Generator().manual_seed(0))
    if causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -torch.inf)
    weights = scores.softmax(-1)
    found = fed("distance", [reading(tokens)], weights, causal=causal, null="none")
    position = np.arange(tokens)
    away = position[:, None] - position
    maps = weights[0].double().numpy()
    np.testing.assert_allclose(found["value"], (maps * abs(away)).sum((1, 2)) / maps.sum((1, 2)), rtol=1e-6)
    np.testing.assert_allclose(found["signed"], (maps * away).sum((1, 2)) / maps.sum((1, 2)), rtol=1e-6, atol=1e-4)


def test_relations_with_spaces_keep_apart():
    text = reading(4, relations=("root", "obl", "obl mod", "obl agent"))
    found = fed("dependency_alignment", [text], torch.full((1, 1, 4, 4), 0.25), causal=False, null="none")
    rows = found[found["direction"] == "dependent_to_head"].set_index("relation")["value"]
    assert rows[["obl", "obl mod", "obl agent"]].tolist() == pytest.approx([1 / 16] * 3)
    assert rows["any"] == pytest.approx(3 / 16)


def test_a_token_right_behind_itself_is_no_induction():
    weights = torch.eye(3).view(1, 1, 3, 3)
    found = fed("patterns", [reading(3, ids=(7, 7, 8))], weights, causal=True, null="none").set_index("pattern")
    assert found.loc["induction", "value"] == 0
    assert found.loc["same", "value"] == 1


def test_a_sentence_without_a_weight_that_counts_is_no_exemplar():
    assert fed("exemplars", [reading(1)], torch.ones(1, 1, 1, 1), causal=True, null="first").empty


def test_the_error_of_variability_is_that_of_surveys_without_a_group(sample):
    """By leaving one group out of both passes, which is what the correction to first order stands for."""
    from attnscope.statistics import with_errors

    readings, weights, _ = sample.corpus(11, [12] * 40, framed=False, causal=True)
    frame = sample.frame(readings, weights, True, "first")

    def second(chosen, means_of):
        few, of_means = ([readings[number] for number in numbers] for numbers in (chosen, means_of))
        first = sample.fed(Variability.empty(frame), of_means, weights[:, means_of], frame)
        return sample.fed(Variability.second_pass.after(first, frame), few, weights[:, chosen], frame)

    everyone = list(range(40))
    groups = [everyone[start : start + 5] for start in range(0, 40, 5)]
    table = with_errors([second(group, everyone) for group in groups], lambda statistic: statistic.result())
    left_out = [[number for number in everyone if number not in group] for group in groups]
    values = np.stack([second(rest, rest).result()["value"] for rest in left_out])
    true = np.sqrt(7 / 8 * ((values - values.mean(0)) ** 2).sum(0))
    np.testing.assert_allclose(table["error"], true, rtol=0.25)
