"""Tiny models of every architecture that transformers registers: its own configuration, shrunk by rules."""

import re
from typing import Any

import torch
import transformers
from small_sizes import OVERRIDES
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import CONFIG_MAPPING, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.models.auto import modeling_auto

VOCABULARY = 128
"""How many ids every model and tokenizer here has; the last ones stand for images, sounds and the like."""
WORDS = "the key to cabinets is on table red dogs see , . a boy that runs !".split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "</s>"]
PAD, CLS, END = 0, 2, 5
MOST_PARAMETERS = 40_000_000
USES = {
    "causal": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    "masked": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    "sequence to sequence": modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    "classification": modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    "image": modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES,
    "audio": modeling_auto.MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES
    | modeling_auto.MODEL_FOR_CTC_MAPPING_NAMES
    | modeling_auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
    "multimodal": modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    | modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES
    | modeling_auto.MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES,
    "encoder": modeling_auto.MODEL_MAPPING_NAMES,
}
"""What transformers registers architectures for, and what stands in its tables."""

# how small a setting gets, by the end of its name; the first rule that fits counts
RULES: list[tuple[int, str]] = [
    (2, "attn_layer_period attention_layer_period expert_layer_period"),
    (1, "attn_layer_offset attention_layer_offset expert_layer_offset"),
    (16, "mamba_head_dim"),
    (64, "mamba_d_ssm"),
    (8, "linear_key_head_dim linear_value_head_dim rotary_dim"),
    (16, "qk_head_dim"),
    (1_000_000, "num_feat_extract_layers num_conv_pos_embedding_groups num_channels num_codebooks"),
    (2, "topk top_k num_experts_per_tok num_experts_per_token num_selected_experts mamba_expand expand moe_k"),
    (1, "n_group topk_group num_expert_groups num_expert_group n_groups"),
    (4, "num_experts num_local_experts num_routed_experts num_shared_experts n_routed_experts n_shared_experts"),
    (4, "moe_num_experts moe_num_shared_experts num_moe_experts"),
    (2, "num_key_value_heads num_kv_heads n_head_kv num_swa_key_value_heads multi_query_group_num"),
    (4, "num_attention_heads num_heads n_heads n_head attention_heads num_q_heads nhead num_query_heads heads"),
    (2, "num_hidden_layers num_layers n_layers n_layer encoder_layers decoder_layers num_blocks layers depth"),
    (1, "first_k_dense_replace first_dense_layers"),
    (8, "head_dim d_kv kv_channels d_head dim_head head_size q_lora_rank kv_lora_rank o_lora_rank lora_rank lora_r"),
    (VOCABULARY, "vocab_size n_vocab n_token vocabulary_size num_codes codebook_size vocab_size_per_layer_input"),
    (128, "max_position_embeddings n_positions max_seq_len max_sequence_length max_source_positions"),
    (128, "max_target_positions n_ctx seq_length max_seq_length max_length model_max_length"),
    (32, "image_size img_size input_size target_size"),
    (8, "patch_size patch_stride"),
    (48, "intermediate_size ffn_dim d_ff n_inner d_inner ff_dim mlp_dim hidden_dim filter_size ffn_hidden_size"),
    (48, "feed_forward_size feedforward_dim dim_feedforward feed_forward_hidden_size intermediate_dim inner_dim"),
    (32, "hidden_size d_model n_embd dim embedding_size width hidden_sz n_embed channels hidden_features"),
    (32, "embeddings_size reduced_hidden_size"),
    (8, "sliding_window local_attention attention_window window_size attention_chunk_size chunk_size"),
    (4, "mamba_d_state ssm_state_size state_size mamba_d_conv conv_kernel linear_conv_kernel_dim"),
    (16, "num_mel_bins hidden_size_per_layer_input"),
    (32, "upsample_groups"),
    (2, "type_vocab_size"),
    (8, "num_queries"),
]
LEFT_OUT = (
    "out_features",
    "out_indices",
    "stage_names",
    "per_layer_config",
    "layers_block_type",
    "rope_parameters",
    "mamba_d_head",
)
"""Settings that a configuration works out anew from its size."""
FILLED = {"head_dim": 8, "num_key_value_heads": 4, "vocab_size": VOCABULARY, "prediction_length": 8}
"""Settings without a default."""
LAYER_COUNTS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "depth")
TOKEN_ID = re.compile(r"(.*_)?(token_id|token_index|token_ids|start_id|end_id)")
KNOWN_IDS = {"pad_token_id": PAD, "bos_token_id": CLS, "eos_token_id": END, "decoder_start_token_id": END}


class NotBuilt(Exception):
    """A model could not be made here; the message says why."""


def architectures() -> dict[str, tuple[str, str]]:
    """Every class once, with the model type and the first use it is registered for."""
    found: dict[str, tuple[str, str]] = {}
    for use, table in USES.items():
        for model_type, names in table.items():
            for name in (names,) if isinstance(names, str) else names:
                found.setdefault(name, (model_type, use))
    return dict(sorted(found.items(), key=lambda entry: entry[0].lower()))


