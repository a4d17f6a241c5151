"""What differs between model families, as tables: what a model is for, where it reads, which stack a module is of."""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.pytorch_utils import Conv1D
from transformers.utils.hub import cached_file

from ..errors import BadInput
from ..record.attention import Stack

Task = Literal["classifier", "masked_lm", "causal_lm", "encoder", "encoder_decoder"]
CLASS_NAME_ENDINGS: dict[str, Task] = {
    "ForSequenceClassification": "classifier",
    "ForImageClassification": "classifier",
    "ForImageClassificationWithTeacher": "classifier",
    "ForAudioClassification": "classifier",
    "ForVideoClassification": "classifier",
    "ForMaskedLM": "masked_lm",
    "ForPreTraining": "masked_lm",
    "ForCausalLM": "causal_lm",
    "LMHeadModel": "causal_lm",
    "ForConditionalGeneration": "encoder_decoder",
    "MTModel": "encoder_decoder",
}
Pooling = Literal["first", "last", "mean", "mask"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)
POOLING_FILE = "1_Pooling/config.json"
"""Where a sentence encoder says how it pools."""
POOLING_MODES: dict[str, Pooling] = {
    "pooling_mode_cls_token": "first",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_mean_tokens": "mean",
}

OUTPUT_PROJECTIONS = (
    "o_proj",  # Llama, Mistral, Qwen2, Gemma 2
    "out_proj",  # OPT, BART, Marian
    "out_lin",  # DistilBERT
    "c_proj",  # GPT-2
    "o",  # T5
    "Wo",  # ModernBERT
    "dense",  # ALBERT, GPT-NeoX
    "../output.dense",  # BERT, RoBERTa, ELECTRA: beside the attention module, in the layer that holds both
)
"""Where the output projection of an attention module is found, seen from that module."""

POSITION_LIMITS = ("max_position_embeddings", "n_positions", "max_seq_len")
"""What configurations call the number of positions; families without one (T5, BLOOM) take any length."""

WITHOUT_PADDING = frozenset({"xlnet", "convbert", "nystromformer", "mobilebert"})
"""Families whose answer or attention changes with padding, whatever the mask says: they run one text at a time."""

WITHOUT_LIMIT = frozenset({"t5", "mt5", "umt5", "bloom"})
"""Families whose positions are relative, whatever their configuration says."""

PROMPT_TYPES = frozenset({"paligemma"})
"""Families whose processor marks a prompt with token types of zero, which say that it is read in both directions."""

CODES_IN_ROWS = frozenset({"musicgen", "musicgen_decoder", "musicgen_melody", "musicgen_melody_decoder"})
"""Families that take the codes of a sound as rows, one for each codebook, where others have a batch."""

CODES_OF_SOUND = CODES_IN_ROWS | {"dia", "kyutai_speech_to_text"}
"""Families that read or write several codes of a sound at each position, which no tokenizer makes of a text."""

NOTES = {
    "diffllama": "Each layer holds two attention maps: those of the first half of its heads, and those of the second"
    " half, which the model subtracts after multiplying them by a learned number.",
}
"""What a reader of a family's records must know; it stands on their card."""
CROSS_ATTENTION = re.compile(r"cross_?att|encoder_att|encdecatt", re.IGNORECASE)
"""How modules that attend from a decoder to its source are called: crossattention, encoder_attn, EncDecAttention."""


ATTENDING = re.compile(r"att|mixer\.(q|k|v)", re.IGNORECASE)
"""How modules that attend are called, with all that is in them."""
ACTIVATIONS_SAVED = {"gelu_new": 3, "gelu_fast": 3, "quick_gelu": 1, "relu": -1}
"""What activations save for a backward pass, in units of their width, beyond what they are given and give: those that
are written as several operations save what each was given, ReLU only what it gives."""
SCAN = ("num_heads", "ssm_state_size", "chunk_size", "intermediate_size")
"""What modules of state spaces (Mamba 2) have: heads, their states, the tokens of a chunk, and all heads together."""
SCAN_SQUARES = 3
"""Squares of a chunk that each head of a state space holds: decays, products, and both together."""
SCAN_VECTORS_AT_WORK, SCAN_VECTORS_SAVED = 13, 14
"""Vectors of all its heads that it holds for each token while it scans, and that it saves for a backward pass."""

