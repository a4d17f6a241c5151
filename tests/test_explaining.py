"""One text by every method."""

import io
import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

import attnscope
from attnscope import AttentionRecord, compare, explaining
from attnscope.attribution import costs
from attnscope.explaining import Explanation, carried_words, explain, show
from attnscope.report import report_html

TEXT = "the key to the cabinets"


@pytest.fixture(scope="module")
def model():
    return attnscope.load("demo")


def printed(explanation):
    file = io.StringIO()
    show(Console(file=file, width=160), explanation)
    return file.getvalue()


def test_every_method_is_there_and_warnings_are_said(model):
    explanation = explain(model, TEXT)
    assert set(explanation.comparison.methods) == set(attnscope.METHODS) - {"lat"}
    text = printed(explanation)
    assert "flow: " in text
    assert "tell nothing of the way between" in " ".join(text.split())
    assert json.loads(json.dumps(explanation.to_dict()))["prediction"][0]["label"] == "singular"


def test_another_query_and_layer(model):
    record = model.record(TEXT)
    explanation = explain(model, TEXT, ["rollout", "flow", "gradient"], query=2, layer=1)
    assert explanation.comparison.methods == ("rollout", "flow")
    assert "gradient" in explanation.comparison.left_out
    expected = attnscope.rollout(record).at(query=2, layer=1)
    torch.testing.assert_close(explanation.comparison.scores[0].scores, expected)
    only_layer = explain(model, TEXT, ["rollout"], layer=0)
    torch.testing.assert_close(
        only_layer.comparison.scores[0].scores, record.readout @ attnscope.rollout(record).map[0]
    )


def test_questions_that_cannot_be_answered_get_one_sentence(model):
    for options, sentence in (
        ({"methods": ["guess"]}, "no method 'guess'"),
        ({"methods": ["gradient"], "query": 0}, "has a map"),
        ({"methods": ["rollout"], "query": 99}, "no query 99"),
        ({"methods": ["rollout"], "layer": 9}, "no layer 9"),
    ):
        with pytest.raises(attnscope.BadInput, match=sentence):
            explain(model, TEXT, **options)


def test_a_headless_model_still_shows_what_attention_says(real_model):
    explanation = explain(attnscope.load(real_model("minilm")), "The key to the cabinets.")
    assert "rollout" in explanation.comparison.methods
    assert "blank_out" in explanation.comparison.left_out
    assert "no answer" in printed(explanation)


def test_another_outcome_with_signs_is_the_first_turned_round(model):
    """Two outcomes: what speaks for one speaks against the other."""
    found = {
        label: explain(model, TEXT, ["blank_out", "gradient_x_input"], target=label, signed=True)
        for label in ("singular", "plural")
    }
    assert found["plural"].record.target.outcome == "plural"
    singular, plural = (found[label].comparison.scores[0].scores for label in ("singular", "plural"))
    torch.testing.assert_close(singular, -plural, atol=1e-5, rtol=0)
    assert singular.max() > 0.1
    text = printed(found["plural"])
    assert "Explained: why 'plural' (< 0.1 %)." in text
    assert "Below zero in blank_out" in text
    assert found["plural"].to_dict()["target"] == "plural"
    with pytest.raises(attnscope.BadInput, match="no outcome 'neither' here: choose"):
        explain(model, TEXT, target="neither")


def test_words_have_one_score_each(model):
    record = model.record("the unbelievables to the cabinets")
    explanation = explain(model, record.text, ["rollout", "blank_out"], by="word", signed=False)
    rolled, blanked = explanation.comparison.scores
    assert rolled.tokens == blanked.tokens == record.words().key_tokens
    torch.testing.assert_close(rolled.scores, attnscope.rollout(record).words().scores)
    torch.testing.assert_close(blanked.scores, attnscope.blank_out(record, model, by="word").scores)
    row = explain(model, record.text, ["rollout"], by="word", query=1)
    assert row.comparison.scores[0].tokens == rolled.tokens
    with pytest.raises(attnscope.BadInput, match=r"explain\(\): by must be 'token', 'word' or 'sentence'"):
        explain(model, TEXT, by="letter")


def test_sentences_have_one_score_each(model):
    record = model.record("the key . to the cabinets .")
    rolled, blanked = explain(model, record.text, ["rollout", "blank_out"], by="sentence").comparison.scores
    assert rolled.tokens == blanked.tokens == ("[CLS]", "the key.", "to the cabinets.", "[SEP]")
    expected = attnscope.rollout(record).scores
    torch.testing.assert_close(
        rolled.scores, torch.stack([expected[0], expected[1:4].sum(), expected[4:8].sum(), expected[8]])
    )
    # taken away at once, not one by one
    ids = record.inputs["input_ids"].clone()
    ids[1:4] = model.blank_ids["unk"]
    before, after = model.probabilities([record.inputs, {**record.inputs, "input_ids": ids}])
    label = int(before.argmax())
    torch.testing.assert_close(blanked.scores[1], before[label] - after[label], atol=1e-6, rtol=0)


