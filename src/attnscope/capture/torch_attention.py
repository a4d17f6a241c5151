"""Where the attention of a torch module comes from: torch's own attention, hand-written modules, or a function.

- `nn.MultiheadAttention`, also inside `nn.TransformerEncoder`, is made to compute its weights, of each head, for the
  time of a call; whoever called it gets what was asked for. Torch's fused kernels are off meanwhile: they have no
  weights and pass over the modules inside.
- Another module is read: its output is searched for the one tensor whose rows sum to one, or an attribute is taken that
  it sets when it runs.
- A function `(module, inputs) -> weights` is asked.

Layers are counted by the order of calls, so a module that runs twice makes two layers. Where the answer is read is said
by the user, or decided anew for each text by a submodule, whose output is then tapped too.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import BadInput
from .answers import distribution

WeightsFunction = Callable[[nn.Module, Mapping[str, Tensor]], Sequence[Tensor]]
"""Given the module and a padded batch of its inputs, the weights of each layer: `[batch, (head,) query, key]`."""
ROW_TOLERANCE = 1e-2
Readout = Callable[[tuple[str, ...]], Any]
"""Given the tokens that attend, a position or a distribution over them."""


@dataclass(frozen=True)
class Sources:
    """What gives attention in a module: torch's own, modules that are read (with an attribute or ""), a function."""

    multihead: Mapping[str, nn.MultiheadAttention] = field(default_factory=dict)
    read: Mapping[str, tuple[nn.Module, str]] = field(default_factory=dict)
    function: WeightsFunction | None = None

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
        return Sources(function=attention)
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
def tap_weights(sources: Sources) -> Iterator[list[Tensor]]:
    """Within this, each call of an attention module appends its weights, as it computed them."""
    layers: list[Tensor] = []
    with without_fusion(), ExitStack() as hooks:
        # one module may have two names
        for attention in dict.fromkeys(sources.multihead.values()):
            for handle in _made_to_tell(attention, layers):
                hooks.enter_context(handle)
        for name, (part, attribute) in sources.read.items():
            hooks.enter_context(part.register_forward_hook(_reading(name, attribute, layers)))
        yield layers


@contextmanager
def without_fusion() -> Iterator[None]:
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


def weights_by_function(sources: Sources, module: nn.Module, batch: Mapping[str, Tensor]) -> list[Tensor]:
    """What the user's function says the attention is."""
    assert sources.function is not None  # noqa: S101 -- the caller has looked
    with torch.no_grad():
        found = sources.function(module, batch)
    if isinstance(found, Tensor) or not isinstance(found, Sequence):
        raise BadInput("A function given as attention= must return a list with the weights of each layer.")
    return list(found)


def checked_layers(
    sources: Sources, module: nn.Module, layers: list[Tensor], shape: tuple[int, int, int]
) -> list[Tensor]:
    """The layers, if there are any, they are alike, and they cover the tokens."""
    name = type(module).__name__
    if not layers:
        told = f"it never called {sources.names}" if sources.function is None else "the function gave none"
        raise BadInput(f"No attention of {name} was captured: {told}.")
    if len({tuple(layer.shape) for layer in layers}) > 1:
        shapes = ", ".join(sorted({" x ".join(map(str, layer.shape)) for layer in layers}))
        raise BadInput(
            f"The attention layers of {name} differ in shape ({shapes}): name those of one stack as attention=."
        )
    texts, queries, keys = shape
    if tuple(layers[0].shape[place] for place in (0, 2, 3)) != shape:
        found = " x ".join(map(str, layers[0].shape))
        raise BadInput(
            f"The attention of {name} has the shape {found}, which does not fit {texts} texts of {queries} queries"
            f" and {keys} keys: batch, head, query, key."
        )
    return layers


def gradients_at(
    value: Float[Tensor, ""], layers: Sequence[Tensor], embeddings: Tensor
) -> tuple[list[Float[Tensor, "batch head query key"]], Float[Tensor, "batch position width"]]:
    """The gradients of a value at the weights of each layer and at the embeddings; no weights' where a layer has none.

    What a module returns is often a view of the weights it went on with (so in `nn.MultiheadAttention`), and the
    gradient is then found at what it is a view of.
    """
    tracked_layers = all(layer.requires_grad for layer in layers)
    starts = list(layers) if tracked_layers else []
    bases = [_viewed(layer) for layer in starts]
    found = torch.autograd.grad(value, [embeddings, *starts, *bases], allow_unused=True)
    at_embeddings = torch.zeros_like(embeddings) if found[0] is None else found[0]
    own, viewed = found[1 : 1 + len(starts)], found[1 + len(starts) :]
    of_layers = [
        gradient if gradient is not None else None if base is None else base.reshape(layer.shape)
        for layer, gradient, base in zip(starts, own, viewed, strict=True)
    ]
    if any(gradient is None for gradient in of_layers):
        return [], at_embeddings
    return [as_heads(gradient) for gradient in of_layers], at_embeddings


