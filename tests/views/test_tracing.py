"""The payload and the printed figure of the tracing view."""

import re

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from attnscope import layerwise_tracing, paint, rollout
from attnscope.errors import BadInput
from attnscope.record import AttentionRecord
from attnscope.views import tracing
from attnscope.views.sides import units_of
from attnscope.views.tracing import trace_of
from attnscope.views.weights import inflate

TOKENS = ["[CLS]", "play", "##ing", "with", "<b>&amp;</b>", "[SEP]"]
SPECIAL = [True, False, False, False, False, True]


def record_of(layers=3, heads=4, tokens=TOKENS, special=SPECIAL, seed=0):
    random = torch.Generator().manual_seed(seed)
    count = len(tokens)
    weights = (2 * torch.randn(layers, heads, count, count, generator=random)).softmax(-1)
    return AttentionRecord.from_weights(weights, tokens, causal=False, readout=0, special=special)


@pytest.fixture
def record():
    return record_of()


def test_the_dots_are_those_of_layer_wise_tracing(record):
    view = tracing(record)
    values = np.frombuffer(inflate(view.blobs["trace"]), "<f4")
    assert values[:6].tolist() == record.readout.tolist()
    held = record.readout.double().expand(4, -1)
    for layer in (2, 1, 0):  # Eq. 8: from the read-out down, each head by itself
        held = torch.stack([held[head] @ record.weights[layer, head].double() for head in range(4)])
        assert values[6:].reshape(3, 4, 6)[layer] == pytest.approx(held.numpy(), abs=1e-6)


def test_the_lines_are_what_is_handed_on(record):
    view = tracing(record)
    count = view.payload["trace"]["lines"]
    raw = inflate(view.blobs["lines"])
    values = np.frombuffer(raw[: 4 * count], "<f4")
    layer, head, query, key = np.frombuffer(raw[4 * count :], "<u2").reshape(4, count).astype(int)
    held = torch.cat([layerwise_tracing(record).per_head[1:], record.readout.expand(1, 4, -1)])
    expected = held[layer, head, query] * record.weights[layer, head, query, key]
    assert values == pytest.approx(expected.numpy())
    assert values.min() >= 0.01
    assert view.payload["trace"]["lines_left_out"] == pytest.approx(1 - values.sum() / 12, abs=1e-5)


def test_scores_hold_the_dots_alone(record):
    view = tracing(layerwise_tracing(record))
    assert set(view.blobs) == {"trace"}
    assert view.payload["trace"]["readout"] is False
    assert view.payload["trace"]["lines"] is None
    assert view.to_frame().equals(tracing(record).to_frame())


def test_it_keeps_the_numbers_of_selected_layers_and_heads(record):
    view = tracing(record.select([1, 2], [0, 3]), layer=-1, head=3)
    assert (view.state["layer"], view.state["head"]) == (2, 3)
    frame = view.to_frame()
    assert set(frame["layer"]) == {1, 2}
    assert set(frame["head"]) == {0, 3}


def test_the_table_has_every_dot(record):
    frame = tracing(record).to_frame()
    assert list(frame.columns) == ["layer", "head", "position", "token", "value"]
    assert len(frame) == 3 * 4 * 6
    row = frame.query("layer == 1 and head == 2 and position == 4").iloc[0]
    assert row["token"] == "<b>&amp;</b>"
    assert row["value"] == pytest.approx(float(layerwise_tracing(record).per_head[1, 2, 4]))
    assert frame.groupby(["layer", "head"])["value"].sum().tolist() == pytest.approx([1.0] * 12)


@pytest.mark.parametrize("head", [None, 2])
def test_the_figure_has_the_same_bytes_and_its_tokens_as_text(record, tmp_path, head):
    one, other = (tracing(record, head=head).save(tmp_path / name).read_bytes() for name in ("a.svg", "b.svg"))
    assert one == other
    text = one.decode("utf-8")
    assert ">play</text>" in text or "play" in text
    assert "&lt;b&gt;&amp;amp;&lt;/b&gt;" in text
    assert ("Mean of heads" in text) == (head is None)
    tracing(record, head=head).save(tmp_path / "a.pdf")


def test_the_figure_shows_what_is_selected(record):
    from dataclasses import replace

    view = tracing(record)
    quiet = replace(view, state={**view.state, "special": False, "words": True, "root": True, "threshold": 0.1})
    plot = quiet.figure(3.3)
    texts = [text.get_text() for text in plot.figure.axes[0].texts]
    assert "[CLS]" not in texts
    assert "playing" in texts
    hidden = layerwise_tracing(record).per_head[0].mean(0)[[0, 5]].sum()
    assert f"Tokens left out hold {100 * float(hidden):.1f} %" in plot.caption
    assert plot.figure.get_size_inches()[0] == pytest.approx(3.3)


