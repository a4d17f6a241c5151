"""Integrated gradients: the completeness axiom, a plain Riemann sum, and Captum as an independent reference."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attnscope
from attnscope import BadInput
from attnscope.attribution.integrated_gradients import integrate, integrate_until_complete, path_points
from attnscope.progress import told_to

CASES = [
    ("bert", {}, {}),
    ("roberta", {}, {}),
    ("bert", {"architecture": "BertForMaskedLM"}, {}),
    ("distilbert", {}, {}),
    ("gpt2", {}, {}),
    ("llama", {}, {}),
    ("bart", {}, {"stack": "encoder", "text_target": "a boy"}),
    ("bart", {}, {"stack": "cross", "text_target": "a boy"}),
    # without the kinks of ReLU
    ("t5", {"feed_forward_proj": "gated-gelu"}, {"stack": "encoder", "text_target": "a boy"}),
]
"""Families, what they are built with, and how they are recorded."""


def value_at(model, record, embeddings):
    """The target at some embeddings of the encoder, by the model's own `inputs_embeds`."""
    inputs = {name: ids.unsqueeze(0) for name, ids in record.inputs.items() if name != "input_ids"}
    if model.config.model_type == "roberta":
        # given embeddings, RoBERTa counts positions from behind its padding index; given ids, it does the same
        inputs["position_ids"] = torch.arange(len(embeddings)).unsqueeze(0) + model.config.pad_token_id + 1
    logits = model(inputs_embeds=embeddings.unsqueeze(0), **inputs).logits[0]
    if logits.ndim == 2:
        logits = logits[record.tokens.index("[MASK]") if type(model).__name__ == "BertForMaskedLM" else -1]
    return logits[record.target.index]


@pytest.mark.parametrize(
    ("family", "built", "recorded", "baseline"),
    # no sum of finitely many steps is complete where RMSNorm jumps at zero
    [(*case, "unk") for case in CASES] + [(*case, "zero") for case in CASES if case[0] not in ("llama", "t5")],
)
def test_attributions_sum_to_the_change_of_the_target(tiny, family, built, recorded, baseline):
    model = tiny.load(family, **built)
    record = model.record("the red [MASK] see", gradients=True, **recorded)
    scores = attnscope.integrated_gradients(record, model, steps=100, baseline=baseline, signed=True)
    plain = tiny.build(family, **built)
    encoder = plain.get_encoder() if plain.config.is_encoder_decoder else plain
    unknown = encoder.get_input_embeddings()(torch.full_like(record.inputs["input_ids"], 1))
    start = torch.zeros_like(record.embeddings) if baseline == "zero" else unknown
    with torch.no_grad():
        change = value_at(plain, record, record.embeddings) - value_at(plain, record, start)
    total = scores.scores.abs().sum().item()
    assert scores.scores.sum().item() == pytest.approx(change.item(), abs=0.01 * total)
    assert scores.tokens == record.key_tokens


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_it_is_the_riemann_sum_of_the_paper(tiny, family):
    """Eq. 3: the mean of the gradients at m even steps, times the way; one by one, by autograd on a plain model."""
    model = tiny.load(family)
    record = model.record("the red dogs", gradients=True)
    plain = tiny.build(family)
    steps = 200
    start = plain.get_input_embeddings()(torch.full_like(record.inputs["input_ids"], 4)).detach()
    way = record.embeddings - start
    total = torch.zeros_like(way)
    for step in range(steps):
        point = (start + (step + 0.5) / steps * way).requires_grad_()
        total += torch.autograd.grad(value_at(plain, record, point), point)[0]
    expected = (way * total / steps).sum(-1)
    found = attnscope.integrated_gradients(record, model, steps=100, baseline="mask", signed=True)
    torch.testing.assert_close(found.scores, expected, atol=1e-3, rtol=1e-3)
    unsigned = attnscope.integrated_gradients(record, model, steps=100, baseline="mask")
    assert torch.equal(unsigned.scores, found.scores.abs())


