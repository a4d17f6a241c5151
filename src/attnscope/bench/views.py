"""The head view beside BertViz's: the size of the saved page, and the time until it shows something."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch

from ..record import AttentionRecord
from ..views import head
from .bertviz_page import bertviz_html, libraries
from .browser import chromium, seconds_to_first_paint, served
from .figure import Figure, faster, share

LAYERS, HEADS = 12, 12
SIZES = (16, 32, 64, 128)
"""Tokens of the texts that BertViz can still do: at 256 its page would be of more than 400 MB."""
LONG = 512
GOAL = 20
ROUNDS = 5
OURS, THEIRS = "[data-drawn]", "#vis svg line"


def measure_views() -> Iterator[Figure]:
    """Size and time at each length that BertViz can do, then our own size at 512 tokens, whole and cut."""
    with TemporaryDirectory() as made, chromium() as browser, served(Path(made)) as address:
        folder = Path(made)
        for name, file in libraries().items():
            (folder / name).write_bytes(file.read_bytes())
        (folder / "empty.html").write_text("<!doctype html><title>empty</title><p>empty</p>", encoding="utf-8")
        for tokens in SIZES:
            weights = attention_like(tokens)
            names = [f"token{place}" for place in range(tokens)]
            theirs = folder / "theirs.html"
            theirs.write_text(bertviz_html(list(weights.unsqueeze(1)), names), encoding="utf-8")
            ours = head(AttentionRecord.from_weights(weights, names, causal=False)).save(folder / "ours.html")
            case = f"head view, {LAYERS} x {HEADS} x {tokens} tokens"
            sizes = [file.stat().st_size / 1e6 for file in (ours, theirs)]
            yield faster(f"{case}: file (MB)", "BertViz", sizes[0], sizes[1], GOAL, "ratio of sizes")
            pages = {"ours.html": OURS, "theirs.html": THEIRS, "empty.html": "p"}
            times = _by_turns(browser, {f"{address}/{page}": selector for page, selector in pages.items()})
            note = f"medians of {ROUNDS}; a page of one word takes {times[2]:.2f} s"
            yield faster(f"{case}: first paint", "BertViz", times[0], times[1], GOAL, note)
        names = [f"token{place}" for place in range(LONG)]
        record = AttentionRecord.from_weights(attention_like(LONG), names, causal=False)
        for form, budget, keys in (("whole", 45e6, None), ("16 keys per query", 6e6, 16)):
            file = head(record, keys_per_query=keys).save(folder / "long.html")
            seconds = seconds_to_first_paint(browser, f"{address}/long.html", OURS)
            note = "not drawn" if seconds is None else f"first paint {seconds:.2f} s"
            case = f"{LAYERS} x {HEADS} x {LONG} tokens, {form}"
            yield share(case, "what it may take", file.stat().st_size / 1e6, budget / 1e6, 1.0, note, "MB")


def attention_like(tokens: int) -> torch.Tensor:
    """Random attention that is as sharp as that of real heads: most weights small, a few large."""
    generator = torch.Generator().manual_seed(0)
    return (2 * torch.randn(LAYERS, HEADS, tokens, tokens, generator=generator)).softmax(-1)


def _by_turns(browser: object, pages: dict[str, str]) -> list[float]:
    """The median time to first paint of each page, by turns; a page that shows nothing takes for ever."""
    seconds: dict[str, list[float]] = {page: [] for page in pages}
    for _ in range(ROUNDS):
        for page, selector in pages.items():
            taken = seconds_to_first_paint(browser, page, selector)
            seconds[page].append(float("inf") if taken is None else taken)
    return [median(taken) for taken in seconds.values()]
