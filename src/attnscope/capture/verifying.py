"""The self-check: before a model is believed, what was observed is compared with what the model does unobserved.

Two comparisons, on the very input that is recorded. The answers: the observed run against one that nobody watches, with
the attention implementation the model was loaded with. The weights: of every attention module, weights x values against
what the module's attention put out, before its output projection. Families off the AttentionInterface do not show
their values; there the weights that are returned must be the ones the model multiplied with something.

What was found stands on the card of a record, with the model, its numbers, the versions and the date.
"""

import math
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from ..errors import BadInput
from .families import NOTES
from .watching import (
    AttentionCall,
    Observer,
    evaluation_mode,
    implementation_of,
    on_interface,
    unobserved_eager,
    watch_model,
)

Verify = Literal["once", "always", "never"]
TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1}
"""By how much of its size an answer may differ by rounding alone, through all layers."""
LAYER_TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}
"""The same for one product of weights and values."""
NOT_ANSWERS = ("attentions", "hidden_states", "past_key_values", "loss")
"""What a model returns beside its answer."""

PIECE = 2**17
"""How many numbers are compared at a time: they are held as float64, several times over."""

_verified: WeakKeyDictionary[nn.Module, dict[str, Any]] = WeakKeyDictionary()
PACKAGES = ("attnscope", "torch", "transformers", "tokenizers")


def verification_of(model: PreTrainedModel) -> dict[str, Any] | None:
    """What the last self-check of this model found, for the card of a record; None where there was none."""
    return _verified.get(model.base_model)


def self_check(model: PreTrainedModel, batch: Mapping[str, Any], verify: Verify) -> "SelfCheck | None":
    """The check of a run that is about to be observed, or None where the model was checked before."""
    if verify == "never" or (verify == "once" and model.base_model in _verified):
        return None
    return SelfCheck(model, batch)


