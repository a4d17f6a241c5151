"""One run of a sweep: its settings, the weights it begins with, how far it is, and what comes out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from ...errors import BadInput
from ..data.packed import ClassifiedTexts
from ..models.attention_classifier import VARIANTS

PENALTIES = ("absolute", "square")


@dataclass(frozen=True)
class RunSettings:
    """The settings of one run; runs of one seed begin alike and see the same texts and masks in the same order."""

    variant: str = "dot"
    scaling: int | float = 10.0
    """The paper's λ."""
    seed: int = 0
    l2: int | float = 0.0
    """Strength of L2 on everything but the embeddings, added to the gradient as PyTorch's `weight_decay`."""
    penalty: int | float = 0.0
    """c of the penalty on V·W."""
    penalty_kind: str = "absolute"
    """`absolute`: c · |V·W|, `square`: c · (V·W)²; with several outcomes, the sum over them."""

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise BadInput(f"There is no variant {self.variant!r}: choose one of {', '.join(VARIANTS)}.")
        if self.penalty_kind not in PENALTIES:
            raise BadInput(f"There is no penalty {self.penalty_kind!r}: choose one of {', '.join(PENALTIES)}.")
        if not self.scaling > 0:
            raise BadInput(f"The scaling λ must be above 0, not {self.scaling}.")
        if self.seed < 0 or self.l2 < 0 or self.penalty < 0:
            raise BadInput(
                f"Seed, l2 and penalty must not be negative: they are {self.seed}, {self.l2}, {self.penalty}."
            )


def initial_weights(
    variant: str, size: int, width: int, outcomes: int, seed: int, vectors: Float[Tensor, "word width"] | None = None
) -> dict[str, Tensor]:
    """The weights that a run begins with, in float64, under the names of the model; `vectors` replace the embeddings.

    Embeddings come from U(-.1, .1), the context V from N(0, 1), output W and the affine layer from U(-1/√d, 1/√d); the
    matrices of the LSTM are orthogonal, its biases zero. What variants have in common is the same for one seed.
    """
    dice = torch.Generator().manual_seed(seed)

    def uniform(bound: float, *shape: int) -> Tensor:
        return torch.empty(*shape, dtype=torch.float64).uniform_(-bound, bound, generator=dice)

    weights = {"embeddings.weight": uniform(0.1, size, width)}
    weights["context"] = torch.randn(width, dtype=torch.float64, generator=dice)
    weights["output.weight"] = uniform(width**-0.5, outcomes, width)
    if variant in {"dot_affine", "additive"}:
        weights["affine.weight"] = uniform(width**-0.5, width, width)
        weights["affine.bias"] = uniform(width**-0.5, width)
    if variant == "dot_lstm":
        half = width // 2
        for end in ("l0", "l0_reverse"):
            for name, entering in (("weight_ih", width), ("weight_hh", half)):
                matrix = torch.empty(4 * half, entering, dtype=torch.float64)
                weights[f"lstm.{name}_{end}"] = nn.init.orthogonal_(matrix, generator=dice)
            for name in ("bias_ih", "bias_hh"):
                weights[f"lstm.{name}_{end}"] = torch.zeros(4 * half, dtype=torch.float64)
    if vectors is not None:
        if vectors.shape != (size, width):
            raise BadInput(
                f"The vectors are {tuple(vectors.shape)}, but the model wants {size} words x {width} numbers."
            )
        weights["embeddings.weight"] = vectors.double().clone()
    return weights


