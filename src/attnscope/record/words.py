"""From subwords to words: sum over the keys of a word, mean over its queries, so that rows still sum to one."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..errors import BadInput

if TYPE_CHECKING:
    from .segments import TokenSegments

WordIds = tuple[int | None, ...]


def word_groups(word_ids: Sequence[int | None], special: Sequence[bool]) -> list[list[int]]:
    """The positions of each word, in order of first appearance; special tokens and tokens of no word stay alone."""
    groups: dict[object, list[int]] = {}
    for position, (word, alone) in enumerate(zip(word_ids, special, strict=True)):
        key = ("alone", position) if alone or word is None else word
        groups.setdefault(key, []).append(position)
    return list(groups.values())


def sentence_groups(tokens: Sequence[str], special: Sequence[bool], words: Sequence[Sequence[int]]) -> list[list[int]]:
    """The positions of each sentence, told by the words that end one; special tokens stay alone.

    >>> sentence_groups(["[CLS]", "Go", ".", "Now", "!"], [True, False, False, False, False], [[0], [1], [2], [3], [4]])
    [[0], [1, 2], [3, 4]]
    """
    labels = word_labels(tokens, words)
    groups: list[list[int]] = []
    fresh = True
    for place, (word, label) in enumerate(zip(words, labels, strict=True)):
        alone = special[word[0]]
        # quotes and brackets behind the stop are of the sentence that it ends
        if not fresh and not alone and place and labels[place - 1].endswith(SENTENCE_ENDS) and label[0] in CLOSERS:
            groups[-1] += word
            continue
        if fresh or alone:
            groups.append([])
        groups[-1] += word
        fresh = alone or label.rstrip(CLOSERS).endswith(SENTENCE_ENDS)
    return groups


def word_labels(tokens: Sequence[str], groups: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """The text of each word, its pieces joined without markers."""
    joined = [
        tokens[group[0]] + "".join(tokens[position].removeprefix(CONTINUATION) for position in group[1:])
        for group in groups
    ]
    # all words at once: whether tokens are spelled in bytes shows in the whole text
    return tuple(text.strip() or text for text in readable(joined))


def sentence_labels(
    tokens: Sequence[str], words: Sequence[Sequence[int]], sentences: Sequence[Sequence[int]]
) -> tuple[str, ...]:
    """The text of each sentence: its words, with no space before a mark."""
    texts = dict(zip((word[0] for word in words), word_labels(tokens, words), strict=True))
    joined = (" ".join(texts[place] for place in sentence if place in texts) for sentence in sentences)
    return tuple(re.sub(r"\s+([.,;:!?…)\]}])", r"\1", text) for text in joined)


Level = Literal["token", "word", "sentence"]
"""What gets one score each, of any text; a record of segments has their levels beside these."""


def units(
    tokens: Sequence[str],
    special: Sequence[bool],
    word_ids: Sequence[int | None],
    by: str,
    segments: "TokenSegments | None" = None,
) -> tuple[list[list[int]], tuple[str, ...]]:
    """The positions that are scored together, and what each such unit is called."""
    if segments is not None and by in segments.levels:
        groups, labels, _ = segments.groups(by, tokens, special)
        return groups, labels
    if by == "token":
        return [[position] for position in range(len(tokens))], tuple(tokens)
    words = word_groups(word_ids, special)
    if by == "word":
        return words, word_labels(tokens, words)
    if by == "sentence":
        sentences = sentence_groups(tokens, special, words)
        return sentences, sentence_labels(tokens, words, sentences)
    known = dict.fromkeys([*(() if segments is None else segments.levels), *reversed(get_args(Level))])
    marked = "" if segments else "; segments= of model.record mark others"
    raise BadInput(f"There is no level {str(by)[:40]!r} here: choose {', '.join(known)}{marked}.")


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
    """Words by the tokenizer's markers, where it does not give them; tokens like [CLS] and <s> stay alone.

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


# Tokens as a person reads them: subword markers and byte alphabets undone.


WORD_STARTS = ("Ġ", "▁")
"""A piece with one of these begins a word: byte-level BPE and SentencePiece."""
SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？", "।", "؟", "⏎")
CLOSERS = "\"')]}»”’"
CONTINUATION = "##"
"""A WordPiece that goes on with the word before it."""


@lru_cache
def _byte_of_letter() -> dict[str, int]:
    """Byte-level BPE writes a byte as one letter: printable bytes as themselves, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in printable)
    letters |= {chr(0x100 + offset): byte for offset, byte in enumerate(others)}
    return letters


def is_byte_level(tokens: Sequence[str]) -> bool:
    """Whether these tokens are spelled in the byte alphabet of GPT-2, RoBERTa, Llama 3 and others.

    They are if a space or newline is written in it, or if some letter can only come from it and all together spell
    valid UTF-8. Special tokens may hold other letters, and are left out.
    """
    letters = _byte_of_letter()
    spelled = "".join(token for token in tokens if _in_bytes(token))
    if not any(0x100 <= ord(letter) <= 0x143 for letter in spelled):
        return False
    if "Ġ" in spelled or "Ċ" in spelled:
        return True
    try:
        bytes(letters[letter] for letter in spelled).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return all(_in_bytes(token) for token in tokens)


def _in_bytes(token: str) -> bool:
    return all(letter in _byte_of_letter() for letter in token)


def readable(tokens: Sequence[str]) -> list[str]:
    """Each token as text: a leading space where a word begins, newlines as ⏎, no markers.

    A character that byte-level BPE cut in pieces is given to its first piece; the others show as "·".

    >>> readable(["Ġhello", "Ċ"]), readable(["▁Haus", "boot"]), readable(["play", "##ing"])
    ([' hello', '⏎'], [' Haus', 'boot'], ['play', 'ing'])
    """
    if is_byte_level(tokens):
        decoded = iter(_decoded([token for token in tokens if _in_bytes(token)]))
        return [next(decoded).replace("\n", "⏎") if _in_bytes(token) else token for token in tokens]
    pieces = (token.removeprefix(CONTINUATION) if len(token) > 2 else token for token in tokens)
    return [piece.replace("▁", " ").replace("<0x0A>", "⏎").replace("\n", "⏎") for piece in pieces]


def _decoded(tokens: Sequence[str]) -> list[str]:
    letters = _byte_of_letter()
    starts: list[int] = []
    spelled = bytearray()
    for token in tokens:
        starts.append(len(spelled))
        spelled += bytes(letters[letter] for letter in token)
    texts = [""] * len(tokens)
    position, owner = 0, 0
    # a generation may stop in the middle of a character: its bytes become surrogates, shown as replacement sign
    for character in spelled.decode("utf-8", "surrogateescape"):
        while owner + 1 < len(tokens) and starts[owner + 1] <= position:
            owner += 1
        texts[owner] += "\ufffd" if "\udc80" <= character <= "\udcff" else character
        position += len(character.encode("utf-8", "surrogateescape"))
    return [text or ("·" if token else "") for text, token in zip(texts, tokens, strict=True)]
