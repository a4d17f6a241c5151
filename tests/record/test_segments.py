"""Segments: every character and every token in one leaf of each level, and sums that are those of the tokens."""

import dataclasses
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnscope
from attnscope import AttentionRecord, BadInput, Segments
from attnscope.record import Span, TokenSegments

TEXT = "Rome fell. Why?\n\nNobody knows.\nIt was 476. "


def record_of(text, offsets, segments, **more):
    count = len(offsets)
    weights = torch.rand(2, 3, count, count, generator=torch.Generator().manual_seed(count)).softmax(-1)
    tokens = [text[start:end] or "[CLS]" for start, end in offsets]
    record = AttentionRecord.from_weights(weights, tokens, False, **more)
    return dataclasses.replace(record, segments=TokenSegments(segments, tuple(offsets)))


@st.composite
def cut_texts(draw):
    """A text, two levels of spans that may cross each other, and tokens that cover it, some with a space before."""
    text = draw(st.text("ab .\n", min_size=1, max_size=40).filter(str.strip))
    places = st.lists(st.integers(0, len(text)), max_size=6, unique=True).map(sorted)
    spans = [
        [(start, end, f"{start}") for start, end in zip(some[::2], some[1::2], strict=False)]
        for some in (draw(places), draw(places))
    ]
    borders = [0, *draw(places), len(text)]
    offsets = [(start, end) for start, end in itertools.pairwise(borders) if start < end]
    return text, spans, [(0, 0), *offsets]


@settings(max_examples=40)
@given(drawn=cut_texts())
def test_every_character_and_every_token_is_in_one_leaf_of_each_level_and_sums_are_those_of_tokens(drawn):
    text, (coarse, fine), offsets = drawn
    segments = Segments.from_spans(text, coarse).from_spans(fine, level="field").sentences()
    for level, spans in segments.levels.items():
        leaves = segments.leaves(level)
        assert "".join(text[leaf.start : leaf.end] for leaf in leaves) == text
        assert set(spans) <= {dataclasses.replace(leaf, kind=span.kind) for leaf in leaves for span in spans}
    borders = {place for leaf in segments.leaves("document") for place in (leaf.start, leaf.end)}
    assert borders <= {place for leaf in segments.leaves("sentence") for place in (leaf.start, leaf.end)}
    special = [True] + [False] * (len(offsets) - 1)
    record = record_of(text, offsets, segments, special=special)
    scores = attnscope.raw(record)
    for level in ("document", "field", "sentence", "word", "token"):
        table = scores.by(level)
        assert table["score"].sum() == pytest.approx(float(scores.scores.sum()), abs=1e-5)
        merged = scores.sum_by(level)
        assert list(merged.tokens) == list(table["segment"])
        torch.testing.assert_close(merged.scores, torch.tensor(table["score"].tolist()))
        assert merged.by("document")["score"].sum() == pytest.approx(table["score"].sum(), abs=1e-5)
        of_level = record.by(level)
        torch.testing.assert_close(of_level.weights.sum(-1), torch.ones(of_level.weights.shape[:-1]))
        assert of_level.key_tokens == merged.tokens
    for level in segments.levels:
        groups, labels, kinds = record.segments.groups(level, record.tokens, record.special)
        assert sorted(place for group in groups for place in group) == list(range(len(offsets)))
        assert len(groups) == len(labels) == len(kinds)
        naive = [naive_leaf(segments, level, text, *offset) for offset in offsets[1:]]
        for group in groups[1:]:
            assert len({naive[place - 1] for place in group}) == 1
        assert len(groups) == 1 + len(set(naive))


def naive_leaf(segments, level, text, start, end):
    """The leaf of a token's first character that is no space."""
    first = next((place for place in range(start, end) if not text[place].isspace()), start)
    return next(number for number, leaf in enumerate(segments.leaves(level)) if leaf.start <= first < leaf.end)


def test_a_record_merges_keys_by_sums_and_queries_by_means():
    text = "ab cd ef"
    record = record_of(text, [(0, 2), (2, 5), (5, 8)], Segments.from_spans(text, [(0, 5, "one"), (6, 8, "two")]))
    merged = record.by("document")
    weights = record.weights
    assert merged.tokens == ("one", "two")
    torch.testing.assert_close(merged.weights[..., 0, 0], weights[..., :2, :2].sum(-1).mean(-1))
    torch.testing.assert_close(merged.weights[..., 1, 0], weights[..., 2, :2].sum(-1))
    torch.testing.assert_close(merged.readout, torch.tensor([2 / 3, 1 / 3]))
    torch.testing.assert_close(merged.by("document").weights, merged.weights)


