"""The printed figures of a lexicon study: what stands in them, and that words of a cloud do not overlap."""

import numpy as np
import pandas as pd
import pytest

from attnscope.errors import BadInput
from attnscope.views.lexicon_figures import (
    head_shares,
    letter_sizes,
    pack_words,
    tag_colours,
    valence_scatter,
    word_cloud,
)
from attnscope.views.printing import file_bytes

pytest.importorskip("matplotlib", reason="matplotlib is missing: pip install 'attnscope[figures]'.")

WORDS = pd.DataFrame(
    {
        "word": ["awful", "dull", "so", "nice", "great", "the"],
        "value": [1.5, 3.0, 5.0, 7.0, 8.5, np.nan],
        "tag": ["low", "", "", "", "high", ""],
        "raw": [0.3, 0.2, 0.1, 0.2, 0.4, 0.05],
    }
)


def test_every_word_of_the_lexicon_is_a_dot_and_the_curve_is_as_given():
    curve = (np.array([1.5, 5.0, 8.5]), np.array([0.3, 0.1, 0.3]))
    plot = valence_scatter(WORDS, {"raw": curve}, {"raw": "raw\nt = 7.04"})
    axes = plot.figure.axes[0]
    offsets = axes.collections[0].get_offsets()
    shown = WORDS.dropna(subset=["value"]).query("word != 'great'")  # the highest half percent is not drawn
    np.testing.assert_allclose(offsets, shown[["value", "raw"]])
    np.testing.assert_allclose(axes.lines[0].get_xydata(), np.column_stack(curve))
    assert axes.get_title(loc="left") == "raw\nt = 7.04"
    assert "5 words" in plot.caption
    assert "Not shown: 1 dot" in plot.caption


def test_heads_stand_beside_chance():
    heads = pd.DataFrame(
        {"tag": ["low"] * 2 + ["high"] * 2, "head": [0, 1] * 2, "share": [0.2, 0.1, 0.3, np.nan], "chance": 0.15}
    )
    plot = head_shares(heads)
    (axes,) = plot.figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["chance", "0", "1"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["low", "high"]
    assert [text.get_text() for text in axes.texts] == ["15", "20", "10", "15", "30"]


def test_words_of_a_cloud_do_not_overlap_and_the_highest_is_the_largest():
    words = [f"word{number}" for number in range(60)]
    sizes = letter_sizes([1 / (1 + number) for number in range(60)])
    placed = pack_words(words, sizes, 3.3, 0.6)
    assert placed[0].word == "word0"
    assert placed[0].size == max(word.size for word in placed)
    assert len(placed) >= 50
    for place, one in enumerate(placed):
        assert abs(one.x) + one.half_width <= 3.3 / 2
        for other in placed[:place]:
            apart = abs(one.x - other.x) >= one.half_width + other.half_width - 1e-9
            above = abs(one.y - other.y) >= one.half_height + other.half_height - 1e-9
            assert apart or above


def test_a_cloud_has_the_same_bytes_each_time_and_its_colours():
    colours = tag_colours(WORDS, ("low", "high"))
    assert set(colours) == {"awful", "great"}
    first, again = (word_cloud(WORDS, "raw", colours, most=5) for _ in range(2))
    assert file_bytes(first, "svg") == file_bytes(again, "svg")
    texts = {text.get_text(): text for text in first.figure.axes[0].texts}
    assert set(texts) == {"awful", "dull", "so", "nice", "great"}
    assert texts["awful"].get_color() == colours["awful"] != texts["dull"].get_color()


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(BadInput, match="at least one word"):
        word_cloud(WORDS, "raw", most=0)
    with pytest.raises(BadInput, match="no column 'flow'"):
        word_cloud(WORDS, "flow")
    with pytest.raises(BadInput, match="give at least one"):
        valence_scatter(WORDS, {}, {})
