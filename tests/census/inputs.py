"""What a processor would make for a tiny model: ids of a text, a picture, a film, a sound."""

from collections.abc import Callable, Iterator
from inspect import signature
from itertools import product

import torch
from building import END, VOCABULARY, NotBuilt
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from attnscope.capture.families import task_of

LENGTH, SIDE, FRAMES = 8, 32, 100
PATCHES = 4
"""How many patches a picture has on each side, where a processor cuts it."""
NEEDED: dict[str, tuple[str, ...]] = {
    "audioflamingo3_encoder": ("input_features_mask",),
    "blip-2": ("input_ids",),
    "bros": ("bbox",),
    "groupvit": ("pixel_values",),
    "idefics": ("pixel_values", "image_attention_mask"),
    "instructblip": ("input_ids",),
    "instructblipvideo": ("input_ids",),
    "kosmos-2": ("input_ids", "image_embeds_position_mask"),
    "lxmert": ("visual_feats", "visual_pos"),
    "minicpm_ocr_vision": ("target_sizes",),
    "minicpmv4_7_vision": ("target_sizes",),
    "owlv2": ("pixel_values",),
    "owlvit": ("pixel_values",),
    "sam3": ("input_ids",),
    "sam3_lite_text": ("input_ids",),
    "siglip2": ("pixel_attention_mask", "spatial_shapes"),
    "siglip2_vision_model": ("pixel_attention_mask", "spatial_shapes"),
    "udop": ("bbox",),
    "vilt": ("pixel_values",),
    "voxtral_realtime": ("input_features",),
}
"""What a family reads beside its main input, although its signature does not demand it."""


