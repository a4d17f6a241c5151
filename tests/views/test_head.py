"""The head view from Python: what it opens with, its table, its printed figure."""

import re
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

import pytest
import torch

import attnscope
from attnscope import AttentionRecord, BadInput
from attnscope.views import head
from attnscope.views.head import strongest_ends

TOKENS = ["[CLS]", "the", "un", "##told", "<key>", "[SEP]"]
QUIET = torch.tensor([True, False, False, False, False, True])
INK = torch.where(QUIET.unsqueeze(-1) | QUIET, 0.1, 1.0)
"""What lines of special tokens have of their ink."""


@pytest.fixture
def record():
    torch.manual_seed(0)
    weights = (3 * torch.randn(3, 10, 6, 6)).softmax(-1)
    special = [True, False, False, False, False, True]
    return AttentionRecord.from_weights(weights, TOKENS, causal=False, special=special)


def test_it_is_a_name_of_the_package():
    assert attnscope.views.head is head


def test_it_opens_with_the_layer_and_heads_asked_for(record):
    state = head(record, layer=-1, heads=[3]).state
    assert (state["layer"], state["heads"]) == (2, [3])
    assert head(record.select(layers=[1, 2])).state["layer"] == 1
    assert head(record, include_layers=[2], include_heads=[4, 5]).payload["weights"]["heads"] == [4, 5]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"layer": 3}, "There is no layer 3 in this record; it has 0 to 2."),
        ({"heads": [10]}, "There is no head 10 in this record; it has 0 to 9."),
        ({"sentence_b_start": 6}, "must begin within the 6 tokens"),
    ],
)
def test_what_is_not_there_is_said(record, options, sentence):
    with pytest.raises(BadInput, match=re.escape(sentence)):
        head(record, **options)


def test_its_table_has_every_weight(record):
    table = head(record).to_frame()
    assert len(table) == 3 * 10 * 6 * 6
    row = table[(table["layer"] == 1) & (table["head"] == 2) & (table["query"] == 3) & (table["key"] == 4)].iloc[0]
    assert row["weight"] == pytest.approx(float(record.weights[1, 2, 3, 4]))
    assert (row["query_token"], row["key_token"]) == ("told", "<key>")


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_its_figure_is_the_same_on_every_run(record, kind, tmp_path):
    files = [head(record, layer=1).save(tmp_path / f"{name}.{kind}") for name in "ab"]
    first, second = (sha256(file.read_bytes()).hexdigest() for file in files)
    assert first == second


def test_its_files_name_the_model_and_the_text(record, tmp_path):
    named = replace(record, text="the untold key", card={"model": "org/tiny"})
    view = head(named)
    assert view.file_name == "head-the-untold-key-org-tiny"
    assert "<title>Head view: “the untold key” · org/tiny</title>" in view.html()
    figure = view.save(tmp_path / "head.svg").read_text()
    assert "<dc:title>Head view: “the untold key” · org/tiny</dc:title>" in figure
    assert re.search(rb"Title\x00+Head view", view.save(tmp_path / "head.png").read_bytes())


def test_its_figure_has_the_tokens_as_text_and_a_line_for_each_weight(record, tmp_path):
    drawn = head(record, layer=1, heads=[4]).selecting(threshold=0).figure()
    axes = drawn.figure.axes[0]
    assert [text.get_text() for text in axes.texts][:12] == 2 * ["[CLS]", "the", "un", "told", "<key>", "[SEP]"]
    (lines,) = lines_of(drawn)
    shown = record.weights[1, 4] >= 1 / 255
    assert len(lines.get_segments()) == int(shown.sum())
    assert lines.get_colors()[:, 3] == pytest.approx((INK * record.weights[1, 4])[shown].numpy(), abs=1e-6)
    assert "&lt;key&gt;" in drawn.save(tmp_path / "head.svg").read_text(encoding="utf-8")
    assert "layer 1, head 4" in drawn.caption


def test_its_figure_shows_what_is_selected(record):
    view = head(record)
    quiet = view.draw({**view.state, "special": False, "words": True, "threshold": 0.1}, None)
    assert {text.get_text() for text in quiet.figure.axes[0].texts} >= {"the", "untold", "<key>"}
    words = record.words().weights[0, :, 1:4]
    hidden = 1 - float(words[..., 1:4].sum() / words.sum())
    assert f"Tokens left out take {100 * hidden:.1f} %" in quiet.caption
    assert "Weights below 0.1 are not drawn" in quiet.caption


