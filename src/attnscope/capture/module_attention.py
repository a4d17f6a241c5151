"""Where the attention of a torch module comes from: torch's own attention, hand-written modules, or a function.

- `nn.MultiheadAttention`, also inside `nn.TransformerEncoder`, is made to compute its weights, of each head, for the
  time of a call; whoever called it gets what was asked for. Torch's fused kernels are off meanwhile: they have no
  weights and pass over the modules inside.
- Another module is read: its output is searched for the one tensor whose rows sum to one, or an attribute is taken that
  it sets when it runs.
- A function `(module, inputs) -> weights` is asked.

Layers are counted by the order of calls, so a module that runs twice makes two layers.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import BadInput

Asked = Callable[[nn.Module, Mapping[str, Tensor]], Sequence[Tensor]]
"""Given the module and a padded batch of its inputs, the weights of each layer: `[batch, (head,) query, key]`."""
ROW_TOLERANCE = 1e-2


@dataclass(frozen=True)
class Sources:
    """What gives attention in a module: torch's own, modules that are read (with an attribute or ""), a function."""

    multihead: Mapping[str, nn.MultiheadAttention] = field(default_factory=dict)
    read: Mapping[str, tuple[nn.Module, str]] = field(default_factory=dict)
    asked: Asked | None = None

    @property
    def names(self) -> str:
        """The modules, for a sentence."""
        names = [name or "the module itself" for name in (*self.multihead, *self.read)]
        return ", ".join(names[:4]) + (", …" if len(names) > 4 else "")


def sources_of(module: nn.Module, attention: Any) -> Sources:
    """What a user means by `attention`: a name, names, a class of modules, a function, or None for torch's own."""
    if attention is None:
        found = dict(_multihead("", module))
        if not found:
            raise BadInput(
                f"{type(module).__name__} has no nn.MultiheadAttention: say as attention= which submodules attend, by"
                " name or class, or give a function of the module and its inputs."
            )
        return Sources(multihead=found)
    if isinstance(attention, type):
        names = [name for name, part in module.named_modules() if isinstance(part, attention)]
        if not names:
            raise BadInput(f"{type(module).__name__} has no submodule of the class {attention.__name__}.")
        return _joined(_source(name, module.get_submodule(name)) for name in names)
    if callable(attention):
        return Sources(asked=attention)
    names = [attention] if isinstance(attention, str) else list(attention)
    if not names or not all(isinstance(name, str) for name in names):
        raise BadInput("attention= is names of submodules, a class of them, or a function (module, inputs) -> weights.")
    return _joined(_named(module, name) for name in names)


def _named(module: nn.Module, name: str) -> Sources:
    parts = dict(module.named_modules())
    if name in parts:
        return _source(name, parts[name])
    owner, _, attribute = name.rpartition(".")
    if owner not in parts or (owner == "" and not hasattr(module, attribute)):
        some = ", ".join(list(parts)[1:6])
        raise BadInput(f"{type(module).__name__} has no submodule {name!r}: it has {some}, ….")
    return Sources(read={name: (parts[owner], attribute)})


def _source(name: str, part: nn.Module) -> Sources:
    inside = dict(_multihead(name, part))
    return Sources(multihead=inside) if inside else Sources(read={name: (part, "")})


def _multihead(name: str, module: nn.Module) -> Iterator[tuple[str, nn.MultiheadAttention]]:
    for inner, part in module.named_modules(prefix=name):
        if isinstance(part, nn.MultiheadAttention):
            yield inner, part


def _joined(sources: Iterator[Sources]) -> Sources:
    multihead: dict[str, nn.MultiheadAttention] = {}
    read: dict[str, tuple[nn.Module, str]] = {}
    for source in sources:
        multihead |= source.multihead
        read |= source.read
    return Sources(multihead, read)