@pytest.mark.parametrize("source", ["tiny", "demo"])
@pytest.mark.parametrize("baseline", ["unk", "mask", "pad"])
def test_captum_says_the_same(tiny, source, baseline):
    attr = pytest.importorskip("captum.attr", reason="captum is in the extra attnscope[bench]")
    model = tiny.load("bert") if source == "tiny" else attnscope.load("demo")
    record = model.record("the key to the cabinets", gradients=True)
    ids = record.inputs["input_ids"].unsqueeze(0)
    types = {"token_type_ids": record.inputs["token_type_ids"].unsqueeze(0)} if source == "tiny" else {}
    explainer = attr.LayerIntegratedGradients(
        lambda given: model.model(given, **{name: kind.expand_as(given) for name, kind in types.items()}).logits,
        model.model.get_input_embeddings(),
    )
    blanks = torch.full_like(ids, model.blank_ids[baseline])
    expected = explainer.attribute(ids, baselines=blanks, target=record.target.index, n_steps=50)[0].sum(-1)
    found = attnscope.integrated_gradients(record, model, steps=50, baseline=baseline, signed=True)
    torch.testing.assert_close(found.scores, expected.float(), atol=1e-4, rtol=1e-4)


@given(st.integers(1, 40), st.integers(1, 50), st.integers(0, 1000))
def test_a_quadratic_is_integrated_exactly(steps, batch_size, seed):
    """F = Σ x²: the attribution of a token is Σ x² - x'², with a single step already."""
    generator = torch.Generator().manual_seed(seed)
    start, end = torch.randn(2, 3, 4, generator=generator)
    expected = (end.square() - start.square()).sum(-1)

    def slope(points):
        return points.square().sum((1, 2)), 2 * points

    torch.testing.assert_close(integrate(slope, start, end, steps, batch_size), expected, atol=1e-4, rtol=1e-4)
    found, taken = integrate_until_complete(slope, start, end, batch_size)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert taken == 9


def test_path_points_are_a_quadrature():
    places, shares = (numbers.double() for numbers in path_points(5))
    for power in range(10):
        assert (shares @ places**power).item() == pytest.approx(1 / (power + 1), abs=1e-6)


@pytest.mark.parametrize("steepness", [40, 150])
def test_steps_are_added_where_the_way_is_rough(steepness):
    """F = σ(s (α - 0.8)) of one token, and minus its square of another: all happens on a short part of the way."""
    asked = []

    def slope(points):
        way = points[:, 0, 0].double()
        asked.extend(way.tolist())
        value = torch.sigmoid(steepness * (way - 0.8))
        rise = steepness * value * (1 - value)
        return (value - value**2).float(), torch.stack([rise, -2 * value * rise], 1).float().unsqueeze(-1)

    told = []
    with told_to(lambda done, whole: told.append((done, whole))):
        found, taken = integrate_until_complete(slope, torch.zeros(2, 1), torch.ones(2, 1), 16)
    # what is told goes on from what was done before, and does not begin again where steps are added
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert told[-1][1] == taken
    last = float(torch.sigmoid(torch.tensor(0.2 * steepness)))
    assert found.tolist() == pytest.approx([last, -(last**2)], abs=0.01)
    assert taken == len(asked) == len(set(asked))
    assert 9 < taken < 80
    assert all(place > 0.4 for place in asked[9:])
    rows = torch.stack([torch.zeros(2), torch.ones(2)]).unsqueeze(-1)
    values, gradients = slope(rows)
    ends = [(float(value), gradient.squeeze(-1)) for value, gradient in zip(values, gradients, strict=True)]
    asked.clear()
    again, of_all = integrate_until_complete(slope, *rows, 16, ends)
    assert of_all == taken == len(asked) + 2
    assert not {0.0, 1.0} & set(asked)
    torch.testing.assert_close(again, found)


