"""How one model is fed and where its answer is read: the model with all that was found out about it."""

import inspect
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import BadInput
from ..record.attention import Stack
from .batching import padded
from .families import PROMPT_TYPES, WITHOUT_PADDING, longest_input
from .outcomes import outcome_labels, prediction_of, probabilities_of
from .passage import Passage
from .readout import POOLINGS, Pooling, distribution, pooling_of_sentence_encoder, position_read
from .stacks import has_two_towers, is_decoder_only
from .tasks import Task, checked_task, task_of

Inputs = Mapping[str, Int[Tensor, " _"]]
"""What a model is given for one text, without padding: `input_ids` and whatever else it takes."""


@dataclass(frozen=True, eq=False)
class Reader:
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

    def batched(self, items: Sequence[Inputs]) -> dict[str, Any]:
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

    def position(self, item: Inputs) -> int | None:
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

    def logits(self, output: Any, row: int, item: Inputs) -> Float[Tensor, " outcome"] | None:
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


def reader_of(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    task: str | None,
    readout: str | None,
    labels: Sequence[str] | None,
) -> Reader:
    """Find out what a model is for; what the user says overrides what is found."""
    found = task_of(model) if task is None else checked_task(task)
    if readout is not None and readout not in POOLINGS:
        raise BadInput(f"A read-out is {', '.join(POOLINGS)}, not {readout!r}.")
    return Reader(
        model=model,
        given_tokenizer=tokenizer,
        task=found,
        pooling=readout or _own_pooling(model, found),
        labels=tuple(outcome_labels(model, labels)) if found == "classifier" else None,
    )


def _own_pooling(model: PreTrainedModel, task: Task) -> Pooling:
    if task == "encoder" and (pooling := pooling_of_sentence_encoder(model.config.name_or_path or "")):
        return pooling
    if model.config.is_encoder_decoder or is_decoder_only(model):
        return "last"
    if task == "classifier":
        return "mean" if getattr(model.config, "classifier_pooling", "cls") == "mean" else "first"
    return "mask" if task == "masked_lm" else "mean"
