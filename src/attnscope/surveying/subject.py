"""The model that is surveyed: who it is, which of its stacks is looked at, and where it rests."""

import hashlib
import json
from pathlib import Path

import torch

from ..capture import InstrumentedModel
from ..errors import BadInput
from ..record.attention import Stack
from ..statistics import Null


def null_for(model: InstrumentedModel, asked: Null | None) -> Null:
    """What is left out as null attention: what was asked, or what is usual for such a model.

    Causal models rest on their first token, others on their special tokens.
    """
    if asked is None:
        return "first" if self_attention(model) == "decoder" else "special"
    longest = model.reader.longest
    if longest is not None and not isinstance(asked, str):
        beyond = [position for position in asked if not -longest <= position < longest]
        if beyond:
            raise BadInput(
                f"null= leaves out {', '.join(map(str, beyond))}, but the model reads {longest} tokens at most,"
                " counted from 0."
            )
    return asked


def self_attention(model: InstrumentedModel) -> Stack:
    """The stack that is surveyed: the text's attention to itself, in the encoder where there are both."""
    return "decoder" if model.stacks == ("decoder",) else "encoder"


def identity(model: InstrumentedModel) -> dict[str, str]:
    """Tells a model from any other: its name, and a fingerprint of its settings, weights and tokens."""
    settings = model.model.config.to_dict()
    for changing in ("_name_or_path", "transformers_version"):
        settings.pop(changing, None)
    words = sorted(model.tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    digest = hashlib.sha256(json.dumps([settings, words], default=str, sort_keys=True).encode())
    for name, tensor in sorted(model.model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    name = str(model.model.config.name_or_path or type(model.model).__name__)
    return {"name": Path(name).name if Path(name).is_dir() else name, "fingerprint": digest.hexdigest()[:16]}
