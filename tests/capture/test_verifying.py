"""The self-check: what is observed is compared with what the model does unobserved, and refused where they differ."""

import copy
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from transformers.models.llama import modeling_llama

import attnscope
from attnscope import BadInput
from attnscope.capture.watching import on_interface


def test_a_model_is_checked_once_and_its_card_says_so(family: str, tiny: SimpleNamespace) -> None:
    model = tiny.load(family)
    calls: Counter[str] = Counter()
    model.model.register_forward_hook(lambda *_: calls.update(["pass"]))
    stack = "encoder" if "encoder" in model.stacks else None  # no greedy output, which takes passes of its own
    trial = 0 if on_interface(model.model) else 1  # of a few tokens: which modules give the weights that are returned
    first = model.record(tiny.texts[0], stack=stack)
    assert calls["pass"] == 2 + trial
    second = model.record(tiny.texts[1], stack=stack)
    assert calls["pass"] == 3 + trial
    verified = first.card["verified"]
    assert second.card["verified"] == verified
    assert verified["answers_differ_by"] < 1e-4
    assert verified["layers"] >= len(first.layers)
    assert verified["answers_against"] == model.model.config._attn_implementation


def test_how_often_is_for_the_user_to_say(tiny: SimpleNamespace) -> None:
    model = tiny.load("bert")
    calls: Counter[str] = Counter()
    model.model.register_forward_hook(lambda *_: calls.update(["pass"]))
    assert model.record(tiny.texts[0], verify="never").card["verified"] is None
    assert calls["pass"] == 1
    for _ in range(2):
        model.record(tiny.texts[0], verify="always")
    assert calls["pass"] == 5
    with pytest.raises(BadInput, match=r"^verify is once, always or never, not 'sometimes'\.$"):
        model.record(tiny.texts[0], verify="sometimes")


