"""The figures of Tables 1 to 3 against independent references: scipy, networkx, autograd and plain loops."""

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from attnscope.errors import BadInput
from attnscope.lab.data import AgreementExample
from attnscope.lab.data.labelled import Labelled
from attnscope.lab.models import AgreementTransformer
from attnscope.lab.vocabulary import Vocabulary
from attnscope.reproduce.abnar2020.scoring import (
    METHODS,
    REFERENCES,
    SentenceScores,
    by_authors,
    by_average_ranks,
    correlate,
    correlations,
    dense_ranks,
    evenness_table,
    first_layer_gap,
    saturation_table,
    score_sentences,
    subject_table,
)
from attnscope.reproduce.abnar2020.sentiment import classifier_cells, sentiment_correlations, spread_evenly

WORDS = "the key keys to of cabinet cabinets on table tables near".split()
EXAMPLES = [
    AgreementExample(tuple("the key to the cabinets".split()), "singular", 1, 1, "is"),
    AgreementExample(tuple("the keys of the cabinet on the table".split()), "plural", 2, 1, "are"),
    AgreementExample(("keys",), "plural", 0, -1, "are"),
]


def ignore(done: int, whole: int) -> None:
    """Nobody watches."""


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    return AgreementTransformer(Vocabulary(WORDS), layers=3, heads=2, width=16, deviation=0.4).eval()


@pytest.fixture(scope="module")
def scored(model, tmp_path_factory):
    return score_sentences(model, "weights", EXAMPLES, tmp_path_factory.mktemp("scores"), 0, ignore)


def test_dense_ranks_of_a_hand_worked_example():
    # scores 3 1 1 2 have dense ranks 3 1 1 2, the reference 4 3 2 1 has 4 3 2 1: d = -1 -2 -1 1, 1 - 6*7/(4*15) = 0.3
    scores, reference = np.array([[3.0, 1.0, 1.0, 2.0]]), np.array([[4.0, 3.0, 2.0, 1.0]])
    assert dense_ranks(scores[0]).tolist() == [3, 1, 1, 2]
    assert by_authors(scores, reference)[0, 0] == pytest.approx(0.3)
    # average ranks 4 1.5 1.5 3 against 4 3 2 1: centred products sum to 1.5, squares to 4.5 and 5
    assert by_average_ranks(scores, reference)[0, 0] == pytest.approx(1.5 / np.sqrt(4.5 * 5))


def test_average_ranks_are_those_of_scipy():
    dice = np.random.default_rng(0)
    for tokens in (2, 5, 17):
        scores, references = dice.integers(4, size=(6, tokens)) / 3, dice.random((2, tokens))
        found = by_average_ranks(scores, references)
        for place, reference in enumerate(references):
            for row, score in enumerate(scores):
                expected = spearmanr(score, reference).statistic if np.ptp(score) else np.nan
                assert found[place, row] == pytest.approx(expected, nan_ok=True)


def test_without_ties_both_ways_agree():
    dice = np.random.default_rng(1)
    both = correlations(dice.random((4, 9)), dice.random((3, 9)))
    assert both[0] == pytest.approx(both[1])


def test_half_tied_scores_seem_to_agree_by_the_authors_ranks_only():
    dice = np.random.default_rng(2)
    found = []
    for _ in range(800):
        scores = dice.random((1, 12))
        scores[0, :6] = 0.0
        found.append(correlations(dice.permuted(scores, axis=1), dice.permuted(scores, axis=1))[:, 0, 0])
    authors, average = np.mean(found, axis=0)
    assert authors > 0.15
    assert abs(average) < 0.05


def test_one_token_ranks_nothing():
    assert np.isnan(correlations(np.ones((2, 1)), np.ones((1, 1)))).all()


