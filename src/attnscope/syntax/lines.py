"""The lines of a text file with their numbers, unpacked if it is gzipped."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from ..errors import BadInput


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