class SelfCheck:
    """Runs the model once, unobserved; then compares each layer as it passes, and the answers at the end."""

    def __init__(self, model: PreTrainedModel, batch: Mapping[str, Any]) -> None:
        self.model, self.batch = model, batch
        self.layers = 0
        self.largest = 0.0
        self.products: list[Tensor] | None = None if on_interface(model) else []
        with torch.no_grad(), evaluation_mode(model):
            self.expected = _answers(model(**batch), batch)

    @contextmanager
    def around(self) -> Iterator[None]:
        """Within this the model runs, observed."""
        with nullcontext() if self.products is None else _Products(self.products):
            yield

    def observer(self, observer: Observer) -> Observer:
        """The observer, shown each layer only after it was compared."""

        def compared(call: AttentionCall) -> None:
            self._compare_layer(call)
            observer(call)

        return compared

    def finish(self, output: Any) -> None:
        """Compare the answers, and remember that this model may be believed."""
        found = _answers(output, self.batch)
        differences = [
            relative_difference(found[name], expected)
            for name, expected in self.expected.items()
            if name in found and found[name].shape == expected.shape
        ]
        if self.expected and not differences:
            raise BadInput(f"{self._family} answers in another form while it is observed, so it cannot be recorded.")
        largest = max(differences, default=0.0)
        implementation = implementation_of(self.model)
        if not largest <= _tolerance(TOLERANCES, self.expected):
            raise BadInput(self._difference(found, largest, implementation))
        _verified[self.model.base_model] = {
            "answers_against": implementation,
            "answers_differ_by": largest,
            "layers": self.layers,
            "weights_times_values_differ_by": self.largest if self.products is None else None,
        }

    def _difference(self, found: Mapping[str, Tensor], largest: float, implementation: str) -> str:
        """The sentence for answers that differ: whether transformers itself has them differ, with nobody looking on."""
        with torch.no_grad(), unobserved_eager(self.model) as model:
            unobserved = _answers(model(**self.batch), self.batch)
        own = unobserved.keys() == found.keys() and all(
            torch.equal(answer.nan_to_num(), unobserved[name].nan_to_num()) for name, answer in found.items()
        )
        whose = ", by the code of transformers itself (it is so when nothing observes it too)" if own else ""
        if math.isnan(largest) and not any(bool(answer.isnan().any()) for answer in self.expected.values()):
            return (
                f"{self._family} answers with what is not a number where its attention is eager, which is what can be"
                f" recorded, and with numbers as it was loaded ({implementation}){whose}: it cannot be recorded."
            )
        return (
            f"{self._family} answers differently with its eager attention, which is recorded, and as it was loaded"
            f" ({implementation}): by {largest:.2g} of its size{whose}, so the record would be of another model. Load"
            ' it with attn_implementation="eager", or pass verify="never" to record it all the same.'
        )

    @property
    def _family(self) -> str:
        return type(self.model).__name__

    def _compare_layer(self, call: AttentionCall) -> None:
        layer, self.layers = self.layers, self.layers + 1
        if call.output is None or call.value is None:
            whole = call.stack == "cross" or call.weights.shape[-1] == call.weights.shape[-2]
            if whole and not self._was_multiplied(call.weights):
                raise BadInput(
                    f"The attention weights that {self._family} returns for layer {layer} are not those it computes"
                    ' with, so they cannot be recorded; pass verify="never" to record them all the same.'
                )
            if call.module is not None and self.products is not None:
                self.products.clear()  # it is shown as it comes: what was multiplied so far is of this layer or before
            return
        weights, value = call.weights.detach(), call.value.detach()
        value = value.repeat_interleave(weights.shape[1] // value.shape[1], dim=1)
        product = (weights @ value.to(weights.dtype)).transpose(1, 2).reshape(-1)
        difference = relative_difference(product, call.output.detach().reshape(-1))
        if not difference <= LAYER_TOLERANCES.get(weights.dtype, LAYER_TOLERANCES[torch.bfloat16]):
            raise BadInput(
                f"The attention weights of {self._family} in layer {layer} do not give what the layer put out (weights"
                f" x values differ from it by {difference:.2g} of its size), so they cannot be recorded."
            )
        self.largest = max(self.largest, difference)

    def _was_multiplied(self, weights: Tensor) -> bool:
        """Whether these weights, or equal ones, took part in a product."""
        candidates = [factor for factor in self.products or () if factor.numel() == weights.numel()]
        if any(factor.data_ptr() == weights.data_ptr() for factor in candidates):
            return True
        ordered = weights.detach().flatten().sort().values
        return any(torch.equal(factor.detach().flatten().sort().values, ordered) for factor in candidates)


class _Products(TorchFunctionMode):
    """Notes the factors of every matrix product that is computed within."""

    KINDS = frozenset(
        {torch.matmul, torch.bmm, torch.einsum, torch.baddbmm, Tensor.matmul, Tensor.bmm, Tensor.__matmul__}
    )

    def __init__(self, noted: list[Tensor]) -> None:
        super().__init__()
        self.noted = noted

    def __torch_function__(
        self, function: Callable[..., Any], _types: Any, arguments: tuple[Any, ...] = (), options: Any = None
    ) -> Any:
        """Call the function, and note what it multiplies."""
        if function in self.KINDS:
            flat = [one for part in arguments for one in (part if isinstance(part, (list, tuple)) else (part,))]
            self.noted += [factor for factor in flat if isinstance(factor, Tensor)]
        return function(*arguments, **(options or {}))


def _answers(output: Any, batch: Mapping[str, Any]) -> dict[str, Tensor]:
    """The numbers a model answers with, at the positions that are no padding."""
    named = output.items() if isinstance(output, Mapping) else enumerate(output if isinstance(output, tuple) else ())
    return {
        str(name): _at_real_positions(value.detach(), batch)
        for name, value in named
        if isinstance(value, Tensor) and value.is_floating_point() and not str(name).endswith(NOT_ANSWERS)
    }


def _at_real_positions(answer: Tensor, batch: Mapping[str, Any]) -> Tensor:
    for name in ("decoder_attention_mask", "attention_mask"):
        mask = batch.get(name)
        if isinstance(mask, Tensor) and mask.ndim == 2 and answer.shape[:2] == mask.shape and not mask.all():
            return answer[mask.bool().to(answer.device)]
    return answer


def relative_difference(found: Tensor, expected: Tensor) -> float:
    """The length of the difference over the length of what was expected; numbers that agree in not being any agree.

    Piece by piece: the answers of a language model as float64, several times over, would be the peak of a recording.
    """
    difference = size = 0.0
    pieces = zip(found.flatten().split(PIECE), expected.to(found.device).flatten().split(PIECE), strict=True)
    for some, wanted in ((piece.double(), other.double()) for piece, other in pieces):
        same = (some == wanted) | (some.isnan() & wanted.isnan())
        difference += float(torch.where(same, 0.0, some - wanted).square().sum())
        size += float(torch.where(wanted.isfinite(), wanted, 0.0).square().sum())
    return math.sqrt(difference / size if size > 0 else difference)


def _tolerance(tolerances: Mapping[torch.dtype, float], answers: Mapping[str, Tensor]) -> float:
    return max((tolerances.get(answer.dtype, 1e-1) for answer in answers.values()), default=0.0)


# ---- the card of a record


def card_of(model: nn.Module) -> dict[str, Any]:
    """What a reader needs to make the record again; a local folder gives its name, not its path.

    A module of the user's own has no name but that of its class.
    """
    kind = type(model).__name__
    if not isinstance(model, PreTrainedModel):
        dtype = next((parameter.dtype for parameter in model.parameters()), torch.float32)
        named = {"model": kind, "revision": None}
        found: dict[str, Any] = {"attention_implementation": "the module's own"}
    else:
        name = str(model.config.name_or_path or kind)
        dtype = _dtype_of(model)
        named = {
            "model": Path(name).name if Path(name).is_dir() else name,
            "revision": getattr(model.config, "_commit_hash", None),
        }
        found = {"attention_implementation": "eager", "verified": verification_of(model)}
        if model.config.model_type in NOTES:
            found["note"] = NOTES[model.config.model_type]
    return {
        **named,
        "class": kind,
        "dtype": str(dtype).removeprefix("torch."),
        **found,
        "versions": {"python": platform.python_version(), **{package: _version(package) for package in PACKAGES}},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _dtype_of(model: PreTrainedModel) -> torch.dtype:
    """What the model computes in: under autocast that is not what its weights are kept in."""
    device = model.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else model.dtype


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def observed_run(model: PreTrainedModel, batch: Mapping[str, Any], observer: Observer, check: SelfCheck | None) -> Any:
    """Run the model while the observer looks on; the check, where there is one, looks first."""
    if check is None:
        with watch_model(model, observer) as run:
            return run(**batch)
    with watch_model(model, check.observer(observer)) as run, check.around():
        output = run(**batch)
    check.finish(output)
    return output
