"""A story told over time: windows of some seconds, the words said in each, and how its teller felt."""

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from ...errors import BadInput
from ...syntax.lines import numbered_lines
from .sst_trees import SentimentTree

SECONDS = 5.0
"""The length of a window in Wu, Nguyen & Ong 2020."""
NULL = "null"
"""What is shown for a window in which nothing is said."""


@dataclass(frozen=True)
class Window:
    """The tokens of a window, and the words that the model reads for them.

    They are the same but where nothing is said: there the token is "null", read as the last word said before.
    """

    tokens: tuple[str, ...]
    read: tuple[str, ...]

    @property
    def silent(self) -> bool:
        """Whether nothing is said in it."""
        return self.tokens == (NULL,) and self.tokens != self.read


@dataclass(frozen=True)
class Story:
    """The windows of a story in order, and the valence of each, from -1 (very negative) to 1."""

    name: str
    windows: tuple[Window, ...]
    valences: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.windows) != len(self.valences) or not self.windows:
            raise BadInput(f"The story {self.name} has {len(self.windows)} windows and {len(self.valences)} valences.")


def windows_of(spoken: Sequence[Sequence[str]], before: str = "[UNK]") -> tuple[Window, ...]:
    """Windows from the words said in each; where the first is silent, it is read as `before`, which no model knows.

    >>> [window.read for window in windows_of([["so", "glad"], [], ["then"]])]
    [('so', 'glad'), ('glad',), ('then',)]
    """
    windows = []
    for words in spoken:
        windows.append(Window(tuple(words), tuple(words)) if words else Window((NULL,), (before,)))
        before = windows[-1].read[-1]
    return tuple(windows)


def story_of(
    name: str,
    words: Sequence[tuple[float, str]],
    ratings: Sequence[tuple[float, float]],
    seconds: int | float = SECONDS,
) -> Story:
    """A story from words and ratings, each with its time in seconds from the start.

    Window k holds what is said from k·seconds on and before (k+1)·seconds; its valence is the mean of the ratings then.
    A window without any rating has no valence and ends the story there, whatever is said later.
    """
    if seconds <= 0:
        raise BadInput(f"A window lasts longer than 0 seconds, not {seconds}.")
    rated: dict[int, list[float]] = {}
    for time, rating in ratings:
        rated.setdefault(int(time // seconds), []).append(rating)
    count = 0
    while count in rated:
        count += 1
    if not count:
        raise BadInput(f"The story {name} has no rating in its first {seconds:g} seconds.")
    spoken: list[list[str]] = [[] for _ in range(count)]
    for time, word in sorted(words, key=lambda timed: timed[0]):
        if 0 <= time // seconds < count:
            spoken[int(time // seconds)].append(word)
    means = tuple(sum(rated[window]) / len(rated[window]) for window in range(count))
    return Story(name, windows_of(spoken), means)


# A stand-in for SEND: stories put together from labelled sentences, with a made-up valence. No claim rests on it.
# Nobody told these stories and nobody rated them. A hidden mood drifts from window to window, each window takes a
# sentence whose label is near the mood, and the valence follows the labels with inertia and noise. So there is
# something to learn, over time, in data of the shape of SEND.


NAME = "a stand-in for SEND, made from labelled sentences"
DRIFT, INERTIA, NOISE, SILENT = 0.35, 0.6, 0.05, 0.05
"""The mood's step, how much of a valence stays, its noise, and the share of windows in which nothing is said."""


def standin_stories(trees: Sequence[SentimentTree], count: int, windows: int = 20, seed: int = 0) -> list[Story]:
    """As many stories of so many windows each, always the same for a seed; a sentence may come again in another story.

    Valences are from -1 to 1: a label from 0 to 4 pulls towards label / 2 - 1.
    """
    if count < 1 or windows < 1:
        raise BadInput(f"A stand-in has at least one story of one window, not {count} of {windows}.")
    sentences: dict[int, list[SentimentTree]] = {}
    for tree in trees:
        sentences.setdefault(tree.label, []).append(tree)
    if not sentences:
        raise BadInput("A stand-in for SEND is made from labelled sentences, and there are none.")
    return [_story(sentences, f"stand-in {number}", windows, Random(f"{seed} {number}")) for number in range(count)]


def _story(sentences: dict[int, list[SentimentTree]], name: str, windows: int, dice: Random) -> Story:
    mood = valence = dice.uniform(-1, 1)
    spoken: list[tuple[str, ...]] = []
    valences: list[float] = []
    for _ in range(windows):
        mood = _within(mood + dice.gauss(0, DRIFT))
        pull = valence
        if dice.random() < SILENT:
            spoken.append(())
        else:
            label = min(sentences, key=lambda known: (abs(known / 2 - 1 - mood), known))
            spoken.append(dice.choice(sentences[label]).words)
            pull = label / 2 - 1
        valence = _within(INERTIA * valence + (1 - INERTIA) * pull + dice.gauss(0, NOISE))
        valences.append(valence)
    return Story(name, windows_of(spoken), tuple(valences))


def _within(value: float) -> float:
    return max(-1.0, min(1.0, value))


# The Stanford Emotional Narratives Dataset (Ong et al. 2019), read in the layout its authors give it out in.
# features/<part>/linguistic-word-level/ID<person>_vid<number>_….tsv time-offset (seconds), word, …
# ratings/<part>/observer_EWE/results_<person>_<number>.csv time, evaluatorWeightedEstimate (0 to 100)
# The parts are Train, Valid and Test. SEND is given on request only: nothing of it is here, and `standin_stories`
# makes a stand-in of the same shape.


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
    transcripts = _inside(_inside(folder / "features", part), "linguistic-word-level")
    rated = _inside(_inside(folder / "ratings", part), "observer_EWE")
    found = sorted((path, match) for path in transcripts.iterdir() if (match := TRANSCRIPT.fullmatch(path.name)))
    if not found:
        raise BadInput(f"There is no transcript ID…_vid…_….tsv in {transcripts}.")
    for path, match in found:
        person, number = match.groups()
        words = [(time, word) for time, word in _columns(path, "\t", TIME, WORD) if word]
        file = rated / f"results_{person}_{number}.csv"
        ratings = [
            (time, _finite(rating, f"A rating of {file} is no number.") / 50 - 1)
            for time, rating in _columns(file, ",", RATED_TIME, RATING)
        ]
        yield story_of(f"ID{person}_vid{number}", words, ratings, seconds)


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
    wrong = f"A time in the column {time} of {path} is no number of seconds."
    return [(_finite(row[time], wrong), (row[value] or "").strip()) for row in rows]


def _finite(text: str | None, wrong: str) -> float:
    """The number that a cell holds; if it holds none, `wrong` says so."""
    try:
        number = float(text or "")
    except ValueError:
        raise BadInput(wrong) from None
    if not math.isfinite(number):
        raise BadInput(wrong)
    return number
