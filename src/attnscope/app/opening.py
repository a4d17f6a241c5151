"""Saved records, surveys and trust tables that a client sends: read from a folder of their own, then forgotten.

They come from strangers. What they unpack to is counted first, and whatever their reading stumbles over is their fault.
"""

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError

from ..errors import BadInput
from ..evaluation import Trust
from ..record import AttentionRecord
from ..surveying import Survey
from ..surveying.result import TOLD_APART
from ..surveying.storage import open_table, read_card
from ..views.scores_methods import trust_of
from ..views.survey import labels_of
from .desk import Desk, describe_entry
from .entry import Entry

FILE = re.compile(r"(?:[\w ().-]+/)*?((?:tables/)?\w+\.(?:json|csv|parquet))")
"""A file of a saved folder: whatever folders stand before it, and its own name."""
SURVEY, TRUST, TRUST_TABLE = "survey.json", "trust.json", "trust.csv"
STUMBLES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    csv.Error,
    SafetensorError,
)
"""What the libraries that read files raise where these are not what they seem."""


def open_record(desk: Desk, content: bytes) -> dict[str, Any]:
    """Keep a saved record, and tell of it."""
    room = desk.shelf.budget
    with TemporaryDirectory() as folder:
        path = Path(folder) / "record.safetensors"
        path.write_bytes(content)
        with _refuse_damage(path, "this file"):
            size = _count_record(content, room)
            record = AttentionRecord.load(path)
            entry = Entry(f"t_{_digest(content)}", record, text=record.text, opened_bytes=size)
            answer = _sendable(describe_entry(entry))
    check_room(entry.size, room)
    desk.shelf.put(entry.name, entry)
    return answer


def open_folder(desk: Desk, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Keep a saved survey, or a trust table for the model it is about, and tell of it."""
    known = {found[1]: content for name, content in files.items() if (found := FILE.fullmatch(name))}
    if SURVEY not in known and TRUST not in known:
        raise BadInput(f"This is no saved survey or trust table: {SURVEY} or {TRUST} is missing.")
    with TemporaryDirectory() as made:
        folder = Path(made)
        for name, content in known.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        with _refuse_damage(folder, "this folder"):
            return (_open_trust if TRUST in known else _open_survey)(desk, folder, known)


def _open_survey(desk: Desk, folder: Path, known: Mapping[str, bytes]) -> dict[str, Any]:
    room = desk.shelf.budget
    size = json_bytes(known[SURVEY], room)
    read_card(folder)  # before its tables, which it names
    for name, content in known.items():
        if name.endswith(".parquet"):
            size = check_room(size + parquet_bytes(content, room), room)
    survey = Survey.load(folder)
    size += map_bytes((table for name, table in survey.tables.items() if name not in TOLD_APART), room)
    survey.view()  # so that what cannot be drawn is said now
    digest = _digest(b"".join(known[name] for name in sorted(known)))
    entry = Entry(f"t_{digest}", survey=survey, opened_bytes=check_room(size, room))
    answer = _sendable({**describe_entry(entry), "summary": survey.summary()})
    desk.shelf.put(entry.name, entry)
    return answer


def _open_trust(desk: Desk, folder: Path, known: Mapping[str, bytes]) -> dict[str, Any]:
    """Set the table beside the methods of its model, or of records without a model if that is not here."""
    room = desk.shelf.budget
    size = json_bytes(known[TRUST], room) + csv_bytes(known.get(TRUST_TABLE, b""), room)
    table = Trust.load(folder)
    trust_of(table)  # so that what cannot be shown is said now
    shown = _sendable(table.to_dict())
    about = str(table.card.get("model"))
    answer = {"kind": "trust", "model": table.card.get("model"), "sentence": next(iter(shown["verdict"]), "")}
    found = [name for name, model in desk.models.items() if about in (name, model.name)]
    desk.keep_trust(found or (None,), table, check_room(size, room))
    return answer


@contextmanager
def _refuse_damage(path: Path, called: str) -> Iterator[None]:
    """One sentence for whatever goes wrong in here, without the temporary folder of the files."""
    try:
        yield
    except BadInput as error:
        said = str(error).replace(str(path), called)
        raise BadInput(said[:1].upper() + said[1:]) from None
    except STUMBLES:
        raise BadInput(f"{called.capitalize()} is damaged, or was not written by attnscope.") from None


def _count_record(content: bytes, room: int) -> int:
    try:
        return record_bytes(content, room)
    except BadInput:
        raise
    except ValueError:
        return 0  # no JSON, so no record: loading it says what it is


def _sendable(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, if it can be written as JSON: a file may hold numbers that are none."""
    json.dumps(answer, allow_nan=False).encode()
    return answer


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:24]


# What a stranger's file unpacks to, in bytes: counted before it is unpacked, and refused if it is beyond the room.
# A few kilobytes can stand for gigabytes: a table that repeats one value, lists in lists, tensors of no length.


