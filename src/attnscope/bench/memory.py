"""Peak memory beside what `model.estimate` says of it: models of six families made here, each in a process of its own."""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from ..attribution import blank_out, integrated_gradients
from ..capture import InstrumentedModel, load
from ..errors import BadInput
from .figure import Figure
from .survey import MAPPED_ALONE

CLEAR_PEAK = Path("/proc/self/clear_refs")
"""Where Linux lets a process begin its peak anew."""
NEAR = 0.25
"""By what share of the peak an estimate may miss it."""
LAYERS, HEADS, GROUPS, WIDTH, INNER = 8, 8, 4, 256, 1024
WORDS = 4000
TOKENS = 640
SHORT = 8
TOGETHER = 8
"""Runs of blank-out and steps of integrated gradients in a batch."""
ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LLAMA_LIKE: dict[str, Any] = {
    "vocab_size": WORDS,
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": GROUPS,
    "head_dim": WIDTH // HEADS,
    **ENDS,
}
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "BERT": (
        "BertConfig",
        "BertForSequenceClassification",
        {
            "vocab_size": WORDS,
            "hidden_size": WIDTH,
            "intermediate_size": INNER,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "max_position_embeddings": 4096,
        },
    ),
    "GPT-2": (
        "GPT2Config",
        "GPT2LMHeadModel",
        {
            "vocab_size": WORDS,
            "n_embd": WIDTH,
            "n_inner": INNER,
            "n_layer": LAYERS,
            "n_head": HEADS,
            "n_positions": 4096,
            **ENDS,
        },
    ),
    "Llama": ("LlamaConfig", "LlamaForCausalLM", LLAMA_LIKE),
    "Gemma 3": ("Gemma3TextConfig", "Gemma3ForCausalLM", LLAMA_LIKE | {"sliding_window": 128}),
    "T5": (
        "T5Config",
        "T5ForConditionalGeneration",
        {
            "vocab_size": WORDS,
            "d_model": WIDTH,
            "d_kv": WIDTH // HEADS,
            "d_ff": INNER,
            "num_layers": LAYERS,
            "num_heads": HEADS,
            "decoder_start_token_id": 0,
            "pad_token_id": 0,
            "eos_token_id": 2,
        },
    ),
    "Falcon-H1": (
        "FalconH1Config",
        "FalconH1ForCausalLM",
        {name: value for name, value in LLAMA_LIKE.items() if name != "head_dim"}
        | {"mamba_d_ssm": WIDTH, "mamba_n_heads": HEADS, "mamba_d_state": 32, "mamba_chunk_size": 64},
    ),
}
"""The configuration, the architecture and the settings of a model of each family."""
RECORDS: dict[str, dict[str, Any]] = {
    "weights": {},
    "gradients": {"gradients": True},
    "values": {"values": True},
    "queries and keys": {"queries_and_keys": True},
    "vectors": {"keep": "vectors"},
}
"""What records are taken with."""
METHODS = ("blank_out", "integrated_gradients")
"""Methods that run the model again."""
