"""What the views are measured against: BertViz's own page, whole and offline, and a clock that can fail."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from attnscope import AttentionRecord, BadInput
from attnscope.bench import views
from attnscope.bench.views import OURS, THEIRS, attention_like, bertviz_html
from attnscope.views import head

needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is missing: install Debian's.")


def test_bertviz_finds_its_libraries_beside_its_page():
    html = bertviz_html([torch.full((1, 2, 3, 3), 1 / 3)], ["a", "b", "c"])
    assert 'src="/require.min.js"' in html
    assert "'/d3.min'" in html
    assert "'/jquery.min'" in html
    assert "cdnjs" not in html


def test_weights_are_attention_of_the_size_that_is_said():
    weights = attention_like(5)
    assert weights.shape == (12, 12, 5, 5)
    assert torch.allclose(weights.sum(-1), torch.ones(12, 12, 5))


def test_what_npm_cannot_fetch_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(BadInput, match=r"BertViz needs requirejs@2\.3\.6, and npm, which fetches it, is missing"):
        views.libraries()
    assert list(tmp_path.iterdir()) == []


@needs_chromium
def test_the_clock_stops_at_the_first_paint_and_gives_up_on_a_page_that_shows_nothing(monkeypatch, tmp_path):
    record = AttentionRecord.from_weights(torch.full((1, 1, 2, 2), 0.5), ["a", "b"], causal=False)
    head(record).save(tmp_path / "ours.html")
    (tmp_path / "empty.html").write_text("<!doctype html><p>nothing", encoding="utf-8")

    def clock():
        with views.chromium() as program, views.served(tmp_path) as address:
            yield views.seconds_to_first_paint(program, f"{address}/ours.html", OURS)
            monkeypatch.setattr(views, "PATIENCE", 3000)
            yield views.seconds_to_first_paint(program, f"{address}/empty.html", THEIRS)

    # In a thread of its own: Playwright allows one browser to a thread, and here that of other tests may be open.
    with ThreadPoolExecutor(1) as apart:
        ours, empty = apart.submit(list, clock()).result()
    assert ours > 0
    assert empty is None