def weights_of(model: AgreementTransformer, example: AgreementExample) -> np.ndarray:
    """Attention by hand: head means of softmax(QK/sqrt d) of every block."""
    maps = []
    inputs = model.batch([example.words])
    hidden = model.words(inputs["input_ids"]) + model.positions(torch.arange(inputs["input_ids"].shape[1]))
    for block in model.blocks:
        normed = block.attention_norm(hidden)
        queries, keys, _ = block.attention.queries_keys_values(normed).chunk(3, -1)
        heads = []
        for head in range(model.settings.heads):
            size = model.settings.width // model.settings.heads
            part = slice(head * size, (head + 1) * size)
            heads.append((queries[..., part] @ keys[..., part].transpose(1, 2) / size**0.5).softmax(-1)[0])
        maps.append(torch.stack(heads).mean(0).detach().double().numpy())
        hidden = block(hidden, torch.ones(1, hidden.shape[1]).bool())
    return np.stack(maps)


@pytest.mark.parametrize("place", range(len(EXAMPLES)))
def test_methods_against_plain_loops_and_networkx(model, scored, place):
    weights = weights_of(model, EXAMPLES[place])
    layers, tokens = weights.shape[:2]
    mixed = 0.5 * weights + 0.5 * np.eye(tokens)
    rolled = np.eye(tokens)
    for layer in range(layers):
        found = dict(zip(METHODS, scored[place].methods[:, layer].numpy(), strict=True))
        rolled = mixed[layer] @ rolled
        assert found["raw"] == pytest.approx(weights[layer, 0], abs=1e-5)
        assert found["rollout"] == pytest.approx(rolled[0], abs=1e-5)
        graph = nx.DiGraph()
        for level in range(layer + 1):
            for source in range(tokens):
                for sink in range(tokens):
                    graph.add_edge((level + 1, source), (level, sink), capacity=mixed[level, source, sink])
        flows = np.array([nx.maximum_flow_value(graph, (layer + 1, 0), (0, sink)) for sink in range(tokens)])
        assert found["flow"] == pytest.approx(flows / flows.sum(), abs=1e-5)


@pytest.mark.parametrize("place", range(len(EXAMPLES)))
def test_references_against_single_runs_and_autograd(model, scored, place):
    example = EXAMPLES[place]
    right = ("singular", "plural").index(example.number)
    ids = model.batch([example.words])["input_ids"]
    with torch.no_grad():
        before = model(ids).softmax(-1)[0, right]
        changes = []
        for position in range(ids.shape[1]):
            without = ids.clone()
            without[0, position] = model.vocabulary.number("unk")
            changes.append(abs(float(before - model(without).softmax(-1)[0, right])))
    embeddings = model.words(ids).detach().requires_grad_()
    handle = model.words.register_forward_hook(lambda *_: embeddings)
    first, second = model(ids).softmax(-1)[0]
    handle.remove()
    (slopes,) = torch.autograd.grad(first - second, embeddings)
    lengths = slopes[0].norm(dim=-1)
    found = dict(zip(REFERENCES, scored[place].references.numpy(), strict=True))
    assert found["blank_out"] == pytest.approx(np.array(changes), abs=1e-6)
    assert found["gradient"] == pytest.approx((lengths / lengths.max()).numpy(), abs=1e-4)
    assert found["gradient_sum"].max() < 1e-5  # LayerNorm leaves nothing but rounding


def test_tables_are_means_over_sentences(scored):
    found = correlate(7, scored)
    table = found.table().set_index(["reference", "method", "layer", "ranks", "tokens"])
    flow = METHODS.index("flow")
    expected = [
        spearmanr(one.methods[flow, 2, 1:-1].numpy().round(9), one.references[0, 1:-1].numpy().round(9)).statistic
        for one in scored[:2]
    ]
    row = table.loc[("blank_out", "flow", 3, "average", "words")]
    assert row["mean"] == pytest.approx(np.mean(expected))
    assert row["sd"] == pytest.approx(np.std(expected))
    assert row["sentences"] == 2  # one word alone ranks nothing
    assert row["seed"] == 7
    one, other = (("gradient", method, 1, "authors", "all") for method in ("raw", "rollout"))
    apart, low, high = found.difference(one, other)
    assert apart == pytest.approx(table.loc[one, "mean"] - table.loc[other, "mean"])
    assert low <= apart <= high


