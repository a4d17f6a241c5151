"""Queries and keys in place of weights: a model is watched while it runs fused attention, as it does by itself.

For the thread that watches, every configuration says `sdpa`, so that a causal mask is a word and no matrix. What a
module then asks for is our function: the same attention, by the same fused kernel, which also gives the log-sum-exp of
each query's scores. Soft caps, sliding windows and position biases, which the kernel does not know, go block by block.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from ..errors import BadInput
from ..numerals import in_words
from ..record.attention import Stack
from ..record.vectors import (
    LayerVectors,
    blocks,
    fused_attention,
    normalizers_of,
    of_heads,
    rows,
    scores_of_block,
    spans,
)
from .collect import VECTOR_TOLERANCES, head_matrices, no_attention, refuse_changed_heads
from .families import layer_numbers, output_projection, stacks_of
from .memory import FLOAT32_BYTES
from .watching import Watch, on_interface, watched

SAMPLED = 4
"""Of so many queries of each layer, the row that queries and keys give is compared with what the layer put out."""
LARGEST_MASK = 2**22
"""How many entries of a mask are looked at together."""


@dataclass(frozen=True)
class VectorCall:
    """One layer's attention on one text, as the model computed it."""

    stack: Stack
    module: nn.Module
    layer: LayerVectors
    value: Float[Tensor, "group key value_width"]
    output: Float[Tensor, "query head value_width"]
    """With the way back of a gradient, where one is wanted."""


@contextmanager
def watch_vectors(model: PreTrainedModel, observer: Any) -> Iterator[PreTrainedModel]:
    """Within this, the model runs on one text and shows the vectors of each layer to the observer."""
    if not on_interface(model):
        raise BadInput(
            f"{type(model).__name__} does not use transformers' AttentionInterface, so its queries and keys cannot be"
            ' kept: record it with keep="weights", a long text with heads="mean" or window=, or have model.stream show'
            " its layers one by one."
        )
    with watched(model, Watch(observer, stacks_of(model), implementation="sdpa", attend=_attend)):
        yield model


def _attend(
    watch: Watch,
    plain: Any,
    module: nn.Module,
    query: Float[Tensor, "batch head query head_width"],
    key: Float[Tensor, "batch group key head_width"],
    value: Float[Tensor, "batch group key value_width"],
    attention_mask: Tensor | None,
    *arguments: Any,
    **options: Any,
) -> tuple[Float[Tensor, "batch query head value_width"], None]:
    """The attention that a module asks for, with the log-sum-exp of each query's scores shown to the observer."""
    if not watch.looks_at(module):
        output, _ = plain(module, query, key, value, attention_mask, *arguments, **options)
        return output, None
    if isinstance(getattr(module, "sinks", None), Tensor):
        raise BadInput(
            f"{type(module).__name__} has learned sinks beside its keys, so queries and keys alone do not give its"
            f" weights, {in_words(query.shape[1] * query.shape[2] * key.shape[2] * FLOAT32_BYTES)} for each layer here:"
            ' record it with keep="weights", a long text with heads="mean" or window=, or have model.stream show its'
            " layers one by one."
        )
    scaling = query.shape[-1] ** -0.5 if options.get("scaling") is None else float(options["scaling"])
    is_causal = options.get("is_causal")
    is_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    back, ahead, bias = _visible(attention_mask, options.get("position_bias"), query.shape[2] > 1 and bool(is_causal))
    vectors = LayerVectors(
        queries=query[0],
        keys=key[0],
        normalizers=query.new_zeros(query.shape[1:3], dtype=torch.float32),
        scaling=scaling,
        softcap=options.get("softcap"),
        back=back,
        ahead=ahead,
        bias=bias,
    )
    output, normalizers = _attended(vectors, value[0])
    vectors = replace(
        vectors,
        queries=query[0].detach(),
        keys=key[0].detach(),
        normalizers=normalizers.detach(),
        bias=None if bias is None else bias.detach(),
    )
    if watch.observer is not None and watch.is_new(module, query, key):
        shown: Any = VectorCall(watch.stacks[module], module, vectors, value[0].detach(), output)
        watch.observer(shown)
    return output[None].to(query.dtype), None


