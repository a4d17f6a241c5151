"""The observer that keeps what a record needs of each layer, and cuts it into one item per text."""

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from ..errors import BadInput
from ..record.attention import Stack
from .families import output_projection
from .watching import AttentionCall


@dataclass
class Collector:
    """Keeps the layers of one stack, in the order in which they are called."""

    model: PreTrainedModel
    stack: Stack
    mean_of_heads: bool
    queries_and_keys: bool
    values: bool
    layers: list[Float[Tensor, "batch head query key"]] = field(default_factory=list)
    queries: list[Float[Tensor, "batch head query head_width"]] = field(default_factory=list)
    keys: list[Float[Tensor, "batch head key head_width"]] = field(default_factory=list)
    projected_values: list[Float[Tensor, "batch head key model_width"]] = field(default_factory=list)
    scaling: list[float] = field(default_factory=list)
    softcap: float | None = None
    biases: list[Float[Tensor, "batch some_heads query key"]] = field(default_factory=list)

    def __call__(self, call: AttentionCall) -> None:
        """Keep one layer."""
        if call.stack != self.stack:
            return
        if getattr(call.module, "sinks", None) is not None:
            raise BadInput(
                f"{type(self.model).__name__} has learned sinks that take attention from the text, so its rows do not"
                " sum to one and cannot be recorded."
            )
        self.layers.append(_mean_of_heads(call.weights) if self.mean_of_heads else call.weights)
        if not (self.queries_and_keys or self.values):
            return
        if call.query is None or call.key is None or call.value is None or call.module is None or call.scaling is None:
            raise BadInput(
                f"{type(self.model).__name__} does not use transformers' AttentionInterface, so its queries, keys and"
                " values cannot be read; its attention weights can."
            )
        heads = call.weights.shape[1]
        if self.queries_and_keys:
            self.queries.append(call.query.detach())
            self.keys.append(_per_query_head(call.key, heads).detach())
            self.scaling.append(call.scaling)
            self.softcap = call.softcap
            self.biases.append(_joined_bias(call))
        if self.values:
            projection = output_projection(self.model, call.module).detach()
            per_head = projection.reshape(heads, -1, projection.shape[-1])
            self.projected_values.append(_per_query_head(call.value, heads).detach() @ per_head)

    def item(self, index: int, queries: int, keys: int) -> dict[str, Any]:
        """The fields of the record of one text, padding cut off."""
        if not self.layers:
            raise BadInput(f"{type(self.model).__name__} computed no attention in its {self.stack} stack.")
        if any(layer.shape[-2] < queries or layer.shape[-1] < keys for layer in self.layers):
            raise BadInput(
                f"The attention of {type(self.model).__name__} is not a whole query x key matrix (it is local, pooled"
                " or sparse), so it cannot be recorded."
            )

        def cut(layers: list[Tensor], *lengths: int) -> Tensor | None:
            if not layers:
                return None
            window = (slice(None), *(slice(length) for length in lengths))
            return torch.stack([layer[index][window].detach() for layer in layers]).cpu()

        vectors = {
            "queries": cut(self.queries, queries),
            "keys": cut(self.keys, keys),
            "values": cut(self.projected_values, keys),
        }
        bias = cut(self.biases, queries, keys)
        if bias is not None:
            lowest = torch.finfo(bias.dtype).min
            bias = bias.float().masked_fill(bias <= lowest / 2, -torch.inf)
        return {
            "weights": cut(self.layers, queries, keys),
            "score_bias": bias,
            "scaling": tuple(self.scaling) or None,
            "softcap": self.softcap,
            **{name: None if tensor is None else tensor.float() for name, tensor in vectors.items()},
        }


def _mean_of_heads(weights: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch 1 query key"]:
    """The mean over heads in float32, of rows brought to one first: in bfloat16 each misses it by a little."""
    weights = weights.float()
    sums = weights.sum(-1, keepdim=True)
    return (weights / sums.masked_fill(sums == 0, 1.0)).mean(1, keepdim=True)


def _per_query_head(
    vectors: Float[Tensor, "batch kv_head key width"], heads: int
) -> Float[Tensor, "batch head key width"]:
    """Grouped queries share a key head: repeat it for each of its query heads."""
    return vectors.repeat_interleave(heads // vectors.shape[1], dim=1)


def _joined_bias(call: AttentionCall) -> Float[Tensor, "batch some_heads query key"]:
    batch, _, queries, keys = call.weights.shape
    heads = max((bias.shape[1] for bias in call.biases), default=1)
    joined = call.weights.new_zeros(batch, heads, queries, keys)
    lowest = torch.finfo(joined.dtype).min
    for bias in call.biases:
        # masks hold the lowest finite number: two of them must not add up to -inf before they are told from biases
        joined = (joined + bias[..., :keys].detach()).clamp_min(lowest)
    return joined
