"""The data sets of the classification stage, and vectors to begin with: prepared once and kept for all workers."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ...engine import load_checkpoint, save_checkpoint
from ...lab.data import WORD_LEVEL, ClassifiedTexts, PackedTexts, toy_polarity
from ...lab.data.classified import Row
from ...lab.data.texts_file import load_texts, save_texts
from ...lab.data.word_level import word_level_texts
from ...lab.vocabulary import Vocabulary
from ...lab.word_vectors import word_vectors
from .classification_scale import ClassificationScale, DataScale
from .kept_runs import kept_folder

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
    own = kept_folder(folder / name, {**asdict(scale.data[name]), **sizes, **begin})
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
