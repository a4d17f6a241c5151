"""What differs between genres: alignment and distance by layer, side by side."""

from collections.abc import Mapping

import pandas as pd

from ...surveying import Survey
from ...views.plots import layer_bars_by_label
from ..document import Figure
from .dependencies import EITHER
from .evidence import chosen


def by_genre(surveys: Mapping[str, Survey], statistic: str, labels: Mapping[str, str]) -> pd.DataFrame:
    """The figures of each layer, one genre below the other."""
    tables = [
        chosen(found[statistic].by_layer(), statistic, dict(labels)).assign(genre=name)
        for name, found in surveys.items()
    ]
    return pd.concat(tables, ignore_index=True)


def genre_figures(surveys: Mapping[str, Survey]) -> tuple[list[Figure], dict[str, pd.DataFrame]]:
    """The figures of the comparison, and the tables behind them."""
    distance = by_genre(surveys, "distance", {})
    tables = {"distance_by_layer": distance}
    plot = layer_bars_by_label(distance, "genre", label="mean distance (tokens)", shared=True)
    figures = [Figure("distance_by_layer", plot, "Mean distance by layer in each genre, on one scale (Fig. 11).")]
    if all("dependency_alignment" in found for found in surveys.values()):
        alignment = by_genre(surveys, "dependency_alignment", EITHER)
        tables["dependency_alignment_by_layer"] = alignment
        plot = layer_bars_by_label(alignment, "genre", label="share of attention", shared=True)
        words = "Attention along dependency relations by layer in each genre, either direction, on one scale (Fig. 8)."
        figures.insert(0, Figure("dependency_alignment_by_layer", plot, words))
    return figures, tables
