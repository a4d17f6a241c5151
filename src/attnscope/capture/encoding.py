"""Text in, token ids out, with the word of each token: for fast and slow tokenizers alike."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import or_
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ..errors import BadInput
from ..record.model import Text
from ..record.words import WORD_STARTS, WordIds, words_by_marker
from .vocabulary import check_ids, token_names

HALF_CHARACTER = re.compile("[\ud800-\udfff]")
"""Half of a pair of UTF-16, or a byte that Python could not read as UTF-8: no tokenizer takes it."""
MARKED_AND_A_WORD = 2
"""A marker twice and a word are the least in which one of the two is too many."""


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
    tokenizer: PreTrainedTokenizerBase,
    text: Text,
    longest: int | None,
    *,
    truncate: bool,
    as_target: bool = False,
    embedded: int | None = None,
) -> Encoded:
    """Tokenize a text, a pair of texts (a tuple) or words already split (a list).

    A special token that the text itself has at its beginning or end, as chat templates write it, is not added a second
    time. `embedded` is how many ids the model has embeddings for.
    """
    first, second = checked_parts(text)
    split = isinstance(first, list)
    names = ("text_target", "text_pair_target") if as_target else ("text", "text_pair")
    parts = {name: part for name, part in zip(names, (first, second), strict=True) if part is not None}
    cut = {"truncation": True, "max_length": longest} if truncate and longest is not None else {}
    encoding = tokenizer(**parts, is_split_into_words=split, verbose=False, **cut)
    kept = _without_doubled_ends(tokenizer, encoding["input_ids"])
    ids = list(encoding["input_ids"][kept])
    if longest is not None and len(ids) > longest:
        raise BadInput(
            f"This text has {len(ids)} tokens and the model reads at most {longest}: shorten it, or have it cut"
            " (--truncate on the command line, truncate=True in Python)."
        )
    check_ids(tokenizer, ids, embedded)
    tokens = token_names(tokenizer, ids)
    special = special_tokens(tokenizer, ids)
    offsets = None
    if tokenizer.is_fast:
        sequences = encoding.sequence_ids(0)[kept]
        added = tuple(sequence is None for sequence in sequences)
        # markers written into a text (<|im_start|>) are special too; a word that was given as a word is one
        special = added if split else tuple(map(or_, added, special))
        word_ids = _unique_word_ids(sequences, encoding.word_ids(0)[kept])
        if isinstance(text, str):
            offsets = tuple((start, end) for start, end in encoding.encodings[0].offsets[kept])
        if not split:
            merged = _merges_words(word_ids, tokens)
            word_ids = words_by_marker(tokens, special) if merged else _without_words(word_ids, special)
    else:
        added = special
        word_ids = words_by_marker(tokens, special)
        if split:
            word_ids = _words_by_tokenizing(tokenizer, first, second, special) or word_ids
    if all(added):
        raise BadInput("The tokenizer makes no token of this text; give one with words in it.")
    inputs = {
        name: torch.tensor(list(encoding[name][kept]), dtype=torch.long)
        for name in ("input_ids", "token_type_ids")
        if name in encoding
    }
    return Encoded(inputs=inputs, tokens=tokens, word_ids=word_ids, special=special, offsets=offsets)


def _without_doubled_ends(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> slice:
    """The tokens without one at either end that the tokenizer added though the text begins or ends with it."""
    special = set(tokenizer.all_special_ids)
    long_enough = len(ids) > MARKED_AND_A_WORD
    first = int(long_enough and ids[0] == ids[1] and ids[0] in special)
    last = int(long_enough and ids[-1] == ids[-2] and ids[-1] in special)
    return slice(first, len(ids) - last)


def encode_ids(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> Encoded:
    """Token ids that a model generated; their words are those of the text they spell, where it spells them back."""
    ids = list(ids)
    special = special_tokens(tokenizer, ids)
    tokens = token_names(tokenizer, ids)
    content = [token for token, quiet in zip(ids, special, strict=True) if not quiet]
    word_ids: WordIds = words_by_marker(tokens, special)
    if tokenizer.is_fast and content:
        again = tokenizer(tokenizer.decode(content), add_special_tokens=False, verbose=False)
        if list(again["input_ids"]) == content and not _merges_words(again.word_ids(0), again.tokens(0)):
            of_content = iter(again.word_ids(0))
            word_ids = tuple(None if quiet else next(of_content) for quiet in special)
    return Encoded(inputs={"input_ids": torch.tensor(ids)}, tokens=tokens, word_ids=word_ids, special=special)


def special_tokens(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> tuple[bool, ...]:
    """Which ids are there for the model's sake; unknown and mask stand for words, and so are not.

    Role markers of chat models (<|start_header_id|>) are often only among the added tokens.
    """
    markers = {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id}
    for_words = {tokenizer.unk_token_id, tokenizer.mask_token_id} - markers  # GPT-2 has one token for all of these
    added = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    special = {*tokenizer.all_special_ids, *added} - for_words
    return tuple(token in special for token in ids)


def checked_parts(text: Text) -> tuple[Any, Any]:
    """The one or two texts given, as strings or lists of words."""
    if isinstance(text, tuple):
        if len(text) != 2:
            raise BadInput(f"A tuple is a pair of texts; this one has {len(text)} parts: give split words as a list.")
        first, second = text
    else:
        first, second = text, None
    for part in text if isinstance(text, tuple) else (first,):
        words = [part] if isinstance(part, str) else part
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise BadInput(f"A text is a string, a pair of strings, or a list of words, not {type(part).__name__}.")
        whole = "".join(words)
        if not whole.strip():
            raise BadInput("The text is empty; give at least one word.")
        if (broken := HALF_CHARACTER.search(whole)) is not None:
            raise BadInput(
                f"The text is no valid Unicode: its character {broken.start()} is half of one (U+{ord(broken[0]):04X});"
                " read the text as UTF-8, or leave that character out."
            )
    if second is not None and isinstance(first, str) != isinstance(second, str):
        raise BadInput("Both texts of a pair must be strings, or both lists of words.")
    return first, second


def _without_words(word_ids: WordIds, special: Sequence[bool]) -> WordIds:
    """Special tokens are parts of no word."""
    return tuple(None if quiet else word for word, quiet in zip(word_ids, special, strict=True))


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
