"""Where a model reads its answer, as a distribution over positions."""

import json
from pathlib import Path
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers.utils.hub import cached_file

from ..errors import BadInput

Pooling = Literal["first", "last", "mean", "mask"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)
POOLING_FILE = "1_Pooling/config.json"
"""Where a sentence encoder says how it pools."""
POOLING_MODES: dict[str, Pooling] = {
    "pooling_mode_cls_token": "first",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_mean_tokens": "mean",
}


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


def position_read(
    pooling: Pooling, input_ids: Int[Tensor, " position"], mask_id: int | None, skipped: int | None
) -> int | None:
    """The one position the answer is read at, or None where it is pooled over all.

    The first mask of several; the last token that is not `skipped`.
    """
    match pooling:
        case "first":
            return 0
        case "mask":
            masks = (input_ids == mask_id).nonzero().flatten() if mask_id is not None else input_ids[:0]
            return int(masks[0]) if len(masks) else 0
        case "last":
            read = (input_ids != skipped).nonzero().flatten() if skipped is not None else input_ids[:0]
            return int(read[-1]) if len(read) else len(input_ids) - 1
        case "mean":
            return None


def distribution(position: int | None, length: int) -> Float[Tensor, " position"]:
    """All on one position, or even over all."""
    if position is None:
        return torch.full((length,), 1 / length)
    readout = torch.zeros(length)
    readout[position] = 1.0
    return readout
