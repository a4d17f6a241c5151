"""A text as a model reads it: token ids with the word of each, windows of a long text, batches of like length."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import or_
from typing import Any, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ..errors import BadInput
from ..record import AttentionRecord, Segments
from ..record.attention import Stack
from ..record.model import Text
from ..record.words import WORD_STARTS, WordIds, words_by_marker
from .checkpoints import check_ids, token_names

HALF_CHARACTER = re.compile("[\ud800-\udfff]")
"""Half of a pair of UTF-16, or a byte that Python could not read as UTF-8: no tokenizer takes it."""
MARKED_AND_A_WORD = 2
"""A marker twice and a word are the least in which one of the two is too many."""
Truncation = bool | str
"""As in transformers: whether, or by which strategy, a text that is too long is cut."""
STRATEGIES = ("longest_first", "only_first", "only_second", "do_not_truncate")
"""Which text of a pair is cut; True is the first of these, False the last."""
Item = TypeVar("Item")
BATCHES_AHEAD = 8
"""How many batches of texts are read ahead to sort them by length: long enough to save padding."""
BYTES_AHEAD = 256_000_000
"""How much their records may take meanwhile, beyond one batch, since the first may be the last to run."""


@dataclass(frozen=True)
class Encoded:
    """One text as the model reads it."""

    inputs: dict[str, Tensor]
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
    truncation: Truncation = False,
    as_target: bool = False,
    embedded: int | None = None,
    add_special_tokens: bool = True,
) -> Encoded:
    """Tokenize a text, a pair of texts (a tuple) or words already split (a list).

    A special token that the text itself has at its beginning or end, as chat templates write it, is not added a second
    time; without `add_special_tokens`, none is. `embedded` is how many ids the model has embeddings for.
    """
    first, second = checked_parts(text)
    split = isinstance(first, list)
    names = ("text_target", "text_pair_target") if as_target else ("text", "text_pair")
    parts = {name: part for name, part in zip(names, (first, second), strict=True) if part is not None}
    cut = {"truncation": truncation, "max_length": longest} if truncation and longest is not None else {}
    try:
        encoding = tokenizer(
            **parts, is_split_into_words=split, add_special_tokens=add_special_tokens, verbose=False, **cut
        )
    except Exception as error:
        if not isinstance(truncation, str):
            raise
        reason = str(error).strip().splitlines()[0].rstrip(".")  # tokenizers has no type of its own for it
        raise BadInput(f"The texts cannot be cut by truncation={truncation!r} ({reason}): choose another.") from None
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


def checked_truncation(truncation: object, truncate: bool) -> Truncation:
    """The strategy by which texts are cut, or whether they are; `truncate=True` is short for `truncation=True`."""
    if not isinstance(truncation, bool) and truncation not in STRATEGIES:
        raise BadInput(f"truncation is True, False or one of {', '.join(STRATEGIES)}, not {truncation!r}.")
    return truncate if truncation in (False, "do_not_truncate") else truncation


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
        if isinstance(part, list) and (several := next((word for word in words if len(word.split()) > 1), None)):
            raise BadInput(
                f"A list is one text, already split into words, and {several[:40]!r} is no word: give several texts to"
                " records, and a pair of texts as a tuple."
            )
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


# ---- passages


@dataclass(frozen=True)
class Passage:
    """The text as it was given, its tokens, and the decoder's input tokens of an encoder-decoder."""

    text: Text
    source: Encoded
    target: Encoded | None
    place: tuple[int, int] | None = None
    """Of a window: from where to where it reads the tokens of the text, special ones not counted."""
    segments: Segments | None = None
    """Named spans of the text that the offsets of its tokens are in."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What the card of the record says besides: of an answer, how many tokens are the prompt's, and its options."""

    @property
    def inputs(self) -> dict[str, Tensor]:
        """What the model is given, without padding."""
        if self.target is None:
            return self.source.inputs
        return {**self.source.inputs, **{f"decoder_{name}": ids for name, ids in self.target.inputs.items()}}

    @property
    def runs_again(self) -> bool:
        """Whether a record can keep what the model was given: ids of the tokens, and other numbers for each."""
        return "input_ids" in self.inputs and all(
            tensor.ndim == 1 and tensor.dtype in (torch.long, torch.int) for tensor in self.inputs.values()
        )

    def sides(self, stack: Stack) -> tuple[Encoded, Encoded]:
        """The tokens that attend and the tokens attended to, in a stack."""
        if self.target is None or stack == "encoder":
            return self.source, self.source
        return self.target, self.source if stack == "cross" else self.target


def text_of(text: Text) -> str | tuple[str, ...]:
    """A pair of texts as a tuple; words already split as one string."""
    if isinstance(text, tuple):
        return tuple(part if isinstance(part, str) else " ".join(part) for part in text)
    return text if isinstance(text, str) else " ".join(text)


