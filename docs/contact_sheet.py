"""Shoots every view, page and printed figure at four widths, light and dark, at four lengths, alone and compared.

    python docs/contact_sheet.py [NAME...] [--widths 390,1300] [--lengths 8,160] [--schemes dark] [--model FOLDER]
        [--second FOLDER] [--classifier FOLDER --texts FILE.tsv]

NAMEs are views and pages: a report, what a classifier answers (`classifier`) and gets wrong (`mistakes`). Compared are
two models, or one on two texts. FILE holds the texts of the classifier with their labels. Each picture is a PNG in
`contact-sheet/`, which is kept out of git, and is called after what it shows, `head-160-dark-390.png` or
`head-160-compare-light-1900.png`; index.html lays them out, a section for each.

Without a model, short texts are read by the shipped one, and long ones are made up: their heads look at the token
before, at the same word, at special tokens or broadly, as heads of real models do. Texts are our own.
"""

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from html import escape
from itertools import cycle, islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from playwright.sync_api import Browser, Page, sync_playwright

import attnscope
from attnscope import AttentionRecord, compare, views
from attnscope.errors import BadInput
from attnscope.evaluation import mistakes
from attnscope.explaining import explain
from attnscope.record.segments import Segments, Span, TokenSegments
from attnscope.report import write_report
from attnscope.report.mistakes import write_mistakes
from attnscope.syntax import agreement_sentences

FOLDER = Path(__file__).parent.parent / "contact-sheet"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run", "--hide-scrollbars"]
WIDTHS = (390, 768, 1300, 1900)
LENGTHS = (8, 25, 160, 500)
SCHEMES = ("light", "dark")
TALLEST = 4000
"""Pixels of a page that a picture shows."""
LAYERS, HEADS, DIMENSIONS = 6, 12, 32
"""Of a made-up record."""
MISTAKEN, LABELLED = 8, 100
"""Texts of the page of mistakes: our own, and of a file at most."""
SECONDS = 60
"""What slow methods may take on one page."""
SHIPPED_LENGTH = 64
"""Tokens that the shipped model reads."""
COMPARED = """@media (min-width: 1100px) {
  main { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 48px; align-items: start; }
  main > section.attnscope { margin: 0; padding-top: 0; border-top: 0; }
  body.attnscope-page { max-width: 1832px; }
}"""
"""Two views beside each other where the app puts two panes so."""
OTHER_WORDS = (
    "nobody in the long corridor of the museum noticed that two of the smaller paintings had been hung upside down"
    " until a child laughed , pointed at them and asked whether the boats were meant to sail on the clouds ."
).split()
WORDS = (
    "the old keys to the wooden cabinets in a small kitchen were never found by the people who lived there , although"
    " they had been looking for them everywhere since the unexpectedly rainy morning of the departure ."
).split()


# ---- what is looked at: a record of any length, and each view of it


def tokens_of(length: int, *, other: bool = False) -> tuple[str, ...]:
    """So many tokens of a running text, or of another one, between two special ones."""
    return ("[CLS]", *islice(cycle(OTHER_WORDS if other else WORDS), max(length - 2, 0)), "[SEP]")[:length]


