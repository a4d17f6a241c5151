"""Copying: which tasks are learned by which seeds (Figure 3), β of uniform attention, and several heads (Figure 6).

The tasks of Snell et al. 2021, sections 3.3 and 6.2. A source is x and the end, an output begins with bos and is x.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from ...errors import BadInput
from ...lab.models import Seq2Seq
from ...lab.models.seq2seq import HEADS
from ...lab.models.seq2seq_output import AttentionHead
from ...lab.train import Measurement
from ...lab.vocabulary import FRAMED, Vocabulary
from .paper import TASKS, CopyingScale, HeadsScale
from .training import LOOKED_AT, Rows, all_runs, learn, rows_of_probes, stage_store, with_seed

# Endless sequences to copy: permutations of the same words, some of many words, mixtures, and a fixed reordering.


@dataclass(frozen=True)
class CopyingTask:
    """Sequences of `length` different words; each is drawn from one of `sets` disjoint sets of `words` words.

    With as many words as places, every sequence of a set holds the same words, in another order. `reordered` is None
    for copying, or the seed of the fixed permutation π in which the output names the words (Eq. 25).

    >>> sources, read, right = CopyingTask(length=3, words=5).batch(2, seed=0, step=0)
    >>> tuple(sources.shape), tuple(read.shape), bool((read[:, 1:] == right[:, :-1]).all())
    ((2, 4), (2, 4), True)
    """

    length: int = 40
    words: int = 60
    sets: int = 1
    reordered: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.length <= self.words:
            raise BadInput(
                f"A sequence has different words, so its length lies between 1 and the number of words: {self.length}"
                f" is not in 1 to {self.words}."
            )
        if self.sets < 1:
            raise BadInput(f"Words are drawn from at least 1 set, not {self.sets}.")

    @property
    def vocabulary(self) -> Vocabulary:
        """The words, named by their numbers from 1, set after set."""
        return Vocabulary([str(number + 1) for number in range(self.words * self.sets)], special=FRAMED)

    @property
    def order(self) -> Int[np.ndarray, " length"]:
        """π: the place in the source that each place of the output names, from zero."""
        places = np.arange(self.length)
        return places if self.reordered is None else np.random.default_rng(self.reordered).permutation(places)

    def batch(
        self, rows: int, seed: int, step: int
    ) -> tuple[Int[Tensor, "row place"], Int[Tensor, "row place"], Int[Tensor, "row place"]]:
        """Sources, what the decoder reads, and what it is to say; they depend on the seed and the step alone.

        Tasks with the same words have the same sources, whatever the order of their outputs.
        """
        random = np.random.default_rng([seed, step])
        sets = random.integers(self.sets, size=(rows, 1))
        # Ranks of random numbers are a random permutation; its first places are a random choice in random order.
        drawn = random.random((rows, self.words)).argsort(1)[:, : self.length]
        words = drawn + sets * self.words + len(FRAMED)
        specials = list(FRAMED)
        begin, end = (np.full((rows, 1), specials.index(name)) for name in ("bos", "eos"))
        named = words[:, self.order]
        tables = (np.hstack(pair) for pair in ((words, end), (begin, named), (named, end)))
        sources, read, right = (torch.from_numpy(table) for table in tables)
        return sources, read, right


def copying_task(name: str, length: int = 40) -> CopyingTask:
    """One of the paper's tasks, by its name.

    They are permutations of the `same` words, a `choice` of words out of half as many again (40 of 60), a `mixture` of
    two sets (1-40 or 41-80), and such a choice `reordered`, always in the same way.
    """
    tasks = {
        "same": CopyingTask(length, length),
        "choice": CopyingTask(length, length * 3 // 2),
        "mixture": CopyingTask(length, length, sets=2),
        "reordered": CopyingTask(length, length * 3 // 2, reordered=0),
    }
    if name not in tasks:
        raise BadInput(f"There is no copying task {name!r}: choose {', '.join(tasks)}.")
    return tasks[name]


# One training, looked at as it learns.


@dataclass(frozen=True, eq=False)
class CopyingAccuracy:
    """Loss and accuracy on fresh sequences, each word answered after the right ones before it, the end included."""

    model: Seq2Seq
    task: CopyingTask
    seed: int
    steps: Container[int]
    sequences: int = 50
    fixed: bool = False
    """Whether it looks with the same sequences every time."""
    name: str = field(default="copying", init=False)

    def draw(self, step: int) -> tuple[Int[Tensor, "row place"], Int[Tensor, "row place"], Int[Tensor, "row place"]]:
        """The sequences of a step."""
        return self.task.batch(self.sequences, self.seed, LOOKED_AT + (0 if self.fixed else step))

    def __call__(self, step: int) -> Mapping[str, float]:
        """Both figures."""
        source, read, right = self.draw(step)
        logits = self.model(source, read)
        return {"accuracy": self.model.accuracy(logits, right), "loss": float(self.model.loss(logits, right))}


@dataclass(frozen=True, eq=False)
class CopyingLexical(CopyingAccuracy):
    """The same, and log β: its mean at the place of the right word and elsewhere, and how often it is largest there."""

    def __call__(self, step: int) -> Mapping[str, float]:
        """All figures; the end, which has no word of its own in the source, does not count for β."""
        source, read, right = self.draw(step)
        length = self.task.length
        found = self.model.lexical(source, read[:, :length], right[:, :length])
        here = source.unsqueeze(1) == right[:, :length, None]
        return {
            **super().__call__(step),
            "lexical_right": float(found[here].mean()),
            "lexical_other": float(found[~here].mean()),
            "lexical_top": float(here.gather(2, found.argmax(2, keepdim=True)).float().mean()),
        }


def train_copying(
    model: Seq2Seq,
    task: CopyingTask,
    checkpoint: Path,
    *,
    seed: int,
    steps: int,
    batch: int,
    looks: CopyingAccuracy,
    details: Mapping[str, Any] | None = None,
) -> Rows:
    """Train in place on sequences that depend on the seed and the step alone, and return what was seen.

    `details` are what else tells this training from others, in JSON terms, such as how the model began.
    """

    def measure(step: int) -> Measurement:
        source, read, right = task.batch(batch, seed, step)
        logits = model(source, read)
        return Measurement(model.loss(logits, right), model.accuracy(logits.detach(), right))

    sequences = [task.length, task.words, task.sets, task.reordered]
    recipe = {"task": "copying", "sequences": sequences, "steps": steps, "batch": batch, **(details or {})}
    return rows_of_probes(learn(model, measure, checkpoint, seed=seed, steps=steps, recipe=recipe, probes=(looks,)))


# Figure 3 and section 6.2: what is learned by seed, and the lexical probe under uniform attention.


PROBED = ("choice", "reordered")
"""The two tasks of section 6.2, for which the paper says that β under uniform attention is the same."""


@dataclass(frozen=True)
class CopyingRun:
    """One training: the task, whether attention is learned or uniform, and the seed of weights and sequences."""

    task: str
    attention: str
    seed: int


def run_copying(folder: Path, scale: CopyingScale, engine: str = "local") -> dict[str, pd.DataFrame]:
    """The table copying, with a row for each task, attention, seed and step: accuracy, loss, and the lexical probe.

    `lexical_right` and `lexical_other` are means of log β at the source place of the right word and at others,
    `lexical_top` how often β is largest at the right place; they are there where attention is uniform.
    """
    runs = [
        CopyingRun(task, "learned", seed)
        for seed in range(max(scale.seeds.values()))
        for task in TASKS
        if seed < scale.seeds.get(task, 0)
    ]
    runs += [CopyingRun(task, "uniform", seed) for seed in range(scale.uniform_seeds) for task in PROBED]
    # resolved, because the workers of a cluster stand in folders of their own
    make_worker = partial(partial, do_copying_run, folder.resolve(), scale)
    return {"copying": pd.DataFrame(all_runs("Copying", make_worker, runs, engine))}


def do_copying_run(folder: Path, scale: CopyingScale, run: CopyingRun) -> Rows:
    """What was seen of a run, trained now, continued, or kept from before."""
    name = f"{run.task}-{run.attention}-{run.seed}"
    return stage_store(folder, scale).grow(name, partial(_copy, scale, run))


def _copy(scale: CopyingScale, run: CopyingRun, checkpoint: Path) -> Rows:
    task = copying_task(run.task, scale.length)
    # both tasks under uniform attention are trained equally long
    steps = scale.reordered_steps if (run.task, run.attention) == ("reordered", "learned") else scale.steps
    model = with_seed(run.seed, lambda: Seq2Seq(task.vocabulary, width=scale.width, attention=run.attention))
    look = CopyingLexical if run.attention == "uniform" else CopyingAccuracy
    rows = train_copying(
        model,
        task,
        checkpoint,
        seed=run.seed,
        steps=steps,
        batch=scale.batch,
        looks=look(model, task, run.seed, range(0, steps + 1, scale.every), scale.sequences),
        details={"width": scale.width, "attention": run.attention},
    )
    return [{**asdict(run), **row} for row in rows]


# Figure 6: good and bad initialisations of a head, found by trial, and eight of them together.


GOOD, BAD = 0.95, 0.6
"""A head is good above the first accuracy at some check, bad below the second at the last one, for all data seeds."""
FIRST_HEAD = 1000
"""Head number n begins with the weights that seed FIRST_HEAD + n gives."""
BEGINNING = 0
"""The seed of all other weights, which every model of this study shares."""
CHECKED_WITH = 99
"""The seed of the sequences on which every model is checked."""
KINDS = ("bad", "good", "random")
"""Only bad heads, one good head among bad ones, and heads taken as they come."""


@dataclass(frozen=True)
class HeadsRun:
    """One training: the numbers of the heads, the seed of the sequences, and how contexts are put together."""

    heads: tuple[int, ...]
    data_seed: int
    contexts: str = "mean"
    """Of one head it is the same."""

    @property
    def name(self) -> str:
        """What its files are called."""
        summed = "-summed" if self.contexts == "sum" else ""
        return f"{'-'.join(map(str, self.heads))}-on-{self.data_seed}{summed}"

    def steps(self, scale: HeadsScale) -> int:
        """How long it learns."""
        return scale.combined_steps if len(self.heads) > 1 else scale.steps


def run_heads(folder: Path, scale: HeadsScale, engine: str = "local") -> dict[str, pd.DataFrame]:
    """The tables heads, of models of several heads, and heads_tried, of heads that were tried alone.

    The first has one row for each way of putting contexts together, kind, combination and step: accuracy, loss, and
    the numbers of the heads; a kind for which there were too few heads is not in it. The second has one row for each
    head, data seed and step, and in `found` what the head is: good, bad or neither.
    """
    folder = folder.resolve()
    tried = _try_heads(folder, scale, engine)
    found = tried.groupby("head")["found"].first()
    bad, good = (found.index[found == kind].tolist() for kind in ("bad", "good"))
    combinations = [
        (kind, number, HeadsRun(members, 0, contexts))
        for contexts in scale.contexts
        for number in range(scale.combinations)
        for kind, members in _members(scale, bad, good, number).items()
    ]
    # Two combinations may have the same heads.
    rows = _do_runs(folder, scale, list(dict.fromkeys(run for *_, run in combinations)), engine, "Several heads")
    together = [
        {"contexts": run.contexts, "kind": kind, "combination": number, "heads": " ".join(map(str, run.heads)), **row}
        for kind, number, run in combinations
        for row in rows[run]
    ]
    columns = ["contexts", "kind", "combination", "heads", "step", "accuracy", "loss"]
    return {"heads": pd.DataFrame(together, columns=columns), "heads_tried": tried}


def kind_of(curves: Sequence[Sequence[float]]) -> str:
    """What a head is by its accuracies over training, one curve for each data seed.

    >>> kind_of([[0.1, 0.97, 0.9], [0.1, 0.2, 0.96]]), kind_of([[0.1, 0.5], [0.1, 0.2]]), kind_of([[0.99], [0.1]])
    ('good', 'bad', 'neither')
    """
    if all(max(curve) > GOOD for curve in curves):
        return "good"
    return "bad" if all(curve[-1] < BAD for curve in curves) else "neither"


def _try_heads(folder: Path, scale: HeadsScale, engine: str) -> pd.DataFrame:
    """Try heads in the order of their numbers, a wave at a time, until there are enough of both kinds."""
    table: Rows = []
    kinds: dict[int, str] = {}
    while len(kinds) < scale.tried and not all(
        list(kinds.values()).count(kind) >= scale.wanted for kind in ("good", "bad")
    ):
        wave = range(len(kinds), min(len(kinds) + scale.wave, scale.tried))
        going = list(wave)
        seen: dict[int, list[Rows]] = {head: [] for head in wave}
        for data_seed in range(scale.data_seeds):
            runs = [HeadsRun((head,), data_seed) for head in going]
            rows = _do_runs(folder, scale, runs, engine, "Heads alone")
            for run in runs:
                seen[run.heads[0]].append(rows[run])
            # A head that is neither on one stream is neither on all: the others need not be tried.
            going = [head for head in going if _kind(seen[head]) != "neither"]
        for head in wave:
            kinds[head] = _kind(seen[head])
            table += [
                {"head": head, "found": kinds[head], "data_seed": data_seed, **row}
                for data_seed, rows_of_seed in enumerate(seen[head])
                for row in rows_of_seed
            ]
    return pd.DataFrame(table)


def _kind(seen: Sequence[Rows]) -> str:
    return kind_of([[row["accuracy"] for row in rows] for rows in seen])


def _members(scale: HeadsScale, bad: Sequence[int], good: Sequence[int], number: int) -> dict[str, tuple[int, ...]]:
    """The heads of a combination of each kind in their order, as far as there are enough, none of them twice."""
    random = np.random.default_rng([CHECKED_WITH, number])
    many = scale.together
    drawn = random.permutation(range(scale.pool))  # first, because it does not depend on what was found
    mixed = random.permutation(bad)
    one = random.permutation(good)
    members = {
        "bad": mixed[:many],
        "good": np.concatenate([mixed[: many - 1], one[:1]]),
        "random": drawn[:many],
    }
    return {kind: tuple(sorted(int(head) for head in members[kind])) for kind in KINDS if len(members[kind]) == many}


def _do_runs(
    folder: Path, scale: HeadsScale, runs: Sequence[HeadsRun], engine: str, title: str
) -> dict[HeadsRun, Rows]:
    """The rows of each run."""
    rows = all_runs(title, partial(partial, do_heads_run, folder, scale), runs, engine)
    checks = len(rows) // max(len(runs), 1)
    return {run: rows[place * checks : (place + 1) * checks] for place, run in enumerate(runs)}


def do_heads_run(folder: Path, scale: HeadsScale, run: HeadsRun) -> Rows:
    """What was seen of a run, trained now, continued, or kept from before."""
    return stage_store(folder, scale).grow(run.name, partial(_copy_with_heads, scale, run))


def model_of_heads(scale: HeadsScale, numbers: Sequence[int], contexts: str = "mean") -> Seq2Seq:
    """The model before training: the weights that all share, and the heads with these numbers."""
    vocabulary = CopyingTask(scale.length, scale.length).vocabulary

    def begin(heads: int) -> Seq2Seq:
        return Seq2Seq(vocabulary, **{**HEADS, "heads": heads, "width": scale.width, "contexts": contexts})

    alone, model = (with_seed(BEGINNING, partial(begin, heads)) for heads in (1, len(numbers)))
    shared = {name: part for name, part in alone.state_dict().items() if not name.startswith("attention.heads.")}
    model.load_state_dict(shared, strict=False)
    for head, number in zip(model.attention.heads, numbers, strict=True):
        head_alone = with_seed(FIRST_HEAD + number, partial(AttentionHead, scale.width, scale.width))
        head.load_state_dict(head_alone.state_dict())
    return model


def _copy_with_heads(scale: HeadsScale, run: HeadsRun, checkpoint: Path) -> Rows:
    model, task = model_of_heads(scale, run.heads, run.contexts), CopyingTask(scale.length, scale.length)
    steps = run.steps(scale)
    return train_copying(
        model,
        task,
        checkpoint,
        seed=run.data_seed,
        steps=steps,
        batch=scale.batch,
        looks=CopyingAccuracy(model, task, CHECKED_WITH, range(0, steps + 1, scale.every), scale.sequences, fixed=True),
        details={"width": scale.width, "heads": list(run.heads), "contexts": run.contexts},
    )
