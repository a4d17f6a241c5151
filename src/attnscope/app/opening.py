"""Saved records, surveys and trust tables that a client sends: read from a folder of their own, then forgotten.

They come from strangers. What they unpack to is counted first, and whatever their reading stumbles over is their fault.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from safetensors import SafetensorError

from ..errors import BadInput
from ..evaluation import Trust
from ..record import AttentionRecord
from ..surveying import Survey
from ..surveying.result import TOLD_APART
from ..surveying.storage import read_card
from ..views.scores_methods import trust_of
from .desk import Desk, told
from .entry import Entry
from .unpacking import check_room, csv_bytes, json_bytes, map_bytes, parquet_bytes, record_bytes

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
        with _stumbling_over(path, "this file"):
            size = _counted_record(content, room)
            record = AttentionRecord.load(path)
            entry = Entry(f"t_{_digest(content)}", record, text=record.text, opened_bytes=size)
            answer = _sendable(told(entry))
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
        with _stumbling_over(folder, "this folder"):
            return (_opened_trust if TRUST in known else _opened_survey)(desk, folder, known)


def _opened_survey(desk: Desk, folder: Path, known: Mapping[str, bytes]) -> dict[str, Any]:
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
    answer = _sendable({**told(entry), "summary": survey.summary()})
    desk.shelf.put(entry.name, entry)
    return answer


def _opened_trust(desk: Desk, folder: Path, known: Mapping[str, bytes]) -> dict[str, Any]:
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
def _stumbling_over(path: Path, called: str) -> Iterator[None]:
    """One sentence for whatever goes wrong in here, without the place where the files lie for now."""
    try:
        yield
    except BadInput as error:
        said = str(error).replace(str(path), called)
        raise BadInput(said[:1].upper() + said[1:]) from None
    except STUMBLES:
        raise BadInput(f"{called.capitalize()} is damaged, or was not written by attnscope.") from None


def _counted_record(content: bytes, room: int) -> int:
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