def test_tokens_that_cross_a_border_go_where_their_first_letter_lies():
    text = "One. Two."
    record = record_of(
        text, [(0, 0), (0, 3), (3, 4), (4, 8), (8, 9)], Segments.sentences(text), special=[1, 0, 0, 0, 0]
    )
    groups, labels, kinds = record.segments.groups("sentence", record.tokens, record.special)
    assert (groups, labels, kinds) == ([[0], [1, 2], [3, 4]], ("[CLS]", "One.", "Two."), ("marker", "", ""))


def test_levels_nest_and_names_tell():
    segments = Segments.by_separator(TEXT, "\n\n").paragraphs().sentences()
    assert [*segments.levels] == ["document", "paragraph", "sentence"]
    assert [leaf.name for leaf in segments.leaves("document")] == ["document 1", "document 2"]
    assert [segments.label(leaf) for leaf in segments.leaves()] == [
        "Rome fell.",
        "Why?",
        "Nobody knows.",
        "It was 476.",
    ]
    assert {leaf.kind for leaf in segments.leaves("sentence")} == {"document"}
    said = [("user", "Hi"), ("assistant", "Hi you"), ("user", "Bye")]
    messages = [{"role": role, "content": content} for role, content in said]
    turns = Segments.turns("<u>Hi<e><a>Hi you<e><u>Bye<e>", messages)
    assert [leaf.name for leaf in turns.leaves()] == ["", "user", "", "assistant", "", "user 2", ""]
    # a span across a border is cut there
    cut = Segments.from_spans("abcd", [(0, 2, "a"), (2, 4, "b")]).from_spans([(1, 3, "claim")], level="claim")
    assert cut.levels["claim"] == (Span(1, 2, "claim", "claim"), Span(2, 3, "claim", "claim"))


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rained (a lot). We stayed.", ["It rained (a lot). ", "We stayed."]),
        ('He said "No." Then he left…', ['He said "No." ', "Then he left…"]),
        ("Mr. J. Doe of the U.S. army, e.g. him.", ["Mr. J. Doe of the U.S. army, e.g. him."]),
        ("A title\nA line that is\nwrapped. End", ["A title\n", "A line that is\nwrapped. ", "End"]),
        ("吃饭。睡觉！", ["吃饭。", "睡觉！"]),
        ("...", ["..."]),
    ],
)
def test_sentences(text, sentences):
    assert [text[leaf.start : leaf.end] for leaf in Segments.sentences(text).leaves()] == sentences


def test_segments_are_saved_with_the_record(tmp_path):
    record = record_of(TEXT, [(0, 10), (10, 20), (20, len(TEXT))], Segments.by_separator(TEXT, "\n\n").sentences())
    again = AttentionRecord.load(record.save(tmp_path / "r.safetensors"))
    assert again.segments == record.segments
    assert attnscope.raw(again).by("document").equals(attnscope.raw(record).by("document"))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Segments.sentences(" \n"), "is empty"),
        (lambda: Segments.from_spans("abc", [(0, 4, "far")]), "goes from 0 to 4, which is nothing in a text of 3"),
        (lambda: Segments.from_spans("abc", [(2, 2, "none")]), "goes from 2 to 2"),
        (lambda: Segments.from_spans("abc", [(-1, 2, "early")]), "before the text"),
        (lambda: Segments.from_spans("abc", [(0, 2, "a"), (1, 3, "b")]), "'a' and 'b' .* overlap at character 1"),
        (lambda: Segments.from_spans("abc", [(0, 2)]), r"A span is \(start, end, name\)"),
        (lambda: Segments.from_spans("abc", [(0, True, "x")]), r"A span is \(start, end, name\)"),
        (lambda: Segments.from_spans("abc", [(0, 1, "a")], level="word"), "cannot be called 'word'"),
        (lambda: Segments.sentences("abc").sentences(), "already"),
        (lambda: Segments.by_separator("abc", ""), "separator is empty"),
        (lambda: Segments.turns("abc", [{"role": "user", "content": "x"}]), "does not hold the content of message 0"),
        (lambda: Segments.turns("abc", [{"role": "user"}]), "Message 0 must be"),
        (lambda: TokenSegments(Segments.sentences("abc"), ((0, 9),)), "lie within their text of 3"),
        (lambda: record_of("abc", [(0, 3)], Segments.sentences("abc")).by("page"), "no level 'page' here: choose sen"),
        (lambda: dataclasses.replace(record_of("abc", [(0, 3)], Segments.sentences("abc")),
                                     segments=TokenSegments(Segments.sentences("abc"), ())), "segments has 0 entries"),
    ],
)  # fmt: skip
def test_what_cannot_be_gets_one_sentence(make, sentence):
    with pytest.raises(BadInput, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)