def shift_right(tokenizer: PreTrainedTokenizerBase, labels: Encoded, start: int) -> Encoded:
    """What a decoder reads to say these labels: one token to the right, behind the start token."""
    ids = [start, *labels.inputs["input_ids"].tolist()[:-1]]
    return Encoded(
        inputs={"input_ids": torch.tensor(ids)},
        tokens=token_names(tokenizer, ids),
        word_ids=(None, *labels.word_ids[:-1]),
        special=(True, *labels.special[:-1]),
    )


# ---- windows of long texts


def windows_of(encoded: Encoded, text: Text, window: int, stride: int | None) -> list[Passage]:
    """The text cut into windows of at most `window` tokens, special tokens counted, each with the special tokens.

    A window begins `stride` tokens of the text after the one before it (half of what fits, unless said); the last ends
    with the text. Word ids go on counting over the whole text.
    """
    if isinstance(text, tuple):
        raise BadInput("A pair of texts cannot be cut into windows: give one text.")
    if all(encoded.special):
        raise BadInput("A text of special tokens alone cannot be cut into windows.")
    before = next(place for place, quiet in enumerate(encoded.special) if not quiet)
    after = next(place for place, quiet in enumerate(reversed(encoded.special)) if not quiet)
    room = window - before - after
    if room < 1:
        raise BadInput(f"A window of {window} tokens has no room for text beside {before + after} special ones.")
    stride = max(1, room // 2) if stride is None else stride
    if not 1 <= stride <= room:
        raise BadInput(
            f"stride={stride} must be from 1 to {room}, the tokens of text in a window, or text is left out."
        )
    content = len(encoded) - before - after
    starts = list(range(0, max(content - room, 0) + stride, stride))
    ranges = [(start, min(start + room, content)) for start in starts]
    # the last two may both reach the end: then the first of them does
    ranges = [span for place, span in enumerate(ranges) if place == 0 or ranges[place - 1][1] < content]
    return [_window(encoded, text, before, after, start, end) for start, end in ranges]


def _window(encoded: Encoded, text: Text, before: int, after: int, start: int, end: int) -> Passage:
    length = len(encoded)
    kept = [*range(before), *range(before + start, before + end), *range(length - after, length)]
    offsets = None if encoded.offsets is None else tuple(encoded.offsets[place] for place in kept)
    cut = replace(
        encoded,
        inputs={name: ids[kept] for name, ids in encoded.inputs.items()},
        tokens=tuple(encoded.tokens[place] for place in kept),
        word_ids=tuple(encoded.word_ids[place] for place in kept),
        special=tuple(encoded.special[place] for place in kept),
        offsets=offsets,
    )
    return Passage(_part(text, encoded, before + start, before + end), cut, None, (start, end))


def _part(text: Text, encoded: Encoded, start: int, end: int) -> Text:
    """The part of the text that a window reads, as far as the tokenizer tells."""
    if isinstance(text, str) and encoded.offsets is not None:
        return text[encoded.offsets[start][0] : encoded.offsets[end - 1][1]]
    return " ".join(encoded.tokens[start:end])


def with_places(records: list[AttentionRecord], passages: list[Passage]) -> list[AttentionRecord]:
    """The records with the place of each in the text: `card["window"]`."""
    return [
        replace(record, card={**record.card, "window": _place(place, passage, len(passages))})
        for place, (record, passage) in enumerate(zip(records, passages, strict=True))
    ]


def _place(number: int, passage: Passage, of: int) -> dict[str, Any]:
    """Which window this is, and from where to where it reads: tokens of the text, and its characters if known."""
    assert passage.place is not None  # noqa: S101 -- windows have one
    spans = [
        span for span, quiet in zip(passage.source.offsets or (), passage.source.special, strict=False) if not quiet
    ]
    characters = [spans[0][0], spans[-1][1]] if spans else None
    return {"number": number, "of": of, "tokens": list(passage.place), "characters": characters}


# ---- batches


def windows(items: Iterable[Item], batch_size: int, bytes_of: Callable[[Item], int]) -> Iterator[list[Item]]:
    """The items in runs of one to a few batches, read as they are needed."""
    window: list[Item] = []
    held = 0
    for item in items:
        cost = bytes_of(item)
        if len(window) >= batch_size and held + cost > BYTES_AHEAD:
            yield window
            window, held = [], 0
        window.append(item)
        held += cost
        if len(window) == BATCHES_AHEAD * batch_size:
            yield window
            window, held = [], 0
    if window:
        yield window


def by_length(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Positions grouped into batches of like length."""
    order = sorted(range(len(lengths)), key=lambda position: lengths[position])
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def pad_rows(
    rows: Sequence[Int[Tensor, " _"]], padding: int
) -> tuple[Int[Tensor, "batch longest"], Int[Tensor, "batch longest"]]:
    """Rows as one batch, padded at the right, and the mask that marks what is real."""
    batch = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=padding)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True, padding_value=0)
    return batch, mask
