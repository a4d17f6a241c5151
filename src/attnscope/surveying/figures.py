"""The figures of a survey, as Vig & Belinkov 2019 print them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from ..views import plots
from ..views.printing import Plot

LABELS = {
    "null_attention": "share of null attention",
    "variability": "variability",
    "distance": "mean distance in tokens",
    "entropy": "entropy in nats",
}
RELATIONS = 16
"""So many relations are drawn, the most frequent ones."""
FURTHEST = 30
"""The longest distance of the curve, in tokens."""


Tables = Mapping[str, pd.DataFrame]
Figures = Iterator[tuple[str, Plot]]


def figures_of(tables: Tables, by_layer: Tables) -> Figures:
    """Each figure with the name of its file: heat maps of heads, bars by layer, distance against entropy."""
    for name, label in LABELS.items():
        if name in tables:
            yield name, plots.head_map(tables[name], label=label, caption=f"{label}, by layer and head")
    if "distance" in by_layer:
        yield "distance_by_layer", plots.layer_bars(by_layer["distance"], label=LABELS["distance"])
    if "distance" in tables and "entropy" in tables:
        yield "distance_against_entropy", plots.distance_against_entropy(tables["distance"], tables["entropy"])
    if "part_of_speech" in tables:
        yield from _parts_of_speech(tables["part_of_speech"])
    yield from _dependencies(tables, by_layer)


def _parts_of_speech(table: pd.DataFrame) -> Figures:
    for direction in ("to", "from"):
        chosen = table[table["direction"] == direction]
        maps = {str(tag): rows for tag, rows in chosen.groupby("tag")}
        caption = f"share of attention {direction} each part of speech"
        yield f"part_of_speech_{direction}", plots.head_maps(maps, label="share", caption=caption)


def _dependencies(tables: Tables, by_layer: Tables) -> Figures:
    if "dependency_alignment" in by_layer:
        aligned = by_layer["dependency_alignment"]
        for direction, rows in aligned[aligned["relation"] == "any"].groupby("direction"):
            chance = float(rows["chance"].iloc[0])
            plot = plots.layer_bars(rows, label="share aligned", baseline=chance, caption=f"{direction}, by layer")
            yield f"dependency_alignment_{direction}", plot
    if "dependency_type" in by_layer:
        types = by_layer["dependency_type"]
        frequent = types.groupby("relation")["chance"].first().nlargest(RELATIONS).index
        chosen = types[types["relation"].isin(frequent)]
        yield "dependency_type", plots.layer_bars_by_label(chosen, "relation", label="share of attention")
    if "dependency_by_distance" in tables:
        table = tables["dependency_by_distance"]
        near = table[table["distance"] <= FURTHEST]
        axes = ("distance in tokens", "probability of a link")
        yield "dependency_by_distance", plots.curve(near, "distance", "value", *axes)


def save_figures(folder: Path, tables: Tables, by_layer: Tables, kinds: tuple[str, ...]) -> list[Path]:
    """Write every figure in every kind of file (svg, pdf, png)."""
    return [
        plots.save_figure(plot, folder / f"{name}.{kind}")
        for name, plot in figures_of(tables, by_layer)
        for kind in kinds
    ]
