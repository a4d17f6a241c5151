"""20 Newsgroups as Sun & Lu 2020 use it: hockey against baseball, and motorcycles, medicine and guns."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from ...corpora import dataset_file
from ...errors import BadInput
from ...syntax.lines import numbered_lines
from .classified import classified_texts, shuffled_parts, words_of
from .packed import ClassifiedTexts

SPORTS = {"baseball": "rec.sport.baseball", "hockey": "rec.sport.hockey"}
"""Negative and positive in the paper."""
THREE = {"motorcycles": "rec.motorcycles", "medicine": "sci.med", "guns": "talk.politics.guns"}
NUMBER = "qqq"
"""What stands for every word with a digit in it."""
SEED = 13478
"""The authors' seed; their order of postings, and so their split, is not known."""
SPORTS_SHARES = {"train": 0.64, "dev": 0.16, "test": 0.20}
THREE_SHARES = {"train": 2300 / 2814, "dev": 240 / 2814, "test": 274 / 2814}
"""Those of Table 1; the paper does not say how it split."""


def newsgroups_sports(place: str | Path | None = None) -> ClassifiedTexts:
    """20News I: baseball (0, negative) and hockey (1, positive).

    Both parts of the official split together, split anew into 64, 16 and 20 percent of each class. `place` is where
    data sets lie, before $ATTNSCOPE_DATA.
    """
    return _split("20news1", SPORTS, SPORTS_SHARES, place)


def newsgroups_three(place: str | Path | None = None) -> ClassifiedTexts:
    """20News II: motorcycles, medicine and guns, with the paper's shares for training, validation and test."""
    return _split("20news2", THREE, THREE_SHARES, place)


def posting_words(posting: str) -> list[str]:
    r"""The words that the author of a posting wrote; one with a digit in it is "qqq".

    >>> posting_words("Subject: Score\n\nIt was 3-2, on the 4th!")
    ['it', 'was', 'qqq', 'qqq', 'on', 'the', 'qqq']
    """
    return [NUMBER if any(sign.isdigit() for sign in word) else word for word in words_of(own_text(posting))]


def _split(
    name: str, groups: Mapping[str, str], shares: Mapping[str, float], place: str | Path | None
) -> ClassifiedTexts:
    numbers = {group: number for number, group in enumerate(groups.values())}
    rows = [
        (words, numbers[group])
        for split in ("train", "test")
        for group, posting in postings(dataset_file("20news", split, place))
        if group in numbers and (words := posting_words(posting))
    ]
    return classified_texts(name, tuple(groups), shuffled_parts(rows, [label for _, label in rows], shares, SEED))


def postings(path: Path) -> list[tuple[str, str]]:
    """The postings of a file, each with its group before it."""
    found = []
    for number, line in numbered_lines(path):
        try:
            row = json.loads(line)
            found.append((str(row["group"]), str(row["text"])))
        except (json.JSONDecodeError, KeyError, TypeError):
            raise BadInput(f'Line {number} of {path} is no JSON with "group" and "text".') from None
    return found


# What the author of a newsgroup posting wrote in it: no headers, no signature, and no lines of others.


ANNOUNCES = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from")
"""A line that says who is quoted."""
QUOTED = ("|", ">")


def own_text(posting: str) -> str:
    r"""A posting without headers, signature and quotes, as in scikit-learn's `remove=`.

    >>> own_text("From: me\n\nYou wrote:\n> Who won?\nWe did.\n\n--\nMy name")
    'We did.\n'
    """
    return _without_quotes(_without_signature(_without_headers(posting)))


def _without_headers(posting: str) -> str:
    """Headers end at the first empty line."""
    return posting.partition("\n\n")[2]


def _without_signature(text: str) -> str:
    """A signature is what stands behind the last line that is empty or a rule of dashes, if anything is before it."""
    lines = text.strip().split("\n")
    breaks = [number for number, line in enumerate(lines) if not line.strip().strip("-")]
    return "\n".join(lines[: breaks[-1]]) if breaks and breaks[-1] > 0 else text


def _without_quotes(text: str) -> str:
    """Every line goes that is marked as quoted, or says that a quote follows."""
    kept = [line for line in text.split("\n") if not line.startswith(QUOTED) and not ANNOUNCES.search(line)]
    return "\n".join(kept)
