"""What agreement data is made from: text in files and data sets, parsed or not, or the verbs of Linzen's subset."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ...corpora import CORPORA, dataset_file
from ...errors import check_number
from ...syntax import Corpus, Sentence, sentences_of, spread
from .linzen import MarkedVerb, read_subset

SUBSET = "agreement"
"""The data set that is Linzen's subset."""

Item = Sentence | str | MarkedVerb


@dataclass(frozen=True)
class Source:
    """One file or data set: its name without its folder, how many items it has if that is known, and its files."""

    name: str
    size: int | None
    files: tuple[Path, ...]
    read: Callable[[], Iterator[Item]] = field(repr=False)


def sources_of(said: str, parser: str, limit: int | None = None, data: str | Path | None = None) -> list[Source]:
    """The sources that a user names: a file, a data set with its split ("ud_ewt:train"), or one with all its splits.

    `limit` is how many sentences of each are read at most, or texts where they are parsed here, spread evenly over it.
    """
    if limit is not None:
        check_number("limit", limit, 1)
    name, _, split = said.partition(":")
    if name == SUBSET:
        return [_subset(limit, data)]
    if name not in CORPORA:
        whole = sentences_of(said, parser=parser)
        read = _limited(whole, limit)
        files = (Path(said),) if Path(said).is_file() else ()
        return [Source(whole.name, read.size, files, read.items)]
    return [_split(name, one, parser, limit, data) for one in ([split] if split else CORPORA[name].files)]


def _split(name: str, split: str, parser: str, limit: int | None, data: str | Path | None) -> Source:
    path = dataset_file(name, split, data)
    found = _limited(sentences_of(path, parser=parser, kind=CORPORA[name].kind), limit)
    return Source(f"{name}:{split}", found.size, (path,), found.items)


def _limited(corpus: Corpus, limit: int | None) -> Corpus:
    return corpus if limit is None else spread(corpus, limit)


def _subset(limit: int | None, data: str | Path | None) -> Source:
    files = subset_files(data)
    size = sum(1 for _ in islice(read_subset(*files), limit))
    return Source(SUBSET, size, files, lambda: islice(read_subset(*files), limit))


def subset_files(data: str | Path | None = None) -> tuple[Path, Path]:
    """The text and the gold file of Linzen's subset.

    Raises:
        BadInput: If they are nowhere; the sentence says where they were looked for.
    """
    return dataset_file(SUBSET, "test", data), dataset_file(SUBSET, "gold", data)
