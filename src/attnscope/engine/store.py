"""The one store of resumable work: a recipe, and the parts that are done, each a file of its own.

Work that takes longer than a minute is cut into parts that do not depend on each other, or keeps its whole state as one
part. A part is made once and read ever after, so that a kill costs only the part at work and `--resume` goes on to the
very same result. What was asked for stands beside the parts as the recipe; a folder of another recipe, and a part that
was made of other input, are refused.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..errors import BadInput
from ..files import check_can_be_made, remove_if_empty, write_tensors, written_atomically
from ..record.schema import Anything, card_from_json, json_of

UNFINISHED, RECIPE, SUFFIX, TABLE = "unfinished", "recipe.json", ".safetensors", ".parquet"
LONGEST_SHOWN = 80

Item = TypeVar("Item")
State = TypeVar("State")
"""What a part holds: a nest of mappings, lists, tuples, tensors, numbers and texts."""


class Store:
    """Parts of one piece of work in a folder; without a folder nothing is kept.

    >>> store = Store(getfixture("tmp_path") / "unfinished", "survey", {"limit": 2})
    >>> store.once("first", lambda: [1, 2], made_of="some text")
    [1, 2]
    >>> store.once("first", lambda: [3, 4], made_of="some text")
    [1, 2]
    """

    def __init__(self, folder: Path | None, what: str, recipe: Mapping[str, Any]) -> None:
        """`recipe` says in JSON terms what is asked for; the folder is made when the first part is kept."""
        self.folder, self.what = folder, what
        self.recipe = json.loads(json.dumps(dict(recipe)))  # as it will be read again
        if folder is not None and (begun := recipe_in(folder)) is not None:
            check_recipe(folder, what, begun, self.recipe)

    def begin(self) -> "Store":
        """Write the recipe down now, where the folder must tell what it is before its first part."""
        if self.folder is not None and recipe_in(self.folder) is None:
            with written_atomically(self.folder / RECIPE) as temporary:
                temporary.write_text(json.dumps(self.recipe, indent=1) + "\n", encoding="utf-8")
        return self

    def find(self, part: str, made_of: object = None) -> Any:
        """What a part holds, or None where it is not kept; `made_of`, if given, is its input."""
        if self.folder is None or not (path := self.file(f"{part}{SUFFIX}")).exists():
            return None
        kept = load_checkpoint(path)
        if made_of is not None and kept.get("made_of") != _digest(made_of):
            raise BadInput(
                f"{path} was made of other input, which has changed since: choose another folder, or remove"
                f" {self.folder}."
            )
        if "state" not in kept:
            raise BadInput(f"{path} is no part of a {self.what}: remove {self.folder}, and begin again.")
        return kept["state"]

    def keep(self, part: str, state: Any, made_of: object = None) -> None:
        """Keep what a part gave."""
        if self.folder is not None:
            self.begin()
            save_checkpoint(self.file(f"{part}{SUFFIX}"), {"made_of": _digest(made_of), "state": state})

    def once(self, part: str, make: Callable[[], State], made_of: object = None) -> State:
        """What is kept of a part, or what `make` gives, which is then kept."""
        found: State | None = self.find(part, made_of)
        if found is not None:
            return found
        self.keep(part, made := make(), made_of)
        return made

    def in_parts(
        self,
        items: Sequence[Item],
        size: int,
        work: Callable[[Sequence[Item], int], State],
        made_of: Callable[[Item], object],
        watch: Callable[[int, int], None] | None = None,
    ) -> Iterator[State]:
        """What `work(items of a part, number of its first item)` gives for all parts, in their order.

        Parts must not depend on each other, so that it does not matter where a run begins. `made_of(item)` tells an
        item from others, in JSON terms; `watch` is told how many items are done, and of how many.
        """
        for number, start in enumerate(range(0, len(items), size)):
            if watch is not None:
                watch(start, len(items))
            part = items[start : start + size]
            yield self.once(f"{number:06d}", lambda: work(part, start), list(map(made_of, part)))  # noqa: B023 - called at once
        if watch is not None:
            watch(len(items), len(items))

    def grow(self, part: str, train: Callable[[Path], State]) -> State:
        """What is kept of a part, or what `train(folder)` gives; the folder, of its own store, goes when it is made."""
        growing = self.file(f"{part}.growing")
        made = self.once(part, lambda: train(growing))
        shutil.rmtree(growing, ignore_errors=True)
        return made

    def find_table(self, part: str) -> pd.DataFrame | None:
        """The table that is kept as a part, or None."""
        path = self.file(f"{part}{TABLE}")
        try:
            return pd.read_parquet(path) if path.exists() else None
        except (OSError, ValueError) as error:  # what pyarrow raises for a file that is none of its own
            raise BadInput(f"{path} is damaged: remove {self.folder}, and begin again.") from error

    def keep_table(self, part: str, table: pd.DataFrame) -> pd.DataFrame:
        """Keep a table, and give it as it will be read again."""
        self.begin()
        with written_atomically(self.file(f"{part}{TABLE}")) as temporary:
            table.to_parquet(temporary)
        return pd.read_parquet(self.file(f"{part}{TABLE}"))

    @property
    def is_empty(self) -> bool:
        """Whether no part is kept."""
        return self.folder is None or next(self.folder.glob(f"*{SUFFIX}"), None) is None

    def clear(self) -> None:
        """Remove everything, the folder around it too where that holds nothing else."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            remove_if_empty(self.folder.parent)

    def file(self, name: str) -> Path:
        """A file in the folder: that of a part, or a draft of one's own, which goes with the folder."""
        if self.folder is None:
            raise ValueError("Nothing is kept without a folder.")
        return self.folder / name