def test_words_and_signs_are_the_default_and_another_outcome_can_be_held_against(model):
    explanation = explain(model, TEXT, ["blank_out", "gradient_x_input", "integrated_gradients"], against="plural")
    target = explanation.record.target
    assert (target.outcome, target.against, target.quantity) == ("singular", "plural", "logit")
    assert str(target) == "the logit of 'singular' less that of 'plural'"
    blanked, product, integrated = explanation.comparison.scores
    assert blanked.tokens == explanation.record.words().key_tokens
    # by hand: the difference of the two logits, with and without each word
    record = model.record(TEXT)
    wide = model.model.double()
    with torch.no_grad():
        logits = wide(input_ids=record.inputs["input_ids"][None]).logits[0]
        for place in range(len(record.tokens)):
            ids = record.inputs["input_ids"].clone()
            ids[place] = model.blank_ids["unk"]
            change = logits - wide(input_ids=ids[None]).logits[0]
            index = [wide.config.label2id[label] for label in ("singular", "plural")]
            assert float(blanked.scores[place]) == pytest.approx(float(change[index[0]] - change[index[1]]), abs=1e-3)
    wide.float()
    alone = [
        explain(model, TEXT, ["gradient_x_input"], target=label).comparison.scores[0]
        for label in ("singular", "plural")
    ]
    torch.testing.assert_close(product.scores, alone[0].scores - alone[1].scores, atol=1e-5, rtol=0)
    assert "to 'plural'" in blanked.warnings[0]
    assert integrated.scores.isfinite().all()
    with pytest.raises(attnscope.BadInput, match="is 'singular' itself: give against= another outcome"):
        explain(model, TEXT, against="singular")


def test_a_pair_of_texts_is_explained(model):
    explanation = explain(model, ("the key", "the cabinets"), ["rollout"])
    assert explanation.record.text == ("the key", "the cabinets")
    assert "the key | the cabinets → " in printed(explanation)


def test_slow_methods_stand_under_the_budget_and_are_named_with_what_adds_them(model, monkeypatch):
    monkeypatch.setattr(
        explaining, "predicted_seconds", lambda *_: {"blank_out": 100.0, "integrated_gradients": 30.0, "flow": 0.5}
    )
    seen = []
    explanation = explain(model, TEXT, budget=60, watch=lambda name, done, whole: seen.append(name))
    assert explanation.comparison.left_out["blank_out"] == (
        "It would take about 100 s here, beyond the budget of 60 s: --methods blank_out asks for it, --budget 157 or"
        " --methods all adds it."
    )
    assert "integrated_gradients" in explanation.comparison.methods
    assert explanation.comparison.reference == "gradient"
    assert seen[-1] == "integrated_gradients"  # the slowest comes last
    assert "blank_out" in explain(model, TEXT, ["blank_out"], budget=60).comparison.methods
    assert "blank_out" in explain(model, TEXT).comparison.methods


def test_the_cost_is_told_from_pieces_of_the_work(model, monkeypatch):
    record = model.record(TEXT)
    timed = []

    def seconds_of(work):
        timed.append(work())
        return 0.5

    monkeypatch.setattr(costs, "seconds_of", seconds_of)
    seconds = costs.predicted_seconds(record, model, ("raw", "flow", "blank_out", "integrated_gradients"))
    flows, answers, gradients = timed
    assert seconds == {
        "flow": 0.5 / flows.size * len(record.tokens) * int((record.readout > 0).sum()),
        "blank_out": 0.5 * (len(record.tokens) + 1),
        "integrated_gradients": 0.5 * costs.GRADIENT_STEPS,
    }
    assert len(answers) == len(gradients[0]) == 1


def test_quick_methods_are_shown_before_slow_ones_begin(model, monkeypatch):
    monkeypatch.setattr(explaining, "predicted_seconds", lambda *_: {"blank_out": 9.0, "integrated_gradients": 100.0})
    begun, shown = [], []
    explain(
        model,
        TEXT,
        by="sentence",
        budget=60,
        watch=lambda name, done, whole: begun.append(name),
        show_first=lambda quick: shown.append((quick, "blank_out" in begun)),
    )
    ((quick, had_begun),) = shown
    assert not had_begun
    assert quick.by == "sentence"
    assert {"raw", "rollout", "gradient"} <= set(quick.comparison.methods)
    assert quick.to_come == ("blank_out",)
    assert quick.comparison.left_out["blank_out"] == "It follows, in about 9 s."
    assert "beyond the budget" in quick.comparison.left_out["integrated_gradients"]
    assert "Left out: blank_out. It follows" in printed(quick)


