"""The lines of a text file with their numbers, unpacked if it is gzipped; as they are, as JSON or as rows."""

import csv
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import BadInput, is_text


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number, line) from one on, without the line's end."""
    if not path.is_file():
        raise BadInput(f"There is no file {str(path)!r}.")
    number = 0
    try:
        # Lines are decoded one by one, so that a bad byte has a line number.
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise BadInput(f"Line {number} of {path} is not text in UTF-8.") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{path} is not text in UTF-8, or is damaged: it cannot be unpacked.") from error


def numbered_json(path: Path, what: str) -> Iterator[tuple[int, Any]]:
    """Yield (number, value) of each line that is not blank; `what` says in errors what a line should be."""
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"Line {number} of {path} is not {what}.") from error
        if "\\u" in line and not is_text(json.dumps(value, ensure_ascii=False)):
            raise BadInput(f"Line {number} of {path} has half a character in it, which is no text: mend that escape.")
        yield number, value


def numbered_rows(
    path: Path, delimiter: str = ",", quoting: Any = csv.QUOTE_MINIMAL
) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of its last line, cells) of each row of a table; a quoted cell may hold line breaks."""
    rows = csv.reader(
        (f"{line}\n" for _, line in numbered_lines(path)), delimiter=delimiter, quoting=quoting, strict=True
    )
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise BadInput(f"Line {rows.line_num} of {path} is no row of a table: {error}.") from error
