"""Debian's Chromium for the browser tests: a page, and what it asked for and complained about."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
OFFLINE = ("file:", "data:", "blob:", "about:")
PATIENCE = 120_000
"""Milliseconds that anything may take: a busy machine is no failure."""
SECONDS_TO_FOLLOW = 15
"""A view draws itself anew when its width has changed, as soon as the machine lets it."""
expect.set_options(timeout=PATIENCE)


def settled(page: Page) -> Page:
    """Wait until no view works; what an action asks of a view is marked as work before the action returns."""
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    return page


def found_at_rest(page: Page, script: str, nothing: object) -> object:
    """What a script finds amiss: nothing as soon as it finds that, else what is left when a view had time to follow."""
    deadline = time.monotonic() + SECONDS_TO_FOLLOW
    while (found := settled(page).evaluate(script)) != nothing and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    return found


@dataclass
class Seen:
    """What a page did beside drawing: requests that leave the file, and errors in its console."""

    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for the whole run."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is missing: install Debian's package chromium to run the browser tests.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def seen() -> Seen:
    """Filled by `page` while the test runs; a view that works offline leaves it `Seen()`."""
    return Seen()


@pytest.fixture(scope="session")
def window(browser: Browser) -> BrowserContext:
    """One window for all pages, which an empty one keeps open: Chromium takes a second to make another."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    context.new_page()
    return context


@pytest.fixture
def page(window: BrowserContext, seen: Seen) -> Iterator[Page]:
    """A fresh page whose outside requests and errors are in `seen`; views keep nothing in the browser."""
    page = window.new_page()
    page.on("request", lambda request: request.url.startswith(OFFLINE) or seen.requests.append(request.url))
    page.on("console", lambda message: message.type != "error" or seen.errors.append(message.text))
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    yield page
    for opened in window.pages[1:]:
        opened.close()
    window.clear_cookies()
    window.clear_permissions()
