"""Attention really comes out, exactly: a model is watched for the time of a call and given back as it was.

Models on transformers' AttentionInterface are switched to an implementation of our own, which calls the model's own
eager attention (so soft caps, position biases, grouped queries, sliding windows and sinks come out right) and shows
each call to an observer. The others are switched to eager and asked for `output_attentions`. Layers are counted by the
order of calls, never by `layer_idx`, which is None in some families and shared by encoder, decoder and cross-attention
in others.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedConfig, PreTrainedModel
from transformers.masking_utils import eager_mask

from ..errors import BadInput
from ..record.attention import Stack
from .evaluating import evaluated
from .stacks import is_decoder_only, stacks_of

IMPLEMENTATION = "attnscope"


@dataclass(frozen=True)
class AttentionCall:
    """One layer's attention on one batch, as the model computed it; vectors only on the AttentionInterface."""

    stack: Stack
    weights: Float[Tensor, "batch head query key"]
    module: nn.Module | None = None
    query: Float[Tensor, "batch head query head_width"] | None = None
    key: Float[Tensor, "batch key_value_head key head_width"] | None = None
    value: Float[Tensor, "batch key_value_head key value_width"] | None = None
    scaling: float | None = None
    softcap: float | None = None
    biases: tuple[Tensor, ...] = ()
    """What is added to the scores: the mask and position biases, each broadcastable to the weights."""


Observer = Callable[[AttentionCall], None]


@dataclass
class _Watch:
    """Who is shown the attention of which modules; `depth` counts calls of the model within calls of the model."""

    observer: Observer
    stacks: Mapping[nn.Module, Stack]
    depth: int = 0

    def entered(self, *_: Any) -> None:
        self.depth += 1

    def left(self, *_: Any) -> None:
        self.depth -= 1


_watching: ContextVar[_Watch | None] = ContextVar("attnscope_watch", default=None)


def _observed_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, Tensor | None]:
    """The module's own eager attention, shown to the observer."""
    eager = _own_eager_attention(type(module))
    if eager is None:
        raise BadInput(f"{type(module).__name__} has no eager attention, so its weights cannot be read.")
    output, weights = eager(module, query, key, value, attention_mask, **options)
    watch = _watching.get()
    if watch is None or watch.depth != 1 or module not in watch.stacks:
        return output, weights  # another thread uses the model meanwhile, or a hook runs it within the run
    biases = (options.get("position_bias"), attention_mask)
    watch.observer(
        AttentionCall(
            stack=watch.stacks[module],
            weights=weights,
            module=module,
            query=query,
            key=key,
            value=value,
            scaling=query.shape[-1] ** -0.5 if options.get("scaling") is None else float(options["scaling"]),
            softcap=options.get("softcap"),
            biases=tuple(bias for bias in biases if bias is not None),
        )
    )
    return output, None  # as fused attention does: a layer that were given them would hold them through its own work


AttentionInterface.register(IMPLEMENTATION, _observed_attention)
# without a mask function of this name transformers would build no mask at all, silently
AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)


def _own_eager_attention(kind: type) -> Callable[..., tuple[Tensor, Tensor]] | None:
    """`eager_attention_forward` of the file that defines this class, or a class it derives from."""
    for base in kind.__mro__:
        function: Any = getattr(sys.modules.get(base.__module__), "eager_attention_forward", None)
        if function is not None:
            return function  # type: ignore[no-any-return]
    return None


def on_interface(model: PreTrainedModel) -> bool:
    """Whether every part of the model computes its attention through transformers' AttentionInterface."""
    parts = {type(part) for part in model.modules() if isinstance(part, PreTrainedModel)}
    return all(_own_eager_attention(part) is not None for part in parts)


@contextmanager
def restored(model: PreTrainedModel) -> Iterator[None]:
    """Evaluation mode for a while; modes, implementation and random state are as before afterwards, come what may."""
    # the model and its body are one: what runs without the head on top must wait too
    with evaluated(model, model.base_model):
        implementations = [(config, config._attn_implementation) for config in _configurations(model)]
        try:
            yield
        finally:
            for config, implementation in implementations:
                config._attn_implementation = implementation


@contextmanager
def watched(model: PreTrainedModel, observer: Observer) -> Iterator[Callable[..., Any]]:
    """Within this, the function given runs the model and shows each layer's attention to the observer."""
    flash = next((module for module in model.modules() if "FlashAttention" in type(module).__name__), None)
    if flash is not None:
        raise BadInput(
            f"{type(flash).__name__} is built without attention weights:"
            ' load the model with attn_implementation="eager".'
        )
    through_interface = on_interface(model)
    with restored(model):
        for config in _configurations(model):
            # not set_attn_implementation: families such as Falcon answer it with a log line and stay as they are
            config._attn_implementation = IMPLEMENTATION if through_interface else "eager"
        watch = _Watch(observer, stacks_of(model))
        hooks = [
            model.register_forward_pre_hook(watch.entered),
            model.register_forward_hook(watch.left, always_call=True),
        ]
        token = _watching.set(watch)
        try:
            yield model if through_interface else lambda **inputs: _run_eager(model, observer, inputs)
        finally:
            _watching.reset(token)
            for hook in hooks:
                hook.remove()


def _run_eager(model: PreTrainedModel, observer: Observer, inputs: Mapping[str, Any]) -> Any:
    """Run an eager model that returns its attentions, and show them layer by layer."""
    output = model(**inputs, output_attentions=True)
    own: Stack = "decoder" if is_decoder_only(model) else "encoder"
    named: dict[str, Stack] = {
        "attentions": own,
        "encoder_attentions": "encoder",
        "decoder_attentions": "decoder",
        "cross_attentions": "cross",
    }
    for name, stack in named.items():
        for weights in getattr(output, name, None) or ():
            observer(AttentionCall(stack=stack, weights=weights))
    return output


def _configurations(model: PreTrainedModel) -> list[PreTrainedConfig]:
    """Every configuration object in use, parents first: encoder and decoder may hold copies of their own."""
    found: dict[int, PreTrainedConfig] = {}
    waiting: list[Any] = [getattr(module, "config", None) for module in model.modules()]
    while waiting:
        config = waiting.pop(0)
        if isinstance(config, PreTrainedConfig) and id(config) not in found:
            found[id(config)] = config
            waiting += [getattr(config, name, None) for name in config.sub_configs]
    return list(found.values())
