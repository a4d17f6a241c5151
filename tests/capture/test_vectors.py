"""Queries and keys in place of weights: what follows from them is what a full record has, in every family."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attnscope
from attnscope.capture.vectors import _band, _visible
from attnscope.errors import BadInput
from attnscope.record import vectors
from attnscope.record.vectors import LayerVectors, blocks, carry, normalizers_of, rows, visible
from attnscope.statistics.sinks import sinks_of


def both(tiny, family, stack=None, **options):
    model = tiny.load(family)
    return model.record(tiny.texts[0], stack=stack, **options), model.record(
        tiny.texts[0], stack=stack, keep="vectors", **options
    )


def test_every_family_gives_the_weights_of_its_full_record(tiny, on_interface):
    for stack in tiny.load(on_interface).stacks:
        full, light = both(tiny, on_interface, stack)
        assert isinstance(light, attnscope.AttentionRecord)
        torch.testing.assert_close(light.full().weights, full.weights, atol=1e-5, rtol=0)
        torch.testing.assert_close(light.rows(-1, 0, -1)[0], full.weights[-1, 0, -1], atol=1e-5, rtol=0)
        torch.testing.assert_close(light.readout, full.readout)
        assert (light.causal, light.query_tokens, light.key_tokens) == (full.causal, full.query_tokens, full.key_tokens)
        for (label, probability), (expected, of_full) in zip(light.prediction, full.prediction, strict=True):
            assert label == expected
            assert probability == pytest.approx(of_full, abs=1e-5)


def test_every_family_gives_the_scores_of_its_full_records_at_odd_lengths(tiny, on_interface):
    model = tiny.load(on_interface)
    texts = ["key", "the red dogs", "the red dogs see a", "a boy that runs , the dogs ! see the key on the"]
    for stack in model.stacks:
        options = {"text_targets": texts[::-1]} if model.hugging_face.has_both_sides else {}
        whole = model.records(texts, batch_size=4, stack=stack, **options)  # one padded batch
        lights = model.records(texts, batch_size=4, stack=stack, keep="vectors", **options)
        for full, light in zip(whole, lights, strict=True):
            torch.testing.assert_close(light.full().weights, full.weights, atol=1e-5, rtol=0)
            for method in ("raw",) if stack == "cross" else ("raw", "rollout", "layerwise_tracing"):
                ours, expected = attnscope.attribute(light, method), attnscope.attribute(full, method)
                torch.testing.assert_close(ours.scores, expected.scores, atol=1e-5, rtol=1e-5)


def test_rows_of_a_real_model_at_4096_tokens_are_those_of_float64(real_model):
    """Two layers of SmolLM2; queries and keys again from what the layers read, with rotary embedding by its formula."""
    model = attnscope.load(real_model("smollm2"))
    body = model.model.model
    body.layers = body.layers[:2]
    model.model.config.num_hidden_layers = 2
    words = "The keys to the old cabinets in the hall of the museum, which nobody had opened for years, were lost. "
    ids = model.tokenizer(words * 300)["input_ids"][:4096]
    text = model.tokenizer.decode(ids)
    read = []
    hooks = [
        layer.self_attn.register_forward_pre_hook(
            lambda _module, _given, named: read.append(named["hidden_states"][0].double()), with_kwargs=True
        )
        for layer in body.layers
    ]
    record = model.record(text, keep="vectors", verify="never")
    for hook in hooks:
        hook.remove()
    length, width = record.shape[2], body.config.head_dim
    assert length > 4000
    theta = body.config.rope_parameters["rope_theta"]
    angles = torch.arange(length).double().unsqueeze(-1) / theta ** (torch.arange(0, width, 2).double() / width)
    cosine, sine = (turn(torch.cat([angles, angles], -1)) for turn in (torch.cos, torch.sin))

    def turned(vectors, places):
        first, second = vectors.chunk(2, -1)
        return vectors * cosine[places] + torch.cat([-second, first], -1) * sine[places]

    chosen = torch.tensor([0, 1, 2047, 3000, length - 1])
    for layer, (attention, inputs) in enumerate(zip((one.self_attn for one in body.layers), read, strict=True)):
        split = (-1, width)
        queries = (inputs[chosen] @ attention.q_proj.weight.double().T).unflatten(-1, split).transpose(0, 1)
        keys = (inputs @ attention.k_proj.weight.double().T).unflatten(-1, split).transpose(0, 1)
        scores = turned(queries, chosen) @ turned(keys, range(length)).repeat_interleave(3, 0).mT * width**-0.5
        hidden = torch.arange(length) > chosen.unsqueeze(-1)
        expected = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        for head in range(record.shape[1]):
            found = record.rows(layer, head, chosen.tolist()).double()
            torch.testing.assert_close(found, expected[head], atol=1e-5, rtol=1e-3)


def test_a_family_that_shows_no_vectors_is_refused(tiny, off_interface):
    with pytest.raises(BadInput, match='keep="weights"'):
        tiny.load(off_interface).record(tiny.texts[0], keep="vectors")


@pytest.mark.parametrize("method", ["raw", "rollout", "layerwise_tracing", "value_weighted", "effective"])
@pytest.mark.parametrize("name", ["bert", "llama", "mistral", "gemma2", "gpt2"])
def test_methods_need_no_matrix(tiny, name, method):
    full, light = both(tiny, name, values=True)
    expected, found = attnscope.attribute(full, method), attnscope.attribute(light, method)
    torch.testing.assert_close(found.scores.double(), expected.scores.double(), atol=1e-5, rtol=1e-4)
    assert found.tokens == expected.tokens
    if expected.compute_row is not None:
        torch.testing.assert_close(found.at(2, 0).double(), expected.at(2, 0).double(), atol=1e-5, rtol=1e-4)
        with pytest.raises(BadInput, match="ask for single rows"):
            _ = found.map
    if expected.compute_per_head is not None:
        torch.testing.assert_close(found.per_head, expected.per_head, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["bert", "llama", "mistral", "gemma2", "gpt2", "t5"])
def test_gradients_at_weights_follow_from_those_at_outputs(tiny, name):
    full, light = both(tiny, name, "encoder" if name == "t5" else None, gradients=True)
    assert light.target == full.target
    seen = full.weights > 0  # what a query does not see has a gradient in one and none in the other
    expected = full.attention_gradients
    torch.testing.assert_close(light.full().attention_gradients[seen], expected[seen], atol=1e-5, rtol=1e-3)
    torch.testing.assert_close(light.embedding_gradients, full.embedding_gradients, atol=1e-5, rtol=1e-3)
    for method in ("gradient_rollout", "gradient", "gradient_x_input"):
        ours, theirs = attnscope.attribute(light, method), attnscope.attribute(full, method)
        torch.testing.assert_close(ours.scores, theirs.scores, atol=1e-6, rtol=1e-3)
    rolled = attnscope.attribute(light, "gradient_rollout")
    torch.testing.assert_close(
        rolled.at(1, 0), attnscope.attribute(full, "gradient_rollout").at(1, 0), atol=1e-6, rtol=1e-3
    )


def test_gradients_of_vectors_come_back_from_a_file(tiny, tmp_path):
    _, light = both(tiny, "llama", gradients=True)
    back = attnscope.AttentionRecord.load(light.save(tmp_path / "r.safetensors"))
    torch.testing.assert_close(
        attnscope.attribute(back, "gradient_rollout").scores, attnscope.attribute(light, "gradient_rollout").scores
    )
    with pytest.raises(BadInput, match="gradients=True"):
        attnscope.attribute(dataclasses.replace(light, output_gradients=None), "gradient_rollout")


@pytest.mark.parametrize(
    "options",
    [
        {"heads": "max"},
        {"heads": 1},
        {"heads": [0, 1]},
        {"residual": 0.2, "start_layer": 1},
        {"normalize": "receptive_field"},
    ],
)
@pytest.mark.parametrize("name", ["bert", "mistral"])
def test_every_option_of_rollout(tiny, name, options):
    full, light = both(tiny, name)
    torch.testing.assert_close(
        attnscope.rollout(light, **options).scores.double(),
        attnscope.rollout(full, **options).scores.double(),
        atol=1e-5,
        rtol=1e-4,
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"heads": "max"}, {"heads": [1]}, {"residual": 0.2, "start_layer": 1}, {"normalize": "receptive_field"}],
)
@pytest.mark.parametrize("name", ["bert", "mistral"])
def test_chosen_rows_of_the_rollout_come_together(tiny, name, options, monkeypatch):
    full, light = both(tiny, name)
    chosen = [1, 5, -1]
    expected = attnscope.rollout(full, queries=chosen, **options).map
    found = attnscope.rollout(light, queries=chosen, **options)
    torch.testing.assert_close(found.map.double(), expected.double(), atol=1e-5, rtol=1e-4, equal_nan=True)
    torch.testing.assert_close(
        found.at(2, 1).double(), attnscope.rollout(full, **options).at(2, 1).double(), atol=1e-5, rtol=1e-4
    )
    monkeypatch.setattr("attnscope.attribution.without_matrix.LARGEST_MAP", 10)
    long = attnscope.rollout(light, queries=chosen, **options)
    torch.testing.assert_close(long.at(5, 1).double(), expected[1, 5].double(), atol=1e-5, rtol=1e-4)
    with pytest.raises(BadInput, match="ask for single rows"):
        _ = long.map


def test_the_largest_over_heads_is_that_of_raw_attention_too(tiny):
    full, light = both(tiny, "llama")
    expected = attnscope.raw(full, heads="max").scores
    assert expected.sum() > 1.01
    torch.testing.assert_close(attnscope.raw(light, heads="max").scores, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda record: {"normalizers": record.normalizers + 1}, "are not those of its queries and keys"),
        (lambda record: {"normalizers": record.normalizers * torch.nan}, "are not those of its queries and keys"),
        (lambda record: {"queries": record.queries[..., :3]}, "different widths"),
        (lambda record: {"queries": None}, "a tensor of layers"),
        (lambda record: {"group_keys": record.group_keys[:, [0, 0, 0]]}, "evenly"),
        (lambda record: {"group_values": record.group_keys}, "or neither"),
        (lambda record: {"ahead": (None,) * len(record.ahead)}, "nothing ahead"),
    ],
)
def test_vectors_that_are_not_of_one_attention_are_refused(tiny, change, said):
    _, light = both(tiny, "llama")
    with pytest.raises(BadInput, match=said):
        dataclasses.replace(light, **change(light))


def test_half_the_memory_costs_little(tiny):
    full, light = both(tiny, "llama")
    rough = tiny.load("llama").record(tiny.texts[0], keep="bfloat16 vectors")
    assert rough.queries.element_size() * 2 == light.queries.element_size()
    torch.testing.assert_close(rough.full().weights, full.weights, atol=2e-2, rtol=0)


def test_what_would_be_a_matrix_is_refused_with_its_size(tiny):
    _, light = both(tiny, "llama")
    with pytest.raises(BadInput, match=r"would take [\d.]+ kB: it holds queries and keys instead"):
        _ = light.weights
    with pytest.raises(BadInput, match=r"merge the scores of a method, scores\.sum_by\('word'\)"):
        light.words()
    assert attnscope.rollout(light).words().scores.sum() == pytest.approx(1)
    assert light.select(layers=[1]).full().weights.shape[0] == 1
    with pytest.raises(BadInput, match="stay together"):
        light.select(heads=0)


@pytest.mark.parametrize("name", ["llama", "gpt2", "mistral", "gemma2"])
def test_sinks_are_those_of_the_full_record(tiny, name, monkeypatch):
    monkeypatch.setattr("attnscope.statistics.sinks.DOMINANT", 0.15)  # random heads rest on little
    full, light = both(tiny, name)
    assert sinks_of(light) == sinks_of(full) != []


@pytest.mark.parametrize("name", ["llama", "mistral", "bert", "t5"])
def test_the_largest_keys_are_those_of_the_full_record(tiny, name, monkeypatch):
    monkeypatch.setattr(vectors, "BLOCK", 100)  # blocks of few queries, some of which see fewer keys than are asked for
    text = " ".join(tiny.texts)
    model = tiny.load(name)
    stack = model.stacks[0]
    full, light = (model.record(text, stack=stack, keep=keep) for keep in ("weights", "vectors"))
    length = full.shape[-1]
    for k in (1, 6, length):
        for layer in range(full.shape[0]):
            values, indices = light.top_keys(layer, k)
            expected = full.weights[layer].topk(k)
            torch.testing.assert_close(values, expected.values, atol=1e-6, rtol=1e-5)
            torch.testing.assert_close(full.weights[layer].gather(-1, indices), values, atol=1e-6, rtol=1e-5)
            assert all(len({*row}) == k for row in indices.flatten(0, 1).tolist())
            ours = full.top_keys(layer, k)
            assert all(torch.equal(mine, theirs) for mine, theirs in zip(ours, expected, strict=True))
    assert torch.equal(light.top_keys(-1, 2)[1], light.top_keys(full.shape[0] - 1, 2)[1])


@pytest.mark.parametrize("name", ["llama", "mistral", "bert", "t5"])
def test_rows_and_blocks_are_those_of_the_weights_in_either_record(tiny, name, monkeypatch):
    monkeypatch.setattr(vectors, "BLOCK", 100)
    monkeypatch.setattr("attnscope.record.attention.BLOCK", 100)
    model, text = tiny.load(name), " ".join(tiny.texts)
    stack = "encoder" if name == "t5" else None
    full, light = (model.record(text, stack=stack, keep=keep) for keep in ("weights", "vectors"))
    for record in (full, light):
        for layer in range(full.shape[0]):
            asked = []
            for queries, weights in record.blocks(layer):
                torch.testing.assert_close(weights, full.weights[layer][:, queries], atol=1e-5, rtol=0)
                torch.testing.assert_close(weights[1], record.rows(layer, 1, queries), atol=1e-6, rtol=0)
                asked += queries
            assert asked == list(range(full.shape[2]))
        for queries, of_these in ((-1, [-1]), ([2, 0], [2, 0]), (slice(1, 3), [1, 2])):
            expected = full.weights[-1, 0][of_these]
            torch.testing.assert_close(record.rows(-1, 0, queries), expected, atol=1e-5, rtol=0)
        for wrong in (lambda record=record: record.rows(9, 0, 0), lambda record=record: record.blocks(9)):
            with pytest.raises(BadInput, match="no layer 9"):
                wrong()
        with pytest.raises(BadInput, match="no head 7"):
            record.rows(0, 7, 0)
    assert len(list(full.blocks(0))) > 1


@pytest.mark.parametrize(
    ("asked", "said"), [((0, 0), "k must be at least 1"), ((0, 99), "at most"), ((9, 1), "layer 9")]
)
def test_more_keys_than_there_are_is_refused(tiny, asked, said):
    for record in both(tiny, "llama"):
        with pytest.raises(BadInput, match=said):
            record.top_keys(*asked)


@pytest.mark.parametrize("name", ["llama", "mistral", "t5"])
def test_it_is_saved_and_loaded(tiny, name, tmp_path):
    _, light = both(tiny, name)
    found = attnscope.AttentionRecord.load(light.save(tmp_path / "long.safetensors"))
    assert type(found) is type(light)
    torch.testing.assert_close(found.full().weights, light.full().weights, atol=0, rtol=0)
    assert (found.back, found.ahead, found.card) == (light.back, light.ahead, light.card)
    with pytest.raises(BadInput, match="written as they are kept"):
        light.save(tmp_path / "small.safetensors", precision="uint8")


def test_flow_is_that_of_the_full_record(tiny):
    full, light = both(tiny, "llama")
    torch.testing.assert_close(attnscope.flow(light).scores, attnscope.flow(full).scores, atol=1e-5, rtol=0)


@pytest.mark.parametrize("options", [{"heads": "mean"}, {"queries_and_keys": True}])
def test_what_needs_weights_is_refused_beforehand(tiny, options):
    with pytest.raises(BadInput, match="keeps queries and keys of all heads"):
        tiny.load("bert").record("the cat", keep="vectors", **options)


def test_a_text_that_does_not_fit_is_kept_as_vectors_with_a_warning(tiny, monkeypatch):
    model, text = tiny.load("llama"), " ".join(tiny.texts)
    whole = model.estimate(text).peak_bytes
    light = model.estimate(text, keep="vectors").peak_bytes
    assert light < whole
    monkeypatch.setattr("attnscope.capture.request.available_bytes", lambda: (whole + light) // 2)
    with pytest.warns(UserWarning, match="queries and keys are kept instead"):
        record = model.record(text)
    assert isinstance(record, attnscope.record.VectorRecord)
    monkeypatch.setattr("attnscope.capture.request.available_bytes", lambda: 1)
    with pytest.raises(BadInput, match='pass keep="vectors"'):
        model.record(text)


# ---- the pure functions, against the plain formula in float64


def made(
    heads: int,
    groups: int,
    length: int,
    back: int | None,
    ahead: int | None,
    softcap: float | None,
    bias: bool,
    seed: int,
) -> tuple[LayerVectors, torch.Tensor]:
    """A layer, and its weights by the formula."""
    draw = torch.Generator().manual_seed(seed)
    queries = torch.randn(heads, length, 8, generator=draw) * 2
    keys = torch.randn(groups, length, 8, generator=draw) * 2
    added = torch.randn(heads, length, length, generator=draw) if bias else None
    layer = LayerVectors(queries, keys, torch.zeros(heads, length), 0.35, softcap, back, ahead, added)
    scores = queries.double() @ keys.double().repeat_interleave(heads // groups, 0).mT * 0.35
    scores = scores if softcap is None else softcap * torch.tanh(scores / softcap)
    scores = scores if added is None else scores + added
    offset = torch.arange(length) - torch.arange(length)[:, None]
    hidden = (offset > (length if ahead is None else ahead)) | (-offset > (length if back is None else back))
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    return dataclasses.replace(layer, normalizers=normalizers_of(layer)), weights


LAYERS = st.fixed_dictionaries(
    {
        "groups": st.sampled_from([1, 2, 4]),
        "length": st.integers(1, 70),
        "back": st.none() | st.integers(0, 9),
        "ahead": st.sampled_from([None, 0, 3]),
        "softcap": st.sampled_from([None, 3.0]),
        "bias": st.booleans(),
        "seed": st.integers(0, 99),
    }
)


@pytest.mark.parametrize("threads", [1, 2], ids=["by tiles", "by the fused kernel"])
@given(chosen=LAYERS, block=st.integers(1, 2000), count=st.integers(1, 20), gives_all=st.booleans())
def test_rows_blocks_and_products_are_those_of_the_formula(threads, chosen, block, count, gives_all):
    layer, weights = made(heads=4, **chosen)
    length = chosen["length"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "BLOCK", block)
        patch.setattr(vectors, "TILE", block)
        patch.setattr(vectors, "QUERIES_OF_TILE", max(1, block % 50))
        patch.setattr(vectors, "KEYS_TOGETHER", 3)
        patch.setattr(torch, "get_num_threads", lambda: threads)
        torch.testing.assert_close(rows(layer, range(length)).double(), weights, atol=1e-5, rtol=1e-4)
        whole = torch.zeros_like(weights)
        for queries, keys, some in blocks(layer):
            whole[:, queries, keys] = some.double()
        torch.testing.assert_close(whole, weights, atol=1e-5, rtol=1e-4)
        assert torch.equal(visible(layer, range(length)), (weights > 0).any(0))
        amounts = torch.randn(count, 4, length, generator=torch.Generator().manual_seed(0))
        amounts[:, :, length // 2 :] *= gives_all
        expected = torch.einsum("rhq,hqk->rhk", amounts.double(), weights)
        torch.testing.assert_close(carry(layer, amounts).double(), expected, atol=1e-4, rtol=1e-3)


@given(length=st.integers(2, 40), back=st.none() | st.integers(0, 50), ahead=st.none() | st.integers(0, 50))
def test_a_band_is_told_from_its_mask(length, back, ahead):
    offset = torch.arange(length) - torch.arange(length)[:, None]
    mask = (offset <= (length if ahead is None else ahead)) & (-offset <= (length if back is None else back))
    found = _band(mask)
    assert found is not None
    layer = LayerVectors(
        torch.zeros(1, length, 1), torch.zeros(1, length, 1), torch.zeros(1, length), 1.0, None, *found
    )
    assert torch.equal(visible(layer, range(length)), mask)


def test_a_mask_of_another_form_becomes_a_bias():
    mask = torch.ones(1, 1, 6, 6, dtype=torch.bool).tril()
    mask[..., 4, 1] = False
    assert _band(mask[0, 0]) is None
    back, ahead, bias = _visible(mask, None, is_causal=True)
    assert (back, ahead) == (None, None)
    assert bias is not None
    assert torch.equal(bias == 0, mask[0])
