"""Every covered family: attention comes out exactly, and the model is given back as it was."""

import pytest
import torch

import attnscope

NAMES = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}


def eager_reference(tiny, family, inputs, stack):
    """Attentions of the same model loaded eager, straight from transformers."""
    model = tiny.build(family, "eager")
    assert model.config._attn_implementation == "eager"
    with torch.no_grad():
        output = model(**{name: ids.unsqueeze(0) for name, ids in inputs.items()}, output_attentions=True)
    name = NAMES[stack] if model.config.is_encoder_decoder else "attentions"
    return torch.stack([layer[0] for layer in getattr(output, name)])


def test_weights_equal_the_model_loaded_eager(tiny, family):
    model = tiny.load(family)
    for stack in model.stacks:
        record = model.record(tiny.texts[0], stack=stack)
        expected = eager_reference(tiny, family, record.inputs, stack)
        torch.testing.assert_close(record.weights, expected, atol=1e-6, rtol=0)
        assert record.stack == stack


def test_output_while_capturing_equals_the_untouched_model(tiny, family):
    untouched = tiny.build(family)
    model = tiny.load(family)
    seen = []
    model.model.register_forward_hook(lambda module, inputs, output: seen.append(output.logits))
    record = model.record(tiny.texts[0])
    with torch.no_grad():
        expected = untouched(**{name: ids.unsqueeze(0) for name, ids in record.inputs.items()}).logits
    torch.testing.assert_close(seen[-1], expected, atol=1e-5, rtol=0)


def test_causal_maps_are_zero_above_the_diagonal(tiny, decoder):
    record = tiny.load(decoder).record(tiny.texts[0])
    assert record.causal
    assert record.weights.triu(1).max() == 0
    assert record.weights.tril(-1).max() > 0


def test_sliding_windows_come_out(tiny):
    record = tiny.load("mistral").record(tiny.texts[0])
    far = record.weights.tril(-4)
    assert far.max() == 0
    assert record.weights.tril(-3).max() > 0


def test_batches_equal_one_by_one(tiny, family):
    model = tiny.load(family)
    texts = tiny.texts * 2
    together = list(model.records(texts, batch_size=3))
    by_text = {text: model.record(text) for text in tiny.texts}
    for text, record in zip(texts, together, strict=True):
        alone = by_text[text]
        assert record.query_tokens == alone.query_tokens
        assert record.key_tokens == alone.key_tokens
        assert "[PAD]" not in record.query_tokens[1:] + record.key_tokens[1:]
        torch.testing.assert_close(record.weights, alone.weights, atol=1e-5, rtol=0)
        assert record.readout.tolist() == alone.readout.tolist()
        for (label, share), (expected_label, expected) in zip(record.prediction, alone.prediction, strict=True):
            assert label == expected_label or abs(share - expected) < 1e-5
            assert share == pytest.approx(expected, abs=1e-5)


def test_model_is_given_back_as_it_was(tiny, family):
    model = tiny.load(family)
    inner = model.model
    inner.train()
    frozen = next(inner.children())
    frozen.eval()
    modes = [module.training for module in inner.modules()]
    implementation = inner.config._attn_implementation
    torch.manual_seed(3)
    state = torch.get_rng_state()
    model.record(tiny.texts[0])
    assert torch.equal(torch.get_rng_state(), state)
    assert [module.training for module in inner.modules()] == modes
    assert inner.config._attn_implementation == implementation
    assert all(
        part.config._attn_implementation == implementation for part in inner.modules() if hasattr(part, "config")
    )


def test_model_is_given_back_after_an_error(tiny, family):
    model = tiny.load(family)
    inner = model.model.train()
    implementation = inner.config._attn_implementation

    def fail(module, inputs, output):
        torch.rand(1)
        raise RuntimeError("in the middle")

    hook = inner.register_forward_hook(fail)
    state = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="in the middle"):
        model.record(tiny.texts[0], text_target=tiny.texts[1] if inner.config.is_encoder_decoder else None)
    hook.remove()
    assert inner.training
    assert inner.config._attn_implementation == implementation
    assert torch.equal(torch.get_rng_state(), state)
    assert model.record(tiny.texts[1]).weights.isfinite().all()


