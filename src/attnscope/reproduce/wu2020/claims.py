"""Every claim with the rule by which it is judged: for sentences (SST), and again for stories (SEND)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...evaluation import LexiconStudy
from ...evaluation.lexicons import NEGATIVE, POSITIVE
from ..claims import Finding, Judge, Unmeasured, claim
from .data import SEND
from .paper import ACCURACY, CONCORDANCE, P_GRADIENT, SPEARMAN, T_QUADRATIC

# What the claims are judged on: the models of all seeds with their words, on sentences and on stories.


NO_SEND = "SEND is given only on request, by its authors: who has it names its folder by --send."


@dataclass(frozen=True, eq=False)
class SeedRun:
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

    sentences: tuple[SeedRun, ...]
    stories: tuple[SeedRun, ...]
    """Empty where there are no stories."""
    story_source: str = SEND
    """What the stories are. No claim rests on a stand-in."""

    def runs(self, data: str) -> tuple[SeedRun, ...]:
        """The models of one of the two data sets, as far as claims may rest on them."""
        if data == "sst":
            return self.sentences
        if not self.stories or self.story_source != SEND:
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


EVERY = "in every seed"
BOTH = ("sst", "send")


def suffixed(name: str) -> Callable[[str], str]:
    """The id of a claim: that for sentences stands for itself, that for stories says so."""
    return lambda data: name if data == "sst" else f"{name}-{data}"


@claim(
    "sst5-accuracy",
    says="The model tells the right one of five classes in 47.5% of SST's test sentences.",
    rule=f"the mean over seeds is no more than {TOLERANCE:.0%} below",
    paper="47.5 (SD over runs .2)",
    data="sst",
    least=ACCURACY - TOLERANCE,
)
@claim(
    "send-ccc",
    says="The model follows the valence of stories with a mean concordance of .54.",
    rule="the mean over seeds is at least .50, what people reach",
    paper=f"{CONCORDANCE} (SD over runs .02)",
    data="send",
    least=0.50,
)
def is_accurate(evidence: Evidence, data: str, least: float) -> Finding:
    """Accuracy, or the mean concordance of stories."""
    runs = evidence.runs(data)
    mean = sum(run.score for run in runs) / len(runs)
    return Finding("; ".join(f"seed {run.seed}: {run.score:.3f}" for run in runs), mean >= least)


@claim(
    lambda data: f"lat-quadratic-positive-{data}",
    says="Layer-wise tracing gives words that people find very positive or very negative the highest scores.",
    rule=f"{EVERY} the quadratic term is positive with p < {CERTAIN} and the parabola turns within the range of "
    "valence",
    paper=lambda data: f"t {T_QUADRATIC[data]}, p < .001",
    each=BOTH,
)
def is_quadratic(evidence: Evidence, data: str) -> Finding:
    """Whether tracing gives emotional words of both kinds more, by the quadratic term."""
    return _quadratic(evidence, data, "softmax", CERTAIN)


@claim(
    lambda data: f"gradient-not-quadratic-{data}",
    says="Gradients show no such curve.",
    rule=f"{EVERY} the quadratic term of the gradient of all outcomes added up has p of {DOUBTFUL} or more",
    paper=lambda data: f"p {P_GRADIENT[data]}",
    each=BOTH,
)
def is_not_quadratic(evidence: Evidence, data: str) -> Finding:
    """Whether gradients show no such curve."""
    rows = [(run, run.regression(_gradient(run))) for run in evidence.runs(data)]
    holds = all(row["b2_p"] >= DOUBTFUL for _, row in rows)
    other = "; ".join(
        _regression(run, run.regression(OF_CLASS)) for run in evidence.runs(data) if OF_CLASS in run.study.methods
    )
    note = f"Of the predicted class: {other}." if other else ""
    return Finding("; ".join(_regression(run, row) for run, row in rows), holds, note)


@claim(
    lambda data: f"lat-gradient-correlate-{data}",
    says="Layer-wise tracing and gradients put words in a like order.",
    rule=lambda data: f"{EVERY} Spearman's correlation over the rated words is at least {AGREE[data]}",
    paper=lambda data: f"{SPEARMAN[data]}",
    each=BOTH,
)
def correlate(evidence: Evidence, data: str) -> Finding:
    """How far tracing and gradients agree."""
    found = [(run, run.spearman(TRACING, _gradient(run))) for run in evidence.runs(data)]
    shown = "; ".join(f"seed {run.seed}: {value:.2f}" for run, value in found)
    return Finding(shown, all(value >= AGREE[data] for _, value in found))


def _heads_claim(kind: str, tag: str) -> Callable[[Judge], Judge]:
    return claim(
        suffixed(f"heads-above-chance-{kind}"),
        says=f"Every head brings more attention to {tag} words than even attention would.",
        rule=f"{EVERY} the share of each head is above chance (Eq. 14)",
        paper="all heads",
        each=BOTH,
        tag=tag,
    )


@_heads_claim("positive", POSITIVE)
@_heads_claim("negative", NEGATIVE)
def heads_above_chance(evidence: Evidence, data: str, tag: str) -> Finding:
    """Whether every head gives words of a kind more than even attention would."""
    shown, holds = [], True
    for run in evidence.runs(data):
        rows = run.study.heads[run.study.heads["tag"] == tag]
        above = int((rows["share"] > rows["chance"]).sum())
        holds &= above == len(rows)
        least, most = rows["share"].min(), rows["share"].max()
        chance = rows["chance"].iloc[0]
        shown.append(f"seed {run.seed}: {above} of {len(rows)} heads, {least:.3f} to {most:.3f}, chance {chance:.3f}")
    return Finding("; ".join(shown), holds)


@claim(
    suffixed("emotional-words-on-top"),
    says="Emotional words have the highest scores.",
    rule=f"{EVERY} very positive and very negative words are more frequent among the top {TOP:.0%} of the words that "
    f"stand there twice or more than among the others (Fisher's exact test, p < {DOUBTFUL})",
    paper="seen in Figure 4",
    each=BOTH,
)
def emotional_words_on_top(evidence: Evidence, data: str) -> Finding:
    """The share of very positive and very negative words among those with the highest scores, and among all."""
    return _on_top(evidence, data, lambda words: words["tag"] != "", more=True)


@claim(
    suffixed("stop-words-not-on-top"),
    says="Stop words have not.",
    rule=f"{EVERY} they are less frequent there than among the others (Fisher's exact test, p < {DOUBTFUL})",
    paper="seen in Figure 4",
    each=BOTH,
)
def stop_words_not_on_top(evidence: Evidence, data: str) -> Finding:
    """The share of stop words among those with the highest scores, and among all."""
    return _on_top(evidence, data, lambda words: words["word"].isin(STOP_WORDS), more=False)


@claim(
    suffixed("top-layer-spreads-evenly"),
    says="The highest layer spreads the local attention nearly evenly, the lower ones funnel it.",
    rule=f"{EVERY} traced attention has at least {EVEN:.0%} of the largest entropy at the highest layer, and more than "
    "at the input",
    paper="seen in Figure 3",
    each=BOTH,
)
def top_layer_is_even(evidence: Evidence, data: str) -> Finding:
    """How even the traced attention is at the highest and at the lowest layer."""
    shown, holds = [], True
    for run in evidence.runs(data):
        by_layer = run.evenness[run.evenness["layer"] > 0].set_index("layer")["evenness"]
        top, bottom = by_layer[by_layer.index.max()], by_layer[by_layer.index.min()]
        holds &= bool(top >= EVEN and top > bottom)
        shown.append(f"seed {run.seed}: {top:.3f} at the top, {bottom:.3f} at the input")
    return Finding("; ".join(shown), holds)


@claim(
    suffixed("some-head-specialises"),
    says="Some head specialises in very positive or very negative words.",
    rule=f"{EVERY} some head brings at least {SPECIAL} times chance to words of one of the kinds",
    paper="24% against 15% (SEND, head 4, very negative words)",
    each=BOTH,
)
def some_head_specialises(evidence: Evidence, data: str) -> Finding:
    """The head that gives most to words of one kind, as a multiple of chance."""
    shown, holds = [], True
    for run in evidence.runs(data):
        heads = run.study.heads.assign(times=lambda rows: rows["share"] / rows["chance"])
        best = heads.loc[heads["times"].idxmax()]
        holds &= bool(best["times"] >= SPECIAL)
        share = f"{best['share']:.3f} on {best['tag']} words, chance {best['chance']:.3f}"
        shown.append(f"seed {run.seed}: head {best['head']}, {share}")
    return Finding("; ".join(shown), holds)


@claim(
    suffixed("lat-quadratic-survives-length-correction"),
    says="Ours: the curve of layer-wise tracing is not made by the lengths of sentences.",
    rule=f"{EVERY} the quadratic term of scores times the words of their sentence is positive with p < {DOUBTFUL}, and "
    "the parabola turns within the range of valence",
    paper="not looked at; softmax makes scores about 1 / N",
    kind="own",
    each=BOTH,
)
def survives_length_correction(evidence: Evidence, data: str) -> Finding:
    """The same quadratic term where the length of a sentence does not lower the scores of its words."""
    return _quadratic(evidence, data, "length_corrected", DOUBTFUL)


def _quadratic(evidence: Evidence, data: str, scaling: str, certain: float) -> Finding:
    rows = [(run, run.regression(TRACING, scaling)) for run in evidence.runs(data)]
    holds = all(row["b2_t"] > 0 and row["b2_p"] < certain and row["vertex_inside"] for _, row in rows)
    return Finding("; ".join(_regression(run, row) for run, row in rows), holds)


def _gradient(run: SeedRun) -> str:
    """The paper's baseline, or where its sum has no gradient (softmax) that of the predicted class."""
    return GRADIENT if GRADIENT in run.study.methods else OF_CLASS


def _regression(run: SeedRun, row: dict[str, object]) -> str:
    return f"seed {run.seed}: t {row['b2_t']:.2f}, p {row['b2_p']:.2g} ({row['words']} words)"


def _on_top(evidence: Evidence, data: str, chosen: Callable[[pd.DataFrame], Any], *, more: bool) -> Finding:
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
