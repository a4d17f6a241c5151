"""A few sentences run together, as the statistics need them: padded, with masks, labels and pairs of tokens.

What depends only on the text is worked out once and serves every layer. Of a long text a batch holds some queries only,
since what is known of all its pairs together would be as large as a map of attention.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Literal, cast, get_args

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from ..errors import BadInput
from ..syntax import Sentence

# A sentence as a model reads it: its tokens, and what is known of the word each token belongs to.


@dataclass(frozen=True)
class Reading:
    """One sentence in tokens; every piece of a word takes the word's tag, head and relation."""

    place: int
    """Where it stands in the corpus: later sentences have greater places."""
    sentence: Sentence
    token_ids: tuple[int, ...]
    tokens: tuple[str, ...]
    """The tokens as a person reads them."""
    special: tuple[bool, ...]
    words: tuple[int | None, ...]
    """The word of each token, as a position in the sentence; None for special tokens."""
    sinks: tuple[int, ...] = ()
    """The positions of tokens that many heads rest on, where the rule "sinks" has looked for them."""

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def leading_special(self) -> int:
        """How many special tokens stand before the text."""
        return next((position for position, special in enumerate(self.special) if not special), len(self))

    def cut(self, length: int) -> "Reading":
        """Only the first tokens; for a causal model they are attended to as in the whole."""
        return replace(
            self,
            token_ids=self.token_ids[:length],
            tokens=self.tokens[:length],
            special=self.special[:length],
            words=self.words[:length],
            sinks=tuple(position for position in self.sinks if position < length),
        )


def is_punctuation(token: str) -> bool:
    """Whether a token is nothing but punctuation.

    >>> [is_punctuation(token) for token in (" ,", "...", " a.", "")]
    [True, True, False, False]
    """
    return bool(token.strip()) and all(unicodedata.category(letter).startswith("P") for letter in token.strip())


# Null attention: which rows and columns are left out because heads rest there when they look for nothing.
# Vig & Belinkov 2019 (section 5.2.3) leave out the first token of GPT-2. Bidirectional models rest on their special
# tokens instead, and a model may have other sinks, which "sinks" looks for in every sentence (sinks.py): so the rule is
# a choice.


NullRule = Literal["first", "special", "sinks", "none"]
Null = NullRule | tuple[int, ...]


def checked_null(null: object) -> Null:
    """The rule as given: a name, or positions of columns to leave out (negative ones count from the end)."""
    if isinstance(null, str):
        if null in get_args(NullRule):
            return cast("NullRule", null)
    elif isinstance(null, Sequence) and all(isinstance(position, Integral) for position in null) and null:
        return tuple(int(position) for position in null)
    raise BadInput(f"null is {', '.join(get_args(NullRule))} or a list of positions, not {null!r}.")


def kept_queries(reading: Reading, null: Null) -> list[bool]:
    """The rows that count: all, but for special tokens where these are null."""
    return [null not in ("special", "sinks") or not special for special in reading.special]


def kept_keys(reading: Reading, null: Null) -> list[bool]:
    """The columns that count."""
    return [True] * len(reading) if null == "none" else [not is_null for is_null in null_keys(reading, null)]


def null_keys(reading: Reading, null: Null) -> list[bool]:
    """The columns that null attention is measured on; without a rule, the first token."""
    if null == "special":
        return list(reading.special)
    if null == "sinks":
        return [special or place in reading.sinks for place, special in enumerate(reading.special)]
    positions = (0,) if isinstance(null, str) else null
    within = {position % len(reading) for position in positions if -len(reading) <= position < len(reading)}
    return [position in within for position in range(len(reading))]


def first_counted(reading: Reading, null: Null) -> int:
    """The position from which a text is counted: behind the leading special tokens where these are null."""
    return reading.leading_special if null in ("special", "sinks") else 0


# Pairs of an attending and an attended token: as such, and linked by a dependency.


DEPENDENT_TO_HEAD, HEAD_TO_DEPENDENT, EITHER = "dependent_to_head", "head_to_dependent", "either"
DIRECTIONS = (DEPENDENT_TO_HEAD, HEAD_TO_DEPENDENT, EITHER)
"""From the attending token to the attended one: the attended is the parent, the attending is, or one of the two."""
ANY = "any"
"""Stands for all relations together."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of tokens in the sentences of a batch."""

    sentence: Int[Tensor, " pair"]
    query: Int[Tensor, " pair"]
    key: Int[Tensor, " pair"]

    @classmethod
    def where(cls, mask: Bool[Tensor, "sentence query key"]) -> "Pairs":
        """The pairs that a mask marks."""
        return cls(*mask.nonzero(as_tuple=True))

    def __len__(self) -> int:
        return len(self.sentence)