def test_weights_that_do_not_give_the_output_are_refused_by_layer(
    tiny: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = modeling_llama.eager_attention_forward

    def shifted(module: Any, *arguments: Any, **options: Any) -> Any:
        output, weights = plain(module, *arguments, **options)
        return output, weights.roll(1, -2) if module.layer_idx == 1 else weights

    monkeypatch.setattr(modeling_llama, "eager_attention_forward", shifted)
    model = tiny.load("llama")
    with pytest.raises(BadInput, match=r"^The attention weights of LlamaForCausalLM in layer 1 do not give what the"):
        model.record(tiny.texts[0])
    assert model.record(tiny.texts[0], verify="never").card["verified"] is None


def test_answers_that_differ_are_refused_with_their_difference(
    tiny: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = modeling_llama.eager_attention_forward

    def unmasked(module: Any, query: Any, key: Any, value: Any, _mask: Any, **options: Any) -> Any:
        return plain(module, query, key, value, None, **options)

    monkeypatch.setattr(modeling_llama, "eager_attention_forward", unmasked)
    with pytest.raises(BadInput, match=r"^LlamaForCausalLM answers differently .* \(sdpa\): by 0?\.?\d+.* of its size"):
        tiny.load("llama").record(tiny.texts[0])


def test_returned_weights_that_were_not_multiplied_are_refused(tiny: SimpleNamespace) -> None:
    model = tiny.load("gptj")

    def other(_: Any, __: Any, output: Any) -> Any:
        if output.attentions is not None:
            output.attentions = tuple(weights.roll(1, -2) * 0.9 + 0.1 for weights in output.attentions)
        return output

    model.model.register_forward_hook(other)
    with pytest.raises(BadInput, match=r"returns for layer 0 are not those it computes with"):
        model.record(tiny.texts[0])


def test_an_implementation_asked_for_by_name_is_eager_while_watched(tiny: SimpleNamespace) -> None:
    """DeepSeek-V3.2 and others hide keys only where they are eager or sdpa by name."""
    model = tiny.load("bert")
    seen = []
    layer = model.model.bert.encoder.layer[0]
    layer.register_forward_pre_hook(lambda *_: seen.append(model.model.config._attn_implementation))
    model.record(tiny.texts[0])
    assert seen == ["sdpa", "eager"]
    assert model.model.config._attn_implementation == "sdpa"
    copied = copy.deepcopy(model.model.config)
    assert copied._attn_implementation == "sdpa"


def test_sparse_index_masks_come_out_as_eager_has_them(tiny: SimpleNamespace) -> None:
    config = transformers.DeepseekV32Config(
        vocab_size=23, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
        q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, intermediate_size=32,
        moe_intermediate_size=16, n_routed_experts=4, n_shared_experts=1, n_group=1, topk_group=1,
        num_experts_per_tok=2, first_k_dense_replace=2, max_position_embeddings=64, index_topk=3, index_n_heads=4,
        index_head_dim=8, pad_token_id=0, initializer_range=0.2,
    )  # fmt: skip
    torch.manual_seed(0)
    inner = transformers.DeepseekV32ForCausalLM(config).eval()
    record = attnscope.load(inner, tokenizer=tiny.tokenizer("plain")).record(tiny.texts[0])
    inner.set_attn_implementation("eager")
    with torch.no_grad():
        output = inner(record.inputs["input_ids"].unsqueeze(0), output_attentions=True)
    torch.testing.assert_close(record.weights, torch.cat(output.attentions), atol=1e-6, rtol=0)
    assert ((record.weights > 0).sum(-1) <= 3).all()  # no query sees more than the three keys of its index


def test_a_sink_is_a_column_of_its_own(tiny: SimpleNamespace) -> None:
    inner = tiny.gpt_oss()
    model = attnscope.load(inner, tokenizer=tiny.tokenizer("plain"))
    record = model.record(tiny.texts[0], gradients=True)
    assert record.tokens[0] == "[sink]"
    assert record.special[0]
    assert record.added_tokens == 1
    assert record.causal
    inner.set_attn_implementation("eager")
    with torch.no_grad():
        returned = torch.cat(inner(record.inputs["input_ids"].unsqueeze(0), output_attentions=True).attentions)
    torch.testing.assert_close(record.weights[..., 1:, 1:], returned, atol=1e-6, rtol=0)
    torch.testing.assert_close(record.weights[..., 1:, 0], 1 - returned.sum(-1), atol=1e-6, rtol=0)
    assert record.weights[..., 1:, 0].mean() > 0.01
    assert record.readout.argmax() == len(record.tokens) - 1
    assert record.embeddings[0].norm() == 0
    for method in ("raw", "rollout", "flow", "layerwise_tracing", "gradient", "gradient_rollout"):
        scores = attnscope.attribute(record, method)
        assert scores.tokens == record.tokens
        assert scores.scores.isfinite().all()
    assert attnscope.rollout(record).scores[0] > 0.05
    merged = record.words()
    assert merged.tokens[0] == "[sink]"
    means = model.record(tiny.texts[0], heads="mean")
    torch.testing.assert_close(means.weights[:, 0], record.weights.mean(1), atol=1e-6, rtol=0)


def test_methods_that_run_the_model_again_leave_the_sink_alone(tiny: SimpleNamespace) -> None:
    model = attnscope.load(tiny.gpt_oss(), tokenizer=tiny.tokenizer("plain"))
    record = model.record(tiny.texts[0])
    whole = model.probabilities([record.inputs])[0]
    outcome = int(whole.argmax())
    scores = attnscope.blank_out(record, model, replacement="delete", signed=True)
    assert scores.tokens == record.tokens
    assert scores.scores[0] == 0
    for place in (1, 4):
        ids = record.inputs["input_ids"]
        without = torch.cat([ids[: place - 1], ids[place:]])
        expected = whole[outcome] - model.probabilities([{"input_ids": without}])[0, outcome]
        assert scores.scores[place] == pytest.approx(float(expected), abs=1e-6)
    path = attnscope.integrated_gradients(record, model, baseline="unk", steps=8)
    assert path.tokens == record.tokens
    assert path.scores[0] == 0


def test_two_products_with_one_map_are_one_layer(tiny: SimpleNamespace) -> None:
    config = transformers.DiffLlamaConfig(
        vocab_size=23, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=48, max_position_embeddings=40, pad_token_id=0, initializer_range=0.2,
    )  # fmt: skip
    torch.manual_seed(0)
    inner = transformers.DiffLlamaForCausalLM(config).eval()
    model = attnscope.load(inner, tokenizer=tiny.tokenizer("plain"))
    record = model.record(tiny.texts[0])
    assert record.weights.shape[0] == 3
    assert "two attention maps" in record.card["note"]
    with pytest.raises(BadInput, match="before the output projection"):
        model.record(tiny.texts[0], values=True)


def test_layers_of_a_hybrid_have_their_own_numbers(tiny: SimpleNamespace) -> None:
    config = transformers.JambaConfig(
        vocab_size=23, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=48, attn_layer_period=2, attn_layer_offset=1, num_experts=2, mamba_d_state=4, mamba_d_conv=2,
        use_mamba_kernels=False, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    inner = transformers.JambaForCausalLM(config).eval()
    record = attnscope.load(inner, tokenizer=tiny.tokenizer("plain")).record(tiny.texts[0])
    assert record.layers == (1, 3)


def test_a_gate_behind_the_heads_forbids_values(tiny: SimpleNamespace) -> None:
    model = tiny.load("llama")
    projection = model.model.model.layers[1].self_attn.o_proj
    assert model.record(tiny.texts[0], values=True).values is not None
    projection.register_forward_pre_hook(lambda _, states: (states[0] * 0.5,), prepend=True)
    with pytest.raises(BadInput, match="a gate, a norm or a subtraction"):
        model.record(tiny.texts[0], values=True)


class Doubling(torch.nn.Module):
    """Stands for what wraps a projection: adapters, quantised and offloaded weights."""

    def __init__(self, inner: torch.nn.Linear) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return 2 * self.inner(states) + 1


def test_values_go_through_a_projection_that_is_more_than_its_weight(tiny: SimpleNamespace) -> None:
    plain = tiny.load("llama").record(tiny.texts[0], values=True).values
    inner = tiny.build("llama")
    first = inner.model.layers[0].self_attn
    first.o_proj = Doubling(first.o_proj)
    values = attnscope.load(inner, tokenizer=tiny.tokenizer("plain")).record(tiny.texts[0], values=True).values
    torch.testing.assert_close(values[0], 2 * plain[0], atol=1e-5, rtol=1e-5)


class Rounding(Doubling):
    """Stands for a projection whose activations are quantised."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        step = states.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 7
        return self.inner((states / step).round() * step)


def test_values_of_a_projection_that_rounds_what_it_is_given_are_refused(tiny: SimpleNamespace) -> None:
    inner = tiny.build("llama")
    inner.model.layers[1].self_attn.o_proj = Rounding(inner.model.layers[1].self_attn.o_proj)
    model = attnscope.load(inner, tokenizer=tiny.tokenizer("plain"))
    assert model.record(tiny.texts[0]).values is None
    with pytest.raises(BadInput, match="does not put out the sum of what it makes of each head"):
        model.record(tiny.texts[0], values=True)


def test_values_have_the_adapter_of_the_projection_in_them(tiny: SimpleNamespace) -> None:
    peft = pytest.importorskip("peft")
    adapted = peft.get_peft_model(tiny.build("llama"), peft.LoraConfig(r=2, target_modules=["o_proj"]))
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)
    record = attnscope.load(adapted.eval(), tokenizer=tiny.tokenizer("plain")).record(tiny.texts[0], values=True)
    added = torch.einsum("lhqk,lhkm->lqm", record.weights, record.values)
    outputs: list[torch.Tensor] = []
    for layer in adapted.base_model.model.model.layers:
        layer.self_attn.o_proj.register_forward_hook(lambda _, __, output: outputs.append(output[0]))
    with torch.no_grad():
        adapted(record.inputs["input_ids"].unsqueeze(0))
    torch.testing.assert_close(added, torch.stack(outputs), atol=1e-4, rtol=1e-4)


def test_an_answer_that_is_no_number_is_refused(tiny: SimpleNamespace) -> None:
    model = tiny.load("bert")
    torch.nn.init.constant_(model.model.classifier.bias, float("nan"))
    with pytest.raises(BadInput, match="answers with what is not a number"):
        model.record(tiny.texts[0])


def test_answers_that_are_no_number_with_eager_attention_are_refused(
    tiny: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = modeling_llama.eager_attention_forward

    def broken(*given: Any, **options: Any) -> Any:
        output, weights = plain(*given, **options)
        return output * float("nan"), weights * float("nan")

    monkeypatch.setattr(modeling_llama, "eager_attention_forward", broken)
    with pytest.raises(BadInput, match=r"not a number where its attention is eager.*\(sdpa\), by the code of transf"):
        tiny.load("llama").record(tiny.texts[0])
