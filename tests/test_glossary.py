"""The glossary: every entry has its picture, drawn by its script, and every name that an option takes has an entry."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import get_args
from xml.etree.ElementTree import fromstring

import pytest

from attnscope.attribution import METHODS
from attnscope.attribution.blank_out import REPLACEMENTS
from attnscope.capture.families import Pooling, Task
from attnscope.capture.request import HeadsKept
from attnscope.capture.verifying import Verify
from attnscope.engine import EngineName
from attnscope.evaluation.per_text import BASELINES
from attnscope.evaluation.word_tally import Scaling
from attnscope.record.attention import Stack
from attnscope.record.storage import Precision
from attnscope.record.target import Quantity
from attnscope.record.words import Level
from attnscope.statistics import STATISTICS
from attnscope.statistics.batch import NullRule

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "glossary.md"
FEWEST, MOST = 2, 4
"""Sentences of an entry."""
MOST_BYTES = 6_000
LITERALS = (EngineName, HeadsKept, Level, NullRule, Pooling, Precision, Quantity, Scaling, Stack, Task, Verify)


def entries() -> dict[str, str]:
    """The entries of the page that have a heading, each with what stands below it."""
    text = PAGE.read_text(encoding="utf-8").split("\n## In one line each")[0]
    parts = re.split(r"^### (.+)\n", text, flags=re.MULTILINE)[1:]
    return {name: re.split(r"^## ", body, flags=re.MULTILINE)[0] for name, body in zip(*[iter(parts)] * 2, strict=True)}


def sentences(body: str) -> int:
    """How many sentences an entry has, its picture and its code left out."""
    plain = re.sub(r"`[^`]*`|!\[[^]]*\]\([^)]*\)", "", body)
    return len(re.findall(r"[.?](?=\s|$)", plain))


@pytest.fixture(scope="module")
def script():
    spec = spec_from_file_location("glossary_pictures", DOCS / "glossary_pictures.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_entry_has_its_picture_and_a_few_sentences(script):
    shown = []
    for name, body in entries().items():
        (picture,) = re.findall(r"!\[[^]]+\]\((images/glossary/[\w-]+\.svg)\)", body)
        assert (DOCS / picture).is_file(), name
        shown.append((DOCS / picture).stem)
        assert FEWEST <= sentences(body) <= MOST, f"{name} has {sentences(body)} sentences"
    assert sorted(shown) == sorted(script.PICTURES), "a picture that nobody shows, or one twice"
    assert sorted(path.stem for path in (DOCS / "images" / "glossary").iterdir()) == sorted(shown)


def test_pictures_are_those_of_the_script_small_and_for_both_schemes(script):
    for name, make in script.PICTURES.items():
        content = (script.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
        assert content == script.drawn(make()), f"{name}: python docs/glossary_pictures.py draws it again"
        assert len(content.encode()) <= MOST_BYTES, name
        assert "prefers-color-scheme:dark" in content
        texts = [node for node in fromstring(content).iter() if node.tag.endswith("}text")]  # noqa: S314
        assert all(0 <= float(node.get("x")) <= script.WIDTH for node in texts), name
        assert all(0 < float(node.get("y")) <= script.HEIGHT for node in texts), name


def test_every_name_that_an_option_takes_has_an_entry():
    told = {name for body in entries().values() for name in re.findall(r"`([^`\s]+)`", body)}
    options = {value for literal in LITERALS for value in get_args(literal)}
    quoted = {value for body in entries().values() for value in re.findall(r'="(\w+)"', body)}
    missing = {*METHODS, *STATISTICS, *REPLACEMENTS, *BASELINES, *options} - told - quoted
    assert not missing


def test_the_page_is_found():
    root = DOCS.parent
    assert "glossary.md" in (root / "mkdocs.yml").read_text(encoding="utf-8")
    assert "docs/glossary.md" in (root / "README.md").read_text(encoding="utf-8")