def test_phrases_stand_under_the_budget_too(model, monkeypatch):
    noisy = lambda record, *_: replace(attnscope.raw(record), method="blank_out", noise="nothing carries it")  # noqa: E731
    monkeypatch.setitem(attnscope.METHODS, "blank_out", noisy)
    monkeypatch.setattr(explaining, "PHRASE_RUNS", 1e9)
    found = explain(model, TEXT, by="sentence", budget=1e5)
    assert (found.phrases, found.by) == ((), "sentence")
    assert found.comparison.left_out["phrases"].endswith("or --methods all adds it.")


def test_a_text_that_is_too_long_can_be_cut(model):
    text = " ".join(["the"] * 2000)
    with pytest.raises(
        attnscope.BadInput, match=r"have it cut \(--truncate on the command line, truncate=True in Python"
    ):
        explain(model, text, ["raw"])
    assert len(explain(model, text, ["raw"], truncate=True).record.tokens) == model.reader.longest


def test_integrated_gradients_of_two_words_follow_the_difference_of_their_logits():
    path = Path(__file__).parent / "capture" / "conftest.py"
    tiny = runpy.run_path(str(path))
    model = tiny["load"]("gpt2")
    record = model.record(tiny["TEXTS"][0], gradients=True, target=5, against=7)
    assert explaining.quantity_options("integrated_gradients", model, record) == {}
    scores = attnscope.integrated_gradients(record, model, signed=True, baseline="zero")
    name = "inputs_embeds"
    ends = [model.embedded(record.inputs)[name] * share for share in (0.0, 1.0)]
    values, _ = model.target_gradients([{**record.inputs, name: end} for end in ends], record.target)
    assert float(scores.scores.sum()) == pytest.approx(float(values[1] - values[0]), rel=0.05, abs=1e-3)
    alone = [model.record(tiny["TEXTS"][0], gradients=True, target=number) for number in (5, 7)]
    first, second = (model.target_gradients([{**record.inputs, name: ends[1]}], one.target)[0] for one in alone)
    assert float(values[1]) == pytest.approx(float(first - second), abs=1e-5)


def test_the_probability_of_a_word_is_followed_in_language_models():
    tiny = runpy.run_path(str(Path(__file__).parent / "capture" / "conftest.py"))
    reads = tiny["load"]("llama")
    (found,) = explain(reads, tiny["TEXTS"][0], ["integrated_gradients"], signed=True).comparison.scores
    record = reads.record(tiny["TEXTS"][0], gradients=True)
    expected = attnscope.integrated_gradients(record, reads, quantity="probability", signed=True)
    torch.testing.assert_close(found.scores, expected.scores, atol=1e-6, rtol=0)
    assert "the way begins at unk embeddings" in found.warnings[0]


def resting_record(first):
    """A decoder whose heads give so much to the first token, and of the rest most to “bites”."""
    tokens = ("The", "Ġbig", "Ġdog", "Ġbit", "es", "Ġmen", ".")
    given = torch.tensor([first, 1.0, 2.0, 1.0, 5.0, 1.0, 1.0])
    weights = (given.expand(7, 7).tril() / given.expand(7, 7).tril().sum(-1, keepdim=True)).expand(3, 4, 7, 7)
    return AttentionRecord(
        weights=weights.contiguous(),
        query_tokens=tokens,
        key_tokens=tokens,
        query_word_ids=(0, 1, 2, 3, 3, 4, 5),
        key_word_ids=(0, 1, 2, 3, 3, 4, 5),
        stack="decoder",
        causal=True,
        readout=torch.eye(7)[-1],
        text="The big dog bites men.",
    )


def test_where_heads_rest_is_not_what_carried_the_answer():
    record = resting_record(44.0)
    compared = compare(record, methods=["raw"])
    said = carried_words(compared, "raw", "word", record)
    assert said.startswith("By raw these words carried it most: “bites” 0.109, “dog” 0.036")
    assert said.endswith("Set aside, because heads rest there that have nothing to do: “The” 0.800.")
    for shown in (printed(Explanation(record, compared)), report_html(Explanation(record, compared))):
        assert said in " ".join(shown.split())
    assert "these tokens carried it most: “es” 0.091" in carried_words(compared, "raw", "token", record)
    whole = carried_words(compare(record, methods=["raw"], by="sentence"), "raw", "sentence", record)
    assert whole.startswith("By raw this sentence carried it most: “The big dog bites men.” 1.000. Heads that have")
    # a word that most of the heads do not rest on is named as any other, and so is one that gradients name
    awake = resting_record(2.0)
    assert "most: “bites” 0.462, “The” 0.154" in carried_words(compare(awake, methods=["raw"]), "raw", "word", awake)
    gradients = replace(compared.scores[0], method="gradient")
    assert "most: “The” 0.800" in carried_words(replace(compared, scores=(gradients,)), "gradient", "word", record)
