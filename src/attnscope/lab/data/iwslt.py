"""IWSLT'14, German to English (Cettolo et al. 2015), as its users have it."""

from pathlib import Path

from ...errors import BadInput
from .translation import SIZE, TranslatedTexts, read_sides, translated_texts

FILES = {"train": "train", "dev": "valid"}


def iwslt(
    folder: str | Path, source: str = "de", target: str = "en", size: int = SIZE, kept: Path | None = None
) -> TranslatedTexts:
    """Talks, 160,000 pairs to learn from and 7,000 to look at.

    The folder has the files that the usual preparation script leaves, before its own subwords: train.de, train.en,
    valid.de and valid.en, one sentence in a line, as they are or packed as .gz. `kept` is a file for the subwords.
    """
    parts = {
        part: read_sides(*(_file(Path(folder), f"{file}.{language}") for language in (source, target)))
        for part, file in FILES.items()
    }
    return translated_texts("iwslt14", (source, target), parts, size, kept)


def _file(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise BadInput(f"There is no {name} or {name}.gz in {folder}: IWSLT'14 is two files for train and two for valid.")
