"""Sentences with their translations, cut into subwords that both languages share, in parts, with their statistics.

As Snell et al. 2021 have it (A.8): 8,000 subwords by SentencePiece, learned from the training sentences of both
languages. Sources and targets end with eos; the decoder begins with bos.
"""

import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int
from torch import Tensor

from ...corpora import dataset_file
from ...errors import BadInput
from ...files import written_atomically
from ...lab.vocabulary import FRAMED, Vocabulary
from ...syntax.lines import numbered_lines

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

    def select(self, numbers: Iterable[int]) -> "TranslatedPart":
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
    subwords_file: Path | None = None,
) -> TranslatedTexts:
    """A data set of pairs of lines, source first; subwords are learned from the training part, or read from a file."""
    for part in PARTS:
        if not parts.get(part):
            raise BadInput(f"The data set {name} has no pairs of sentences for {part}.")
    subwords = learn_subwords((line for pair in parts["train"] for line in pair), size, subwords_file)
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


# Multi30k (Elliott et al. 2016): captions of pictures in English and German, as Snell et al. 2021 translate them.


LANGUAGES = ("de", "en")
FILES = {"train": "train", "dev": "val"}


def multi30k(
    place: str | Path | None = None, source: str = "de", size: int = SIZE, subwords_file: Path | None = None
) -> TranslatedTexts:
    """29,000 pairs to learn from and 1,014 to look at.

    The paper says English to German, but the authors' loader reads German first, and so does this by default. `place`
    is where the data sets are, before $ATTNSCOPE_DATA; `subwords_file` keeps the subwords, which take a while to learn.
    """
    parts = {part: read_multi30k(part, place, source) for part in PARTS}
    target = LANGUAGES[1 - LANGUAGES.index(source)]
    return translated_texts("multi30k", (source, target), parts, size, subwords_file)


def read_multi30k(part: str, place: str | Path | None = None, source: str = "de") -> list[Pair]:
    """The pairs of lines of a part."""
    if source not in LANGUAGES:
        raise BadInput(f"Multi30k is here in {' and '.join(LANGUAGES)}, so the source is not {source!r}.")
    order = LANGUAGES if source == LANGUAGES[0] else LANGUAGES[::-1]
    return read_sides(*(dataset_file("multi30k", f"{FILES[part]}.{language}", place) for language in order))


# News Commentary v14 (WMT 2019), as its users have it: one table of two columns for a pair of languages.


NAME = re.compile(r"news-commentary-v\d+\.(\w+)-(\w+)\.tsv(\.gz)?")
DEV_SHARE = 0.1
SEED = 0
"""Of the split; the authors' is not known."""


def news_commentary(
    file: str | Path, source: str | None = None, size: int = SIZE, subwords_file: Path | None = None
) -> TranslatedTexts:
    """Nine tenths of the pairs to learn from, one tenth, drawn at random, to look at (A.8).

    `file` is as it is downloaded, such as news-commentary-v14.en-nl.tsv.gz: a pair in each line with a tab between the
    languages its name says, and empty lines between texts. Purely numerical pairs are left out (A.5). `source` is the
    first language unless said.
    """
    path = Path(file)
    name = NAME.fullmatch(path.name)
    if name is None:
        raise BadInput(f"{path.name} is not named like news-commentary-v14.en-nl.tsv, so its languages are not known.")
    languages = (name[1], name[2])
    if source is not None and source not in languages:
        raise BadInput(f"{path.name} is in {' and '.join(languages)}, so the source is not {source!r}.")
    turned = source == languages[1]
    pairs = [pair[::-1] if turned else pair for pair in _pairs(path) if has_letters(pair)]
    order = np.random.default_rng(SEED).permutation(len(pairs))
    held_out = set(order[: round(DEV_SHARE * len(pairs))].tolist())
    parts: dict[str, list[Pair]] = {"train": [], "dev": []}
    for number, pair in enumerate(pairs):
        parts["dev" if number in held_out else "train"].append(pair)
    first, second = languages[::-1] if turned else languages
    return translated_texts(f"news-{first}-{second}", (first, second), parts, size, subwords_file)


def _pairs(path: Path) -> list[Pair]:
    found = []
    for number, line in numbered_lines(path):
        sides = [side.strip() for side in line.split("\t")]
        if len(sides) > 2:
            raise BadInput(f"Line {number} of {path} has {len(sides)} columns, not a sentence and its translation.")
        # between texts, and where one language has no sentence, a line or a column is empty
        if len(sides) == 2 and all(sides):
            found.append((sides[0], sides[1]))
    return found


# A made-up language that is translated word for word: what attention and alignments should be is known.


