"""Which stack a module belongs to: encoder, decoder, or the cross-attention between them."""

import re
from collections.abc import Sequence
from itertools import pairwise

from torch import nn
from transformers import PreTrainedModel
from transformers.models.auto import modeling_auto

from ..record.attention import Stack

CROSS_ATTENTION = re.compile(r"cross_?att|encoder_att|encdecatt", re.IGNORECASE)
"""How modules that attend from a decoder to its source are called: crossattention, encoder_attn, EncDecAttention."""


GENERATING = (
    modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
)
"""The architectures that write text, token by token."""
OTHER_SENSES = re.compile(r"vision|visual|image|video|audio|speech", re.IGNORECASE)
"""How modules are called that read pictures or sound for a language model."""


def is_decoder_only(model: PreTrainedModel) -> bool:
    """Whether this is a causal model: its architecture has a causal language model and no masked one.

    A language model that also takes pictures or sound is one too.
    """
    if model.config.is_encoder_decoder or has_two_towers(model):
        return False
    kind = model.config.model_type
    masked = kind in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    causal = any(kind in names for names in GENERATING)
    return (causal and not masked) or bool(getattr(model.config, "is_decoder", False))


def has_two_towers(model: PreTrainedModel) -> bool:
    """Whether a model reads pictures and texts apart from each other, to compare them (CLIP, SigLIP)."""
    read = sorted(part.main_input_name for part in model.children() if isinstance(part, PreTrainedModel))
    return hasattr(model, "get_text_features") and read == ["input_ids", "pixel_values"]


def stacks_of(model: PreTrainedModel) -> dict[nn.Module, Stack]:
    """The stack of each module, told by its name where a model has both an encoder and a decoder."""
    decoder_only = is_decoder_only(model)
    stacks: dict[nn.Module, Stack] = {}
    for name, module in model.named_modules():
        if not model.config.is_encoder_decoder:
            stacks[module] = "decoder" if decoder_only and not OTHER_SENSES.search(name) else "encoder"
        elif CROSS_ATTENTION.search(name):
            stacks[module] = "cross"
        else:
            stacks[module] = "decoder" if "decoder" in name.split(".") else "encoder"
    return stacks


def layer_numbers(model: PreTrainedModel, modules: Sequence[nn.Module | None]) -> tuple[int, ...]:
    """The number of each attention module's layer in the whole model, where only some layers of a hybrid attend.

    Told by the names of the modules (`model.layers.4.self_attn` is in layer 4); modules that do not stand in a numbered
    row, or that all layers share, are counted in the order in which they are called.
    """
    names = {module: name for name, module in model.named_modules()}
    numbers = [
        next((int(part) for part in names.get(module, "").split(".") if part.isdigit()), -1) for module in modules
    ]
    increasing = all(before < after for before, after in pairwise(numbers))
    return tuple(numbers) if increasing and numbers[0] >= 0 else tuple(range(len(modules)))
