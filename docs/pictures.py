"""Makes the pictures of the docs again, in Chromium through Playwright, from the demo model and two real ones.

    python docs/pictures.py --minilm FOLDER --smollm2 FOLDER [NAME...]

FOLDER holds sentence-transformers/all-MiniLM-L6-v2 and HuggingFaceTB/SmolLM2-135M; hub names work as well. Where one is
missing, the demo model stands in for it. NAMEs make only these pictures. All texts are our own.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from functools import cache
from io import BytesIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

import attnscope
from attnscope import views
from attnscope.demo import run_demo
from attnscope.explaining import explain
from attnscope.syntax import agreement_sentences

IMAGES = Path(__file__).with_name("images")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run", "--hide-scrollbars"]
COLOURS = 256
"""Colours that a picture keeps: flat inks on a flat ground need no more."""
DENSITY = 2

HUNGRY = "The dog chased the cat because it was hungry."
PARIS = "Anna moved from Rome to Oslo. Two years later Anna moved from"
PAIR = ("Where did the old captain sail?", "The old captain sailed to the islands.")
KEYS = "the key to the cabinets"

Picture = tuple[views.View, Callable[[Page], None]]
"""A view, and what is done to it before it is taken."""

MODELS = {"demo": "demo", "minilm": "demo", "smollm2": "demo"}


@cache
def model(name: str) -> Any:
    """A model, loaded once."""
    return attnscope.load(MODELS[name])


@cache
def record(name: str, text: Any, **more: Any) -> Any:
    """A record, taken once."""
    return model(name).record(text, **more)


def position(found: Any, token: str, last: bool = False) -> int:
    """Where a token stands; the first token where it does not (the demo model has other words)."""
    places = [place for place, one in enumerate(found.key_tokens) if one.strip("Ġ▁#").lower() == token]
    return places[-1 if last else 0] if places else 1


def untouched(_: Page) -> None:
    """Leaves a view as it opens."""


def pointed(selector: str, text: str) -> Callable[[Page], None]:
    """Points at the token with this text, if it is there."""

    def act(page: Page) -> None:
        tokens = page.locator(f"{selector} .token").filter(has_text=text)
        if tokens.count():
            tokens.last.hover()

    return act


# ---- the pictures: each a view, and what is done to it before it is taken


def head() -> Picture:
    """A token pointed at, without special tokens."""
    view = views.head(record("minilm", HUNGRY), layer=-2)

    def act(page: Page) -> None:
        page.get_by_role("checkbox", name="Special tokens").click()
        pointed(".tokens.queries", "it")(page)

    return view, act


def pair() -> Picture:
    """From the first sentence of a pair to the second, in dark mode."""
    view = views.head(record("minilm", PAIR), layer=2)

    def act(page: Page) -> None:
        page.get_by_role("combobox", name="Sentences").select_option("01")

    return view, act


def model_() -> Picture:
    """All heads."""
    return views.model(record("minilm", HUNGRY)), untouched


def neuron() -> Picture:
    """A query of a model with rotary embedding and grouped queries."""
    found = record("smollm2", PARIS, queries_and_keys=True)
    view = views.neuron(found, layer=min(5, found.layers[-1]), head=0)

    def act(page: Page) -> None:
        page.keyboard.press("Escape")

    return view, act


def flow() -> Picture:
    """From one token to another."""
    found = record("minilm", HUNGRY)
    return views.flow(found, query=position(found, "it"), key=position(found, "dog")), untouched


def tracing() -> Picture:
    """All heads, traced from the read-out."""
    return views.tracing(record("minilm", HUNGRY)), untouched


def scores() -> Picture:
    """Every method on the next word of a language model."""
    explained = explain(model("smollm2"), PARIS)
    return views.scores(explained.comparison, record=explained.record), untouched


def survey() -> Picture:
    """The roles of the heads, and one head pinned."""
    surveyed = attnscope.survey(model("minilm"), "demo", limit=128)
    roles = surveyed["roles"].result().sort_values("value")
    named = roles[roles["role"].str.contains("nouns|subject|determiners")]
    best = (named if len(named) else roles).iloc[-1]

    def act(page: Page) -> None:
        page.evaluate(f"attnscopeHost.models[0].set('pinned', [[{best.layer}, {best['head']}]])")

    return surveyed.view(), act


def scores_demo() -> Picture:
    """Every method on a classifier, with the trust in some."""
    sentences = [" ".join(drawn.prefix) for drawn in islice(agreement_sentences(10**9 + 7), 16)]
    measured = attnscope.trust(model("demo"), sentences, methods=["raw", "rollout", "flow"])
    explained = explain(model("demo"), KEYS)
    return views.scores(explained.comparison, record=explained.record, trust=measured), untouched


def of_the_page(section: str) -> views.View:
    """The view that the code of a section of the page on views makes."""
    page = IMAGES.with_name("views.md").read_text(encoding="utf-8").split(f"## {section}\n", 1)[1]
    names: dict[str, Any] = {}
    with TemporaryDirectory() as folder, chdir(folder):
        exec(page.split("```python\n", 1)[1].split("```", 1)[0], names)  # noqa: S102 - our own page
    return names["view"]


def image() -> Picture:
    """The made-up picture that the page on views shows."""
    return of_the_page("Image"), untouched


def learning() -> Picture:
    """The training that the page on views shows, at one of its steps."""
    return of_the_page("Learning").selecting(step=50), untouched


def long() -> Picture:
    """Two heads in the middle of a long text, without what is small."""
    sentences = " ".join(f"{' '.join(drawn.prefix)}." for drawn in islice(agreement_sentences(7), 36))
    found = record("minilm", sentences)
    view = views.head(
        found, layer=min(2, found.layers[-1]), heads=[8, 11] if len(found.heads) > 11 else None, keys_per_query=16
    )

    def act(page: Page) -> None:
        page.get_by_role("checkbox", name="Special tokens").click()
        page.locator(".area").evaluate("area => (area.scrollTop = area.scrollHeight / 3)")

    return view, act


def answer() -> Picture:
    """The answer of the page on views, by the model that is given, its year pinned."""
    page = IMAGES.with_name("views.md").read_text(encoding="utf-8").split("## Answer\n", 1)[1]
    code = page.split("```python\n", 1)[1].split("```", 1)[0]
    names: dict[str, Any] = {"given": model("smollm2")}
    exec(re.sub(r"attnscope\.load\([^)]*\)", "given", code), names)  # noqa: S102 - our own page
    view = views.answer(names["answer"], methods=["rollout", "raw", "gradient_x_input"], drops="document")
    texts = view.payload["tokens"]
    years = [word for word in view.payload["words"] if "1854" in "".join(texts[place] for place in word)]
    return view.selecting(queries=years[0] if years else []), untouched


VIEWS = {
    "answer": (answer, 1200, "light"),
    "head": (head, 900, "light"),
    "pair": (pair, 900, "dark"),
    "model": (model_, 900, "light"),
    "neuron": (neuron, 1000, "light"),
    "flow": (flow, 940, "light"),
    "tracing": (tracing, 1100, "light"),
    "scores": (scores, 1100, "light"),
    "scores-demo": (scores_demo, 900, "light"),
    "image": (image, 900, "light"),
    "survey": (survey, 1000, "light"),
    "learning": (learning, 1216, "light"),
    "long": (long, 800, "light"),
}
ENDS = {"survey": "h4:has-text('Its largest weights')"}
"""Where a picture ends that would be too tall: above this."""
PRINTED = {"printed": lambda: views.flow(record("demo", KEYS), key=position(record("demo", KEYS), "key")).figure()}


# ---- taking them


@contextmanager
def opened(browser: Browser, file: Path, width: int, scheme: str = "light", height: int = 1400) -> Iterator[Page]:
    """A page of this width, drawn."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, device_scale_factor=DENSITY, color_scheme=scheme
    )
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("[data-drawn]")
    yield page
    context.close()


