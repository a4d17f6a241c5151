"""The observer that keeps what a record needs of each layer, and cuts it into one item per text."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from ..errors import BadInput
from ..record.attention import Stack
from .families import layer_numbers, output_projection
from .watching import AttentionCall

SINK = "[sink]"
"""What stands for a learned sink among the tokens: a key of each head's own that adds nothing to what it puts out."""
BLOCKS = "[blocks]"
"""What stands for all compressed blocks of earlier tokens together (DeepSeek-V4)."""
BEYOND_TOKENS = 1e-2
"""What a query may give to positions behind the tokens by rounding alone."""
VECTOR_TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""By how much weights computed again from queries and keys, or heads put through a projection, may differ."""


def no_attention(model: PreTrainedModel, stack: Stack) -> str:
    """The sentence for a model of which nothing was seen."""
    return (
        f"{type(model).__name__} shows no attention weights in its {stack} stack: it computes none, or not where they"
        " can be read."
    )


@dataclass
class Collector:
    """Keeps the layers of one stack, in the order in which they are called."""

    model: PreTrainedModel
    stack: Stack
    mean_of_heads: bool
    queries_and_keys: bool
    values: bool
    layers: list[Float[Tensor, "batch head query key"]] = field(default_factory=list)
    sinks: list[Float[Tensor, "batch head query"] | None] = field(default_factory=list)
    modules: list[nn.Module | None] = field(default_factory=list)
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
        self.modules.append(call.module)
        self.sinks.append(call.sink)
        self.layers.append(_mean_of_heads(call.weights, call.sink) if self.mean_of_heads else call.weights)
        if not (self.queries_and_keys or self.values):
            return
        if call.query is None or call.key is None or call.value is None or call.module is None or call.scaling is None:
            raise BadInput(
                f"{self._family} does not use transformers' AttentionInterface, so its queries, keys and"
                " values cannot be read; its attention weights can."
            )
        if call.sink is not None or call.weights.shape[-1] > max(call.weights.shape[-2], call.key.shape[-2]):
            raise BadInput(
                f"{self._family} attends to more than its tokens (a learned sink or compressed blocks), which have no"
                " queries, keys and values of their own; its attention weights can be recorded."
            )
        heads = call.weights.shape[1]
        if self.queries_and_keys:
            self._keep_queries_and_keys(call, heads)
        if self.values:
            self._keep_values(call, heads)

    @property
    def _family(self) -> str:
        return type(self.model).__name__

    def _keep_queries_and_keys(self, call: AttentionCall, heads: int) -> None:
        assert call.query is not None and call.key is not None and call.scaling is not None  # noqa: S101, PT018
        self.queries.append(call.query.detach())
        self.keys.append(_per_query_head(call.key, heads).detach())
        self.scaling.append(call.scaling)
        self.softcap = call.softcap
        self.biases.append(_joined_bias(call))
        scores = self.queries[-1] @ self.keys[-1].transpose(-1, -2) * call.scaling
        scores = scores if call.softcap is None else call.softcap * torch.tanh(scores / call.softcap)
        again = (scores + self.biases[-1]).softmax(-1)
        kept = call.weights.detach()
        real = kept.sum(-1, keepdim=True) > 0
        if ((again - kept).abs() * real).max() > VECTOR_TOLERANCES.get(kept.dtype, 1e-2):
            raise BadInput(
                f"The attention weights of {self._family} do not follow from its queries and keys alone, so these"
                " cannot be recorded; its attention weights can."
            )

    def _keep_values(self, call: AttentionCall, heads: int) -> None:
        assert call.value is not None and call.module is not None and call.output is not None  # noqa: S101, PT018
        projection = output_projection(self.model, call.module)
        values, is_plain = _through_projection(projection, _per_query_head(call.value, heads).detach())
        self.projected_values.append(values)
        if not is_plain:
            self._check_sum(projection, call.weights.detach(), values)
        refuse_changed_heads(self._family, projection, call.output.detach())

    def _check_sum(
        self,
        projection: nn.Module,
        weights: Float[Tensor, "batch head query key"],
        values: Float[Tensor, "batch head key model_width"],
    ) -> None:
        """Refuse a projection of which the parts do not add up to the whole, as where it rounds what it is given."""

        def compare(_module: nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> None:
            hook.remove()
            added = torch.einsum("bhqk,bhkd->bqd", weights.to(values.dtype), values)
            with torch.no_grad():
                whole = (output - projection(torch.zeros_like(arguments[0]))).detach().reshape(added.shape)
            limit = VECTOR_TOLERANCES.get(output.dtype, 1e-2) * 10 * float(whole.norm())
            if float((added - whole).norm()) > limit:
                raise BadInput(
                    f"The output projection of {self._family} does not put out the sum of what it makes of each head,"
                    " as where it rounds what it is given, so what a value adds cannot be told; its attention weights"
                    " can be recorded."
                )

        hook = projection.register_forward_hook(compare)

    def shape(self) -> tuple[int, int]:
        """How many queries and keys the layers have."""
        if not self.layers:
            raise BadInput(no_attention(self.model, self.stack))
        return self.layers[0].shape[-2], self.layers[0].shape[-1]

    def item(self, index: int, queries: int, keys: int) -> dict[str, Any]:
        """The fields of the record of one text, padding cut off."""
        self.shape()
        if any(layer.shape[-2] < queries or layer.shape[-1] < keys for layer in self.layers):
            raise BadInput(
                f"The attention of {self._family} is not a whole query x key matrix (it is local, pooled"
                " or sparse), so it cannot be recorded."
            )
        self._check_tokens(index, queries, keys)
        if len({layer.shape[1] for layer in self.layers}) > 1:
            counts = sorted({layer.shape[1] for layer in self.layers})
            raise BadInput(
                f"The layers of {self._family} have different numbers of heads ({', '.join(map(str, counts))}), so they"
                ' do not fit one record: take it with heads="mean".'
            )

        def maps(layers: Sequence[Tensor]) -> Tensor:
            return torch.stack([layer[index, :, :queries, :keys].detach() for layer in layers]).cpu()

        def vectors(layers: Sequence[Tensor], length: int) -> Tensor | None:
            # heads that are wider in some layers: zeros behind the narrower ones leave every product as it is
            widest = max((layer.shape[-1] for layer in layers), default=0)
            wide = [
                layer[index]
                if layer.shape[-1] == widest
                else torch.nn.functional.pad(layer[index], (0, widest - layer.shape[-1]))
                for layer in layers
            ]
            return torch.stack([layer[:, :length].detach() for layer in wide]).float().cpu() if wide else None

        bias = None
        if self.biases:
            bias = maps(self.biases)
            bias = bias.float().masked_fill(bias <= torch.finfo(bias.dtype).min / 2, -torch.inf)
        added = self._beside_tokens(index, queries)
        weights = maps(self.layers)
        return {
            "weights": with_leading_keys(weights, list(added.values())) if added else weights,
            "leading": tuple(added),
            "layers": layer_numbers(self.model, self.modules),
            "score_bias": bias,
            "scaling": tuple(self.scaling) or None,
            "softcap": self.softcap,
            "queries": vectors(self.queries, queries),
            "keys": vectors(self.keys, keys),
            "values": vectors(self.projected_values, keys),
        }

    def joinable(self, index: int, tokens: int, layers: int) -> Float[Tensor, "layer head token token"]:
        """The weights of one text beside so many layers of cross-attention, which a decoder has as many of."""
        found = self.item(index, tokens, tokens)
        if found["leading"]:
            raise BadInput(
                f"The {self.stack} of {self._family} attends to more than its tokens (a learned sink), so its stacks"
                " cannot be joined: record one of them."
            )
        weights: Tensor = found["weights"]
        if self.stack == "decoder" and len(weights) != layers:
            raise BadInput(
                f"The decoder of {self._family} has {len(weights)} layers that attend to itself and {layers} that"
                " attend to the source, so its stacks cannot be joined: record one of them."
            )
        return weights

    def _check_tokens(self, index: int, queries: int, keys: int) -> None:
        """Refuse layers that attend to positions of their own, as those that fill a canvas behind the text do."""
        lengths = sorted({layer.shape[-1] for layer in self.layers})
        if len(lengths) == 1 or self._has_blocks:
            return
        for number, layer in enumerate(self.layers):
            beyond = layer[index, :, :queries, keys:].detach().float().sum(-1)
            if (beyond > BEYOND_TOKENS).any():
                raise BadInput(
                    f"The layers of {self._family} attend over different numbers of positions"
                    f" ({', '.join(map(str, lengths))}): layer {number} also to positions that are no tokens of the"
                    " text, such as a canvas that is still to be written, so they do not fit one record."
                )

    @property
    def _has_blocks(self) -> bool:
        return any(getattr(module, "compressor", None) is not None for module in self.modules)

    def _beside_tokens(self, index: int, queries: int) -> dict[str, Float[Tensor, "layer head query"]]:
        """What each query gives to what is no token: a learned sink, compressed blocks of tokens."""
        added: dict[str, Tensor] = {}
        if any(sink is not None for sink in self.sinks):
            of_layers = [
                layer.new_zeros(layer.shape[:-1]) if sink is None else sink.detach()
                for sink, layer in zip(self.sinks, self.layers, strict=True)
            ]
            of_layers = [_mean(sink) if self.mean_of_heads else sink for sink in of_layers]
            added[SINK] = torch.stack([sink[index, :, :queries].cpu() for sink in of_layers])
        tokens = min(layer.shape[-1] for layer in self.layers)
        if self._has_blocks:
            sums = [layer[index, :, :queries, tokens:].detach().sum(-1).cpu() for layer in self.layers]
            added[BLOCKS] = torch.stack(sums)
        return added


def with_leading_keys(
    weights: Float[Tensor, "layer head query key"], added: Sequence[Float[Tensor, "layer head query"]]
) -> Float[Tensor, "layer head more_queries more_keys"]:
    """The weights with keys in front that are no tokens, and that, as queries, keep to themselves."""
    count = len(added)
    whole = weights.new_zeros(*weights.shape[:2], weights.shape[2] + count, weights.shape[3] + count)
    whole[..., count:, count:] = weights
    for place, column in enumerate(added):
        whole[..., count:, place] = column
        whole[..., place, place] = 1.0
    return whole


def _mean(sink: Float[Tensor, "batch head query"]) -> Float[Tensor, "batch 1 query"]:
    return sink.float().mean(1, keepdim=True)


def _mean_of_heads(
    weights: Float[Tensor, "batch head query key"], sink: Float[Tensor, "batch head query"] | None
) -> Float[Tensor, "batch 1 query key"]:
    """The mean over heads in float32, of rows brought to one first: in bfloat16 each misses it by a little."""
    weights = weights.float()
    sums = weights.sum(-1, keepdim=True) + (0 if sink is None else sink.float().unsqueeze(-1))
    return (weights / sums.masked_fill(sums == 0, 1.0)).mean(1, keepdim=True)


def _per_query_head(
    vectors: Float[Tensor, "batch kv_head key width"], heads: int
) -> Float[Tensor, "batch head key width"]:
    """Grouped queries share a key head: repeat it for each of its query heads."""
    return vectors.repeat_interleave(heads // vectors.shape[1], dim=1)


def refuse_changed_heads(family: str, projection: nn.Module, output: Float[Tensor, "batch query head width"]) -> None:
    """Refuse, when its projection is called, a layer that changes what its heads put out before it."""
    joined = output.flatten(2)

    def compare(_module: nn.Module, arguments: tuple[Tensor, ...]) -> None:
        hook.remove()
        given = arguments[0].detach().reshape(joined.shape) if arguments[0].numel() == joined.numel() else None
        limit = VECTOR_TOLERANCES.get(joined.dtype, 1e-2) * float(joined.abs().max())
        if given is None or (given - joined).abs().max() > limit:
            raise BadInput(
                f"{family} changes what its heads put out before the output projection (by a gate, a norm or a"
                " subtraction), so what a value adds cannot be told; its attention weights can be recorded."
            )

    hook = projection.register_forward_pre_hook(compare)


def _plain_matrix(projection: nn.Module) -> Float[Tensor, "heads_and_width model_width"] | None:
    """The matrix of a projection that is nothing else, as what it is given is multiplied by it."""
    weight = getattr(projection, "weight", None)
    plain = type(projection) in (nn.Linear, Conv1D) and type(weight) is nn.Parameter and weight.device.type != "meta"
    if not plain or not isinstance(weight, Tensor):
        return None
    return weight.detach() if type(projection) is Conv1D else weight.detach().T


def head_matrices(family: str, projection: nn.Module, heads: int) -> Float[Tensor, "head width model_width"]:
    """Each head's part of the output projection."""
    matrix = _plain_matrix(projection)
    if matrix is None:
        raise BadInput(
            f"The output projection of {family} is no plain matrix (it is quantised, offloaded or adapted), so values"
            ' cannot be kept before it: record it with keep="weights".'
        )
    return matrix.reshape(heads, -1, matrix.shape[-1]).float()


