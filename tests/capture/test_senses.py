"""Pictures and sound: what a processor makes is recorded, with patches and frames named by their place."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers import PreTrainedModel

import attnscope
from attnscope import BadInput

SMALL = dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=48)
PICTURE = dict(image_size=24, patch_size=8, num_channels=3)


def made(kind: str, config: str, **settings: Any) -> PreTrainedModel:
    torch.manual_seed(0)
    made_up: PreTrainedModel = getattr(transformers, kind)(getattr(transformers, config)(**settings)).eval()
    return made_up


def picture(height: int = 24, width: int = 24) -> torch.Tensor:
    return torch.rand(1, 3, height, width, generator=torch.Generator().manual_seed(1))


def returned(model: PreTrainedModel, name: str = "attentions", **inputs: torch.Tensor) -> torch.Tensor:
    """The attentions of the model itself, loaded eager."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        output = model(**inputs, output_attentions=True)
    return torch.cat(getattr(output, name))


@pytest.mark.parametrize(
    ("kind", "config", "own"),
    [
        ("ViTForImageClassification", "ViTConfig", ["[CLS]"]),
        ("DeiTForImageClassification", "DeiTConfig", ["[CLS]", "[DIST]"]),
        ("Dinov2ForImageClassification", "Dinov2Config", ["[CLS]"]),
        (
            "Dinov2WithRegistersModel",
            "Dinov2WithRegistersConfig",
            ["[CLS]", "[register 0]", "[register 1]", "[register 2]", "[register 3]"],
        ),
        ("SiglipVisionModel", "SiglipVisionConfig", []),
        ("CLIPVisionModel", "CLIPVisionConfig", ["[CLS]"]),
    ],
)
def test_patches_are_named_by_row_and_column(kind: str, config: str, own: list[str]) -> None:
    inner = made(kind, config, **SMALL, **PICTURE)
    record = attnscope.load(inner).record(inputs={"pixel_values": picture()})
    assert record.grid == (3, 3)
    assert record.tokens == (*own, *(f"patch {row},{column}" for row in range(3) for column in range(3)))
    assert record.special == tuple(token.startswith("[") for token in record.tokens)
    assert record.stack == "encoder"
    assert not record.causal
    expected = returned(inner, pixel_values=picture())
    torch.testing.assert_close(record.weights, expected, atol=1e-6, rtol=0)
    assert record.readout.argmax() == 0 or record.readout.max() == pytest.approx(1 / 9)


def test_methods_and_predictions_work_on_pictures() -> None:
    inner = made("ViTForImageClassification", "ViTConfig", **SMALL, **PICTURE, id2label={0: "cat", 1: "dog"})
    model = attnscope.load(inner)
    record = model.record(inputs={"pixel_values": picture().numpy()}, gradients=True, target="dog")
    assert [label for label, _ in record.prediction] in (["cat", "dog"], ["dog", "cat"])
    for method in ("raw", "rollout", "flow", "layerwise_tracing", "gradient_rollout"):
        scores = attnscope.attribute(record, method)
        assert len(scores.scores) == 10
        assert scores.scores.isfinite().all()
        assert scores.grid == (3, 3)
    assert attnscope.rollout(record).scores.sum() == pytest.approx(1, abs=1e-5)
    with pytest.raises(BadInput, match="runs the model again"):
        attnscope.blank_out(record, model)


def test_a_picture_that_is_no_square(tmp_path: Any) -> None:
    inner = made("ViTModel", "ViTConfig", **SMALL, image_size=(16, 32), patch_size=8)
    record = attnscope.load(inner).record(inputs={"pixel_values": picture(16, 32)})
    assert record.grid == (2, 4)
    assert attnscope.AttentionRecord.load(record.save(tmp_path / "r.safetensors")).grid == (2, 4)


def test_two_towers_are_recorded_one_by_one(tiny: SimpleNamespace) -> None:
    text = dict(**SMALL, vocab_size=23, max_position_embeddings=20, eos_token_id=5, pad_token_id=0, bos_token_id=2)
    inner = made("CLIPModel", "CLIPConfig", text_config=text, vision_config={**SMALL, **PICTURE}, projection_dim=16)
    model = attnscope.load(inner, tokenizer=tiny.tokenizer("plain"))
    ids = torch.tensor([[2, 7, 8, 9, 5]])
    seen = model.record(inputs={"pixel_values": picture()})
    read = model.record(inputs={"input_ids": ids})
    assert seen.grid == (3, 3)
    assert len(read.tokens) == 5
    with torch.no_grad():
        inner.set_attn_implementation("eager")
        output = inner(input_ids=ids, pixel_values=picture(), output_attentions=True)
    torch.testing.assert_close(seen.weights, torch.cat(output.vision_model_output.attentions), atol=1e-6, rtol=0)
    torch.testing.assert_close(read.weights, torch.cat(output.text_model_output.attentions), atol=1e-6, rtol=0)
    with pytest.raises(BadInput, match="two towers"):
        model.record(inputs={"pixel_values": picture(), "input_ids": ids})


