"""From subwords to words: sum over the keys of a word, mean over its queries, so that rows still sum to one."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .tokens import CONTINUATION, WORD_STARTS, readable

WordIds = tuple[int | None, ...]


def word_groups(word_ids: Sequence[int | None], special: Sequence[bool]) -> list[list[int]]:
    """The positions of each word, in order of first appearance; special tokens and tokens of no word stay alone."""
    groups: dict[object, list[int]] = {}
    for position, (word, alone) in enumerate(zip(word_ids, special, strict=True)):
        key = ("alone", position) if alone or word is None else word
        groups.setdefault(key, []).append(position)
    return list(groups.values())


def word_labels(tokens: Sequence[str], groups: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """The text of each word, its pieces joined without markers."""
    joined = [
        tokens[group[0]] + "".join(tokens[position].removeprefix(CONTINUATION) for position in group[1:])
        for group in groups
    ]
    # all words at once: whether tokens are spelled in bytes is told from the whole text
    return tuple(text.strip() or text for text in readable(joined))


def _membership(groups: Sequence[Sequence[int]], length: int) -> Int[Tensor, " token"]:
    word_of = torch.empty(length, dtype=torch.long)
    for word, group in enumerate(groups):
        word_of[list(group)] = word
    return word_of


def merge_keys(
    weights: Float[Tensor, "layer head query key"], groups: Sequence[Sequence[int]]
) -> Float[Tensor, "layer head query word"]:
    """Attention to a word is the sum of the attention to its pieces."""
    merged = weights.new_zeros(*weights.shape[:-1], len(groups))
    return merged.index_add_(-1, _membership(groups, weights.shape[-1]), weights)


def merge_queries(
    weights: Float[Tensor, "layer head query key"], groups: Sequence[Sequence[int]], masked: Sequence[bool]
) -> Float[Tensor, "layer head word key"]:
    """Attention from a word is the mean of the attention from its pieces that are not masked."""
    merged = weights.new_zeros(*weights.shape[:-2], len(groups), weights.shape[-1])
    merged.index_add_(-2, _membership(groups, weights.shape[-2]), weights)
    readers = torch.tensor([max(sum(not masked[position] for position in group), 1) for group in groups])
    return merged / readers.unsqueeze(-1)


def merge_readout(readout: Float[Tensor, " query"], groups: Sequence[Sequence[int]]) -> Float[Tensor, " word"]:
    """The read-out of a word is the sum over its pieces."""
    return readout.new_zeros(len(groups)).index_add_(0, _membership(groups, len(readout)), readout)


def words_by_marker(tokens: Sequence[str], special: Sequence[bool] | None = None) -> WordIds:
    """Words told by the tokenizer's markers, where it does not tell them; tokens like [CLS] and <s> stay alone.

    >>> words_by_marker(["<s>", "▁over", "boot", "▁!"], [True, False, False, False])
    (None, 0, 0, 1)
    """
    if special is None:
        special = [token[:1] + token[-1:] in ("[]", "<>") for token in tokens]
    content = [token for token, quiet in zip(tokens, special, strict=True) if not quiet]
    marks_starts = any(token.startswith(WORD_STARTS) for token in content)
    word, fresh = -1, True
    word_ids: list[int | None] = []
    for token, quiet in zip(tokens, special, strict=True):
        if quiet:
            word_ids.append(None)
            fresh = True
            continue
        goes_on = token.startswith(CONTINUATION) or (marks_starts and not token.startswith(WORD_STARTS))
        word += fresh or not goes_on
        fresh = False
        word_ids.append(word)
    return tuple(word_ids)