@contextmanager
def tapped(sources: Sources) -> Iterator[list[Tensor]]:
    """Within this, each call of an attention module appends its weights, as it computed them."""
    layers: list[Tensor] = []
    handles = []
    # one module may have two names
    for attention in dict.fromkeys(sources.multihead.values()):
        handles += _made_to_tell(attention, layers)
    for name, (part, attribute) in sources.read.items():
        handles.append(part.register_forward_hook(_reading(name, attribute, layers)))
    try:
        with unfused():
            yield layers
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def unfused() -> Iterator[None]:
    """Within this, torch's encoder layers call the attention modules in them, and compute as in training."""
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)


def _made_to_tell(attention: nn.MultiheadAttention, layers: list[Tensor]) -> list[Any]:
    """Hooks that ask for the weights of each head, and give the caller what it asked for."""
    signature = inspect.signature(attention.forward)
    wishes: list[tuple[bool, bool]] = []

    def ask(_module: nn.Module, given: Any, named: Any) -> tuple[Any, Any]:
        call = signature.bind(*given, **named)
        call.apply_defaults()
        wishes.append((call.arguments["need_weights"], call.arguments["average_attn_weights"]))
        call.arguments.update(need_weights=True, average_attn_weights=False)
        return call.args, call.kwargs

    def tell(_module: nn.Module, _given: Any, output: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor | None]:
        attended, weights = output
        layers.append(weights)
        wants_weights, wants_mean = wishes.pop()
        if not wants_weights:
            return attended, None
        return attended, weights.mean(-3) if wants_mean else weights

    return [attention.register_forward_pre_hook(ask, with_kwargs=True), attention.register_forward_hook(tell)]


def _reading(name: str, attribute: str, layers: list[Tensor]) -> Callable[..., None]:
    """A hook that finds the weights of a hand-written module in what it returns, or in the attribute named."""

    def read(module: nn.Module, _given: Any, output: Any) -> None:
        if attribute:
            weights = getattr(module, attribute, None)
            if not isinstance(weights, Tensor):
                raise BadInput(
                    f"{name!r} is no submodule, and {type(module).__name__} keeps no tensor of that name when it runs."
                )
            layers.append(weights)
            return
        found = [tensor for tensor in tensors_in(output) if _are_weights(tensor)]
        if len(found) != 1:
            many = "no tensor" if not found else f"{len(found)} tensors"
            raise BadInput(
                f"The module {name or type(module).__name__!r} returns {many} with rows that sum to one, so its"
                " attention weights are not known: name an attribute that it keeps them in, or give a function."
            )
        layers.append(found[0])

    return read


def tensors_in(output: Any) -> Iterator[Tensor]:
    """Every tensor in what a module returns."""
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, Mapping):
        for part in output.values():
            yield from tensors_in(part)
    elif isinstance(output, (tuple, list)):
        for part in output:
            yield from tensors_in(part)
    elif is_dataclass(output) and not isinstance(output, type):
        for entry in fields(output):
            yield from tensors_in(getattr(output, entry.name))


def _are_weights(tensor: Tensor) -> bool:
    """Whether rows sum to one; rows of padding may be anything that is no distribution, zeros or not a number."""
    if not tensor.is_floating_point() or tensor.ndim not in (3, 4) or tensor.numel() == 0:
        return False
    rows = tensor.detach().float()
    sums = rows.sum(-1)
    counted = sums.isfinite() & (sums != 0)
    right = ((sums - 1).abs() <= ROW_TOLERANCE) & (rows.amin(-1) >= 0)
    return bool(counted.any()) and bool(right[counted].all())


def as_heads(weights: Any) -> Float[Tensor, "batch head query key"]:
    """One layer's weights with an axis of heads, also where there is only one."""
    if not isinstance(weights, Tensor) or weights.ndim not in (3, 4):
        shape = tuple(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
        raise BadInput(f"Attention weights are [batch, head, query, key] or [batch, query, key], not {shape}.")
    return weights if weights.ndim == 4 else weights.unsqueeze(1)
