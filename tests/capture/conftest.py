"""Tiny models of every covered family, built from configuration: random weights, no download."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedModel, PreTrainedTokenizerFast

import attnscope

WORDS = [
    "the",
    "key",
    "to",
    "cabinets",
    "is",
    "on",
    "table",
    "red",
    "dogs",
    "see",
    ",",
    ".",
    "a",
    "boy",
    "that",
    "runs",
    "!",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "</s>"]
SIZE = len(SPECIAL) + len(WORDS)
PAD, CLS, SEP, MASK, END = 0, 2, 3, 4, 5
TEXTS = ["the key to the cabinets is on the table .", "the red dogs see", "a boy that runs , the dogs !", "key"]

BERT_LIKE = dict(
    vocab_size=SIZE,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=40,
    pad_token_id=PAD,
    initializer_range=0.2,
)
LLAMA_LIKE = dict(
    vocab_size=SIZE,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=48,
    max_position_embeddings=40,
    pad_token_id=PAD,
    bos_token_id=CLS,
    eos_token_id=END,
    initializer_range=0.2,
)
ENDS = dict(pad_token_id=PAD, bos_token_id=CLS, eos_token_id=END)
BART_LIKE = dict(
    vocab_size=SIZE,
    d_model=32,
    encoder_layers=2,
    decoder_layers=3,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=48,
    decoder_ffn_dim=48,
    max_position_embeddings=40,
    decoder_start_token_id=END,
    forced_eos_token_id=None,
    init_std=0.2,
    **ENDS,
)

# family: (configuration class, its settings, the architecture, kind of tokenizer, on the AttentionInterface)
FAMILIES: dict[str, tuple[str, dict[str, Any], str, str, bool]] = {
    "bert": ("BertConfig", BERT_LIKE, "BertForSequenceClassification", "pair", True),
    "roberta": (
        "RobertaConfig",
        BERT_LIKE | {"type_vocab_size": 1},
        "RobertaForSequenceClassification",
        "single",
        True,
    ),
    "distilbert": (
        "DistilBertConfig",
        dict(
            vocab_size=SIZE,
            dim=32,
            n_layers=3,
            n_heads=4,
            hidden_dim=48,
            max_position_embeddings=40,
            pad_token_id=PAD,
            initializer_range=0.2,
        ),
        "DistilBertForSequenceClassification",
        "single",
        True,
    ),
    "albert": ("AlbertConfig", BERT_LIKE | {"embedding_size": 16}, "AlbertForSequenceClassification", "pair", True),
    "electra": ("ElectraConfig", BERT_LIKE | {"embedding_size": 16}, "ElectraForSequenceClassification", "pair", True),
    "mpnet": ("MPNetConfig", BERT_LIKE, "MPNetForSequenceClassification", "single", False),
    "deberta_v2": (
        "DebertaV2Config",
        BERT_LIKE
        | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8, "type_vocab_size": 0},
        "DebertaV2ForSequenceClassification",
        "single",
        False,
    ),
    "gpt2": (
        "GPT2Config",
        dict(vocab_size=SIZE, n_embd=32, n_layer=3, n_head=4, n_positions=40, initializer_range=0.2, **ENDS),
        "GPT2LMHeadModel",
        "plain",
        True,
    ),
    "gpt_neo": (
        "GPTNeoConfig",
        dict(
            vocab_size=SIZE,
            hidden_size=32,
            num_layers=3,
            num_heads=4,
            max_position_embeddings=40,
            window_size=3,
            attention_types=[[["global", "local", "global"], 1]],
            initializer_range=0.12,  # it does not scale its products: so they are as large as those of the others
            **ENDS,
        ),
        "GPTNeoForCausalLM",
        "plain",
        False,
    ),
    "gptj": (
        "GPTJConfig",
        dict(
            vocab_size=SIZE, n_embd=32, n_layer=3, n_head=4, n_positions=40, rotary_dim=4, initializer_range=0.2, **ENDS
        ),
        "GPTJForCausalLM",
        "plain",
        False,
    ),
    "gpt_neox": ("GPTNeoXConfig", BERT_LIKE | ENDS, "GPTNeoXForCausalLM", "plain", True),
    "bloom": (
        "BloomConfig",
        dict(vocab_size=SIZE, hidden_size=32, n_layer=3, n_head=4, initializer_range=0.2, **ENDS),
        "BloomForCausalLM",
        "plain",
        False,
    ),
    "falcon": (
        "FalconConfig",
        dict(
            vocab_size=SIZE, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, initializer_range=0.2, **ENDS
        ),
        "FalconForCausalLM",
        "plain",
        False,
    ),
    "opt": (
        "OPTConfig",
        dict(
            vocab_size=SIZE,
            hidden_size=32,
            num_hidden_layers=3,
            num_attention_heads=4,
            ffn_dim=48,
            word_embed_proj_dim=32,
            max_position_embeddings=40,
            init_std=0.2,
            **ENDS,
        ),
        "OPTForCausalLM",
        "plain",
        True,
    ),
    "llama": ("LlamaConfig", LLAMA_LIKE, "LlamaForCausalLM", "plain", True),
    "mistral": ("MistralConfig", LLAMA_LIKE | {"sliding_window": 4}, "MistralForCausalLM", "plain", True),
    "qwen2": ("Qwen2Config", LLAMA_LIKE, "Qwen2ForCausalLM", "plain", True),
    "gemma2": (
        "Gemma2Config",
        LLAMA_LIKE | {"head_dim": 8, "sliding_window": 4, "attn_logit_softcapping": 2.0},
        "Gemma2ForCausalLM",
        "plain",
        True,
    ),
    "t5": (
        "T5Config",
        dict(
            vocab_size=SIZE,
            d_model=32,
            d_kv=8,
            d_ff=48,
            num_layers=3,
            num_heads=4,
            initializer_factor=1.0,
            decoder_start_token_id=PAD,
            pad_token_id=PAD,
            eos_token_id=END,
        ),
        "T5ForConditionalGeneration",
        "ended",
        True,
    ),
    "bart": ("BartConfig", BART_LIKE, "BartForConditionalGeneration", "ended", True),
    "marian": ("MarianConfig", BART_LIKE | {"decoder_start_token_id": PAD}, "MarianMTModel", "ended", True),
}
ENCODERS = [name for name, family in FAMILIES.items() if family[3] in ("pair", "single")]
DECODERS = [name for name, family in FAMILIES.items() if family[3] == "plain"]
ENCODER_DECODERS = [name for name, family in FAMILIES.items() if family[3] == "ended"]
ON_INTERFACE = [name for name, family in FAMILIES.items() if family[4]]


@cache
def tokenizer(kind: str) -> PreTrainedTokenizerFast:
    """One word, one token; `single` and `pair` stand between [CLS] and [SEP], `ended` before </s>, `plain` alone."""
    words = Tokenizer(
        models.WordLevel({word: index for index, word in enumerate([*SPECIAL, *WORDS])}, unk_token="[UNK]")
    )
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    if kind in ("pair", "single"):
        words.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
        )
    elif kind == "ended":
        words.post_processor = processors.TemplateProcessing(
            single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", END)]
        )
    names = ["input_ids", "attention_mask"] + (["token_type_ids"] if kind == "pair" else [])
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        eos_token="</s>",
        model_input_names=names,
    )


def build(
    family: str, implementation: str | None = None, architecture: str | None = None, **changes: Any
) -> PreTrainedModel:
    """A tiny model of a family; the same weights every time, whatever its attention implementation."""
    config_name, settings, own_architecture, _, _ = FAMILIES[family]
    config = getattr(transformers, config_name)(**settings | changes)
    torch.manual_seed(0)
    kind = getattr(transformers, architecture or own_architecture)
    options = {} if implementation is None else {"attn_implementation": implementation}
    model: PreTrainedModel = kind._from_config(config, **options)
    if model.can_generate():
        model.generation_config.max_length = None
    return model.eval()


def load(
    family: str, implementation: str | None = None, architecture: str | None = None, **changes: Any
) -> attnscope.InstrumentedModel:
    """A tiny model of a family, as attnscope loads it."""
    return attnscope.load(
        build(family, implementation, architecture, **changes), tokenizer=tokenizer(FAMILIES[family][3])
    )


@pytest.fixture(autouse=True)
def short_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random models do not know when to stop."""
    monkeypatch.setattr("attnscope.capture.hub_model.GREEDY_TOKENS", 9)


