"""Pictures and sound: what a processor made in, a record out, with patches and frames named by their place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from ..errors import BadInput
from ..record import AttentionRecord, Target
from ..record.attention import Stack
from ..record.checks import looks_causal
from .answers import resolved_target, target_value
from .collect import Collector
from .encoding import encode_ids
from .families import CODES_IN_ROWS, has_two_towers
from .hub_model import GREEDY_TOKENS, HubModel, decoder_start
from .hugging_face import attention_gradients
from .request import Request
from .verifying import card_of, observed_run, self_check
from .watching import evaluation_mode

PICTURES = ("pixel_values",)
PACKED = ("pixel_values", "hidden_states")
"""What holds the patches of all pictures behind each other where there are `GRIDS` (Qwen2-VL and its kin)."""
GRIDS = ("image_grid_thw", "grid_thw", "image_grid_hws", "grid_hws")
"""How many patches each picture has in time, height and width: one row for each picture."""
MOST_OWN_TOKENS = 16
"""How many tokens a model may put before the patches: a class token, a distillation token, registers."""


@dataclass(frozen=True)
class Named:
    """Positions with names: patches of a picture, frames of a sound, tokens of a text."""

    tokens: tuple[str, ...]
    word_ids: tuple[int | None, ...]
    special: tuple[bool, ...]
    grid: tuple[int, int] | None = None


def record_inputs(reader: HubModel, inputs: Mapping[str, Any], request: Request) -> AttentionRecord:
    """The record of one picture, sound or whatever else a processor made ready for the model."""
    if request.all_stacks:
        raise BadInput('stack="all" is for texts: record one stack of inputs=.')
    batch = _checked(reader, inputs)
    model = part_that_reads(reader.model, batch)
    if reader.has_both_sides and model is reader.model:
        batch = _with_decoder_inputs(reader, batch, request.stack)
    collector = Collector(model, request.stack, request.heads == "mean", request.queries_and_keys, request.values)
    check = self_check(model, batch, request.verify)
    with torch.inference_mode(mode=False), torch.set_grad_enabled(request.gradients):
        output = observed_run(model, batch, collector, check)
        _check_shapes(model, collector)
        queries, keys = _sides(reader, model, batch, request.stack, collector.shape())
        readout = _readout(reader, queries, request.stack)
        logits = _logits(reader, output)
        target, gradients = _gradients(reader, logits, collector, request)
    fields = collector.item(0, len(queries.tokens), len(keys.tokens))
    if fields.pop("leading"):
        raise BadInput(f"{type(model).__name__} has learned sinks, which are recorded for texts only.")
    if gradients:
        fields["attention_gradients"] = torch.stack([gradient[0].float().cpu() for gradient in gradients])
    return AttentionRecord(
        **fields,
        query_tokens=queries.tokens,
        key_tokens=keys.tokens,
        query_word_ids=queries.word_ids,
        key_word_ids=keys.word_ids,
        query_special=queries.special,
        key_special=keys.special,
        grid=keys.grid,
        stack=request.stack,
        causal=request.stack == "decoder" and (len(queries.tokens) == 1 or looks_causal(fields["weights"])),
        readout=readout,
        prediction=reader.prediction(logits),
        target=target,
        pooled="mean" if request.heads == "mean" else None,
        card=card_of(model),
    )


def part_that_reads(model: PreTrainedModel, batch: Mapping[str, Any]) -> PreTrainedModel:
    """The model, or the one of its two towers (CLIP, SigLIP) that reads these inputs alone."""
    if not has_two_towers(model):
        return model
    towers = [part for part in model.children() if isinstance(part, PreTrainedModel)]
    meant = [tower for tower in towers if tower.main_input_name in batch]
    if len(meant) != 1:
        raise BadInput(
            f"{type(model).__name__} has two towers that attend apart from each other: give pixel_values for the one,"
            " input_ids for the other."
        )
    return meant[0]


def _checked(reader: HubModel, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What a processor made, as tensors on the model's device; one picture, sound or text."""
    if not isinstance(inputs, Mapping) or not inputs:
        raise BadInput(
            "inputs= takes what the model's processor makes: a mapping such as {'pixel_values': tensor},"
            f" not {type(inputs).__name__}."
        )
    batch: dict[str, Any] = {}
    for name, value in inputs.items():
        if value is None or isinstance(value, bool):
            batch[name] = value
            continue
        try:
            tensor = value if isinstance(value, Tensor) else torch.as_tensor(value)
        except (TypeError, ValueError, RuntimeError):
            raise BadInput(
                f"inputs[{name!r}] is no tensor: ask the processor for tensors (return_tensors='pt')."
            ) from None
        batch[name] = tensor.to(reader.model.device)
        if tensor.is_floating_point():
            batch[name] = batch[name].to(reader.model.dtype)
    main = {name: value for name, value in batch.items() if isinstance(value, Tensor) and value.ndim > 1}
    if not main or any(
        len(value) != _rows(reader, name)
        for name, value in main.items()
        if value.ndim < 5 and not _is_packed(name, batch)
    ):
        raise BadInput("inputs= takes one picture, sound or text at a time, with a batch axis of one in front.")
    return batch


