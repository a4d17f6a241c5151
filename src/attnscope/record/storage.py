"""Records on disk: one safetensors file with a JSON header, nothing pickled.

Weights may be stored as uint8: the square root of each weight over its row's largest, in 255 steps, with the row's
largest beside it, renormalised on reading. A linear code would round the many small weights of a row with a sink to
nothing, which can lose half of its mass.
"""

import errno
import json
from collections.abc import Collection, Mapping
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
from .schema import TensorField, from_json, quote, reason_of, tensor_fields
from .segments import TokenSegments
from .target import Target

FORMAT, VECTORS = "attnscope.AttentionRecord", "attnscope.VectorRecord"
"""What the header calls a record of weights, and one of queries and keys."""
FORMAT_VERSION = 1
Precision = Literal["float32", "float16", "uint8"]
VERSIONS = [str(number) for number in range(1, FORMAT_VERSION + 1)]
SUFFIX = ".safetensors"
INPUTS, CODES, LARGEST = "inputs.", "weight_codes", "row_largest"
"""What precedes the names of the model's inputs among the tensors; weights as bytes, and the largest of each row."""
KINDS = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
}
"""The numbers that a record may hold, as safetensors and as torch call them."""
WHOLE = ("int64", "int32", "int16", "int8", "uint8")
INPUT = TensorField(WHOLE, ("position",), is_needed=False)
CODED = TensorField(("uint8",), ("layer", "head", "query", "key"), is_needed=False)
LARGEST_OF_ROWS = TensorField(("float32",), ("layer", "head", "query"), is_needed=False)
MOST_TENSORS = 64


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
    tensors, header = _parted(values)
    weights = tensors.pop("weights")
    match precision:
        case "float32":
            tensors["weights"] = stored = weights
        case "float16":
            tensors["weights"] = weights.to(torch.float16)
            stored = tensors["weights"].to(torch.float32)
            stored = stored / stored.sum(-1, keepdim=True).masked_fill(stored.sum(-1, keepdim=True) == 0, 1.0)
        case "uint8":
            tensors[CODES], tensors[LARGEST] = encoded_rows(weights)
            stored = decoded_rows(tensors[CODES], tensors[LARGEST])
    cost = 0.0 if stored is weights else (stored - weights).abs_().max().item()
    cost += _earlier_error(values["card"])
    header["card"] = {**values["card"], "storage": {"precision": precision, "largest_error": cost}}
    return _write_file(path, FORMAT, tensors, header)


def write_vectors(path: Path, values: Mapping[str, Any]) -> Path:
    """Write the fields of a record of vectors, each as it is kept."""
    return _write_file(path, VECTORS, *_parted(values))


