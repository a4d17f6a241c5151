"""What has been surveyed so far: one file for each shard, so that a kill costs only the shards at work."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..engine import check_recipe, load_checkpoint, save_checkpoint
from ..errors import BadInput
from ..files import remove_if_empty, written_atomically
from ..record.schema import Anything, card_from_json, json_of
from ..syntax import Sentence

UNFINISHED, RECIPE = "unfinished", "recipe.json"


class Ledger:
    """The shards of a survey that grows in a folder; without a folder nothing is kept."""

    def __init__(self, folder: Path | None, recipe: Mapping[str, Any]) -> None:
        self.folder = None if folder is None else folder / UNFINISHED
        if self.folder is None:
            return
        begun = begun_recipe(self.folder.parent)
        if begun is not None:
            check_recipe(self.folder.parent, "survey", begun, recipe)
        else:
            with written_atomically(self.folder / RECIPE) as temporary:
                temporary.write_text(json.dumps(dict(recipe), indent=1) + "\n", encoding="utf-8")

    def _path(self, round_: int, number: int) -> Path | None:
        return None if self.folder is None else self.folder / f"pass-{round_}-{number:06d}.safetensors"

    def saved(self, round_: int, number: int, fingerprint: str) -> dict[str, Any] | None:
        """What a shard gave, if it is there and was made of the same sentences."""
        path = self._path(round_, number)
        if path is None or not path.exists():
            return None
        state = load_checkpoint(path)
        if state["fingerprint"] != fingerprint:
            raise BadInput(
                f"{path} was made of other sentences: the corpus has changed since; choose another folder for it."
            )
        return state

    def save(self, round_: int, number: int, fingerprint: str, state: Mapping[str, Any]) -> None:
        """Keep what a shard gave."""
        path = self._path(round_, number)
        if path is not None:
            save_checkpoint(path, {**state, "fingerprint": fingerprint})

    def recall(self, round_: int, number: int, state: Mapping[str, Any]) -> Callable[[], Mapping[str, Any]]:
        """How to get a shard's state later: from the disk where it is kept, so that it need not wait in memory."""
        path = self._path(round_, number)
        return (lambda: state) if path is None else (lambda: load_checkpoint(path))

    @property
    def is_empty(self) -> bool:
        """Whether no shard is kept."""
        return self.folder is None or next(self.folder.glob("pass-*"), None) is None

    def close(self) -> None:
        """Nothing is unfinished any more; a folder that holds nothing else goes too."""
        if self.folder is not None:
            clear(self.folder.parent)
            remove_if_empty(self.folder.parent)


def begun_recipe(folder: Path) -> dict[str, Any] | None:
    """What the unfinished survey in a folder was asked, if there is one."""
    written = folder / UNFINISHED / RECIPE
    if not written.exists():
        return None
    try:
        return card_from_json(Anything, json_of(written), str(written))
    except BadInput as error:
        raise BadInput(f"{written} is damaged: remove {written.parent}, and begin again.") from error


def clear(folder: Path) -> None:
    """Remove the shards of a survey that is finished."""
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)


def fingerprint_of(items: Sequence[Sentence | str]) -> str:
    """Tells the sentences of one shard from any others, by all that a survey reads of them: no fine tags."""
    plain = [item if isinstance(item, str) else _without(vars(item), "fine_tags") for item in items]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()


def _without(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {field: value for field, value in fields.items() if field != name}
