"""A Hugging Face model with all that was found out about it: how it is fed, where its answer is read, what it says."""

import inspect
import threading
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import BadInput
from ..record.attention import Stack
from .answers import (
    Pooling,
    Task,
    distribution,
    position_read,
    prediction_of,
    probabilities_of,
)
from .encoding import Passage, padded
from .families import PROMPT_TYPES, WITHOUT_PADDING, has_two_towers, is_decoder_only, longest_input

Ids = Mapping[str, Int[Tensor, " _"]]
"""What a model is given for one text, without padding: `input_ids` and whatever else it takes."""


@dataclass(frozen=True, eq=False)
class HubModel:
    """A model, its tokenizer, its task, where it reads its answer and what its answers are called."""

    model: PreTrainedModel
    given_tokenizer: PreTrainedTokenizerBase | None
    task: Task
    pooling: Pooling
    labels: tuple[str, ...] | None

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The tokenizer of a model that reads text."""
        if self.given_tokenizer is None:
            raise BadInput(
                f"{type(self.model).__name__} was loaded without a tokenizer, so it reads no text: record it with"
                " inputs=, what its processor makes of a picture or a sound."
            )
        return self.given_tokenizer

    @property
    def name(self) -> str:
        """What it is called: its name on the hub, its folder, or its class."""
        return str(self.model.config.name_or_path or type(self.model).__name__)

    @cached_property
    def longest(self) -> int | None:
        """How many tokens the model can read."""
        return longest_input(self.model)

    @cached_property
    def has_both_sides(self) -> bool:
        """Whether this is an encoder with a decoder."""
        return bool(self.model.config.is_encoder_decoder)

    @cached_property
    def stacks(self) -> tuple[Stack, ...]:
        """The stacks this model has; the first is the one recorded by default."""
        if self.has_both_sides:
            return ("cross", "encoder", "decoder")
        if has_two_towers(self.model):
            return ("encoder",)
        return ("decoder",) if is_decoder_only(self.model) else ("encoder",)

    @cached_property
    def padding(self) -> int:
        """The id that fills a batch: the model's own if it has one, as some count positions or find the end by it."""
        for holder in (self.model.config, self.given_tokenizer):
            padding = getattr(holder, "pad_token_id", None)
            if padding is not None and padding >= 0:
                return int(padding)
        return 0

    @cached_property
    def takes_padding(self) -> bool:
        """Not where padding would change the answer: a causal classifier without a padding token, and some families."""
        if self.model.config.model_type in WITHOUT_PADDING:
            return False
        finds_end = self.task == "classifier" and is_decoder_only(self.model)
        return not finds_end or self._padding_of_model is not None

    @cached_property
    def _padding_of_model(self) -> int | None:
        """The padding token by the model's own configuration, or by that of its language model."""
        holders = (self.model.config, self.model.config.get_text_config())
        found = (getattr(holder, "pad_token_id", None) for holder in holders)
        return next((token for token in found if token is not None), None)

    @cached_property
    def accepted(self) -> Container[str]:
        """The arguments that the model's forward pass takes."""
        parameters = inspect.signature(self.model.forward).parameters
        takes_more = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        return {*parameters, *(("return_dict",) if takes_more else ())}

    @property
    def device(self) -> torch.device:
        """Where token ids go: to the table they are looked up in, which may not be where the other layers are."""
        try:
            table = self.model.get_input_embeddings()
        except NotImplementedError:  # CANINE hashes characters
            return self.model.device
        weight = getattr(table, "weight", None)
        return weight.device if isinstance(weight, Tensor) else self.model.device

    def batched(self, items: Sequence[Ids]) -> dict[str, Any]:
        """Items as one padded batch on the model's device, with masks, and no cache where the model would keep one."""
        device = self.device
        batch: dict[str, Any] = {}
        for name, mask_name in (("input_ids", "attention_mask"), ("decoder_input_ids", "decoder_attention_mask")):
            if name in items[0]:
                ids, mask = padded([item[name] for item in items], self.padding)
                batch[name] = ids.to(device)
                if mask_name in self.accepted:
                    batch[mask_name] = mask.to(device)
        if "token_type_ids" in items[0] and "token_type_ids" in self.accepted:
            batch["token_type_ids"] = padded([item["token_type_ids"] for item in items], 0)[0].to(device)
        elif self.model.config.model_type in PROMPT_TYPES:
            batch["token_type_ids"] = torch.zeros_like(batch["input_ids"])
        wishes = {"use_cache": False, "return_dict": True}
        return batch | {name: value for name, value in wishes.items() if name in self.accepted}

    def position(self, item: Ids) -> int | None:
        """The position at which the model reads its answer, or None where it pools over all."""
        if "decoder_input_ids" not in item:
            # a causal classifier reads the last token that is not its padding token, even one that stands for another
            skipped = self._padding_of_model if self.task == "classifier" else None
            return position_read(self.pooling, item["input_ids"], self.tokenizer.mask_token_id, skipped)
        if self.task == "classifier":
            # the decoder reads the source once more, and answers where the source ends
            ends = (item["input_ids"] == self.model.config.eos_token_id).nonzero().flatten()
            return int(ends[-1]) if len(ends) else len(item["input_ids"]) - 1
        return len(item["decoder_input_ids"]) - 1

    def readout(self, passage: Passage, stack: Stack) -> Float[Tensor, " query"]:
        """The read-out of a passage in a stack; an encoder below a decoder is read everywhere alike."""
        queries = len(passage.sides(stack)[0])
        below_decoder = passage.target is not None and stack == "encoder"
        return distribution(None if below_decoder else self.position(passage.inputs), queries)

    def logits(self, output: Any, row: int, item: Ids) -> Float[Tensor, " outcome"] | None:
        """What the model says of each outcome where it reads its answer, or None where it answers nothing."""
        logits = getattr(output, "logits", None)
        logits = getattr(output, "prediction_logits", None) if logits is None else logits
        if self.task == "encoder" or logits is None:
            return None
        if self.task == "classifier":
            return logits[row]  # type: ignore[no-any-return]
        if self.task == "masked_lm" and not bool((item["input_ids"] == self.tokenizer.mask_token_id).any()):
            return None
        position = self.position(item)
        return None if position is None else logits[row, position]

    def probabilities(self, logits: Float[Tensor, " outcome"]) -> Float[Tensor, " outcome"]:
        """The probability of each outcome."""
        return probabilities_of(self.model, self.task, logits)

    def prediction(self, logits: Float[Tensor, " outcome"] | None) -> tuple[tuple[str, float], ...]:
        """(label, probability) pairs, best first; none where the model answers nothing."""
        if logits is None:
            return ()
        probabilities = self.probabilities(logits.detach())
        if bool(probabilities.isnan().any()):
            raise BadInput(
                f"{type(self.model).__name__} answers with what is not a number: its weights or its precision are at"
                " fault, so nothing it attends to means anything."
            )
        return prediction_of(probabilities, self.labels, self.given_tokenizer)


def lookups(model: PreTrainedModel) -> list[nn.Module]:
    """The modules that look up the embeddings of each kind of ids, the encoder's before the decoder's."""
    holders = [model.get_encoder(), model.get_decoder()] if model.config.is_encoder_decoder else [model]
    try:
        return [holder.get_input_embeddings() for holder in holders]
    except NotImplementedError:
        raise BadInput(
            f"{type(model).__name__} looks its tokens up in no table, so there are no embeddings to begin from."
        ) from None


@contextmanager
def changed_lookups(model: PreTrainedModel, change: Callable[[Tensor], Tensor] | None) -> Iterator[None]:
    """Within this, `change(embeddings)` takes the place of the embeddings that are looked up, in this thread."""
    if change is None:
        yield
        return
    thread = threading.get_ident()

    def in_this_thread(_module: nn.Module, _given: Any, output: Tensor) -> Tensor:
        return change(output) if threading.get_ident() == thread else output

    # encoder and decoder may share one module, which then must not be hooked twice
    handles = [module.register_forward_hook(in_this_thread) for module in dict.fromkeys(lookups(model))]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