def made_up_record(length: int, *, vectors: bool = False, other: bool = False) -> AttentionRecord:
    """A record of so many tokens in which heads do what heads do, with some noise; `other` is another to compare."""
    tokens = tokens_of(length, other=other)
    random = torch.Generator().manual_seed(length + 1000 * other)
    places = torch.arange(length)
    apart = places.unsqueeze(0) - places.unsqueeze(1)
    same = torch.tensor([[one == other for other in tokens] for one in tokens])
    special = torch.tensor([token.startswith("[") for token in tokens])
    habits = [
        4.0 * (apart == -1),
        4.0 * (apart == 1),
        5.0 * special.expand(length, length),
        3.0 * same,
        -0.3 * apart.abs().clamp(max=12).float(),
        0.0 * apart,
    ]
    logits = torch.stack(
        [
            torch.stack([habits[(layer + head + 2 * other) % len(habits)] + 2.0 * special for head in range(HEADS)])
            + torch.randn(HEADS, length, length, generator=random)
            for layer in range(LAYERS)
        ]
    )
    shape = (LAYERS, HEADS, length, DIMENSIONS)
    more = {
        "queries": torch.randn(shape, generator=random),
        "keys": torch.randn(shape, generator=random),
        "scaling": (DIMENSIONS**-0.5,) * LAYERS,
    }
    if vectors:
        logits = more["queries"] @ more["keys"].transpose(-1, -2) * DIMENSIONS**-0.5
    return AttentionRecord(
        weights=logits.softmax(-1),
        query_tokens=tokens,
        key_tokens=tokens,
        query_special=tuple(special.tolist()),
        key_special=tuple(special.tolist()),
        stack="encoder",
        causal=False,
        readout=torch.eye(length)[0],
        prediction=(("singular", 0.8), ("plural", 0.2)),
        text=" ".join(token for token in tokens if not token.startswith("[")),
        card={"model": "another made-up model" if other else "a made-up model"},
        **(more if vectors else {}),
    )


@cache
def loaded(model: str) -> Any:
    """A model, loaded once."""
    return attnscope.load(model)


@cache
def record_of(model: str | None, length: int, *, vectors: bool = False, other: bool = False) -> AttentionRecord:
    """A record of about so many tokens, by a model, or `made up`; `vectors` are its queries and keys."""
    if model == "made up" or (model is None and length > SHIPPED_LENGTH):
        return made_up_record(length, vectors=vectors, other=other)
    if model is None:
        drawn = " ".join(" ".join(drawn.prefix) for drawn in islice(agreement_sentences(7 + other), 12)).split()
    else:
        drawn = list(islice(cycle(OTHER_WORDS if other else WORDS), length))
    reader = loaded(model or "demo")
    words = len(drawn)
    while len(reader.record(" ".join(drawn[: min(words, length)])).key_tokens) > length and words > 1:
        words = min(words, length) - 1
    return reader.record(" ".join(drawn[: min(words, length)]), queries_and_keys=vectors)


@cache
def shown_survey() -> views.View:
    """The survey of the shipped model, with one head pinned."""
    return attnscope.survey(loaded("demo"), "demo", limit=64).view().selecting(pinned=[[1, 1]])


@cache
def shown_training() -> views.View:
    """A made-up training: three models, four quantities."""
    steps = np.arange(0, 401, 10)
    curves = {"loss": np.exp(-steps / 90), "accuracy": 1 - np.exp(-steps / 120) / 2, "entropy": 2 - steps / 400}
    rows = [
        {"step": int(step), "quantity": name, "value": float(value * (1 + number / 10)), "name": f"run {number}"}
        for number in range(3)
        for name, values in curves.items()
        for step, value in zip(steps, values, strict=True)
    ]
    return views.learning(rows, title="A made-up training")


def shown_image() -> views.View:
    """Scores of the patches of a made-up image."""
    across, down = np.meshgrid(np.linspace(0, 1, 96), np.linspace(0, 1, 96))
    pixels = (255 * np.stack([across, down, 1 - across], axis=-1)).astype(np.uint8)
    record = made_up_record(36 + 2)  # two are special
    return views.image(compare(record, methods=["raw", "rollout"]), pixels, grid=(6, 6))


