"""Tokens as a person reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from attnscope.record import readable
from attnscope.record.words import is_byte_level


@given(text=st.text(min_size=1, max_size=20), cuts=st.lists(st.integers(1, 4), max_size=12))
def test_byte_level_pieces_spell_the_text(text, cuts):
    """Any text, written in the byte alphabet by tokenizers itself and cut anywhere, reads as itself."""
    spelled = "".join(piece for piece, _ in pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text))
    pieces, rest = [], spelled
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    pieces = [piece for piece in [*pieces, rest] if piece]
    if is_byte_level(pieces):
        shown = "".join(word for word in readable(pieces))
        assert shown.replace("·", "") == text.replace("\n", "⏎").replace("·", "")


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (["[CLS]", "play", "##ing"], ["[CLS]", "play", "ing"]),
        (["##"], ["##"]),
        (["▁Stra", "ße", "▁!"], [" Stra", "ße", " !"]),
        (["łódź", "zażółć"], ["łódź", "zażółć"]),
        (["ä½ł", "å¥½"], ["你", "好"]),
        (["ðŁĺ", "Ģ"], ["😀", "·"]),
        (["The", "Ġend", "ðŁĺ"], ["The", " end", "\ufffd\ufffd\ufffd"]),
        ([], []),
    ],
)
def test_markers_and_bytes_are_undone(tokens, shown):
    assert readable(tokens) == shown
