"""What a torch module is given: the tokens of a text with their inputs, and batches of them with masks."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import BadInput
from ..record import Text
from .batching import by_length

IDS = "input_ids"
MASKS = ("attention_mask", "src_key_padding_mask", "key_padding_mask", "padding_mask")
"""Arguments that are taken for a mask of the tokens without being told."""


@dataclass(frozen=True)
class Tokenized:
    """One text as a module reads it; what `tokenize` may return in place of a pair `(tokens, inputs)`.

    `inputs` are the ids of the tokens, or a mapping of the module's arguments, each without the axis of the batch.
    `special` says which tokens are there for the model's sake, `word_ids` the word each belongs to. Where other tokens
    attend than are attended to, as in a decoder or where one query pools a text, `query_tokens` names those.
    """

    tokens: Sequence[str]
    inputs: Any
    special: Sequence[bool] = ()
    word_ids: Sequence[int | None] = ()
    query_tokens: Sequence[str] = ()


@dataclass(frozen=True)
class Item:
    """The same, checked: inputs are tensors by the names of the module's arguments."""

    text: Text | None
    tokens: tuple[str, ...]
    inputs: dict[str, Tensor]
    special: tuple[bool, ...] = ()
    word_ids: tuple[int | None, ...] = ()
    query_tokens: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def runs_again(self) -> bool:
        """Whether a record can keep what the module was given: ids of the tokens, and other numbers for each."""
        return IDS in self.inputs and all(
            tensor.ndim == 1 and tensor.dtype in (torch.long, torch.int) for tensor in self.inputs.values()
        )


def item_of(tokenize: Callable[[Any], Any], text: Text, longest: int | None) -> Item:
    """A text through the user's `tokenize`, with a sentence about whatever does not fit."""
    made = tokenize(text)
    if not isinstance(made, Tokenized):
        if not isinstance(made, tuple) or len(made) != 2:
            raise BadInput("tokenize must return a pair of tokens and inputs, or attnscope.Tokenized.")
        made = Tokenized(*made)
    if isinstance(made.tokens, str) or not made.tokens:
        raise BadInput("tokenize must return a list of tokens, at least one.")
    inputs = {
        name: value if isinstance(value, Tensor) else torch.as_tensor(value)
        for name, value in (made.inputs if isinstance(made.inputs, Mapping) else {IDS: made.inputs}).items()
    }
    if IDS in inputs and tuple(inputs[IDS].shape) != (len(made.tokens),):
        raise BadInput(
            f"tokenize returned {len(made.tokens)} tokens and {IDS} of the shape {tuple(inputs[IDS].shape)}: give one"
            " id for each token, without the axis of the batch."
        )
    if longest is not None and len(made.tokens) > longest:
        raise BadInput(f"This text has {len(made.tokens)} tokens and the model reads at most {longest}: shorten it.")
    return Item(
        text=text,
        tokens=tuple(made.tokens),
        inputs=inputs,
        special=tuple(made.special),
        word_ids=tuple(made.word_ids),
        query_tokens=tuple(made.query_tokens),
    )


@dataclass(frozen=True, eq=False)
class Feeder:
    """How a module is called on several texts: the argument that masks padding, and the id that fills a batch.

    An argument whose name ends in `padding_mask` is true where padding is, as torch has it; `attention_mask` is 1 where
    tokens are, as Hugging Face has it; any other is true where tokens are. Without a mask, only texts of equal length
    run together, so padding never reaches a module that could not tell.
    """

    module: nn.Module
    mask: str | None
    padding: int

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The names of what the module's forward pass takes."""
        return tuple(inspect.signature(self.module.forward).parameters)

    @cached_property
    def device(self) -> torch.device:
        """Where the module is."""
        return next((parameter.device for parameter in self.module.parameters()), torch.device("cpu"))

    def groups(self, items: Sequence[Mapping[str, Tensor]], batch_size: int) -> list[list[int]]:
        """Positions of items that may run together."""
        shapes = [tuple(len(tensor) if tensor.ndim else 0 for tensor in item.values()) for item in items]
        if self.mask is not None:
            return by_length([max(shape) for shape in shapes], batch_size)
        alike: dict[tuple[int, ...], list[int]] = {}
        for position, shape in enumerate(shapes):
            alike.setdefault(shape, []).append(position)
        return [
            group[start : start + batch_size]
            for _, group in sorted(alike.items())
            for start in range(0, len(group), batch_size)
        ]

    def batched(self, items: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        """Items as one padded batch on the module's device, with its mask where it takes one."""
        batch = {
            name: nn.utils.rnn.pad_sequence(
                [item[name] for item in items], batch_first=True, padding_value=self._filling(name)
            ).to(self.device)
            for name in items[0]
        }
        if self.mask is not None and self.mask not in batch:
            lengths = torch.tensor([len(next(iter(item.values()))) for item in items], device=self.device)
            real = torch.arange(int(lengths.max()), device=self.device) < lengths.unsqueeze(1)
            batch[self.mask] = real.long() if self.mask == "attention_mask" else real
            if self.mask.endswith("padding_mask"):
                batch[self.mask] = ~real
        return batch

    def _filling(self, name: str) -> int:
        """What fills an argument behind the end of a text: a mask that the user gives hides it."""
        return self.padding if name == IDS else int(name.endswith("padding_mask"))

    def run(self, batch: Mapping[str, Tensor]) -> Any:
        """Call the module; ids go to the argument `input_ids`, or else to the first."""
        if IDS in batch and IDS not in self.arguments:
            return self.module(batch[IDS], **{name: value for name, value in batch.items() if name != IDS})
        return self.module(**batch)


def feeder_of(module: nn.Module, mask: str | None, padding: int) -> Feeder:
    """The feeder of a module; a mask that nobody names is found by its usual names."""
    arguments = inspect.signature(module.forward).parameters
    if mask is not None and mask not in arguments:
        raise BadInput(f"The forward pass of {type(module).__name__} takes no {mask}: it takes {', '.join(arguments)}.")
    return Feeder(module, mask or next((name for name in MASKS if name in arguments), None), padding)