@dataclass
class RunState:
    """How far a run is. Weights and Adagrad's sums are changed in place by the loops."""

    settings: RunSettings
    weights: dict[str, np.ndarray]
    squares: dict[str, np.ndarray]
    step: int = 0
    best_epoch: int = 0
    """Of the first best accuracy on dev, from 1."""
    best: dict[str, np.ndarray] = field(default_factory=dict)
    dev_accuracy: list[float] = field(default_factory=list)
    products: list[list[float]] = field(default_factory=list)
    context_lengths: list[float] = field(default_factory=list)
    output_lengths: list[list[float]] = field(default_factory=list)

    @classmethod
    def at_start(cls, settings: RunSettings, weights: Mapping[str, Tensor], kind: type) -> "RunState":
        """Before the first step, in that precision."""
        arrays: dict[str, np.ndarray] = {name: weight.numpy().astype(kind) for name, weight in weights.items()}
        return cls(settings, arrays, {name: np.zeros_like(array) for name, array in arrays.items()})

    def see(self, dev_accuracy: float) -> None:
        """An epoch is over: note where V and W are, and keep the weights if dev was never as good."""
        context, output = (self.weights[name].astype(np.float64) for name in ("context", "output.weight"))
        self.products.append((output @ context).tolist())
        self.context_lengths.append(float(np.linalg.norm(context)))
        self.output_lengths.append(np.linalg.norm(output, axis=1).tolist())
        if not self.dev_accuracy or dev_accuracy > max(self.dev_accuracy):
            self.best_epoch = len(self.dev_accuracy) + 1
            self.best = {name: array.copy() for name, array in self.weights.items()}
        self.dev_accuracy.append(dev_accuracy)

    def stopped(self, patience: int | None) -> bool:
        """Whether so many epochs in a row brought nothing better."""
        return patience is not None and len(self.dev_accuracy) - self.best_epoch >= patience

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds of it."""
        state = {
            name: value for name, value in vars(self).items() if name not in {"settings", "weights", "squares", "best"}
        }
        arrays = {"weights": self.weights, "squares": self.squares, "best": self.best}
        return state | {
            group: {name: torch.from_numpy(array) for name, array in members.items()}
            for group, members in arrays.items()
        }

    @classmethod
    def from_state(cls, settings: RunSettings, kept: Mapping[str, Any]) -> "RunState":
        """As it was when the checkpoint was written."""
        arrays = {
            group: {name: tensor.numpy() for name, tensor in kept[group].items()}
            for group in ("weights", "squares", "best")
        }
        return cls(settings, **{**kept, **arrays})


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """A run that is over; both sets of weights fit into an `AttentionClassifier` by `load_state_dict`."""

    settings: RunSettings
    weights: dict[str, Tensor]
    """Of the first epoch with the best accuracy on dev."""
    last_weights: dict[str, Tensor]
    best_epoch: int
    """From 1."""
    dev_accuracy: tuple[float, ...]
    """After each epoch."""
    test_accuracy: float
    """With the best weights."""
    context_dot_output: Float64[np.ndarray, "epoch outcome"]
    """V·W after each epoch."""
    context_length: Float64[np.ndarray, " epoch"]
    output_length: Float64[np.ndarray, "epoch outcome"]

    @classmethod
    def of(cls, state: RunState, test_accuracy: float) -> "TrainedRun":
        """What came out of a run."""
        best, last = (
            {name: torch.from_numpy(array) for name, array in group.items()} for group in (state.best, state.weights)
        )
        return cls(
            state.settings,
            best,
            last,
            state.best_epoch,
            tuple(state.dev_accuracy),
            test_accuracy,
            np.array(state.products),
            np.array(state.context_lengths),
            np.array(state.output_lengths),
        )

    def row(self) -> dict[str, Any]:
        """The run as one row of a table: settings, epoch, accuracies and V·W at the best epoch."""
        at = self.best_epoch - 1
        return asdict(self.settings) | {
            "best_epoch": self.best_epoch,
            "dev_accuracy": self.dev_accuracy[at],
            "test_accuracy": self.test_accuracy,
            "context_dot_output": self.context_dot_output[at].tolist(),
        }


# What all runs of a sweep have in common: the authors' training recipe.


@dataclass(frozen=True)
class Recipe:
    """How every run is trained: Adagrad, batches in a new order in every epoch, dropout of a half or none."""

    width: int
    epochs: int
    batch: int
    rate: int | float
    rate_decay: int | float
    dropout: int | float
    precision: str
    patience: int | None
    epsilon: float = 1e-10

    def __post_init__(self) -> None:
        if self.dropout not in {0, 0.5}:
            raise BadInput(f"Dropout is 0.5 (one bit decides) or 0 here, not {self.dropout}.")
        if self.precision not in {"float32", "float64"}:
            raise BadInput(f"The precision is float32 or float64, not {self.precision!r}.")
        if min(self.width, self.epochs, self.batch) < 1 or (self.patience is not None and self.patience < 1):
            raise BadInput("Width, epochs, batch and patience must be at least 1.")

    @property
    def kind(self) -> type:
        """NumPy's type of the weights."""
        return np.float32 if self.precision == "float32" else np.float64

    def rate_at(self, step: int) -> float:
        """The learning rate of the update of that number, from 0."""
        return float(self.rate / (1 + step * self.rate_decay))


def recipe_of(
    data: ClassifiedTexts, runs: Sequence[RunSettings], recipe: Recipe, vectors: np.ndarray | None
) -> dict[str, Any]:
    """What tells a sweep from another, in JSON terms; data and vectors by a checksum."""
    return {
        "data": data.name,
        "texts": [part.fingerprint for part in (data.train, data.dev, data.test)],
        "vocabulary": len(data.vocabulary),
        "vectors": None if vectors is None else crc32(np.ascontiguousarray(vectors).tobytes()),
        "runs": [asdict(run) for run in runs],
        **asdict(recipe),
    }