DEEPEST = 32
"""Levels of lists and objects in JSON; cards and headers have five."""
PER_LETTER = 24
"""Bytes of Python that a byte of JSON stands for at most: `{},` is an object of 72."""
PER_CELL, PER_NUMBER = 120, 16
"""Bytes that a cell of a table takes in Python beside the letters in it, and one of a column of numbers."""
CODECS = {"SNAPPY": 22, "UNCOMPRESSED": 1}
"""How a survey's tables are packed, and how many bytes a byte can then stand for; others pack thousands into one."""
MOST_CHUNKS, BATCH = 10_000, 65_536


def check_room(size: int, room: int) -> int:
    """The size, if there is room for it."""
    if size > room:
        raise BadInput(
            f"This unpacks to {size / 1e6:,.0f} MB or more, and this server keeps {room / 1e6:,.0f} MB: start it with a"
            " larger --memory if you trust the file."
        )
    return size


def json_bytes(text: bytes | str, room: int) -> int:
    """What JSON takes at most; refused where it is nested deeper than anything that attnscope writes."""
    size = check_room(PER_LETTER * len(text), room)
    try:
        level: list[Any] = [json.loads(text)]
    except RecursionError:
        level = [[]]
    else:
        for _ in range(DEEPEST):
            level = [inner for outer in level for inner in _inside(outer)]
    if level:
        raise BadInput(f"This file is damaged: its JSON is nested deeper than {DEEPEST} levels.")
    return size


def record_bytes(content: bytes, room: int) -> int:
    """What a record's header takes at most, if there is room for it and for the tensors that it tells of."""
    header = content[8 : 8 + int.from_bytes(content[:8], "little")]
    size = json_bytes(header, room)
    tensors: dict[str, Any] = json.loads(header)
    size += json_bytes(tensors.pop("__metadata__", {}).get("record", "{}"), room)
    # an axis of no length counts as one: the others still say how many tokens there are
    numbers = sum(math.prod(max(length, 1) for length in tensor["shape"]) for tensor in tensors.values())
    check_room(size + 4 * numbers, room)
    return size


def csv_bytes(content: bytes, room: int) -> int:
    """What a table of comma-separated values takes at most."""
    first = content.split(b"\n", 1)[0]
    if b'"' in first:
        raise BadInput("This table was not written by attnscope: names of its columns are quoted.")
    columns = first.count(b",") + 1
    rows = sum(content.count(end) for end in (b"\n", b"\r")) + 1
    cells = rows * columns + content.count(b",")  # a row may be longer than the first
    return check_room(PER_CELL * cells + 4 * len(content), room)


def parquet_bytes(content: bytes, room: int) -> int:
    """What a Parquet table takes: by what its foot says, and then, because that can lie, by a count in batches."""
    foot = pq.read_metadata(pa.BufferReader(content))
    if foot.num_row_groups * foot.num_columns > MOST_CHUNKS:
        raise BadInput(f"This table is damaged: it has more than {MOST_CHUNKS:,} parts.")
    file = open_table(pa.BufferReader(content))
    chunks = [
        foot.row_group(group).column(column)
        for group in range(foot.num_row_groups)
        for column in range(foot.num_columns)
    ]
    if not all(_is_plain(kind) for kind in file.schema_arrow.types) or {chunk.compression for chunk in chunks} - set(
        CODECS
    ):
        raise BadInput("This table was not written by attnscope: it holds or packs values in another way.")
    costs = [
        PER_CELL if column.physical_type == "BYTE_ARRAY" or column.max_repetition_level else PER_NUMBER
        for column in map(file.schema.column, range(foot.num_columns))
    ]
    check_room(sum(chunk.num_values * cost for chunk, cost in zip(chunks, cycle(costs), strict=False)), room)
    longest = check_room(max(CODECS[chunk.compression] for chunk in chunks) * len(content) if chunks else 0, room)
    size = 0
    # no value is longer than all that the file unpacks to, so that no batch goes beyond the room either
    for batch in file.iter_batches(batch_size=min(max(room // max(longest, 1), 1), BATCH), use_threads=False):
        size = check_room(size + batch.nbytes + sum(costs) * batch.num_rows, room)
    return size


def map_bytes(tables: Iterable[pd.DataFrame], room: int) -> int:
    """What the map of heads takes: every layer by every head by every label, however few of them have a row."""
    maps = [table for table in tables if {"layer", "head"} <= set(table)]
    layers, heads = (len(set().union(*(table[axis].unique() for table in maps))) for axis in ("layer", "head"))
    cells = sum(_combinations(table) * len(table.columns) for table in maps)
    return check_room(8 * layers * heads * cells, room)


def _combinations(table: pd.DataFrame) -> int:
    labels = labels_of(table)
    return len(table[labels].astype(str).drop_duplicates()) if labels else 1


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _is_plain(kind: pa.DataType) -> bool:
    """Whether values are numbers, texts, or lists of them: others may take any room for nothing."""
    inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else kind
    is_kind = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
    )
    return any(is_one(inner) for is_one in is_kind)
