"""The data sets of the classification stage, and vectors to begin with: prepared once and kept for all workers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ...engine import Store, load_checkpoint, save_checkpoint
from ...lab.bag_training import EPOCHS, RATE, SLOW_RATE
from ...lab.data import WORD_LEVEL, ClassifiedTexts, PackedTexts, toy_polarity
from ...lab.data.classified import Row
from ...lab.data.packed import load_texts, save_texts
from ...lab.data.word_level import word_level_texts
from ...lab.vocabulary import Vocabulary
from ...lab.word_vectors import word_vectors
from .kept_runs import STAGE

# How long the classifiers are trained on each data set, and how much of it is taken.


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


SEED = 0
FILE, VECTORS = "texts.safetensors", "vectors.safetensors"


def prepared(
    folder: Path, name: str, scale: ClassificationScale, place: str | Path | None, vectors: str | Path | None = None
) -> ClassifiedTexts:
    """The data set at this scale, made now or kept from before: `train` to learn from, `dev` to look at.

    Its `test` are the training texts that are looked at too. `vectors` are those its words begin with.
    """
    sizes = {each: value for each, value in asdict(scale).items() if each != "data"}
    begin = {"vectors": None if vectors is None else Path(vectors).name}
    own = folder / name
    Store(own, STAGE, {**asdict(scale.data[name]), **sizes, **begin}).begin()
    if not (own / FILE).exists():
        found = replace(toy_polarity(), name=name) if scale.toy else WORD_LEVEL[name](place)
        save_texts(own / FILE, cut(found, scale.data[name], ends=0 if scale.toy else 1))
    texts = load_texts(own / FILE)
    if vectors is not None and not (own / VECTORS).exists():
        _keep_vectors(own / VECTORS, vectors, texts.vocabulary)
    return texts


def _keep_vectors(path: Path, vectors: str | Path, vocabulary: Vocabulary) -> None:
    found = word_vectors(vectors, vocabulary.words)
    if found is not None:
        numbers, rows = (torch.from_numpy(places) for places in found.places(vocabulary))
        save_checkpoint(path, {"numbers": numbers, "vectors": found.table[rows]})


def embedding_width(own: Path, otherwise: int) -> int:
    """How wide the vectors of words are: as those that are kept in the folder of a data set, if there are any."""
    return int(load_checkpoint(own / VECTORS)["vectors"].shape[1]) if (own / VECTORS).exists() else otherwise


@torch.no_grad()
def begin_with_vectors(embeddings: nn.Embedding, own: Path) -> None:
    """Let the words that have a vector in this folder begin as that; all others stay as they are."""
    if (own / VECTORS).exists():
        kept = load_checkpoint(own / VECTORS)
        embeddings.weight[kept["numbers"]] = kept["vectors"]


def cut(texts: ClassifiedTexts, scale: DataScale, ends: int = 1) -> ClassifiedTexts:
    """Fewer and shorter texts, as the scale says; words that are rare in what is left are unknown.

    `ends` is how many special tokens a text has on either side; all have one on either side afterwards.
    """
    made = word_level_texts(
        texts.name,
        texts.classes,
        _rows(texts, texts.train, scale.train, scale.longest, ends),
        _rows(texts, texts.dev, scale.validation, scale.longest, ends),
    )
    return replace(made, test=_chosen(made.train, scale.sample))


def _rows(texts: ClassifiedTexts, part: PackedTexts, most: int | None, longest: int | None, ends: int) -> list[Row]:
    taken = _chosen(part, most)
    words = (texts.vocabulary.decode(text[ends : len(text) - ends].tolist())[:longest] for text in taken)
    return list(zip(words, taken.labels.tolist(), strict=True))


def _chosen(texts: PackedTexts, most: int | None) -> PackedTexts:
    """So many of the texts, drawn at random, in their order."""
    if most is None or most >= len(texts):
        return texts
    numbers = np.sort(np.random.default_rng(SEED).permutation(len(texts))[:most])
    every = list(texts)
    return PackedTexts.of([every[number].tolist() for number in numbers], texts.labels[numbers].tolist())
