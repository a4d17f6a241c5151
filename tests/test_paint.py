"""Colours: ink means weight, and text reads on every one of them."""

from itertools import pairwise

import pytest

from attnscope import paint


@pytest.mark.parametrize("dark", [False, True])
def test_more_weight_is_always_more_ink(dark):
    lights = [paint.luminance(colour) for colour in paint.sequential(dark=dark)]
    assert len(lights) == 256
    ordered = lights if dark else lights[::-1]
    assert all(before < after for before, after in pairwise(ordered[::4]))
    assert all(before <= after for before, after in pairwise(ordered))


@pytest.mark.parametrize("dark", [False, True])
def test_text_reads_on_every_colour(dark):
    for background in paint.sequential(dark=dark):
        light, other = sorted(map(paint.luminance, (background, paint.ink(background))))
        assert (other + 0.05) / (light + 0.05) >= 4.5


@pytest.mark.parametrize("dark", [False, True])
def test_ink_flips_once(dark):
    inks = [paint.ink(colour) for colour in paint.sequential(dark=dark)]
    assert sum(before != after for before, after in pairwise(inks)) == 1
    assert inks[0] == ("#ffffff" if dark else "#000000")


def test_scale_is_linear_from_zero():
    assert [paint.step(value, 2.0) for value in (-1.0, 0.0, 1.0, 2.0, 3.0)] == [0, 0, 128, 255, 255]
    assert paint.step(1.0, 0.0) == 0
    assert paint.colour(1.0, 1.0) == paint.sequential()[255]


def test_known_colours_of_oklch():
    assert paint.oklch(1.0, 0.0, 0.0) == "#ffffff"
    assert paint.oklch(0.0, 0.0, 0.0) == "#000000"
    red = paint.rgb(paint.oklch(0.627955, 0.257683, 29.2339))
    assert max(abs(byte - expected) for byte, expected in zip(red, (255, 0, 0), strict=True)) <= 1


def test_style_rules_have_every_step_with_its_ink():
    rules = paint.style_rules(dark=True)
    assert rules.count("{") == 256
    background = paint.sequential(dark=True)[200]
    assert f".w200{{background:{background};color:{paint.ink(background)}}}" in rules
