"""Texts to measure on: a file with one text to a line, JSON lines, or sentences of our own grammar."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ..errors import BadInput
from ..syntax import agreement_sentences, read_jsonl, read_text

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
    if ".jsonl" not in path.suffixes[-2:]:
        return read_text(path)
    return (item if isinstance(item, str) else item.text for item in read_jsonl(path))
