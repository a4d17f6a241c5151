"""Tiny models of every architecture that transformers registers: its own configuration, shrunk by rules."""

import inspect
import re
import sys
from typing import Any

import torch
import transformers
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

# what a setting is called, and how small it gets: the first pattern that matches the whole name
RULES: list[tuple[str, int]] = [
    (r".*(attn|attention|expert)_layer_period", 2),
    (r".*(attn|attention|expert)_layer_offset", 1),
    (r".*(mamba_d_head|mamba_head_dim)", 16),
    (r".*mamba_d_ssm", 64),
    (r"mamba_expand|expand", 2),
    (r".*(linear_key_head_dim|linear_value_head_dim)", 8),
    (r"num_feat_extract_layers|num_conv_pos_embedding_groups|num_channels|num_codebooks", 1_000_000),
    (r"(index_|indexer_)?(topk|top_k)|index_topk|num_experts_per_tok(en)?|moe_top_?k|num_selected_experts", 2),
    (r"n_group|topk_group|num_expert_groups?|n_groups|mamba_n_groups|ssm_n_groups", 1),
    (r".*num_(local_|routed_|shared_)?experts|n_(routed|shared)_experts|moe_num_(shared_)?experts|num_moe_experts", 4),
    (r".*(num_key_value_heads|num_kv_heads|n_head_kv|num_swa_key_value_heads|multi_query_group_num)", 2),
    (
        r"(.*_)?(num_attention_heads|num_heads|n_heads?|attention_heads|num_q_heads|nhead|encoder_attention_heads|"
        r"decoder_attention_heads|num_query_heads|vision_heads|index_n_heads|heads)",
        4,
    ),
    (
        r"(.*_)?(num_hidden_layers|num_layers|n_layers?|encoder_layers|decoder_layers|num_encoder_layers|"
        r"num_decoder_layers|depth|num_blocks|num_dense_layers|num_vision_layers|layers|num_block_layers)",
        2,
    ),
    (r".*(first_k_dense_replace|first_dense_layers)", 1),
    (
        r".*(qk_rope_head_dim|rope_head_dim|qk_nope_head_dim|v_head_dim|qk_head_dim|head_dim|d_kv|kv_channels|d_head|"
        r"dim_head|head_size|attention_head_size|index_head_dim)",
        8,
    ),
    (r".*(q_lora_rank|kv_lora_rank|o_lora_rank|lora_rank|lora_r)", 8),
    (
        r"(.*_)?(vocab_size|n_vocab|n_token|vocabulary_size|num_codes|codebook_size|"
        r"vocab_size_per_layer_input)",
        VOCABULARY,
    ),
    (
        r"(.*_)?(max_position_embeddings|n_positions|max_seq_len|max_sequence_length|max_source_positions|"
        r"max_target_positions|n_ctx|seq_length|max_seq_length|block_size_max|max_length|model_max_length)",
        128,
    ),
    (r"(.*_)?(image_size|img_size|input_size|target_size)", 32),
    (r"(.*_)?(patch_size|patch_stride)", 8),
    (
        r"(.*_)?(intermediate_size|ffn_dim|d_ff|n_inner|d_inner|ff_dim|mlp_dim|hidden_dim|filter_size|ffn_hidden_size|"
        r"feed_forward_size|shared_intermediate_size|encoder_ffn_dim|decoder_ffn_dim|feedforward_dim|dim_feedforward|"
        r"feed_forward_hidden_size|expert_ffn_hidden_size|intermediate_dim|inner_dim|ffn_intermediate_size)",
        48,
    ),
    (
        r"(.*_)?(hidden_size|d_model|n_embd|dim|embed_dim|embedding_size|width|projection_dim|hidden_sz|embedding_dim|"
        r"model_dim|emb_dim|output_dim|out_dim|out_hidden_size|rnn_hidden_size|text_embed_dim|decoder_hidden_size|"
        r"encoder_hidden_size|embeddings_size|n_embed|channels|hidden_features|mm_hidden_size|word_embed_proj_dim|"
        r"conv_dim|conv_pos_dim|cross_attention_hidden_size|reduced_hidden_size)",
        32,
    ),
    (r"sliding_window|local_attention|attention_window|window_size|attention_chunk_size|chunk_size", 8),
    (r".*(mamba_d_state|ssm_state_size|state_size|mamba_d_conv|conv_kernel|linear_conv_kernel_dim)", 4),
    (r".*(linear_num_key_heads|linear_num_value_heads|mamba_num_heads|mamba_n_heads)", 4),
    (r"num_mel_bins|num_channels_audio", 16),
    (r".*type_vocab_size", 2),
    (r".*hidden_size_per_layer_input", 16),
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
    kind = getattr(transformers, name, None)
    if kind is None or not hasattr(kind, "config_class"):
        raise NotBuilt("transformers cannot import it here (a library it needs is missing)")
    try:
        config = tiny_config(kind.config_class if kind.config_class is not None else CONFIG_MAPPING[model_type])
        options = {} if implementation is None else {"attn_implementation": implementation}
        with torch.device("meta"):
            size = sum(parameter.numel() for parameter in kind._from_config(config).parameters())
        if size > MOST_PARAMETERS:
            raise NotBuilt(f"the rules leave it {size / 1e6:.0f} million parameters")
        torch.manual_seed(0)
        _share_out_rotations(kind, config)
        model: PreTrainedModel = kind._from_config(config, **options)
    except NotBuilt:
        raise
    except Exception as error:
        raise NotBuilt(f"{type(error).__name__}: {_one_line(error)}") from error
    return model.eval()


def _share_out_rotations(kind: type[PreTrainedModel], config: PreTrainedConfig) -> None:
    """Half a head of eight, shared out among time, height and width, where a family rotates by all three."""
    if "mrope_section" not in inspect.getsource(sys.modules[kind.__module__]):
        return
    for part in [config, *(getattr(config, name, None) for name in config.sub_configs)]:
        rope = getattr(part, "rope_parameters", None)
        if isinstance(rope, dict):
            for parameters in [rope, *(value for value in rope.values() if isinstance(value, dict))]:
                if "rope_type" in parameters:
                    parameters["mrope_section"] = [2, 1, 1]


def tiny_config(kind: type[PreTrainedConfig]) -> PreTrainedConfig:
    """The configuration of a family, small."""
    plain = kind()
    settings = _shrunk(plain.to_dict())
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
    before = _layers_of(settings)
    after = None if before is None else min(before, 2)
    small: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict) and "model_type" in value:
            small[name] = {"model_type": value["model_type"], **_without_derived(_shrunk(value))}
        elif name in LEFT_OUT:
            continue
        elif value is None and name in FILLED:
            small[name] = FILLED[name]
        elif name == "embed_dim" and isinstance(settings.get("num_heads"), (list, tuple)):
            small[name] = 48  # Swin and its kin have 3, 6, 12 heads
        elif isinstance(value, bool) or value is None:
            small[name] = value
        elif name == "num_key_value_heads" and value == settings.get("num_attention_heads"):
            small[name] = 4  # these families do not group their queries
        elif isinstance(value, int):
            small[name] = _small_number(name, value)
        elif isinstance(value, (list, tuple)) and before and len(value) == before:
            small[name] = _few(list(value), after or 2)
        else:
            small[name] = value
    for name in small:
        if isinstance(small[name], list) and name == "layer_types":
            count = len(small[name])
            for layers in ("num_hidden_layers", "n_layer", "num_layers"):
                if layers in small:
                    small[layers] = count
    return small


def _layers_of(settings: dict[str, Any]) -> int | None:
    names = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "depth")
    return next((settings[name] for name in names if isinstance(settings.get(name), int)), None)


def _few(values: list[Any], least: int) -> list[Any]:
    """At least `least` of the values, each kind once."""
    kept = [value for place, value in enumerate(values) if value not in values[:place]][:4]
    return (
        (kept + values)[: max(least, len(kept))] if all(isinstance(value, str) for value in values) else values[:least]
    )


def _small_number(name: str, value: int) -> int:
    if TOKEN_ID.fullmatch(name):
        return value
    for pattern, size in RULES:
        if re.fullmatch(pattern, name):
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
