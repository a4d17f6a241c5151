"""AttentionRecord: what one model did on one text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..errors import BadInput, check_number
from . import checks, sketch, stacks, storage, words
from .from_weights import distribution, kept_positions, stacked_layers
from .schema import Card, Count, Finite, Flag, Label, Numbers, Words, check_fields, checked, quote
from .segments import TokenSegments
from .target import Target
from .vectors import BLOCK

Stack = Literal["encoder", "decoder", "cross"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AttentionRecord:
    """Tokens, attention weights and read-out of one model on one text; frozen, with no model inside.

    Axes are always `layer head query key`: a row is a query (the token that attends), a column a key (the token
    attended to), layers and heads count from zero. Weights are checked on construction: finite, not negative, rows that
    sum to one within 1e-3 (1e-2 from bfloat16), and then renormalised in float32.
    """

    weights: Float[Tensor, "layer head query key"]
    query_tokens: tuple[Label, ...]
    key_tokens: tuple[Label, ...]
    stack: Stack
    causal: bool
    readout: Float[Tensor, " query"]
    """Where the model reads its answer: a distribution over the queries."""
    prediction: tuple[tuple[Label, Finite], ...] = ()
    """(label, probability) pairs, best first; for a model with a single output, its value."""

    query_word_ids: tuple[Count | None, ...] = ()
    """The word each token belongs to, unique over a pair of texts; None for special tokens. By default each token is
    one."""
    key_word_ids: tuple[Count | None, ...] = ()
    query_special: tuple[bool, ...] = ()
    """Which tokens the tokenizer put there ([CLS], [SEP], <s>, ...)."""
    key_special: tuple[bool, ...] = ()
    masked_queries: tuple[bool, ...] = ()
    """Queries that may attend to nothing, and so have rows of zeros."""
    added_tokens: Count = 0
    """How many tokens at the front are none of the text: what stands for a learned sink, or for compressed blocks of
    tokens. As queries they keep to themselves, so that what reaches them stays there."""
    grid: tuple[Count, Count] | None = None
    """The rows and columns of an image's patches, which are the last tokens."""
    layers: Numbers = ()
    """The number of each layer in the model, where only some attend or `select` has kept only some."""
    heads: Numbers = ()
    pooled: Literal["mean"] | None = None
    """"mean" where only the mean over heads was kept, as the single head 0."""

    queries: Float[Tensor, "layer head query head_width"] | None = None
    """Query vectors after rotary embedding: softmax(softcap(scaling * queries @ keys.T) + score_bias) are the
    weights."""
    keys: Float[Tensor, "layer head key head_width"] | None = None
    scaling: tuple[Finite, ...] | None = None
    softcap: Finite | None = None
    score_bias: Float[Tensor, "layer #head query key"] | None = None
    """What the model adds to its scores: position biases, and -inf where the mask hides a key."""
    encoder_weights: Float[Tensor, "encoder_layer encoder_head key key"] | None = None
    """Beside cross-attention, the source's attention to itself in the same pass; there with `decoder_weights`."""
    decoder_weights: Float[Tensor, "layer decoder_head query query"] | None = None
    """Beside cross-attention, what the decoder has read so far attending to itself: one map for each layer of
    both."""
    values: Float[Tensor, "layer head key model_width"] | None = None
    """Value vectors after the head's part of the output projection: what a key gives to what attention returns."""
    embeddings: Float[Tensor, "key embedding_width"] | None = None
    embedding_gradients: Float[Tensor, "key embedding_width"] | None = None
    attention_gradients: Float[Tensor, "layer head query key"] | None = None
    target: Target | None = None
    """What the gradients are of."""

    text: Words | tuple[Words, ...] | None = None
    segments: TokenSegments | None = None
    """Named spans of the text, level by level, and where the key tokens lie in it."""
    inputs: Mapping[Label, Int[Tensor, " _"]] = field(default_factory=dict)
    """What the model was given (`input_ids`, ...), without padding, so that a method can run it again."""
    card: Card = field(default_factory=dict)
    """Where this comes from: model and revision, dtype, attention implementation, package versions, date."""

    def __post_init__(self) -> None:
        layers, heads, queries, keys = self.shape
        self._fill("query_word_ids", tuple(range(queries)))
        self._fill("key_word_ids", self.query_word_ids if queries == keys else tuple(range(keys)))
        self._fill("query_special", (False,) * queries)
        self._fill("key_special", self.query_special if queries == keys else (False,) * keys)
        self._fill("masked_queries", (False,) * queries)
        self._fill("layers", tuple(range(layers)))
        self._fill("heads", tuple(range(heads)))
        check_fields(self, {"layer": layers, "head": heads, "query": queries, "key": keys})
        for name in ("query_tokens", "query_word_ids", "query_special", "masked_queries"):
            checks.check_length(name, len(getattr(self, name)), queries, "query")
        for name in ("key_tokens", "key_word_ids", "key_special"):
            checks.check_length(name, len(getattr(self, name)), keys, "key")
        for name, length in (("layers", layers), ("heads", heads), ("scaling", layers)):
            if getattr(self, name) is not None:
                checks.check_length(name, len(getattr(self, name)), length, name.removesuffix("s"))
        if self.segments is not None:
            checks.check_length("segments", len(self.segments.offsets), keys, "key")
        object.__setattr__(self, "readout", checks.checked_readout(self.readout))
        for name in ("queries", "keys", "values", "embeddings"):
            checks.check_finite(name, getattr(self, name))
        if self.stack != "cross" and self.query_tokens != self.key_tokens:
            raise BadInput("Queries and keys of self-attention are the same tokens; for two texts give stack='cross'.")
        self._check_attention()
        if self.encoder_weights is not None or self.decoder_weights is not None:
            stacks.check_other_stacks(self)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """How many layers, heads, queries and keys there are."""
        if not isinstance(self.weights, Tensor) or self.weights.ndim != 4:
            found = tuple(self.weights.shape) if isinstance(self.weights, Tensor) else quote(self.weights)
            raise BadInput(f"Attention weights are [layer, head, query, key]; these have the shape {found}.")
        layers, heads, queries, keys = self.weights.shape
        return layers, heads, queries, keys

    def _check_attention(self) -> None:
        """What makes weights attention; weights are float32 from here on, with rows that sum to one."""
        object.__setattr__(self, "weights", checks.checked_weights(self.weights, self.masked_queries))
        if self.causal:
            checks.check_causal(self.weights)

    def _fill(self, name: str, default: tuple[Any, ...]) -> None:
        value = getattr(self, name)
        if isinstance(value, tuple) and not value:
            object.__setattr__(self, name, default)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens, where queries and keys are the same ones."""
        return self._of_both("tokens")

    @property
    def word_ids(self) -> tuple[int | None, ...]:
        """The word each token belongs to, unique over a pair of texts; None for special tokens."""
        return self._of_both("word_ids")

    @property
    def special(self) -> tuple[bool, ...]:
        """Which tokens are special."""
        return self._of_both("special")

    def _of_both(self, name: str) -> tuple[Any, ...]:
        if self.stack == "cross":
            raise BadInput(f"A cross-attention record has two texts: ask for query_{name} or key_{name}.")
        value: tuple[Any, ...] = getattr(self, f"query_{name}")
        return value

    @classmethod
    @checked
    def from_weights(
        cls,
        attentions: Any,
        tokens: str | Sequence[str],
        causal: bool | None = None,
        *,
        key_tokens: str | Sequence[str] | None = None,
        index: int | None = None,
        attention_mask: Any = None,
        readout: Any = None,
        word_ids: Sequence[int | None] | None = None,
        special: Sequence[Flag] | None = None,
        masked_queries: Sequence[Flag] | None = None,
        card: Mapping[str, Any] | None = None,
    ) -> "AttentionRecord":
        """A record of any weights from any model (see `stacked_layers` for the forms taken).

        `tokens` are the queries, and the keys too unless `key_tokens` makes this cross-attention. `causal=None` looks
        whether any query attends ahead. `attention_mask` (1 = real) drops padding. The read-out is the last token if
        causal, else uniform, or `readout`: a position or a distribution.

        >>> AttentionRecord.from_weights([[[[1.0, 0.0], [0.5, 0.5]]]], ["so", "long"]).causal
        True

        """
        weights = stacked_layers(attentions, index).clone()  # the record is frozen, whatever becomes of what was given
        query_tokens = tuple(tokens)
        if len(query_tokens) == weights.shape[2] + 1:
            raise BadInput(
                f"There are {len(query_tokens)} tokens and {weights.shape[2]} queries: the last token generate() writes"
                " has no row, so give tokens[:-1] for its steps."
            )
        checks.check_length("tokens", len(query_tokens), weights.shape[2], "query")
        if key_tokens is None and weights.shape[2] != weights.shape[3]:
            raise BadInput(
                f"These weights have {weights.shape[2]} queries and {weights.shape[3]} keys:"
                " for cross-attention give the tokens attended to as key_tokens=."
            )
        for name, given in (("word_ids", word_ids), ("special", special), ("masked_queries", masked_queries)):
            checks.check_length(name, len(query_tokens) if given is None else len(given), len(query_tokens), "query")
        quiet = () if special is None else tuple(bool(flag) for flag in special)
        words_of = tuple(word_ids) if word_ids is not None else words.words_by_marker(query_tokens, quiet or None)
        masked = () if masked_queries is None else tuple(bool(flag) for flag in masked_queries)
        if attention_mask is not None:
            if key_tokens is not None:
                raise BadInput("attention_mask= is for self-attention; cut the padding of cross-attention off before.")
            kept = kept_positions(attention_mask, index, weights.shape[2])
            weights = weights[:, :, kept][..., kept]
            of_tokens: list[Any] = [query_tokens, words_of, quiet, masked]
            query_tokens, words_of, quiet, masked = (
                tuple(values[place] for place in kept if values) for values in of_tokens
            )
        if causal is None:
            causal = key_tokens is None and checks.looks_causal(weights)
        return cls(
            weights=weights,
            query_tokens=query_tokens,
            key_tokens=query_tokens if key_tokens is None else tuple(key_tokens),
            stack="cross" if key_tokens is not None else "decoder" if causal else "encoder",
            causal=causal,
            readout=distribution(readout, len(query_tokens), causal),
            query_word_ids=words_of,
            key_word_ids=words_of if key_tokens is None else (),
            query_special=quiet,
            key_special=quiet if key_tokens is None else (),
            masked_queries=masked,
            card=card or {"model": None},
        )

    def words(self) -> "AttentionRecord":
        """The same record at word level: sums over keys, means over queries, so rows still sum to one.

        A word is what the tokenizer calls one; special tokens stay alone and the read-out sums. Queries, keys, values,
        embeddings and gradients are dropped, as words have none. A method on `record.words()` is not `scores.words()`:
        the first computes on merged attention, the second merges computed scores.
        """
        return self.by("word")

    @checked
    def by(self, level: str) -> "AttentionRecord":
        """The same record at another level, as `words` has it: sentence, or any level of its segments.

        Segments are of the keys: a cross-attention record keeps its queries as they are then.
        """
        query_groups, query_labels = self._units("query", level)
        key_groups, key_labels = self._units("key", level)
        merged = words.merge_queries(words.merge_keys(self.weights, key_groups), query_groups, self.masked_queries)
        return type(self)(
            weights=merged,
            query_tokens=query_labels,
            key_tokens=key_labels,
            stack=self.stack,
            causal=self.causal and checks.looks_causal(merged),
            readout=words.merge_readout(self.readout, query_groups),
            prediction=self.prediction,
            query_special=tuple(self.query_special[group[0]] for group in query_groups),
            key_special=tuple(self.key_special[group[0]] for group in key_groups),
            masked_queries=tuple(all(self.masked_queries[position] for position in group) for group in query_groups),
            **stacks.merged_stacks(self, query_groups, key_groups),
            added_tokens=self.added_tokens,
            layers=self.layers,
            heads=self.heads,
            pooled=self.pooled,
            text=self.text,
            segments=None if self.segments is None else self.segments.merged(key_groups),
            card={**self.card, "level": level},
        )

    def _units(self, axis: str, level: str) -> tuple[list[list[int]], tuple[str, ...]]:
        """The positions of each unit of a level, and what it is called."""
        tokens, special, word_ids = (getattr(self, f"{axis}_{name}") for name in ("tokens", "special", "word_ids"))
        if axis == "query" and self.stack == "cross" and self.segments is not None and level in self.segments.levels:
            return words.units(tokens, special, word_ids, "token")
        return words.units(tokens, special, word_ids, level, self.segments)

    def select(self, layers: Any = None, heads: Any = None) -> "AttentionRecord":
        """The record of only these layers and heads: numbers, lists of numbers or slices, counted from either end.

        Of a record of all three stacks, what is left is cross-attention alone: parts of it cannot be joined.
        """
        layer_positions = checks.positions(layers, len(self.layers), "layer")
        head_positions = checks.positions(heads, len(self.heads), "head")

        def cut(tensor: Tensor | None) -> Tensor | None:
            if tensor is None:
                return None
            tensor = tensor[layer_positions]
            return tensor if tensor.shape[1] == 1 < len(self.heads) else tensor[:, head_positions]

        per_head = ("weights", "queries", "keys", "values", "score_bias", "attention_gradients")
        cut_fields: dict[str, Any] = {name: cut(getattr(self, name)) for name in per_head}
        return replace(
            self,
            layers=tuple(self.layers[position] for position in layer_positions),
            heads=tuple(self.heads[position] for position in head_positions),
            scaling=self.scaling and tuple(self.scaling[position] for position in layer_positions),
            encoder_weights=None,
            decoder_weights=None,
            **cut_fields,
        )

    @property
    def has_all_stacks(self) -> bool:
        """Whether this is cross-attention with the encoder's and the decoder's own beside it."""
        return self.encoder_weights is not None

    @checked
    def with_stacks(self, encoder: "AttentionRecord", decoder: "AttentionRecord") -> "AttentionRecord":
        """This record of cross-attention with the other two stacks beside it, so that methods can join all three.

        They must be of the same pass: the same source, the same tokens before the decoder, the same model.
        `model.record(text, stack="all")` takes all three at once.
        """
        return stacks.joined(self, encoder, decoder)

    @checked
    def of_stack(self, stack: Stack) -> "AttentionRecord":
        """One stack of a record that holds all three, as a record of its own, for views and methods of one stack."""
        return stacks.apart(self, stack)

    @checked
    def rows(self, layer: int, head: int, queries: int | Sequence[int] | slice) -> Float[Tensor, "some_query key"]:
        """The weights of some queries of one head over all keys; of a record of vectors as of any other."""
        place, one = checks.position(layer, len(self.layers), "layer"), checks.position(head, len(self.heads), "head")
        return self._rows(place, checks.positions(queries, self.shape[2], "query"))[one]

    def _rows(self, layer: int, queries: Sequence[int]) -> Float[Tensor, "head some_query key"]:
        return self.weights[layer][:, list(queries)]

    @checked
    def blocks(self, layer: int) -> Iterator[tuple[range, Float[Tensor, "head some_query key"]]]:
        """All weights of a layer, some queries after the other: which queries, and their weights over all keys."""
        return self._blocks(checks.position(layer, len(self.layers), "layer"))

    def _blocks(self, layer: int) -> Iterator[tuple[range, Float[Tensor, "head some_query key"]]]:
        _, heads, queries, keys = self.shape
        step = max(1, BLOCK // (heads * keys))
        for first in range(0, queries, step):
            some = range(first, min(first + step, queries))
            yield some, self.weights[layer, :, some.start : some.stop]

    @checked
    def top_keys(self, layer: int, k: int) -> tuple[Float[Tensor, "head query k"], Int[Tensor, "head query k"]]:
        """The k largest weights of each query in a layer, largest first, and the places of their keys.

        Where a query sees fewer keys, the others have the weight 0, and are any that it does not see.
        """
        place = checks.positions(layer, len(self.layers), "layer")[0]
        check_number("k", k, 1, self.shape[-1])
        return self._largest(place, k)

    def _largest(self, layer: int, k: int) -> tuple[Tensor, Tensor]:
        values, indices = self.weights[layer].topk(k)
        return values, indices

    def logits(self) -> Float[Tensor, "layer head query key"]:
        """The scores whose softmax is `weights`: softcap(scaling * queries @ keys.T) + score_bias."""
        if self.queries is None or self.keys is None or self.scaling is None:
            raise BadInput(
                "This record holds no queries and keys: take it with model.record(text, queries_and_keys=True)."
            )
        scaled = self.queries @ self.keys.transpose(-1, -2) * torch.tensor(self.scaling).reshape(-1, 1, 1, 1)
        if self.softcap is not None:
            scaled = self.softcap * torch.tanh(scaled / self.softcap)
        return scaled if self.score_bias is None else scaled + self.score_bias

    @checked
    def save(self, path: str | Path, precision: storage.Precision = "float32") -> Path:
        """Write to a safetensors file, atomically: weights as float32, float16 or uint8, everything else exactly.

        The largest error that the precision costs is measured and stored: `card["storage"]["largest_error"]` of the
        record that is loaded. A 12 x 12 x 512 x 512 record takes 38 MB as uint8.
        """
        return storage.write(Path(path), {entry.name: getattr(self, entry.name) for entry in fields(self)}, precision)

    @classmethod
    @checked
    def load(cls, path: str | Path) -> "AttentionRecord":
        """Read what `save` wrote; the file is data from anywhere, and every field of it is checked."""
        from .vector_record import VectorRecord  # which is one of these

        kind, values = storage.read(Path(path), {storage.FORMAT: AttentionRecord, storage.VECTORS: VectorRecord})
        return kind(**values)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        layers, heads, queries, keys = self.shape
        size = f"{queries} tokens" if self.stack != "cross" else f"{queries} query x {keys} key tokens"
        head_words = "head mean" if self.pooled else f"{heads} heads"
        name = self.card.get("model") or "from weights"
        answer = f", {self.prediction[0][0]!r} {self.prediction[0][1]:.3f}" if self.prediction else ""
        causal = ", causal" if self.causal else " with encoder and decoder" if self.has_all_stacks else ""
        return f"{type(self).__name__}({name}: {layers} layers x {head_words}, {size}, {self.stack}{causal}{answer})"

    def _repr_html_(self) -> str:
        return sketch.record_html(
            repr(self), self.key_tokens, self.key_special, self.weights, self.readout, self.layers
        )
