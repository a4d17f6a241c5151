"""Checkpoints: the whole state of a long computation in one file, so that a kill costs only the work since the last.

A checkpoint is one safetensors file. Its tensors are stored as such; everything around them (mappings, lists, numbers,
texts) is JSON in the file's metadata. Nothing is pickled, so a checkpoint from a stranger can run no code.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..errors import BadInput
from ..files import write_tensors

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