def _viewed(layer: Tensor) -> Tensor:
    """What a tensor is another shape of, or the tensor itself."""
    base = layer._base  # noqa: SLF001 -- torch has no other name for it
    same = base is not None and base.numel() == layer.numel() and base.is_contiguous() and layer.is_contiguous()
    return base if same and base is not None else layer


@contextmanager
def changed_lookup(
    module: nn.Module, lookup: nn.Module | None, ids: Tensor | None, change: Callable[[Tensor], Tensor] | None
) -> Iterator[None]:
    """Within this, `change(embeddings)` takes the place of the embeddings that the module looks up for the tokens."""
    if change is None:
        yield
        return
    if lookup is None:
        raise BadInput(
            f"Where {type(module).__name__} looks up its embeddings is not known: name that submodule as"
            " embeddings= in attnscope.instrument."
        )
    done: list[bool] = []

    def hook(_module: nn.Module, given: Any, output: Tensor) -> Tensor | None:
        if done or not given or not isinstance(given[0], Tensor) or ids is None or not torch.equal(given[0], ids):
            return None
        done.append(True)
        return change(output)

    with lookup.register_forward_hook(hook):
        yield
    if not done:
        raise BadInput(
            f"The submodule named as embeddings= ({type(lookup).__name__}) is not given the ids of the tokens,"
            " [batch, token], so it cannot be where they are looked up."
        )


# ---- the read-out


def readout_at(readout: Readout | None, tokens: tuple[str, ...], causal: bool) -> Float[Tensor, " query"]:
    """Where the module reads its answer; by default at the last token if it is causal, else everywhere alike."""
    if readout is None:
        return distribution(len(tokens) - 1 if causal else None, len(tokens))
    said = readout(tokens)
    if isinstance(said, int):
        if not -len(tokens) <= said < len(tokens):
            raise BadInput(f"The read-out is at position {said}, but there are {len(tokens)} tokens that attend.")
        return distribution(said % len(tokens), len(tokens))
    return torch.as_tensor(said, dtype=torch.float32)


@contextmanager
def returned_by(part: nn.Module | None) -> Iterator[list[Any]]:
    """Within this, each call of the submodule that pools the tokens appends what it returns."""
    returned: list[Any] = []
    if part is None:
        yield returned
        return

    def keep(_module: nn.Module, _given: Any, output: Any) -> None:
        returned.append(output)

    with part.register_forward_hook(keep):
        yield returned


def learned_readout(part: nn.Module, returned: list[Any], texts: int, tokens: int) -> Float[Tensor, "text token"]:
    """The one distribution over the tokens of each text, padding included, that the submodule has returned."""
    name = type(part).__name__
    if len(returned) != 1:
        raise BadInput(
            f"The submodule named as readout= ({name}) ran {len(returned)} times in one pass: name one that runs once."
        )
    rows = [tensor.detach().float() for tensor in tensors_in(returned[0]) if _shape(tensor) == (texts, tokens)]
    found = [row.reshape(texts, tokens) for row in rows]
    spread = [row for row in found if (row >= 0).all() and ((row.sum(-1) - 1).abs() <= ROW_TOLERANCE).all()]
    if len(spread) != 1:
        many = "no" if not spread else f"{len(spread)}"
        raise BadInput(
            f"The submodule named as readout= ({name}) returns {many} tensors with one share for each token that sum to"
            f" one, [{texts} texts, {tokens} tokens]: name the one that pools the tokens."
        )
    return spread[0]


def _shape(tensor: Tensor) -> tuple[int, ...] | None:
    """[text, token], also where an axis of length one stands for a single query or score."""
    if not tensor.is_floating_point() or tensor.ndim not in (2, 3):
        return None
    if tensor.ndim == 2:
        return tuple(tensor.shape)
    texts, *others = tensor.shape
    return (texts, max(others)) if 1 in others else None
