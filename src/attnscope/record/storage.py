"""Records on disk: one safetensors file with a JSON header, nothing pickled.

Weights may be stored as uint8: the square root of each weight over its row's largest, in 255 steps, with the row's
largest beside it, renormalised on reading. A linear code would round the many small weights of a row with a sink to
nothing, which can lose half of its mass.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float, UInt8
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..errors import BadInput
from ..files import written_atomically
from .target import Target

FORMAT = "attnscope.AttentionRecord"
FORMAT_VERSION = 1
Precision = Literal["float32", "float16", "uint8"]
INPUTS = "inputs."
"""What precedes the names of the model's inputs among the tensors."""


def encoded_rows(
    weights: Float[Tensor, "layer head query key"],
) -> tuple[UInt8[Tensor, "layer head query key"], Float[Tensor, "layer head query"]]:
    """Weights as bytes, and the largest weight of each row."""
    largest = weights.amax(-1)
    scaled = weights / largest.masked_fill(largest == 0, 1.0).unsqueeze(-1)
    return scaled.sqrt_().mul_(255).round_().to(torch.uint8), largest


def decoded_rows(
    codes: UInt8[Tensor, "layer head query key"], largest: Float[Tensor, "layer head query"]
) -> Float[Tensor, "layer head query key"]:
    """The weights of `encoded_rows`, with rows that sum to one again (rows of zeros stay)."""
    weights = codes.to(torch.float32).div_(255).square_().mul_(largest.unsqueeze(-1))
    sums = weights.sum(-1, keepdim=True)
    return weights.div_(sums.masked_fill(sums == 0, 1.0))


def write(path: Path, values: Mapping[str, Any], precision: Precision) -> Path:
    """Write a record's fields; what is not a tensor goes into the header."""
    tensors = {name: value.contiguous() for name, value in values.items() if isinstance(value, Tensor)}
    tensors |= {INPUTS + name: value.contiguous() for name, value in values["inputs"].items()}
    shared = [
        name for name in tensors if name != "weights" and tensors[name].data_ptr() == tensors["weights"].data_ptr()
    ]
    tensors |= {name: tensors[name].clone() for name in shared}  # safetensors refuses two names for one memory
    header = {
        name: asdict(value) if isinstance(value, Target) else value
        for name, value in values.items()
        if not isinstance(value, Tensor) and name != "inputs" and value is not None
    }
    weights = tensors.pop("weights")
    match precision:
        case "float32":
            tensors["weights"] = stored = weights
        case "float16":
            tensors["weights"] = weights.to(torch.float16)
            stored = tensors["weights"].to(torch.float32)
            stored = stored / stored.sum(-1, keepdim=True).masked_fill(stored.sum(-1, keepdim=True) == 0, 1.0)
        case "uint8":
            tensors["weight_codes"], tensors["row_largest"] = encoded_rows(weights)
            stored = decoded_rows(tensors["weight_codes"], tensors["row_largest"])
        case _:
            raise BadInput(f"A record is stored as float32, float16 or uint8, not as {precision!r}.")
    error = 0.0 if stored is weights else (stored - weights).abs_().max().item()
    error += values["card"].get("storage", {}).get("largest_error", 0.0)  # what earlier files have cost already
    header["card"] = {**values["card"], "storage": {"precision": precision, "largest_error": error}}
    metadata = {"format": FORMAT, "version": str(FORMAT_VERSION), "record": json.dumps(header, default=_plain)}
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name the file to write.")
    with written_atomically(path) as temporary:
        save_file(tensors, temporary, metadata=metadata)
    return path


def read(path: Path) -> dict[str, Any]:
    """The fields that `write` stored, or one sentence about why this file is not a record."""
    if not path.is_file():
        raise BadInput(f"There is no file {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            _check_metadata(path, metadata)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        values: dict[str, Any] = dict(json.loads(metadata["record"]))
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"{path} is not a whole safetensors file ({error}): it may be cut off or of another kind."
        ) from None
    if not {"weights", "weight_codes"} & set(tensors) or "query_tokens" not in values:
        raise BadInput(f"{path} is an attention record with parts missing; save it again.")
    values["inputs"] = {
        name.removeprefix(INPUTS): tensors.pop(name) for name in list(tensors) if name.startswith(INPUTS)
    }
    if "weight_codes" in tensors:
        tensors["weights"] = decoded_rows(tensors.pop("weight_codes"), tensors.pop("row_largest"))
    if "target" in values:
        values["target"] = Target(**values["target"])
    return {name: _as_tuples(value) if name != "card" else value for name, value in values.items()} | tensors


def _check_metadata(path: Path, metadata: Mapping[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise BadInput(f"{path} is a safetensors file, but not an attention record: AttentionRecord.save writes those.")
    version = metadata.get("version", "")
    if not version.isdigit() or int(version) > FORMAT_VERSION:
        raise BadInput(
            f"{path} has record format {version!r}; this attnscope reads up to {FORMAT_VERSION}: upgrade attnscope."
        )


def _plain(value: Any) -> Any:
    """NumPy and torch scalars as numbers; what else JSON does not know, such as a dtype, in words."""
    return value.item() if hasattr(value, "item") else str(value)


def _as_tuples(value: Any) -> Any:
    """JSON knows only lists; a record's sequences are tuples."""
    return tuple(_as_tuples(entry) for entry in value) if isinstance(value, list) else value
