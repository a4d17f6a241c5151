"""What a long computation was asked for: one that goes on must be asked the same again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import BadInput


def check_recipe(where: Path, what: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Refuse to go on with what another has begun.

    >>> check_recipe(Path("out"), "survey", {"limit": 2}, {"limit": 3})
    Traceback (most recent call last):
    attnscope.errors.BadInput: out belongs to another survey, which differs in limit: choose another folder, or ask the
    same again.
    """
    different = [name for name, value in ours.items() if theirs.get(name) != value]
    if different:
        raise BadInput(
            f"{where} belongs to another {what}, which differs in {', '.join(different)}:"
            " choose another folder, or ask the same again."
        )