GENERATING = (
    modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
)
"""The architectures that write text, token by token."""
OTHER_SENSES = re.compile(r"vision|visual|image|video|audio|speech", re.IGNORECASE)
"""How modules are called that read pictures or sound for a language model."""


def output_projection(model: PreTrainedModel, attention: nn.Module) -> nn.Module:
    """The module that takes the joined heads of this attention module back to the model's width."""
    names = {module: name for name, module in model.named_modules()}
    own_name = names[attention]
    parent = model.get_submodule(own_name.rpartition(".")[0])
    for path in OUTPUT_PROJECTIONS:
        holder, relative = (parent, path[3:]) if path.startswith("../") else (attention, path)
        try:
            return holder.get_submodule(relative)
        except AttributeError:
            continue
    raise BadInput(
        f"The output projection of {type(attention).__name__} is not known, so values cannot be recorded:"
        " add its name to OUTPUT_PROJECTIONS in attnscope/capture/families.py."
    )


def longest_input(model: PreTrainedModel) -> int | None:
    """How many tokens the model can read, or None where its positions have no end."""
    config = model.config
    if config.model_type in WITHOUT_LIMIT:
        return None
    limit = next((getattr(config, name) for name in POSITION_LIMITS if getattr(config, name, None)), None)
    if limit is None or limit <= 0:
        return None
    for name, module in model.named_modules():
        # RoBERTa and its kin count positions from behind the padding index, so that many rows are never used
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            return int(module.num_embeddings - module.padding_idx - 1)
    return int(limit)


def size_of(model: PreTrainedModel, stack: Stack) -> tuple[int, int] | None:
    """How many layers and heads a stack has by the configuration, or None where that does not say."""
    side = "encoder" if stack == "encoder" else "decoder"
    own = getattr(model.config, side, None)
    config = own if isinstance(own, PreTrainedConfig) else model.config.get_text_config()
    both = model.config.is_encoder_decoder
    layer_names = (*((f"{side}_layers", f"num_{side}_layers") if both else ()), "num_hidden_layers", "num_layers")
    head_names = (*((f"{side}_attention_heads",) if both else ()), "num_attention_heads", "num_heads")
    layers, heads = (
        next((getattr(config, name) for name in names if isinstance(getattr(config, name, None), int)), None)
        for names in (layer_names, head_names)
    )
    if layers is None or heads is None:
        return None
    kinds = getattr(config, "layer_types", None)
    if kinds:  # hybrids: only some layers attend, or all do beside something else
        attending = sum(("attention" in kind and "linear" not in kind) or kind == "hybrid" for kind in kinds)
        layers = attending or layers
    return layers, heads


def inner_widths(model: PreTrainedModel, heads: int, groups: int, head_width: int) -> tuple[int, int]:
    """How many numbers a layer holds at once of each token, beyond vectors of the model's width; how many all save.

    Told from the modules beside attention. What widens puts out numbers that are saved, and so is what is given to what
    narrows; a gate's activation is one more. A norm saves what it is given and gives, RMSNorm what lies between too.
    State spaces (Mamba 2) hold chunks of a text, of which each head has a square.
    """
    table = model.get_output_embeddings()
    wide = narrow = norms = widest = scanned = scanning = 0
    for name, module in model.named_modules():
        weight: Any = getattr(module, "weight", None)
        kind = type(module).__name__
        if all(isinstance(getattr(module, part, None), int) for part in SCAN):
            heads_there, state, chunk, inner = (getattr(module, part) for part in SCAN)
            vectors = max(inner, heads_there * state)
            scanning = max(scanning, SCAN_SQUARES * heads_there * chunk + SCAN_VECTORS_AT_WORK * vectors)
            scanned += SCAN_SQUARES * heads_there * chunk + SCAN_VECTORS_SAVED * vectors
        elif kind.endswith("Norm") and weight is not None:
            # one norm for all heads of queries or keys, unless it is as wide as all of them together
            shared = {"q_norm": heads, "k_norm": groups}.get(name.rpartition(".")[2], 1)
            norms += (
                weight.numel()
                * (shared if weight.numel() == head_width else 1)
                * (2 if isinstance(module, nn.LayerNorm) else 3)
            )
        elif isinstance(module, (nn.Linear, Conv1D)) and module is not table and not ATTENDING.search(name):
            if isinstance(module, nn.Linear):  # a quantised one packs its weight
                given, put_out = module.in_features, module.out_features
            else:
                given, put_out = module.weight.shape
            wide += put_out if put_out > given else 0
            narrow += given if given > put_out else 0
            widest = max(widest, given if given > put_out else 0)
    config = model.config.get_text_config()
    names = ("hidden_act", "hidden_activation", "activation_function", "dense_act_fn", "activation")
    activation = next((found for name in names if isinstance(found := getattr(config, name, None), str)), "")
    is_gated = wide > 1.5 * narrow
    more = 1 if is_gated else ACTIVATIONS_SAVED.get(activation, 0)
    return max(scanning, widest * (2 + max(more, 0))), scanned + norms + wide + narrow + more * narrow


