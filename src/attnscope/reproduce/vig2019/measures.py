"""What the claims ask of a survey: one figure for each head or layer, or the reason why there is none."""

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float64

from ...surveying import Survey
from ..claims import Unmeasured, rows_with

RARE = 0.001
"""Tags and relations of a smaller share of the token pairs are not judged: a handful of tokens shows no habit."""
MEANINGS = {
    "part_of_speech": "parts of speech",
    "dependency_type": "dependency relations",
    "dependency_alignment": "dependency relations",
    "dependency_by_distance": "dependency relations",
}
EITHER = {"direction": "either", "relation": "any"}
"""The rows of dependency alignment whichever token is the head, whatever the relation."""
MOST_DIGITS = 4
AWAKE = 0.05
"""What is left of a head that rests in all but this share of its rows says little of it."""
AT_REST = f"a head of which less than {AWAKE:.0%} of the rows are left decides nothing"
RESTING = 0.97
"""A head that gives more than this to null tokens does nothing else that a figure could be made of."""
LEFT_OUT = f"heads that rest more than {RESTING:.0%} are left out"
RESAMPLES = 2_000
"""How often the heads are drawn again, with replacement, for an interval over heads."""


def heads_of(survey: Survey, statistic: str, **labels: str) -> pd.DataFrame:
    """One row for each head that has a figure: layer, head, value, error and what stands beside them.

    Heads that rest are left out of every statistic but that of null attention: what they do in 3% of their attention
    has decided claims.
    """
    table = rows_labelled(_table(survey, statistic), statistic, labels)
    table = table.dropna(subset=["value"])
    if statistic != "null_attention" and "null_attention" in survey:
        null = survey.tables["null_attention"]
        resting = null.loc[null["value"] > RESTING, ["layer", "head"]]
        table = table[~table.set_index(["layer", "head"]).index.isin(pd.MultiIndex.from_frame(resting))]
    table = table.reset_index(drop=True)
    if table.empty:
        raise Unmeasured(f"No head has a figure of {statistic.replace('_', ' ')} in this corpus.")
    return table


def layers_of(survey: Survey, statistic: str, **labels: str) -> pd.DataFrame:
    """One row for each layer, in their order: value, mean_of_heads, error."""
    _table(survey, statistic)
    table = rows_labelled(survey[statistic].by_layer(), statistic, labels).dropna(subset=["value"])
    if len(table) < depth_of(survey):
        raise Unmeasured(f"Not every layer has a figure of {statistic.replace('_', ' ')} in this corpus.")
    return table.sort_values("layer").reset_index(drop=True)


def rows_left(survey: Survey, head: "pd.Series[float]") -> float:
    """The share of a head's rows that do not rest nearly all of their attention; 1 where that was not measured."""
    if "entropy" not in survey:
        return 1.0
    entropy = survey.tables["entropy"]
    rows = entropy[(entropy["layer"] == head["layer"]) & (entropy["head"] == head["head"])]
    return float(rows["rows_share"].iloc[0])


def depth_of(survey: Survey) -> int:
    """How many layers the model has."""
    return int(survey.card["layers"])


def curve_of(survey: Survey) -> pd.DataFrame:
    """How likely two tokens are linked, by distance."""
    table = _table(survey, "dependency_by_distance").sort_values("distance").reset_index(drop=True)
    if table["linked"].sum() == 0:
        raise Unmeasured("No two tokens of this corpus are linked.")
    return table


def tags_in_use(survey: Survey, direction: str) -> list[str]:
    """The tags of at least a thousandth of the token pairs."""
    table = rows_labelled(_table(survey, "part_of_speech"), "part_of_speech", {"direction": direction})
    shares = table.groupby("tag")["chance"].first()
    return [str(tag) for tag in shares.index[shares >= RARE]]


def relations_in_use(survey: Survey) -> list[str]:
    """The relations of at least a thousandth of the token pairs, by the attended token."""
    shares = _table(survey, "dependency_type").groupby("relation")["chance"].first()
    return [str(relation) for relation in shares.index[shares >= RARE]]


def rows_labelled(table: pd.DataFrame, statistic: str, labels: Mapping[str, str]) -> pd.DataFrame:
    """The rows with these labels."""
    for name, label in labels.items():
        table = rows_with(table, **{name: label})
        if table.empty:
            raise Unmeasured(f"The corpus has no {name} {label}: {statistic.replace('_', ' ')} says nothing of it.")
    return table


def mean_over(table: pd.DataFrame, layers: Iterable[int], value: str = "value") -> float:
    """The mean over some layers."""
    return float(table.loc[table["layer"].isin(list(layers)), value].mean())


def both(one: pd.DataFrame, other: pd.DataFrame) -> tuple[Float64[np.ndarray, " head"], Float64[np.ndarray, " head"]]:
    """Two figures of the heads that have both."""
    keys = ["layer", "head"]
    joint = one[[*keys, "value"]].merge(other[[*keys, "value"]], on=keys, suffixes=("_one", "_other"))
    return joint["value_one"].to_numpy(dtype=float), joint["value_other"].to_numpy(dtype=float)