def lines_of(plot):
    """The lines of each head, without those of the legend, which are thicker."""
    return [lines for lines in plot.figure.axes[0].collections if lines.get_linewidths()[0] < 1]


def drawn_between(plot):
    """The opacity of each line, by head, from query to key, as the axes have them."""
    found = {}
    for place, lines in enumerate(lines_of(plot)):
        for ((_, query), (_, key)), ink in zip(lines.get_segments(), lines.get_colors(), strict=True):
            found[place, round(query), round(key)] = float(ink[3])
    return found


def test_its_figure_draws_only_lines_of_pinned_tokens(record):
    view = head(record, layer=1, heads=[4]).selecting(threshold=0)
    weights = record.weights[1, 4]
    seen = {(0, query, key) for query, key in (weights >= 1 / 255).nonzero().tolist()}
    plot = view.draw({**view.state, "queries": [2, 3]}, None)
    assert set(drawn_between(plot)) == {line for line in seen if line[1] in (2, 3)}
    assert "Only lines from “un” + “told” are drawn." in plot.caption
    best = int(weights[2].argmax())
    plot = view.draw({**view.state, "queries": [2], "keys": [best]}, None)
    assert set(drawn_between(plot)) == {(0, 2, best)}
    name = ["[CLS]", "the", "un", "told", "<key>", "[SEP]"][best]
    assert f"Only lines from “un” to “{name}” are drawn." in plot.caption
    # a word is pinned with any of its tokens, and what is out of sight pins nothing
    words = view.draw({**view.state, "words": True, "keys": [3]}, None)
    assert {key for _, _, key in drawn_between(words)} == {2}
    quiet = view.draw({**view.state, "special": False, "keys": [0]}, None)
    assert len({key for _, _, key in drawn_between(quiet)}) == 4
    assert "Only lines" not in quiet.caption


def test_its_figure_is_as_opaque_as_the_screen(record):
    view = head(record, layer=1, heads=[4]).selecting(threshold=0)
    plot = view.draw({**view.state, "root": True}, None)
    weights = record.weights[1, 4].sqrt()
    expected = {(0, q, k): float((INK * weights)[q, k]) for q, k in (weights >= 1 / 255).nonzero().tolist()}
    assert drawn_between(plot) == pytest.approx(expected, abs=1e-6)
    assert "as opaque as the square root of the weight" in plot.caption


def test_its_figure_shows_the_sentences_that_are_chosen(record):
    view = head(record, layer=0, sentence_b_start=4).selecting(threshold=0)
    plot = view.draw({**view.state, "between": "01", "heads": [2]}, None)
    assert [text.get_text() for text in plot.figure.axes[0].texts][:6] == [
        "[CLS]",
        "the",
        "un",
        "told",
        "<key>",
        "[SEP]",
    ]
    weights = record.weights[0, 2, :4, 4:]
    inked = (INK[:4, 4:] * weights)[weights >= 1 / 255]
    assert list(drawn_between(plot).values()) == pytest.approx(inked.tolist(), abs=1e-6)
    assert "what sentence A attends to in sentence B" in plot.caption
    hidden = 1 - float(weights.sum() / 4)
    assert f"Tokens left out take {100 * hidden:.1f} %" in plot.caption
    with pytest.raises(BadInput, match="show all sentences"):
        head(record).draw({**view.state, "between": "11"}, None)


def test_its_legend_has_the_dash_of_each_head_the_layer_and_the_scale(record):
    plot = head(record, layer=2).figure()
    texts = [text.get_text() for text in plot.figure.axes[0].texts][12:]
    assert texts[0] == "layer 2, 10 heads"
    assert texts[1:11] == [str(number) for number in range(10)]
    assert texts[11:] == [f"weight {head(record, layer=2).state['threshold']:g}", "1"]
    samples = [lines for lines in plot.figure.axes[0].collections if lines.get_linewidths()[0] == 1.6]
    dashes = [lines.get_linestyles()[0][1] is not None for lines in samples]
    assert dashes == [False] * 8 + [True] * 2
    # long enough that a dash, its gap and the next dash are seen
    (start, _), (end, _) = samples[-1].get_segments()[0]
    assert (end - start) * 72 > sum(samples[-1].get_linestyles()[0][1])


