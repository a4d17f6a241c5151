"""The Stanford Emotional Narratives Dataset (Ong et al. 2019), read in the layout its authors give it out in.

    features/<part>/linguistic-word-level/ID<person>_vid<number>_….tsv    time-offset (seconds), word, …
    ratings/<part>/observer_EWE/results_<person>_<number>.csv             time, evaluatorWeightedEstimate (0 to 100)

The parts are Train, Valid and Test. SEND is given on request only: nothing of it is here, and `standin_stories` makes a
stand-in of the same shape.
"""

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path

from ...errors import BadInput
from ...syntax.lines import numbered_lines
from .story import SECONDS, Story, story_of

PARTS = {"train": "Train", "dev": "Valid", "test": "Test"}
TRANSCRIPT = re.compile(r"ID(\d+)_vid(\d+)_.*\.tsv")
TIME, WORD = "time-offset", "word"
RATED_TIME, RATING = "time", "evaluatorWeightedEstimate"


def read_send(folder: str | Path, seconds: int | float = SECONDS) -> dict[str, list[Story]]:
    """Training, validation ("dev") and test stories of a folder with SEND, ratings from -1 to 1.

    Raises:
        BadInput: If a file is missing or has other columns.
    """
    return {split: list(_part(Path(folder), part, seconds)) for split, part in PARTS.items()}


def _part(folder: Path, part: str, seconds: int | float) -> Iterator[Story]:
    said = _inside(_inside(folder / "features", part), "linguistic-word-level")
    rated = _inside(_inside(folder / "ratings", part), "observer_EWE")
    found = sorted((path, match) for path in said.iterdir() if (match := TRANSCRIPT.fullmatch(path.name)))
    if not found:
        raise BadInput(f"There is no transcript ID…_vid…_….tsv in {said}.")
    for path, match in found:
        person, number = match.groups()
        words = [(time, word) for time, word in _columns(path, "\t", TIME, WORD) if word]
        ratings = _columns(rated / f"results_{person}_{number}.csv", ",", RATED_TIME, RATING)
        try:
            scaled = [(time, float(rating) / 50 - 1) for time, rating in ratings]
        except ValueError:
            scaled = [(0.0, math.nan)]
        if not all(math.isfinite(rating) for _, rating in scaled):
            raise BadInput(f"A rating of {rated / f'results_{person}_{number}.csv'} is no number.")
        yield story_of(f"ID{person}_vid{number}", words, scaled, seconds)


def _inside(folder: Path, name: str) -> Path:
    """A folder by its name, in capitals or not."""
    found = [path for path in folder.iterdir() if path.name.lower() == name.lower()] if folder.is_dir() else []
    if not found:
        raise BadInput(f"{folder / name} is missing: give the folder of SEND that has features and ratings in it.")
    return found[0]


def _columns(path: Path, delimiter: str, time: str, value: str) -> list[tuple[float, str]]:
    """Two columns of a table with a header: seconds, and what is there at that time."""
    try:
        lines = (line for _, line in numbered_lines(path))
        rows = list(csv.DictReader(lines, delimiter=delimiter, skipinitialspace=True))
    except csv.Error as error:
        raise BadInput(f"{path} is no table: {error}.") from error
    if rows and (missing := [name for name in (time, value) if name not in rows[0]]):
        raise BadInput(f"{path} has no column {missing[0]}: is it a file of SEND?")
    try:
        found = [(float(row[time]), (row[value] or "").strip()) for row in rows]
    except (TypeError, ValueError):
        found = [(math.nan, "")]
    if not all(math.isfinite(seconds) for seconds, _ in found):
        raise BadInput(f"A time in the column {time} of {path} is no number of seconds.")
    return found
