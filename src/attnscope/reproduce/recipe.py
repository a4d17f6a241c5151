"""What a reproduction was asked for, kept in its folder: one that goes on must be asked the same again."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..engine import check_recipe
from ..files import written_atomically
from ..record.schema import Anything, card_from_json, json_of

RECIPE = "recipe.json"


def kept_recipe(folder: Path) -> dict[str, Any]:
    """What was asked for before; nothing where nothing was."""
    path = folder / RECIPE
    return card_from_json(Anything, json_of(path), str(path)) if path.exists() else {}


def check_begun(folder: Path, recipe: Mapping[str, Any]) -> None:
    """Refuse to go on in this folder with what another run has begun."""
    if theirs := kept_recipe(folder):
        check_recipe(folder, "reproduction", theirs, recipe)


def keep_recipe(folder: Path, recipe: Mapping[str, Any]) -> None:
    """Write down what is run in this folder."""
    with written_atomically(folder / RECIPE) as temporary:
        temporary.write_text(json.dumps(dict(recipe), indent=1) + "\n", encoding="utf-8")
