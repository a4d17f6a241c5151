"""A stand-in for SEND: stories put together from labelled sentences, with a made-up valence. No claim rests on it.

Nobody told these stories and nobody rated them. A hidden mood drifts from window to window, each window takes a
sentence whose label is near the mood, and the valence follows the labels with inertia and noise. So there is
something to learn, over time, in data of the shape of SEND.
"""

from collections.abc import Sequence
from random import Random

from ...errors import BadInput
from .sst_trees import SentimentTree
from .story import Story, windows_of

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
