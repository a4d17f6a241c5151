"""Numbers in few bytes: what a page is given is what it can read back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnscope.views.weights import WORST, base64_text, deflate, inflate, seven_bit_text


def from_seven_bits(text: str) -> bytes:
    """The letters back as bytes, bit by bit: slow, and written without looking at how they were made."""
    bits = "".join(f"{ord(letter) % 128:07b}" for letter in text)
    return bytes(int(bits[start : start + 8], 2) for start in range(0, len(bits) - len(bits) % 8, 8))


@given(st.binary(max_size=200))
def test_seven_bit_letters_hold_every_byte(content):
    assert from_seven_bits(seven_bit_text(content))[: len(content)] == content


@given(st.binary(max_size=200))
def test_no_letter_can_end_a_script_or_be_replaced(content):
    assert not set(seven_bit_text(content)) & {"\0", "\r", "<"}


def test_letters_take_no_more_than_is_said():
    content = np.random.default_rng(0).integers(0, 256, 700_000, dtype=np.uint8).tobytes()
    assert len(seven_bit_text(content).encode("utf-8")) <= WORST * len(content)
    assert len(base64_text(content)) > 1.33 * len(content)


@pytest.mark.parametrize("kind", [">f4", "<f4", "u1", "<u2"])
def test_arrays_are_deflated_behind_each_other(kind):
    first, second = np.arange(7, dtype=kind), np.arange(5, dtype=np.uint8)
    content = inflate(deflate(first, second))
    size = first.nbytes
    assert np.frombuffer(content[:size], dtype=np.dtype(kind).newbyteorder("<")).tolist() == first.tolist()
    assert list(content[size:]) == second.tolist()


def test_what_cannot_be_deflated_hardly_grows():
    content = np.random.default_rng(0).integers(0, 256, 100_000, dtype=np.uint8)
    assert len(deflate(content)) < 1.001 * content.nbytes