def readings(model: PreTrainedModel, main: str) -> Iterator[dict[str, Tensor]]:
    """The inputs of a model, in each layout that processors make of them."""
    demanded = [
        name
        for name, parameter in signature(model.forward).parameters.items()
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    config = model.config
    # vision towers call the patches they read hidden_states
    names = [*([] if "hidden_states" in demanded else [main]), *demanded, *NEEDED.get(config.model_type, ())]
    names = list(dict.fromkeys(names))
    makers = {"pixel_values": "hidden_states"} if "grid_thw" in demanded else {}
    for layouts in product(*(_layouts(config, makers.get(name, name)) for name in names)):
        yield dict(zip(names, layouts, strict=True))


def _layouts(config: PreTrainedConfig, name: str) -> list[Tensor]:
    if name not in MAKERS:
        raise NotBuilt(f"it reads {name}, which no rule here makes")
    return MAKERS[name](config)


def _random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def _ids(config: PreTrainedConfig) -> list[Tensor]:
    """A text that ends, as classifiers with a decoder read at its end; and one for each codebook of a sound."""
    ids = torch.randint(6, VOCABULARY // 2, (1, LENGTH), generator=torch.Generator().manual_seed(1))
    ids[0, -1] = END
    if pictures := getattr(config, "num_query_tokens", None):
        ids[0, :pictures] = getattr(config, "image_token_id", None) or getattr(config, "video_token_id", 120)
    books = getattr(config, "num_codebooks", None) or 1
    many = ids.repeat(books + 1, 1)
    return [ids] if books == 1 else [ids, many[1:], many[None, 1:], many[1:].T[None], many.T[None]]


def _size(config: PreTrainedConfig) -> tuple[int, int, int, int]:
    """Channels, height, width and side of a patch of the pictures that a model reads."""
    vision = getattr(config, "vision_config", config)
    side = getattr(vision, "image_size", SIDE) or SIDE
    height, width = side if isinstance(side, (list, tuple)) else (side, side)
    channels = getattr(vision, "num_channels", None) or getattr(vision, "in_channels", None) or 3
    patch = getattr(vision, "patch_size", 8) or 8
    return channels, height, width, patch[0] if isinstance(patch, (list, tuple)) else patch


def _pictures(config: PreTrainedConfig) -> list[Tensor]:
    """A picture, a film, or the patches of a picture: for a batch, or without one."""
    channels, height, width, patch = _size(config)
    picture = torch.rand(1, channels, height, width, generator=torch.Generator().manual_seed(1))
    return [picture, picture[None], *_films(config), _random(1, PATCHES**2, channels * patch**2), *_packed(config)]


def _films(config: PreTrainedConfig) -> list[Tensor]:
    channels, height, width, _ = _size(config)
    vision = getattr(config, "vision_config", config)
    frames = getattr(vision, "num_frames", None) or getattr(vision, "frames_per_clip", None) or 2
    return [_random(1, frames, channels, height, width)]


def _packed(config: PreTrainedConfig) -> list[Tensor]:
    """Patches in one row, behind each other, as Qwen2-VL reads pictures of any size."""
    channels, _, _, patch = _size(config)
    flat, film = (_random(PATCHES**2, channels * times * patch**2) for times in (1, 2))
    return [film, flat, flat.view(PATCHES**2, channels, patch, patch)]


def _sounds(config: PreTrainedConfig) -> list[Tensor]:
    """A wave, one with a channel, or a spectrum (time x frequency)."""
    wave = _random(1, 4032)
    return [wave, wave[:, None], _random(1, getattr(config, "max_length", FRAMES), _bins(config))]


def _bins(config: PreTrainedConfig) -> int:
    names = (
        "num_mel_bins",
        "feature_projection_input_dim",
        "input_feat_per_channel",
        "feature_size",
        "n_mels",
        "input_feat_size",
    )
    parts = [config, *(getattr(config, name) for name in ("encoder_config", "audio_config") if hasattr(config, name))]
    return next((getattr(part, name) for part in parts for name in names if getattr(part, name, None)), 16)


def _spectra(config: PreTrainedConfig) -> list[Tensor]:
    """A spectrum, with its frequencies before or behind the time; or with four frames in each row; or 128 wide."""
    frames, bins = 2 * getattr(config, "max_source_positions", FRAMES // 2), _bins(config)
    upright = _random(1, bins, frames)
    return [upright, upright.mT.contiguous(), _random(1, frames // 4, 4 * bins), _random(1, frames, 128)]


def _picture_places(config: PreTrainedConfig) -> Tensor:
    """Where in a text the positions of a picture stand: at its beginning."""
    places = torch.zeros(1, LENGTH, dtype=torch.long)
    places[0, : config.latent_query_num] = 1
    return places


def _flattened(config: PreTrainedConfig) -> Tensor:
    """Patches, each behind the numbers of its row and column."""
    channels, _, _, patch = _size(config)
    places = torch.cartesian_prod(torch.arange(1, PATCHES + 1), torch.arange(1, PATCHES + 1))
    return torch.cat([places, _random(PATCHES**2, channels * patch**2)], 1)[None]


def with_decoder_ids(model: PreTrainedModel, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Classifiers give their decoder what the encoder reads; the others get a few ids for it."""
    if not model.config.is_encoder_decoder or (task_of(model) == "classifier" and "input_ids" in given):
        return dict(given)
    ids = torch.tensor([[END, 6, 7]])
    channels = getattr(getattr(model.config, "decoder_config", None), "num_channels", None)
    return {**given, "decoder_input_ids": ids[..., None].expand(-1, -1, channels) if channels else ids}


MAKERS: dict[str, Callable[[PreTrainedConfig], list[Tensor]]] = {
    "input_ids": _ids,
    "qformer_input_ids": _ids,
    "pixel_values": _pictures,
    "pixel_values_videos": _films,
    "hidden_states": _packed,
    "grid_thw": lambda _: [torch.tensor([[1, PATCHES, PATCHES]])],
    "merge_sizes": lambda _: [torch.tensor([1])],
    "spatial_shapes": lambda _: [torch.tensor([[PATCHES, PATCHES]])],
    "pixel_attention_mask": lambda _: [torch.ones(1, PATCHES**2, dtype=torch.long)],
    "input_values": _sounds,
    "input_features": _spectra,
    "input_features_mask": lambda config: [torch.ones(1, _spectra(config)[0].shape[-1], dtype=torch.long)],
    "bbox": lambda _: [torch.linspace(0, 1, LENGTH * 4).view(1, LENGTH, 4)],
    "image_attention_mask": lambda _: [torch.ones(1, LENGTH, 1, dtype=torch.long)],
    "image_embeds_position_mask": lambda config: [_picture_places(config)],
    "target_sizes": lambda _: [torch.tensor([[PATCHES, PATCHES]])],
    "visual_feats": lambda config: [_random(1, PATCHES, config.visual_feat_dim)],
    "visual_pos": lambda config: [torch.rand(1, PATCHES, config.visual_pos_dim)],
    "flattened_patches": lambda config: [_flattened(config)],
    "inputs_embeds": lambda config: [_random(1, LENGTH, config.hidden_size)],
    "inputs": lambda config: [*_ids(config), _random(1, LENGTH, 32), *_pictures(config), _sounds(config)[0]],
    "pixel_position_ids": lambda _: [torch.cartesian_prod(torch.arange(PATCHES), torch.arange(PATCHES))[None]],
    "audio_mel": lambda config: [_spectra(config)[1]],
    "audio_mel_mask": lambda _: [torch.zeros(1, FRAMES, dtype=torch.bool)],
}
"""How each input is made: the layouts in the order in which they are tried."""
