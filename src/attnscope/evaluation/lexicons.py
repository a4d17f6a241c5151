"""Lexicons: what people say of words, as one number for each. Warriner's norms, VADER's own, or any file.

The only file that imports vaderSentiment.
"""

import importlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..corpora import dataset_file
from ..errors import BadInput
from ..syntax.lines import numbered_lines, numbered_rows

VADER, WARRINER = "vader", "warriner"
WORD_COLUMNS = ("word", "Word", "lemma", "token", "entry")
VALUE_COLUMNS = ("value", "valence", "V.Mean.Sum", "rating", "score", "mean")
"""What the columns of a file with a header may be called; without one they are the first two."""
OUTER = 0.2
"""For a lexicon whose scale is not known: the lowest and highest fifth of its values are very negative and positive."""
NEGATIVE, POSITIVE = "very negative", "very positive"


@dataclass(frozen=True)
class Lexicon:
    """Words in lower case, each with its value; a word that is entered several times has the mean of its values."""

    name: str
    values: Mapping[str, float] = field(repr=False)
    negative_below: float
    """What is below this is very negative."""
    positive_from: float
    """What is this or above is very positive."""

    def tag(self, value: float) -> str | None:
        """Whether a value is very negative, very positive, or neither."""
        if value < self.negative_below:
            return NEGATIVE
        return POSITIVE if value >= self.positive_from else None


def read_lexicon(
    lexicon: str | Path | Mapping[str, float] | Lexicon,
    data: str | Path | None = None,
    *,
    negative_below: int | float | None = None,
    positive_from: int | float | None = None,
) -> Lexicon:
    """A lexicon by name ("vader", "warriner"), from a CSV or TSV file (word, value; also .gz), or of your own words.

    "warriner" is looked for as other data sets are (`data`, $ATTNSCOPE_DATA, cache); its valence runs from 1 to 9, very
    negative below 3.5 and very positive from 6.5 (Wu, Nguyen & Ong 2020, footnote 7). "vader" comes with the package
    vaderSentiment (Hutto & Gilbert 2014) and runs from -4 to 4; its limits are the same places on that scale, -1.5 and
    1.5. Of any other, the outer fifths are very negative and very positive unless you say what is.

    >>> read_lexicon({"good": 1.0, "Bad": -1.0, "so": 0.0}).values
    {'good': 1.0, 'bad': -1.0, 'so': 0.0}
    """
    if isinstance(lexicon, Lexicon):
        found = lexicon
    elif isinstance(lexicon, Mapping):
        found = _of_unknown_scale("own words", lexicon.items())
    elif lexicon == VADER:
        found = Lexicon(VADER, _means(VADER, _vader()), -1.5, 1.5)
    elif lexicon == WARRINER:
        found = Lexicon(WARRINER, _means(WARRINER, _rows(dataset_file(WARRINER, data=data))), 3.5, 6.5)
    else:
        path = Path(lexicon)
        if not path.is_file():
            raise BadInput(
                f"There is no lexicon {str(path)!r}: give {VADER}, {WARRINER}, or a CSV or TSV file (word, value)."
            )
        found = _of_unknown_scale(path.name, _rows(path))
    below = found.negative_below if negative_below is None else float(negative_below)
    above = found.positive_from if positive_from is None else float(positive_from)
    if not below <= above:
        raise BadInput(f"Very negative is below {below:g} and very positive from {above:g}: these overlap.")
    return Lexicon(found.name, found.values, below, above)


def _of_unknown_scale(name: str, pairs: Iterable[tuple[str, float]]) -> Lexicon:
    values = _means(name, pairs)
    low, high = np.quantile(list(values.values()), [OUTER, 1 - OUTER])
    return Lexicon(name, values, float(low), float(high))


def _means(name: str, pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The mean value of each word, in lower case and in the order of the lexicon."""
    found: dict[str, list[float]] = defaultdict(list)
    for word, value in pairs:
        if not math.isfinite(value):
            raise BadInput(f"The value of {word!r} in the lexicon {name} is {value}: give finite numbers.")
        if text := word.strip().lower():
            found[text].append(float(value))
    if not found:
        raise BadInput(f"There is no word in the lexicon {name}.")
    return {word: math.fsum(values) / len(values) for word, values in found.items()}


def _vader() -> Iterable[tuple[str, float]]:
    """The lines of VADER's file: the word, its mean rating, and what we do not need, between tabs."""
    try:
        package = importlib.import_module("vaderSentiment")
    except ImportError as error:
        raise BadInput("VADER's lexicon comes with vaderSentiment: pip install 'attnscope[lexicon]'.") from error
    text = (Path(package.__path__[0]) / "vader_lexicon.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        word, _, rest = line.partition("\t")
        if rest:
            yield word, float(rest.split("\t")[0])


def _rows(path: Path) -> Iterable[tuple[str, float]]:
    """Word and value of each row of a table: by the names of the header, or the first two columns without one."""
    first = next((line for _, line in numbered_lines(path)), "")
    rows = [row for _, row in numbered_rows(path, "\t" if "\t" in first else ",") if any(row)]
    if not rows:
        return
    word_at, value_at = _columns(path, rows[0])
    header = not _is_number(rows[0][value_at]) if len(rows[0]) > value_at else True
    for number, row in enumerate(rows[header:], 1 + header):
        if len(row) <= max(word_at, value_at) or not _is_number(row[value_at]):
            raise BadInput(f"Row {number} of the lexicon {path} has no number as its value: {row!r:.80}.")
        yield row[word_at], float(row[value_at])


def _columns(path: Path, header: list[str]) -> tuple[int, int]:
    """Where the word and its value stand."""
    word = next((header.index(name) for name in WORD_COLUMNS if name in header), None)
    value = next((header.index(name) for name in VALUE_COLUMNS if name in header), None)
    if word is not None and value is not None:
        return word, value
    if len(header) < 2:
        raise BadInput(f"The lexicon {path} has one column: give a word and its value, between commas or tabs.")
    return 0, 1


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