def recipe_in(folder: Path) -> dict[str, Any] | None:
    """What the work in a folder was asked for; None where nothing was begun."""
    path = folder / RECIPE
    if not path.exists():
        return None
    try:
        return card_from_json(Anything, json_of(path), str(path))
    except BadInput as error:
        raise BadInput(f"{path} is damaged: remove {folder}, and begin again.") from error


def check_recipe(where: Path, what: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Refuse to go on with what another has begun.

    >>> check_recipe(Path("out"), "survey", {"limit": 2, "null": "none"}, {"limit": 3, "null": "none"})
    Traceback (most recent call last):
    attnscope.errors.BadInput: out belongs to another survey (limit was 2, is now 3): choose another folder, or ask the
    same again.
    """
    if different := "; ".join(_differences(theirs, ours)):
        raise BadInput(
            f"{where} belongs to another {what} ({different}): choose another folder, or ask the same again."
        )


def checked_folder(
    out: Path, what: str, *, resume: bool, finished: str, unfinished: tuple[str, ...] = (UNFINISHED,)
) -> Path:
    """The folder, if it is empty or not there, or holds such work and that shall go on.

    `finished` is the file that is written last. `unfinished` are patterns of what is there before it.

    >>> full = getfixture("tmp_path")
    >>> _ = (full / "card.json").write_text("{}")
    >>> checked_folder(full, "survey", resume=True, finished="card.json") == full
    True
    >>> checked_folder(full, "survey", resume=False, finished="card.json")
    Traceback (most recent call last):
    attnscope.errors.BadInput: ... already holds a finished survey: choose another folder, or go on with it (--resume,
    resume=True).
    """
    check_can_be_made(out)
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return out
    if not out.is_dir():
        raise BadInput(f"A {what} is kept in a folder, but {out} is a file.")
    is_finished = (out / finished).exists()
    if not is_finished and not any(next(out.glob(pattern), None) for pattern in unfinished):
        raise BadInput(f"{out} is not empty and holds no {what}: choose another folder.")
    if not resume:
        state = "a finished" if is_finished else "an unfinished"
        raise BadInput(
            f"{out} already holds {state} {what}: choose another folder, or go on with it (--resume, resume=True)."
        )
    return out


def fingerprint_of(thing: object) -> str:
    """Tells plain data, as JSON writes it, from any other."""
    return hashlib.sha256(json.dumps(thing).encode()).hexdigest()


def _digest(made_of: object) -> str | None:
    return None if made_of is None else fingerprint_of(made_of)


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any], inside: str = "") -> Iterator[str]:
    """What was asked otherwise, with both values; of a nest, only the entries that differ."""
    for name, now in ours.items():
        before = theirs.get(name)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            yield from _differences(before, now, f"{inside}{name} ")
        elif before != now:
            yield f"{inside}{name} was {_quote(before)}, is now {_quote(now)}"


def _quote(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    if value is None:
        return "not given"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


# Checkpoints: the whole state of a long computation in one file, so that a kill costs only the work since the last.
# A checkpoint is one safetensors file. Its tensors are stored as such; everything around them (mappings, lists,
# numbers, texts) is JSON in the file's metadata. Nothing is pickled, so a checkpoint from a stranger can run no code.


_STRUCTURE = "attnscope.checkpoint"  # the metadata key; its absence tells a foreign file


def save_checkpoint(path: Path, state: Mapping[Any, Any]) -> None:
    """Write `state` to `path`, all at once: a nest of mappings, lists, tuples, tensors, numbers, texts, bools and None.

    >>> import torch
    >>> path = getfixture("tmp_path") / "checkpoint.safetensors"
    >>> save_checkpoint(path, {"step": 3, "moments": {0: torch.ones(2)}})
    >>> load_checkpoint(path)
    {'step': 3, 'moments': {0: tensor([1., 1.])}}
    """
    tensors: dict[str, Tensor] = {}
    structure = _encode(state, tensors)
    write_tensors(path, tensors, {_STRUCTURE: json.dumps(structure)})


def load_checkpoint(path: Path) -> dict[Any, Any]:
    """The state that was saved, with every key, type and bit as it was; its tensors are in main memory."""
    if not path.is_file():
        raise BadInput(f"There is no checkpoint at {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 -- the file is no mapping
    except SafetensorError as error:
        raise BadInput(f"{path} is not a checkpoint, or is damaged: {error}.") from error
    if _STRUCTURE not in metadata:
        raise BadInput(f"{path} is a safetensors file, but not a checkpoint of attnscope.")
    try:
        state = _decode(json.loads(metadata[_STRUCTURE]), tensors)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"The checkpoint {path} is damaged: its structure cannot be read.") from error
    if not isinstance(state, dict):
        raise BadInput(f"The checkpoint {path} is damaged: it does not hold a mapping.")
    return state


def _encode(value: object, tensors: dict[str, Tensor]) -> object:
    """JSON for `value`: atoms as themselves, anything else as a one-entry object that names its type.

    Tensors are put into `tensors` and stand in the JSON by their name there.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, float):
        return float(value)  # NumPy's own, the same number
    if isinstance(value, Tensor):
        name = str(len(tensors))
        # A copy, because safetensors refuses tensors that share memory, as tied weights do.
        tensors[name] = value.detach().to("cpu", copy=True).contiguous()
        return {"tensor": name}
    if isinstance(value, Mapping):
        # Pairs, because JSON would turn the integer keys of an optimizer's state into texts.
        return {"mapping": [[_encode_key(key), _encode(entry, tensors)] for key, entry in value.items()]}
    if type(value) is list:
        return {"list": [_encode(entry, tensors) for entry in value]}
    if type(value) is tuple:
        return {"tuple": [_encode(entry, tensors) for entry in value]}
    raise BadInput(f"A checkpoint holds tensors, numbers, texts and nests of them, not {type(value).__name__}.")


def _encode_key(key: object) -> object:
    if key is None or type(key) in (bool, int, float, str):
        return key
    raise BadInput(f"The keys of a checkpoint are texts or numbers, not {type(key).__name__}.")


def _decode(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "mapping":
        return {key: _decode(entry, tensors) for key, entry in content}
    if kind == "list":
        return [_decode(entry, tensors) for entry in content]
    if kind == "tuple":
        return tuple(_decode(entry, tensors) for entry in content)
    raise ValueError(kind)
