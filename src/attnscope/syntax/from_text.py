"""Plain text, JSON lines, tables and WikiText: one text or one sentence to a line."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import BadInput
from .lines import numbered_json, numbered_lines, numbered_rows
from .sentence import Sentence

ENTRIES = {
    "words": (str, "strings"),
    "tags": (str, "strings"),
    "heads": (int, "whole numbers"),
    "relations": (str, "strings"),
    "spaces": (bool, "true and false"),
    "fine_tags": (str, "strings"),
}
"""The fields of a sentence that have an entry for each word, and what the entries are."""
NAMES = ("name", "document")
JSON = 'a JSON object with "text" or "words"'
COLUMN = "text"
"""The column of a table that holds the texts."""
LINE_BREAK = "<br />"
JOINERS = {"@-@": "-", "@,@": ",", "@.@": "."}
"""How WikiText writes a sign that stands inside a word or number."""


def plain(text: str) -> Sentence:
    """The words of a text as white space parts them, without a parse.

    >>> plain("the  key ").words
    ('the', 'key')
    """
    return Sentence(tuple(text.split()))


def read_text(path: str | Path) -> Iterator[str]:
    """Yield the texts of a file that has one to a line; lines of white space are no texts."""
    return (text for _, line in numbered_lines(Path(path)) if (text := line.strip()))


def read_jsonl(path: str | Path) -> Iterator[str | Sentence]:
    """Yield what each line of JSON holds: a text, or a sentence with its words and perhaps a parse.

    A line is an object with "text", or with "words" and the other fields of `Sentence` as far as they are known. Other
    fields are left alone, and so is "text" beside "words".
    """
    for number, fields in numbered_json(Path(path), JSON):
        item = _item(fields, f"Line {number} of {path}")
        if isinstance(item, Sentence) or item.strip():
            yield item.strip() if isinstance(item, str) else item


def read_table(path: str | Path) -> Iterator[str]:
    """Yield the texts of a table with tabs between its columns, whose header names one of them "text".

    Line breaks that are written as in a web page, as in the reviews of IMDB, are line breaks.
    """
    return _column(_tabbed(Path(path)), Path(path))


def read_csv(path: str | Path) -> Iterator[str]:
    """Yield the texts of a table with commas between its columns, whose header names one of them "text"."""
    return _column(numbered_rows(Path(path)), Path(path))


def _column(rows: Iterator[tuple[int, list[str]]], path: Path) -> Iterator[str]:
    """The texts in the column of that name; line breaks may be written as in a web page."""
    for _, row in _mappings(rows, path, COLUMN):
        if text := row[COLUMN].replace(LINE_BREAK, "\n").strip():
            yield text


def labelled_texts(path: str | Path, column: str, limit: int | None = None) -> list[tuple[str, str]]:
    """The texts of a table (.tsv, .csv) or of JSON lines, each with what its row has in another column."""
    path = Path(path)
    kind = Path(path.name.removesuffix(".gz")).suffix
    if kind == ".jsonl":
        rows: Iterator[tuple[int, Mapping[str, Any]]] = numbered_json(path, JSON)
    elif kind in (".tsv", ".csv"):
        rows = _mappings(numbered_rows(path) if kind == ".csv" else _tabbed(path), path, column)
    else:
        raise BadInput(f"{path} has no column for labels: give a .tsv, .csv or .jsonl file.")
    found = []
    for number, row in rows:
        if not isinstance(row, Mapping) or not {COLUMN, column} <= set(row):
            has = ", ".join(map(str, row)) if isinstance(row, Mapping) else "none"
            raise BadInput(f'Line {number} of {path} lacks "{COLUMN}" or "{column}": its columns are {has}.')
        if text := str(row[COLUMN]).replace(LINE_BREAK, "\n").strip():
            found.append((text, str(row[column]).strip()))
        if len(found) == limit:
            break
    if not found:
        raise BadInput(f"There is no text in {path}.")
    return found


def _mappings(rows: Iterator[tuple[int, list[str]]], path: Path, column: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row by the names in the first, among which this one must be."""
    header = next((row for _, row in rows), [])
    if column not in header:
        raise BadInput(f'{path} has no column "{column}" in its first line.')
    for number, row in rows:
        if row not in ([], [""]):
            if len(row) != len(header):
                raise BadInput(f"Line {number} of {path} has {len(row)} columns where the header has {len(header)}.")
            yield number, dict(zip(header, row, strict=True))


def _tabbed(path: Path) -> Iterator[tuple[int, list[str]]]:
    return ((number, line.split("\t")) for number, line in numbered_lines(path))


def wikitext_lines(path: str | Path) -> Iterator[Sentence]:
    """Yield the paragraphs of a WikiText file as words without a parse; headings and empty lines are passed over.

    WikiText is split into words already, and writes signs inside a word as @-@, @,@ and @.@; here they are plain signs
    without spaces around them.
    """
    return (wikitext_words(line) for line in read_text(path) if not is_heading(line))


def is_heading(line: str) -> bool:
    """Whether a line of WikiText is a heading such as "= = Plot = ="."""
    return line.startswith("= ") and line.endswith(" =")


def wikitext_words(line: str) -> Sentence:
    """The words of one line of WikiText.

    >>> wikitext_words("1 @,@ 000 co @-@ stars .").text
    '1,000 co-stars .'
    """
    split = line.split()
    return Sentence(
        words=tuple(JOINERS.get(word, word) for word in split),
        spaces=tuple(
            word not in JOINERS and after not in JOINERS for word, after in zip(split, [*split[1:], ""], strict=True)
        ),
    )


def _item(fields: object, place: str) -> Sentence | str:
    """The sentence in a mapping with "words", or the text in one with "text"; `place` begins every error."""
    if not isinstance(fields, Mapping) or not ("text" in fields or "words" in fields):
        raise BadInput(f"{place} is not {JSON}.")
    if "words" not in fields:
        if not isinstance(fields["text"], str):
            raise BadInput(f'{place} has a "text" that is not a string.')
        return fields["text"]
    lists: dict[str, Any] = {name: _list(fields[name], name, place) for name in ENTRIES if fields.get(name) is not None}
    names: dict[str, Any] = {name: fields.get(name) for name in NAMES}
    for name, value in names.items():
        if not isinstance(value, str | None):
            raise BadInput(f'{place} has a "{name}" that is not a string.')
    if not lists.get("words"):
        raise BadInput(f'{place} has no words in "words".')
    parts = fields.get("parts", 1)
    if type(parts) is not int:
        raise BadInput(f'{place} has "parts" that are not a whole number.')
    try:
        return Sentence(**lists, **names, parts=parts)
    except BadInput as error:
        raise BadInput(f"{place} is malformed: {error}") from error


def _list(value: object, name: str, place: str) -> tuple[Any, ...]:
    kind, called = ENTRIES[name]
    if not isinstance(value, list) or not all(type(entry) is kind for entry in value):
        raise BadInput(f'{place} has "{name}" that are not a list of {called}.')
    return tuple(value)
