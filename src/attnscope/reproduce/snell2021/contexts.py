"""What agreements are worth: ξ of the best checkpoint of each pair, by A and by Kendall's τ, for every measure."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ...lab.probes.contextualised import contextualised

CONTEXTUALISED = ("attention_uniform", "uniform_proxy", "saliency_uniform", "attention_lexical")


def contexts_of(
    agreements: pd.DataFrame, performance: Mapping[str, Mapping[int, float]], trivial: Mapping[str, float]
) -> list[dict[str, Any]]:
    """A row for each kind of agreement, measure, pair and variant of seeds, of one part of one data set.

    The curve of ξ is A(α, α̂) of two seeds, by step, with the performance of α̂'s run: a number for each step under the
    name of each measure. `trivial` is what guessing gives. Columns: seeds, by, measure, pair, agreement, performance
    (ξ), step, reached, best (ξ*), trivial.
    """
    two_seeds = (agreements["pair"] == "attention_attention") & (agreements["seeds"] == "two")
    curve = agreements[two_seeds].sort_values("step")
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
                rows.append(
                    {
                        "seeds": seeds,
                        "by": by,
                        "measure": measure,
                        "pair": pair,
                        "agreement": float(value),
                        "performance": found.performance,
                        "step": found.step,
                        "reached": found.reached,
                        "best": points[-1][2],
                        "trivial": trivial[measure],
                    }
                )
    return rows
