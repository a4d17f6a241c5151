"""Sentences from a Hugging Face data set, streamed by its name or given as an object; the only file with `datasets`."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import BadInput
from .sentence import Sentence

TEXTS = ("text", "sentence")
WORDS = ("words", "tokens", "form")
TAGS = ("upos", "tags", "pos_tags", "pos")
HEADS = ("heads", "head")
RELATIONS = ("relations", "deprel")
SPAN = re.compile("[BILUES]-.+")
"""How the tags of names, chunks and other spans of words begin, by any of their schemes; "O" is outside of all."""

# `datasets` may be missing, so its types cannot stand in signatures: data sets and features are Any here.


def is_dataset(thing: object) -> bool:
    """Whether this is a data set of `datasets`, or several of them by split; asking imports nothing."""
    library = sys.modules.get("datasets")
    kinds = ("Dataset", "IterableDataset", "DatasetDict", "IterableDatasetDict")
    return library is not None and isinstance(thing, tuple(getattr(library, kind) for kind in kinds))


def open_dataset(source: object, split: str | None = None, configuration: str | None = None) -> Any:
    """The rows of a data set: one of the hub by its name, a folder, or a loaded one.

    What has several splits needs one of their names. A data set that is named is streamed: it is never held whole.
    """
    found = _load(source, configuration) if isinstance(source, str) else source
    if not isinstance(found, Mapping):
        if split is not None:
            raise BadInput(f"This data set has no splits: leave out the split {split!r}.")
        return found
    if split is None and len(found) == 1:
        return next(iter(found.values()))
    if split not in found:
        wrong = "needs a split (NAME:SPLIT, split=)" if split is None else f"has no split {split!r}"
        raise BadInput(
            f"{source if isinstance(source, str) else 'This data set'} {wrong}: choose from {', '.join(found)}."
        )
    return found[split]


def read_dataset(source: object, *, split: str | None = None, column: str | None = None) -> Iterator[str | Sentence]:
    """Yield what the rows of a data set hold: sentences where it has a column of words, else texts.

    Words stand in "words", "tokens" or "form", their tags in "upos", "tags", "pos_tags" or "pos", heads in "heads" or
    "head" and relations in "relations" or "deprel"; texts stand in "text" or "sentence". `column` names another column
    of words or texts. Numbers that stand for names are named. Tags of spans (B-PER, I-PER, O), which "tags" holds in
    data sets of names, are no parts of speech and are passed over. Heads count from one with 0 for the root, as in
    CoNLL-U, or from zero with -1 for it.
    """
    rows = open_dataset(source, split)
    features = getattr(rows, "features", None) or {}
    for number, row in enumerate(rows):
        place = f"Row {number} of the data set"
        value = row[_column(row, column, place)]
        if isinstance(value, str):
            if value.strip():
                yield value.strip()
            continue
        if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
            raise BadInput(f"{place} holds neither a text nor a list of words in {_column(row, column, place)!r}.")
        yield _sentence(row, value, features, place)


def size_of(rows: Any) -> int | None:
    """How many rows an opened data set has, where it says so without being read."""
    if hasattr(rows, "__len__"):
        return len(rows)
    said = (getattr(rows.info, "splits", None) or {}).get(str(rows.split))
    return None if said is None else said.num_examples or None


def _load(name: str, configuration: str | None) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise BadInput(
            f"{name!r} is no file, and a data set of that name needs datasets: pip install 'attnscope[corpora]'."
        ) from error
    try:
        return datasets.load_dataset(name, configuration, streaming=True)
    except Exception as error:  # the library lets through whatever goes wrong inside it
        reason = str(error).partition("\n")[0].rstrip(".")
        if reason.startswith("Config name is missing"):
            reason = "it has several configurations, so name one, as in NAME:CONFIGURATION:SPLIT"
        asked = name if configuration is None else f"{name}:{configuration}"
        raise BadInput(f"There is no file and no data set {asked!r} that can be read: {reason}.") from error


def _column(row: Mapping[str, Any], column: str | None, place: str) -> str:
    wanted = (*WORDS, *TEXTS) if column is None else (column,)
    for name in wanted:
        if name in row:
            return name
    raise BadInput(
        f"{place} has no column {' or '.join(wanted)}, but {', '.join(row)}: name the one to read (#COLUMN, column=)."
    )


def _sentence(row: Mapping[str, Any], words: list[str], features: Mapping[str, Any], place: str) -> Sentence:
    heads = _values(row, HEADS)
    try:
        return Sentence(
            words=tuple(words),
            tags=_tags(row, features, place),
            heads=None if heads is None else _from_zero(heads[1], place),
            relations=_names(row, RELATIONS, features, place),
        )
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from error


def _values(row: Mapping[str, Any], names: Iterable[str]) -> tuple[str, list[Any]] | None:
    """The first of these columns that the row has as a list."""
    return next(((name, row[name]) for name in names if isinstance(row.get(name), list)), None)


def _tags(row: Mapping[str, Any], features: Mapping[str, Any], place: str) -> tuple[str, ...] | None:
    """The parts of speech, from the first column that may have them and holds no spans."""
    for name in TAGS:
        tags = _names(row, (name,), features, place)
        if tags is not None and not _are_spans(_labels(features, name) or tags):
            return tags
    return None


def _are_spans(tags: Iterable[str]) -> bool:
    """Whether these tag names or chunks: some begin or go on, or all words stand outside."""
    different = set(tags)
    return any(SPAN.fullmatch(tag) for tag in different) or different == {"O"}


def _labels(features: Mapping[str, Any], name: str) -> list[str] | None:
    """What the numbers in a column stand for."""
    return getattr(getattr(features.get(name), "feature", None), "names", None)


def _names(
    row: Mapping[str, Any], names: Iterable[str], features: Mapping[str, Any], place: str
) -> tuple[str, ...] | None:
    found = _values(row, names)
    if found is None:
        return None
    name, values = found
    if all(isinstance(value, str) for value in values):
        return tuple(values)
    labels = _labels(features, name)
    if labels is None:
        raise BadInput(f"{place} has numbers in {name!r}, and the data set does not say what they are called.")
    return tuple(labels[value] for value in values)


def _from_zero(heads: list[Any], place: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(head) for head in heads)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{place} has heads that are not numbers.") from error
    return numbers if -1 in numbers else tuple(number - 1 for number in numbers)