def test_a_way_that_is_rough_everywhere_ends_after_so_many_steps():
    calls = []

    def slope(points):
        calls.append(len(points))
        return torch.rand(len(points), generator=dice), torch.randn(points.shape, generator=dice)

    dice = torch.Generator().manual_seed(0)
    _, taken = integrate_until_complete(slope, torch.zeros(3, 2), torch.ones(3, 2), 5)
    assert 124 < taken == sum(calls) <= 128
    assert max(calls) == 5


def test_batches_change_nothing(tiny):
    model = tiny.load("gpt2")
    record = model.record(tiny.TEXTS[0])
    together = attnscope.integrated_gradients(record, model, steps=20, batch_size=64)
    for batch_size in (1, 7):
        apart = attnscope.integrated_gradients(record, model, steps=20, batch_size=batch_size)
        torch.testing.assert_close(apart.scores, together.scores, atol=1e-5, rtol=0)


def test_every_stack_of_an_encoder_decoder_has_its_own_tokens(tiny):
    model = tiny.load("bart")
    for stack in model.stacks:
        record = model.record(tiny.TEXTS[0], text_target=tiny.TEXTS[1], stack=stack)
        scores = attnscope.integrated_gradients(record, model, steps=20)
        assert scores.tokens == record.key_tokens
        assert scores.scores.min() > 0


def test_a_causal_classifier_without_padding_runs_one_by_one(tiny):
    model = tiny.load("gpt2", architecture="GPT2ForSequenceClassification", pad_token_id=None)
    record = model.record(tiny.TEXTS[0])
    assert attnscope.integrated_gradients(record, model, steps=5).scores.max() > 0


def test_the_target_is_the_captured_one_or_the_one_given(tiny):
    model = tiny.load("bert", num_labels=3)
    scores = {
        label: attnscope.integrated_gradients(model.record(tiny.TEXTS[0], gradients=True, target=label), model).scores
        for label in range(3)
    }
    record = model.record(tiny.TEXTS[0])
    for label in range(3):
        named = attnscope.integrated_gradients(record, model, target=f"LABEL_{label}")
        torch.testing.assert_close(named.scores, scores[label], atol=1e-6, rtol=0)
    predicted = int(record.prediction[0][0][-1])
    unnamed = attnscope.attribute(record, "integrated_gradients", model=model)
    torch.testing.assert_close(unnamed.scores, scores[predicted], atol=1e-6, rtol=0)


def test_a_headless_encoder_is_followed_by_the_sum_it_was_captured_with(tiny):
    model = tiny.load("bert", architecture="BertModel")
    record = model.record(tiny.TEXTS[0], gradients=True, target="sum")
    assert attnscope.integrated_gradients(record, model, steps=5).scores.max() > 0


@pytest.mark.parametrize(
    ("family", "built"), [("bert", {}), ("llama", {}), ("qwen2", {}), ("gemma2", {}), ("gpt2", {})]
)
@pytest.mark.parametrize("quantity", ["logit", "probability"])
def test_as_many_steps_as_it_takes_say_what_many_steps_say(tiny, family, built, quantity):
    model = tiny.load(family, **built)
    record = model.record(tiny.TEXTS[0], gradients=True)
    many = attnscope.integrated_gradients(record, model, steps=150, baseline="unk", signed=True, quantity=quantity)
    found = attnscope.integrated_gradients(record, model, baseline="unk", signed=True, quantity=quantity)
    assert float((found.scores - many.scores).abs().sum()) < 0.01 * float(many.scores.abs().sum())
    assert found.warnings == ()


def test_attributions_that_miss_the_change_say_so(tiny):
    model = tiny.load("llama")
    record = model.record(tiny.TEXTS[0])
    over_a_jump, smooth = (attnscope.integrated_gradients(record, model, baseline=start) for start in ("zero", "unk"))
    assert "another baseline" in over_a_jump.warnings[0]
    assert smooth.warnings == ()


