"""Text in, token ids out, with the word of each token: for fast and slow tokenizers alike."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ..errors import BadInput
from ..record.model import Text
from ..record.tokens import WORD_STARTS
from ..record.words import WordIds, words_by_marker


@dataclass(frozen=True)
class Encoded:
    """One text as the model reads it."""

    inputs: dict[str, Int[Tensor, " _"]]
    tokens: tuple[str, ...]
    word_ids: WordIds
    special: tuple[bool, ...]
    offsets: tuple[tuple[int, int], ...] | None = None
    """The characters of one given string that each token covers, where the tokenizer tells."""

    def __len__(self) -> int:
        return len(self.tokens)

    def followed_by(self, other: "Encoded") -> "Encoded":
        """These tokens and then the others, as one text."""
        beyond = max((word for word in self.word_ids if word is not None), default=-1) + 1
        inputs = {"input_ids": torch.cat([self.inputs["input_ids"], other.inputs["input_ids"]])}
        if "token_type_ids" in self.inputs:
            more = self.inputs["token_type_ids"][-1:].expand(len(other))
            inputs["token_type_ids"] = torch.cat([self.inputs["token_type_ids"], more])
        return Encoded(
            inputs=inputs,
            tokens=self.tokens + other.tokens,
            word_ids=self.word_ids + tuple(None if word is None else word + beyond for word in other.word_ids),
            special=self.special + other.special,
        )


def encode(
    tokenizer: PreTrainedTokenizerBase, text: Text, longest: int | None, *, truncate: bool, as_target: bool = False
) -> Encoded:
    """Tokenize a text, a pair of texts (a tuple) or words already split (a list)."""
    first, second = _checked_parts(text)
    split = isinstance(first, list)
    names = ("text_target", "text_pair_target") if as_target else ("text", "text_pair")
    parts = {name: part for name, part in zip(names, (first, second), strict=True) if part is not None}
    cut = {"truncation": True, "max_length": longest} if truncate and longest is not None else {}
    encoding = tokenizer(**parts, is_split_into_words=split, verbose=False, **cut)
    ids = list(encoding["input_ids"])
    if longest is not None and len(ids) > longest:
        raise BadInput(
            f"This text has {len(ids)} tokens and the model reads at most {longest}: shorten it, or have it cut"
            " (--truncate on the command line, truncate=True in Python)."
        )
    tokens = tuple(tokenizer.convert_ids_to_tokens(ids))
    offsets = None
    if tokenizer.is_fast:
        if isinstance(text, str):
            offsets = tuple((start, end) for start, end in encoding.encodings[0].offsets)
        sequences = encoding.sequence_ids(0)
        special = tuple(sequence is None for sequence in sequences)
        word_ids = _unique_word_ids(sequences, encoding.word_ids(0))
        if not split and _merges_words(word_ids, tokens):
            word_ids = words_by_marker(tokens, special)
    else:
        special = special_tokens(tokenizer, ids)
        word_ids = words_by_marker(tokens, special)
        if split:
            word_ids = _words_by_tokenizing(tokenizer, first, second, special) or word_ids
    if all(special):
        raise BadInput("The tokenizer makes no token of this text; give one with words in it.")
    inputs = {
        name: torch.tensor(list(encoding[name]), dtype=torch.long)
        for name in ("input_ids", "token_type_ids")
        if name in encoding
    }
    return Encoded(inputs=inputs, tokens=tokens, word_ids=word_ids, special=special, offsets=offsets)


def encode_ids(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> Encoded:
    """Token ids that a model generated; their words are those of the text they spell, where it spells them back."""
    ids = list(ids)
    special = special_tokens(tokenizer, ids)
    tokens = tuple(tokenizer.convert_ids_to_tokens(ids))
    content = [token for token, quiet in zip(ids, special, strict=True) if not quiet]
    word_ids: WordIds = words_by_marker(tokens, special)
    if tokenizer.is_fast and content:
        again = tokenizer(tokenizer.decode(content), add_special_tokens=False, verbose=False)
        if list(again["input_ids"]) == content and not _merges_words(again.word_ids(0), again.tokens(0)):
            of_content = iter(again.word_ids(0))
            word_ids = tuple(None if quiet else next(of_content) for quiet in special)
    return Encoded(inputs={"input_ids": torch.tensor(ids)}, tokens=tokens, word_ids=word_ids, special=special)


def special_tokens(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> tuple[bool, ...]:
    """Which ids are there for the model's sake; unknown and mask stand for words, and so are not."""
    for_words = {tokenizer.unk_token_id, tokenizer.mask_token_id}
    special = set(tokenizer.all_special_ids) - for_words
    return tuple(token in special for token in ids)


def _checked_parts(text: Text) -> tuple[Any, Any]:
    if isinstance(text, tuple):
        if len(text) != 2:
            raise BadInput(f"A tuple is a pair of texts; this one has {len(text)} parts: give split words as a list.")
        first, second = text
    else:
        first, second = text, None
    for part in (first,) if second is None else (first, second):
        words = [part] if isinstance(part, str) else part
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise BadInput(f"A text is a string, a pair of strings, or a list of words, not {type(part).__name__}.")
        if not "".join(words).strip():
            raise BadInput("The text is empty; give at least one word.")
    if second is not None and isinstance(first, str) != isinstance(second, str):
        raise BadInput("Both texts of a pair must be strings, or both lists of words.")
    return first, second


def _unique_word_ids(sequences: Sequence[int | None], word_ids: Sequence[int | None]) -> WordIds:
    """Word ids restart in the second text of a pair; here they go on."""
    first = [word for sequence, word in zip(sequences, word_ids, strict=True) if sequence == 0 and word is not None]
    beyond = max(first, default=-1) + 1
    return tuple(
        None if sequence is None or word is None else word + beyond * sequence
        for sequence, word in zip(sequences, word_ids, strict=True)
    )


def _merges_words(word_ids: Sequence[int | None], tokens: Sequence[str]) -> bool:
    """Whether a fast tokenizer without a pre-tokenizer (Llama 2, Mistral) calls several words one."""
    starts = Counter(
        word for word, token in zip(word_ids, tokens, strict=True) if word is not None and token.startswith(WORD_STARTS)
    )
    return any(count > 1 for count in starts.values())


def _words_by_tokenizing(
    tokenizer: PreTrainedTokenizerBase, first: list[str], second: list[str] | None, special: Sequence[bool]
) -> WordIds | None:
    """The words of split input: each word tokenized alone, or None where that gives other tokens."""
    words = [*first, *(second or [])]
    pieces = [word for word, text in enumerate(words) for _ in tokenizer.tokenize(text)]
    if len(pieces) != sum(not quiet for quiet in special):
        return None
    of_content = iter(pieces)
    return tuple(None if quiet else next(of_content) for quiet in special)
