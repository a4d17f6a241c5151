"""Agreements between runs, from their snapshots alone: at every checkpoint, with errors and chance, and their worth.

Whose top is asked for (u) and in whose order (v) is as the authors' code has it, which in one case is not as they
write it: A(α, β_uf), A(Δ, β_uf) and A(α, β) have u first, but A(β_uf, β_px) has u = β_px and v = β_uf. `seeds` says
whether the two quantities come from runs of two seeds, as the authors have it, or of the same.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ...lab.models import WordTranslation
from ...lab.probes.saliency import contextualised
from ...lab.probes.top_agreement import chance_agreement, rank_agreement, shuffled_agreement, tied_rows, top_agreement
from ..claims import rows_with
from .sentence_pairs import TranslatedPart, TranslatedTexts
from .snapshots import Snapshot, best_snapshot, load_snapshot, load_snapshots, source_rows, translation_rows

REFERENCE, SECOND = 0, 1
"""The seeds of run A, and of run B; of texts, the uniform and the frozen run have the latter."""
Table = Float[Tensor, "row position"]
SHUFFLE_SEED = 0


def row_agreement(
    first: Float[Tensor, "row position"],
    second: Float[Tensor, "row position"],
    real: Bool[Tensor, "row position"],
    groups: Int[Tensor, " row"] | None = None,
) -> dict[str, float]:
    """A(first, second) on average and what stands beside it.

    `error` is the standard error of the agreement; rows of one group, such as the words of one sentence, are not taken
    for independent. `chance` is exact, `shuffled` the paper's baseline of one shuffle, `tied` the share of rows in
    which ties of `second` matter, and `tau` the mean of Kendall's τ over the rows that have one.
    """
    agreed = top_agreement(first, second, real).double()
    taus = rank_agreement(first, second, real)
    return {
        "agreement": float(agreed.mean()),
        "error": grouped_error(agreed, torch.arange(len(agreed)) if groups is None else groups),
        "chance": float(chance_agreement(real).mean()),
        "shuffled": float(shuffled_agreement(first, second, real, SHUFFLE_SEED).double().mean()),
        "tied": float(tied_rows(second, real).double().mean()),
        "tau": float(taus[~taus.isnan()].mean()) if not taus.isnan().all() else math.nan,
    }


def grouped_error(values: Float[Tensor, " row"], groups: Int[Tensor, " row"]) -> float:
    """The standard error of a mean whose rows come in independent groups; not a number for a single group.

    >>> round(grouped_error(torch.tensor([1.0, 0.0, 1.0, 0.0]), torch.arange(4)), 4)  # a half, divided by √3
    0.2887
    """
    apart = (values - values.mean()).double().numpy()
    sums = np.bincount(groups.numpy(), apart)[np.unique(groups.numpy())]
    count = len(sums)
    return math.sqrt(float((sums**2).sum()) * count / (count - 1)) / len(values) if count > 1 else math.nan


# What agreements are worth: ξ of the best checkpoint of each pair, by A and by Kendall's τ, for every measure.


CONTEXTUALISED = ("attention_uniform", "uniform_proxy", "saliency_uniform", "attention_lexical")


def contexts_of(
    agreements: pd.DataFrame, performance: Mapping[str, Mapping[int, float]], trivial: Mapping[str, float]
) -> list[dict[str, Any]]:
    """A row for each kind of agreement, measure, pair and variant of seeds, of one part of one data set.

    The curve of ξ is A(α, α̂) of two seeds, by step, with the performance of α̂'s run: a number for each step under the
    name of each measure. `trivial` is what guessing gives. Columns: seeds, by, measure, pair, agreement, performance
    (ξ), step, reached, best (ξ*), trivial.
    """
    curve = rows_with(agreements, pair="attention_attention", seeds="two").sort_values("step")
    asked = agreements[agreements["pair"].isin(CONTEXTUALISED)].groupby(["pair", "seeds"], sort=False)
    rows = []
    for by in ("agreement", "tau"):
        for measure, by_step in performance.items():
            # τ is not a number where attention is the same everywhere, as it is before training; it ranks nothing then
            points = [
                (step, value, by_step[step])
                for step, value in zip(curve["step"].tolist(), curve[by].fillna(0.0).tolist(), strict=True)
            ]
            for (pair, seeds), value in asked[by].max().items():
                found = contextualised(float(value), points)
                labels = {"seeds": seeds, "by": by, "measure": measure, "pair": pair, "agreement": float(value)}
                worth = {"performance": found.performance, "step": found.step, "reached": found.reached}
                rows.append(labels | worth | {"best": points[-1][2], "trivial": trivial[measure]})
    return rows


# Classifiers of texts.


KEYS = ["pair", "seeds", "step"]


def compare_classifiers(
    folder: Path, part: str, others: Sequence[int], words: Mapping[str, Table], guessing: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The agreements of the runs in the folder of a data set on one part of it, and what they are worth.

    `others` are the seeds beside the first, `words` β of the models that know words alone, and `guessing` is the
    accuracy of always giving the same class. Agreements have a row for each pair of quantities, variant of seeds and
    checkpoint, with the columns of `row_agreement`; contexts are those of `contexts_of`.
    """
    rows = pd.DataFrame(_classifier_rows(folder, part, others, words))
    # the runs of several other seeds are one curve: their mean
    table = rows.groupby(KEYS, sort=False, as_index=False).mean()
    accuracies: dict[int, list[float]] = {}
    for seed in others:
        for shot in load_snapshots(folder / f"learned-{seed}" / part):
            accuracies.setdefault(shot.step, []).append(shot.performance["accuracy"])
    means = {step: float(np.mean(values)) for step, values in accuracies.items()}
    return table, pd.DataFrame(contexts_of(table, {"accuracy": means}, {"accuracy": guessing}))