def kept(content: bytes, file: Path) -> None:
    """Writes a PNG in few colours, or as it is where Pillow is missing."""
    try:
        from PIL import Image
    except ImportError:
        file.write_bytes(content)
    else:
        image = Image.open(BytesIO(content)).convert("RGB")
        # by coverage, not by frequency: the few pixels of a head's own colour matter as much as the ground
        few = image.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
        few.save(file, optimize=True)
    sys.stdout.write(f"{file.name}: {file.stat().st_size / 1000:.0f} kB\n")
    sys.stdout.flush()


def taken(browser: Browser, name: str, folder: Path) -> None:
    """The picture of one view: the view alone, without the foot where the table is folded."""
    make, width, scheme = VIEWS[name]
    view, act = make()
    with opened(browser, view.save(folder / f"{name}.html"), width, scheme) as page:
        act(page)
        page.wait_for_timeout(400)
        box = page.locator("[data-drawn]").bounding_box()
        foot = page.locator(ENDS.get(name, ".foot")).first.bounding_box()
        clip = {"x": box["x"] - 8, "y": box["y"] - 4, "width": box["width"] + 16, "height": foot["y"] - box["y"] + 4}
        kept(page.screenshot(clip=clip, full_page=True), IMAGES / "views" / f"{name}.png")