def test_softmax_of_queries_and_keys_gives_the_weights_back(tiny, on_interface):
    model = tiny.load(on_interface)
    for stack in model.stacks:
        for record in model.records(tiny.texts, stack=stack, queries_and_keys=True):
            scaled = torch.einsum("lhqd,lhkd->lhqk", record.queries, record.keys)
            scaled = scaled * torch.tensor(record.scaling).reshape(-1, 1, 1, 1)
            if record.softcap is not None:
                scaled = record.softcap * torch.tanh(scaled / record.softcap)
            by_hand = (scaled + record.score_bias).softmax(-1)
            torch.testing.assert_close(by_hand, record.weights, atol=1e-6, rtol=0)
            torch.testing.assert_close(record.logits().softmax(-1), record.weights, atol=1e-6, rtol=0)


def test_soft_cap_is_recorded(tiny):
    record = tiny.load("gemma2").record(tiny.texts[0], queries_and_keys=True)
    assert record.softcap == 2.0


def test_values_times_weights_are_what_attention_adds(tiny, on_interface):
    """The sum over keys and heads of weight x value is the output of the attention block, but for its bias."""
    model = tiny.load(on_interface)
    stack = model.stacks[0]
    record = model.record(tiny.texts[0], stack=stack, values=True)
    added = torch.einsum("lhqk,lhkm->lqm", record.weights, record.values)
    projections = {
        "bert": "attention.output.dense",
        "roberta": "attention.output.dense",
        "electra": "attention.output.dense",
        "distilbert": "attention.out_lin",
        "albert": "attention.dense",
        "gpt2": "attn.c_proj",
        "gpt_neox": "attention.dense",
        "opt": "self_attn.out_proj",
        "t5": "EncDecAttention.o",
        "bart": "encoder_attn.out_proj",
        "marian": "encoder_attn.out_proj",
    }
    name = projections.get(on_interface, "self_attn.o_proj")
    outputs = []

    def without_bias(module, inputs, output):
        outputs.append(output[0] - (0 if module.bias is None else module.bias))

    hooks = [
        module.register_forward_hook(without_bias)
        for path, module in model.model.named_modules()
        if path.endswith(name)
    ]
    assert hooks
    with torch.no_grad():
        model.model(**{key: ids.unsqueeze(0) for key, ids in record.inputs.items()})
    torch.testing.assert_close(added, torch.stack(outputs), atol=1e-5, rtol=1e-5)


def test_families_off_the_interface_say_so(tiny, off_interface):
    model = tiny.load(off_interface)
    with pytest.raises(attnscope.BadInput, match="does not use transformers' AttentionInterface"):
        model.record(tiny.texts[0], queries_and_keys=True)


def test_grouped_queries_give_one_map_per_query_head(tiny):
    model = tiny.load("llama")
    assert model.model.config.num_key_value_heads == 2
    record = model.record(tiny.texts[0], queries_and_keys=True)
    assert record.weights.shape[1] == 4
    assert torch.equal(record.keys[:, 0], record.keys[:, 1])
    assert not torch.equal(record.keys[:, 1], record.keys[:, 2])


def test_head_means_are_the_means_of_the_heads(tiny, family):
    model = tiny.load(family)
    means = model.record(tiny.texts[0], heads="mean")
    full = model.record(tiny.texts[0])
    assert means.pooled == "mean"
    assert means.weights.shape[1] == 1
    torch.testing.assert_close(means.weights[:, 0], full.weights.mean(1), atol=1e-6, rtol=0)


def test_bfloat16_keeps_its_dtype_and_its_rows(tiny):
    inner = tiny.build("llama").to(torch.bfloat16)
    record = attnscope.load(inner, tokenizer=tiny.tokenizer("plain")).record(tiny.texts[0])
    assert inner.dtype == torch.bfloat16
    assert record.card["dtype"] == "bfloat16"
    assert record.weights.dtype == torch.float32
    torch.testing.assert_close(record.weights.sum(-1), torch.ones(3, 4, 10), atol=1e-6, rtol=0)


def test_a_model_spread_over_devices_is_not_moved(tiny, monkeypatch):
    inner = tiny.build("bert")
    inner.hf_device_map = {"": "cpu"}
    monkeypatch.setattr(type(inner), "to", lambda *_, **__: pytest.fail("the model was moved"))
    record = attnscope.load(inner, tokenizer=tiny.tokenizer("pair")).record(tiny.texts[0])
    assert record.weights.shape[0] == 3
