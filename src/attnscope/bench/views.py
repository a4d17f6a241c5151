"""The head view beside BertViz's: the size of the saved page, and the time until it shows something."""

import os
import shutil
import subprocess
import tarfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from ..errors import BadInput
from ..files import written_atomically
from ..record import AttentionRecord
from ..views import head
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


# BertViz's own head view as a page that needs no network: its three libraries come from the loopback interface.


CDN = "https://cdnjs.cloudflare.com/ajax/libs"
LIBRARIES = {
    "require.min.js": ("requirejs@2.3.6", "package/require.js", f"{CDN}/require.js/2.3.6/require.min.js"),
    "d3.min.js": ("d3@5.7.0", "package/dist/d3.min.js", f"{CDN}/d3/5.7.0/d3.min"),
    "jquery.min.js": ("jquery@2.1.0", "package/dist/jquery.min.js", f"{CDN}/jquery/2.0.0/jquery.min"),
}
"""For each file the npm package and the file in it, and the address that BertViz asks for; npm has no jQuery 2.0.0."""


def libraries() -> dict[str, Path]:
    """The three libraries in the user's cache; `npm pack` fetches what is missing, once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attnscope" / "bertviz"
    for name, (package, inside, _) in LIBRARIES.items():
        if not (cache / name).is_file():
            _fetch(package, inside, cache / name)
    return {name: cache / name for name in LIBRARIES}


def bertviz_html(weights: Sequence[Tensor], tokens: Sequence[str]) -> str:
    """BertViz's page, whole, with its libraries beside it; `weights` is a tensor `[1, head, query, key]` per layer."""
    try:
        from bertviz import head_view
    except ImportError:
        raise BadInput("This benchmark needs the peer: pip install 'attnscope[bench]'.") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves its script open
        html: str = head_view(list(weights), list(tokens), html_action="return").data
    for name, (_, _, address) in LIBRARIES.items():
        # require.js adds the suffix itself to the modules it is told of
        html = html.replace(address, f"/{name}" if address.endswith(".js") else f"/{name.removesuffix('.js')}")
    return f"<!doctype html><html><head><meta charset=utf-8></head><body>{html}</body></html>"


def _fetch(package: str, inside: str, path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise BadInput(f"BertViz needs {package}, and npm, which fetches it, is missing: install Node.js.")
    with TemporaryDirectory() as folder:
        done = subprocess.run([npm, "pack", package, "--silent"], cwd=folder, capture_output=True, text=True)  # noqa: S603, PLW1510
        packed = sorted(Path(folder).glob("*.tgz"))
        if done.returncode or not packed:
            raise BadInput(f"npm could not fetch {package}, which BertViz needs: {done.stderr.strip()[:200]}")
        with tarfile.open(packed[0]) as archive:
            member = archive.extractfile(inside)
            content = b"" if member is None else member.read()
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_atomically(path) as temporary:
        temporary.write_bytes(content)


# A real browser that opens pages from the loopback interface and tells when something was first to be seen.


FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
PATIENCE = 120_000
"""Milliseconds after which a page that shows nothing is given up."""
WATCH = """selector => {
  const told = () => (window.seenAfter = performance.now());
  const look = () => requestAnimationFrame(document.querySelector(selector) ? told : look);
  look();
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing: the figures are what is printed."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder on the loopback interface."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def chromium() -> Iterator[Any]:
    """A Chromium that stays open."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise BadInput("This benchmark drives a browser: pip install 'attnscope[bench]'.") from None
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise BadInput("This benchmark drives a browser, and Chromium is missing: install it, e.g. Debian's package.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


def seconds_to_first_paint(browser: Any, address: str, selector: str) -> float | None:
    """From the navigation until what the selector names was painted; None where it never is."""
    from playwright.sync_api import Error

    page = browser.new_page()
    try:
        page.add_init_script(f"({WATCH})({selector!r})")
        page.goto(address, timeout=PATIENCE, wait_until="commit")
        page.wait_for_function("() => window.seenAfter", timeout=PATIENCE)
        return float(page.evaluate("() => window.seenAfter")) / 1000
    except Error:
        return None  # too long, or the page has crashed: this is what is reported
    finally:
        page.close()
