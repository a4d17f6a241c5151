"""Two quantities compared over all rows: A with its error, both baselines and ties, and Kendall's τ."""

import math

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

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
