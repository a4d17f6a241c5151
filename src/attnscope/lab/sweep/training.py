"""Many runs of the attention classifier trained together, each equal to what it would be alone.

Runs of one seed begin with the same weights and see the same texts and dropout masks in the same order, so that they
differ by their settings alone. DP and DP-A go through a compiled loop (kernels.py), one run to a thread;
AD and DP-L are batched by seed (attention.py), each thread with a part of the runs. A run whose patience is over is
left out of what follows. A sweep with a checkpoint may be killed at any moment and then ends with the very same bits,
on the same machine with as many threads.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...engine import Engine, Store, engine
from ...errors import BadInput
from ..batches import order_of_epoch
from ..data.packed import ClassifiedTexts, PackedTexts
from ..models.attention_classifier import VARIANTS
from ..vocabulary import Vocabulary
from .attention import ENCODERS, right_batched, train_batched
from .kernels import count_right_dot, train_dot
from .runs import Recipe, RunSettings, RunState, TrainedRun, initial_weights, recipe_of

STATES = "states"
"""The one part of the store."""
NAMES = ("embeddings.weight", "context", "output.weight", "affine.weight", "affine.bias")
Watch = Callable[[int, Mapping[RunSettings, float]], None]
"""Called after each epoch (from 1) with the accuracy on dev of the runs that are not over."""


def sweep(
    data: ClassifiedTexts,
    runs: Sequence[RunSettings],
    *,
    width: int = 100,
    epochs: int = 40,
    batch: int = 100,
    rate: int | float = 0.02,
    rate_decay: int | float = 0.001,
    dropout: int | float = 0.5,
    precision: str = "float32",
    patience: int | None = None,
    vectors: Float[Tensor, "word width"] | None = None,
    checkpoint: Path | None = None,
    seconds_between_checkpoints: float = 30.0,
    threads: int | None = None,
    watch: Watch | None = None,
) -> list[TrainedRun]:
    """Train all runs and give what came out, in their order.

    Args:
        data: Texts to learn from, to choose the best epoch by (the first with the highest accuracy) and to test on.
        runs: The settings of each; no two alike.
        width: d, the length of an embedding; even for `dot_lstm`.
        epochs: At most.
        batch: Texts to an update; the last one of an epoch may have fewer.
        rate: Of Adagrad.
        rate_decay: The rate of update t, from 0, is rate / (1 + t · rate_decay).
        dropout: 0.5 or 0, of the embeddings and of the weighted mean.
        precision: `float32` or `float64`.
        patience: A run stops after so many epochs without a better accuracy on dev; never if not given.
        vectors: What the embeddings of all runs begin with; random ones if not given.
        checkpoint: The folder of a `Store` that keeps the state of all runs; what it already holds is continued.
        seconds_between_checkpoints: At least; the state is kept after an epoch, and after the last one in any case.
        threads: As many as torch has, if not given.
        watch: Called after each epoch.
    """
    recipe = Recipe(width, epochs, batch, rate, rate_decay, dropout, precision, patience)
    if not runs or len(set(runs)) < len(runs):
        raise BadInput("Give at least one run to a sweep, and none of them twice.")
    if width % 2 and any(run.variant == "dot_lstm" for run in runs):
        raise BadInput(f"The LSTM has half of the width in each direction, so the width must be even, not {width}.")
    store = Store(checkpoint, "sweep", recipe_of(data, runs, recipe, None if vectors is None else vectors.numpy()))
    if (kept := store.find(STATES)) is None:
        epoch, states = 0, begin_runs(data, runs, recipe, vectors)
    else:
        epoch, states = kept["epoch"], [RunState.from_state(*pair) for pair in zip(runs, kept["states"], strict=True)]
    saved = time.monotonic()
    threads = threads or torch.get_num_threads()
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # each thread has runs of its own: a product shared by threads would only make them wait
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            while epoch < epochs and (active := [state for state in states if not state.stopped(patience)]):
                list(pool.map(partial(train_epoch, data, epoch, recipe), shares(active, threads)))
                epoch += 1
                if watch is not None:
                    watch(epoch, {state.settings: state.dev_accuracy[-1] for state in active})
                over = epoch == epochs or all(state.stopped(patience) for state in states)
                if over or time.monotonic() - saved >= seconds_between_checkpoints:
                    store.keep(STATES, {"epoch": epoch, "states": [state.state() for state in states]})
                    saved = time.monotonic()
            return _test(data.test, states, threads, pool)
    finally:
        torch.set_num_threads(before)


def shares(states: Sequence[RunState], threads: int) -> list[list[RunState]]:
    """The runs cut into what one thread does at a time, the longest work first.

    A run of DP or DP-A is one share; runs of AD or DP-L are batched by seed, in as many equal parts as there are
    threads.
    """
    groups: dict[tuple[str, int], list[RunState]] = {}
    for state in states:
        groups.setdefault((state.settings.variant, state.settings.seed), []).append(state)
    cut: list[list[RunState]] = []
    for variant in ("dot_lstm", "additive", "dot_affine", "dot"):
        for (name, _), members in groups.items():
            if name == variant:
                parts = min(threads, len(members)) if name in ENCODERS else len(members)
                bounds = [round(part * len(members) / parts) for part in range(parts + 1)]
                cut += [members[low:high] for low, high in pairwise(bounds)]
    return cut


def begin_runs(
    data: ClassifiedTexts,
    runs: Sequence[RunSettings],
    recipe: Recipe,
    vectors: Float[Tensor, "word width"] | None = None,
) -> list[RunState]:
    """All runs before their first step."""
    outcomes = 1 if len(data.classes) == 2 else len(data.classes)
    size = len(data.vocabulary)
    beginnings: dict[tuple[str, int], dict[str, Tensor]] = {}
    for run in runs:
        if (run.variant, run.seed) not in beginnings:
            shape = (size, recipe.width, outcomes)
            beginnings[run.variant, run.seed] = initial_weights(run.variant, *shape, run.seed, vectors)
    return [RunState.at_start(run, beginnings[run.variant, run.seed], recipe.kind) for run in runs]


def train_epoch(data: ClassifiedTexts, epoch: int, recipe: Recipe, states: Sequence[RunState]) -> None:
    """One epoch of the runs of one thread, and a look at dev."""
    order = order_of_epoch(states[0].settings.seed, epoch, len(data.train))
    if states[0].settings.variant in ENCODERS:
        train_batched(states, data.train, order, recipe)
    else:
        for state in states:
            _train_dot(state, data.train, order, recipe)
    for state, right in zip(states, _right(states, data.dev), strict=True):
        state.see(right / len(data.dev))


def _train_dot(state: RunState, texts: PackedTexts, order: np.ndarray, recipe: Recipe) -> None:
    run, kind = state.settings, recipe.kind
    rates = tuple(kind(number) for number in (run.scaling, recipe.rate, recipe.rate_decay, recipe.epsilon))
    state.step = train_dot(
        (texts.tokens, texts.starts, texts.labels),
        order,
        recipe.batch,
        state.step,
        run.seed,
        recipe.dropout > 0,
        _arrays(state.weights),
        _arrays(state.squares),
        rates,
        (kind(run.l2), kind(run.penalty), run.penalty_kind == "square"),
    )


def _arrays(group: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """What the compiled loop takes; DP has an empty affine layer."""
    kind = group["context"].dtype
    empty = {"affine.weight": np.empty((0, 0), kind), "affine.bias": np.empty(0, kind)}
    return tuple((empty | dict(group))[name] for name in NAMES)


def _right(states: Sequence[RunState], texts: PackedTexts) -> list[int]:
    """How many texts each run gets right."""
    if states[0].settings.variant in ENCODERS:
        return right_batched(states, texts)
    packed = (texts.tokens, texts.starts, texts.labels)
    kind = states[0].weights["context"].dtype.type
    return [int(count_right_dot(packed, _arrays(state.weights), kind(state.settings.scaling))) for state in states]


def _test(test: PackedTexts, states: Sequence[RunState], threads: int, pool: ThreadPoolExecutor) -> list[TrainedRun]:
    """Every run with the accuracy of its best weights."""
    best = {state.settings: RunState(state.settings, state.best, {}) for state in states}
    parts = shares(list(best.values()), threads)
    right: dict[RunSettings, int] = {}
    for part, counts in zip(parts, pool.map(partial(_right, texts=test), parts), strict=True):
        right |= {state.settings: count for state, count in zip(part, counts, strict=True)}
    return [TrainedRun.of(state, right[state.settings] / len(test)) for state in states]


# A sweep spread over an engine: one group for each variant and seed, each with a checkpoint of its own.


def groups_of(runs: Sequence[RunSettings]) -> dict[str, list[RunSettings]]:
    """The runs of each variant and seed, by a name that fits a file.

    >>> list(groups_of([RunSettings("dot", 1), RunSettings("dot", 10), RunSettings("additive", 1, seed=3)]))
    ['dot-0', 'additive-3']
    """
    groups: dict[str, list[RunSettings]] = {}
    for run in runs:
        groups.setdefault(f"{run.variant}-{run.seed}", []).append(run)
    return groups


def sweep_groups(
    data: ClassifiedTexts,
    runs: Sequence[RunSettings],
    *,
    on: str | Engine = "local",
    options: Mapping[str, Any] | None = None,
    checkpoints: Path | None = None,
    **training: Any,
) -> list[TrainedRun]:
    """Train groups of runs on an engine, and give all runs in their order.

    Args:
        data: As `sweep` takes it; it travels to each worker once.
        runs: The settings of each.
        on: `local`, where groups follow each other and each has all threads, or `ray`, where workers take them.
        options: Of the engine, such as `workers` and `threads`.
        checkpoints: A folder with the store of each group, which all workers must see.
        **training: As `sweep` takes them.
    """
    groups = groups_of(runs)
    items = list(enumerate(groups.items()))
    work = partial(_worker, data, checkpoints, training)
    found: dict[RunSettings, TrainedRun] = {}
    for _, trained in engine(on)(work, items, **(options or {})):
        found |= {run.settings: run for run in trained}
    return [found[run] for run in runs]


def _worker(
    data: ClassifiedTexts, checkpoints: Path | None, training: Mapping[str, Any]
) -> Callable[[tuple[str, list[RunSettings]]], list[TrainedRun]]:
    """What trains one group."""

    def train(group: tuple[str, list[RunSettings]]) -> list[TrainedRun]:
        name, runs = group
        return sweep(data, runs, checkpoint=None if checkpoints is None else checkpoints / name, **training)

    return train


# Every compiled loop of a sweep run once, so that the compiler's minutes fall into set-up: they are kept on disk.


def warm_up() -> None:
    """Train each variant on two words."""
    texts = PackedTexts.of([[4, 5], [5]], [0, 1])
    data = ClassifiedTexts("two words", ("negative", "positive"), Vocabulary(["bad", "good"]), texts, texts, texts)
    sweep(data, [RunSettings(variant) for variant in VARIANTS], width=2, epochs=1)
