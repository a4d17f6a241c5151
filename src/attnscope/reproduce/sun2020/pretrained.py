"""Beyond the paper, its first next step: do rare words gain polarity and attention from polar words of like vectors?

Dot-product attention (DP) with λ = 10 is trained in three ways for each seed: from random embeddings, and twice from
pretrained vectors, which go on to be trained. Once one factor for all words brings them to the root mean square of the
random ones; they are then as soon overwritten, since Adagrad's first steps of .02 are large beside numbers below .1.
Once they keep their own size (GloVe's is some ten times as large). A word without a vector begins as it does in the
random run of that seed. A rare word is near a polar word if the cosine of their pretrained vectors, before any
training, is at least .6. A word that no training text has keeps the vector it begins with: whatever it gains comes
through V and W.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64
from torch import Tensor

from ...engine import UNFINISHED, Store
from ...errors import BadInput
from ...lab.data import ClassifiedTexts
from ...lab.polarity import global_scores
from ...lab.sweep import RunSettings, TrainedRun, initial_weights, sweep
from ...lab.token_classes import class_counts, token_classes
from ...lab.word_vectors import WordVectors, word_vectors
from .scales import Scale
from .sweeping import MODERATE
from .word_tables import compared, model_of

NEAR = 0.6
"""The least cosine to the nearest polar word: on SST it parts rare words into halves."""
RAREST = 2
"""How often a rare word occurs in training texts, at most."""
RANDOM, PRETRAINED, OWN_SIZE = "random", "pretrained", "pretrained of own size"
UNSEEN, SELDOM = "unseen", "once or twice"
NEAR_POSITIVE, NEAR_NEGATIVE, NEAR_NEITHER = "near a positive word", "near a negative word", "near neither"
SIDES = {NEAR_POSITIVE: 1, NEAR_NEGATIVE: -1}


def pretrained_runs(
    folder: Path, data: ClassifiedTexts, seeds: Sequence[int], scale: Scale, vectors: str | Path | None
) -> pd.DataFrame | None:
    """What rare words near polar ones have with both beginnings, as `compared_groups` tells it.

    None where there are no vectors: none are wanted, none are installed, or the words are made up.
    """
    words = pretrained_words(folder, data, seeds, scale, vectors)
    return None if words is None else compared_groups(words)


def pretrained_words(
    folder: Path, data: ClassifiedTexts, seeds: Sequence[int], scale: Scale, vectors: str | Path | None
) -> pd.DataFrame | None:
    """A row for each rare word, beginning and seed, from runs trained now or kept in `folder` from before.

    Columns: those of `rare_words`, beginning, seed, polarity, attention, and the test accuracy of the run.
    """
    if scale.toy and vectors is None:
        return None
    place = folder / f"{data.name}-pretrained"
    said = None if vectors is None else Path(vectors).name
    training = {name: value for name, value in scale.training("dot").items() if name != "width"}
    recipe = {"vectors": said, "seeds": list(seeds), **training}
    store = Store(place, "study", recipe)
    if (kept := store.find_table("words")) is not None:
        return kept
    found = word_vectors(vectors, data.vocabulary.words)
    if found is None:
        return None
    store.begin()
    rare = rare_words(data, found)
    tables = []
    for seed in seeds:
        for beginning, begun in beginnings(data, found, seed).items():
            checkpoint = place / UNFINISHED / f"{beginning}-{seed}.safetensors"
            settings = [RunSettings("dot", MODERATE, seed)]
            (run,) = sweep(data, settings, width=found.width, vectors=begun, checkpoint=checkpoint, **training)
            tables.append(_scored(data, run, found.width, rare).assign(beginning=beginning, seed=seed))
    words = store.keep_table("words", pd.concat(tables, ignore_index=True))
    shutil.rmtree(place / UNFINISHED, ignore_errors=True)
    return words


def beginnings(data: ClassifiedTexts, found: WordVectors, seed: int) -> dict[str, Float64[Tensor, "word width"]]:
    """The embeddings that runs of a seed begin with: random, with vectors as large as those, with vectors as found."""
    random = initial_weights("dot", len(data.vocabulary), found.width, 1, seed)["embeddings.weight"]
    numbers, rows = found.places(data.vocabulary)
    vectors = found.table[torch.from_numpy(rows)].double()
    same, own = random.clone(), random.clone()
    same[torch.from_numpy(numbers)] = vectors * (random.square().mean() / vectors.square().mean()).sqrt()
    own[torch.from_numpy(numbers)] = vectors
    return {RANDOM: random, PRETRAINED: same, OWN_SIZE: own}


def rare_words(data: ClassifiedTexts, found: WordVectors) -> pd.DataFrame:
    """Rare words that have a pretrained vector, each with the polar word whose vector is nearest.

    Columns: number, word, count, rarity, neighbour, cosine, group. The nearest polar word is taken, positive or
    negative; if even that is further away than NEAR, the word is near neither.
    """
    counts = class_counts(data.train, len(data.classes), len(data.vocabulary))
    kinds, total = token_classes(counts), counts.sum(0)
    numbers, rows = found.places(data.vocabulary)
    vectors = found.table[torch.from_numpy(rows)].double().numpy()
    directions = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(float).tiny)
    polar, rare = np.isin(numbers, kinds.polar), total[numbers] <= RAREST
    rare &= ~polar
    if not polar.any():
        raise BadInput("None of the polar words has a pretrained vector: give vectors of their language.")
    products = directions[rare] @ directions[polar].T
    nearest, cosines = numbers[polar][products.argmax(1)], products.max(1)
    sides = np.where(np.isin(nearest, kinds.positive), NEAR_POSITIVE, NEAR_NEGATIVE)
    return pd.DataFrame(
        {
            "number": numbers[rare],
            "word": data.vocabulary.decode(numbers[rare].tolist()),
            "count": total[numbers[rare]],
            "rarity": np.where(total[numbers[rare]] == 0, UNSEEN, SELDOM),
            "neighbour": data.vocabulary.decode(nearest.tolist()),
            "cosine": cosines,
            "group": np.where(cosines >= NEAR, sides, NEAR_NEITHER),
        }
    )


def _scored(data: ClassifiedTexts, run: TrainedRun, width: int, rare: pd.DataFrame) -> pd.DataFrame:
    """The rare words with their scores in a run."""
    scores, numbers = global_scores(model_of(data, run, width)), torch.tensor(rare["number"].to_numpy())
    return rare.assign(
        polarity=scores.polarity[numbers, 0].double().numpy(),
        attention=scores.attention[numbers].double().numpy(),
        test_accuracy=run.test_accuracy,
    )


def compared_groups(words: pd.DataFrame) -> pd.DataFrame:
    """A row for each beginning, seed, rarity and group of rare words, set against those near neither.

    Columns: words (how many), polarity and attention (means), with_sign (the share whose polarity has the sign of the
    neighbour), polarity_above (the share of pairs in which the word lies further to its neighbour's side than one near
    neither) with polarity_p, attention_above with attention_p (the same of higher attention), test_accuracy.
    """
    rows = []
    for (beginning, seed, rarity), run in words.groupby(["beginning", "seed", "rarity"], sort=False):
        neither = run[run["group"] == NEAR_NEITHER]
        for group in (NEAR_POSITIVE, NEAR_NEGATIVE, NEAR_NEITHER):
            members = run[run["group"] == group]
            if members.empty:
                continue
            row = {"beginning": beginning, "seed": seed, "rarity": rarity, "group": group, "words": len(members)}
            row |= {name: members[name].mean() for name in ("polarity", "attention", "test_accuracy")}
            if side := SIDES.get(group):
                row["with_sign"] = float((side * members["polarity"] > 0).mean())
            if side and len(neither):
                of_polarity = compared(*(side * part["polarity"].to_numpy() for part in (members, neither)))
                of_attention = compared(*(part["attention"].to_numpy() for part in (members, neither)))
                row |= {"polarity_above": of_polarity.above, "polarity_p": of_polarity.p}
                row |= {"attention_above": of_attention.above, "attention_p": of_attention.p}
            rows.append(row)
    columns = ["beginning", "seed", "rarity", "group", "words", "polarity", "with_sign", "polarity_above", "polarity_p"]
    return pd.DataFrame(rows, columns=[*columns, "attention", "attention_above", "attention_p", "test_accuracy"])


def pretrained_finding(table: pd.DataFrame) -> str:
    """What came out for polarity, attention and accuracy: both pretrained beginnings against the random one."""
    if table.empty:
        return "No rare word has a pretrained vector."
    told = [sentence for rarity in (UNSEEN, SELDOM) for sentence in _told(table, rarity)]
    right = table.groupby("beginning")["test_accuracy"].mean()
    told.append(f"Test accuracy is {right[RANDOM]:.3f}, {right[PRETRAINED]:.3f} and {right[OWN_SIZE]:.3f}.")
    told.append("Vectors of their own size were tried after the first result was seen, which makes them a hint only.")
    return " ".join(told)


def _told(table: pd.DataFrame, rarity: str) -> Iterator[str]:
    """The sentence about unseen or about seldom words, if there are any near polar ones and near neither."""
    near = table[(table["rarity"] == rarity) & table["group"].isin(SIDES)].dropna(subset="attention_above")
    if near.empty:
        return
    sign, attended = (_shares(near, column) for column in ("with_sign", "attention_above"))
    whose = {UNSEEN: "that no training text has", SELDOM: "that occur once or twice in training texts"}[rarity]
    yield (
        f"Words {whose} and that are near a polar one have its sign in {sign[RANDOM]} of cases with random beginnings, "
        f"{sign[PRETRAINED]} with pretrained vectors as large and {sign[OWN_SIZE]} with those of their own size, and "
        f"more attention than words near neither in {attended[RANDOM]}, {attended[PRETRAINED]} and "
        f"{attended[OWN_SIZE]} of pairs."
    )


def _shares(near: pd.DataFrame, column: str) -> dict[str, str]:
    """The mean over seeds of a share among words near polar ones, and in how many it is above that of random runs."""
    keys = [near["beginning"], near["seed"]]
    shares = (near[column] * near["words"]).groupby(keys).sum() / near["words"].groupby(keys).sum()
    told = {RANDOM: f"{shares[RANDOM].mean():.0%}"}
    for beginning in (PRETRAINED, OWN_SIZE):
        more = int((shares[beginning] > shares[RANDOM]).sum())
        told[beginning] = f"{shares[beginning].mean():.0%} (more in {more} of {len(shares[RANDOM])} seeds)"
    return told
