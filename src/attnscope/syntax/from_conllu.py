"""Sentences from CoNLL-U, the format of the Universal Dependencies treebanks: https://universaldependencies.org/format."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from ..errors import BadInput
from .lines import numbered_lines
from .sentence import Sentence, joined

COLUMNS = 10
EMPTY = "_"


def read_conllu(path: str | Path, limit: int | None = None) -> Iterator[Sentence]:
    """Yield the sentences of a .conllu or .conllu.gz file, one at a time.

    The pieces of a multi-word token ("do" and "n't" of "don't") are words without a space between them if they spell
    it, and words with spaces if they do not ("de" and "le" of "du"). Empty nodes (8.1) are no words and are left out.
    Where no word has a tag (a head, a relation), the sentence has none. Where no word has a fine tag (XPOS), Penn's are
    told from the part of speech and the features, as far as they tell them.

    Raises:
        BadInput: If the file is malformed, with the number of the line, or has no sentence.
    """
    return islice(_sentences(Path(path)), limit)


def documents(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    """Join the consecutive sentences of each document; a sentence of no document stays alone."""
    for document, together in groupby(sentences, key=lambda sentence: sentence.document):
        if document is None:
            yield from together
        else:
            yield joined(together)


def genre(sentence: Sentence) -> str | None:
    """The genre as English EWT writes it in the names of its sentences: what stands before the first hyphen.

    >>> genre(Sentence(("Hi",), name="email-enronsent20_01-0001"))
    'email'
    """
    name = sentence.name or sentence.document
    return None if name is None else name.partition("-")[0]


@dataclass
class _Block:
    """The lines of one sentence, as they are read."""

    line: int
    name: str | None = None
    rows: list[tuple[int, list[str]]] = field(default_factory=list)  # of words: line number, columns
    ranges: list[tuple[int, int, int, list[str]]] = field(default_factory=list)  # of multi-word tokens


def _sentences(path: Path) -> Iterator[Sentence]:
    document, unnamed, block, found = None, 0, None, False
    for number, line in numbered_lines(path):
        if not line.strip():
            if block is not None and block.rows:
                found = True
                yield _sentence(block, document, path)
            block = None
            continue
        block = block or _Block(number)
        if not line.startswith("#"):
            _add(block, line, path, number)
            continue
        key, value = _comment(line)
        if key == "sent_id":
            block.name = value
        elif key in {"newdoc", "newdoc id"}:
            unnamed += not value
            document = value or f"document {unnamed}"
    if block is not None and block.rows:
        found = True
        yield _sentence(block, document, path)
    if not found:
        raise BadInput(f"There are no sentences in {path}.")


def _comment(line: str) -> tuple[str, str | None]:
    key, _, value = line.removeprefix("#").partition("=")
    return key.strip(), value.strip() or None


def _add(block: _Block, line: str, path: Path, number: int) -> None:
    """Put a line of a word or multi-word token into the block, if its form is right."""
    place = f"Line {number} of {path}"
    columns = line.split("\t")
    if len(columns) != COLUMNS:
        raise BadInput(f"{place} has {len(columns)} columns; CoNLL-U has {COLUMNS}, with tabs between them.")
    identity = _identity(columns[0])
    expected = len(block.rows) + 1
    if identity is None:
        raise BadInput(f"{place} begins with {columns[0][:40]!r}, which is not the number of a word.")
    if isinstance(identity, int):
        if identity != expected:
            raise BadInput(f"{place} has the word number {identity} where {expected} should stand.")
        block.rows.append((number, columns))
    elif identity[1] == "-":
        first, _, last = identity
        if first != expected or (block.ranges and first <= block.ranges[-1][1]):
            raise BadInput(f"{place} has the multi-word token {columns[0]} where word {expected} should stand.")
        block.ranges.append((first, last, number, columns))


def _sentence(block: _Block, document: str | None, path: Path) -> Sentence:
    words = tuple(columns[1] for _, columns in block.rows)
    heads, spaces = _heads(block, path), _spaces(block, words, path)
    try:
        return Sentence(
            words=words,
            tags=_unless_empty([columns[3] for _, columns in block.rows]),
            heads=heads,
            relations=_unless_empty([columns[7] for _, columns in block.rows]),
            spaces=spaces,
            name=block.name,
            document=document,
            fine_tags=_fine_tags(block),
        )
    except BadInput as error:
        raise BadInput(f"The sentence at line {block.line} of {path} is malformed: {error}") from error


def _unless_empty(values: list[str]) -> tuple[str, ...] | None:
    return None if all(value == EMPTY for value in values) else tuple(values)


def _fine_tags(block: _Block) -> tuple[str, ...] | None:
    written = _unless_empty([columns[4] for _, columns in block.rows])
    if written is not None or all(columns[5] == EMPTY for _, columns in block.rows):
        return written
    return tuple(penn_tag(columns[3], _pairs(columns[5])) for _, columns in block.rows)


def _heads(block: _Block, path: Path) -> tuple[int, ...] | None:
    written = _unless_empty([columns[6] for _, columns in block.rows])
    if written is None:
        return None
    heads = []
    for head, (number, _) in zip(written, block.rows, strict=True):
        # isdecimal alone would take the digits of other scripts, which int() reads too
        if not (head.isascii() and head.isdecimal()):
            raise BadInput(f"Line {number} of {path} has the head {head[:40]!r}, which is not a number.")
        # by its length first: Python refuses to read numbers of thousands of digits
        if len(head.lstrip("0")) > len(str(len(written))) or int(head) > len(written):
            raise BadInput(
                f"Line {number} of {path} has the head {head[:40]}, but the sentence has only {len(written)} words."
            )
        heads.append(int(head) - 1)
    return tuple(heads)


def _spaces(block: _Block, words: tuple[str, ...], path: Path) -> tuple[bool, ...]:
    spaces = [_space_after(columns) for _, columns in block.rows]
    for first, last, number, columns in block.ranges:
        if last > len(words):
            raise BadInput(
                f"Line {number} of {path} has the multi-word token {first}-{last}, "
                f"but the sentence has only {len(words)} words."
            )
        inner = "".join(words[first - 1 : last]) != columns[1]
        spaces[first - 1 : last] = [*[inner] * (last - first), _space_after(columns)]
    return tuple(spaces)


def _space_after(columns: list[str]) -> bool:
    return _pairs(columns[9]).get("SpaceAfter") != "No"


def _pairs(written: str) -> dict[str, str | None]:
    """What a column of names and values holds: "Number=Sing|Tense=Pres"."""
    return _library().parser.parse_dict_value(written) or {}


def _identity(written: str) -> int | tuple[int, str, int] | None:
    """The number of a word, a range of them or an empty node; None if it is none of these."""
    library = _library()
    try:
        identity: int | tuple[int, str, int] | None = library.parser.parse_id_value(written)
    except (library.exceptions.ParseException, ValueError):  # ValueError: a number of thousands of digits
        return None
    return identity


@cache
def _library() -> Any:
    try:
        import conllu
    except ImportError as error:
        raise BadInput("Reading CoNLL-U needs conllu: pip install 'attnscope[syntax]'.") from error
    return conllu


# Penn's tags of English words, derived from what Universal Dependencies say of them.


Features = Mapping[str, str | None]

PLAIN = {
    "ADP": "IN",
    "CCONJ": "CC",
    "DET": "DT",
    "INTJ": "UH",
    "NUM": "CD",
    "PART": "RP",
    "PRON": "PRP",
    "PUNCT": ".",
    "SCONJ": "IN",
    "SYM": "SYM",
    "X": "FW",
}
"""Parts of speech that have one tag here, whatever their features: Penn's finer ones do not follow from them."""
NOUNS = {"NOUN": "NN", "PROPN": "NNP"}
QUALITIES = {"ADJ": "JJ", "ADV": "RB"}
DEGREES = {"Cmp": "R", "Sup": "S"}


