"""From figures of single texts to the table: means with intervals, by length, each beside its best baseline."""

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int64

from ..errors import BadInput
from ..files import written_atomically
from ..record.schema import Anything, card_from_json, json_of, reason_of
from .per_text import KNOW_NOTHING, Figure

Parsed = TypeVar("Parsed")
ALL = "all"
"""The bucket of all texts."""
SHORTEST_BUCKET = 8
LOWER_IS_BETTER = ("sufficiency",)


def buckets(lengths: Int64[np.ndarray, " text"]) -> Iterator[tuple[str, Int64[np.ndarray, " chosen"]]]:
    """All texts, and then those of like length, each bucket up to twice as long as the one before.

    >>> [(name, texts.tolist()) for name, texts in buckets(np.array([5, 20, 8]))]
    [('all', [0, 1, 2]), ('1-8', [0, 2]), ('17-32', [1])]
    """
    yield ALL, np.arange(len(lengths))
    low, high = 1, SHORTEST_BUCKET
    while low <= lengths.max(initial=0):
        inside = np.flatnonzero((low <= lengths) & (lengths <= high))
        if len(inside):
            yield f"{low}-{high}", inside
        low, high = high + 1, 2 * high


def tabulate(
    figures: Sequence[Figure],
    values: Float64[np.ndarray, "text figure"],
    lengths: Int64[np.ndarray, " text"],
    seed: int,
) -> pd.DataFrame:
    """One row for each figure and bucket.

    `above` is how much better than its best baseline a figure is (for sufficiency, how much lower), with the paired
    interval of the difference. A single text has no interval.
    """
    rows: list[dict[str, Any]] = []
    rivals = [_rivals(figures, figure) for figure in figures]
    for bucket, texts in buckets(lengths):
        chosen = values[texts]
        mean, samples, counts = means(chosen), resampled_means(chosen, seed), (~np.isnan(chosen)).sum(0)
        samples[:, counts < 2] = np.nan
        sign = np.where([figure.measure in LOWER_IS_BETTER for figure in figures], -1.0, 1.0)
        best = np.array([_best(sign * mean, place, of) for place, of in enumerate(rivals)])
        low, high = interval(samples)
        above_low, above_high = interval(sign * (samples - samples[:, best]))
        for place, figure in enumerate(figures):
            rival = figures[best[place]].method if best[place] != place else ""
            above = sign[place] * (mean[place] - mean[best[place]])
            beside = (above, above_low[place], above_high[place]) if rival else (np.nan,) * 3
            rows.append(
                {
                    **figure._asdict(),
                    "bucket": bucket,
                    "value": mean[place],
                    "low": low[place],
                    "high": high[place],
                    "texts": int(counts[place]),
                    "baseline": rival,
                    **dict(zip(("above", "above_low", "above_high"), beside, strict=True)),
                }
            )
    return as_table(rows)


