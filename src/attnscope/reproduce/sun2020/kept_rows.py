"""Rows of a run that was watched, kept as JSON: made once, read ever after."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...files import written_atomically

Rows = list[dict[str, Any]]


def kept_rows(path: Path, make: Callable[[], Rows]) -> Rows:
    """What the file holds, or what `make` gives, which is then in the file."""
    if path.exists():
        found: Rows = json.loads(path.read_text(encoding="utf-8"))
        return found
    rows = make()
    with written_atomically(path) as temporary:
        temporary.write_text(json.dumps(rows) + "\n", encoding="utf-8")
    return rows
