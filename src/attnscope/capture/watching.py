"""Attention really comes out, exactly: a model is watched for the time of a call, and nothing of it is changed.

For the thread that watches, and for no other, every configuration says that the model runs `eager`, so that code which
asks for its implementation by name takes the branch it takes when it is loaded that way. Models on transformers'
AttentionInterface then ask it for their eager function: they are given that very function (soft caps, position biases,
grouped queries, sliding windows come out right), shown to an observer as it runs. The others are asked for
`output_attentions`. Layers are counted by the order of calls, never by `layer_idx`, which is None in some families and
shared by encoder, decoder and cross-attention in others.
"""

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedConfig, PreTrainedModel

from ..errors import BadInput
from ..record.attention import Stack
from .families import is_decoder_only, stacks_of

FLASH_CLASS = re.compile(r"FlashAttention\d")
"""How modules are called that were built, once and for all, around a kernel that gives no weights."""

BEGINNING = 8
"""On so many tokens of a text is found which modules of a model give its weights."""
SHARE_TOLERANCE = 2e-2
"""By how much rows of weights that leave a sink its part may miss what it leaves them, by rounding in bfloat16."""


class _Locks:
    """One lock for each module, made when it is first needed."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: in a forked child, a lock that another thread held would never be released."""
        self._guard = threading.Lock()
        self._of_module: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()

    def of(self, owner: nn.Module) -> threading.RLock:
        with self._guard:
            return self._of_module.setdefault(owner, threading.RLock())


_locks = _Locks()
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_locks.forget)