def as_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a table whose layers are whole numbers or missing."""
    return pd.DataFrame(rows).astype({"layer": "Int64"})


def _rivals(figures: Sequence[Figure], figure: Figure) -> list[int]:
    """The places of the baselines of a figure: the same measure on scores that know nothing; a baseline has none."""
    if figure.method in KNOW_NOTHING:
        return []
    return [
        place
        for place, other in enumerate(figures)
        if other.method in KNOW_NOTHING and other[2:] == figure[2:]  # against, measure, special
    ]


def _best(goodness: Float64[np.ndarray, " figure"], place: int, rivals: Sequence[int]) -> int:
    """The best of the rivals that are defined; the figure itself where there is none."""
    defined = [rival for rival in rivals if not np.isnan(goodness[rival])]
    return max(defined, key=lambda rival: goodness[rival]) if defined else place


# Bootstrap: how far a mean over texts would move if other texts of the kind had been drawn (Efron 1979).


RESAMPLES = 1000
LEVEL = 0.95
AT_ONCE = 64
"""Resamples drawn together: enough to be fast, few enough that memory does not grow with their number."""


def means(values: Float64[np.ndarray, "text figure"]) -> Float64[np.ndarray, " figure"]:
    """The mean of each figure over the texts that have it; NaN where none has."""
    mean: Float64[np.ndarray, " figure"] = _weighted(np.ones((1, len(values))), values)[0]
    return mean


def resampled_means(
    values: Float64[np.ndarray, "text figure"], seed: int, resamples: int = RESAMPLES
) -> Float64[np.ndarray, "resample figure"]:
    """The means over texts drawn with replacement, as many as there are; all figures see the same draw.

    So the difference of two figures in one row is a paired difference.
    """
    texts = len(values)
    dice = np.random.default_rng(seed)
    drawn = []
    for start in range(0, resamples, AT_ONCE):
        picks = dice.integers(texts, size=(min(AT_ONCE, resamples - start), texts))
        weights = np.stack([np.bincount(pick, minlength=texts) for pick in picks]).astype(np.float64)
        drawn.append(_weighted(weights, values))
    return np.concatenate(drawn)


def interval(
    samples: Float64[np.ndarray, "resample figure"], level: float = LEVEL
) -> tuple[Float64[np.ndarray, " figure"], Float64[np.ndarray, " figure"]]:
    """The percentile interval of each figure: the middle `level` of its resampled means."""
    tail = 100 * (1 - level) / 2
    missing = np.isnan(samples)
    bounds = np.full((2, samples.shape[1]), np.nan)
    # numpy takes columns with gaps one by one, which is slow: only those that have some
    for columns, percentile in (
        (~missing.any(0), np.percentile),
        (missing.any(0) & ~missing.all(0), np.nanpercentile),
    ):
        if columns.any():
            bounds[:, columns] = percentile(samples[:, columns], [tail, 100 - tail], axis=0)
    return bounds[0], bounds[1]


def _weighted(
    weights: Float64[np.ndarray, "draw text"], values: Float64[np.ndarray, "text figure"]
) -> Float64[np.ndarray, "draw figure"]:
    """The weighted mean of each figure over the texts that have it."""
    there = ~np.isnan(values)
    sums, totals = weights @ np.where(there, values, 0.0), weights @ there.astype(np.float64)
    weighted: Float64[np.ndarray, "draw figure"] = np.full_like(sums, np.nan)
    np.divide(sums, totals, out=weighted, where=totals > 0)
    return weighted


# Tables and cards on disk: every number comes back to the bit, and a word called "null" stays a word.


TEXT = ("word", "matched", "entries", "tag", "method", "scaling", "first", "second", "over")
"""Columns of texts; in all others an empty cell is a missing number."""


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV, all at once."""
    with written_atomically(path) as temporary:
        table.to_csv(temporary, index=False)


def read_table(path: Path) -> pd.DataFrame:
    """Read what `write_table` wrote."""

    def parse(rows: list[list[str]]) -> pd.DataFrame:
        if not rows or len(set(rows[0])) < len(rows[0]):
            raise BadInput(f"{path} is damaged: it has no columns, or several of one name.")
        columns = zip(*rows[1:], strict=True) if len(rows) > 1 else ((),) * len(rows[0])
        parsed = {
            name: list(cells) if name in TEXT else _numbers(cells) for name, cells in zip(rows[0], columns, strict=True)
        }
        return pd.DataFrame(parsed, columns=rows[0])

    return parsed_rows(path, parse, "not written by attnscope")


def parsed_rows(path: Path, parse: Callable[[list[list[str]]], Parsed], otherwise: str) -> Parsed:
    """What is made of the cells of a CSV file, or one sentence that it is damaged, or `otherwise`.

    Not by pandas, whose parser may miss the last digit and takes a word or method called "null" for a gap.
    """
    try:
        return parse(list(csv.reader(io.StringIO(json_of(path).decode("utf-8"), newline=""), strict=True)))
    except BadInput:
        raise
    except (ValueError, OverflowError, csv.Error) as error:
        raise BadInput(f"{path} is damaged, or {otherwise}: {reason_of(error)}.") from None


def write_card(path: Path, card: Mapping[str, Any]) -> None:
    """Write what was asked and found beside the tables as JSON, all at once."""
    with written_atomically(path) as temporary:
        temporary.write_text(json.dumps(dict(card), indent=1) + "\n", encoding="utf-8")


def read_card(path: Path, facts: Any = Anything, what: str = "") -> dict[str, Any]:
    """Read what `write_card` wrote, if it says at least what the dataclass `facts` does; `what` it is, in words."""
    return card_from_json(facts, json_of(path), f"{path}, {what}," if what else str(path))


def _numbers(cells: Sequence[str]) -> list[Any]:
    """A column of whole numbers, truth values, or numbers with gaps."""
    if all(cell in {"True", "False"} for cell in cells):
        return [cell == "True" for cell in cells]
    if all(cell.lstrip("-").isdigit() for cell in cells):
        return [int(cell) for cell in cells]
    return [float(cell) if cell else math.nan for cell in cells]
