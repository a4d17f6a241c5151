"""Dropout masks: two forms with the same bits, fair, and new in every seed, step, text and place."""

import numpy as np
import pytest

from attnscope.lab.sweep.kernels import kept_of_context, kept_of_tokens, key_of_text, write_factors


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 31, 64, 65, 100, 128])
def test_the_compiled_form_has_the_same_bits(width, kind):
    texts = np.array([0, 7, 7000])
    tokens = kept_of_tokens(222, 91, texts, 5, width)
    context = kept_of_context(222, 91, texts, width)
    found = np.empty(width, kind)
    for number, text in enumerate(texts):
        key = np.uint64(key_of_text(222, 91, text))
        write_factors(key, 0, kind(2), found)
        assert np.array_equal(found, 2 * context[number])
        for position in range(5):
            write_factors(key, position + 1, kind(2), found)
            assert np.array_equal(found, 2 * tokens[number, position])


def test_the_bits_are_those_of_the_published_generator():
    """splitmix64 seeded with 0 begins e220a8397b1dcdaf, 6e789e6aa1b965f4: one vector of 64 numbers to each word."""
    found = np.empty(64)
    for place, word in enumerate((0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4)):
        write_factors(np.uint64(0), place, 1.0, found)
        assert found.tolist() == [float(word >> bit & 1) for bit in range(64)]


def test_half_stays_and_places_do_not_agree():
    texts = np.arange(50)
    masks = kept_of_tokens(1, 2, texts, 20, 100)
    assert masks.mean() == pytest.approx(0.5, abs=0.006)  # four standard errors of 100,000 coins
    assert masks.mean((0, 1)) == pytest.approx(0.5, abs=0.08)
    for other in (kept_of_tokens(2, 2, texts, 20, 100), kept_of_tokens(1, 3, texts, 20, 100)):
        assert (masks == other).mean() == pytest.approx(0.5, abs=0.006)
    for left, right in ((masks[1:], masks[:-1]), (masks[:, 1:], masks[:, :-1]), (masks[..., 1:], masks[..., :-1])):
        assert (left == right).mean() == pytest.approx(0.5, abs=0.007)
    context = kept_of_context(1, 2, texts, 100)
    assert (context[:, None] == masks).mean() == pytest.approx(0.5, abs=0.007)


def test_a_text_has_its_masks_in_any_batch():
    whole = kept_of_tokens(5, 6, np.arange(10), 8, 70)
    assert np.array_equal(kept_of_tokens(5, 6, np.array([4, 2]), 3, 70), whole[[4, 2], :3])