@contextmanager
def in_evaluation(module: nn.Module, owner: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; modes and random state are as before afterwards, come what may.

    One at a time for each `owner`: what two threads switched at once could not be put back.
    """
    with _locks.of(owner):
        modes = [(part, part.training) for part in module.modules()]
        devices = {parameter.device for parameter in module.parameters() if parameter.device.type == "cuda"}
        with torch.random.fork_rng(devices=sorted(devices, key=str)):
            try:
                if any(mode for _, mode in modes):
                    module.eval()
                yield
            finally:
                for part, mode in modes:
                    if part.training != mode:  # setting an attribute of a module takes long
                        part.training = mode


@dataclass(frozen=True)
class AttentionCall:
    """One layer's attention on one batch, as the model computed it; vectors only on the AttentionInterface."""

    stack: Stack
    weights: Float[Tensor, "batch head query key"]
    """What each query gives to each key; rows sum to one together with `sink`."""
    sink: Float[Tensor, "batch head query"] | None = None
    """What each query gives to the head's learned sink, which adds nothing to the output."""
    module: nn.Module | None = None
    query: Float[Tensor, "batch head query head_width"] | None = None
    key: Float[Tensor, "batch key_value_head key head_width"] | None = None
    value: Float[Tensor, "batch key_value_head key value_width"] | None = None
    output: Float[Tensor, "batch query head value_width"] | None = None
    """What the module's attention put out, before its output projection."""
    scaling: float | None = None
    softcap: float | None = None
    biases: tuple[Tensor, ...] = ()
    """What is added to the scores: the mask and position biases, each broadcastable to the weights."""


Observer = Callable[[AttentionCall], None]


@dataclass
class Watch:
    """Who is shown the attention of which modules, in which thread; no observer: the model runs eager, unseen."""

    observer: Observer | None
    stacks: Mapping[nn.Module, Stack]
    thread: int = field(default_factory=threading.get_ident)
    implementation: str = "eager"
    """What every configuration of the model says of its attention."""
    attend: Callable[..., tuple[Tensor, Tensor | None]] | None = None
    """What takes the place of the attention function that a module asks for; None: that function, observed."""
    depth: int = 0
    """Counts calls of the model within calls of the model: a hook may run it again."""
    last: tuple[nn.Module, Tensor, Tensor] | None = None
    """The module, queries and keys of the last call."""

    def enter(self, *_: Any) -> None:
        """A call of the model begins."""
        self.depth += threading.get_ident() == self.thread

    def leave(self, *_: Any) -> None:
        """It ends."""
        self.depth -= threading.get_ident() == self.thread

    def looks_at(self, module: nn.Module) -> bool:
        """Whether this call is part of the run that is watched: a hook may run the model within the run."""
        return self.depth == 1 and module in self.stacks

    def is_new(self, module: nn.Module, query: Tensor, key: Tensor) -> bool:
        """Whether this call has weights of its own: DiffLlama multiplies one map with two halves of its values."""
        known, self.last = self.last, (module, query, key)
        return known is None or known[0] is not module or known[1] is not query or known[2] is not key


_places: WeakKeyDictionary[PreTrainedModel, dict[nn.Module, tuple[int, Stack]]] = WeakKeyDictionary()
_watching: ContextVar[Watch | None] = ContextVar("attnscope_watch", default=None)


def _watch_here() -> Watch | None:
    """The watch of this thread; a context that was copied into another thread does not count there."""
    watch = _watching.get()
    return watch if watch is not None and watch.thread == threading.get_ident() else None


class _ImplementationSeen(property):
    """A configuration's `_attn_implementation`, which is what the watch says where the model is watched."""


def _let_configurations_listen(kind: type) -> None:
    """Make this class of configurations say to a thread that watches what its watch says, the truth to all others."""
    for base in kind.__mro__:
        own = base.__dict__.get("_attn_implementation")
        if isinstance(own, property) and not isinstance(own, _ImplementationSeen) and own.fget is not None:
            plain = own.fget

            def seen(config: Any, plain: Callable[[Any], Any] = plain) -> Any:
                watch = _watch_here()
                return plain(config) if watch is None else watch.implementation

            base._attn_implementation = _ImplementationSeen(seen, own.fset, own.fdel)  # type: ignore[attr-defined]


_plain_interface = AttentionInterface.get_interface


def _interface(interface: AttentionInterface, attn_implementation: str, default: Callable[..., Any]) -> Any:
    """The attention function a module asks for; where it is watched, its eager function with an observer."""
    found = _plain_interface(interface, attn_implementation, default)
    watch = _watch_here()
    return (
        found if watch is None or watch.observer is None else partial(watch.attend or _observed_attention, watch, found)
    )


AttentionInterface.get_interface = _interface  # type: ignore[method-assign, assignment]


def _observed_attention(
    watch: Watch,
    eager: Callable[..., tuple[Tensor, Tensor | None]],
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *arguments: Any,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """The module's own eager attention, shown to the observer."""
    output, weights = eager(module, query, key, value, attention_mask, *arguments, **options)
    if watch.observer is None or not watch.looks_at(module):
        return output, weights
    if weights is None:
        raise BadInput(f"The eager attention of {type(module).__name__} gives no weights, so they cannot be read.")
    if not watch.is_new(module, query, key):
        return output, None
    scaling = query.shape[-1] ** -0.5 if options.get("scaling") is None else float(options["scaling"])
    sinks, sink = getattr(module, "sinks", None), None
    if isinstance(sinks, Tensor):
        weights, sink = _beside_sink(sinks, weights, query, key, attention_mask, scaling)
    biases = (options.get("position_bias"), attention_mask)
    watch.observer(
        AttentionCall(
            stack=watch.stacks[module],
            weights=weights,
            sink=sink,
            module=module,
            query=query,
            key=key,
            value=value,
            output=output,
            scaling=scaling,
            softcap=options.get("softcap"),
            biases=tuple(bias for bias in biases if bias is not None),
        )
    )
    return output, None  # as fused attention does: a layer that were given them would hold them through its own work


def _beside_sink(
    sinks: Float[Tensor, " head"],
    weights: Float[Tensor, "batch head query key"],
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    scaling: float,
) -> tuple[Float[Tensor, "batch head query key"], Float[Tensor, "batch head query"]]:
    """The weights of the keys beside a learned sink, and what the sink takes: softmax over [scores, sink].

    Some families return weights that leave the sink out of the sum, some scale their output by it afterwards; either
    way the keys share what the sink leaves, in proportion to the weights that are returned.
    """
    scores = query @ key.repeat_interleave(query.shape[1] // key.shape[1], 1).transpose(-1, -2) * scaling
    scores = scores if mask is None else scores + mask
    sink = torch.sigmoid(sinks.view(1, -1, 1) - scores.float().logsumexp(-1))
    sums = weights.float().sum(-1, keepdim=True)
    share = (1 - sink).unsqueeze(-1) / sums.masked_fill(sums == 0, 1.0)
    if ((share - 1).abs() < SHARE_TOLERANCE).all():
        return weights, (1 - sums.squeeze(-1)).clamp_min(0).to(weights.dtype)
    return (weights.float() * share).to(weights.dtype), sink.to(weights.dtype)


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


def implementation_of(model: PreTrainedModel) -> str:
    """The attention implementation that the model was loaded with."""
    return str(model.config._attn_implementation)


@contextmanager
def evaluation_mode(model: PreTrainedModel) -> Iterator[None]:
    """Evaluation mode for a while; modes and random state are as before afterwards, come what may."""
    # the model and its body are one: what runs without the head on top must wait too
    with in_evaluation(model, model.base_model):
        yield


@contextmanager
def watch_model(model: PreTrainedModel, observer: Observer) -> Iterator[Callable[..., Any]]:
    """Within this, the function given runs the model and shows each layer's attention to the observer."""
    flash = next((kind for kind in map(type, model.modules()) if FLASH_CLASS.search(kind.__name__)), None)
    if flash is not None:
        raise BadInput(
            f'{flash.__name__} is built without attention weights: load the model with attn_implementation="eager".'
        )
    through_interface = on_interface(model)
    watch = Watch(observer if through_interface else None, stacks_of(model))
    with watched(model, watch):
        yield model if through_interface else lambda **inputs: _run_eager(model, observer, watch, inputs)


@contextmanager
def unobserved_eager(model: PreTrainedModel) -> Iterator[PreTrainedModel]:
    """Within this, the model runs with transformers' own eager attention, and nobody looks on."""
    with watched(model, Watch(None, {})):
        yield model


@contextmanager
def watched(model: PreTrainedModel, watch: Watch) -> Iterator[None]:
    """Within this, every configuration of the model says to this thread what the watch says."""
    for config in _configurations(model):
        _let_configurations_listen(type(config))
    with evaluation_mode(model):
        token = _watching.set(watch)
        entering = model.register_forward_pre_hook(watch.enter)
        leaving = model.register_forward_hook(watch.leave, always_call=True)
        try:
            with entering, leaving:
                yield
        finally:
            _watching.reset(token)


# ---- families off the interface: what they return as their attention


def _run_eager(model: PreTrainedModel, observer: Observer, watch: Watch, inputs: Mapping[str, Any]) -> Any:
    """Run an eager model that returns its attentions, and show them layer by layer.

    Where it is known which modules they come from, each is shown as it comes and a single zero returned in its place,
    so that one layer's weights are all that is held. A backward pass needs them all, so there nothing is taken away.
    """
    devices = {parameter.device for parameter in model.parameters() if parameter.device.type == "cuda"}
    with torch.random.fork_rng(devices=sorted(devices, key=str)):  # ViLT draws patches by chance: the run's own draw
        places = {} if torch.is_grad_enabled() else _places_of_weights(model, inputs)
    shown = 0

    def hand_over(module: nn.Module, _given: Any, output: tuple[Any, ...]) -> tuple[Any, ...]:
        nonlocal shown
        if not watch.looks_at(module) or threading.get_ident() != watch.thread:
            return output
        shown += 1
        place, stack = places[module]
        try:
            observer(AttentionCall(stack=stack, weights=output[place], module=module))
        except Exception as error:  # noqa: BLE001 -- it goes on to whoever observes
            raise _OfObserver(error) from None
        return (*output[:place], output[place].new_zeros(1, 1, 1, 1), *output[place + 1 :])

    with ExitStack() as hooks:
        for module in places:
            hooks.enter_context(module.register_forward_hook(hand_over))
        try:
            output = _with_attentions(model, inputs)
        except _OfObserver as passed:
            raise passed.error from None
    returned = _returned(model, output)
    if shown not in (0, len(returned)):
        raise BadInput(f"{type(model).__name__} computes its attention otherwise on a longer text: it cannot be read.")
    for stack, weights in returned if not shown else ():
        if not isinstance(weights, Tensor) or weights.ndim != 4:
            raise BadInput(
                f"What {type(model).__name__} returns as its attention is no matrix of queries and keys for each"
                " head, so it cannot be recorded."
            )
        observer(AttentionCall(stack=stack, weights=weights))
    return output


class _OfObserver(Exception):
    """What went wrong in an observer, not in the model that was running."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def _with_attentions(model: PreTrainedModel, inputs: Mapping[str, Any]) -> Any:
    """What the model returns when it is asked for its attention."""
    try:
        return model(**inputs, output_attentions=True)
    except (AttributeError, IndexError, KeyError, NotImplementedError, TypeError) as error:
        raise BadInput(
            f"{type(model).__name__} fails when it is asked for its attention ({type(error).__name__}: {error}), so it"
            " cannot be recorded."
        ) from error


def _returned(model: PreTrainedModel, output: Any) -> list[tuple[Stack, Any]]:
    """What a model returned as its attention, layer by layer, and of which stack it is."""
    own: Stack = "decoder" if is_decoder_only(model) else "encoder"
    named: dict[str, Stack] = {
        "attentions": own,
        "encoder_attentions": "encoder",
        "decoder_attentions": "decoder",
        "cross_attentions": "cross",
    }
    return [(stack, weights) for name, stack in named.items() for weights in getattr(output, name, None) or ()]


def _places_of_weights(model: PreTrainedModel, inputs: Mapping[str, Any]) -> dict[nn.Module, tuple[int, Stack]]:
    """Which modules give the very weights that the model returns, at which place of what they give, of which stack.

    Found once for each model, on the beginning of a text; none where what is returned comes from no module as it is.
    """
    if model in _places:
        return _places[model]
    given: list[tuple[nn.Module, int, Tensor]] = []

    def note(module: nn.Module, _given: Any, output: Any) -> None:
        parts = enumerate(output if type(output) is tuple else ())
        given.extend((module, place, part) for place, part in parts if isinstance(part, Tensor) and part.ndim == 4)

    beginning = {
        name: value[:, :BEGINNING] if isinstance(value, Tensor) and value.ndim == 2 else value
        for name, value in inputs.items()
    }
    places: dict[nn.Module, tuple[int, Stack]] = {}
    with ExitStack() as hooks:
        for module in model.modules():
            hooks.enter_context(module.register_forward_hook(note))
        try:
            returned = _returned(model, model(**beginning, output_attentions=True))
        except Exception:  # noqa: BLE001 -- whatever fails on the beginning may do well on the whole text
            returned = []
    for stack, weights in returned:
        # the innermost module comes first
        found = next(((module, place) for module, place, part in given if part is weights), None)
        if found is None or places.get(found[0], (found[1], stack)) != (found[1], stack):
            places = {}
            break
        places[found[0]] = found[1], stack
    _places[model] = places
    return places


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