def _classifier_rows(
    folder: Path, part: str, others: Sequence[int], words: Mapping[str, Table]
) -> Iterator[dict[str, Any]]:
    def curve(kind: str, seed: int) -> Iterator[Snapshot]:
        return load_snapshots(folder / f"{kind}-{seed}" / part)

    first, second = (_at_best_step(folder / f"learned-{seed}", part) for seed in (REFERENCE, SECOND))
    attention = first.values["attention"]

    def row(pair: str, seeds: str, values: Table, at: Snapshot, quantity: str) -> dict[str, Any]:
        labels = {"pair": pair, "seeds": seeds, "step": at.step}
        return labels | row_agreement(values, at.values[quantity], first.real)

    for at in curve("uniform", SECOND):
        for seeds, run in (("two", first), ("same", second)):
            yield row("attention_uniform", seeds, run.values["attention"], at, "lexical")
            yield row("saliency_uniform", seeds, run.values["saliency"], at, "lexical")
        for kind, values in words.items():
            yield row(f"uniform_{kind}", "two", values, at, "lexical")
    for seeds, seed in (("same", REFERENCE), ("two", SECOND)):
        for at in curve("learned", seed):
            yield row("attention_lexical", seeds, attention, at, "lexical")
    for at in chain.from_iterable(curve("learned", seed) for seed in others):
        yield row("attention_attention", "two", attention, at, "attention")
    for at in curve("frozen", SECOND):
        yield row("attention_frozen", "two", attention, at, "attention")


def _at_best_step(run: Path, part: str) -> Snapshot:
    """The snapshot at the step with the best accuracy on validation texts, whichever part is asked for."""
    step = best_snapshot(load_snapshots(run / "validation")).step
    return load_snapshot(run / part / f"{step}.safetensors")


# Runs of translation.


@dataclass(frozen=True, eq=False)
class TranslationRuns:
    """Where the runs are kept, and the sentences they were looked at with."""

    folder: Path
    texts: TranslatedTexts
    samples: dict[str, TranslatedPart]
    uniform_seeds: Sequence[int]
    iterations: Sequence[int]

    def best(self, name: str, part: str) -> Snapshot:
        """What a run's best weights gave."""
        return load_snapshot(self.folder / name / "best" / f"{part}.safetensors")

    def curve(self, name: str, part: str) -> list[Snapshot]:
        """What a run's checkpoints gave, in their order."""
        return list(load_snapshots(self.folder / name / part))


