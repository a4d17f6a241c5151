"""VectorRecord: a record of a long text, which keeps queries and keys in place of the weights between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..numerals import in_words
from . import checks, storage
from .attention import AttentionRecord
from .schema import Count, Finite, checked, quote
from .vectors import LayerVectors, blocks, of_heads, rows

FLOAT32_BYTES = 4
ROW_TOLERANCE = 1e-2
"""What the last row of each layer may miss a sum of one by: from a model in bfloat16, whose kernel rounds."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class VectorRecord(AttentionRecord):
    """What one model did on one text, with the weights computed as they are asked for; memory grows with the tokens.

    `rows`, `blocks` and the methods that need no whole map (raw, rollout, layer-wise tracing, value-weighted and
    effective attention) give what they give on a full record. `weights` is refused, as it is what does not fit;
    `record.full()` computes it where it does.
    """

    weights: Float[Tensor, "layer head query key"] = field(init=False)
    queries: Float[Tensor, "layer head query head_width"]
    group_keys: Float[Tensor, "layer group key head_width"]
    """Key vectors after rotary embedding, one for each group of heads that share them."""
    normalizers: Float[Tensor, "layer head query"]
    """The log-sum-exp of the scores of each query: a weight is exp(score - normalizer)."""
    scaling: tuple[Finite, ...]
    score_bias: Float[Tensor, "#layer #head query key"] | None = None
    """What is added to the scores beside what `back` and `ahead` hide; one for all layers where they share it."""
    back: tuple[Count | None, ...]
    """How many tokens back a query of each layer sees; None: all."""
    ahead: tuple[Count | None, ...]
    """How many tokens ahead a query of each layer sees; None: all."""
    group_values: Float[Tensor, "layer group key value_width"] | None = None
    """Value vectors before the output projection, one for each group of heads that share them."""
    value_products: Float[Tensor, "layer head value_width value_width"] | None = None
    """W W' of each head's part W of the output projection, by which lengths behind it follow from values before it."""
    output_gradients: Float[Tensor, "layer head query value_width"] | None = None
    """The gradient at what each head puts out before the projection; at a weight it is that, times the key's value."""

    def __getattr__(self, name: str) -> Any:
        if name != "weights":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise BadInput(
            f"The attention weights of this record would take {in_words(self.weight_bytes)}: it holds queries and keys"
            " instead. Ask for record.rows(layer, head, queries) or record.blocks(layer), use a method that needs no"
            " whole map (raw, rollout, layerwise_tracing), or compute them with record.full()."
        )

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """How many layers, heads, queries and keys there are."""
        layers, heads, queries, _ = self.queries.shape
        return layers, heads, queries, self.group_keys.shape[2]

    @property
    def weight_bytes(self) -> int:
        """What the weights would take."""
        layers, heads, queries, keys = self.shape
        return layers * heads * queries * keys * FLOAT32_BYTES

    def __post_init__(self) -> None:
        for name in ("queries", "group_keys"):
            found = getattr(self, name)
            if not isinstance(found, Tensor) or found.ndim != 4:
                raise BadInput(f"{name} of a record of vectors are a tensor of layers, heads, tokens and width.")
        super().__post_init__()

    def _check_attention(self) -> None:
        self._check_shapes()
        for name in ("queries", "group_keys", "group_values", "value_products", "output_gradients"):
            checks.check_finite(name, getattr(self, name))
        for name in ("scaling", "back", "ahead"):
            checks.check_length(name, len(getattr(self, name)), self.shape[0], "layer")
        if self.causal and self.shape[2] > 1 and set(self.ahead) != {0}:
            raise BadInput("A causal record has queries that see nothing ahead, in every layer.")
        self._check_last_rows()

    def _check_shapes(self) -> None:
        heads, groups = self.shape[1], self.group_keys.shape[1]
        shared = [self.group_keys] if self.group_values is None else [self.group_keys, self.group_values]
        if any(not some.shape[1] or heads % some.shape[1] for some in shared):
            raise BadInput(f"{heads} heads cannot share the keys or values of {groups} groups evenly.")
        if self.queries.shape[-1] != self.group_keys.shape[-1]:
            raise BadInput("The queries and keys of a record of vectors are of different widths.")
        if (self.group_values is None) != (self.value_products is None):
            raise BadInput("A record of vectors has values and value_products, or neither.")
        if self.group_values is not None and self.value_products is not None:
            widths = {self.group_values.shape[-1], *self.value_products.shape[-2:]}
            if self.output_gradients is not None:
                widths.add(self.output_gradients.shape[-1])
            if len(widths) > 1:
                raise BadInput("The values, value_products and output_gradients are of different widths.")
        elif self.output_gradients is not None:
            raise BadInput("The output_gradients of a record of vectors say nothing without its values.")

    def _check_last_rows(self) -> None:
        """Rows follow from normalizers that must be those of these queries and keys: the last of each layer tells."""
        asking = [place for place in range(self.shape[2]) if not self.masked_queries[place]][-1:]
        for layer in range(self.shape[0]):
            sums = rows(self.layer(layer), asking).sum(-1)
            if self.normalizers[layer].isnan().any() or not bool(((sums - 1).abs() < ROW_TOLERANCE).all()):
                raise BadInput(
                    f"The normalizers of layer {layer} are not those of its queries and keys: rows miss one."
                )

    def layer(self, layer: int) -> LayerVectors:
        """What decides the attention of one layer, by its place."""
        place = checks.positions(layer, len(self.layers), "layer")[0]
        return LayerVectors(
            queries=self.queries[place],
            keys=self.group_keys[place],
            normalizers=self.normalizers[place],
            scaling=self.scaling[place],
            softcap=self.softcap,
            back=self.back[place],
            ahead=self.ahead[place],
            bias=None if self.score_bias is None else self.score_bias[place if len(self.score_bias) > 1 else 0],
        )

    def _rows(self, layer: int, queries: Sequence[int]) -> Float[Tensor, "head some_query key"]:
        return rows(self.layer(layer), queries)

    def _blocks(self, layer: int) -> Iterator[tuple[range, Float[Tensor, "head some_query key"]]]:
        """The same, computed as they come, with zeros where no query of a block may look."""
        for queries, seen, weights in blocks(self.layer(layer)):
            around = (seen.start, self.shape[3] - seen.stop)
            yield range(queries.start, queries.stop), torch.nn.functional.pad(weights, around)

    def _largest(self, layer: int, k: int) -> tuple[Tensor, Tensor]:
        """The same block by block: of each, only the largest are kept."""
        _, heads, queries, _ = self.shape
        values, indices = torch.zeros(heads, queries, k), torch.zeros(heads, queries, k, dtype=torch.long)
        for asking, seen, weights in blocks(self.layer(layer)):
            has_too_few = weights.shape[-1] < k
            found = rows(self.layer(layer), range(asking.start, asking.stop)) if has_too_few else weights
            values[:, asking], indices[:, asking] = found.topk(k)
            indices[:, asking] += 0 if has_too_few else seen.start
        return values, indices

    def full(self) -> AttentionRecord:
        """The record with its weights, where they fit into memory."""
        weights = torch.zeros(self.shape)
        gradients = None if self.output_gradients is None else torch.zeros(self.shape)
        for layer in range(len(self.layers)):
            for queries, keys, some in blocks(self.layer(layer)):
                weights[layer, :, queries, keys] = some
            if gradients is not None and self.output_gradients is not None and self.group_values is not None:
                values = of_heads(self.group_values[layer].float(), self.shape[1])
                gradients[layer] = self.output_gradients[layer] @ values.mT
        own = {entry.name for entry in fields(VectorRecord)} - {entry.name for entry in fields(AttentionRecord)}
        replaced = own | {"weights", "queries", "scaling", "softcap", "score_bias", "attention_gradients"}
        kept = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name not in replaced}
        return AttentionRecord(weights=weights, attention_gradients=gradients, **kept)

    @checked
    def save(self, path: str | Path, precision: storage.Precision = "float32") -> Path:
        """Write to a safetensors file, atomically, with the vectors as they are kept; `load` maps it into memory."""
        if precision != "float32":
            raise BadInput(
                'Vectors are written as they are kept: record with keep="bfloat16 vectors" for half the size.'
            )
        values = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.init}
        return storage.write_vectors(Path(path), values)

    def by(self, level: str) -> AttentionRecord:
        """Refused: attention between words or segments is a matrix too."""
        raise BadInput(
            f"A record of vectors has no weights to merge by {level}: merge the scores of a method,"
            f" scores.sum_by({quote(level)})."
        )

    def select(self, layers: Any = None, heads: Any = None) -> AttentionRecord:
        """The record of only these layers; heads share keys, and so stay together."""
        if heads is not None:
            raise BadInput("Heads of a record of vectors share keys, so they stay together: choose heads in a method.")
        kept = checks.positions(layers, len(self.layers), "layer")
        cut: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[kept]
            for name in ("queries", "group_keys", "normalizers", "group_values", "value_products", "output_gradients")
        }
        if self.score_bias is not None and len(self.score_bias) > 1:
            cut["score_bias"] = self.score_bias[kept]
        of_layers: dict[str, Any] = {name: tuple(getattr(self, name)[place] for place in kept) for name in LISTS}
        return replace(self, **cut, **of_layers)

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"


LISTS = ("layers", "scaling", "back", "ahead")
"""What has one entry for each layer."""