def _is_packed(name: str, batch: Mapping[str, Any]) -> bool:
    """Whether this input has a row for each patch of a picture, and no batch axis: its grid says where it ends."""
    return name in PACKED and any(isinstance(batch.get(grid), Tensor) for grid in GRIDS)


def _rows(reader: HubModel, name: str) -> int:
    """How many rows one sound, picture or text has: MusicGen has its codebooks behind each other in the batch axis."""
    config = reader.model.config
    codes = "decoder_input_ids" if config.is_encoder_decoder else "input_ids"
    books = getattr(getattr(config, "decoder", config), "num_codebooks", 1)
    return books if name == codes and config.model_type in CODES_IN_ROWS else 1


def _with_decoder_inputs(reader: HubModel, batch: dict[str, Any], stack: Stack) -> dict[str, Any]:
    """The inputs with what the decoder reads: what was given, its start alone, or what the model itself says."""
    if "decoder_input_ids" in batch or "decoder_inputs_embeds" in batch:
        return batch
    start = torch.tensor([[decoder_start(reader)]], device=reader.model.device)
    if stack != "encoder":
        if not reader.model.can_generate():
            raise BadInput(f"{type(reader.model).__name__} cannot generate: give decoder_input_ids among the inputs.")
        room = getattr(reader.model.config, "max_target_positions", None) or GREEDY_TOKENS + 8
        with torch.no_grad(), evaluation_mode(reader.model):
            # some families put prompt tokens of their own before what they write
            written = reader.model.generate(  # type: ignore[operator]
                **batch,
                do_sample=False,
                num_beams=1,
                return_dict_in_generate=False,
                max_new_tokens=min(GREEDY_TOKENS, room - 8),
            )
        start = torch.cat([start, written[:, :-1]], 1) if int(written[0, 0]) != int(start) else written[:, :-1]
    return {**batch, "decoder_input_ids": start}


def _check_shapes(model: PreTrainedModel, collector: Collector) -> None:
    """Without padding there is nothing to cut off: layers of different sizes would lose what they attend to."""
    lengths = sorted({layer.shape[-1] for layer in collector.layers})
    if len(lengths) > 1:
        raise BadInput(
            f"The layers of {type(model).__name__} attend over different numbers of positions"
            f" ({', '.join(map(str, lengths))}), so they do not fit one record."
        )


def _sides(
    reader: HubModel, model: PreTrainedModel, batch: Mapping[str, Any], stack: Stack, shape: tuple[int, int]
) -> tuple[Named, Named]:
    """The positions that attend and those attended to: as many as the attention has."""
    queries, keys = shape
    if stack == "cross":
        return _text(reader, batch["decoder_input_ids"]), _perceived(model, batch, keys)
    name = "decoder_input_ids" if stack == "decoder" and "decoder_input_ids" in batch else "input_ids"
    if name in batch and stack_reads_text(reader, stack):
        side = _text(reader, batch[name])
        if len(side.tokens) < queries and any(picture in batch for picture in PICTURES):
            side = _numbered("position", queries)  # ViLT attends over text and patches together
    else:
        _check_whole(model, batch, queries)
        side = _perceived(model, batch, queries)
    return side, side


def _check_whole(model: PreTrainedModel, batch: Mapping[str, Any], count: int) -> None:
    """Packed patches that attend by windows or by frames are several small attentions for each layer, not one."""
    if any(name in batch and _is_packed(name, batch) and len(batch[name]) != count for name in PACKED):
        raise BadInput(
            f"{type(model).__name__} attends within {count} patches at a time (a window or a frame), not over the whole"
            " picture, so it cannot be recorded."
        )


