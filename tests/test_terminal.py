"""Tokens on a terminal, with colours and without."""

import io

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from attnscope import paint
from attnscope.terminal import (
    STEERING,
    PlainConsole,
    has_dark_ground,
    number_tokens,
    paint_scores,
    paint_token,
    visible,
)

TOKENS, SPECIAL, SCORES = ["[CLS]", " key", "s"], [True, False, False], [0.5, 0.25, 0.0]


def background(text, token):
    start = text.plain.index(token)
    span = next(span for span in text.spans if span.start <= start < span.end)
    return str(span.style).split(" on ")[1]


@pytest.mark.parametrize("dark", [False, True])
def test_colour_is_the_score(dark):
    text = paint_token(TOKENS, SPECIAL, SCORES, 0.5, dark=dark)
    scale = paint.sequential(dark=dark)
    assert [background(text, token) for token in ("[CLS]", "key", "s ")] == [scale[255], scale[128], scale[0]]


def test_ink_reads_on_its_background():
    for span in paint_token(TOKENS, SPECIAL, SCORES, 0.5).spans:
        foreground, ground = str(span.style).removeprefix("italic ").split(" on ")
        assert foreground == paint.ink(ground)


def test_special_tokens_are_told_apart():
    spans = paint_token(TOKENS, SPECIAL, SCORES, 0.5).spans
    assert [str(span.style).startswith("italic") for span in spans] == SPECIAL
    assert number_tokens(TOKENS, SPECIAL, SCORES).plain.startswith("‹[CLS]› 0.500  key 0.250")


def test_markup_in_a_token_stays_text():
    assert "[bold]" in paint_token(["[bold]"], [False], [1.0], 1.0).plain


def test_a_log_gets_numbers_and_no_escapes():
    file = io.StringIO()
    console = Console(file=file, width=200)
    console.print(paint_scores(console, TOKENS, SPECIAL, SCORES, 0.5))
    assert file.getvalue() == "‹[CLS]› 0.500  key 0.250  s 0.000\n"


def test_a_terminal_gets_colours():
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", no_color=False)
    assert "0.500" not in paint_scores(console, TOKENS, SPECIAL, SCORES, 0.5).plain


@pytest.mark.parametrize("options", [{"color_system": "truecolor", "no_color": True}, {"color_system": "standard"}])
def test_without_enough_colours_there_are_numbers(options):
    console = Console(file=io.StringIO(), force_terminal=True, **options)
    assert "0.500" in paint_scores(console, TOKENS, SPECIAL, SCORES, 0.5).plain


def test_ground_is_dark_unless_told():
    assert has_dark_ground({})
    assert has_dark_ground({"COLORFGBG": "15;0"})
    assert not has_dark_ground({"COLORFGBG": "0;default;15"})


@pytest.mark.parametrize(
    "steering", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\r", "\u202e", "\u2066", "\x7f", "\udc80"]
)
def test_nothing_that_is_printed_steers_the_terminal(steering, monkeypatch):
    assert not STEERING.search(visible(f"a{steering}b\n\tc"))
    assert visible("a\n\té 語 👩‍🚀") == "a\n\té 語 👩‍🚀"
    console = PlainConsole()
    console.file = io.StringIO()
    table = Table("label", box=None)
    table.add_row(f"cell{steering}")
    for thing in (f"[bold]text{steering}", Text(f"styled{steering}"), table):
        console.print(thing)
    told = console.file.getvalue()
    assert not STEERING.search(told)
    assert "[bold]text" in told