def tiny_model(name: str, model_type: str, implementation: str | None = None) -> PreTrainedModel:
    """A model of this class with random weights, the same at every call."""
    try:
        kind = getattr(transformers, name)
        configuration = kind.config_class if kind.config_class is not None else CONFIG_MAPPING[model_type]
        config = tiny_config(configuration, **OVERRIDES.get(name, {}))
        _share_out_rotations(config)
        with torch.device("meta"):
            size = sum(parameter.numel() for parameter in kind._from_config(config).parameters())
        if size <= MOST_PARAMETERS:
            torch.manual_seed(0)
            options = {} if implementation is None else {"attn_implementation": implementation}
            model: PreTrainedModel = kind._from_config(config, **options)
            return model.eval()
    except Exception as error:  # families fail in ways of their own when they are this small
        raise NotBuilt(f"{type(error).__name__}: {_one_line(error)}") from error
    raise NotBuilt(f"the rules leave it {size / 1e6:.0f} million parameters")


def _share_out_rotations(config: PreTrainedConfig) -> None:
    """Half a head of eight, shared out among time, height and width, for families that rotate by all three."""
    for part in [config, *(getattr(config, name, None) for name in config.sub_configs)]:
        rope = getattr(part, "rope_parameters", None)
        if isinstance(rope, dict):
            for parameters in [rope, *(value for value in rope.values() if isinstance(value, dict))]:
                if "rope_type" in parameters:
                    parameters["mrope_section"] = [1, 1, 2]


def tiny_config(kind: type[PreTrainedConfig], **changes: Any) -> PreTrainedConfig:
    """The configuration of a family, small, with some settings changed."""
    plain = kind()
    settings = _shrunk(plain.to_dict()) | changes
    config = kind(**_without_derived(settings))
    for part in [config, *(getattr(config, name, None) for name in config.sub_configs)]:
        if isinstance(part, PreTrainedConfig):
            _set_ids(part)
    return config


def _without_derived(settings: dict[str, Any]) -> dict[str, Any]:
    """What a configuration class takes: not what it works out itself from the number of layers."""
    dropped = ("transformers_version", "model_type", "architectures", "_attn_implementation_autoset")
    return {name: value for name, value in settings.items() if name not in dropped and not name.startswith("_")}


def _shrunk(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, each as small as its rule says; lists over the layers as short as the layers."""
    layers = _layers_of(settings)
    small = {name: _small(name, value, settings, layers) for name, value in settings.items() if name not in LEFT_OUT}
    small |= OVERRIDES.get(settings.get("model_type", ""), {})
    if isinstance(small.get("layer_types"), list):
        for name in LAYER_COUNTS[:3]:
            if name in small:
                small[name] = len(small["layer_types"])
    return small


def _small(name: str, value: Any, settings: dict[str, Any], layers: int | None) -> Any:
    """One setting, small."""
    if isinstance(value, dict) and "model_type" in value:
        return {"model_type": value["model_type"], **_without_derived(_shrunk(value))}
    if value is None:
        return FILLED.get(name)
    if name == "embed_dim" and isinstance(settings.get("num_heads"), (list, tuple)):
        return value if isinstance(value, (list, tuple)) else 48  # Swin and its kin have 3, 6, 12 heads
    if isinstance(value, int) and not isinstance(value, bool):
        ungrouped = name == "num_key_value_heads" and value == settings.get("num_attention_heads")
        return 4 if ungrouped else _small_number(name, value)
    if isinstance(value, (list, tuple)) and layers and len(value) == layers:
        return _few(list(value), min(layers, 2))
    return value


def _layers_of(settings: dict[str, Any]) -> int | None:
    return next((settings[name] for name in LAYER_COUNTS if isinstance(settings.get(name), int)), None)


def _few(values: list[Any], least: int) -> list[Any]:
    """At least `least` of the values, each kind once."""
    kept = [value for place, value in enumerate(values) if value not in values[:place]][:4]
    return (
        (kept + values)[: max(least, len(kept))] if all(isinstance(value, str) for value in values) else values[:least]
    )


def _small_number(name: str, value: int) -> int:
    if TOKEN_ID.fullmatch(name):
        return value
    for size, endings in RULES:
        if any(name == ending or name.endswith(f"_{ending}") for ending in endings.split()):
            return min(value, size) if value > 0 else value
    return value


def _set_ids(config: PreTrainedConfig) -> None:
    """Ids within the vocabulary: known ones as the tokenizer has them, the others at its end."""
    free = VOCABULARY - 2
    for name in list(vars(config)):
        if not TOKEN_ID.fullmatch(name):
            continue
        value = getattr(config, name)
        if name in KNOWN_IDS and not isinstance(value, (list, dict)):
            setattr(config, name, KNOWN_IDS[name])
        elif name == "eos_token_id":
            setattr(config, name, END)
        elif isinstance(value, int) and value >= VOCABULARY:
            setattr(config, name, free)
            free -= 1
    if getattr(config, "pad_token_id", 0) is None:
        config.pad_token_id = PAD
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = END


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Words by white space, each between [CLS] and [SEP], in a vocabulary as large as that of the models."""
    known = [*SPECIAL, *WORDS]
    known += [f"word{number}" for number in range(VOCABULARY - len(known))]
    vocabulary = {word: number for number, word in enumerate(known)}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", CLS), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", eos_token="</s>",
    )  # fmt: skip


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:160]
