"""The payload of the neuron view: vectors that give the record's logits, within the error it states."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnscope.errors import BadInput
from attnscope.record import AttentionRecord
from attnscope.views import neuron
from attnscope.views.weights import inflate

TOKENS = ("[CLS]", "the", "key", "##s", "</script>", "[SEP]")


def record_of(layers=2, heads=4, count=6, width=8, *, seed=0, softcap=None, bias="causal", shared=1, size=1.0):
    """A record whose weights are exactly the softmax of its logits."""
    random = torch.Generator().manual_seed(seed)
    queries = size * torch.randn(layers, heads, count, width, generator=random)
    keys = torch.randn(layers, heads // shared, count, width, generator=random).repeat_interleave(shared, 1)
    ahead = torch.full((count, count), -torch.inf).triu(1)
    added = {
        "causal": ahead.expand(layers, 1, -1, -1),
        "none": None,
        "by head": torch.randn(layers, heads, count, count, generator=random),
    }[bias]
    scaling = tuple(0.25 + 0.25 * layer for layer in range(layers))
    logits = queries @ keys.transpose(-1, -2) * torch.tensor(scaling).reshape(-1, 1, 1, 1)
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    weights = (logits if added is None else logits + added).softmax(-1)
    tokens = TOKENS if count == len(TOKENS) else tuple(f"t{place}" for place in range(count))
    record = AttentionRecord.from_weights(weights, tokens, causal=bias == "causal")
    vectors = {"queries": queries, "keys": keys, "scaling": scaling, "softcap": softcap, "score_bias": added}
    special = tuple(token.startswith("[") for token in tokens)
    return replace(record, **vectors, query_special=special, key_special=special)


def logits_of(view, place):
    """What a script makes of one layer."""
    described = view.payload["vectors"]
    heads, count, width = described["shape"]
    halves = np.frombuffer(inflate(view.blobs[f"layer{place}"]), "<f2").astype(np.float32) * described["units"][place]
    queries = halves[: heads * count * width].reshape(heads, count, width)
    keys = halves[heads * count * width :].reshape(-1, described["key_count"], width)[described["key_heads"]]
    logits = queries @ keys.transpose(0, 2, 1) * described["scaling"][place]
    if described["softcap"]:
        logits = described["softcap"] * np.tanh(logits / described["softcap"])
    number = described["biases"][place]
    if number is None:
        return logits
    bias = np.frombuffer(inflate(view.blobs[f"bias{number}"]), "<f2").astype(np.float32)
    return logits + bias.reshape(described["bias_heads"], count, -1)


@pytest.mark.parametrize(
    "options",
    [{}, {"bias": "by head"}, {"bias": "none"}, {"softcap": 2.0}, {"shared": 2}, {"size": 1e6, "count": 3}],
    ids=str,
)
def test_the_vectors_give_the_logits_within_the_error_that_is_stated(options):
    record = record_of(**options)
    view = neuron(record)
    errors = view.payload["vectors"]["errors"]
    for place in range(2):
        here, there = logits_of(view, place), record.logits()[place].numpy()
        seen = np.isfinite(there)
        assert (np.isfinite(here) == seen).all()
        off = np.abs(here[seen] - there[seen]).max()
        assert errors["logits"][place] * 0.8 <= off * 1.01 + 1e-6
        assert off <= errors["logits"][place] * 1.01 + 1e-6
        weights = torch.tensor(here).softmax(-1)
        assert float((weights - record.weights[place]).abs().max()) <= errors["weights"][place] + 1e-5


def test_keys_of_grouped_queries_and_equal_biases_travel_once():
    view = neuron(record_of(shared=2))
    assert view.payload["vectors"]["key_heads"] == [0, 0, 1, 1]
    assert view.payload["vectors"]["biases"] == [0, 0]
    assert set(view.blobs) == {"layer0", "layer1", "bias0"}
    alone = neuron(record_of(bias="none"))
    assert alone.payload["vectors"]["biases"] == [None, None]
    json.dumps([alone.payload, alone.state], allow_nan=False)


def test_a_bias_of_zeros_does_not_travel():
    record = record_of(bias="none")
    view = neuron(replace(record, score_bias=torch.zeros(2, 1, 6, 6)))
    assert set(view.blobs) == {"layer0", "layer1"}
    assert view.payload["vectors"]["biases"] == [None, None]


def test_it_opens_where_it_is_asked_to():
    record = record_of()
    assert neuron(record).state["query"] == 5  # a causal record is read at its last token
    spread = replace(record, readout=torch.full((6,), 1 / 6))
    assert neuron(spread).state["query"] == 1
    chosen = neuron(record, -1, 2, -2).state
    assert (chosen["layer"], chosen["head"], chosen["query"]) == (1, 2, 4)
    part = neuron(record, include_layers=[1], include_heads=[3])
    assert (part.state["layer"], part.state["head"]) == (1, 3)
    assert part.payload["vectors"]["scaling"] == [0.5]


def test_the_table_has_every_logit_beside_its_weight():
    record = record_of()
    frame = neuron(record).to_frame()
    assert list(frame.columns) == ["layer", "head", "query", "key", "query_token", "key_token", "logit", "weight"]
    row = frame.query("layer == 1 and head == 2 and query == 4 and key == 3").iloc[0]
    assert row["logit"] == pytest.approx(float(record.logits()[1, 2, 4, 3]))
    assert row["weight"] == pytest.approx(float(record.weights[1, 2, 4, 3]))


def test_what_cannot_be_shown_is_said_in_a_sentence(tmp_path):
    record = record_of()
    bare = AttentionRecord.from_weights(record.weights, record.tokens)
    with pytest.raises(BadInput, match=r"take it with model\.record\(text, queries_and_keys=True\)"):
        neuron(bare)
    with pytest.raises(BadInput, match="There is no query 6"):
        neuron(record, query=6)
    with pytest.raises(BadInput, match="There is no layer 7"):
        neuron(record, layer=7)
    with pytest.raises(BadInput, match="There is no head 9"):
        neuron(record, head=9)
    with pytest.raises(BadInput, match="size_budget is 1,000"):
        neuron(record, size_budget=1000)
    with pytest.raises(BadInput, match="No key is shown"):
        neuron(record).selecting(threshold=1.0).save(tmp_path / "neuron.svg")


def test_its_figure_shows_the_query_against_each_key(tmp_path):
    record = record_of()
    plot = neuron(record, layer=1, head=2, query=3).figure()
    axes = plot.figure.axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert texts[1] == "##s".removeprefix("##")
    logits = record.logits()[1, 2, 3]
    seen = [f"{logit:.2f}".replace("-", "−") if logit > -torch.inf else "masked" for logit in logits.tolist()]
    assert [text for text in texts if text in seen] == seen
    assert [text for text in texts if text in {f"{one:.3f}" for one in record.weights[1, 2, 3].tolist()}] == [
        f"{one:.3f}" for one in record.weights[1, 2, 3].tolist()
    ]
    query, keys, products = (image.get_array().filled(np.nan) for image in axes.images[:3])
    asking, asked = record.queries[1, 2, 3].numpy(), record.keys[1, 2].numpy()
    assert np.array_equal(query[0], asking)
    assert np.array_equal(keys[::4], asked)
    assert np.allclose(products[::4], asking * asked)
    assert "layer 1, head 2" in plot.caption
    first, again = (neuron(record).save(tmp_path / f"{name}.svg").read_bytes() for name in "ab")
    assert first == again


def test_its_figure_follows_what_is_selected():
    record = record_of()
    plot = neuron(record, layer=1, query=5).selecting(order="contribution", special=False, root=True).figure()
    _, _, products = (image.get_array().filled(np.nan)[::4] for image in plot.figure.axes[0].images[:3])
    assert len(products) == 4
    best = int(record.weights[1, 0, 5, 1:5].argmax())
    assert (np.diff(products[best]) <= 0).all()
    left_out = float(record.weights[1, 0, 5, [0, 5]].sum())
    assert f"Keys left out take {100 * left_out:.1f} % of the attention." in plot.caption
    assert "square-root" in plot.caption


@pytest.mark.parametrize(("width", "dimensions", "size"), [(3.3, 32, 1.0), (6.8, 32, 1.0), (3.3, 8, 9.0)])
def test_no_words_of_its_figure_lie_on_others(width, dimensions, size):
    plot = neuron(record_of(count=24, width=dimensions, size=size), layer=1, query=20).figure(width)
    boxes = [text.get_window_extent() for text in plot.figure.axes[0].texts if text.get_text()]
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[place + 1 :]), plot.figure.axes[0].texts[place]


@pytest.mark.parametrize("name", ["minilm", "smollm2"])
def test_real_vectors_keep_their_logits(real_model, name):
    import attnscope

    record = attnscope.load(str(real_model(name))).record("The key to the cabinets was lost.", queries_and_keys=True)
    view = neuron(record)
    errors = view.payload["vectors"]["errors"]
    assert max(errors["logits"]) < 0.02
    assert max(errors["weights"]) < 0.003
    assert len(set(view.payload["vectors"]["key_heads"])) == {"minilm": 12, "smollm2": 3}[name]


def test_its_figure_of_a_long_text_folds_the_keys_with_the_smallest_weights_away():
    record = record_of(count=70)
    weights = record.weights[0, 0, 69]
    least = int(weights.argmin())
    plot = neuron(record, query=69).selecting(keys=[least]).figure()
    texts = {text.get_text() for text in plot.figure.axes[0].texts}
    kept = {*weights.argsort(descending=True)[:39].tolist(), least}
    assert {place for place in range(69) if f"t{place}" in texts} == kept - {69}
    left_out = float(weights.sum() - weights[sorted(kept)].sum())
    assert "30 keys with smaller weights are folded away." in plot.caption
    assert f"Keys left out take {100 * left_out:.1f} % of the attention." in plot.caption


def test_a_long_text_opens_with_a_strong_pair_whose_rows_are_in_sight_together():
    record = record_of(count=170, layers=1, heads=1)
    weights = record.weights[0, 0].clone()
    weights[:, 0] = 5.0  # a sink
    weights[169, 3] = 0.9  # the read-out's strongest, out of its sight
    weights[100, 92] = 0.8
    weights[50, 50] = 0.95
    weights[120, 20] = 0.95
    long = replace(record, weights=(weights / weights.sum(-1, keepdim=True))[None, None])
    state = neuron(long).state
    assert (state["query"], state["keys"]) == (100, [92])
    # a query that was asked for stays, with its own strongest key in sight
    state = neuron(long, query=120).state
    near = long.weights[0, 0, 120].clone()
    near[:104] = near[120] = 0
    assert (state["query"], state["keys"]) == (120, [int(near.argmax())])
    weights[169, 160] = 0.95
    state = neuron(replace(long, weights=(weights / weights.sum(-1, keepdim=True))[None, None])).state
    assert (state["query"], state["keys"]) == (169, [160])
    assert neuron(record_of(count=160)).state["keys"] == []
