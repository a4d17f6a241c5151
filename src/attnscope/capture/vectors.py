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
from transformers import PreTrainedModel

from ..errors import BadInput
from ..numerals import in_words
from ..record.attention import Stack
from ..record.vectors import LayerVectors, blocks, fused_attention, normalizers_of, rows
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
        queries=query[0].detach(),
        keys=key[0].detach(),
        normalizers=query.new_zeros(query.shape[1:3], dtype=torch.float32),
        scaling=scaling,
        softcap=options.get("softcap"),
        back=back,
        ahead=ahead,
        bias=bias,
    )
    output, normalizers = _attended(vectors, value[0].detach())
    vectors = replace(vectors, normalizers=normalizers)
    if watch.observer is not None and watch.is_new(module, query, key):
        shown: Any = VectorCall(watch.stacks[module], module, vectors, value[0].detach(), output)
        watch.observer(shown)
    return output[None].to(query.dtype), None


def _attended(
    layer: LayerVectors, value: Float[Tensor, "group key value_width"]
) -> tuple[Float[Tensor, "query head value_width"], Float[Tensor, "head query"]]:
    """What attention puts out, and the log-sum-exp of each query's scores."""
    heads, width = layer.shape[0], value.shape[-1]
    if layer.is_plain and value.device.type == "cpu" and width <= layer.keys.shape[-1]:
        wide = torch.nn.functional.pad(value, (0, layer.keys.shape[-1] - width))
        output, normalizers = fused_attention(layer.queries, layer.keys, wide, layer.ahead == 0, layer.scaling)
        return output[..., :width].transpose(0, 1).contiguous(), normalizers.float()
    layer = replace(layer, normalizers=normalizers_of(layer))
    given = value.float().repeat_interleave(heads // value.shape[0], 0)
    parts = [weights @ given[:, keys] for _, keys, weights in blocks(layer)]
    return torch.cat(parts, 1).transpose(0, 1).contiguous(), layer.normalizers


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


# ---- the observer that keeps what a record needs


@dataclass
class VectorCollector:
    """Keeps the vectors of one stack, in the order in which its layers are called."""

    model: PreTrainedModel
    stack: Stack
    values: bool
    dtype: torch.dtype
    modules: list[nn.Module] = field(default_factory=list)
    kept: dict[str, list[Any]] = field(default_factory=dict)

    def __call__(self, call: VectorCall) -> None:
        """Keep one layer."""
        if call.stack != self.stack:
            return
        self._compare(call)
        self.modules.append(call.module)
        layer = call.layer
        found = {"queries": layer.queries, "group_keys": layer.keys}
        if self.values:
            projection = output_projection(self.model, call.module)
            refuse_changed_heads(self._family, projection, call.output[None])
            matrices = head_matrices(self._family, projection, call.output.shape[1])
            found |= {"group_values": call.value, "value_products": matrices @ matrices.mT}
        copies = {name: tensor.to(device="cpu", dtype=self.dtype, copy=True) for name, tensor in found.items()}
        if self.dtype == torch.bfloat16:  # rows of what is kept sum to one by its own normalizers
            rounded = replace(layer, queries=copies["queries"].float(), keys=copies["group_keys"].float())
            layer = replace(layer, normalizers=normalizers_of(rounded))
        copies["normalizers"] = layer.normalizers.cpu()
        before = self.kept.get("bias", [None])[-1]
        if layer.bias is not None and before is not None and torch.equal(layer.bias, before):
            layer = replace(layer, bias=before)  # as many maps as layers would be kept otherwise
        names = ("scaling", "softcap", "back", "ahead", "bias")
        for name, kept in {**copies, **{name: getattr(layer, name) for name in names}}.items():
            self.kept.setdefault(name, []).append(kept)

    @property
    def _family(self) -> str:
        return type(self.model).__name__

    def _compare(self, call: VectorCall) -> None:
        """Refuse a layer whose vectors do not give what it put out: rows x values of a few queries."""
        heads, queries, _ = call.layer.shape
        some = sorted({queries * part // SAMPLED for part in range(SAMPLED)} | {queries - 1})
        weights = rows(call.layer, some)
        value = call.value.float().repeat_interleave(heads // call.value.shape[0], 0)
        expected = call.output[some].float().transpose(0, 1)
        limit = VECTOR_TOLERANCES.get(call.output.dtype, 1e-2) * float(expected.abs().max())
        if float((weights @ value - expected).abs().max()) > limit:
            raise BadInput(
                f"The queries and keys of {self._family} in layer {len(self.modules)} do not give what the layer put"
                ' out, so they cannot be kept in place of its weights: record it with keep="weights".'
            )

    def fields(self) -> dict[str, Any]:
        """The fields of the record."""
        if not self.modules:
            raise BadInput(no_attention(self.model, self.stack))
        stacked = ("queries", "group_keys", "group_values", "value_products", "normalizers")
        for name in stacked:
            if len({tensor.shape[:-1] for tensor in self.kept.get(name, ())}) > 1 or len(set(self.kept["softcap"])) > 1:
                raise BadInput(
                    f"The layers of {self._family} have different numbers of heads or keys, or soft caps, so their"
                    ' vectors do not fit one record: record it with keep="weights".'
                )
        return {
            **{name: _stacked(tensors) for name, tensors in self.kept.items() if name in stacked},
            **{name: tuple(self.kept[name]) for name in ("scaling", "back", "ahead")},
            "softcap": self.kept["softcap"][0],
            "score_bias": _joined(self.kept["bias"]),
            "layers": layer_numbers(self.model, self.modules),
        }


def _stacked(tensors: list[Tensor]) -> Tensor:
    """All layers as one tensor, each given up as it is copied; zeros behind narrower vectors leave products as is."""
    widest = max(tensor.shape[-1] for tensor in tensors)
    whole = tensors[0].new_zeros(len(tensors), *tensors[0].shape[:-1], widest)
    for place, tensor in enumerate(tensors):
        whole[place, ..., : tensor.shape[-1]] = tensor
        tensors[place] = tensor.new_empty(0)
    return whole


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