def agreements_of(runs: TranslationRuns) -> pd.DataFrame:
    """A row for each part, pair of quantities, variant of seeds and checkpoint; step 0 where there is but one.

    Columns: data, part, pair, seeds, step, and those of `row_agreement`. The quantity after the underscore is v.
    """
    rows = [row for part in runs.samples for row in _translation_rows(runs, part)]
    return pd.DataFrame([{"data": runs.texts.name, **row} for row in rows])


def _translation_rows(runs: TranslationRuns, part: str) -> Iterator[dict[str, Any]]:
    sample = runs.samples[part]
    real, groups = source_rows(sample), _sentences(sample)

    def row(pair: str, seeds: str, step: int, first: Table, second: Table) -> dict[str, Any]:
        labels = {"part": part, "pair": pair, "seeds": seeds, "step": step}
        return labels | row_agreement(first, second, real, groups)

    reference = runs.best(f"learned-{REFERENCE}", part)
    attention, saliency = reference.values["attention"], reference.values["saliency"]
    proxy = runs.best("proxy-0", part).values["lexical"]
    counted = {
        f"counts{iterations or ''}": translation_rows(learned, sample)
        for iterations, learned in _word_translations(runs).items()
    }
    for seeds, seed in (("two", SECOND), ("same", REFERENCE)):
        for shot in runs.curve(f"learned-{seed}", part):
            yield row("attention_lexical", seeds, shot.step, attention, shot.values["lexical"])
            yield row("attention_attention", seeds, shot.step, attention, shot.values["attention"])
    for seed in runs.uniform_seeds:
        seeds = "same" if seed == REFERENCE else "two"
        for shot in runs.curve(f"uniform-{seed}", part):
            uniform = shot.values["lexical"]
            yield row("attention_uniform", seeds, shot.step, attention, uniform)
            yield row("saliency_uniform", seeds, shot.step, saliency, uniform)
            yield row("uniform_proxy", seeds, shot.step, proxy, uniform)
            for name, table in counted.items():
                yield row(f"{name}_uniform", seeds, shot.step, table, uniform)
    for name, table in counted.items():
        yield row(f"attention_{name}", "two", reference.step, attention, table)
        yield row(f"proxy_{name}", "two", 0, proxy, table)
    added = runs.best("sum-0", part)
    optimal, other = added.values["optimal"], runs.best(f"learned-{SECOND}", part)
    yield row("optimal_lexical", "same", added.step, optimal, added.values["lexical"])
    yield row("optimal_lexical", "two", other.step, optimal, other.values["lexical"])
    yield row("attention_optimal", "same", added.step, added.values["attention"], optimal)


def _word_translations(runs: TranslationRuns) -> dict[int, WordTranslation]:
    """IBM Model 1 of the training sentences, by its steps of expectation maximisation."""
    size, train = len(runs.texts.vocabulary), runs.texts.train
    return {
        iterations: WordTranslation.learned(train.sources, train.targets, size, size, iterations)
        for iterations in runs.iterations
    }


def worth_of(runs: TranslationRuns, agreements: pd.DataFrame) -> pd.DataFrame:
    """What agreements are worth by run B, as `contexts_of` has it; BLEU is a share of 100, as accuracy is of one."""
    found = []
    for part, sample in runs.samples.items():
        shots = runs.curve(f"learned-{SECOND}", part)
        performance = {
            "accuracy": {shot.step: shot.performance["accuracy"] for shot in shots},
            "bleu": {shot.step: shot.performance["bleu"] / 100 for shot in shots},
        }
        table = agreements[agreements["part"] == part]
        worth = contexts_of(table, performance, {"accuracy": _guessing(sample), "bleu": 0.0})
        found.append(pd.DataFrame(worth).assign(data=runs.texts.name, part=part))
    return pd.concat(found, ignore_index=True)


def _guessing(sample: TranslatedPart) -> float:
    """The token accuracy of always giving the most frequent word."""
    counted = Counter(word for target in sample.targets for word in target)
    return counted.most_common(1)[0][1] / counted.total()


def _sentences(sample: TranslatedPart) -> Int[Tensor, " row"]:
    """The number of the sentence of each row."""
    lengths = torch.tensor([len(target) for target in sample.targets])
    return torch.arange(len(lengths)).repeat_interleave(lengths)