def test_evenness_and_saturation(scored):
    evenness = evenness_table({0: scored}).set_index(["method", "layer"])["evenness"]
    rows = [one.methods[0, 1].numpy() for one in scored]
    expected = np.mean([-(row * np.log(row)).sum() / np.log(len(row)) for row in rows])
    assert evenness["raw", 2] == pytest.approx(expected)
    saturation = saturation_table({0: scored}).set_index("layer")
    assert saturation.loc[1, "saturated"] == pytest.approx(np.mean([one.saturated[0] for one in scored]))
    assert saturation["tied"].between(0, 1).all()
    assert first_layer_gap(scored) < 1e-6


def made(rows: list[list[float]], subject: int, attractors: int) -> SentenceScores:
    """A sentence of one layer with the same scores for every method."""
    scores = torch.tensor(rows, dtype=torch.float64)
    return SentenceScores(
        methods=scores[:1].expand(3, 1, -1),
        baselines=scores[:1].expand(2, -1),
        references=scores[1:].expand(3, -1) if len(scores) > 1 else scores.expand(3, -1),
        saturated=torch.ones(1, dtype=torch.float64),
        subject=subject,
        attractors=attractors,
        right=True,
    )


def test_subjects_are_found_where_their_score_is_highest():
    # the first score is that of [CLS], the last that of the verb's place: both are higher and do not count
    sentences = [
        made([[9.0, 0.1, 0.5, 0.2, 9.0]], subject=2, attractors=0),
        made([[9.0, 0.5, 0.5, 0.2, 9.0]], subject=1, attractors=0),
        made([[9.0, 0.5, 0.1, 0.2, 9.0]], subject=3, attractors=6),
        made([[9.0, 0.5, 0.1, 0.2, 9.0]], subject=-1, attractors=0),
    ]
    table = subject_table({0: sentences}).set_index(["attractors", "method", "layer"])
    assert table.loc[("0", "flow", 1), "found"] == pytest.approx((1 + 0.5) / 2)
    assert table.loc[("4 or more", "flow", 1), "found"] == 0
    assert table.loc[("4 or more", "last", 0), "found"] == 1
    assert table.loc[("all", "flow", 1), "sentences"] == 3
    assert table.loc[("all", "chance", 0), "found"] == pytest.approx(1 / 3)
    assert table.loc[("all", "first", 0), "found"] == pytest.approx(1 / 3)


def test_table_3_by_the_row_of_cls_and_by_the_maximum(tmp_path):
    from attnscope import load

    model, texts = load("demo"), ["the key to the cabinets", "the dogs near the old house"]
    items = [Labelled(texts[0], "singular"), Labelled(texts[1], "singular")]
    found, right = sentiment_correlations(model, "weights", items, tmp_path, ignore)
    assert right == 0.5
    place = {cell: number for number, cell in enumerate(classifier_cells(len(model.record(texts[0]).layers)))}
    for row, text in zip(found.values, texts, strict=True):
        record = model.record(text, gradients=True, quantity="difference")
        lengths = record.embedding_gradients.norm(dim=-1).numpy()
        raw = record.weights.mean(1).double().numpy()
        for source, scores in (("cls", raw[1, 0]), ("maximum", raw[1].max(0))):
            expected = spearmanr(np.round(scores / scores.sum(), 9), np.round(lengths, 9)).statistic
            assert row[place[source, "raw", 2, "average", "all"]] == pytest.approx(expected, abs=1e-6)
    again, _ = sentiment_correlations(model, "weights", items, tmp_path, ignore)
    assert np.array_equal(found.values, again.values, equal_nan=True)
    with pytest.raises(BadInput, match="belongs to another classifier"):
        sentiment_correlations(model, "other weights", items, tmp_path, ignore)


def test_evenly_spread():
    assert spread_evenly(list("abcdef"), 3) == ["b", "d", "f"]
    assert spread_evenly(list("ab"), 5) == ["a", "b"]