# ---- stacks


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
    """The stack of each module, known by its name where a model has both an encoder and a decoder."""
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


# ---- what a model is for


def task_of(model: PreTrainedModel) -> Task:
    """The task of a model; `encoder` is any model without a head that answers, also a headless decoder."""
    for kind in type(model).__mro__:
        for ending, task in CLASS_NAME_ENDINGS.items():
            if kind.__name__.endswith(ending):
                return _as_it_answers(model, task)
    return "encoder_decoder" if model.config.is_encoder_decoder else "encoder"


def _as_it_answers(model: PreTrainedModel, task: Task) -> Task:
    """The task a class name promises, as far as the model keeps it: some heads tell something else than tokens."""
    if task == "masked_lm" and model.get_output_embeddings() is None:
        return "encoder"  # ELECTRA's discriminator tells replaced tokens
    if task == "causal_lm" and not is_decoder_only(model):
        return "masked_lm"  # XLMWithLMHeadModel, BertLMHeadModel used as an encoder
    if task == "encoder_decoder" and not model.config.is_encoder_decoder:
        return "causal_lm"  # Gemma3ForConditionalGeneration: text is generated from images and text
    return task


def checked_task(task: str) -> Task:
    """A task named by the user."""
    for known in get_args(Task):
        if task == known:
            return known  # type: ignore[no-any-return]
    raise BadInput(f"There is no task {task!r}: choose one of {', '.join(get_args(Task))}.")


def outcome_labels(model: PreTrainedModel, labels: Sequence[str] | None) -> list[str]:
    """The names of a classifier's classes."""
    count = int(model.config.num_labels or 0)
    if labels is not None:
        if isinstance(labels, str) or not isinstance(labels, Sequence):
            raise BadInput(f"labels is a list of the names of the classes, not {type(labels).__name__}.")
        if len(labels) != count:
            raise BadInput(f"{len(labels)} labels were given for a classifier of {count} classes.")
        return list(labels)
    named: dict[Any, str] = {**(model.config.id2label or {})}
    return [str(named.get(index, index)) for index in range(count)]


def pooling_of_sentence_encoder(name_or_path: str) -> Pooling | None:
    """The pooling a sentence encoder was trained with, if the model's folder (or its copy in the cache) says so."""
    if not name_or_path:
        return None
    folder = Path(name_or_path)
    file = str(folder / POOLING_FILE)
    if not folder.is_dir():
        cached = cached_file(
            name_or_path, POOLING_FILE, local_files_only=True, _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False, _raise_exceptions_for_gated_repo=False,
        )  # fmt: skip
        if cached is None:
            return None
        file = cached
    if not Path(file).is_file():
        return None
    try:
        modes = json.loads(Path(file).read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        modes = None
    if not isinstance(modes, dict):
        raise BadInput(f"{POOLING_FILE} of {name_or_path} is no JSON object, so it does not say how the model pools.")
    return next((pooling for mode, pooling in POOLING_MODES.items() if modes.get(mode)), None)
