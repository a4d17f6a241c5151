"""Saved records, surveys and trust tables that a client sends: read from a folder of their own, then forgotten."""

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import BadInput
from ..evaluation import Trust
from ..record import AttentionRecord
from ..surveying import Survey
from .desk import Desk
from .entry import Entry

FILE = re.compile(r"(?:[\w ().-]+/)*?((?:tables/)?\w+\.(?:json|csv|parquet))")
"""A file of a saved folder: whatever folders stand before it, and its own name."""
SURVEY, TRUST = "survey.json", "trust.json"


def open_record(desk: Desk, content: bytes) -> Entry:
    """Keep a saved record."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "record.safetensors"
        path.write_bytes(content)
        try:
            record = AttentionRecord.load(path)
        except BadInput as error:
            raise BadInput(str(error).replace(str(path), "This file")) from None
    entry = Entry(f"t_{sha256(content).hexdigest()[:24]}", record, text=record.text)
    desk.shelf.put(entry.name, entry)
    return entry


def open_folder(desk: Desk, files: Mapping[str, bytes]) -> Entry | Trust:
    """Keep a saved survey, or a trust table for the model it is about."""
    known = {found[1]: content for name, content in files.items() if (found := FILE.fullmatch(name))}
    if SURVEY not in known and TRUST not in known:
        raise BadInput(f"This is no saved survey or trust table: {SURVEY} or {TRUST} is missing.")
    with TemporaryDirectory() as made:
        folder = Path(made)
        for name, content in known.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        try:
            if TRUST in known:
                return _keep_trust(desk, Trust.load(folder))
            survey = Survey.load(folder)
            survey.view()  # so that what cannot be drawn is said now
        except BadInput as error:
            raise BadInput(str(error).replace(str(folder), "this folder")) from None
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            raise BadInput("This folder is damaged, or was not written by attnscope.") from None
    digest = sha256(b"".join(known[name] for name in sorted(known))).hexdigest()[:24]
    entry = Entry(f"t_{digest}", model_name=None, survey=survey)
    desk.shelf.put(entry.name, entry)
    return entry


def _keep_trust(desk: Desk, table: Trust) -> Trust:
    """Set the table beside the methods of its model, or of records without a model if that is not here."""
    about = str(table.card.get("model"))
    found = [name for name, model in desk.models.items() if about in (name, model.model.config.name_or_path)]
    desk.trust.update(dict.fromkeys(found or (None,), table))
    return table
