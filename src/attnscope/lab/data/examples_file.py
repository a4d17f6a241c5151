"""Agreement data on disk: examples as JSON lines, the frequent words one to a line, and a card that says what it is."""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ...errors import BadInput, is_text
from ...files import written_atomically
from ...syntax.lines import numbered_lines
from .agreement import NUMBERS, AgreementExample

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