def test_the_figure_outlines_pinned_tokens_and_says_what_is_chosen(record):
    view = tracing(record, head=2)
    chosen = {**view.state, "words": True, "threshold": 0.05}
    plain, plot = (view.draw({**chosen, "keys": keys}, None) for keys in ([], [2]))
    # one outline in the panel and one in the text
    assert len(plot.figure.axes[0].collections) == len(plain.figure.axes[0].collections) + 2
    assert "Outlined: “playing”." in plot.caption
    assert "below 0.05 are not drawn" in plot.caption
    assert "linear scale" in plot.caption
    left_out = view.payload["trace"]["lines_left_out"]
    assert f"fainter ones, {100 * left_out:.1f} %" in plot.caption
    alone = view.draw({**view.state, "lines": False}, None)
    assert "Lines hand on" not in alone.caption


def test_the_text_of_the_figure_has_the_scale_that_is_chosen(record):
    view = tracing(record)
    grounds = {}
    for root in (False, True):
        axes = view.draw({**view.state, "root": root}, None).figure.axes[0]
        grounds[root] = [patch.get_facecolor() for patch in axes.patches[:6]]
    held = layerwise_tracing(record).per_head[0].mean(0)
    shares = held / held.max()
    for root, inks in grounds.items():
        expected = [paint.sequential()[round(float(s**0.5 if root else s) * (paint.STEPS - 1))] for s in shares]
        assert [to_hex(ink) for ink in inks] == expected


def test_queries_that_are_all_masked_hand_nothing_on():
    record = AttentionRecord.from_weights(
        torch.zeros(2, 2, 3, 3), list("abc"), causal=False, masked_queries=[True] * 3, readout=0
    )
    view = tracing(record)
    assert view.payload["trace"]["lines"] == 0
    assert view.payload["trace"]["lines_left_out"] == 0.0
    assert "nan" not in view.html().partition("<script type=module>")[0].lower().replace("tracing", "")
    assert "left out hold" not in view.figure().caption


def test_what_cannot_be_shown_is_said_in_a_sentence(record):
    with pytest.raises(BadInput, match="these are scores of rollout"):
        tracing(rollout(record))
    with pytest.raises(BadInput, match="merged or cut"):
        tracing(layerwise_tracing(record).words())
    with pytest.raises(BadInput, match="There is no head 7"):
        tracing(record, head=7)
    with pytest.raises(BadInput, match="There is no layer 5"):
        tracing(record, layer=5)
    long = record_of(1, 1, [f"t{place}" for place in range(80)], None)
    view = tracing(long)
    with pytest.raises(BadInput, match="64 tokens in a row"):
        view.draw({**view.state, "folded": False}, None)
    # folded, the forty that hold most have a column with their name, and the text below is whole
    plot = view.figure()
    assert "40 quiet tokens are folded away above the text" in plot.caption
    texts = [text.get_text() for text in plot.figure.axes[0].texts]
    most = torch.maximum(layerwise_tracing(long).per_head.amax((0, 1)), long.readout).topk(40).indices.tolist()
    assert {name for name in texts if texts.count(name) == 2} == {f"t{place}" for place in most}
    assert sum(name.startswith("t") for name in texts) == 120
    cross = AttentionRecord.from_weights(torch.full((1, 1, 2, 3), 1 / 3), ["a", "b"], key_tokens=["c", "d", "e"])
    with pytest.raises(BadInput):
        tracing(cross)


def test_the_mean_of_heads_has_lines_and_dots_their_names_in_print(record):
    view = tracing(record)
    axes = view.figure().figure.axes[0]
    panels = 1 + len(record.heads)
    for text in (text for text in view.payload["keys"]["texts"] if len(text) < 8):
        # below the dots of each panel, and in the text
        assert sum(drawn.get_text() == text for drawn in axes.texts) == panels + 1
    lines = [one for one in axes.collections if hasattr(one, "get_segments")]
    assert len(lines) == 2 * panels  # those that rest on special tokens or sinks, and the others
    trace = trace_of(record)
    units = units_of(trace.side, words=False)
    mean = trace.lines.between(units, None, len(record.heads))
    single = [trace.lines.between(units, head, len(record.heads)) for head in range(len(record.heads))]
    assert mean == pytest.approx({line: sum(one.get(line, 0.0) for one in single) / len(single) for line in mean})
    quiet = {place for place, unit in enumerate(units) if unit.quiet}
    assert len(lines[0].get_segments()) == sum(key in quiet for _, _, key in mean)


def test_all_heads_of_a_long_text_fit_on_a_page():
    tokens = [f"t{place}" for place in range(150)]
    weights = torch.randn(6, 12, 150, 150, generator=torch.Generator().manual_seed(1)).softmax(-1)
    plot = tracing(AttentionRecord.from_weights(weights, tokens, causal=False, readout=0)).figure()
    assert 6 < plot.figure.get_size_inches()[1] <= 9
    texts = [text.get_text() for text in plot.figure.axes[0].texts]
    assert {*tokens, "Mean of heads", "Head 11"} <= set(texts)
    named = len(texts) - texts.count("Mean of heads") - 12 - 150
    kept = 150 - int(re.search(r"(\d+) quiet tokens are folded away", plot.caption)[1])
    assert kept >= 12
    assert named >= 13 * kept
