"""Blank-out: how much the model's answer changes when a token is taken away."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..progress import tell
from ..record import AttentionRecord, Model, TokenScores
from ..record.model import EMBEDDINGS, Inputs
from ..record.schema import checked
from ..record.words import word_groups, word_labels
from .rerunning import blank_embeddings, default_blank, input_positions, key_embeddings, key_ids, rerunnable

REPLACEMENTS = ("unk", "mask", "pad", "delete", "zero")


def blank_rows(
    embeddings: Float[Tensor, "key width"], blanks: Float[Tensor, "key width"], positions: Sequence[int]
) -> Float[Tensor, "key width"]:
    """The embeddings of a text with blanks at these positions."""
    taken = embeddings.clone()
    taken[list(positions)] = blanks[list(positions)]
    return taken


def without(inputs: Inputs, ids: str, positions: Sequence[int]) -> dict[str, Tensor]:
    """The inputs of a text that never had these positions, with whatever belongs to them on their side."""
    length = len(inputs[ids])
    kept = [position for position in range(length) if position not in positions]
    on_decoder = ids.startswith("decoder_")
    return {
        name: tensor[kept] if name.startswith("decoder_") == on_decoder else tensor for name, tensor in inputs.items()
    }


def blank_groups(record: AttentionRecord, by: str) -> list[list[int]]:
    """The positions that are blanked together, one run of the model each: single tokens, or all pieces of a word."""
    if by == "token":
        return [[position] for position in range(len(record.key_tokens))]
    if by == "word":
        return word_groups(record.key_word_ids, record.key_special)
    raise BadInput(f"by={by!r} is neither token nor word.")


EVERYTHING = 0.9
"""A token that takes this share of the probability along has taken all there was to say."""
NOTHING = 0.01
"""Where no token changes the probability by as much, none carries the answer, and ranks among them are noise."""
LEAST = 1e-30
"""A probability that is smaller has this one's logarithm."""
QUANTITIES = ("probability", "log_odds", "clearest")


@checked
def blank_out(
    record: AttentionRecord,
    model: Model | None = None,
    replacement: str | None = None,
    by: str = "token",
    target: int | str | None = None,
    signed: bool = False,
    batch_size: int = 16,
    quantity: str = "probability",
) -> TokenScores:
    """How much the probability of an outcome changes when each token in turn is taken away.

    Abnar & Zuidema 2020, section 2, "blank-out": |p(y | x) - p(y | x without token i)|, with y the `target`: by default
    what the record has gradients of, else what is predicted (for a model with a single output, its value).
    `signed=True` keeps the sign, positive where the token speaks for the outcome. Special tokens are blanked like all
    others. `by="word"` takes all pieces of a word away at once and gives one score for each word, which is not the sum
    over its pieces that `scores.words()` gives.

    `quantity="log_odds"` follows log p / (1 - p) instead, which goes on moving where the probability is all but one;
    "clearest" takes it where no token changes the probability by 0.01, and says so.

    The `replacement` (unk, or else mask, unless said) takes the token's place where the model looks its embedding up:
    unk, mask and pad bring theirs, zero a vector of zeros. Positions, masks and the place the answer is read at stay as
    they were, so that blanking the mask of a masked language model, or the last token of a causal one, asks the same
    question at the same place. "delete" takes the position away too: a classifier then reads the new first token, a
    causal model the new last one. Where that leaves no token, or no mask to fill, nothing is asked any more: the
    outcome loses all its probability.
    """
    runner = rerunnable(record, model, "blank_out")
    if batch_size < 1:
        raise BadInput(f"batch_size must be at least 1, not {batch_size}.")
    if quantity not in QUANTITIES:
        raise BadInput(f"quantity is {', '.join(QUANTITIES)}, not {quantity!r}.")
    groups = blank_groups(record, by)
    replacement = default_blank(runner) if replacement is None else _checked(replacement)
    mask = runner.blank_ids.get("mask")
    asked = [
        index
        for index, positions in enumerate(groups)
        if replacement != "delete" or _still_asks(record, positions, mask)
    ]
    outcome = _outcome(record, runner, target)
    blank = _blanking(record, runner, replacement)
    # the text as it is comes first, so that it shares a batch with the others
    probability, odds = _answers(runner, blank, [[], *(groups[index] for index in asked)], outcome, batch_size)
    after = torch.zeros(len(groups))
    after[asked] = probability[1:]
    before = float(probability[0])
    change = before - after
    warnings, noise = _judge(change, before, replacement) if odds is not None else ((), "")
    whole = odds is not None and len(asked) == len(groups)
    if quantity == "log_odds" and not whole:
        raise BadInput(
            "There are no log-odds of a single output, nor where nothing is left to ask: follow probability."
        )
    if odds is not None and whole and (quantity == "log_odds" or (quantity == "clearest" and _is_small(change))):
        change = odds[0] - odds[1:]
        warnings = (*warnings, f"scores are changes of the log-odds, not of the probability of {before:.4f}")
    firsts = [positions[0] for positions in groups]
    return TokenScores(
        method="blank_out",
        tokens=record.key_tokens if by == "token" else word_labels(record.key_tokens, groups),
        scores=change if signed else change.abs(),
        special=tuple(record.key_special[position] for position in firsts),
        word_ids=tuple(record.key_word_ids[position] for position in firsts),
        warnings=warnings,
        noise=noise,
    )