def test_frames_of_a_sound_are_numbered() -> None:
    inner = made(
        "Wav2Vec2ForSequenceClassification", "Wav2Vec2Config", **SMALL, conv_dim=(16, 16), conv_kernel=(8, 8),
        conv_stride=(4, 4), num_feat_extract_layers=2, num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2,
        classifier_proj_size=16,
    )  # fmt: skip
    sound = torch.randn(1, 400, generator=torch.Generator().manual_seed(1))
    record = attnscope.load(inner).record(inputs={"input_values": sound})
    assert record.tokens[:2] == ("frame 0", "frame 1")
    assert record.grid is None
    torch.testing.assert_close(record.weights, returned(inner, input_values=sound), atol=1e-6, rtol=0)
    assert len(record.prediction) == 2


def test_speech_to_text_records_all_three_stacks() -> None:
    inner = made(
        "WhisperForConditionalGeneration", "WhisperConfig", vocab_size=40, d_model=32, encoder_layers=2,
        decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
        num_mel_bins=8, max_source_positions=20, max_target_positions=30, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=3, suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    sound = torch.randn(1, 8, 40, generator=torch.Generator().manual_seed(1))
    ids = torch.tensor([[3, 7, 8]])
    model = attnscope.load(inner)
    records = {
        stack: model.record(inputs={"input_features": sound, "decoder_input_ids": ids}, stack=stack)
        for stack in model.stacks
    }
    assert records["cross"].query_tokens == ("3", "7", "8")
    assert records["cross"].key_tokens[-1] == "frame 19"
    assert records["decoder"].causal
    for stack, record in records.items():
        expected = returned(inner, f"{stack}_attentions", input_features=sound, decoder_input_ids=ids)
        torch.testing.assert_close(record.weights, expected, atol=1e-6, rtol=0)
    own = model.record(inputs={"input_features": sound})
    assert own.query_tokens[0] == "3"


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ({}, "what the model's processor makes"),
        ({"pixel_values": "a picture"}, "is no tensor"),
        ({"pixel_values": torch.rand(2, 3, 24, 24)}, "one picture, sound or text at a time"),
        ({"pixel_values": np.zeros(3)}, "one picture, sound or text at a time"),
    ],
)
def test_inputs_that_cannot_be_recorded(inputs: Any, sentence: str) -> None:
    model = attnscope.load(made("ViTModel", "ViTConfig", **SMALL, **PICTURE))
    with pytest.raises(BadInput, match=sentence):
        model.record(inputs=inputs)


def test_a_model_without_a_tokenizer_reads_no_text(tiny: SimpleNamespace) -> None:
    model = attnscope.load(made("ViTModel", "ViTConfig", **SMALL, **PICTURE))
    with pytest.raises(BadInput, match="was loaded without a tokenizer"):
        model.record("the dogs")
    with pytest.raises(BadInput, match="one of them"):
        model.record("the dogs", inputs={"pixel_values": picture()})
    with pytest.raises(BadInput, match="one of them"):
        model.record()
    with pytest.raises(BadInput, match="are for texts"):
        model.record(inputs={"pixel_values": picture()}, truncate=True)
    with pytest.raises(BadInput, match="shows no attention weights"):
        small = made("ResNetModel", "ResNetConfig", embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1])
        attnscope.load(small).record(inputs={"pixel_values": picture()})


def test_text_and_patches_that_attend_together_are_numbered(tiny: SimpleNamespace) -> None:
    inner = made("ViltModel", "ViltConfig", **SMALL, **PICTURE, vocab_size=200)
    inputs = {"input_ids": torch.tensor([[5, 6, 7]]), "pixel_values": picture()}
    record = attnscope.load(inner, tokenizer=tiny.tokenizer("plain")).record(inputs=inputs)
    assert record.tokens == tuple(f"position {place}" for place in range(3 + 1 + 9))
    torch.testing.assert_close(record.weights, returned(inner, **inputs), atol=1e-6, rtol=0)


ROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}
PACKED = dict(depth=2, hidden_size=32, num_heads=4, patch_size=8, intermediate_size=48, out_hidden_size=32)


def packed(grid: list[list[int]]) -> dict[str, torch.Tensor]:
    count = sum(frames * rows * columns for frames, rows, columns in grid)
    patches = torch.rand(count, 3 * 2 * 8 * 8, generator=torch.Generator().manual_seed(1))
    return {"hidden_states": patches, "grid_thw": torch.tensor(grid)}


