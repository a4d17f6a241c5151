"""How each claim is judged: functions from what was measured to what was found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...evaluation import LexiconStudy
from ..claims import Finding, Unmeasured
from .data import SEND

# What the claims are judged on: the models of all seeds with their words, on sentences and on stories.


NO_SEND = "SEND is given only on request, by its authors: who has it names its folder by --send."


@dataclass(frozen=True, eq=False)
class Run:
    """One model: how well it does, what its words get, and how even its traced attention is by layer."""

    seed: int
    score: float
    """The share of right sentences, or the mean concordance of stories."""
    study: LexiconStudy
    evenness: pd.DataFrame

    def regression(self, method: str, scaling: str = "softmax") -> dict[str, Any]:
        """The row of one regression."""
        table = self.study.regressions
        rows = table[(table["method"] == method) & (table["scaling"] == scaling)]
        if rows.empty:
            raise Unmeasured(f"There are no scores by {method.replace('_', ' ')}: {self.study.card['left_out']}.")
        return dict(rows.iloc[0])

    def spearman(self, first: str, second: str) -> float:
        """How far two methods agree on the order of the rated words, in either order of their names."""
        table = self.study.correlations
        chosen = table[(table["over"] == "matched") & (table["scaling"] == "softmax")]
        for one, other in ((first, second), (second, first)):
            rows = chosen[(chosen["first"] == one) & (chosen["second"] == other)]
            if not rows.empty:
                return float(rows["spearman"].iloc[0])
        raise Unmeasured(f"There are no scores by both {first} and {second}.")


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything that was measured."""

    sentences: tuple[Run, ...]
    stories: tuple[Run, ...]
    """Empty where there are no stories."""
    told: str = SEND
    """What the stories are. No claim rests on a stand-in."""

    def runs(self, data: str) -> tuple[Run, ...]:
        """The models of one of the two data sets, as far as claims may rest on them."""
        if data == "sst":
            return self.sentences
        if not self.stories or self.told != SEND:
            raise Unmeasured(NO_SEND)
        return self.stories


TRACING, GRADIENT, OF_CLASS = "layerwise_tracing", "gradient_of_sum", "gradient_of_prediction"
CERTAIN, DOUBTFUL = 0.001, 0.05
TOLERANCE = 0.02
"""How far below the paper an accuracy still counts as the paper's."""
AGREE = {"sst": 0.6, "send": 0.2}
"""The least rank correlation of tracing and gradients that counts as theirs: .80 and .37 in the paper."""
TOP = 0.1
"""The share of word types that is called the top."""
EVEN = 0.9
SPECIAL = 1.5
"""How many times chance a head gives to words of a kind to be called specialised: 24% against 15% in the paper."""


def is_accurate(least: float, data: str, evidence: Evidence) -> Finding:
    """Accuracy, or the mean concordance of stories."""
    runs = evidence.runs(data)
    mean = sum(run.score for run in runs) / len(runs)
    return Finding("; ".join(f"seed {run.seed}: {run.score:.3f}" for run in runs), mean >= least)


def is_quadratic(data: str, scaling: str, certain: float, evidence: Evidence) -> Finding:
    """Whether tracing gives emotional words of both kinds more, by the quadratic term."""
    rows = [(run, run.regression(TRACING, scaling)) for run in evidence.runs(data)]
    holds = all(row["b2_t"] > 0 and row["b2_p"] < certain and row["vertex_inside"] for _, row in rows)
    return Finding("; ".join(_regression(run, row) for run, row in rows), holds)


def is_not_quadratic(data: str, evidence: Evidence) -> Finding:
    """Whether gradients show no such curve."""
    rows = [(run, run.regression(_gradient(run))) for run in evidence.runs(data)]
    holds = all(row["b2_p"] >= DOUBTFUL for _, row in rows)
    other = "; ".join(
        _regression(run, run.regression(OF_CLASS)) for run in evidence.runs(data) if OF_CLASS in run.study.methods
    )
    note = f"Of the predicted class: {other}." if other else ""
    return Finding("; ".join(_regression(run, row) for run, row in rows), holds, note)


def _gradient(run: Run) -> str:
    """The paper's baseline, or where its sum has no gradient (softmax) that of the predicted class."""
    return GRADIENT if GRADIENT in run.study.methods else OF_CLASS


