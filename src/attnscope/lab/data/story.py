"""A story told over time: windows of some seconds, the words said in each, and how its teller felt."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import BadInput

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
    """Windows from the words said in each; where the first is silent, it is read as `before`, which nobody knows.

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
