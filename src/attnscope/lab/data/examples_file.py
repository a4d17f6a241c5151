"""Agreement data on disk: examples as JSON lines, the frequent words one to a line, and a card that says what it is."""

import gzip
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...errors import BadInput, is_text
from ...files import written_atomically
from ...syntax.lines import numbered_lines

# What an agreement model learns from: a sentence up to its verb, and the number that the verb must have.


Number = Literal["singular", "plural"]
NUMBERS: tuple[Number, Number] = ("singular", "plural")
"""Both numbers; their places are the labels of the paper's data (VBZ 0, VBP 1)."""


@dataclass(frozen=True)
class AgreementExample:
    """One verb with its subject, as in Linzen et al. 2016.

    `words` is the sentence up to the verb, in lower case, rare words replaced by their Penn tag. `number` is that of
    the subject and of the verb. `attractors` are the nouns of the other number between the two. `subject` is the
    position of the subject's head in `words`, -1 where it is not known. `verb` is the verb as it stands.

    >>> AgreementExample(("the", "key", "to", "the", "NNS"), "singular", 1, 1, "is").attractors
    1
    """

    words: tuple[str, ...]
    number: Number
    attractors: int
    subject: int
    verb: str

    def __post_init__(self) -> None:
        if self.number not in NUMBERS:
            raise BadInput(f"A verb is {' or '.join(NUMBERS)}, not {self.number!r}.")
        if not -1 <= self.subject < len(self.words):
            raise BadInput(f"The subject at {self.subject} is no word before the verb of {' '.join(self.words)!r}.")
        if self.attractors < 0:
            raise BadInput(f"There cannot be {self.attractors} attractors.")

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON takes them."""
        return {**vars(self), "words": list(self.words)}


FIELDS = {"words": list, "number": str, "attractors": int, "subject": int, "verb": str}


def write_examples(path: Path, examples: Iterable[AgreementExample]) -> None:
    """Write one example to a line, packed if the name ends in .gz; the same examples give the same bytes."""
    with written_atomically(path) as temporary, temporary.open("wb") as file:
        if path.suffix != ".gz":
            file.writelines(_lines(examples))
            return
        # without the time and the name, which would make each file another
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            packed.writelines(_lines(examples))


def _lines(examples: Iterable[AgreementExample]) -> Iterator[bytes]:
    return (json.dumps(example.to_dict(), ensure_ascii=False).encode() + b"\n" for example in examples)


def read_examples(path: str | Path) -> Iterator[AgreementExample]:
    """Yield the examples of a file that `write_examples` has written.

    Raises:
        BadInput: If a line is no example, with its number.
    """
    for number, line in numbered_lines(Path(path)):
        try:
            fields = json.loads(line)
            fits = fields.keys() == FIELDS.keys() and all(type(fields[name]) is kind for name, kind in FIELDS.items())
            words = all(type(word) is str and is_text(word) for word in fields["words"]) if fits else False
            if not words or fields["number"] not in NUMBERS or not is_text(fields["verb"]):
                raise ValueError  # noqa: TRY301 -- all that is wrong with a line is told in one sentence
            example = AgreementExample(**{**fields, "words": tuple(fields["words"])})
        except (ValueError, AttributeError, RecursionError) as error:
            reason = f" ({error})" if isinstance(error, BadInput) else ""
            raise BadInput(
                f"Line {number} of {path} is no agreement example with {', '.join(FIELDS)}{reason}: "
                "make the file anew with attnscope data build agreement."
            ) from error
        yield example


def beside(path: Path, ending: str) -> Path:
    """The file of that ending that goes with a file of examples.

    >>> beside(Path("data/train.jsonl.gz"), ".card.json").name
    'train.card.json'
    """
    name = path.name.removesuffix(".gz").removesuffix(".jsonl")
    return path.with_name(name + ending)


def card_of(path: Path) -> Path:
    """The card of a file of examples."""
    return beside(path, ".card.json")


def words_of(path: Path) -> Path:
    """The frequent words that a file of examples was made with."""
    return beside(path, ".words.txt")


def write_words(path: Path, words: Iterable[str]) -> None:
    """Write the frequent words, one to a line."""
    with written_atomically(path) as temporary:
        temporary.write_bytes("".join(f"{word}\n" for word in words).encode())


def read_words(path: str | Path) -> list[str]:
    """The frequent words of a file with one to a line, the most frequent first."""
    words = [line for _, line in numbered_lines(Path(path)) if line]
    if not words:
        raise BadInput(f"There are no words in {path}.")
    if len(words) != len(set(words)):
        raise BadInput(f"{path} has a word twice: give the words that attnscope data build agreement has written.")
    return words


def write_card(path: Path, card: dict[str, Any]) -> None:
    """Write what there is to know about a file of examples."""
    with written_atomically(path) as temporary:
        temporary.write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def sha256_of(path: Path) -> str:
    """The digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# The most frequent words of a text, and rare words replaced by their tag, as in Linzen et al. 2016.


HIDDEN = "<unk>"
"""What stands in WikiText for a rare word: it is one itself, however often it stands there."""
QUOTES = {"``", "''"}


def spell_word(word: str, tag: str) -> str:
    """The word as the data writes it: in lower case, and quotation marks as Penn does.

    >>> spell_word("The", "DT"), spell_word('"', "``")
    ('the', '``')
    """
    return tag if tag in QUOTES else word.lower()


def most_frequent(counts: Mapping[str, int], size: int) -> list[str]:
    """The most frequent words, the most frequent first; of equally frequent ones, those that come first by letters.

    >>> most_frequent({"key": 2, "the": 3, "is": 2, "<unk>": 9}, 2)
    ['the', 'is']
    """
    if size < 1:
        raise BadInput(f"A vocabulary has at least one word, not {size}.")
    return sorted(counts.keys() - {HIDDEN}, key=lambda word: (-counts[word], word))[:size]


def with_tags_for_rare(words: Sequence[str], tags: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """The words, with the tag in place of each word that is not known.

    >>> with_tags_for_rare(("the", "axolotls"), ("DT", "NNS"), {"the"})
    ('the', 'NNS')
    """
    return tuple(word if word in known else tag for word, tag in zip(words, tags, strict=True))
