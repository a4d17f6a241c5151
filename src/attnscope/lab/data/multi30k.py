"""Multi30k (Elliott et al. 2016): captions of pictures in English and German, as Snell et al. 2021 translate them."""

from pathlib import Path

from ...corpora import dataset_file
from ...errors import BadInput
from .translation import SIZE, TranslatedTexts, read_sides, translated_texts

LANGUAGES = ("de", "en")
FILES = {"train": "train", "dev": "val"}


def multi30k(
    place: str | Path | None = None, source: str = "de", size: int = SIZE, kept: Path | None = None
) -> TranslatedTexts:
    """29,000 pairs to learn from and 1,014 to look at.

    The paper says English to German, but the authors' loader reads German first, and so does this by default. `place`
    is where data sets lie, before $ATTNSCOPE_DATA; `kept` is a file for the subwords, which take a while to learn.
    """
    if source not in LANGUAGES:
        raise BadInput(f"Multi30k is here in {' and '.join(LANGUAGES)}, so the source is not {source!r}.")
    target = LANGUAGES[1 - LANGUAGES.index(source)]
    parts = {
        part: read_sides(*(dataset_file("multi30k", f"{file}.{language}", place) for language in (source, target)))
        for part, file in FILES.items()
    }
    return translated_texts("multi30k", (source, target), parts, size, kept)
