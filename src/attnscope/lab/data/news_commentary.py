"""News Commentary v14 (WMT 2019), as its users have it: one table of two columns for a pair of languages."""

import re
from pathlib import Path

import numpy as np

from ...errors import BadInput
from ...syntax.lines import numbered_lines
from .translation import SIZE, Pair, TranslatedTexts, has_letters, translated_texts

NAME = re.compile(r"news-commentary-v\d+\.(\w+)-(\w+)\.tsv(\.gz)?")
DEV_SHARE = 0.1
SEED = 0
"""Of the split; the authors' is not known."""


def news_commentary(
    file: str | Path, source: str | None = None, size: int = SIZE, kept: Path | None = None
) -> TranslatedTexts:
    """Nine tenths of the pairs to learn from, one tenth, drawn at random, to look at (A.8).

    `file` is as it is downloaded, such as news-commentary-v14.en-nl.tsv.gz: a pair in each line with a tab between the
    languages its name says, and empty lines between texts. Purely numerical pairs are left out (A.5). `source` is the
    first language unless said.
    """
    path = Path(file)
    name = NAME.fullmatch(path.name)
    if name is None:
        raise BadInput(f"{path.name} is not named like news-commentary-v14.en-nl.tsv, so its languages are not known.")
    languages = (name[1], name[2])
    if source is not None and source not in languages:
        raise BadInput(f"{path.name} is in {' and '.join(languages)}, so the source is not {source!r}.")
    turned = source == languages[1]
    pairs = [pair[::-1] if turned else pair for pair in _pairs(path) if has_letters(pair)]
    order = np.random.default_rng(SEED).permutation(len(pairs))
    held_out = set(order[: round(DEV_SHARE * len(pairs))].tolist())
    parts: dict[str, list[Pair]] = {"train": [], "dev": []}
    for number, pair in enumerate(pairs):
        parts["dev" if number in held_out else "train"].append(pair)
    first, second = languages[::-1] if turned else languages
    return translated_texts(f"news-{first}-{second}", (first, second), parts, size, kept)


def _pairs(path: Path) -> list[Pair]:
    found = []
    for number, line in numbered_lines(path):
        sides = [side.strip() for side in line.split("\t")]
        if len(sides) > 2:
            raise BadInput(f"Line {number} of {path} has {len(sides)} columns, not a sentence and its translation.")
        # between texts, and where one language has no sentence, a line or a column is empty
        if len(sides) == 2 and all(sides):
            found.append((sides[0], sides[1]))
    return found