def test_it_opens_with_a_threshold_chosen_from_the_weights(record):
    threshold = head(record, layer=1, include_heads=[0, 1, 2, 3]).state["threshold"]
    inner = record.weights[1, :4][..., 1:5]
    assert 4 * 6 <= int((inner >= threshold).sum()) <= 4 * 6 + int(((inner - threshold).abs() < 0.005).sum())
    even = AttentionRecord.from_weights(torch.full((1, 1, 4, 4), 0.25), list("abcd"), causal=False)
    assert head(even).state["threshold"] == 0


def test_its_figure_without_heads_has_no_lines(record):
    view = head(record, heads=[])
    plot = view.figure()
    assert drawn_between(plot) == {}
    assert "no head chosen" in plot.caption
    assert "nan" not in plot.caption


def test_a_long_token_is_held_once_by_the_table():
    tokens = ["x" * 10_000, "y", "x" * 10_000, "z"]
    record = AttentionRecord.from_weights(torch.full((4, 4, 4, 4), 0.25), tokens, causal=False)
    frame = head(record).to_frame()
    assert frame["query_token"].memory_usage(deep=True) < 2 * 10_000 + 2 * len(frame) + 2_000
    assert frame["key_token"].tolist()[:4] == tokens


def test_its_figure_of_a_long_text_folds_away_what_has_no_strong_line():
    weights = torch.full((1, 2, 80, 80), 0.001)
    pairs = [(30 + place, 29 + place) for place in range(0, 36, 2)]  # 36 tokens
    for head_place, (query, key) in enumerate(pairs):
        weights[0, head_place % 2, query, key] = 0.5 + head_place / 100
    weights[0, 0, 79, 3] = 0.3
    weights[0, 0, 70, 4] = 0.2
    weights[0, 0, 71, 5] = 0.1
    weights[..., 0] = 0
    weights[..., 0] = 1 - weights.sum(-1)
    special = [place == 0 for place in range(80)]
    record = AttentionRecord.from_weights(weights, [f"t{place}" for place in range(80)], causal=False, special=special)
    plot = head(record).selecting(threshold=0.05).figure()
    axes = plot.figure.axes[0]
    kept = sorted({place for pair in pairs for place in pair} | {79, 3, 70, 4})
    names = [text.get_text() for text in axes.texts]
    assert names[:40] == [f"t{place}" for place in kept]
    gaps = sum(here - before > 1 for before, here in pairwise([-1, *kept, 80]))
    assert names.count("⋮") == 2 * gaps
    rows = {text.get_text(): text.get_position()[1] for text in axes.texts[:40]}
    lines = {
        (round(float(start[1]), 3), round(float(end[1]), 3))
        for drawn in axes.collections[:2]
        for start, end in drawn.get_segments()
    }
    assert lines == {(rows[f"t{query}"], rows[f"t{key}"]) for query, key in [*pairs, (79, 3), (70, 4)]}
    assert "40 tokens without the strongest lines are folded away, where ⋮ stands." in plot.caption
    hidden = 1 - float(record.weights[0, :, kept][..., kept].sum() / record.weights[0, :, kept].sum())
    assert f"Tokens left out take {100 * hidden:.1f} % of the attention." in plot.caption
    # what is pinned stays, and so does a side that is short
    pinned = head(record).selecting(threshold=0.05, queries=[10]).figure()
    assert "t10" in [text.get_text() for text in pinned.figure.axes[0].texts]
    assert strongest_ends(weights[0, 0, :9], ([], []), own=False)[0] == list(range(9))
    assert strongest_ends(torch.zeros(70, 70), ([], []), own=True) == (list(range(40)),) * 2


def test_another_suffix_is_refused(record, tmp_path):
    with pytest.raises(BadInput, match=r"saved as \.html, \.svg, \.pdf or \.png, but view\.txt ends in \.txt"):
        head(record).save(tmp_path / "view.txt")
    assert list(tmp_path.iterdir()) == []


def test_it_shows_itself_sandboxed_in_a_notebook(record):
    html = head(record)._repr_html_()
    assert html.startswith('<iframe sandbox="allow-scripts"')
    assert "<script" not in html.replace("&lt;script", "")
    assert re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", html) is None  # a notebook would write each as six letters
