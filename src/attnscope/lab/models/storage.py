"""A small model on disk: its weights, its settings and its vocabulary; nothing in them is code."""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from ...capture.loading import LAB_MODEL
from ...errors import BadInput
from ...files import write_tensors, written_atomically
from ..vocabulary import Vocabulary

WEIGHTS, SETTINGS, VOCABULARY = "model.safetensors", LAB_MODEL, "vocabulary.json"
Model = TypeVar("Model", bound=nn.Module)
Settings = TypeVar("Settings")


def save_model(folder: Path, model: nn.Module, settings: Mapping[str, Any], vocabulary: Vocabulary) -> Path:
    """Write a model into a folder, its settings last."""
    vocabulary.save(folder / VOCABULARY)
    write_tensors(folder / WEIGHTS, model.state_dict())
    with written_atomically(folder / SETTINGS) as temporary:
        content = {"model": type(model).__name__, "settings": dict(settings)}
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return folder


def settings_of(kind: type[Settings], given: Mapping[str, Any]) -> Settings:
    """The settings of a model with these values; one that it does not have is told, with those that it has."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type] # a data class, for which there is no bound
    if unknown := [name for name in given if name not in names]:
        raise BadInput(f"The model has no setting {unknown[0]!r}: its settings are {', '.join(names)}.")
    return kind(**given)


def load_model(folder: Path, kind: type[Model]) -> Model:
    """The model that `save_model` has written, made by its class from its vocabulary and settings, ready to answer."""
    settings, vocabulary = load_settings(folder, kind)
    try:
        model = kind(vocabulary, **settings)
    except (TypeError, BadInput) as error:
        raise BadInput(f"The settings in {folder} are not those of {kind.__name__}: {error}") from None
    load_weights(folder, model)
    return model.eval()


def load_settings(folder: Path, kind: type[nn.Module]) -> tuple[dict[str, Any], Vocabulary]:
    """The settings and the vocabulary of a model of this class."""
    name, settings = _content(folder)
    if name != kind.__name__:
        raise BadInput(f"{folder} holds a model of the class {name}, not {kind.__name__}.")
    return settings, Vocabulary.load(folder / VOCABULARY)


def class_name_in(folder: Path) -> str:
    """The class of the model in a folder, by its name."""
    return _content(folder)[0]


def _content(folder: Path) -> tuple[str, dict[str, Any]]:
    path = folder / SETTINGS
    if not path.is_file():
        raise BadInput(f"{folder} holds no model of the lab: it has no {SETTINGS}.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return str(content["model"]), dict(content["settings"])
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, ValueError, RecursionError):
        raise BadInput(f"{path} is damaged: it does not name a model and its settings.") from None


def load_weights(folder: Path, model: nn.Module) -> None:
    """Give a model the weights that are kept in a folder."""
    try:
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (FileNotFoundError, SafetensorError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".:")
        raise BadInput(f"The weights in {folder} cannot be read: {reason}.") from None
