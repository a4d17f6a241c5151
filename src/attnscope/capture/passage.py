"""A passage: one text as a model reads it, with the decoder's tokens where there is a decoder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ..record import Text
from ..record.attention import Stack
from .encoding import Encoded
from .vocabulary import token_names


@dataclass(frozen=True)
class Passage:
    """The text as it was given, its tokens, and the decoder's input tokens of an encoder-decoder."""

    text: Text
    source: Encoded
    target: Encoded | None
    place: tuple[int, int] | None = None
    """Of a window: from where to where it reads the tokens of the text, special ones not counted."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What the card of the record says besides: of an answer, how many tokens are the prompt's, and its options."""

    @property
    def inputs(self) -> dict[str, Int[Tensor, " _"]]:
        """What the model is given, without padding."""
        if self.target is None:
            return self.source.inputs
        return {**self.source.inputs, "decoder_input_ids": self.target.inputs["input_ids"]}

    def sides(self, stack: Stack) -> tuple[Encoded, Encoded]:
        """The tokens that attend and the tokens attended to, in a stack."""
        if self.target is None or stack == "encoder":
            return self.source, self.source
        return self.target, self.source if stack == "cross" else self.target


def shifted(tokenizer: PreTrainedTokenizerBase, labels: Encoded, start: int) -> Encoded:
    """What a decoder reads to say these labels: one token to the right, behind the start token."""
    ids = [start, *labels.inputs["input_ids"].tolist()[:-1]]
    return Encoded(
        inputs={"input_ids": torch.tensor(ids)},
        tokens=token_names(tokenizer, ids),
        word_ids=(None, *labels.word_ids[:-1]),
        special=(True, *labels.special[:-1]),
    )
