"""Texts to measure on: a file with one text to a line, JSON lines, or sentences of our own grammar."""

import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ..errors import BadInput
from ..syntax import agreement_sentences

DEMO = "demo"
DEMO_TEXTS = 200
"""How many sentences "demo" is unless a limit says otherwise; the grammar itself has no end."""


def read_texts(corpus: str, limit: int | None = None) -> list[str]:
    """The first texts of a corpus: "demo", a text file (one text to a line) or JSON lines with "text"; also gzipped.

    Empty lines are skipped. "demo" gives sentences of the grammar up to the verb, as the demo model reads them.
    """
    if limit is not None and limit < 1:
        raise BadInput(f"A limit is at least one text, not {limit}.")
    if corpus == DEMO:
        return list(islice(_demo_texts(), limit or DEMO_TEXTS))
    texts = list(islice(_file_texts(Path(corpus)), limit))
    if not texts:
        raise BadInput(f"There is no text in {corpus}.")
    return texts


def _demo_texts() -> Iterator[str]:
    return (" ".join(drawn.prefix) for drawn in agreement_sentences(seed=0))


def _file_texts(path: Path) -> Iterator[str]:
    if not path.is_file():
        raise BadInput(f'There is no corpus {str(path)!r}: give a file with one text to a line, or "{DEMO}".')
    names = path.suffixes
    compressed = names[-1:] == [".gz"]
    as_json = ".jsonl" in names[-2:]
    try:
        with gzip.open(path, "rt", encoding="utf-8") if compressed else path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                text = _text_of(line, path, number) if as_json and line.strip() else line.strip()
                if text:
                    yield text
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise BadInput(f"{path} is not text in UTF-8, or is damaged.") from error


def _text_of(line: str, path: Path, number: int) -> str:
    try:
        text = json.loads(line)["text"]
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(f'Line {number} of {path} is not a JSON object with "text".') from error
    if not isinstance(text, str):
        raise BadInput(f'Line {number} of {path} has a "text" that is not a string.')
    return text.strip()