def test_bad_input_gets_one_sentence(tiny):
    model = tiny.load("bert")
    record = model.record(tiny.TEXTS[0])
    for options, sentence in [
        ({"steps": 0}, "steps must be at least 1"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"baseline": "noise"}, "no blank 'noise'"),
        ({"target": "LABEL_9"}, "no outcome 'LABEL_9'"),
    ]:
        with pytest.raises(BadInput, match=sentence):
            attnscope.integrated_gradients(record, model, **options)
    with pytest.raises(BadInput, match="pass the model too"):
        attnscope.attribute(record, "integrated_gradients")
    with pytest.raises(BadInput, match="what the model was given"):
        attnscope.integrated_gradients(record.words(), model)
    with pytest.raises(BadInput, match="at embeddings"):
        model.target_gradients([record.inputs], model.target(record.inputs))
    headless = tiny.load("bert", architecture="BertModel")
    with pytest.raises(BadInput, match="gives no prediction"):
        attnscope.integrated_gradients(headless.record(tiny.TEXTS[0]), headless)


@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma2"])
def test_models_with_rms_norm_begin_at_a_token_and_are_complete(tiny, family):
    model, plain = tiny.load(family), tiny.build(family)
    record = model.record(tiny.TEXTS[0], gradients=True)
    scores = attnscope.integrated_gradients(record, model, steps=100, signed=True)
    assert scores.warnings == ("the way begins at unk embeddings, because this model jumps at zero",)
    with torch.no_grad():
        real, blank = (
            plain(input_ids=ids.unsqueeze(0)).logits[0, -1, record.target.index].item()
            for ids in (record.inputs["input_ids"], torch.full_like(record.inputs["input_ids"], 1))
        )
    assert scores.scores.sum().item() == pytest.approx(real - blank, abs=0.01 * scores.scores.abs().sum().item())


def test_a_baseline_without_a_finite_gradient_is_refused_before_the_long_way(tiny):
    model = tiny.load("gemma2")
    runs = []
    tiny_gradients = model.target_gradients

    class Counted:
        """The model, and how often its gradients were asked for."""

        def __getattr__(self, name):
            return getattr(model, name)

        def target_gradients(self, inputs, target):
            runs.append(len(inputs))
            return tiny_gradients(inputs, target)

    record = model.record(tiny.TEXTS[0], gradients=True)
    with pytest.raises(
        BadInput, match=r"zero embeddings is not finite, .*: give another baseline of unk, mask, pad, mean"
    ):
        attnscope.integrated_gradients(record, Counted(), baseline="zero")
    assert runs == [1]


def test_the_mean_of_the_text_and_another_quantity(tiny):
    model = tiny.load("bert")
    record = model.record(tiny.TEXTS[0], gradients=True)
    scores = attnscope.integrated_gradients(record, model, baseline="mean", quantity="probability", signed=True)
    mean = record.embeddings.mean(0).expand_as(record.embeddings)
    with torch.no_grad():
        real, blank = (
            tiny.build("bert")(
                inputs_embeds=point.unsqueeze(0), token_type_ids=record.inputs["token_type_ids"].unsqueeze(0)
            ).logits[0].softmax(-1)[record.target.index]
            for point in (record.embeddings, mean)
        )  # fmt: skip
    assert scores.scores.sum().item() == pytest.approx((real - blank).item(), abs=1e-4)
    with pytest.raises(BadInput, match="quantity is logit, probability, difference"):
        attnscope.integrated_gradients(record, model, quantity="odds")


def test_a_real_model_with_rms_norm_is_complete(real_model):
    model = attnscope.load(real_model("smollm2"))
    record = model.record("Two plus two is", gradients=True)
    scores = attnscope.integrated_gradients(record, model, signed=True, quantity="probability")
    blank = {**record.inputs, "input_ids": torch.full_like(record.inputs["input_ids"], model.blank_ids["unk"])}
    real, start = model.probabilities([record.inputs, blank])[:, record.target.index].tolist()
    assert scores.scores.sum().item() == pytest.approx(real - start, rel=0.05)
    assert scores.warnings == ("the way begins at unk embeddings, because this model jumps at zero",)