def word_for_word(
    words: int = 30, shortest: int = 3, longest: int = 8, train: int = 400, dev: int = 40, seed: int = 0
) -> TranslatedTexts:
    """Sentences of different words at random; each word has one translation, and the order stays.

    >>> texts = word_for_word(words=5, shortest=2, longest=3)
    >>> texts.vocabulary.decode(texts.train.sources[0]), texts.vocabulary.decode(texts.train.targets[0])
    (['▁a1', '▁a3', '▁a2', '[EOS]'], ['▁b1', '▁b3', '▁b2', '[EOS]'])
    """
    if not 1 <= shortest <= longest <= words:
        raise BadInput(f"Sentences of {shortest} to {longest} different words cannot be made of {words} words.")
    vocabulary = Vocabulary([f"▁{side}{word}" for side in "ab" for word in range(words)], special=FRAMED)
    draw = np.random.default_rng(seed)

    def part(pairs: int) -> TranslatedPart:
        lengths = draw.integers(shortest, longest + 1, pairs)
        drawn = [len(FRAMED) + draw.choice(words, length, replace=False) for length in lengths]
        return part_of_numbers(vocabulary, [row.tolist() for row in drawn], [(row + words).tolist() for row in drawn])

    return TranslatedTexts("word-for-word", ("a", "b"), vocabulary, part(train), part(dev))


# IWSLT'14, German to English (Cettolo et al. 2015), as its users have it.


IWSLT_FILES = {"train": "train", "dev": "valid"}


def iwslt(
    folder: str | Path, source: str = "de", target: str = "en", size: int = SIZE, subwords_file: Path | None = None
) -> TranslatedTexts:
    """Talks, 160,000 pairs to learn from and 7,000 to look at.

    The folder has the files that the usual preparation script leaves, before its own subwords: train.de, train.en,
    valid.de and valid.en, one sentence in a line, as they are or packed as .gz. `subwords_file` keeps the subwords.
    """
    parts = {
        part: read_sides(*(_file(Path(folder), f"{file}.{language}") for language in (source, target)))
        for part, file in IWSLT_FILES.items()
    }
    return translated_texts("iwslt14", (source, target), parts, size, subwords_file)


def _file(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise BadInput(f"There is no {name} or {name}.gz in {folder}: IWSLT'14 is two files for train and two for valid.")


# Subwords by SentencePiece (Kudo & Richardson 2018): learned from lines, kept as one file, numbered as words are.


SPACE = "\u2581"
"""What stands at the beginning of a word in place of the space before it."""
UNKNOWN = " \u2047 "
"""What an unknown piece is written as, as the library does."""


class Subwords:
    """Lines as numbers of pieces and back; the special tokens pad, unk, bos and eos are numbers 0 to 3."""

    def __init__(self, model: bytes) -> None:
        library = sentencepiece_library()
        try:
            self._processor = library.SentencePieceProcessor(model_proto=model)
        except RuntimeError:
            raise BadInput("This is no model of SentencePiece, or it is damaged.") from None
        pieces = [self._processor.id_to_piece(number) for number in range(self._processor.get_piece_size())]
        if pieces[: len(FRAMED)] != list(FRAMED.values()):
            raise BadInput(f"This model of SentencePiece does not begin with {', '.join(FRAMED.values())}.")
        self.vocabulary = Vocabulary(pieces[len(FRAMED) :], special=FRAMED)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """The numbers of the pieces of each line, without bos and eos."""
        found: list[list[int]] = self._processor.encode(list(lines))
        return found


def learn_subwords(lines: Iterable[str], size: int, subwords_file: Path | None = None) -> Subwords:
    """Subwords for these lines, `size` of them with the special tokens, or fewer where the lines give no more.

    If the file is there, its subwords are taken, and the lines are not read; else they are written to it.
    Learning 8,000 from the 58,000 lines of Multi30k takes about half a minute.
    """
    if subwords_file is not None and subwords_file.exists():
        return Subwords(subwords_file.read_bytes())
    model = io.BytesIO()
    numbers = {f"{name}_id": number for number, name in enumerate(FRAMED)}
    pieces = {f"{name}_piece": token for name, token in FRAMED.items()}
    try:
        sentencepiece_library().SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            vocab_size=size,
            hard_vocab_limit=False,
            num_threads=1,  # the order of sums, and so the pieces, depend on it
            minloglevel=2,
            **numbers,
            **pieces,
        )
    except RuntimeError as error:
        raise BadInput(f"SentencePiece cannot learn {size} subwords from these lines: {error}.") from None
    if subwords_file is not None:
        with written_atomically(subwords_file) as temporary:
            temporary.write_bytes(model.getvalue())
    return Subwords(model.getvalue())


def plain_text(vocabulary: Vocabulary, numbers: Iterable[int]) -> str:
    """The text of numbers of pieces: special tokens are left out, and an unknown one is ⁇.

    >>> plain_text(Vocabulary(["▁a", "▁film", "s"], special=FRAMED), [2, 4, 5, 6, 3])
    'a films'
    """
    silent = {vocabulary.number(name) for name in ("pad", "bos", "eos")}
    unknown = vocabulary.number("unk")
    spoken = [number for number in numbers if number not in silent]
    pieces = zip(spoken, vocabulary.decode(spoken), strict=True)
    return "".join(UNKNOWN if number == unknown else piece for number, piece in pieces).replace(SPACE, " ").strip()


def sentencepiece_library() -> Any:
    """The library, if it is installed."""
    try:
        import sentencepiece
    except ImportError:
        raise BadInput('Subwords need SentencePiece: pip install "attnscope[lab]".') from None
    return sentencepiece
