"""The data sets that their users must bring: where their files are looked for, and how they are read."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ...corpora.finding import data_places
from ...errors import BadInput
from ...lab.data import ClassifiedTexts
from ...lab.data.word_level import yelp
from .paper import BROUGHT
from .sentence_pairs import TranslatedTexts, iwslt, news_commentary

FILES = {
    "yelp": ("yelp", ("yelp_academic_dataset_review.json",)),
    "iwslt14": ("iwslt14", tuple(f"{part}.{language}" for part in ("train", "valid") for language in ("de", "en"))),
    "news_it_pt": ("news_commentary", ("news-commentary-v14.it-pt.tsv",)),
    "news_en_nl": ("news_commentary", ("news-commentary-v14.en-nl.tsv",)),
    "news_en_pt": ("news_commentary", ("news-commentary-v14.en-pt.tsv",)),
}
"""The folder among the data sets, and its files, as they are downloaded or packed as .gz."""


def brought_files(name: str, data: str | Path | None = None) -> list[Path]:
    """The files of a data set, in `data` before $ATTNSCOPE_DATA.

    Raises:
        BadInput: If one of them is not there.
    """
    folder, wanted = FILES[name]
    for place in data_places(data):
        found = [_one(place / folder, file) for file in wanted]
        if None not in found:
            return [path for path in found if path is not None]
    raise BadInput(f"{name} was not run: there is no {folder}/{', '.join(wanted)} (or .gz) among the data sets.")


def _one(folder: Path, file: str) -> Path | None:
    return next((path for path in (folder / file, folder / f"{file}.gz") if path.is_file()), None)


def missing_brought(names: Iterator[str] | list[str], data: str | Path | None) -> Iterator[tuple[str, str]]:
    """Of those that are not there: the name, and why it is not run."""
    for name in names:
        try:
            brought_files(name, data)
        except BadInput as reason:
            yield name, str(reason)


def brought_texts(name: str, data: str | Path | None = None) -> ClassifiedTexts:
    """Texts in two classes: Yelp."""
    (file,) = brought_files(name, data)
    return replace(yelp(file), name=name)


def brought_pairs(name: str, data: str | Path | None = None, subwords_file: Path | None = None) -> TranslatedTexts:
    """Pairs of sentences: IWSLT'14 or News Commentary, by the name that tables have."""
    files = brought_files(name, data)
    if name == "iwslt14":
        texts = iwslt(files[0].parent, subwords_file=subwords_file)
    else:
        texts = news_commentary(files[0], subwords_file=subwords_file)
    return replace(texts, name=name)


PAIRS = tuple(name for name in BROUGHT if name != "yelp")