def demo_pages(browser: Browser, folder: Path) -> None:
    """The top of the demo's report, and its map of heads."""
    result = run_demo(folder)
    for file, name, height in ((result.report, "report", 930), (result.head_map, "survey", 580)):
        with opened(browser, file, 1080, height=height) as page:
            page.wait_for_timeout(400)
            kept(page.screenshot(), IMAGES / f"{name}.png")


@contextmanager
def served() -> Iterator[str]:
    """The address of the app with the demo model, while it is served."""
    code = "from attnscope.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:  # noqa: S603
        yield (process.stdout.readline() if process.stdout else "").split()[1]
        process.terminate()


def app_pages(browser: Browser) -> None:
    """The app: one text under every method, and two beside each other in the dark."""
    beside = (
        "#model=demo&text=the+key+to+the+cabinets&view=head&pane=2&model=demo&text=the+keys+to+the+cabinet&view=head"
    )
    with served() as address:
        for name, place, width, scheme in (("scores", "", 1080, "light"), ("compare", beside, 1400, "dark")):
            context = browser.new_context(
                viewport={"width": width, "height": 900}, device_scale_factor=DENSITY, color_scheme=scheme
            )
            page = context.new_page()
            page.goto(address + place)
            page.wait_for_selector("body:has([data-drawn]):not(:has([data-pane][aria-busy=true]))")
            page.wait_for_timeout(1000)
            kept(page.screenshot(), IMAGES / "app" / f"{name}.png")
            context.close()


def main() -> None:
    """Make all pictures, or those that are named."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*VIEWS, *PRINTED, "pages", "app"]))
    for name in ("minilm", "smollm2"):
        asked.add_argument(f"--{name}", default="demo", metavar="FOLDER")
    given = asked.parse_args()
    MODELS.update(minilm=given.minilm, smollm2=given.smollm2)
    for folder in ("views", "app"):
        (IMAGES / folder).mkdir(parents=True, exist_ok=True)
    wanted = given.names or [*VIEWS, *PRINTED, "pages", "app"]
    with TemporaryDirectory() as made, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name in wanted:
            if name in VIEWS:
                taken(browser, name, Path(made))
            elif name in PRINTED:
                kept(PRINTED[name]()._repr_png_(), IMAGES / "views" / f"{name}.png")
            elif name == "app":
                app_pages(browser)
            else:
                demo_pages(browser, Path(made))
        browser.close()


if __name__ == "__main__":
    main()
