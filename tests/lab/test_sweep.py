"""A sweep against PyTorch one run at a time, in float64 with the same masks; choosing, stopping, going on."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnscope.bench.sweep import OneByOne, PlainClassifier
from attnscope.errors import BadInput
from attnscope.lab.data.packed import ClassifiedTexts, PackedTexts
from attnscope.lab.models.attention_classifier import AttentionClassifier
from attnscope.lab.sweep import Recipe, RunSettings, begin_runs, initial_weights, shares, sweep, sweep_groups
from attnscope.lab.sweep.runs import RunState
from attnscope.lab.vocabulary import Vocabulary

WIDTH, BATCH, EPOCHS = 6, 4, 3
OPTIONS = dict(width=WIDTH, batch=BATCH, rate=0.05, rate_decay=0.01, threads=2)


def made(classes: int, count: int = 13, seed: int = 0) -> ClassifiedTexts:
    """Texts of one to seven words; the words of a class lean to it, so that there is something to learn."""
    dice = np.random.default_rng(seed)
    words = Vocabulary([f"w{number}" for number in range(30)])

    def part(size: int) -> PackedTexts:
        labels = dice.integers(0, classes, size).tolist()
        texts = [(4 + (dice.integers(0, 10, dice.integers(1, 8)) * classes + label) % 30).tolist() for label in labels]
        return PackedTexts.of(texts, labels)

    names = ("negative", "positive") if classes == 2 else tuple(f"class {number}" for number in range(classes))
    return ClassifiedTexts("made", names, words, part(count), part(9), part(7))


def alone(data: ClassifiedTexts, run: RunSettings, dropout: float) -> dict[str, torch.Tensor]:
    outcomes = 1 if len(data.classes) == 2 else len(data.classes)
    recipe = Recipe(WIDTH, EPOCHS, BATCH, 0.05, 0.01, dropout, "float64", None)
    model = PlainClassifier(run, len(data.vocabulary), WIDTH, outcomes, sparse=False).double()
    model.load_state_dict(initial_weights(run.variant, len(data.vocabulary), WIDTH, outcomes, run.seed))
    OneByOne(model, data.train, recipe).train(EPOCHS * -(-len(data.train) // BATCH), our_masks=True)
    return model.state_dict()


@pytest.mark.parametrize("dropout", [0, 0.5])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("variant", ["dot", "dot_affine", "additive", "dot_lstm"])
def test_runs_together_equal_runs_alone(variant, classes, dropout):
    data = made(classes)
    first = RunSettings(variant, 2.0, seed=3, l2=0.01)
    runs = [
        first,
        replace(first, scaling=0.3, l2=0.0, penalty=0.02),
        replace(first, scaling=50.0, penalty=0.03, penalty_kind="square"),
        replace(first, seed=4),
    ]
    trained = sweep(data, runs, epochs=EPOCHS, dropout=dropout, precision="float64", **OPTIONS)
    for run, result in zip(runs, trained, strict=True):
        expected = alone(data, run, dropout)
        assert result.settings == run
        assert result.last_weights.keys() == expected.keys()
        for name, weight in expected.items():
            assert (result.last_weights[name] - weight).abs().max() < 1e-9, (run, name)


def test_what_a_run_becomes_does_not_depend_on_its_company():
    data = made(2)
    runs = [RunSettings(variant, scaling) for variant in ("dot", "dot_affine") for scaling in (1, 10)]
    together = sweep(data, runs, epochs=2, **OPTIONS)
    for run, result in zip(runs, together, strict=True):
        (single,) = sweep(data, [run], epochs=2, **OPTIONS)
        assert all(torch.equal(single.weights[name], weight) for name, weight in result.weights.items())


@pytest.mark.parametrize("variant", ["dot", "dot_affine", "additive", "dot_lstm"])
def test_accuracies_are_those_of_the_model_with_the_weights(variant):
    data = made(3, count=40)
    (result,) = sweep(data, [RunSettings(variant, 5.0)], epochs=4, **OPTIONS)
    model = AttentionClassifier(data.vocabulary, variant=variant, scaling=5.0, classes=data.classes, width=WIDTH).eval()
    for weights, texts, told in (
        (result.last_weights, data.dev, result.dev_accuracy[-1]),
        (result.weights, data.dev, result.dev_accuracy[result.best_epoch - 1]),
        (result.weights, data.test, result.test_accuracy),
    ):
        model.load_state_dict(weights)
        guesses = [model(torch.from_numpy(text).long()[None]).argmax() for text in texts]
        right = np.mean([int(guess) == label for guess, label in zip(guesses, texts.labels, strict=True)])
        assert told == pytest.approx(right)
    assert result.context_dot_output.shape == (4, 3)
    expected = result.last_weights["output.weight"].double() @ result.last_weights["context"].double()
    assert result.context_dot_output[-1] == pytest.approx(expected.numpy())
    assert result.context_length[-1] == pytest.approx(result.last_weights["context"].norm().item())
    assert result.output_length[-1] == pytest.approx(result.last_weights["output.weight"].norm(dim=1).numpy())


def test_the_first_of_equal_bests_is_kept_and_patience_counts_from_it():
    weights = {"context": torch.ones(2), "output.weight": torch.ones(1, 2)}
    state = RunState.at_start(RunSettings(), weights, np.float32)
    for number, accuracy in enumerate((0.5, 0.7, 0.7, 0.6)):
        state.weights["context"][...] = number
        state.see(accuracy)
    assert state.best_epoch == 2
    assert state.best["context"].tolist() == [1, 1]
    assert state.stopped(2)
    assert not state.stopped(3)
    assert not state.stopped(None)
    assert state.products == [[0], [2], [4], [6]]


@pytest.mark.parametrize("variant", ["dot", "additive"])
def test_a_run_that_is_over_leaves_the_others_alone(variant):
    data = made(2)
    runs = [RunSettings(variant, scaling, seed=seed) for scaling in (0.001, 1, 10, 100) for seed in (0, 1, 2)]
    some = sweep(data, runs, epochs=12, patience=3, **OPTIONS)
    whole = sweep(data, runs, epochs=12, **OPTIONS)
    assert len({len(run.dev_accuracy) for run in some}) > 1, "no run stopped before another: the test shows nothing"
    for short, long in zip(some, whole, strict=True):
        assert short.dev_accuracy == long.dev_accuracy[: len(short.dev_accuracy)]
        assert len(short.dev_accuracy) == min(12, short.best_epoch + 3)


class Killed(Exception):
    pass


@pytest.mark.parametrize("variant", ["dot", "dot_affine", "additive", "dot_lstm"])
def test_a_sweep_that_is_killed_ends_with_the_same_bits(variant, tmp_path):
    data = made(2)
    runs = [RunSettings(variant, scaling, seed=seed) for scaling in (1, 10) for seed in (0, 1)]
    whole = sweep(data, runs, epochs=5, **OPTIONS)
    folder = tmp_path / "sweep"

    def kill(epoch, accuracies):
        assert set(accuracies) == set(runs)
        if epoch == 3:
            raise Killed

    options = dict(epochs=5, checkpoint=folder, seconds_between_checkpoints=0.0, **OPTIONS)
    with pytest.raises(Killed):
        sweep(data, runs, watch=kill, **options)
    for _ in range(2):  # the second time it is finished already
        again = sweep(data, runs, **options)
        for one, other in zip(whole, again, strict=True):
            assert (one.dev_accuracy, one.test_accuracy) == (other.dev_accuracy, other.test_accuracy)
            for name in one.weights:
                assert torch.equal(one.weights[name], other.weights[name])
                assert torch.equal(one.last_weights[name], other.last_weights[name])
    with pytest.raises(BadInput, match="belongs to another sweep"):
        sweep(data, runs[:2], **options)


def test_runs_of_one_seed_begin_alike_and_with_given_vectors():
    data = made(2)
    recipe = Recipe(WIDTH, 1, BATCH, 0.05, 0.01, 0.5, "float32", None)
    vectors = torch.randn(len(data.vocabulary), WIDTH)
    one, two, other, given = (
        begin_runs(data, [RunSettings(variant, seed=seed)], recipe, table)[0].weights
        for variant, seed, table in (("dot", 1, None), ("dot_lstm", 1, None), ("dot", 2, None), ("dot", 1, vectors))
    )
    for name in ("embeddings.weight", "context", "output.weight"):
        assert np.array_equal(one[name], two[name])
        assert not np.array_equal(one[name], other[name])
    matrix = two["lstm.weight_hh_l0"]
    assert matrix.T @ matrix == pytest.approx(np.eye(WIDTH // 2), abs=1e-5)
    assert np.array_equal(given["embeddings.weight"], vectors.numpy())
    assert np.array_equal(given["context"], one["context"])
    with pytest.raises(BadInput, match="vectors are"):
        begin_runs(data, [RunSettings()], recipe, vectors[:5])


def test_shares_batch_what_has_one_variant_and_seed():
    runs = [
        RunSettings(variant, scaling, seed)
        for variant in ("dot", "additive")
        for scaling in (1, 2, 3)
        for seed in (0, 1)
    ]
    cut = shares([RunState(run, {}, {}) for run in runs], 2)
    assert [len(part) for part in cut] == [2, 1, 2, 1, 1, 1, 1, 1, 1, 1]
    assert sorted((state.settings for part in cut for state in part), key=repr) == sorted(runs, key=repr)
    assert all(len({(state.settings.variant, state.settings.seed) for state in part}) == 1 for part in cut)


def test_groups_on_an_engine_are_the_whole(tmp_path):
    data = made(2)
    runs = [
        RunSettings(variant, scaling, seed) for seed in (0, 1) for variant in ("dot", "additive") for scaling in (1, 10)
    ]
    whole = sweep(data, runs, epochs=2, **OPTIONS)
    parts = sweep_groups(data, runs, checkpoints=tmp_path, epochs=2, **OPTIONS)
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["additive-0", "additive-1", "dot-0", "dot-1"]
    for one, other in zip(whole, parts, strict=True):
        assert one.settings == other.settings
        assert all(torch.equal(weight, other.weights[name]) for name, weight in one.weights.items())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (dict(dropout=0.3), "Dropout is 0.5"),
        (dict(precision="half"), "float32 or float64"),
        (dict(epochs=0), "at least 1"),
        (dict(patience=0), "at least 1"),
        (dict(width=5), "must be even"),
    ],
)
def test_what_cannot_be_trained_is_refused(change, says):
    with pytest.raises(BadInput, match=says):
        sweep(made(2), [RunSettings("dot_lstm")], **({"epochs": 1, **OPTIONS} | change))


@pytest.mark.parametrize("wrong", [dict(variant="cosine"), dict(penalty_kind="cube"), dict(scaling=0), dict(l2=-1)])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(BadInput):
        RunSettings(**wrong)


def test_a_run_asked_for_twice_is_refused():
    with pytest.raises(BadInput, match="none of them twice"):
        sweep(made(2), [RunSettings(), RunSettings()], epochs=1, **OPTIONS)
