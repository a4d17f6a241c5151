"""Survey: the tables of what each head does, with the card that says of what; on disk and on screen."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import BadInput
from ..files import written_atomically
from ..numerals import counted
from ..record.schema import Card, check_fields, checked
from ..statistics import ROLES
from ..statistics.roles import FEW_SENTENCES
from ..views import plots, write_page
from ..views import survey as survey_view
from ..views.printing import Plot
from .storage import BY_LAYER, CARD, TABLES, read_card, read_tables

PAGE = "survey.html"
HEADS, TOLD_APART = ("layer", "head", "value"), ("exemplars", "role_exemplars", "dependency_by_distance")
"""What a table needs to be a map of heads, and the tables that the page shows in another way."""


@dataclass(frozen=True, eq=False)
class StatisticTable:
    """One statistic of a survey."""

    name: str
    table: pd.DataFrame
    layers: pd.DataFrame | None = None

    def result(self) -> pd.DataFrame:
        """The tidy table, as a copy of your own: layer, head, what tells rows apart, value, error."""
        return self.table.copy()

    def by_layer(self) -> pd.DataFrame:
        """One row for each layer: the ratio of sums over its heads, and the mean of its heads."""
        if self.layers is None:
            raise BadInput(f"{self.name} says nothing of whole layers: use result().")
        return self.layers.copy()

    def _repr_html_(self) -> str:
        return str(self.table._repr_html_())


@dataclass(frozen=True, eq=False, repr=False)
class Survey:
    """What each head of a model does over a corpus: `survey["distance"].result()` is a tidy table.

    `card` tells the model, the corpus, what was left out as null attention, how many sentences and tokens were read,
    how many words have no token because a neighbour's token covers them, and how many sentences were skipped and why.
    """

    tables: Mapping[str, pd.DataFrame]
    layer_tables: Mapping[str, pd.DataFrame]
    card: Card

    def __post_init__(self) -> None:
        check_fields(self, {})

    def __getitem__(self, name: str) -> StatisticTable:
        if name not in self.tables:
            raise BadInput(f"This survey has no {name!r}: it has {', '.join(self.tables)}.")
        return StatisticTable(name, self.tables[name], self.layer_tables.get(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __contains__(self, name: object) -> bool:
        return name in self.tables

    def view(self) -> Any:
        """The head map for a notebook: any statistic, the role of each head, its exemplars."""
        told = {name: table for name, table in self.tables.items() if name in TOLD_APART or _is_map(table)}
        return survey_view(told, self.card, by_layer=self.layer_tables)

    @property
    def has_map(self) -> bool:
        """Whether there is a figure for each head to draw."""
        return any(name not in TOLD_APART and _is_map(table) for name, table in self.tables.items())

    @checked
    def report(self, path: str | Path) -> Path:
        """Write the head map as one offline page."""
        return write_page(Path(path), self.view(), self.title)

    @checked
    def figures(self, folder: str | Path, kinds: tuple[str, ...] = ("svg",)) -> list[Path]:
        """Write the figures of the paper into a folder: heat maps, bars by layer, distance against entropy."""
        return save_figures(Path(folder), self.tables, self.layer_tables, tuple(kinds))

    @property
    def title(self) -> str:
        """What was surveyed, in a line."""
        return f"What the heads of {self.card['model']['name']} do on {self.card['corpus']}"

    @checked
    def save(self, folder: str | Path) -> Path:
        """Write the tables as Parquet and CSV, the page, and at last the card into a folder."""
        folder = Path(folder)
        for name, table in self._files():
            with written_atomically(folder / TABLES / f"{name}.parquet") as temporary:
                table.to_parquet(temporary, index=False, schema=None if len(table) else _schema_of_empty(table))
            with written_atomically(folder / TABLES / f"{name}.csv") as temporary:
                _for_csv(table).to_csv(temporary, index=False)
        if self.has_map:
            self.report(folder / PAGE)
        with written_atomically(folder / CARD) as temporary:
            temporary.write_text(json.dumps(dict(self.card), indent=1) + "\n", encoding="utf-8")
        return folder

    @classmethod
    @checked
    def load(cls, folder: str | Path) -> "Survey":
        """Read what `save` wrote."""
        card = read_card(Path(folder))
        return cls(*read_tables(Path(folder), card), card)

    def _files(self) -> Iterator[tuple[str, pd.DataFrame]]:
        yield from self.tables.items()
        for name, table in self.layer_tables.items():
            yield f"{name}{BY_LAYER}", table

    def summary(self) -> str:
        """A few lines: what was read, what was not, and how many heads have which role."""
        card = self.card
        size = f"{counted(card['layers'], 'layer')} x {counted(card['heads'], 'head')}"
        read = f"{counted(card['sentences'], 'sentence')}, {counted(card['tokens'], 'token')}"
        lines = [f"{self.title}: {size}, {read}, null attention: {card['null']}."]
        lines += [f"Skipped {count:,}: {reason}." for reason, count in card["skipped"].items()]
        lines += _shared_tokens(card)
        lines += _sinks(card)
        lines += card.get("warnings", ())
        lines += [
            f"Not taken: {name}, which needs {what}; the first sentence has none."
            for name, what in card.get("left_out", {}).items()
        ]
        if ROLES in self:
            counts = self.tables[ROLES]["role"].value_counts()
            lines.append("Roles: " + ", ".join(f"{count} {role}" for role, count in counts.items()) + ".")
            if card["sentences"] < FEW_SENTENCES:
                lines.append(f"With fewer than {FEW_SENTENCES} sentences, many heads have another role on other texts.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Survey({self.title}: {', '.join(self.tables)})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def _schema_of_empty(table: pd.DataFrame) -> Any:
    """The types of a table without rows: where the values do not show them, texts, or lists of them for tokens."""
    import pyarrow as pa

    schema = pa.Schema.from_pandas(table, preserve_index=False)
    for place, column in enumerate(schema):
        if pa.types.is_null(column.type):
            kind = pa.list_(pa.string()) if column.name == "tokens" else pa.string()
            schema = schema.set(place, column.with_type(kind))
    return schema


def _sinks(card: Mapping[str, Any]) -> list[str]:
    """The tokens that were left out as sinks, beside the first token and the special ones."""
    if "sinks" not in card:
        return []
    named = ", ".join(f"{token.strip()!r} {count:,}" for token, count in list(card["sinks"].items())[:5])
    return [f"Left out as sinks beside the first and the special tokens: {named or 'none was found'}."]


def _shared_tokens(card: Mapping[str, Any]) -> list[str]:
    """What is said where a token covers several words, as "cannot" covers "can" and "not"."""
    lost, words = card.get("words_without_token", 0), card.get("words", 0)
    if not lost or not words:
        return []
    told = f"Words without a token: {lost:,} of {words:,} ({lost / words:.1%})"
    return [f"{told}, since a token that covers several words counts as the one that it covers most of."]


def _is_map(table: pd.DataFrame) -> bool:
    """Whether a table has one figure for each head, or one for each head and label."""
    if not set(HEADS) <= set(table):
        return False
    labels = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    return not table.duplicated(["layer", "head", *labels]).any()


def _for_csv(table: pd.DataFrame) -> pd.DataFrame:
    """Lists as JSON, which every reader of CSV can take apart."""
    lists = [name for name in table if len(table) and isinstance(table[name].iloc[0], list)]
    return table.assign(**{name: table[name].map(json.dumps) for name in lists})


# The figures of a survey, as Vig & Belinkov 2019 print them.


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
