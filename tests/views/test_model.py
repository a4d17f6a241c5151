"""The model view: every head as a small picture and a row of figures, all of them the record's own."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnscope import AttentionRecord
from attnscope.errors import BadInput
from attnscope.views import VIEWS
from attnscope.views.head_statistics import head_statistics
from attnscope.views.model import model
from attnscope.views.printing import file_bytes
from attnscope.views.weights import inflate, unpack_array

TOKENS = ["[CLS]", "play", "##ing", "with", "fire", ".", "[SEP]"]
SPECIAL = [True, False, False, False, False, False, True]


def weights_of(layers=2, heads=3, queries=7, keys=7, seed=0, causal=False):
    scores = 2 * torch.randn(layers, heads, queries, keys, generator=torch.Generator().manual_seed(seed))
    if causal:
        scores = scores.masked_fill(~torch.ones(queries, keys, dtype=torch.bool).tril(), -torch.inf)
    return scores.softmax(-1)


@pytest.fixture
def record():
    return AttentionRecord.from_weights(weights_of(), TOKENS, special=SPECIAL)


def decoded(view, name):
    """The weights that the pictures of one choice stand for."""
    shape = view.payload["maps"][name]["shape"]
    codes = np.frombuffer(inflate(view.blobs[name]), dtype=np.uint8)
    described = view.payload["weights"]
    codes = codes.reshape(len(described["layers"]), len(described["heads"]), *shape)
    return torch.from_numpy((codes / 255.0) ** 2)


def value_at(packed, *places):
    array = unpack_array(packed)
    return float(array[tuple(0 if size == 1 else place for size, place in zip(array.shape, places, strict=True))])


def test_it_is_among_the_views():
    assert VIEWS["model"] is model


def test_a_pixel_is_a_weight(record):
    view = model(record)
    half_a_step = record.weights.sqrt() / 255 + 1e-5
    assert ((decoded(view, "tokens") - record.weights).abs() <= half_a_step).all()
    assert view.payload["maps"]["tokens"]["block"] == [1, 1]
    kept = [1, 2, 3, 4, 5]
    shown = record.weights[:, :, kept][..., kept]
    torch.testing.assert_close(decoded(view, "tokens-quiet").float(), shown, atol=4e-3, rtol=0)
    hidden = 1 - shown.sum() / record.weights[:, :, kept].sum()
    assert view.payload["maps"]["tokens-quiet"]["hidden"] == pytest.approx(float(hidden), abs=1e-6)
    torch.testing.assert_close(decoded(view, "words").float(), record.words().weights, atol=4e-3, rtol=0)
    assert decoded(view, "words-quiet").shape == (2, 3, 4, 4)


def test_in_a_long_text_a_pixel_is_the_largest_weight_of_a_block():
    record = AttentionRecord.from_weights(weights_of(1, 2, 300, 300), [f"t{place}" for place in range(300)])
    described = model(record).payload["maps"]["tokens"]
    assert described["block"] == [3, 3]
    assert described["shape"] == [100, 100]
    blocks = record.weights.reshape(1, 2, 100, 3, 100, 3).amax((3, 5))
    torch.testing.assert_close(decoded(model(record), "tokens").float(), blocks, atol=4e-3, rtol=0)


def test_the_strongest_pair_is_one_that_had_a_choice():
    weights = weights_of(causal=True)
    record = AttentionRecord.from_weights(weights, [f"t{place}" for place in range(7)])
    described = model(record).payload["maps"]["tokens"]
    for layer in range(2):
        for head in range(3):
            query, key = (int(value_at(described["pair"], layer, head, side)) for side in (0, 1))
            expected = weights[layer, head, 1:].max()
            assert query > 0  # the first token can only look at itself
            assert value_at(described["weight"], layer, head) == pytest.approx(float(expected))
            assert float(weights[layer, head, query, key]) == pytest.approx(float(expected))


def test_the_figures_are_those_of_the_record(record):
    frame = model(record).to_frame()
    assert len(frame) == 6
    for row in frame.itertuples():
        weights = record.weights[row.layer, row.head].double()
        rows = range(7)
        assert row.entropy == pytest.approx(float(-(weights * weights.log()).sum(-1).mean()), rel=1e-5)
        far = sum(float(weights[query, key]) * abs(query - key) for query in rows for key in rows) / 7
        assert row.distance == pytest.approx(far, rel=1e-5)
        assert row.previous == pytest.approx(np.mean([float(weights[q, q - 1]) for q in rows[1:]]), rel=1e-5)
        assert row.next == pytest.approx(np.mean([float(weights[q, q + 1]) for q in rows[:-1]]), rel=1e-5)
        assert row.same == pytest.approx(float(weights.diagonal().mean()), rel=1e-5)
        assert row.first == pytest.approx(float(weights[:, 0].mean()), rel=1e-5)
        assert row.quiet == pytest.approx(float(weights[:, [0, 6]].sum(-1).mean()), rel=1e-5)
        assert row.largest == row.weight == pytest.approx(float(weights.max()))
        assert (row.query_token, row.key_token) == (
            ["[CLS]", "play", "ing", "with", "fire", ".", "[SEP]"][row.query],
            ["[CLS]", "play", "ing", "with", "fire", ".", "[SEP]"][row.key],
        )


def test_rows_without_a_choice_are_left_out():
    weights = weights_of(causal=True)
    figures = head_statistics(AttentionRecord.from_weights(weights, list("abcdefg"))).figures
    expected = -torch.special.xlogy(weights, weights).sum(-1)[..., 1:].mean(-1)
    torch.testing.assert_close(figures["entropy"], expected)
    assert "next" not in figures


def pattern(offset=None, key=None, size=12, rest=0.1):
    """A head that looks in one way, and a little everywhere."""
    map_of = torch.full((size, size), rest / size)
    for query in range(size):
        to = key if key is not None else min(max(query + offset, 0), size - 1)
        map_of[query, to] += 1 - rest
    return map_of


def test_roles_are_told_from_the_one_text():
    half_at_rest = (pattern(offset=1) + pattern(key=0)) / 2
    even = torch.full((12, 12), 1 / 12)
    maps = [pattern(offset=-1), pattern(offset=1), pattern(offset=0), pattern(key=0, rest=0.05), pattern(key=11),
            half_at_rest, even, pattern(offset=3), pattern(key=5)]  # fmt: skip
    tokens = ["[CLS]", *(f"t{place}" for place in range(4)), ",", *(f"u{place}" for place in range(5)), "[SEP]"]
    special = [True, *[False] * 10, True]
    roles = head_statistics(AttentionRecord.from_weights(torch.stack(maps)[None], tokens, special=special)).roles[0]
    assert roles == (
        "previous token", "next token", "same token", "first token (sink)", "special tokens (sink)", "next token",
        "broad", "mixed", "punctuation (sink)",
    )  # fmt: skip


def test_chance_is_what_looking_at_everything_alike_gives(record):
    found = head_statistics(record)
    assert found.chances["first token (sink)"] == pytest.approx(1 / 7)
    # of 7 x 5 pairs that count, the rows 2 to 6 have a previous token that is not special
    assert found.chances["previous token"] == pytest.approx(5 / 35)


def test_the_state_names_all_that_can_be_chosen(record):
    assert model(record).state == {
        "words": False, "special": True, "threshold": 0.0, "root": False, "between": "all", "queries": [], "keys": [],
        "layer": 0, "heads": None, "head": 0, "enlarged": False, "statistic": "entropy", "sort_layers": None,
        "sort_heads": None,
    }  # fmt: skip
    opened = model(record, layer=-1, head=2).state
    assert (opened["layer"], opened["head"], opened["heads"], opened["enlarged"]) == (1, 2, [2], True)


def test_layers_and_heads_keep_their_numbers(record):
    view = model(record, include_layers=[1], include_heads=[0, 2])
    assert view.payload["weights"]["layers"] == [1]
    assert view.to_frame()["head"].tolist() == [0, 2]
    torch.testing.assert_close(decoded(view, "tokens").float(), record.weights[1:, [0, 2]], atol=4e-3, rtol=0)


def test_a_budget_holds_with_the_pictures(tmp_path):
    record = AttentionRecord.from_weights(weights_of(4, 4, 128, 128), [f"t{place}" for place in range(128)])
    whole, cut = model(record), model(record, size_budget=500_000)
    assert whole.payload["weights"]["kept"] is None
    assert cut.payload["weights"]["kept"] < 128
    assert cut.save(tmp_path / "cut.html").stat().st_size <= 500_000
    assert cut.blobs["tokens"] == whole.blobs["tokens"]
    assert model(record, keys_per_query=5).payload["weights"]["kept"] == 5


def test_cross_attention_has_no_distance():
    weights = weights_of(2, 2, 3, 9)
    record = AttentionRecord.from_weights(weights, list("abc"), key_tokens=list("defghijkl"))
    view = model(record)
    assert {"entropy", "first", "largest"} <= set(view.to_frame().columns)
    assert not {"distance", "previous", "same"} & set(view.to_frame().columns)
    assert view.payload["maps"]["tokens"]["shape"] == [3, 9]
    assert b"<svg" in file_bytes(view.figure(), "svg")


def test_a_head_mean_and_a_single_token_are_shown_too(record):
    pooled = replace(record.select(None, [0]), pooled="mean")
    assert model(pooled).payload["weights"]["pooled"] == "mean"
    assert b">mean<" in file_bytes(model(pooled).figure(), "svg")
    alone = model(AttentionRecord.from_weights([[[[1.0]]]], ["so"]))
    row = alone.to_frame().iloc[0]
    assert row["role"] == "only one key"
    assert math.isnan(row["entropy"])
    assert math.isnan(row["largest"])
    assert file_bytes(alone.figure(), "svg")


def test_masked_queries_count_nowhere():
    weights = weights_of(1, 1, 4, 4)
    weights[:, :, 0] = 0
    masked = AttentionRecord.from_weights(weights, list("abcd"), masked_queries=[True, False, False, False])
    rows = weights[0, 0, 1:]
    expected = float(-(rows * rows.log()).sum(-1).mean())
    assert float(head_statistics(masked).figures["entropy"]) == pytest.approx(expected, rel=1e-5)


def test_its_figure_is_the_same_every_time_and_has_numbers_as_text(record):
    view = model(record)
    for kind in ("svg", "pdf", "png"):
        assert file_bytes(view.figure(), kind) == file_bytes(view.figure(), kind)
    text = file_bytes(view.figure(), "svg").decode()
    for words in (">head<", ">layer<", ">2<", ">weight<"):
        assert words in text
    assert "one pixel is the weight" in view.figure().caption


def test_its_figure_is_of_what_is_selected(record):
    view = model(record)
    entropy = head_statistics(record).figures["entropy"]
    sorted_view = replace(view, state={**view.state, "sort_layers": ["mean", True], "sort_heads": [1, False]})
    text = file_bytes(sorted_view.figure(), "svg").decode()
    heads = [str(place) for place in entropy[1].argsort().tolist()]
    layers = [str(place) for place in entropy.mean(-1).argsort(descending=True).tolist()]
    numbers = [part.split("<")[0] for part in text.split(">") if part.split("<")[0] in {"0", "1", "2"}]
    assert numbers[:5] == layers + heads
    assert "Heads are sorted by mean entropy, the lowest first" in sorted_view.figure().caption
    quiet = replace(view, state={**view.state, "special": False, "root": True})
    assert "left out take" in quiet.figure().caption
    assert "square-root" in quiet.figure().caption
    enlarged = file_bytes(model(record, 1, 2).figure(), "svg").decode()
    assert ">fire<" in enlarged
    assert "layer 1, head 2" in enlarged


def test_what_is_wrong_is_said(record):
    with pytest.raises(BadInput, match="give both"):
        model(record, layer=1)
    with pytest.raises(BadInput, match="no head 9"):
        model(record, layer=1, head=9)
    with pytest.raises(BadInput, match="do not fit"):
        model(record, size_budget=1000)
    quiet = AttentionRecord.from_weights(weights_of(1, 1, 2, 2), ["<s>", "</s>"], special=[True, True])
    view = model(quiet)
    with pytest.raises(BadInput, match="nothing is left"):
        replace(view, state={**view.state, "special": False}).figure()


def test_its_figure_has_the_bars_of_the_statistic(record):
    view = model(record)
    plot = view.draw({**view.state, "statistic": "previous"}, None)
    shares = head_statistics(record).figures["previous"].flatten()
    outlines, bars = plot.figure.axes[0].collections[:2]
    lengths = [segment[1][0] - segment[0][0] for segment in bars.get_segments()]
    side = outlines.get_segments()[1][1][0] - outlines.get_segments()[1][0][0]
    assert lengths == pytest.approx((shares * abs(side)).tolist(), abs=1e-5)
    assert "The bar below each map is its attention to the previous token, from 0 to 1." in plot.caption
    largest = float(head_statistics(record).figures["entropy"].max())
    assert f"its mean entropy, from 0 to {largest:.3g} nats." in view.figure().caption


def test_its_enlarged_head_knows_the_sentences(record):
    view = model(record, 1, 2, sentence_b_start=4)
    plot = view.draw({**view.state, "between": "11"}, None)
    assert [text.get_text() for text in plot.figure.axes[0].texts][:6] == 2 * ["fire", ".", "[SEP]"]
    assert "what sentence B attends to in sentence B" in plot.caption


def test_queries_that_are_all_masked_say_nothing_of_a_head():
    nothing = AttentionRecord.from_weights(
        torch.zeros(2, 2, 3, 3), list("abc"), causal=False, masked_queries=[True] * 3, special=[True, False, False]
    )
    view = model(nothing)
    assert view.html()
    assert {described["hidden"] for described in view.payload["maps"].values()} == {0.0}
    quiet = replace(view, state={**view.state, "special": False})
    for figure in (quiet.figure(), model(nothing, 0, 0).figure()):
        assert "left out" not in figure.caption
        assert "nan" not in figure.caption
