"""Where named data sets are found: each in a folder of its own name, in a place the user names or in the cache."""

import os
from pathlib import Path

from ..errors import BadInput
from .table import CORPORA, Dataset

DATA = "ATTNSCOPE_DATA"
"""The environment variable that names the folder of all data sets."""


def dataset(name: str, data: str | Path | None = None) -> Path:
    """The folder of a data set: in `data`, in $ATTNSCOPE_DATA or in the user's cache, whichever has it first.

    Raises:
        BadInput: If the name is not known, or no place has any of its files.
    """
    files = dataset_named(name).files.values()
    for place in _looked_in(data):
        if any(_present(place / name / file) for file in files):
            return place / name
    raise BadInput(_missing(name, ", ".join(files), data))


def dataset_file(name: str, split: str | None = None, data: str | Path | None = None) -> Path:
    """The file of one split of a data set, packed as .gz or not; if none is named, "test" or the only one.

    Raises:
        BadInput: If the name or split is not known, or no place has the file.
    """
    files = dataset_named(name).files
    if split is None and "test" not in files and len(files) > 1:
        raise BadInput(f"{name} has several splits: name one, as in {name}:{next(iter(files))} ({', '.join(files)}).")
    split = split or ("test" if "test" in files else next(iter(files)))
    file = checked_split(name, split)
    for place in _looked_in(data):
        if found := _present(place / name / file):
            return found
    raise BadInput(_missing(name, file, data))


def named_file(corpus: object, data: str | Path | None = None) -> tuple[Path, str] | None:
    """The file of a data set that is named with its split ("ud_ewt", "ud_ewt:dev") and how it is written, if it is one.

    Raises:
        BadInput: If the split is not known, or no place has the file.
    """
    name, _, split = corpus.partition(":") if isinstance(corpus, str) else ("", "", "")
    return (dataset_file(name, split or None, data), CORPORA[name].kind) if name in CORPORA else None


def files_here(name: str, data: str | Path | None = None) -> dict[str, Path]:
    """The splits of a data set that are found, and their files."""
    files = dataset_named(name).files
    found = {split: [_present(place / name / file) for place in _looked_in(data)] for split, file in files.items()}
    return {split: next(filter(None, paths)) for split, paths in found.items() if any(paths)}


def dataset_named(name: str) -> Dataset:
    """The data set of that name, if there is one."""
    if name not in CORPORA:
        raise BadInput(f"There is no data set {name!r}: choose from {', '.join(CORPORA)}.")
    return CORPORA[name]


def checked_split(name: str, split: str) -> str:
    """The file name of a split, if the data set has it."""
    files = dataset_named(name).files
    if split not in files:
        raise BadInput(f"{name} has no split {split!r}: choose from {', '.join(files)}.")
    return files[split]


def cache(data: str | Path | None = None) -> Path:
    """Where data sets are put: in `data` if that is said, else in the user's cache."""
    return _places(data)[0] if data else _places(None)[-1]


def _places(data: str | Path | None) -> list[Path]:
    """Where data sets are looked for, the first choice first."""
    said = [Path(place).expanduser() for place in (data, os.environ.get(DATA)) if place]
    own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [*said, own / "attnscope" / "data"]


def data_places(data: str | Path | None = None) -> list[Path]:
    """Where data sets are looked for that are in no table, the first choice first."""
    return _looked_in(data)


def _looked_in(data: str | Path | None) -> list[Path]:
    """The same, if the folder that is said is there: another's data in its place would be a surprise."""
    if data and not Path(data).expanduser().is_dir():
        raise BadInput(f"There is no folder {data} to look for data sets in.")
    return _places(data)


def _present(file: Path) -> Path | None:
    return next((path for path in (file, file.with_suffix("")) if path.is_file()), None)


def _missing(name: str, files: str, data: str | Path | None) -> str:
    looked = ", ".join(str(place / name) for place in _places(data))
    entry = CORPORA[name]
    get = f"attnscope data get {name}" if entry.downloads else f"attnscope data add {name} FILE"
    return (
        f"The data set {name} ({files}) is not here; looked in {looked}. "
        f"Get it from {entry.source} ({get}), or set ${DATA} to the folder that holds {name}."
    )
