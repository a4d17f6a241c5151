"""A few sentences run together, as the statistics need them: padded, with masks, labels and pairs of tokens.

What depends only on the text is worked out once and serves every layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .pairs import Links, Pairs, links_of
from .reading import Null, Reading, first_counted, is_punctuation, kept_keys, kept_queries, null_keys


@dataclass(frozen=True)
class Frame:
    """What is the same for all batches of a shard: the model's size, the labels that occur, and what is null."""

    layers: int
    heads: int
    causal: bool
    null: Null
    tags: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Batch:
    """Sentences padded to one length. `exists` marks pairs of real tokens that the model may join."""

    readings: Sequence[Reading]
    frame: Frame

    @cached_property
    def lengths(self) -> Int[Tensor, " sentence"]:
        """How many tokens each sentence has."""
        return torch.tensor([len(reading) for reading in self.readings])

    @cached_property
    def longest(self) -> int:
        """The length all are padded to."""
        return int(self.lengths.max())

    @cached_property
    def real(self) -> Bool[Tensor, "sentence token"]:
        """What is not padding."""
        return torch.arange(self.longest) < self.lengths.unsqueeze(1)

    @cached_property
    def exists(self) -> Bool[Tensor, "sentence query key"]:
        """The pairs of real tokens; in a causal model those that look back."""
        pairs = self.real.unsqueeze(2) & self.real.unsqueeze(1)
        return pairs.tril() if self.frame.causal else pairs

    @cached_property
    def kept_queries(self) -> Bool[Tensor, "sentence token"]:
        """The rows that count."""
        return self._marks([kept_queries(reading, self.frame.null) for reading in self.readings])

    @cached_property
    def kept_keys(self) -> Bool[Tensor, "sentence token"]:
        """The columns that count."""
        return self._marks([kept_keys(reading, self.frame.null) for reading in self.readings])

    @cached_property
    def kept(self) -> Bool[Tensor, "sentence query key"]:
        """The pairs that count: null attention and padding left out."""
        return self.exists & self.kept_queries.unsqueeze(2) & self.kept_keys.unsqueeze(1)

    @cached_property
    def pairs_to(self) -> Int[Tensor, "sentence token"]:
        """How many rows each column gets what counts from."""
        return self.kept.sum(1)

    @cached_property
    def pairs_from(self) -> Int[Tensor, "sentence token"]:
        """How many columns each row gives what counts to."""
        return self.kept.sum(2)

    @cached_property
    def shared_alike(self) -> Float[Tensor, "sentence query key"]:
        """The map of a head that looks at everything that counts alike; a row that has nothing to look at is 0."""
        return self.kept / self.pairs_from.clamp_min(1).unsqueeze(2)

    @cached_property
    def null_keys(self) -> Bool[Tensor, "sentence token"]:
        """The columns on which null attention is measured."""
        return self._marks([null_keys(reading, self.frame.null) for reading in self.readings])

    @cached_property
    def special(self) -> Bool[Tensor, "sentence token"]:
        """The tokens that are there for the model's sake."""
        return self._marks([reading.special for reading in self.readings])

    @cached_property
    def punctuation(self) -> Bool[Tensor, "sentence token"]:
        """The tokens that are nothing but punctuation."""
        marks = [[is_punctuation(token) for token in reading.tokens] for reading in self.readings]
        return self._marks(marks) & ~self.special

    @cached_property
    def first_counted(self) -> list[int]:
        """The position from which each text is counted."""
        return [first_counted(reading, self.frame.null) for reading in self.readings]

    @cached_property
    def token_ids(self) -> Int[Tensor, "sentence token"]:
        """The ids of the tokens; -1 is padding."""
        return self._numbers([reading.token_ids for reading in self.readings], -1)

    @cached_property
    def words(self) -> Int[Tensor, "sentence token"]:
        """The word of each token; -1 for special tokens and padding."""
        return self._numbers(
            [[-1 if word is None else word for word in reading.words] for reading in self.readings], -1
        )

    @cached_property
    def tags(self) -> Int[Tensor, "sentence token"]:
        """The tag of each token's word, as a position in the frame's tags; past the last for no tag."""
        return self._labels(self.frame.tags, [reading.sentence.tags for reading in self.readings])

    @cached_property
    def relations(self) -> Int[Tensor, "sentence token"]:
        """The relation of each token's word to its head, as a position in the frame's relations."""
        return self._labels(self.frame.relations, [reading.sentence.relations for reading in self.readings])

    @cached_property
    def dependent_to_head(self) -> Bool[Tensor, "sentence query key"]:
        """The pairs in which a token attends to the head of its word."""
        heads = self._numbers(
            [
                [-1 if word is None else (reading.sentence.heads or ())[word] for word in reading.words]
                for reading in self.readings
            ],
            -1,
        )
        return (heads.unsqueeze(2) == self.words.unsqueeze(1)) & (heads >= 0).unsqueeze(2)

    @cached_property
    def links(self) -> Links:
        """The dependency links that count."""
        return links_of(self.dependent_to_head, self.kept, self.relations, len(self.frame.relations))

    @cached_property
    def same_token(self) -> Bool[Tensor, "sentence query key"]:
        """The pairs of two like tokens of the text, each token with itself too."""
        like = self.token_ids.unsqueeze(2) == self.token_ids.unsqueeze(1)
        return like & ~self.special.unsqueeze(2) & ~self.special.unsqueeze(1) & self.real.unsqueeze(1)

    @cached_property
    def repeated(self) -> Pairs:
        """The pairs of two like tokens at different positions, as far as they count."""
        elsewhere = ~torch.eye(self.longest, dtype=torch.bool)
        return Pairs.where(self.same_token & elsewhere & self.kept)

    @cached_property
    def first(self) -> Bool[Tensor, "sentence token"]:
        """The first token of each sentence."""
        return (torch.arange(self.longest) == 0).expand(len(self.readings), -1)

    @cached_property
    def induction(self) -> Pairs:
        """Each token of the text with the token behind its last occurrence, where there was one and this counts."""
        position = torch.arange(self.longest)
        last = torch.where(self.same_token.tril(-1), position, -1).amax(2)
        # not where it stands right behind itself: that would be plain attention to itself
        sentence, query = ((last >= 0) & (last + 1 < position)).nonzero(as_tuple=True)
        key = last[sentence, query] + 1
        kept = self.kept[sentence, query, key]
        return Pairs(sentence[kept], query[kept], key[kept])

    @cached_property
    def distances(self) -> tuple[Float[Tensor, "query key"], ...]:
        """How far each key stands before each query and, unless the model is causal, how far behind it."""
        position = torch.arange(self.longest, dtype=torch.float32)
        before = position.unsqueeze(1) - position
        return (before.clamp_min(0),) if self.frame.causal else (before.clamp_min(0), (-before).clamp_min(0))

    def other_queries(self, pairs: Pairs) -> Int[Tensor, " pair"]:
        """How many other tokens may look at the attended token of each pair; at least 1, to divide by."""
        return (self.pairs_to[pairs.sentence, pairs.key] - 1).clamp_min(1)

    def _labels(self, labels: Sequence[str], of_words: Sequence[Sequence[str] | None]) -> Int[Tensor, "sentence token"]:
        place = {label: position for position, label in enumerate(labels)}
        none = len(labels)
        rows = [
            [none if word is None or known is None else place[known[word]] for word in reading.words]
            for reading, known in zip(self.readings, of_words, strict=True)
        ]
        return self._numbers(rows, none)

    def _marks(self, rows: Sequence[Sequence[bool]]) -> Bool[Tensor, "sentence token"]:
        return self._numbers(rows, 0).bool()

    def _numbers(self, rows: Sequence[Sequence[int]], padding: int) -> Int[Tensor, "sentence token"]:
        filled = [[*row, *[padding] * (self.longest - len(row))] for row in rows]
        return torch.tensor(filled, dtype=torch.long)