def penn_tag(part_of_speech: str, features: Features) -> str:
    """The tag of a word by its UPOS and features; the UPOS itself where neither tells more.

    >>> penn_tag("NOUN", {"Number": "Plur"}), penn_tag("VERB", {"VerbForm": "Inf"})
    ('NNS', 'VB')
    >>> penn_tag("AUX", {"Tense": "Pres", "VerbForm": "Fin", "Number": "Sing", "Person": "3"})
    'VBZ'
    """
    if part_of_speech in NOUNS:
        return NOUNS[part_of_speech] + "S" * (features.get("Number") in {"Plur", "Ptan"})
    if part_of_speech in QUALITIES:
        return QUALITIES[part_of_speech] + DEGREES.get(features.get("Degree") or "", "")
    if part_of_speech in {"VERB", "AUX"}:
        return _verb(features)
    return PLAIN.get(part_of_speech, part_of_speech)


def _verb(features: Features) -> str:
    form, tense = features.get("VerbForm"), features.get("Tense")
    if form == "Ger" or (form == "Part" and tense == "Pres"):
        return "VBG"
    if form == "Part":
        return "VBN"
    if form == "Fin" and tense == "Past":
        return "VBD"
    if form == "Fin" and tense == "Pres":
        third_singular = features.get("Number") == "Sing" and features.get("Person") in {"3", None}
        return "VBZ" if third_singular else "VBP"
    # "can" and "will" are finite and have no tense
    return "MD" if form == "Fin" and features.get("Mood") != "Imp" else "VB"