def test_packed_patches_are_one_picture_by_their_grid() -> None:
    inner = made("Qwen3VLVisionModel", "Qwen3VLVisionConfig", **PACKED, deepstack_visual_indexes=[0])
    record = attnscope.load(inner).record(inputs=packed([[1, 4, 4]]))
    assert record.weights.shape == (2, 4, 16, 16)
    assert record.tokens[-1] == "position 15"


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [([[1, 4, 4], [1, 4, 4]], "one picture"), ([[2, 4, 4]], "within 16 patches at a time")],
)
def test_packed_patches_of_several_pictures_or_frames_are_refused(grid: list[list[int]], sentence: str) -> None:
    inner = made("Qwen3VLVisionModel", "Qwen3VLVisionConfig", **PACKED, deepstack_visual_indexes=[0])
    with pytest.raises(BadInput, match=sentence):
        attnscope.load(inner).record(inputs=packed(grid))


def test_a_language_model_reads_a_text_with_a_packed_picture(tiny: SimpleNamespace) -> None:
    text = {**SMALL, "num_key_value_heads": 2, "vocab_size": 200, "rope_parameters": ROPE}
    inner = made(
        "Qwen2_5_VLForConditionalGeneration",
        "Qwen2_5_VLConfig",
        text_config=text,
        vision_config={**PACKED, "window_size": 16, "fullatt_block_indexes": [1]},
        image_token_id=50,
    )
    inputs = {
        "input_ids": torch.tensor([[5, 6, 50, 50, 50, 50, 7]]),
        "pixel_values": packed([[1, 4, 4]])["hidden_states"],
    }
    inputs |= {"image_grid_thw": torch.tensor([[1, 4, 4]]), "mm_token_type_ids": torch.tensor([[0, 0, 1, 1, 1, 1, 0]])}
    record = attnscope.load(inner, tokenizer=tiny.tokenizer("plain")).record(inputs=inputs)
    assert len(record.tokens) == 7
    torch.testing.assert_close(record.weights, returned(inner, **inputs), atol=1e-6, rtol=0)


def test_layers_of_different_sizes_are_refused(tiny: SimpleNamespace) -> None:
    inner = made(
        "OwlViTModel",
        "OwlViTConfig",
        text_config={**SMALL, "vocab_size": 200},
        vision_config={**SMALL, **PICTURE},
    )
    inputs = {"input_ids": torch.tensor([[5, 6, 7]]), "pixel_values": picture()}
    with pytest.raises(BadInput, match=r"different numbers of positions \(3, 10\)"):
        attnscope.load(inner, tokenizer=tiny.tokenizer("plain")).record(inputs=inputs)


def test_codes_of_a_sound_are_numbered(tiny: SimpleNamespace) -> None:
    side = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, head_dim=8, intermediate_size=48)
    decoder = {**side, "num_key_value_heads": 2, "cross_num_attention_heads": 4, "cross_head_dim": 8}
    decoder |= {"cross_num_key_value_heads": 4, "cross_hidden_size": 32}
    settings = {"encoder_config": {**side, "num_key_value_heads": 4}, "decoder_config": decoder}
    inner = made("DiaModel", "DiaConfig", **settings)
    model = attnscope.load(inner, tokenizer=tiny.tokenizer("plain"))
    codes = torch.ones(1, 5, 9, dtype=torch.long)
    record = model.record(inputs={"input_ids": torch.tensor([[5, 6, 7]]), "decoder_input_ids": codes}, stack="decoder")
    assert record.tokens == tuple(f"position {place}" for place in range(5))
    with pytest.raises(BadInput, match="several codes of a sound"):
        model.record(tiny.texts[0])


def test_codes_in_rows_are_one_sound(tiny: SimpleNamespace) -> None:
    inner = made("MusicgenForCausalLM", "MusicgenDecoderConfig", **SMALL, num_codebooks=4, vocab_size=60, ffn_dim=48)
    model = attnscope.load(inner, tokenizer=tiny.tokenizer("plain"))
    codes = torch.arange(24).reshape(4, 6)
    record = model.record(inputs={"input_ids": codes})
    inner.set_attn_implementation("eager")
    with torch.no_grad():
        expected = torch.cat(inner(codes, output_attentions=True).attentions)
    torch.testing.assert_close(record.weights, expected)
    assert (record.tokens, record.prediction) == (tuple(f"position {place}" for place in range(6)), ())
    with pytest.raises(BadInput, match="one picture, sound or text at a time"):
        model.record(inputs={"input_ids": codes[:3]})