def _through_projection(
    projection: nn.Module, values: Float[Tensor, "batch head key width"]
) -> tuple[Float[Tensor, "batch head key model_width"], bool]:
    """What each head's value adds behind the output projection, its bias left out; whether by its plain matrix."""
    batch, heads, keys, width = values.shape
    matrix = _plain_matrix(projection)
    if matrix is not None:
        return values @ matrix.reshape(heads, width, -1), True
    # adapters, quantised and offloaded weights: only the module itself knows what it does, head by head
    nothing = values.new_zeros(1, 1, heads * width)
    alone = values.new_zeros(heads, batch, keys, heads, width)
    for head in range(heads):
        alone[head, :, :, head] = values[:, head]
    with torch.no_grad():
        added = projection(alone.reshape(heads * batch, keys, heads * width)) - projection(nothing)
    return added.reshape(heads, batch, keys, -1).transpose(0, 1), False


def _joined_bias(call: AttentionCall) -> Float[Tensor, "batch some_heads query key"]:
    batch, _, queries, keys = call.weights.shape
    heads = max((bias.shape[1] for bias in call.biases), default=1)
    joined = call.weights.new_zeros(batch, heads, queries, keys)
    lowest = torch.finfo(joined.dtype).min
    for bias in call.biases:
        # masks hold the lowest finite number: two of them must not add up to -inf before they are parted from biases
        joined = (joined + bias[..., :keys].detach()).clamp_min(lowest)
    return joined
