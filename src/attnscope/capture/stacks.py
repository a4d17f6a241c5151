"""Which stack a module belongs to: encoder, decoder, or the cross-attention between them."""

import re

from torch import nn
from transformers import PreTrainedModel
from transformers.models.auto import modeling_auto

from ..record.attention import Stack

CROSS_ATTENTION = re.compile(r"cross_?att|encoder_att|encdecatt", re.IGNORECASE)
"""How modules that attend from a decoder to its source are called: crossattention, encoder_attn, EncDecAttention."""


def is_decoder_only(model: PreTrainedModel) -> bool:
    """Whether this is a causal model: its architecture has a causal language model and no masked one."""
    if model.config.is_encoder_decoder:
        return False
    kind = model.config.model_type
    causal = kind in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    masked = kind in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return (causal and not masked) or bool(getattr(model.config, "is_decoder", False))


def stacks_of(model: PreTrainedModel) -> dict[nn.Module, Stack]:
    """The stack of each module, told by its name where a model has both an encoder and a decoder."""
    if not model.config.is_encoder_decoder:
        stack: Stack = "decoder" if is_decoder_only(model) else "encoder"
        return dict.fromkeys(model.modules(), stack)
    stacks: dict[nn.Module, Stack] = {}
    for name, module in model.named_modules():
        if CROSS_ATTENTION.search(name):
            stacks[module] = "cross"
        else:
            stacks[module] = "decoder" if "decoder" in name.split(".") else "encoder"
    return stacks