def _regression(run: Run, row: dict[str, object]) -> str:
    return f"seed {run.seed}: t {row['b2_t']:.2f}, p {row['b2_p']:.2g} ({row['words']} words)"


def correlate(data: str, evidence: Evidence) -> Finding:
    """How far tracing and gradients agree."""
    found = [(run, run.spearman(TRACING, _gradient(run))) for run in evidence.runs(data)]
    shown = "; ".join(f"seed {run.seed}: {value:.2f}" for run, value in found)
    return Finding(shown, all(value >= AGREE[data] for _, value in found))


def heads_above_chance(data: str, tag: str, evidence: Evidence) -> Finding:
    """Whether every head gives words of a kind more than even attention would."""
    shown, holds = [], True
    for run in evidence.runs(data):
        rows = _heads(run, tag)
        above = int((rows["share"] > rows["chance"]).sum())
        holds &= above == len(rows)
        least, most = rows["share"].min(), rows["share"].max()
        chance = rows["chance"].iloc[0]
        shown.append(f"seed {run.seed}: {above} of {len(rows)} heads, {least:.3f} to {most:.3f}, chance {chance:.3f}")
    return Finding("; ".join(shown), holds)


def some_head_specialises(data: str, evidence: Evidence) -> Finding:
    """The head that gives most to words of one kind, as a multiple of chance."""
    shown, holds = [], True
    for run in evidence.runs(data):
        heads = run.study.heads.assign(times=lambda rows: rows["share"] / rows["chance"])
        best = heads.loc[heads["times"].idxmax()]
        holds &= bool(best["times"] >= SPECIAL)
        share = f"{best['share']:.3f} on {best['tag']} words, chance {best['chance']:.3f}"
        shown.append(f"seed {run.seed}: head {best['head']}, {share}")
    return Finding("; ".join(shown), holds)


def _heads(run: Run, tag: str) -> pd.DataFrame:
    return run.study.heads[run.study.heads["tag"] == tag]


def emotional_words_on_top(data: str, evidence: Evidence) -> Finding:
    """The share of very positive and very negative words among those with the highest scores, and among all."""
    return _on_top(data, evidence, lambda words: words["tag"] != "", more=True)


def stop_words_not_on_top(data: str, evidence: Evidence) -> Finding:
    """The share of stop words among those with the highest scores, and among all."""
    return _on_top(data, evidence, lambda words: words["word"].isin(STOP_WORDS), more=False)


def _on_top(data: str, evidence: Evidence, chosen: Callable[[pd.DataFrame], Any], *, more: bool) -> Finding:
    from scipy.stats import fisher_exact

    shown, holds = [], True
    for run in evidence.runs(data):
        words = run.study.words[run.study.words["count"] >= 2]
        kind = chosen(words)
        top = words[TRACING] >= words[TRACING].quantile(1 - TOP)
        table = [[int((kind & of).sum()), int((~kind & of).sum())] for of in (top, ~top)]
        p = float(fisher_exact(table, alternative="greater" if more else "less").pvalue)
        holds &= p < DOUBTFUL
        shown.append(f"seed {run.seed}: {kind[top].mean():.3f} of the top, {kind.mean():.3f} of all words, p {p:.2g}")
    return Finding("; ".join(shown), holds)


def top_layer_is_even(data: str, evidence: Evidence) -> Finding:
    """How even the traced attention is at the highest and at the lowest layer."""
    shown, holds = [], True
    for run in evidence.runs(data):
        by_layer = run.evenness[run.evenness["layer"] > 0].set_index("layer")["evenness"]
        top, bottom = by_layer[by_layer.index.max()], by_layer[by_layer.index.min()]
        holds &= bool(top >= EVEN and top > bottom)
        shown.append(f"seed {run.seed}: {top:.3f} at the top, {bottom:.3f} at the input")
    return Finding("; ".join(shown), holds)


# English words that say nothing by themselves: articles, pronouns, prepositions, conjunctions, forms of be.


STOP_WORDS = frozenset(
    (
        "a an the this that these those it its he she they them his her their we us our you your i me my "
        "of in on at to for from by with about into over under between through during after before as than "
        "and or but nor so yet if because while although though when where which who whom whose what how "
        "is are was were be been being am has have had do does did will would can could should may might must "
        "not no 's 'd 'll 're 've n't there here then just also very too more most some any all each both such"
    ).split()
)
