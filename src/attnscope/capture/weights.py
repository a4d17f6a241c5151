"""Whether the weights in a file are those of the model: what is missing would be random numbers."""

import logging
import re
from collections.abc import Collection, Iterable
from typing import Any

from transformers import AutoModel, PreTrainedModel

from ..errors import BadInput
from .stacks import is_decoder_only

WRAPPERS = re.compile(r"^(?:module\.|_orig_mod\.)+")
"""What DataParallel and torch.compile put before every name when the wrapped model was saved."""
LAYER_NUMBER = re.compile(r"\.\d+\.")
NAMED = 3
"""How many missing weights are named; the others are counted."""

log = logging.getLogger("attnscope")


def complete_model(name: str, kind: Any, options: dict[str, Any], allowed: tuple[str, ...]) -> PreTrainedModel:
    """The model with every weight from its file, or without its head where the file of an encoder has none."""
    model, missing, unexpected = _read(name, kind, options)
    if any(WRAPPERS.match(key) for key in unexpected):
        prefix = next(match[0] for key in sorted(unexpected) if (match := WRAPPERS.match(key)))
        log.warning("The names of the weights of %s begin with %s, which was taken off.", name, prefix)
        options = {**options, "key_mapping": {WRAPPERS.pattern: "", **options.get("key_mapping", {})}}
        model, missing, unexpected = _read(name, kind, options)
    missing = _not_allowed(missing, allowed)
    headless = bool(missing) and _is_encoder_without_its_head(model, missing)
    if headless:
        model, missing, unexpected = _read(name, AutoModel, options)
        missing = _not_allowed(missing, allowed)
    if missing and all(key.startswith("pooler.") for key in missing) and getattr(model, "pooler", None) is not None:
        model.pooler = None  # type: ignore[assignment] # of an encoder without a head, which nothing reads
        missing = []
    if missing:
        raise BadInput(
            f"The file of {name} lacks {_listed(missing)} of {type(model).__name__}, which would be random numbers:"
            " give the whole checkpoint and its own config.json, or allow_missing= if you mean it."
        )
    more = _of_further_layers(model, unexpected)
    if more and "" not in allowed:
        raise BadInput(
            f"The file of {name} has more layers than its config.json says ({_listed(more)} would not be used): correct"
            " config.json, or pass allow_missing=True if you mean it."
        )
    if headless:
        log.warning("The file of %s has no weights of a head: it is read without one, and predicts nothing.", name)
    return model


def _read(name: str, kind: Any, options: dict[str, Any]) -> tuple[PreTrainedModel, list[str], list[str]]:
    """The model, the names of weights that are not in its file, and names in the file that it has no use for."""
    model, found = kind.from_pretrained(name, output_loading_info=True, **options)
    # masks and position numbers are made by the code; numbers that were learned are not
    counted = {key for key, buffer in model.named_buffers() if not buffer.is_floating_point()}
    return model, sorted(set(found["missing_keys"]) - counted), sorted(found["unexpected_keys"])


def _not_allowed(missing: Iterable[str], allowed: tuple[str, ...]) -> list[str]:
    return [key for key in missing if not key.startswith(allowed)]


def _is_encoder_without_its_head(model: PreTrainedModel, missing: Collection[str]) -> bool:
    """Whether the whole head is missing, on an encoder: its body is sound by itself, as sentence encoders are."""
    if not hasattr(model, model.base_model_prefix) or model.config.is_encoder_decoder or is_decoder_only(model):
        return False
    of_body = {id(weight) for weight in model.base_model.parameters()}
    head = {key for key, weight in model.named_parameters() if id(weight) not in of_body}
    return bool(head) and head <= set(missing)


def _of_further_layers(model: PreTrainedModel, unexpected: Iterable[str]) -> list[str]:
    """Names that the model would know if it had more layers."""
    known = {LAYER_NUMBER.sub(".0.", key) for key in model.state_dict()}
    body = f"{model.base_model_prefix}."
    return [
        key
        for key in unexpected
        if {LAYER_NUMBER.sub(".0.", key), LAYER_NUMBER.sub(".0.", key.removeprefix(body))} & known
    ]


def _listed(keys: Collection[str]) -> str:
    """The first names, and how many there are in all."""
    first = ", ".join(list(keys)[:NAMED])
    return first if len(keys) <= NAMED else f"{first} and {len(keys) - NAMED} more weights"