@dataclass(frozen=True, eq=False)
class Links:
    """The linked pairs of both directions, each with its label: a position in `link_labels`.

    The askers are the tokens that have a link of some label, once for each. Every link has three labels more, for its
    relation in either direction, its direction with any relation, and for both.
    """

    pairs: Pairs
    labels: Int[Tensor, " pair"]
    asking_sentence: Int[Tensor, " asker"]
    asking_query: Int[Tensor, " asker"]
    asking_label: Int[Tensor, " asker"]


def link_labels(relations: Sequence[str]) -> list[tuple[str, str]]:
    """Every direction with every relation, and with any."""
    return [(direction, relation) for direction in DIRECTIONS for relation in (ANY, *relations)]


def links_of(
    to_head: Pairs, to_dependent: Pairs, relation: Int[Tensor, " pair"], relation_count: int, queries: int
) -> Links:
    """The links of some pairs, those to heads before those to dependents, with the relation of each."""
    width = 1 + relation_count
    direction = torch.cat([torch.zeros(len(to_head)), torch.ones(len(to_dependent))]).long() * width
    either = torch.full_like(direction, DIRECTIONS.index(EITHER) * width)
    all_labels = torch.cat([direction, direction + 1 + relation, either, either + 1 + relation])
    pairs = Pairs(
        torch.cat([to_head.sentence, to_dependent.sentence]),
        torch.cat([to_head.query, to_dependent.query]),
        torch.cat([to_head.key, to_dependent.key]),
    )
    # each asker as one number, since those are found once much faster than columns are
    count = len(DIRECTIONS) * width
    askers = (((pairs.sentence * queries + pairs.query) * count).repeat(4) + all_labels).unique()
    return Links(pairs, direction + 1 + relation, askers // count // queries, askers // count % queries, askers % count)


def wider_labels(labels: Sequence[tuple[str, str]]) -> Float64[Tensor, "label narrow"]:
    """Which labels of single links each label covers: either covers both directions, any all relations."""
    covers = [
        [direction in (EITHER, own) and relation in (ANY, of_link) for own, of_link in labels]
        for direction, relation in labels
    ]
    narrow = torch.tensor([own != EITHER and of_link != ANY for own, of_link in labels])
    return (torch.tensor(covers) & narrow).double()


@dataclass(frozen=True)
class Frame:
    """What is the same for all batches of a shard: the model's size, the labels that occur, and what is null."""

    layers: int
    heads: int
    causal: bool
    null: Null
    tags: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()


OF_TOKENS = (
    "real",
    "kept_queries",
    "kept_keys",
    "null_keys",
    "special",
    "punctuation",
    "token_ids",
    "words",
    "head_words",
    "tags",
    "relations",
)
"""What a batch knows of each token."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Sentences padded to one length. `exists` marks pairs of real tokens that the model may join."""

    readings: Sequence[Reading]
    frame: Frame
    chosen: tuple[int, int] | None = None
    """Where the queries that are looked at begin and end; None: all of them."""

    def block(self, first: int, last: int) -> "Batch":
        """Some queries of a single text, with all keys that they may see; pairs count queries from the first of them.

        What is known of tokens is handed on, since a text has many blocks.
        """
        keys = last if self.frame.causal else self.longest
        part = Batch(self.readings, self.frame, (first, last))
        known = {name: getattr(self, name)[:, :keys] for name in OF_TOKENS}
        vars(part).update(known, lengths=self.lengths, longest=keys)
        return part

    @cached_property
    def queries(self) -> slice:
        """The queries that are looked at."""
        return slice(0, self.longest) if self.chosen is None else slice(*self.chosen)

    def at_queries(self, of_tokens: Tensor) -> Tensor:
        """What is known of tokens, of the queries alone."""
        return of_tokens[:, self.queries]

    @cached_property
    def ahead(self) -> Int[Tensor, "query key"]:
        """How far behind each query each key stands: the place of the key less that of the query."""
        return torch.arange(self.longest) - torch.arange(self.queries.start, self.queries.stop).unsqueeze(1)

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
        pairs = self.at_queries(self.real).unsqueeze(2) & self.real.unsqueeze(1)
        return pairs.tril(self.queries.start) if self.frame.causal else pairs

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
        return self.exists & self.at_queries(self.kept_queries).unsqueeze(2) & self.kept_keys.unsqueeze(1)

    @cached_property
    def pairs_to(self) -> Int[Tensor, "sentence key"]:
        """How many rows each column gets what counts from: sums of `kept`, for which no map of pairs is needed."""
        asking = torch.zeros_like(self.kept_queries, dtype=torch.long)
        asking[:, self.queries] = self.at_queries(self.kept_queries).long()
        seen_by = asking.flip(1).cumsum(1).flip(1) if self.frame.causal else asking.sum(1, keepdim=True)
        return seen_by * self.kept_keys

    @cached_property
    def pairs_from(self) -> Int[Tensor, "sentence query"]:
        """How many columns each row gives what counts to."""
        keys = self.kept_keys.long()
        seen = self.at_queries(keys.cumsum(1)) if self.frame.causal else keys.sum(1, keepdim=True)
        return seen * self.at_queries(self.kept_queries)

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
    def head_words(self) -> Int[Tensor, "sentence token"]:
        """The head of each token's word; -1 for roots, and where none is known."""
        rows = [
            [-1 if word is None or reading.sentence.heads is None else reading.sentence.heads[word] for word in words]
            for reading, words in ((reading, reading.words) for reading in self.readings)
        ]
        return self._numbers(rows, -1)

    @cached_property
    def dependent_to_head(self) -> Bool[Tensor, "sentence query key"]:
        """The pairs in which a token attends to the head of its word."""
        heads = self.at_queries(self.head_words).unsqueeze(2)
        return (heads == self.words.unsqueeze(1)) & (heads >= 0)

    @cached_property
    def head_to_dependent(self) -> Bool[Tensor, "sentence query key"]:
        """The pairs in which a token attends to a dependent of its word."""
        heads = self.head_words.unsqueeze(1)
        return (heads == self.at_queries(self.words).unsqueeze(2)) & (heads >= 0)

    @cached_property
    def links(self) -> Links:
        """The dependency links that count."""
        to_head, to_dependent = (
            Pairs.where(mask & self.kept) for mask in (self.dependent_to_head, self.head_to_dependent)
        )
        of_dependents = self.at_queries(self.relations)[to_head.sentence, to_head.query]
        relation = torch.cat([of_dependents, self.relations[to_dependent.sentence, to_dependent.key]])
        return links_of(to_head, to_dependent, relation, len(self.frame.relations), self.kept.shape[1])

    @cached_property
    def same_token(self) -> Bool[Tensor, "sentence query key"]:
        """The pairs of two like tokens of the text, each token with itself too."""
        like = self.at_queries(self.token_ids).unsqueeze(2) == self.token_ids.unsqueeze(1)
        plain = self.real & ~self.special
        return like & ~self.at_queries(self.special).unsqueeze(2) & plain.unsqueeze(1)

    @cached_property
    def repeated(self) -> Pairs:
        """The pairs of two like tokens at different positions, as far as they count."""
        return Pairs.where(self.same_token & (self.ahead != 0) & self.kept)

    @cached_property
    def first(self) -> Bool[Tensor, "sentence token"]:
        """The first token of each sentence."""
        return (torch.arange(self.longest) == 0).expand(len(self.readings), -1)

    @cached_property
    def induction(self) -> Pairs:
        """Each token of the text with the token behind its last occurrence, where there was one and this counts."""
        position = torch.arange(self.longest)
        start = self.queries.start
        last = torch.where(self.same_token.tril(start - 1), position, -1).amax(2)
        # not where it stands right behind itself: that would be plain attention to itself
        sentence, query = ((last >= 0) & (last + 1 < position[self.queries])).nonzero(as_tuple=True)
        key = last[sentence, query] + 1
        kept = self.kept[sentence, query, key]
        return Pairs(sentence[kept], query[kept], key[kept])

    @cached_property
    def distances(self) -> tuple[Float[Tensor, "query key"], ...]:
        """How far each key stands before each query and, unless the model is causal, how far behind it."""
        before = (-self.ahead).float()
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
