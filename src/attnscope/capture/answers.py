"""What a model answers: probabilities, outcomes in words, targets; and the position at which it is read."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import BadInput
from ..record.target import SUM, Quantity, Target
from .checkpoints import token_names
from .families import Pooling, Task

TOP_TOKENS = 5


def probabilities_of(
    model: PreTrainedModel, task: Task, logits: Float[Tensor, " outcome"]
) -> Float[Tensor, " outcome"]:
    """Softmax, or sigmoid for several labels at once; a single output (regression, reranking) stays as it is."""
    logits = logits.float()
    if task != "classifier":
        return logits.softmax(-1)
    several = getattr(model.config, "problem_type", None) == "multi_label_classification"
    return sigmoids(logits) if several and logits.shape[-1] > 1 else softmax_unless_single(logits)


def softmax_unless_single(logits: Float[Tensor, " outcome"]) -> Float[Tensor, " outcome"]:
    """The probability of each outcome; a single output stays as it is."""
    logits = logits.float()
    return logits if logits.shape[-1] == 1 else logits.softmax(-1)


def sigmoids(logits: Float[Tensor, " outcome"]) -> Float[Tensor, " outcome"]:
    """The probability of each outcome where each is judged alone, so that they need not sum to one."""
    return logits.float().sigmoid()


def prediction_of(
    probabilities: Float[Tensor, " outcome"], labels: Sequence[str] | None, tokenizer: PreTrainedTokenizerBase | None
) -> tuple[tuple[str, float], ...]:
    """(label, probability) pairs, best first: all classes, or the top tokens of a language model."""
    count = len(labels) if labels is not None else min(TOP_TOKENS, len(probabilities))
    best, order = probabilities.topk(count)
    named = [_name(index, labels, tokenizer) for index in order.tolist()]
    return tuple(zip(named, best.tolist(), strict=True))


def resolved_target(
    target: int | str | None,
    quantity: Quantity,
    probabilities: Float[Tensor, " outcome"],
    labels: Sequence[str] | None,
    tokenizer: PreTrainedTokenizerBase | None,
    against: int | str | None = None,
) -> Target:
    """What the user asks the gradient of: a class or token by number or name, `"sum"`, or None for the prediction.

    `against` is another class or token, whose quantity is taken off.
    """
    if target == SUM:
        return Target(SUM, None, quantity)
    index = _index_of(target, probabilities, labels, tokenizer)
    outcome = _name(index, labels, tokenizer)
    if against is None:
        return Target(outcome, index, quantity)
    other = _index_of(against, probabilities, labels, tokenizer)
    if other == index:
        raise BadInput(
            f"The answer explained is {outcome!r} itself: give against= another outcome, or target= this one's."
        )
    return Target(outcome, index, quantity, _name(other, labels, tokenizer), other)


def _index_of(
    target: int | str | None,
    probabilities: Float[Tensor, " outcome"],
    labels: Sequence[str] | None,
    tokenizer: PreTrainedTokenizerBase | None,
) -> int:
    """The place of an outcome in the output."""
    if target is None:
        index = int(probabilities.argmax())
    elif isinstance(target, int):
        index = target
    elif labels is not None:
        index = _place(target, labels)
    elif tokenizer is None:
        index = -1
    else:
        index = _token(target, tokenizer)
        _check_space(target, index, probabilities, tokenizer)
    if not 0 <= index < len(probabilities):
        without_labels = "a number" if tokenizer is None else "one token of the vocabulary"
        choices = without_labels if labels is None else ", ".join(labels)
        raise BadInput(f"There is no outcome {target!r} here: choose {choices}, or {SUM!r}.")
    return index


def _place(target: str, labels: Sequence[str]) -> int:
    """The place of a label, spelled in capitals or not; -1 where there is none, or several."""
    if target in labels:
        return labels.index(target)
    alike = [place for place, label in enumerate(labels) if label.casefold() == target.casefold()]
    return alike[0] if len(alike) == 1 else -1


def _token(text: str, tokenizer: PreTrainedTokenizerBase) -> int:
    """The number of the token that a text is; -1 where it is several."""
    ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    return int(ids[0]) if len(ids) == 1 else -1


def _check_space(
    target: str, index: int, probabilities: Float[Tensor, " outcome"], tokenizer: PreTrainedTokenizerBase
) -> None:
    """Refuse a word that the model would sooner say with the space before it: to many tokenizers that is another."""
    spaced = _token(f" {target}", tokenizer)
    known = 0 <= spaced < len(probabilities)
    chance = float(probabilities[index]) if 0 <= index < len(probabilities) else 0.0
    if known and spaced != index and float(probabilities[spaced]) > chance:
        raise BadInput(
            f"The outcome {target!r} has {chance:.2%} here, and {f' {target}'!r}, with the space before it,"
            f" {float(probabilities[spaced]):.2%}: say which is meant, with the space or by its number"
            f" ({spaced}{f', or {index}' if index >= 0 else ''})."
        )


def _name(index: int, labels: Sequence[str] | None, tokenizer: PreTrainedTokenizerBase | None) -> str:
    """What an outcome is called: a class by its label, a token by its text, anything else by its number."""
    if labels is not None:
        return labels[index]
    if tokenizer is None:
        return str(index)
    return str(tokenizer.decode([index])) or token_names(tokenizer, [index])[0]


def target_value(
    target: Target, logits: Float[Tensor, " outcome"], probabilities: Float[Tensor, " outcome"]
) -> Float[Tensor, ""]:
    """The number the target names, still attached to the graph."""
    values = logits if target.quantity == "logit" else probabilities
    if target.index is None:
        return values.sum()
    if target.against_index is not None:
        return values[target.index] - values[target.against_index]
    if target.quantity != "difference":
        return values[target.index]
    others = torch.cat([values[: target.index], values[target.index + 1 :]])
    if len(others) == 0:
        raise BadInput('A model with one output has no difference of outcomes: ask for quantity="logit".')
    return values[target.index] - others.max()


# ---- where it reads its answer


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
