"""Methods side by side: the table, what is left out, and what is shown."""

import dataclasses

import pytest
import scipy.stats
import torch
from rich.console import Console

import attnscope
from attnscope.attribution import compare, raw
from attnscope.errors import BadInput
from attnscope.record import AttentionRecord
from attnscope.record.scores import scores_of


@pytest.fixture
def record():
    weights = torch.rand(3, 2, 5, 5, generator=torch.Generator().manual_seed(0)).softmax(-1)
    return AttentionRecord.from_weights(
        weights, ["[CLS]", "<b>", "cat", "&", "sat"], causal=False, special=[True] + [False] * 4
    )


def first_layer(record):
    return raw(record, layer=0)


def constant(record):
    return scores_of(record, "constant", torch.ones(len(record.key_tokens)))


def test_names_and_functions_side_by_side(record):
    comparison = compare(record, methods=["raw", first_layer])
    assert comparison.methods == ("raw", "first_layer")
    torch.testing.assert_close(comparison.scores[1].scores, raw(record, layer=0).scores)
    frame = comparison.to_frame()
    assert list(frame.columns) == ["token", "special", "raw", "first_layer"]
    assert frame["raw"].tolist() == raw(record).scores.tolist()


def test_agreement_is_spearman_of_every_two(record):
    agreement = compare(record, methods=["raw", first_layer, constant]).agreement
    expected = scipy.stats.spearmanr(raw(record).scores, raw(record, layer=0).scores).statistic
    assert agreement.loc["raw", "first_layer"] == pytest.approx(expected)
    assert agreement.loc["first_layer", "raw"] == pytest.approx(expected)
    assert agreement.loc["raw", "raw"] == pytest.approx(1.0)
    assert agreement["constant"].isna().all()


def test_by_default_what_the_record_serves_and_the_rest_with_a_reason(record):
    comparison = compare(record)
    assert {"raw", "rollout", "flow", "layerwise_tracing"} <= set(comparison.methods)
    assert "lat" not in comparison.methods, "a second name is not a second method"
    assert "gradients=True" in comparison.left_out["gradient"]
    assert "pass the model" in comparison.left_out["blank_out"]
    assert set(comparison.methods) | set(comparison.left_out) == set(attnscope.METHODS) - {"lat"}


def test_the_reference_is_what_the_model_does():
    model = attnscope.load("demo")
    record = model.record("the key to the cabinets", gradients=True)
    assert compare(record, methods=["raw", "gradient"]).reference == "gradient"
    comparison = compare(record, model, methods=["raw", "gradient", "blank_out"])
    assert comparison.reference == "blank_out"
    assert "agreement with blank_out" in repr(comparison)


def test_words_and_signs_of_the_outcome_the_record_was_taken_with():
    model = attnscope.load("demo")
    first, second = (name for name, _ in model.record("the key to the cabinets").prediction[:2])
    record = model.record("the key to the cabinets", gradients=True, target=second, against=first)
    asked = ["blank_out", "gradient_x_input", "raw"]
    comparison = compare(record, model, asked, by="word", signed=True)
    expected = attnscope.blank_out(record, model, by="word", signed=True, target=second, against=first)
    torch.testing.assert_close(comparison.scores[0].scores, expected.scores)
    summed = attnscope.gradient_x_input(record, signed=True).sum_by("word")
    torch.testing.assert_close(comparison.scores[1].scores, summed.scores)
    assert bool((comparison.scores[0].scores < 0).any())
    assert {scores.tokens for scores in comparison.scores} == {expected.tokens}
    assert not bool((compare(record, model, asked).scores[0].scores < 0).any())


def test_html_escapes_tokens_and_shows_every_method(record):
    page = compare(record, methods=["raw", first_layer])._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert page.count("<tr>") == 2
    assert page.count("<td>") == 2 * 5
    assert ">1.00<" in page


def test_terminal_shows_tokens_numbers_and_agreement(record):
    console = Console(width=200, no_color=True, force_terminal=False)
    with console.capture() as captured:
        console.print(compare(record, methods=["raw", constant]))
    shown = captured.get()
    assert "[CLS]" in shown
    assert f"{raw(record).scores[2]:.3f}" in shown
    assert "–" in shown, "a method that ranks nothing has no agreement"
    assert "compares its order of the tokens with that of raw: 1 is the same order" in " ".join(shown.split())


def test_bad_input(record):
    with pytest.raises(BadInput, match="There is no method 'nope'"):
        compare(record, methods=["nope"])
    with pytest.raises(BadInput, match="Two methods are called 'raw'"):
        compare(record, methods=["raw", "raw"])
    with pytest.raises(BadInput, match="at least one method"):
        compare(record, methods=[])
    with pytest.raises(BadInput, match="blank_out runs the model again"):
        compare(record, methods=["blank_out"])
    with pytest.raises(BadInput, match="shortened scores 4 tokens, but the record has 5"):

        def shortened(record):
            return raw(record).without_special()

        compare(record, methods=[shortened])


def test_a_method_without_finite_scores_is_left_out_by_name():
    record = AttentionRecord.from_weights(torch.eye(2), ["a", "b"])

    def broken(given):
        return dataclasses.replace(attnscope.raw(given), scores=torch.tensor([torch.nan, 1.0]))

    with pytest.raises(attnscope.BadInput, match="broken gives scores that are not finite"):
        attnscope.compare(record, methods=["raw", broken])
