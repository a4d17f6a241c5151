"""The comparisons of translation runs, from their snapshots alone: agreements by checkpoint, and what they are worth.

Directions are the authors': A(α, β), A(α, β_uf), A(β_px, β_uf) for what the paper writes A(β_uf, β_px), A(Δ, β_uf).
`seeds` says whether the two quantities come from runs of two seeds, as the authors have it, or of the same.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...lab.data.translation import TranslatedPart, TranslatedTexts
from ...lab.models.word_translation import WordTranslation
from ...lab.snapshots import Snapshot, load_snapshot, load_snapshots
from ...lab.translation_looks import source_rows, translation_rows
from .row_agreement import contexts_of, row_agreement

Table = Float[Tensor, "row position"]
A, B = 0, 1
"""The seeds of the two runs with learned attention."""


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
    rows = [row for part in runs.samples for row in _part_rows(runs, part)]
    return pd.DataFrame([{"data": runs.texts.name, **row} for row in rows])


def _part_rows(runs: TranslationRuns, part: str) -> Iterator[dict[str, Any]]:
    sample = runs.samples[part]
    real, groups = source_rows(sample), _sentences(sample)

    def row(pair: str, seeds: str, step: int, first: Table, second: Table) -> dict[str, Any]:
        said = {"part": part, "pair": pair, "seeds": seeds, "step": step}
        return said | row_agreement(first, second, real, groups)

    reference = runs.best(f"learned-{A}", part)
    attention, saliency = reference.values["attention"], reference.values["saliency"]
    proxy = runs.best("proxy-0", part).values["lexical"]
    counted = {
        f"counts{iterations or ''}": translation_rows(learned, sample) for iterations, learned in _counted(runs).items()
    }
    for seeds, seed in (("two", B), ("same", A)):
        for shot in runs.curve(f"learned-{seed}", part):
            yield row("attention_lexical", seeds, shot.step, attention, shot.values["lexical"])
            yield row("attention_attention", seeds, shot.step, attention, shot.values["attention"])
    for seed in runs.uniform_seeds:
        seeds = "same" if seed == A else "two"
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
    optimal, other = added.values["optimal"], runs.best(f"learned-{B}", part)
    yield row("optimal_lexical", "same", added.step, optimal, added.values["lexical"])
    yield row("optimal_lexical", "two", other.step, optimal, other.values["lexical"])
    yield row("attention_optimal", "same", added.step, added.values["attention"], optimal)


def _counted(runs: TranslationRuns) -> dict[int, WordTranslation]:
    """IBM Model 1 of the training sentences, by its steps of expectation maximisation."""
    size = len(runs.texts.vocabulary)
    train = runs.texts.train
    return {
        iterations: WordTranslation.learned(train.sources, train.targets, size, size, iterations)
        for iterations in runs.iterations
    }


def worth_of(runs: TranslationRuns, agreements: pd.DataFrame) -> pd.DataFrame:
    """What agreements are worth by run B, as `contexts_of` tells it; BLEU is a share of 100, as accuracy is of one."""
    found = []
    for part, sample in runs.samples.items():
        shots = runs.curve(f"learned-{B}", part)
        performance = {
            "accuracy": {shot.step: shot.performance["accuracy"] for shot in shots},
            "bleu": {shot.step: shot.performance["bleu"] / 100 for shot in shots},
        }
        table = agreements[agreements["part"] == part]
        worth = contexts_of(table, performance, {"accuracy": _guessing(sample), "bleu": 0.0})
        found.append(pd.DataFrame(worth).assign(data=runs.texts.name, part=part))
    return pd.concat(found, ignore_index=True)


def _guessing(sample: TranslatedPart) -> float:
    """The token accuracy of always telling the most frequent word."""
    counted = Counter(word for target in sample.targets for word in target)
    return counted.most_common(1)[0][1] / counted.total()


def _sentences(sample: TranslatedPart) -> Int[Tensor, " row"]:
    """The number of the sentence of each row."""
    lengths = torch.tensor([len(target) for target in sample.targets])
    return torch.arange(len(lengths)).repeat_interleave(lengths)