def _attended(
    layer: LayerVectors, value: Float[Tensor, "group key value_width"]
) -> tuple[Float[Tensor, "query head value_width"], Float[Tensor, "head query"]]:
    """What attention puts out, and the log-sum-exp of each query's scores; a gradient finds its way back through it."""
    heads, width = layer.shape[0], value.shape[-1]
    if layer.is_plain and value.device.type == "cpu" and width <= layer.keys.shape[-1]:
        given, asked = torch.nn.functional.pad(value, (0, layer.keys.shape[-1] - width)), layer.keys
        if torch.is_grad_enabled():  # on its way back the kernel knows no groups
            given, asked = of_heads(given, heads), of_heads(asked, heads)
        output, normalizers = fused_attention(layer.queries, asked, given, layer.ahead == 0, layer.scaling)
        return output[..., :width].transpose(0, 1).contiguous(), normalizers.float()
    given = of_heads(value.float(), heads)
    if torch.is_grad_enabled():
        parts = [
            checkpoint(_attended_block, layer, given, queries, keys, use_reentrant=False)
            for queries, keys in spans(layer)
        ]
        with torch.no_grad():
            normalizers = normalizers_of(layer)
    else:
        normalizers = normalizers_of(layer)
        parts = [weights @ given[:, keys] for _, keys, weights in blocks(replace(layer, normalizers=normalizers))]
    return torch.cat(parts, 1).transpose(0, 1).contiguous(), normalizers


def _attended_block(
    layer: LayerVectors, given: Float[Tensor, "head key value_width"], queries: slice, keys: slice
) -> Float[Tensor, "head some_query value_width"]:
    """What attention puts out for some queries; computed again on the way back, so that no weights are kept for it."""
    return scores_of_block(layer, queries, keys).softmax(-1) @ given[:, keys]


# ---- what a mask hides, in as few numbers as it takes


def _visible(
    mask: Tensor | None, position_bias: Tensor | None, is_causal: bool
) -> tuple[int | None, int | None, Float[Tensor, "#head query key"] | None]:
    """How far back and ahead queries see, and what else is added to their scores."""
    back, ahead, bias = None, 0 if mask is None and is_causal else None, None
    if mask is not None and mask.dtype == torch.bool:
        found = _band(mask[0, 0]) if mask.shape[1] == 1 else None
        if found is None:
            bias = torch.zeros(mask.shape[1:]).masked_fill_(~mask[0], -torch.inf)
        else:
            back, ahead = found
    elif mask is not None:
        bias = mask[0].float()
        bias = bias.masked_fill(bias <= torch.finfo(mask.dtype).min / 2, -torch.inf)
    if position_bias is not None:
        bias = position_bias[0].float() if bias is None else bias + position_bias[0].float()
    return back, ahead, bias


