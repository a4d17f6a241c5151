"""Texts to measure on: a file, a data set, or sentences of our own grammar."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from ..corpora import named_file
from ..errors import BadInput, check_number
from ..record import Model, Text
from ..syntax import agreement_sentences, texts_of

DEMO = "demo"
DEMO_TEXTS = 200
"""How many sentences "demo" is unless a limit says otherwise; the grammar itself has no end."""


def read_texts(corpus: str, limit: int | None = None, data: str | Path | None = None) -> list[str]:
    """The first texts of a corpus: "demo", a file or a data set, read as `survey` reads it.

    A file is .txt with a text to a line, .jsonl with "text" or "words", .tsv or .csv with a column "text", or .conllu;
    each also as .gz. Empty lines are skipped. "demo" gives sentences of the grammar up to the verb, as the demo model
    reads them. `data` is the folder of named data sets, before $ATTNSCOPE_DATA.
    """
    if corpus == DEMO:
        if limit is not None:
            check_number("limit", limit, 1)
        return list(islice(_demo_texts(), limit or DEMO_TEXTS))
    path, kind = named_file(corpus, data) or (corpus, None)
    return texts_of(path, limit=limit, kind=kind)


def model_and_texts(
    model: str | Model, texts: str | Path | Iterable[Text], limit: int | None = None, data: str | Path | None = None
) -> tuple[Model, list[Text]]:
    """What the commands are given by name: the model loaded and the corpus read; all else is taken as it is."""
    from ..capture import load

    if isinstance(texts, Mapping):
        raise BadInput("Texts are a list, or the name of a file or data set, not a mapping.")
    if isinstance(texts, str | Path):
        read: list[Text] = [*read_texts(str(texts), limit, data)]
    else:
        read = list(islice(texts, limit))
    return (load(model) if isinstance(model, str) else model), read


def _demo_texts() -> Iterator[str]:
    return (" ".join(drawn.prefix) for drawn in agreement_sentences(seed=0))