def _parted(values: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors among the fields, each with memory of its own, and the others as a header."""
    tensors = {name: value.contiguous() for name, value in values.items() if isinstance(value, Tensor)}
    tensors |= {INPUTS + name: value.contiguous() for name, value in values["inputs"].items()}
    places: set[int] = set()
    for name, tensor in tensors.items():
        if tensor.data_ptr() in places:
            tensors[name] = tensor.clone()  # safetensors refuses two names for one memory
        places.add(tensor.data_ptr())
    header = {
        name: asdict(value) if isinstance(value, (Target, TokenSegments)) else value
        for name, value in values.items()
        if not isinstance(value, Tensor) and name != "inputs" and value is not None
    }
    return tensors, header


def _write_file(path: Path, form: str, tensors: dict[str, Tensor], header: dict[str, Any]) -> Path:
    if path.suffix != SUFFIX:
        raise BadInput(f"A record is written to a file that ends in {SUFFIX}, unlike {quote(path.name)}.")
    metadata = {"format": form, "version": str(FORMAT_VERSION), "record": json.dumps(header, default=_plain)}
    try:
        if path.is_dir():
            raise BadInput(f"{path} is a folder; name the file to write.")
        with written_atomically(path) as temporary:
            save_file(tensors, temporary, metadata=metadata)
    except SafetensorError as error:  # whose errors of the disk are no OSError
        raise OSError(f"{path} could not be written: {error}") from error
    except OSError as error:
        if error.errno in (None, errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        raise BadInput(f"{quote(str(path))} cannot be written: {error.strerror}.") from None
    return path


def _earlier_error(card: Mapping[str, Any]) -> float:
    """What earlier files have cost already."""
    storage = card.get("storage")
    error = storage.get("largest_error") if isinstance(storage, Mapping) else None
    return error if isinstance(error, float) else 0.0


def read(path: Path, kinds: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The kind of record that a file holds, of these by their format, and its fields as they were written.

    Each is held against the record's annotations, or there is one sentence about what is wrong.

    Names, kinds and shapes of the tensors are checked before any is read; safetensors itself holds their sizes against
    the size of the file.
    """
    try:
        if not path.is_file():
            raise BadInput(f"There is no file {quote(str(path))}.")
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            _check_metadata(path, metadata, kinds)
            record = kinds[metadata["format"]]
            values = from_json(record, metadata["record"], f"The header of {path}")
            names = list(file.keys())
            _check_tensors(path, {name: file.get_slice(name) for name in names}, record)
            tensors = {name: file.get_tensor(name) for name in names}
    except OSError as error:
        raise BadInput(f"{quote(str(path))} cannot be read: {error.strerror or error}.") from None
    except SafetensorError as error:
        raise BadInput(
            f"{path} is not a whole safetensors file ({reason_of(error)}): it may be cut off or of another kind."
        ) from None
    values["inputs"] = {
        name.removeprefix(INPUTS): tensors.pop(name) for name in list(tensors) if name.startswith(INPUTS)
    }
    if CODES in tensors:
        tensors["weights"] = decoded_rows(tensors.pop(CODES), tensors.pop(LARGEST))
    return record, values | tensors


def _check_metadata(path: Path, metadata: Mapping[str, str], kinds: Collection[str]) -> None:
    if metadata.get("format") not in kinds:
        raise BadInput(f"{path} is a safetensors file, but not an attention record: AttentionRecord.save writes those.")
    version = metadata.get("version", "")
    if version not in VERSIONS:
        raise BadInput(
            f"{path} has record format {quote(version)}; this attnscope reads up to {FORMAT_VERSION}: upgrade it."
        )
    if "record" not in metadata:
        raise BadInput(f"{path} is an attention record with its header missing; save it again.")


def _check_tensors(path: Path, slices: Mapping[str, Any], record: Any) -> None:
    """Refuse tensors that no record has, that a record needs and are not there, or that do not fit the weights."""
    known = {**tensor_fields(record), CODES: CODED, LARGEST: LARGEST_OF_ROWS}
    if len(slices) > MOST_TENSORS:
        raise BadInput(f"{path} holds {len(slices)} tensors, more than any record has.")
    found = {name: (KINDS.get(entry.get_dtype(), "unknown"), entry.get_shape()) for name, entry in slices.items()}
    stored = {CODES, LARGEST} if CODES in found or LARGEST in found else {"weights"} & known.keys()
    needed = {name for name, kind in known.items() if kind.is_needed} - {"weights", CODES, LARGEST} | stored
    refused = {CODES, LARGEST, "weights"} - stored
    for name in sorted(needed - found.keys()):
        raise BadInput(f"{path} is an attention record with parts missing ({name}); save it again.")
    sizes: dict[str, int] = {}
    for name in ("weights", CODES, "queries", "group_keys"):
        if name in needed and name in found:
            sizes |= dict(zip(known[name].axes, found[name][1], strict=False))
    for name, (dtype, shape) in found.items():
        kind = INPUT if name.startswith(INPUTS) else known.get(name)
        if kind is None or name in refused:
            raise BadInput(f"{path} holds a tensor called {quote(name)}, which no record has beside the others.")
        kind.refuse(f"{path}: {quote(name)}", dtype, shape, sizes)
        if 0 in shape and not name.startswith(INPUTS):
            raise BadInput(f"{path}: {name} is empty.")


def _plain(value: Any) -> Any:
    """NumPy and torch scalars as numbers; what else JSON does not know, such as a dtype, in words."""
    return value.item() if hasattr(value, "item") else str(value)
