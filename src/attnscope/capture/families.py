"""What differs between model families, as tables: a new family is a line here, and most need none."""

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from ..errors import BadInput
from ..record.attention import Stack

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
