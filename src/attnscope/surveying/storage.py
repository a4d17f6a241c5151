"""A saved survey is data from a stranger: its card and its tables are checked before anything is made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import BadInput
from ..record.schema import Count, Label, Named, Words, card_from_json, json_of, quote, reason_of
from ..statistics import ROLES

TABLES, CARD, BY_LAYER = "tables", "survey.json", "_by_layer"
MOST_CELLS, MOST_LETTERS, MOST_COLUMNS = 20_000_000, 200_000_000, 64
"""What a table may hold, and a map of its heads: compressed, a small file can stand for any number."""
WHOLE = ("layer", "head", "rank", "query", "key", "distance")
NUMBERS = ("value", "error", "chance")
TEXTS = ("role", "tag", "relation", "pattern", "direction")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "part_of_speech": ("layer", "head", "direction", "tag", "value"),
    "dependency_alignment": ("layer", "head", "direction", "relation", "value", "chance"),
    "dependency_type": ("layer", "head", "relation", "value", "chance"),
    "patterns": ("layer", "head", "pattern", "value"),
    "exemplars": ("layer", "head", "rank", "value", "query", "key", "tokens"),
    "dependency_by_distance": ("distance", "value"),
    ROLES: ("layer", "head", "role", "value"),
}
"""What the tables of our own statistics have at least; those of others may have any."""


@dataclass(frozen=True)
class Model:
    """Which model was surveyed."""

    name: Label
    fingerprint: Label


@dataclass(frozen=True)
class Facts:
    """What the card of a survey says at least; more stands beside it."""

    model: Model
    corpus: Label
    statistics: tuple[Named, ...]
    null: Label | tuple[int, ...]
    layers: Count
    heads: Count
    sentences: Count
    tokens: Count
    skipped: Mapping[Label, Count]
    words: Count = 0
    words_without_token: Count = 0
    warnings: tuple[Words, ...] = ()
    left_out: Mapping[Label, Words] = field(default_factory=dict)
    sinks: Mapping[Words, Count] = field(default_factory=dict)


def read_card(folder: Path) -> dict[str, Any]:
    """What the finished survey in a folder is of."""
    if folder.is_file():
        raise BadInput(
            f"A survey is loaded by its folder, and {folder} is a file: give the folder that has {CARD} in it."
        )
    if not (folder / CARD).is_file():
        raise BadInput(f"{folder} holds no finished survey: {CARD} is missing.")
    return card_from_json(Facts, json_of(folder / CARD), f"{folder / CARD}, the card of a survey,")


def read_tables(folder: Path, card: Mapping[str, Any]) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
    """The tables of heads and those of layers that a card names, by name: a kill may have left half a file beside."""
    paths = {name: folder / TABLES / f"{name}.parquet" for name in card["statistics"]}
    if missing := [name for name, path in paths.items() if not path.is_file()]:
        raise BadInput(f"The survey in {folder} is damaged: the tables of {', '.join(missing)} are missing.")
    tables = {name: _table(path, COLUMNS.get(name, ()), card) for name, path in paths.items()}
    beside = {name: path.with_stem(f"{name}{BY_LAYER}") for name, path in paths.items()}
    by_layer = {
        name: _table(path, [column for column in COLUMNS.get(name, ("layer", "value")) if column != "head"], card)
        for name, path in beside.items()
        if path.is_file()
    }
    for name, table in by_layer.items():
        _check_beside(beside[name], table, tables[name])
    return tables, by_layer


def _table(path: Path, columns: Sequence[str], card: Mapping[str, Any]) -> pd.DataFrame:
    """A table as it was saved, or one sentence about what is wrong with it; pandas reads lists as arrays."""
    try:
        _check_size(path)
        # what the file says of pandas' own types is left unread: our tables have none that are not told by the file
        table = pq.ParquetFile(path).read().to_pandas(ignore_metadata=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path} is damaged, or no Parquet table ({reason_of(error)}).") from None
    if missing := [column for column in columns if column not in table]:
        raise BadInput(f"{path} has no column {missing[0]!r}; it is damaged, or was not written by attnscope.")
    _check_columns(path, table, card)
    if "tokens" in table:
        _check_exemplars(path, table)
        table["tokens"] = table["tokens"].map(lambda tokens: tokens.tolist())
    return table


def open_table(source: Path | pa.BufferReader) -> pq.ParquetFile:
    """A Parquet file whose foot may be asked for its columns.

    What a damaged foot says of a column ends the whole process in pyarrow 26, unless the reader of rows has met it
    first: that raises an error like any other.
    """
    file = pq.ParquetFile(source)
    for group in range(file.metadata.num_row_groups):
        next(file.iter_batches(batch_size=1, row_groups=[group], use_threads=False), None)
    return file


def _check_size(path: Path) -> None:
    """Refuse a table whose types are not ours, or that unpacks to more than a survey has."""
    file = open_table(path)
    names = file.schema_arrow.names
    if len(set(names)) < len(names) or len(names) > MOST_COLUMNS:
        raise BadInput(f"{path} has {len(names)} columns, or several of one name: it is no table of a survey.")
    for name, kind in zip(names, file.schema_arrow.types, strict=True):
        if not _is_ours(name, kind):
            raise BadInput(f"{path}: the column {quote(name)} holds {kind}, which no table of a survey does.")
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    cells = sum(group.column(number).num_values for group in groups for number in range(group.num_columns))
    if cells > MOST_CELLS or not 0 <= file.metadata.num_rows <= MOST_CELLS:
        raise BadInput(f"{path} holds more than {MOST_CELLS:,} values: it is no table of a survey.")
    texts = [name for name, kind in zip(names, file.schema_arrow.types, strict=True) if _is_text(kind)]
    leaves = [*texts, *(f"{name}.list.element" for name in names if name == "tokens")]
    packed = pq.ParquetFile(path, read_dictionary=leaves).read([*texts, *({"tokens"} & set(names))])
    if sum(_letters(chunk) for column in packed.columns for chunk in column.chunks) > MOST_LETTERS:
        raise BadInput(f"{path} holds more than {MOST_LETTERS // 10**6} MB of text: it is no table of a survey.")


def _is_ours(name: str, kind: Any) -> bool:
    if name == "tokens":
        return bool(pa.types.is_list(kind) and _is_text(kind.value_type))
    if name in WHOLE:
        return bool(pa.types.is_integer(kind))
    if name in NUMBERS:
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
    text = _is_text(kind) or bool(pa.types.is_null(kind))
    if name in TEXTS:
        return text
    return text or any(fits(kind) for fits in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean))


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _letters(texts: Any) -> int:
    """How long these texts are when each is written out, though the file holds equal ones once."""
    flat = texts.flatten() if pa.types.is_list(texts.type) else texts
    if not pa.types.is_dictionary(flat.type):
        return int(flat.nbytes)
    lengths = pc.binary_length(flat.dictionary)
    return int(pc.sum(lengths.take(flat.indices)).as_py() or 0)


def _check_columns(path: Path, table: pd.DataFrame, card: Mapping[str, Any]) -> None:
    """Refuse layers and heads that the card does not have, gaps where none can be, and maps that fill the memory."""
    for name in (name for name in (*WHOLE, *TEXTS) if name in table):
        if table[name].isna().any():
            raise BadInput(f"{path} is damaged: the column {name} has a gap.")
    for name, count in {"layer": card["layers"], "head": card["heads"]}.items():
        if name in table and len(table) and not table[name].between(0, count - 1).all():
            raise BadInput(f"{path} is damaged: it has a {name} that is not one of the {count} of its card.")
    labels = [name for name in TEXTS if name in table]
    combinations = len(table.drop_duplicates(labels)) if labels else 1
    if "head" in table and combinations * card["layers"] * card["heads"] > MOST_CELLS:
        raise BadInput(f"{path} would make a map of more than {MOST_CELLS:,} heads: it is no table of a survey.")


def _check_exemplars(path: Path, table: pd.DataFrame) -> None:
    """Refuse texts without the tokens that attend and are attended to, and weights that are no numbers."""
    lengths = table["tokens"].map(len, na_action="ignore")
    whole = table["tokens"].notna().all() and not any(None in tokens for tokens in table["tokens"])
    inside = whole and all(((table[name] >= 0) & (table[name] < lengths)).all() for name in ("query", "key"))
    if not inside or not np.isfinite(table["value"].to_numpy(dtype=float)).all():
        raise BadInput(f"{path} is damaged: an exemplar has no such token or no weight.")


def _check_beside(path: Path, by_layer: pd.DataFrame, table: pd.DataFrame) -> None:
    """Refuse a table of layers that tells of others than the table of heads beside it."""
    shared = [name for name in table if name in by_layer and _is_label(table[name])]
    known = set(zip(*(table[name] for name in ("layer", *shared)), strict=True)) if "layer" in table else set()
    told = set(zip(*(by_layer[name] for name in ("layer", *shared)), strict=True))
    missing = [name for name in table if _is_label(table[name]) and name not in by_layer]
    if not told <= known or missing:
        raise BadInput(f"{path} is damaged: it tells of other layers or labels than the table beside it.")


def _is_label(column: "pd.Series[Any]") -> bool:
    return not pd.api.types.is_numeric_dtype(column)