def gpt_oss() -> PreTrainedModel:
    """A family with a learned sink for each head, full and sliding layers."""
    config = transformers.GptOssConfig(
        vocab_size=SIZE, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        intermediate_size=16, num_local_experts=2, num_experts_per_tok=1, max_position_embeddings=64, pad_token_id=PAD,
        layer_types=["full_attention", "sliding_attention"], sliding_window=4, initializer_range=0.2,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.GptOssForCausalLM(config).eval()
    for layer in model.model.layers:
        torch.nn.init.normal_(layer.self_attn.sinks)
    return model


@pytest.fixture(scope="session")
def tiny() -> SimpleNamespace:
    """The functions and texts above, for tests in files of their own."""
    return SimpleNamespace(
        build=build, load=load, tokenizer=tokenizer, texts=TEXTS, mask=MASK, end=END, gpt_oss=gpt_oss
    )


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    """Every covered family in turn."""
    return str(request.param)


@pytest.fixture(params=DECODERS)
def decoder(request: pytest.FixtureRequest) -> str:
    """Every causal family in turn."""
    return str(request.param)


@pytest.fixture(params=ENCODER_DECODERS)
def encoder_decoder(request: pytest.FixtureRequest) -> str:
    """Every encoder-decoder family in turn."""
    return str(request.param)


@pytest.fixture(params=ON_INTERFACE)
def on_interface(request: pytest.FixtureRequest) -> str:
    """Every family on transformers' AttentionInterface in turn."""
    return str(request.param)


@pytest.fixture(params=[name for name in FAMILIES if name not in ON_INTERFACE])
def off_interface(request: pytest.FixtureRequest) -> str:
    """Every family that computes its attention in its own way in turn."""
    return str(request.param)
