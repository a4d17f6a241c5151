"""A real browser that opens pages from the loopback interface and tells when something was first to be seen."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ..errors import BadInput

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
