"""What a frozen encoder makes of each word in its text: its last hidden state, kept on disk part by part."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Float16
from torch import Tensor

from ...capture import InstrumentedModel, load
from ...capture.batching import by_length
from ...capture.evaluating import evaluated
from ...capture.reading import source_of
from ...engine import load_checkpoint, save_checkpoint
from ...errors import BadInput
from ...record.words import WordIds

PART, BATCH = 512, 32
"""Texts between two looks at the disk, some seconds of work; and texts that run together."""


def encoder_named(encoder: str) -> InstrumentedModel:
    """The body of a Hugging Face model, by its folder or hub name; a head on it would only cost time."""
    model = load(encoder)
    if model.reader.has_both_sides:
        raise BadInput(f"{encoder} is an encoder with a decoder: give one that only reads, such as a BERT.")
    body: Any = model.model.base_model
    return model if body is model.model else load(body, tokenizer=model.tokenizer)


def kept_states(
    model: InstrumentedModel, texts: Sequence[Sequence[str]], folder: Path, watch: Callable[[int, int], None]
) -> Float16[Tensor, "word width"]:
    """The states of the words of all texts behind each other, in half precision: two bytes a number, as on disk.

    Parts are kept in `folder`, and what is kept is not computed again; parts of other texts or of another model are
    refused. `watch` is told how many texts are done, and of how many.
    """
    found: list[Tensor] = []
    for number, start in enumerate(range(0, len(texts), PART)):
        watch(start, len(texts))
        part = [list(words) for words in texts[start : start + PART]]
        fingerprint = hashlib.sha256(json.dumps([Path(model.name).name, part]).encode()).hexdigest()
        path = folder / f"{number:04d}.safetensors"
        if not path.exists():
            states = torch.cat(word_states(model, part)).half()
            save_checkpoint(path, {"fingerprint": fingerprint, "states": states})
        kept = load_checkpoint(path)
        if kept["fingerprint"] != fingerprint:
            raise BadInput(f"{path} is of other texts or another encoder: remove {folder}, or choose another folder.")
        found.append(kept["states"])
    watch(len(texts), len(texts))
    return torch.cat(found)


def word_states(model: InstrumentedModel, texts: Sequence[list[str]]) -> list[Float[Tensor, "word width"]]:
    """The last hidden states of the words of each text: the mean over the pieces of a word, special tokens left out."""
    reader = model.reader
    sources = [source_of(reader, words, longest=reader.longest, truncate=False) for words in texts]
    found: dict[int, Tensor] = {}
    with torch.no_grad(), evaluated(model.model, model.model):
        for batch in by_length([len(source) for source in sources], BATCH if reader.takes_padding else 1):
            hidden = model.model(**reader.batched([sources[place].inputs for place in batch])).last_hidden_state
            for place, states in zip(batch, hidden.float().cpu(), strict=True):
                found[place] = means_of_pieces(states, sources[place].word_ids, len(texts[place]))
    return [found[place] for place in range(len(texts))]


def means_of_pieces(
    states: Float[Tensor, "token width"], word_ids: WordIds, words: int
) -> Float[Tensor, "{words} width"]:
    """The mean state of the pieces of each word; tokens behind the last one are padding.

    A word that the tokenizer makes nothing of has zeros, and so no polarity and no attention score.

    >>> means_of_pieces(torch.tensor([[9.0], [1.0], [3.0], [5.0], [9.0]]), (None, 0, 0, 1), 2).tolist()
    [[2.0], [5.0]]
    """
    places = torch.tensor([place for place, word in enumerate(word_ids) if word is not None])
    owners = torch.tensor([word for word in word_ids if word is not None])
    sums = states.new_zeros(words, states.shape[1]).index_add_(0, owners, states[places])
    pieces = torch.bincount(owners, minlength=words).clamp(min=1)
    return sums / pieces[:, None]
