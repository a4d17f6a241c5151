"""The card of a record: which model, which numbers, which versions, when."""

import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from .families import NOTES
from .verifying import verification_of

PACKAGES = ("attnscope", "torch", "transformers", "tokenizers")


def card_of(model: PreTrainedModel) -> dict[str, Any]:
    """What a reader needs to make the record again; a local folder gives its name, not its path."""
    name = str(model.config.name_or_path or type(model).__name__)
    return {
        "model": Path(name).name if Path(name).is_dir() else name,
        "revision": getattr(model.config, "_commit_hash", None),
        "class": type(model).__name__,
        "dtype": str(_dtype_of(model)).removeprefix("torch."),
        "attention_implementation": "eager",
        "verified": verification_of(model),
        **({"note": NOTES[model.config.model_type]} if model.config.model_type in NOTES else {}),
        **_made(),
    }


def _dtype_of(model: PreTrainedModel) -> torch.dtype:
    """What the model computes in: under autocast that is not what its weights are kept in."""
    device = model.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else model.dtype


def card_of_module(module: nn.Module) -> dict[str, Any]:
    """The same for a module of the user's own, which has no name but that of its class."""
    kind = type(module).__name__
    dtype = next((parameter.dtype for parameter in module.parameters()), torch.float32)
    return {
        "model": kind,
        "revision": None,
        "class": kind,
        "dtype": str(dtype).removeprefix("torch."),
        "attention_implementation": "the module's own",
        **_made(),
    }


def _made() -> dict[str, Any]:
    """By which versions, and when."""
    return {
        "versions": {"python": platform.python_version(), **{package: _version(package) for package in PACKAGES}},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