def correlation(
    xs: Float64[np.ndarray, " head"], ys: Float64[np.ndarray, " head"]
) -> tuple[float, float, tuple[float, float]]:
    """Pearson's r, its p-value, and the interval that holds 95% of it when the heads are drawn again."""
    from scipy.stats import pearsonr

    if len(xs) < 10 or np.ptp(xs) == 0 or np.ptp(ys) == 0:
        raise Unmeasured(f"A correlation needs at least ten heads that differ; there are {len(xs)} heads.")
    r, p = pearsonr(xs, ys)
    draws = _draws(len(xs))
    x, y = xs[draws], ys[draws]
    x, y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    scale = np.sqrt((x**2).sum(1) * (y**2).sum(1))
    again = (x * y).sum(1)[scale > 0] / scale[scale > 0]
    low, high = np.quantile(again, [0.025, 0.975])
    return float(r), float(p), (float(low), float(high))


def difference(
    ones: Float64[np.ndarray, " head"], others: Float64[np.ndarray, " other_head"]
) -> tuple[float, tuple[float, float]]:
    """The difference of two means, and the interval that holds 95% of it when the heads of each are drawn again."""
    if min(len(ones), len(others)) < 2:
        raise Unmeasured("A difference needs at least two heads on either side.")
    again = ones[_draws(len(ones))].mean(1) - others[_draws(len(others), 1)].mean(1)
    low, high = np.quantile(again, [0.025, 0.975])
    return float(ones.mean() - others.mean()), (float(low), float(high))


def deviation(values: Float64[np.ndarray, " head"]) -> tuple[float, tuple[float, float]]:
    """The standard deviation over heads, and its 95% interval when they are drawn again."""
    if len(values) < 2:
        raise Unmeasured("A spread over heads needs at least two of them.")
    low, high = np.quantile(values[_draws(len(values))].std(1), [0.025, 0.975])
    return float(values.std()), (float(low), float(high))


def _draws(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(count, size=(RESAMPLES, count))


def _table(survey: Survey, statistic: str) -> pd.DataFrame:
    if statistic not in survey:
        needed = MEANINGS.get(statistic, statistic.replace("_", " "))
        raise Unmeasured(f"The corpus has no {needed}, and no parser was given to find them.")
    return survey.tables[statistic]


def figure(value: float, error: float = math.nan) -> str:
    """A figure with its standard error, to as many digits as that allows.

    >>> figure(0.21345, 0.0041), figure(5.9889, 0.16), figure(65.4, 33.0), figure(0.5), figure(0.5, 0.00001)
    ('0.213 ± 0.004', '5.99 ± 0.16', '65 ± 33', '0.50', '0.5000 ± <0.0001')
    """
    if not math.isfinite(error) or error <= 0:
        return f"{value:.2f}"
    # two digits of an error that begins with a one, else one
    digits = min(max(0, -math.floor(math.log10(error / 2))), MOST_DIGITS)
    least = 10.0**-MOST_DIGITS
    return f"{value:.{digits}f} ± {f'{error:.{digits}f}' if error >= least else f'<{least:.{digits}f}'}"


def head_name(row: pd.Series) -> str:
    """A head in words."""
    return f"layer {int(row['layer'])}, head {int(row['head'])}"


# Parts of a stack of layers in relative terms: the paper speaks of 12 layers, other models have more or fewer.


FEWEST = 4
"""In a stack of fewer layers, to be early, in the middle or late says nothing."""


def first(layers: int, parts: int) -> range:
    """The first of so many parts of the layers.

    >>> first(12, 3), first(30, 3)
    (range(0, 4), range(0, 10))
    """
    _check(layers)
    return range(-(-layers // parts))


def last(layers: int, parts: int) -> range:
    """The last of so many parts.

    >>> last(12, 4), last(12, 2)
    (range(9, 12), range(6, 12))
    """
    _check(layers)
    return range(layers - -(-layers // parts), layers)


def middle_half(layers: int) -> range:
    """The layers without the first and the last quarter.

    >>> middle_half(12), middle_half(6), middle_half(30)
    (range(3, 9), range(1, 5), range(7, 23))
    """
    _check(layers)
    return range(layers // 4, layers - layers // 4)


def halves(layers: int) -> tuple[range, range]:
    """The lower and the deeper half; one layer in the very middle belongs to neither.

    >>> halves(5)
    (range(0, 2), range(3, 5))
    """
    _check(layers)
    return range(layers // 2), range(layers - layers // 2, layers)


def behind_the_first(layers: int) -> range:
    """The quarter of the layers behind the first sixth: what layers 2 to 4 are of 12.

    >>> behind_the_first(12), behind_the_first(30)
    (range(2, 5), range(5, 13))
    """
    return range(first(layers, 6).stop, -(-5 * layers // 12))


def layer_names(layers: range) -> str:
    """The layers in words.

    >>> layer_names(range(9, 12)), layer_names(range(1))
    ('layers 9–11', 'layer 0')
    """
    return f"layer {layers[0]}" if len(layers) == 1 else f"layers {layers[0]}–{layers[-1]}"


def _check(layers: int) -> None:
    if layers < FEWEST:
        raise Unmeasured(f"The model has {layers} layers; depth is not judged in fewer than {FEWEST}.")
