"""How alike the vectors of words are, within a class and between classes, and how V and W lie to each other."""

from collections.abc import Mapping
from itertools import combinations_with_replacement

import numpy as np
import torch
from jaxtyping import Int64

from ..models.attention_classifier import AttentionClassifier


def dot_products(model: AttentionClassifier, kinds: Mapping[str, Int64[np.ndarray, " _"]]) -> dict[str, float]:
    """The mean e_i · e_j over all pairs of words of each two kinds, a word with itself left out; V·W, |V| and |W|.

    A kind is named and given as the numbers of its words; "positive-neutral" is the name of a pair. Of a kind with no
    word, or with one by itself, there is no mean. With more than two classes, V·W and |W| have the number of the class
    behind them.
    """
    table = model.embeddings.weight.detach().double()
    vectors = {name: table[torch.from_numpy(numbers)] for name, numbers in kinds.items()}
    sums = {name: rows.sum(0) for name, rows in vectors.items()}
    found: dict[str, float] = {}
    for first, second in combinations_with_replacement(kinds, 2):
        total = sums[first] @ sums[second]
        pairs = len(vectors[first]) * len(vectors[second])
        if first == second:
            total, pairs = total - vectors[first].square().sum(), pairs - len(vectors[first])
        if pairs:
            found[f"{first}-{second}"] = float(total / pairs)
    context, output = model.context.detach().double(), model.output.weight.detach().double()
    found["|V|"] = float(context.norm())
    for number, row in enumerate(output):
        place = f"_{number}" if len(output) > 1 else ""
        found[f"V·W{place}"], found[f"|W|{place}"] = float(row @ context), float(row.norm())
    return found