def _band(visible: Bool[Tensor, "query key"]) -> tuple[int | None, int | None] | None:
    """How far back and ahead all queries see, None for no end; None where they see anything but one such band."""
    queries, keys = visible.shape
    step = max(1, LARGEST_MASK // keys)
    firsts = torch.cat([some.int().argmax(-1) for some in visible.split(step)])
    counts = torch.cat([some.sum(-1) for some in visible.split(step)])
    lasts = torch.cat([keys - 1 - some.flip(-1).int().argmax(-1) for some in visible.split(step)])
    places = torch.arange(queries, device=visible.device)
    back, ahead = int((places - firsts).max()), int((lasts - places).max())
    whole = (
        (counts == lasts - firsts + 1)
        & (firsts == (places - back).clamp_min(0))
        & (lasts == (places + ahead).clamp_max(keys - 1))
    )
    if back < 0 or ahead < 0 or not bool(whole.all()):
        return None
    return (back if back < queries - 1 else None), (ahead if ahead < keys - 1 or ahead == 0 else None)


def follows_from_vectors(call: VectorCall) -> bool:
    """Whether the vectors of a layer give what it put out: rows x values of a few queries."""
    heads, queries, _ = call.layer.shape
    some = sorted({queries * part // SAMPLED for part in range(SAMPLED)} | {queries - 1})
    value = of_heads(call.value.float(), heads)
    expected = call.output[some].float().transpose(0, 1)
    limit = VECTOR_TOLERANCES.get(call.output.dtype, 1e-2) * float(expected.abs().max())
    return float((rows(call.layer, some) @ value - expected).abs().max()) <= limit


# ---- the observer that keeps what a record needs


@dataclass
class VectorCollector:
    """Keeps the vectors of one stack, in the order in which its layers are called."""

    model: PreTrainedModel
    stack: Stack
    values: bool
    dtype: torch.dtype
    modules: list[nn.Module] = field(default_factory=list)
    outputs: list[Float[Tensor, "query head value_width"]] = field(default_factory=list)
    """What each layer put out, where a gradient is wanted there."""
    vectors: dict[str, Float[Tensor, "layer *of_layer"]] = field(default_factory=dict)
    """Those of all layers, with room for the layers to come: copies that are joined at the end take it twice."""
    kept: dict[str, list[Any]] = field(default_factory=dict)

    def __call__(self, call: VectorCall) -> None:
        """Keep one layer."""
        if call.stack != self.stack:
            return
        if call.output.requires_grad:
            self.outputs.append(call.output)
        call = replace(call, output=call.output.detach())
        if not follows_from_vectors(call):
            raise BadInput(
                f"The queries and keys of {self._family} in layer {len(self.modules)} do not give what the layer put"
                ' out, so they cannot be kept in place of its weights: record it with keep="weights".'
            )
        self.modules.append(call.module)
        layer = call.layer
        found = {"queries": layer.queries, "group_keys": layer.keys}
        if self.values:
            projection = output_projection(self.model, call.module)
            refuse_changed_heads(self._family, projection, call.output[None])
            matrices = head_matrices(self._family, projection, call.output.shape[1])
            found |= {"group_values": call.value, "value_products": matrices @ matrices.mT}
        if self.dtype == torch.bfloat16:  # rows of what is kept sum to one by its own normalizers
            queries, keys = (found[name].to(self.dtype).float() for name in ("queries", "group_keys"))
            layer = replace(layer, normalizers=normalizers_of(replace(layer, queries=queries, keys=keys)))
        for name, tensor in found.items():
            self._keep(name, tensor, self.dtype)
        self._keep("normalizers", layer.normalizers, torch.float32)
        before = self.kept.get("bias", [None])[-1]
        if layer.bias is not None and before is not None and torch.equal(layer.bias, before):
            layer = replace(layer, bias=before)  # as many maps as layers would be kept otherwise
        for name in ("scaling", "softcap", "back", "ahead", "bias"):
            self.kept.setdefault(name, []).append(getattr(layer, name))
        if len(set(self.kept["softcap"])) > 1:
            raise BadInput(self._differing)

    def _keep(self, name: str, tensor: Float[Tensor, "*of_layer"], dtype: torch.dtype) -> None:
        """Copy the vectors of a layer behind those of the layers before; zeros behind narrower ones change nothing."""
        place, width = len(self.modules) - 1, tensor.shape[-1]
        before = self.vectors.get(name)
        if before is not None and before.shape[1:-1] != tensor.shape[:-1]:
            raise BadInput(self._differing)
        if before is None or place >= len(before) or width > before.shape[-1]:
            layers = max(place + 1, list(stacks_of(self.model).values()).count(self.stack))
            widest = width if before is None else max(width, before.shape[-1])
            whole = torch.empty(layers, *tensor.shape[:-1], widest, dtype=dtype)
            if before is not None:
                whole[:place] = torch.nn.functional.pad(before[:place], (0, widest - before.shape[-1]))
            self.vectors[name] = whole
        self.vectors[name][place, ..., width:] = 0
        self.vectors[name][place, ..., :width] = tensor

    @property
    def _differing(self) -> str:
        return (
            f"The layers of {self._family} have different numbers of heads or keys, or soft caps, so their vectors do"
            ' not fit one record: record it with keep="weights".'
        )

    @property
    def _family(self) -> str:
        return type(self.model).__name__

    def fields(self) -> dict[str, Any]:
        """The fields of the record."""
        if not self.modules:
            raise BadInput(no_attention(self.model, self.stack))
        return {
            **{name: tensor[: len(self.modules)] for name, tensor in self.vectors.items()},
            **{name: tuple(self.kept[name]) for name in ("scaling", "back", "ahead")},
            "softcap": self.kept["softcap"][0],
            "score_bias": _joined(self.kept["bias"]),
            "layers": layer_numbers(self.model, self.modules),
        }


def _joined(biases: Sequence[Tensor | None]) -> Float[Tensor, "layer some_heads query key"] | None:
    """The biases of all layers, where any has one; layers that share a bias share its memory."""
    known = [bias for bias in biases if bias is not None]
    if not known:
        return None
    if len(known) == len(biases) and all(bias is known[0] or torch.equal(bias, known[0]) for bias in known):
        return known[0].cpu().unsqueeze(0)
    shape = torch.broadcast_shapes(*(bias.shape for bias in known))
    none = known[0].new_zeros(shape)
    return torch.stack([(none if bias is None else bias.expand(shape)).cpu() for bias in biases])
