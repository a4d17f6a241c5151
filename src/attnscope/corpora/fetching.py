"""Data sets fetched from their official place, or added from a file at hand: checked first, then put in place whole."""

import gzip
import hashlib
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from ..errors import BadInput
from ..files import written_atomically
from .finding import cache, checked_split, dataset_named
from .table import Download

PATIENCE = 60.0  # seconds without an answer
PIECE = 1 << 16

Watch = Callable[[str, int, int | None], None]
"""Told of a download: its address, how many bytes have come, and how many there are if that is known."""


def fetch(
    name: str, splits: Iterable[str] = (), data: str | Path | None = None, watch: Watch | None = None
) -> list[Path]:
    """Download the files of a data set that are not in place yet; all of its splits if none is named.

    They are put into `data`, or the user's cache. What is there already is kept.

    Raises:
        BadInput: If the name or a split is not known, or it can only be had by hand.
        OSError: If the place cannot be reached, or gives something else than it should.
    """
    entry = dataset_named(name)
    wanted = list(splits) or list(entry.files)
    paths = {split: cache(data) / name / checked_split(name, split) for split in wanted}
    if not entry.downloads:
        raise BadInput(
            f"{name} must be made by hand from {entry.source}: {entry.layout}. Then: attnscope data add {name} FILE."
        )
    missing = [split for split, path in paths.items() if not path.exists()]
    with tempfile.TemporaryDirectory() as folder:
        for url in dict.fromkeys(entry.downloads[split].url for split in missing):
            archive = Path(folder) / Path(urlsplit(url).path).name
            _download(url, archive, watch)
            for split in missing:
                if entry.downloads[split].url == url:
                    unpacked = Path(folder) / "unpacked"
                    _unpack(archive, entry.downloads[split], unpacked)
                    if wrong := _wrong(name, split, unpacked):
                        raise OSError(f"What {url} gives is not {name}:{split}: {wrong}.")
                    _put(unpacked, paths[split])
    return list(paths.values())


def add_file(name: str, file: str | Path, split: str | None = None, data: str | Path | None = None) -> Path:
    """Put a file at hand in its place in the cache, or in `data`, if it is what it should be.

    The split may be left out where the name of the file tells it. The file may be gzipped.

    Raises:
        BadInput: If the name or split is not known, or the file is not there or not the right one.
    """
    path, entry = Path(file), dataset_named(name)
    if not path.is_file():
        raise BadInput(f"There is no file {str(path)!r}.")
    if split is None:
        named = [one for one, kept in entry.files.items() if path.name in {kept, kept.removesuffix(".gz")}]
        named = named or (list(entry.files) if len(entry.files) == 1 else [])
        if not named:
            raise BadInput(f"Which split of {name} {path.name} is cannot be told: say one of {', '.join(entry.files)}.")
        split = named[0]
    target = cache(data) / name / checked_split(name, split)
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder) / "unpacked"
        _unpack(path, Download(path.name), unpacked)
        if wrong := _wrong(name, split, unpacked):
            raise BadInput(f"{path} is not {name}:{split}: {wrong}.")
        _put(unpacked, target)
    return target


def _download(url: str, path: Path, watch: Watch | None) -> None:
    try:
        with urlopen(url, timeout=PATIENCE) as answer, path.open("wb") as file:  # noqa: S310 -- addresses of our table
            length = answer.headers.get("Content-Length")
            size = int(length) if length is not None else None
            come = 0
            while piece := answer.read(PIECE):
                file.write(piece)
                come += len(piece)
                if watch is not None:
                    watch(url, come, size)
    except (URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise OSError(
            f"Cannot download {url} ({reason}): try again with a network, or get it by other means and put it in place "
            "with attnscope data add."
        ) from error
    if size is not None and come != size:
        raise OSError(f"The download of {url} broke off after {come:,} of {size:,} bytes: try again.")


def _unpack(file: Path, download: Download, to: Path) -> None:
    """Write the file itself, without its packing, or the one member of an archive that is meant."""
    try:
        if download.member is None:
            with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as content:
                _copy(content, to)
        elif zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive, archive.open(download.member) as content:
                _copy(content, to)
        else:
            with tarfile.open(file) as folder:
                member = folder.extractfile(download.member)
                if member is None:
                    raise KeyError(download.member)  # noqa: TRY301 -- told below, like a member that is not there
                _copy(member, to)
    except KeyError as error:
        raise OSError(f"{download.url} has no member {download.member} any more.") from error
    except (gzip.BadGzipFile, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError) as error:
        raise BadInput(f"{file.name} is damaged: it cannot be unpacked.") from error


def _copy(content: Any, to: Path) -> None:
    """Copy an open file: one of gzip, zipfile or tarfile, which share no type."""
    with to.open("wb") as file:
        shutil.copyfileobj(content, file)


def _wrong(name: str, split: str, unpacked: Path) -> str | None:
    """What tells that this is another file, or a broken one."""
    entry = dataset_named(name)
    if split in entry.sha256:
        with unpacked.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return None if digest == entry.sha256[split] else f"its SHA-256 is {digest}, not {entry.sha256[split]}"
    begins = re.compile(entry.row.encode())
    with unpacked.open("rb") as file:
        rows = sum(begins.match(line) is not None for line in file)
    return None if rows == entry.rows[split] else f"it has {rows:,} rows, not {entry.rows[split]:,}"


def _put(unpacked: Path, target: Path) -> None:
    """Put a file in place, packed, all at once; the same content gives the same bytes."""
    with (
        written_atomically(target) as temporary,
        temporary.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed,
        unpacked.open("rb") as content,
    ):
        shutil.copyfileobj(content, packed)
