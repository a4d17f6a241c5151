"""Peak memory beside what `model.estimate` says of it: models of six families made here, in a process of their own."""

import ctypes
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from ..attribution import integrated_gradients
from ..attribution.blank_out import blanking_of
from ..capture import InstrumentedModel, load
from ..errors import BadInput
from .figure import Figure

CLEAR_PEAK = Path("/proc/self/clear_refs")
"""Where Linux lets a process begin its peak anew."""
NEAR = 0.25
"""By what share of the peak an estimate may miss it."""
LAYERS, HEADS, GROUPS, WIDTH, INNER = 8, 8, 4, 256, 1024
WORDS = 4000
TOKENS = 640
SHORT = 8
"""Tokens of a text that is recorded before: what is loaded at the first use of a process is no part of a peak."""
TOGETHER = 4
"""Runs of blank-out and steps of integrated gradients in a batch."""
MAPPED_ALONE = 2**16
"""Bytes from which the allocator gives a tensor its own pages, and gives them back when it is freed: the peak is then
what was alive at once, which is what is estimated."""
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


def measure_memory() -> Iterator[Figure]:
    """The peak of each kind of record, of blank-out and of integrated gradients, and what was said of it before."""
    for family in FAMILIES:
        for case, measured, said in peaks_of([family], [*RECORDS, *METHODS], TOKENS, LAYERS):
            ratio = said / measured
            yield Figure(
                case=f"{case}, {TOKENS} tokens",
                other="estimate",
                ours=measured / 1e6,
                others=said / 1e6,
                ratio=ratio,
                goal=f"{1 - NEAR:g}x to {1 + NEAR:g}x",
                met=abs(ratio - 1) <= NEAR,
                unit="MB",
            )


def peaks_of(families: Sequence[str], kinds: Sequence[str], tokens: int, layers: int) -> list[tuple[str, int, int]]:
    """Of each case its name, the bytes at its peak over the loaded model, and those estimated; in a fresh process."""
    if not CLEAR_PEAK.exists():
        raise BadInput("The peak of a process can be read and begun anew on Linux only.")
    asked = json.dumps([list(families), list(kinds), tokens, layers])
    code = f"from attnscope.bench.memory import measure_here; measure_here(*{asked})"
    steady = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": str(MAPPED_ALONE)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=steady)  # noqa: S603
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return [(str(case), int(measured), int(said)) for case, measured, said in found]


def measure_here(families: Sequence[str], kinds: Sequence[str], tokens: int, layers: int) -> None:
    """Measure in this process, and print a line of JSON for each case."""
    for family in families:
        model = made_model(family, layers)
        for kind in kinds:
            options: dict[str, Any] = {"method": kind} if kind in METHODS else RECORDS[kind]
            _work(model, kind, SHORT)()
            measured = peak_of(_work(model, kind, tokens))
            said = model.estimate(tokens, TOGETHER, **options).peak_bytes
            sys.stdout.write(json.dumps([f"{family}: {kind.replace('_', ' ')}", measured, said]) + "\n")


def made_model(family: str, layers: int = LAYERS) -> InstrumentedModel:
    """A model with random weights, which reads words that are numbers."""
    configuration, architecture, settings = FAMILIES[family]
    depth = next(name for name in ("num_hidden_layers", "n_layer", "num_layers") if name in settings)
    torch.manual_seed(0)
    config = getattr(transformers, configuration)(**settings | {depth: layers})
    words = ["[PAD]", "[BOS]", "[EOS]", "[UNK]", *map(str, range(WORDS - 4))]
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        eos_token="[EOS]",
        unk_token="[UNK]",
    )
    return load(getattr(transformers, architecture)(config).eval(), tokenizer=fast)


def _work(model: InstrumentedModel, kind: str, tokens: int) -> Callable[[], object]:
    """One case on a text of so many tokens; a decoder beside an encoder reads as many."""
    text = " ".join(str(place % WORDS) for place in range(tokens))
    given: dict[str, Any] = {"text_target": text} if "cross" in model.stacks else {}
    if kind not in METHODS:
        return lambda: model.record(text, verify="always", **given, **RECORDS[kind])
    record = model.record(text, heads="mean", **given)
    if kind == "integrated_gradients":
        return lambda: integrated_gradients(record, model, TOGETHER, "unk", batch_size=TOGETHER)
    # the first runs are whole; those behind have enough in common for keys and values to be kept
    later = math.ceil(0.15 * tokens)
    positions = [*range(TOGETHER - 1), *range(later, min(later + TOGETHER, tokens))]
    blanking = blanking_of(record, model, "blank_out", batch_size=TOGETHER)
    return lambda: blanking.ask([[], *([position] for position in positions)])


def peak_of(work: Callable[[], object]) -> int:
    """By how many bytes this process grows at most while it works."""
    ctypes.CDLL(None).malloc_trim(0)
    CLEAR_PEAK.write_text("5")
    before = held_now("VmRSS")
    kept = work()
    grown = held_now("VmHWM") - before
    del kept
    return grown


def held_now(name: str) -> int:
    """What this process holds (VmRSS), or has held at most (VmHWM), in bytes, as Linux tells it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