def _judge(change: Float[Tensor, " unit"], before: float, replacement: str) -> tuple[tuple[str, ...], str]:
    """What must be said of changes of a probability: where all are nearly everything, and where all are nothing."""
    if len(change) > 1 and bool((change.abs() > EVERYTHING * abs(before)).all()):
        sentence = f"every token that {replacement} replaces takes nearly all of the probability along: the replacement"
        return (f'{sentence} breaks the text more than the token did, so try replacement="delete"',), ""
    if before <= 0.5 or not _is_small(change):
        return (), ""
    return (), (
        f"no single token carries the answer: its probability of {before:.4f} changes by at most"
        f" {float(change.abs().max()):.4f}, whichever is taken away"
    )


def _is_small(change: Float[Tensor, " unit"]) -> bool:
    """Whether no change of a probability is worth the name."""
    return bool((change.abs() < NOTHING).all())


def _checked(replacement: str) -> str:
    """The replacement the user names."""
    if replacement not in REPLACEMENTS:
        raise BadInput(f"There is no replacement {replacement!r}: choose one of {', '.join(REPLACEMENTS)}.")
    return replacement


def _outcome(record: AttentionRecord, model: Model, target: int | str | None) -> int | None:
    """The place of the outcome the user names, else of the one the record has gradients of; None is the prediction."""
    if target is None:
        return None if record.target is None else record.target.index
    index = model.target(record.inputs, target, "probability").index
    if index is None:
        raise BadInput("Blank-out follows one outcome, not the sum of all: name a class or a token as target=.")
    return index


def _blanking(record: AttentionRecord, model: Model, replacement: str) -> Callable[[Sequence[int]], Inputs]:
    """What the model is given when some positions are taken away."""
    ids = key_ids(record)
    if replacement == "delete":
        return lambda positions: without(record.inputs, ids, input_positions(record, positions))
    embeddings, blanks = key_embeddings(record, model), blank_embeddings(record, model, replacement)
    return lambda positions: {
        **record.inputs,
        EMBEDDINGS[ids]: blank_rows(embeddings, blanks, input_positions(record, positions)),
    }


def _answers(
    model: Model,
    blank: Callable[[Sequence[int]], Inputs],
    runs: Sequence[Sequence[int]],
    outcome: int | None,
    batch_size: int,
) -> tuple[Float[Tensor, " run"], Float[Tensor, " run"] | None]:
    """The probability and the log-odds of an outcome (None: that of the first run) with these positions taken away.

    A model with a single output has its value in place of a probability, and no odds.
    """
    own, others = [], []
    # batch by batch, as the embeddings of all runs at once grow with the square of the text
    for start in range(0, len(runs), batch_size):
        tell(start, len(runs))
        inputs = [blank(positions) for positions in runs[start : start + batch_size]]
        probabilities = model.probabilities(inputs, batch_size)
        outcome = int(probabilities[0].argmax()) if outcome is None else outcome
        own.append(probabilities[:, outcome])
        others.append(_others(probabilities, outcome))
    probability = torch.cat(own)
    if probabilities.shape[1] == 1:
        return probability, None
    return probability, (probability.clamp_min(LEAST).log() - torch.cat(others).clamp_min(LEAST).log())


def _others(probabilities: Float[Tensor, "run outcome"], outcome: int) -> Float[Tensor, " run"]:
    """The probability that it is not this outcome: summed, since one minus nearly one has no digits left."""
    rest = probabilities.clone()
    rest[:, outcome] = 0
    exclusive = bool(((probabilities.sum(-1) - 1).abs() < 1e-3).all())
    return rest.sum(-1) if exclusive else 1 - probabilities[:, outcome]  # labels that are judged one by one


def _still_asks(record: AttentionRecord, deleted: Sequence[int], mask: int | None) -> bool:
    """Whether something is left to answer: a token, and the mask if the answer is what it stands for."""
    if len(deleted) == len(record.key_tokens):
        return False
    read = int(record.readout.argmax())
    fills_mask = record.stack == "encoder" and "decoder_input_ids" not in record.inputs
    ids = record.inputs["input_ids"]
    return not (fills_mask and read in deleted and int(ids[read - record.added_tokens]) == mask)
