"""How far two quantities agree on where the most is: the agreement A of Snell et al. 2021, Eq. 10, and its baselines.

Each row holds one number for every position of one text (classification) or for one output word (translation); `real`
says which positions are no padding. u is `first`, v is `second`. A(u, v) asks whether the highest position of u is
among the ⌈share · L⌉ highest of v:

    A(u, v) = 1[ |{j : v_j > v_argmax(u)}| < share · L ]

Only positions strictly above count, so ties in v help: a v that is the same everywhere gives A = 1 for every u, and
`tied_rows` tells where that can happen. Of equal highest positions in u the first is taken.
"""

from typing import no_type_check

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from ...attribution.compiling import compiled
from ...errors import BadInput

SHARE = 0.05
"""The paper's top: 5% of the positions."""
Rows = Float[Tensor, "row position"]
Real = Bool[Tensor, "row position"]


def top_agreement(first: Rows, second: Rows, real: Real, share: int | float = SHARE) -> Bool[Tensor, " row"]:
    """A(first, second) of each row.

    >>> one, other = torch.tensor([[0.1, 0.9, 0.0]]), torch.tensor([[0.3, 0.2, 0.1]])
    >>> everywhere = torch.ones(1, 3, dtype=torch.bool)
    >>> top_agreement(one, other, everywhere).tolist(), top_agreement(one, other, everywhere, share=0.5).tolist()
    ([False], [True])
    """
    _check(first, second, real)
    highest = first.masked_fill(~real, -torch.inf).argmax(-1, keepdim=True)
    above = ((second > second.gather(-1, highest)) & real).sum(-1)
    return above < places(real, share)


def places(real: Real, share: int | float = SHARE) -> Int[Tensor, " row"]:
    """How many positions are the top of each row: ⌈share · L⌉."""
    if not 0 < share <= 1:
        raise BadInput(f"The top is a share of the positions, above 0 and at most 1, not {share}.")
    # a product such as .05 · 140 may come out a little above the whole number it stands for
    return (real.sum(-1).double() * share - 1e-9).ceil().long()


def chance_agreement(real: Real, share: int | float = SHARE) -> Float64[Tensor, " row"]:
    """What A is on average for a v without ties whose order is random, exactly: ⌈share · L⌉ / L of each row.

    >>> chance_agreement(torch.ones(1, 25, dtype=torch.bool)).tolist()
    [0.08]
    """
    return places(real, share).double() / real.sum(-1)


def shuffled_agreement(
    first: Rows, second: Rows, real: Real, seed: int, share: int | float = SHARE
) -> Bool[Tensor, " row"]:
    """The paper's baseline Â: A(first, second) of each row after one shuffle of `second` within the row."""
    generator = torch.Generator().manual_seed(seed)
    keys = torch.rand(real.shape, generator=generator).masked_fill(~real, torch.inf)
    # the real positions stand before the padding in every row, before and after
    order = keys.argsort(-1)
    return top_agreement(first, second.gather(-1, order), real, share)


def tied_rows(second: Rows, real: Real, share: int | float = SHARE) -> Bool[Tensor, " row"]:
    """The rows whose ties matter: more than ⌈share · L⌉ positions of v count as its top, because values are equal.

    There A is more often 1 than chance gives; its extreme is a v that is the same everywhere, where A is always 1.

    >>> tied_rows(torch.tensor([[1.0, 1.0, 0.0], [2.0, 1.0, 1.0]]), torch.ones(2, 3, dtype=torch.bool)).tolist()
    [True, False]
    """
    top = places(real, share)[:, None]
    ordered = second.masked_fill(~real, -torch.inf).sort(-1, descending=True).values
    border = ordered.gather(-1, top - 1)
    return ((second >= border) & real).sum(-1) > top.squeeze(-1)


def rank_agreement(first: Rows, second: Rows, real: Real) -> Float64[Tensor, " row"]:
    """Kendall's tau-b of each row: over its pairs of positions, like order minus unlike order, corrected for ties.

    NaN where either ranks nothing: all its values are equal, or there is one position.
    """
    _check(first, second, real)
    one, other = (values.detach().cpu().double().contiguous().numpy() for values in (first, second))
    lengths = real.sum(-1).cpu().numpy()
    return torch.from_numpy(_tau_of_rows(one, other, lengths))


@compiled(nogil=True, error_model="numpy")
@no_type_check
def _tau_of_rows(first, second, lengths):
    """Every pair of every row; for the few hundred positions of a text this is faster than sorting."""
    found = np.empty(first.shape[0])
    for row in range(first.shape[0]):
        like, one_untied, other_untied = 0, 0, 0
        for low in range(lengths[row] - 1):
            one, other = first[row, low], second[row, low]
            for high in range(low + 1, lengths[row]):
                left = int(first[row, high] > one) - int(first[row, high] < one)
                right = int(second[row, high] > other) - int(second[row, high] < other)
                like += left * right
                one_untied += left * left
                other_untied += right * right
        found[row] = like / np.sqrt(float(one_untied) * float(other_untied))
    return found


def _check(first: Tensor, second: Tensor, real: Tensor) -> None:
    if not (first.shape == second.shape == real.shape) or real.dim() != 2 or real.dtype != torch.bool:
        shapes = ", ".join(str(tuple(table.shape)) for table in (first, second, real))
        raise BadInput(
            "Agreement takes two tables with a row for each text or output word, and as large a table of bools that "
            f"says where no padding is; these are {shapes} of {real.dtype}."
        )
    if not real[:, :1].all() or (real[:, 1:] & ~real[:, :-1]).any():
        raise BadInput("Every row needs at least one real position, and its padding at the right.")
    for values in (first, second):
        if not values[real].isfinite().all():
            raise BadInput("Agreement needs finite numbers at every real position.")
