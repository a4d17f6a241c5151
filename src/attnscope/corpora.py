"""Where named data sets lie: each in a folder of its own name, in a place the user says or in the user's cache."""

import os
from dataclasses import dataclass
from pathlib import Path

from .errors import BadInput

DATA = "ATTNSCOPE_DATA"
"""The environment variable that names the folder of all data sets."""


@dataclass(frozen=True)
class Dataset:
    """A data set: its file of each split, how they are written, what it is, its licence, and where it comes from."""

    files: dict[str, str]
    kind: str
    about: str
    licence: str
    source: str


CORPORA = {
    "ud_ewt": Dataset(
        files={split: f"en_ewt-ud-{split}.conllu.gz" for split in ("train", "dev", "test")},
        kind="conllu",
        about="Universal Dependencies, English Web Treebank: weblogs, newsgroups, e-mail, reviews and answers, with "
        "parts of speech and dependencies by hand",
        licence="CC BY-SA 4.0",
        source="https://github.com/UniversalDependencies/UD_English-EWT",
    ),
    "wikitext2": Dataset(
        files={split: f"{split}.txt.gz" for split in ("valid", "test")},
        kind="wikitext",
        about="WikiText-2: good and featured articles of the English Wikipedia, split into words, without a parse",
        licence="CC BY-SA",
        source="https://huggingface.co/datasets/Salesforce/wikitext",
    ),
}


def dataset(name: str, data: str | Path | None = None) -> Path:
    """The folder of a data set: in `data`, in $ATTNSCOPE_DATA or in the user's cache, whichever has it first.

    Raises:
        BadInput: If the name is not known, or no place has any of its files.
    """
    files = _known(name).files.values()
    for place in _places(data):
        if any(_present(place / name / file) for file in files):
            return place / name
    raise BadInput(_missing(name, ", ".join(files), data))


def dataset_file(name: str, split: str | None = None, data: str | Path | None = None) -> Path:
    """The file of one split of a data set ("test" if none is named), packed as .gz or not.

    Raises:
        BadInput: If the name or split is not known, or no place has the file.
    """
    files, split = _known(name).files, split or "test"
    if split not in files:
        raise BadInput(f"{name} has no split {split!r}: choose from {', '.join(files)}.")
    for place in _places(data):
        if found := _present(place / name / files[split]):
            return found
    raise BadInput(_missing(name, files[split], data))


def _known(name: str) -> Dataset:
    if name not in CORPORA:
        raise BadInput(f"There is no data set {name!r}: choose from {', '.join(CORPORA)}.")
    return CORPORA[name]


def _places(data: str | Path | None) -> list[Path]:
    """Where data sets are looked for, the first choice first."""
    said = [Path(place).expanduser() for place in (data, os.environ.get(DATA)) if place]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [*said, cache / "attnscope" / "data"]


def _present(file: Path) -> Path | None:
    return next((path for path in (file, file.with_suffix("")) if path.is_file()), None)


def _missing(name: str, files: str, data: str | Path | None) -> str:
    looked = ", ".join(str(place / name) for place in _places(data))
    return (
        f"The data set {name} ({files}) is not here; looked in {looked}. "
        f"Get it from {CORPORA[name].source} and put it there, or set ${DATA} to the folder that holds {name}."
    )
