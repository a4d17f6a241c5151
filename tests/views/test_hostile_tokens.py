"""Tokens that try to break a figure or a page: formulas, control characters, halves of characters, tags, long ones."""

import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
import torch

from attnscope import AttentionRecord, compare
from attnscope.report import write_report
from attnscope.views import flow, head, model, scores, tracing
from attnscope.views.page import safe_json
from attnscope.views.printing import file_bytes, fit_text, text_width
from attnscope.views.sides import printable, token_texts

HOSTILE = [
    r"$\frac$", "a$b$", "b\x1b\x00\x7f", "\ud800", "\ufffe\uffff", "<script>alert(1)</script>", "\u202eevil\u2066",
    "\x85", "W" * 10_000, "]]>&amp;\"'",
]  # fmt: skip
VIEWS = {
    "head": head,
    "model": model,
    "one head": lambda record: model(record, 0, 1),
    "flow": lambda record: flow(record, 2, [3, 8]),
    "tracing": tracing,
    "one traced": lambda record: tracing(record, head=1),
    "scores": lambda record: scores(compare(record), record=record, query=2),
}
# the font of the figures has no signs for control characters: a viewer of the SVG has others
pytestmark = pytest.mark.filterwarnings("ignore:Glyph")


@pytest.fixture(scope="module")
def record():
    torch.manual_seed(0)
    count = len(HOSTILE)
    return AttentionRecord.from_weights(torch.randn(2, 2, count, count).softmax(-1), HOSTILE, causal=False, readout=0)


@pytest.mark.parametrize("name", VIEWS)
def test_figures_are_well_formed_and_of_the_size_of_a_page(record, name):
    plot = VIEWS[name](record).figure()
    tree = ET.fromstring(file_bytes(plot, "svg"))  # noqa: S314 - the file is our own
    texts = {element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")}
    if name != "model":  # which shows all heads, and no token
        assert {r"$\frac$", "a$b$", "b␛␀␡", "�", "��"} <= texts
        # each token stays within the figure
        assert plot.figure.get_tightbbox().width <= 1.02 * plot.figure.get_figwidth()
    again = VIEWS[name](record).figure()
    for kind in ("pdf", "png"):
        assert file_bytes(plot, kind) == file_bytes(again, kind)


@pytest.mark.parametrize("name", VIEWS)
def test_pages_and_tables_show_the_same_signs(record, name, tmp_path):
    view = VIEWS[name](record)
    assert view.payload["keys"]["texts"] == token_texts(HOSTILE)
    assert view.payload["keys"]["texts"][2:5] == ["b␛␀␡", "�", "��"]
    assert json.loads(safe_json(view.part.model))["payload"]["keys"]["words"][3]["text"] == "�"
    assert view.save(tmp_path / "view.html").stat().st_size > 10_000
    frame = view.to_frame()
    column = "token" if "token" in frame else "key_token"
    assert set(frame[column]) <= set(token_texts(HOSTILE))


def test_a_report_of_them_is_written(record, tmp_path):
    prediction = (("\ud800", 0.6), ("b\x1b", 0.4))
    path = write_report(tmp_path / "r.html", replace(record, text="a\nb\ud800", prediction=prediction))
    assert "<blockquote dir=auto>a\nb�</blockquote>" in path.read_text(encoding="utf-8")


def test_dollars_are_measured_as_letters():
    assert text_width("a$b$") == pytest.approx(text_width("a") + 2 * text_width("$") + text_width("b"), rel=0.05)
    assert text_width(r"$\frac$") > text_width(r"\frac") > 0


def test_a_long_text_is_cut_to_fit():
    assert fit_text("key", 1.0) == "key"
    cut = fit_text("W" * 10_000, 1.0)
    assert cut.endswith("W…")
    assert text_width(cut) <= 1.0 < text_width(cut[:-1] + "W…")


def test_every_character_that_xml_forbids_becomes_a_sign():
    every = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0xD800, 0xDFFF, 0xFFFE, 0xFFFF]))
    signs = printable(every)
    assert len(signs) == len(every)
    assert ET.fromstring(f"<a>{signs}</a>").text == signs  # noqa: S314 - the text is our own
    assert printable("שלום\u202e 👩‍👧 ⏎") == "שלום\u202e 👩‍👧 ⏎"