def shown_answer(length: int) -> views.View:
    """A made-up answer to made-up documents of about so many tokens, without the model that gave it."""
    words = [f" {word}" for word in islice(cycle(WORDS), max(length, 24))]
    starts = np.cumsum([0, *map(len, words)])
    ends, each = len(words) - 8, max((len(words) - 8) // 3, 4)
    spans = [(int(starts[at]), int(starts[min(at + each, ends)])) for at in range(0, ends, each)]
    text = "".join(words)
    documents = [Span(*span, f"Document {number}", "document") for number, span in enumerate(spans, 1)]
    segments = Segments(text, {"document": (*documents, Span(int(starts[ends]), len(text), "answer", "answer"))})
    offsets = tuple(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
    seen = made_up_record(len(words)).weights.tril()
    held = replace(
        AttentionRecord.from_weights(seen / seen.sum(-1, keepdim=True), [word.strip() for word in words], causal=True),
        segments=TokenSegments(segments.sentences(), offsets),
        card={"model": "a made-up model", "prompt_tokens": ends},
    )
    return views.answer(attnscope.Answer(record=held, log_probabilities=torch.full((8,), -0.5)))


def view_of(name: str, model: str | None, length: int, *, other: bool = False) -> views.View:
    """A view on a text of this length, or on another; one that is not named here is of a record, as most are."""
    if name == "answer":
        return shown_answer(length)
    others = {"survey": shown_survey, "learning": shown_training, "image": shown_image}
    if name in others:
        return others[name]()
    record = record_of(model, length, vectors=name == "neuron", other=other)
    if name == "scores":
        return views.scores(compare(record), record=record)
    return views.VIEWS[name](record)


# ---- pages


def view_page(name: str, given: argparse.Namespace, length: int, folder: Path, *, compared: bool) -> Path:
    """The page of one view, or of two beside each other as the app compares two models or two texts."""
    view = view_of(name, given.model, length)
    file = folder / f"{name}-{length}{'-compare' * compared}.html"
    if not compared:
        return view.save(file)
    # another model reads the same text; the same model reads another
    second = view_of(name, given.second or given.model, length, other=given.second is None)
    return views.write_page(file, [view, second], f"{view.title} beside {second.title}", style=COMPARED)


def report_page(given: argparse.Namespace, length: int, folder: Path) -> Path:
    """The report on one text, by the methods that need no model."""
    return write_report(folder / f"report-{length}.html", record_of(given.model, length))


def labelled_texts(given: argparse.Namespace, length: int) -> tuple[list[str], list[str]]:
    """Some texts of this length for a classifier, with their labels; a long text is one that goes on."""
    if given.texts is None:
        texts = [" ".join(drawn.prefix) for drawn in islice(agreement_sentences(11), MISTAKEN)]
        # labels that take turns are wrong for some of any texts
        labels = list(islice(cycle(loaded(given.classifier or "demo").labels), MISTAKEN))
    else:
        rows = [line.split("\t") for line in given.texts.read_text(encoding="utf-8").splitlines()[1:]]
        texts, labels = [row[0] for row in rows][:LABELLED], [row[1] for row in rows][:LABELLED]
    most = length if given.classifier else min(length, SHIPPED_LENGTH - 4)
    return [" ".join(islice(cycle(text.split()), most)) for text in texts], labels


def classifier_page(given: argparse.Namespace, length: int, folder: Path) -> Path:
    """What a classifier answers to one text, by every method that is quick enough."""
    text = labelled_texts(given, length)[0][0]
    explained = explain(loaded(given.classifier or "demo"), text, budget=SECONDS, truncate=True)
    return write_report(folder / f"classifier-{length}.html", explained)


def mistakes_page(given: argparse.Namespace, length: int, folder: Path) -> Path:
    """What a classifier gets wrong."""
    found = mistakes(loaded(given.classifier or "demo"), *labelled_texts(given, length), budget=SECONDS, truncate=True)
    return write_mistakes(folder / f"mistakes-{length}.html", found)


PAGES: dict[str, Callable[[argparse.Namespace, int, Path], Path]] = {
    "report": report_page,
    "classifier": classifier_page,
    "mistakes": mistakes_page,
}
OF_NO_TEXT = ("survey", "learning", "image")
"""Views whose size no text decides: one length is enough."""


# ---- taking them


def shots(page: Page, widths: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """The page as it stands at each width, all of it down to `TALLEST`, with what is folded unfolded."""
    page.evaluate("document.querySelectorAll('details.folded').forEach((one) => (one.open = true))")
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(400)
        page.locator("body:not(:has([aria-busy=true]))").wait_for()
        height = min(page.evaluate("document.documentElement.scrollHeight"), TALLEST)
        clip = {"x": 0, "y": 0, "width": width, "height": height}
        yield width, page.screenshot(clip=clip, full_page=True)


def shoot(browser: Browser, file: Path, given: argparse.Namespace) -> Iterator[str]:
    """Takes a page in each scheme and width; gives the names of the pictures."""
    for scheme in given.schemes:
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(file.as_uri())
        page.locator("body:not(:has(section[data-view]:not(:has([data-drawn])):not([data-drawn])))").wait_for()
        for width, content in shots(page, given.widths):
            name = f"{file.stem}-{scheme}-{width}.png"
            (given.folder / name).write_bytes(content)
            yield name
        context.close()


def printed(name: str, given: argparse.Namespace) -> Iterator[str]:
    """The printed figures of a view, at each length that a figure holds, as wide as fits and as a column."""
    for length, (what, inches) in product(lengths_of(name, given), (("fits", None), ("column", 3.3))):
        file = given.folder / f"{name}-{length}-printed-{what}.png"
        try:
            file.write_bytes(view_of(name, given.model, length).figure(inches)._repr_png_())
        except BadInput as refused:
            sys.stderr.write(f"{file.stem}: {refused}\n")
        else:
            yield file.name


def lengths_of(name: str, given: argparse.Namespace) -> Sequence[int]:
    """The lengths at which something is looked at."""
    return given.lengths[:1] if name in OF_NO_TEXT else given.lengths


def pictures_of(name: str, browser: Browser, made: Path, given: argparse.Namespace) -> Iterator[str]:
    """All pictures of one view or page."""
    for length in lengths_of(name, given):
        if name in PAGES:
            yield from shoot(browser, PAGES[name](given, length, made), given)
            continue
        for compared in given.compare:
            yield from shoot(browser, view_page(name, given, length, made, compared=compared), given)
    if name not in PAGES:
        yield from printed(name, given)


def index_html(pictures: dict[str, list[str]]) -> str:
    """All pictures, a section for each name; a click shows one in its own size."""
    sections = (
        f"<h2>{escape(name)}</h2>"
        + "".join(
            f'<figure><a href="{file}"><img src="{file}" loading=lazy></a>'
            f"<figcaption>{escape(file[:-4])}</figcaption></figure>"
            for file in files
        )
        for name, files in pictures.items()
    )
    style = "figure{display:inline-block;vertical-align:top;margin:8px}img{max-width:460px;border:1px solid #888}"
    return f"<!doctype html><meta charset=utf-8><title>Contact sheet</title><style>{style}</style>{''.join(sections)}"


def numbers(text: str) -> list[int]:
    """Numbers between commas."""
    return [int(one) for one in text.split(",")]


def main() -> None:
    """Take all pictures, or those that are named."""
    every = [*views.VIEWS, *PAGES]
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("names", nargs="*", metavar="NAME", help=", ".join(every))
    asked.add_argument("--widths", type=numbers, default=list(WIDTHS))
    asked.add_argument("--lengths", type=numbers, default=list(LENGTHS))
    asked.add_argument("--schemes", type=lambda text: text.split(","), default=list(SCHEMES))
    asked.add_argument("--compare", type=lambda text: {"yes": [True], "no": [False]}[text], default=[False, True])
    asked.add_argument("--model", metavar="FOLDER", help="a model in place of the shipped one and of made-up records")
    asked.add_argument("--second", metavar="FOLDER", help="a model to compare with it, on the same text")
    asked.add_argument("--classifier", metavar="FOLDER", help="a classifier in place of the shipped one")
    asked.add_argument("--texts", type=Path, metavar="FILE.tsv", help="its texts and their labels, below a heading")
    asked.add_argument("--folder", type=Path, default=FOLDER)
    given = asked.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, list[str]] = {}
    with TemporaryDirectory() as made, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name in given.names or every:
            pictures[name] = []
            for file in pictures_of(name, browser, Path(made), given):
                pictures[name].append(file)
                sys.stdout.write(f"{file}\n")
                sys.stdout.flush()
            (given.folder / "index.html").write_text(index_html(pictures), encoding="utf-8")
        browser.close()


if __name__ == "__main__":
    main()
