"""How long the classifiers are trained on each data set, and how much of it is taken."""

from collections.abc import Mapping
from dataclasses import dataclass

from ...lab.bag_training import EPOCHS, RATE, SLOW_RATE

SLOW = ("imdb", "amazon", "yelp")
"""The data sets for which the authors' proxy learns more slowly."""


@dataclass(frozen=True)
class DataScale:
    """What is trained on one data set; None takes all there is."""

    steps: int
    others: int
    """Runs beside the first that differ in their seed alone: B, C, … of the paper."""
    longest: int | None = None
    """Words of a text."""
    train: int | None = None
    validation: int | None = None
    sample: int | None = None
    """Training texts that are looked at."""


@dataclass(frozen=True)
class ClassificationScale:
    """The data sets in the order they are done, and the size of the models."""

    data: Mapping[str, DataScale]
    width: int = 300
    hidden: int = 256
    attention_width: int = 256
    proxy_epochs: int = EPOCHS
    proxy_width: int = 256
    toy: bool = False
    """Whether made-up sentences stand in for the data sets."""

    def proxy_rate(self, name: str) -> float:
        """The proxy's learning rate."""
        return SLOW_RATE if name in SLOW else RATE


SMOKE = ClassificationScale(
    {"sst": DataScale(60, 2, validation=30, sample=20), "20news": DataScale(20, 1, validation=30, sample=20)},
    width=16,
    hidden=8,
    attention_width=8,
    proxy_epochs=3,
    proxy_width=8,
    toy=True,
)
CPU = ClassificationScale(
    {
        "sst": DataScale(4_000, 5, sample=500),
        "20news": DataScale(500, 2, longest=120, sample=400),
        "imdb": DataScale(750, 1, longest=100, train=10_000, validation=800, sample=300),
        "sms": DataScale(750, 4, longest=60, validation=1_000, sample=400),
        "ag_news": DataScale(750, 2, sample=400),
        "amazon": DataScale(750, 2, longest=80, sample=300),
    }
)
PAPER = ClassificationScale(
    {name: DataScale(4_000, 5, sample=4_000) for name in ("sst", "20news", "imdb", "sms", "ag_news", "amazon")}
)