def stack_reads_text(reader: HubModel, stack: Stack) -> bool:
    """Whether the positions of a stack are tokens, not patches or frames."""
    return stack == "decoder" or "input_ids" in reader.accepted


def _text(reader: HubModel, ids: Tensor) -> Named:
    if ids.ndim != 2 or len(ids) > 1:  # codes of a sound, several at each position, as in Dia and MusicGen
        return _numbered("position", ids.shape[1])
    listed = ids[0].tolist()
    if reader.given_tokenizer is None:
        return Named(tuple(str(token) for token in listed), tuple(range(len(listed))), (False,) * len(listed))
    encoded = encode_ids(reader.tokenizer, listed)
    return Named(encoded.tokens, encoded.word_ids, encoded.special)


def _perceived(model: PreTrainedModel, batch: Mapping[str, Any], count: int) -> Named:
    """Patches by row and column behind the model's own tokens, or frames by their number."""
    pixels = next((batch[name] for name in PICTURES if isinstance(batch.get(name), Tensor)), None)
    grid = None if pixels is None else _grid(model.config, pixels, count)
    if grid is None:
        seen = pixels is not None or any(name in batch for name in GRIDS)
        return _numbered("position" if seen else "frame", count)
    rows, columns = grid
    own = _own_tokens(model.config, count - rows * columns)
    patches = [f"patch {row},{column}" for row in range(rows) for column in range(columns)]
    words = (*(None for _ in own), *range(len(patches)))
    return Named((*own, *patches), words, (*(True for _ in own), *(False for _ in patches)), grid)


def _numbered(noun: str, count: int) -> Named:
    return Named(tuple(f"{noun} {place}" for place in range(count)), tuple(range(count)), (False,) * count)


def _grid(config: PreTrainedConfig, pixels: Tensor, count: int) -> tuple[int, int] | None:
    """The rows and columns of patches, where the attention has one position for each and a few of its own."""
    patch = getattr(getattr(config, "vision_config", config), "patch_size", None)
    patch = patch if isinstance(patch, int) else patch[0] if isinstance(patch, (list, tuple)) and patch else None
    if pixels.ndim != 4 or not isinstance(patch, int) or patch < 1:
        return None
    rows, columns = pixels.shape[-2] // patch, pixels.shape[-1] // patch
    return (rows, columns) if rows and columns and 0 <= count - rows * columns <= MOST_OWN_TOKENS else None


def _own_tokens(config: PreTrainedConfig, count: int) -> list[str]:
    """The names of the tokens that stand before the patches."""
    second = ["[DIST]"] if config.model_type == "deit" else []
    names = ["[CLS]", *second]
    return [names[place] if place < len(names) else f"[register {place - len(names)}]" for place in range(count)]


def _readout(reader: HubModel, queries: Named, stack: Stack) -> Float[Tensor, " query"]:
    """The last position of a decoder; the class token where there is one; else everywhere alike."""
    length = len(queries.tokens)
    readout = torch.zeros(length)
    if stack in ("decoder", "cross") or reader.pooling == "last":
        readout[-1] = 1.0
    elif queries.special[0] and not stack_reads_text(reader, stack):
        readout[0] = 1.0
    else:
        readout += 1 / length
    return readout


def _logits(reader: HubModel, output: Any) -> Float[Tensor, " outcome"] | None:
    logits = getattr(output, "logits", None)
    if logits is None or reader.task == "encoder" or len(logits) > 1:  # a row for each codebook of a sound
        return None
    if logits.ndim == 2:
        return logits[0]  # type: ignore[no-any-return]
    return None if reader.task == "classifier" else logits[0, -1]


def _gradients(
    reader: HubModel, logits: Tensor | None, collector: Collector, request: Request
) -> tuple[Target | None, tuple[Tensor, ...]]:
    """The target and the gradients of each layer's weights; patches and frames are looked up nowhere."""
    if not request.gradients:
        return None, ()
    if logits is None or request.heads == "mean":
        raise BadInput(f"{type(reader.model).__name__} gives no answer here that attention has gradients of.")
    probabilities = reader.probabilities(logits)
    labels = reader.labels
    target = resolved_target(
        request.target, request.quantity, probabilities, labels, reader.given_tokenizer, request.against
    )
    return target, attention_gradients(reader.model, target_value(target, logits, probabilities), collector.layers)
