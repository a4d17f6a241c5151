"""Two quantities compared over all rows: A with its error, both baselines and ties, and Kendall's τ."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ...lab.probes.contextualised import contextualised
from ...lab.probes.top_agreement import chance_agreement, rank_agreement, shuffled_agreement, tied_rows, top_agreement

SHUFFLE_SEED = 0


def row_agreement(
    first: Float[Tensor, "row position"],
    second: Float[Tensor, "row position"],
    real: Bool[Tensor, "row position"],
    groups: Int[Tensor, " row"] | None = None,
) -> dict[str, float]:
    """A(first, second) on average and what stands beside it.

    `error` is the standard error of the agreement; rows of one group, such as the words of one sentence, are not taken
    for independent. `chance` is exact, `shuffled` the paper's baseline of one shuffle, `tied` the share of rows in
    which ties of `second` matter, and `tau` the mean of Kendall's τ over the rows that have one.
    """
    agreed = top_agreement(first, second, real).double()
    taus = rank_agreement(first, second, real)
    return {
        "agreement": float(agreed.mean()),
        "error": grouped_error(agreed, torch.arange(len(agreed)) if groups is None else groups),
        "chance": float(chance_agreement(real).mean()),
        "shuffled": float(shuffled_agreement(first, second, real, SHUFFLE_SEED).double().mean()),
        "tied": float(tied_rows(second, real).double().mean()),
        "tau": float(taus[~taus.isnan()].mean()) if not taus.isnan().all() else math.nan,
    }


def grouped_error(values: Float[Tensor, " row"], groups: Int[Tensor, " row"]) -> float:
    """The standard error of a mean whose rows come in independent groups; not a number for a single group.

    >>> round(grouped_error(torch.tensor([1.0, 0.0, 1.0, 0.0]), torch.arange(4)), 4)  # a half, divided by √3
    0.2887
    """
    apart = (values - values.mean()).double().numpy()
    sums = np.bincount(groups.numpy(), apart)[np.unique(groups.numpy())]
    count = len(sums)
    return math.sqrt(float((sums**2).sum()) * count / (count - 1)) / len(values) if count > 1 else math.nan


# What agreements are worth: ξ of the best checkpoint of each pair, by A and by Kendall's τ, for every measure.


CONTEXTUALISED = ("attention_uniform", "uniform_proxy", "saliency_uniform", "attention_lexical")


def contexts_of(
    agreements: pd.DataFrame, performance: Mapping[str, Mapping[int, float]], trivial: Mapping[str, float]
) -> list[dict[str, Any]]:
    """A row for each kind of agreement, measure, pair and variant of seeds, of one part of one data set.

    The curve of ξ is A(α, α̂) of two seeds, by step, with the performance of α̂'s run: a number for each step under the
    name of each measure. `trivial` is what guessing gives. Columns: seeds, by, measure, pair, agreement, performance
    (ξ), step, reached, best (ξ*), trivial.
    """
    two_seeds = (agreements["pair"] == "attention_attention") & (agreements["seeds"] == "two")
    curve = agreements[two_seeds].sort_values("step")
    asked = agreements[agreements["pair"].isin(CONTEXTUALISED)].groupby(["pair", "seeds"], sort=False)
    rows = []
    for by in ("agreement", "tau"):
        for measure, by_step in performance.items():
            # τ is not a number where attention is the same everywhere, as it is before training; it ranks nothing then
            points = [
                (step, value, by_step[step])
                for step, value in zip(curve["step"].tolist(), curve[by].fillna(0.0).tolist(), strict=True)
            ]
            for (pair, seeds), value in asked[by].max().items():
                found = contextualised(float(value), points)
                rows.append(
                    {
                        "seeds": seeds,
                        "by": by,
                        "measure": measure,
                        "pair": pair,
                        "agreement": float(value),
                        "performance": found.performance,
                        "step": found.step,
                        "reached": found.reached,
                        "best": points[-1][2],
                        "trivial": trivial[measure],
                    }
                )
    return rows
