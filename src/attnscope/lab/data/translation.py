"""Sentences with their translations, cut into subwords that both languages share, in parts, with their statistics.

As Snell et al. 2021 have it (A.8): 8,000 subwords by SentencePiece, learned from the training sentences of both
languages. Sources and targets end with eos; the decoder begins with bos.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int
from torch import Tensor

from ...errors import BadInput
from ...syntax.lines import numbered_lines
from ..vocabulary import Vocabulary
from .subwords import learned_subwords, plain_text

SIZE = 8_000
"""Subwords, with the special tokens."""
PARTS = ("train", "dev")
LETTER = re.compile(r"[^\W\d_]")
Pair = tuple[str, str]
"""A line and its translation."""


@dataclass(frozen=True, eq=False)
class TranslatedPart:
    """Sources and targets as numbers, each with eos at its end, and the targets as plain text."""

    sources: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]
    references: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def fingerprint(self) -> str:
        """What tells these pairs from others, in their order."""
        return hashlib.sha256(json.dumps([self.sources, self.targets]).encode()).hexdigest()

    def chosen(self, numbers: Iterable[int]) -> "TranslatedPart":
        """The pairs of these numbers, in this order."""
        places = list(numbers)
        return TranslatedPart(
            tuple(self.sources[place] for place in places),
            tuple(self.targets[place] for place in places),
            tuple(self.references[place] for place in places),
        )


@dataclass(frozen=True, eq=False)
class TranslatedTexts:
    """A data set of translation: what is learned from, and what is looked at."""

    name: str
    languages: tuple[str, str]
    """Source and target."""
    vocabulary: Vocabulary
    train: TranslatedPart
    dev: TranslatedPart


@dataclass(frozen=True, eq=False)
class PairBatch:
    """Some pairs as a Seq2Seq takes them: at each step `target_in` is read and `target_out` is right."""

    source: Int[Tensor, "batch source"]
    real: Bool[Tensor, "batch source"]
    target_in: Int[Tensor, "batch step"]
    target_out: Int[Tensor, "batch step"]
    words: Bool[Tensor, "batch step"]
    """Where the target has a word, eos included."""


def translated_texts(
    name: str,
    languages: tuple[str, str],
    parts: Mapping[str, Sequence[Pair]],
    size: int = SIZE,
    kept: Path | None = None,
) -> TranslatedTexts:
    """A data set of pairs of lines, source first; subwords are learned from the training part, or read from `kept`."""
    for part in PARTS:
        if not parts.get(part):
            raise BadInput(f"The data set {name} has no pairs of sentences for {part}.")
    subwords = learned_subwords((line for pair in parts["train"] for line in pair), size, kept)
    vocabulary = subwords.vocabulary
    columns = {part: [[pair[side] for pair in parts[part]] for side in (0, 1)] for part in PARTS}
    numbered = {
        part: part_of_numbers(
            vocabulary, subwords.encode(columns[part][0]), subwords.encode(columns[part][1]), columns[part][1]
        )
        for part in PARTS
    }
    return TranslatedTexts(name, languages, vocabulary, numbered["train"], numbered["dev"])


def part_of_numbers(
    vocabulary: Vocabulary,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    references: Sequence[str] | None = None,
) -> TranslatedPart:
    """A part from the numbers of the words, to which eos is added; without references, the targets are put together."""
    if len(sources) != len(targets):
        raise BadInput(f"There are {len(sources)} sentences and {len(targets)} translations.")
    end = vocabulary.number("eos")
    ended = [tuple((*sentence, end) for sentence in column) for column in (sources, targets)]
    texts = [plain_text(vocabulary, sentence) for sentence in targets] if references is None else references
    return TranslatedPart(ended[0], ended[1], tuple(texts))


def pair_batch(vocabulary: Vocabulary, part: TranslatedPart, numbers: Sequence[int]) -> PairBatch:
    """The pairs of these numbers, padded at the right."""
    begin = vocabulary.number("bos")
    source, real = vocabulary.pad([part.sources[number] for number in numbers])
    target_out, words = vocabulary.pad([part.targets[number] for number in numbers])
    target_in, _ = vocabulary.pad([(begin, *part.targets[number][:-1]) for number in numbers])
    return PairBatch(source, real, target_in, target_out, words)


def read_sides(first: Path, second: Path) -> list[Pair]:
    """Two files line by line; pairs with an empty side are left out."""
    columns = [[line.strip() for _, line in numbered_lines(path)] for path in (first, second)]
    if len(columns[0]) != len(columns[1]):
        raise BadInput(
            f"{first} has {len(columns[0])} lines and {second} has {len(columns[1])}: they are not translations of "
            "each other line by line."
        )
    return [pair for pair in zip(*columns, strict=True) if all(pair)]


def has_letters(pair: Pair) -> bool:
    """Whether both sides have a letter: a purely numerical pair, which A.5 leaves out, has none.

    >>> has_letters(("12.5 %", "12,5 %")), has_letters(("In 1990", "1990 war"))
    (False, True)
    """
    return all(LETTER.search(line) for line in pair)


def translation_statistics(texts: TranslatedTexts) -> pd.DataFrame:
    """One row as in Table 9: median lengths of sources and targets with eos, how many pairs, and the vocabulary."""
    row: dict[str, str | float] = {"data": texts.name}
    for name, pairs in (("train", texts.train), ("validation", texts.dev)):
        row[f"{name}_length"] = float(np.median([len(sentence) for sentence in pairs.sources]))
        row[f"{name}_target_length"] = float(np.median([len(sentence) for sentence in pairs.targets]))
        row[name] = len(pairs)
    return pd.DataFrame([{**row, "vocabulary": len(texts.vocabulary)}])
