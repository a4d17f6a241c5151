"""Every claim with the rule by which it is judged: for sentences (SST), and again for stories (SEND)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from ...evaluation import LexiconStudy
from ...evaluation.lexicon_study import fit_lines
from ...evaluation.lexicons import NEGATIVE, POSITIVE
from ...evaluation.regression import FEWEST
from ...evaluation.word_tally import column_of
from ..claims import (
    NO_RUN,
    Effect,
    Finding,
    Judge,
    Unmeasured,
    at_chance,
    claim,
    in_every,
    mean_effect,
    ratio,
    rows_with,
)
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
    texts: int = 0
    """How many were scored: the more, the surer the score; none where that is not known."""

    @property
    def title(self) -> str:
        """The run in words."""
        return f"seed {self.seed}"

    @property
    def gradient(self) -> str:
        """The paper's baseline, or where its sum has no gradient (softmax) that of the predicted class."""
        return GRADIENT if GRADIENT in self.study.methods else OF_CLASS

    def regression(self, method: str, scaling: str = "softmax") -> dict[str, Any]:
        """The row of one regression."""
        rows = rows_with(self.study.regressions, method=method, scaling=scaling)
        if rows.empty:
            raise Unmeasured(f"There are no scores by {method.replace('_', ' ')}: {self.study.card['left_out']}.")
        return dict(rows.iloc[0])

    def exact_regression(self, method: str) -> dict[str, Any]:
        """The same over the words alone that the lexicon has as they stand."""
        words = self.study.words
        words = words[words["matched"] == "exact"]
        if len(words) < FEWEST or words["value"].nunique() < 3:
            raise Unmeasured(f"Too few words stand in the lexicon as they are: {len(words)}.")
        return fit_lines(words, column_of(method, "softmax")).to_row()

    def spearman(self, first: str, second: str) -> float:
        """How far two methods agree on the order of the rated words, in either order of their names."""
        matched = rows_with(self.study.correlations, over="matched", scaling="softmax")
        for one, other in ((first, second), (second, first)):
            rows = rows_with(matched, first=one, second=other)
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
            if not self.sentences:
                raise Unmeasured(NO_RUN)
            return self.sentences
        if not self.stories or self.story_source != SEND:
            raise Unmeasured(NO_SEND)
        return self.stories


TRACING, GRADIENT, OF_CLASS = "layerwise_tracing", "gradient_of_sum", "gradient_of_prediction"
CERTAIN, DOUBTFUL = 0.001, 0.05
WIDEST = 0.05
"""What an accuracy may have to either side to say something: ±2% is what as many sentences as SST's give."""
PEOPLE = 0.50
"""The concordance of people with each other, on SEND."""
AGREE = {"sst": 0.6, "send": 0.2}
"""The least rank correlation of tracing and gradients that counts as theirs: .80 and .37 in the paper."""
TOP = 0.1
"""The share of word types that is called the top."""
EVEN = 0.9
SPECIAL = 1.5
"""How many times chance a head gives to words of a kind to be called specialised: 24% against 15% in the paper."""


EVERY = "in every seed"
BOTH = ("sst", "send")


def id_by_data(name: str) -> Callable[[str], str]:
    """The id of a claim: that for sentences stands for itself, that for stories says so."""
    return lambda data: name if data == "sst" else f"{name}-{data}"


@claim(
    "sst5-accuracy",
    says="The model tells the right one of five classes in 47.5% of SST's test sentences.",
    rule=f"the 95% interval over test sentences and seeds reaches that; one of more than ±{WIDEST:.0%} decides nothing",
    paper=f"{ACCURACY} (SD over runs 0.002)",
    post_hoc=True,
)
def is_accurate(evidence: Evidence) -> Finding:
    """Accuracy on test sentences, against the paper's."""
    runs = evidence.runs("sst")
    mean, (low, high) = accuracy_of(runs)
    each = "; ".join(f"{run.title}: {run.score:.3f}" for run in runs)
    n = {"seeds": len(runs), "sentences": runs[0].texts}
    effect = Effect("accuracy", mean, low, high, "95%, test sentences and seeds")
    found = Finding(
        f"{mean:.3f} [{low:.3f}, {high:.3f}] ({each})", high >= ACCURACY, BELOW.format(ACCURACY - mean), effect, n
    )
    return at_chance(found, "The interval is too wide.") if high - low > 2 * WIDEST else found


BELOW = "It is {:.3f} below the paper's."


def accuracy_of(runs: Sequence[SeedRun]) -> tuple[float, tuple[float, float]]:
    """The mean over seeds, and its 95% interval: other test sentences and other seeds would give another."""
    if not all(run.texts for run in runs):
        raise Unmeasured("It is not known of how many sentences the accuracy is.")
    scores = np.array([run.score for run in runs])
    mean = float(scores.mean())
    # seeds share their sentences, so that more seeds make only their own part smaller
    of_seeds = scores.var(ddof=1) / len(scores) if len(scores) > 1 else 0.0
    error = math.sqrt(max(mean * (1 - mean), 0.0) / runs[0].texts + of_seeds)
    return mean, (mean - 1.96 * error, mean + 1.96 * error)


@claim(
    "send-ccc",
    says="The model follows the valence of stories with a mean concordance of .54.",
    rule="the mean over seeds is at least .50, what people reach",
    paper=f"{CONCORDANCE} (SD over runs 0.02)",
)
def is_concordant(evidence: Evidence) -> Finding:
    """The mean concordance of stories, against what people reach."""
    runs = evidence.runs("send")
    effect = mean_effect("mean concordance", (run.score for run in runs), "seeds")
    here = "; ".join(f"{run.title}: {run.score:.3f}" for run in runs)
    return Finding(here, effect.size >= PEOPLE, "", effect, {"seeds": len(runs)})


@claim(
    lambda data: f"lat-quadratic-positive-{data}",
    rule=f"{EVERY} the quadratic term is positive with p < {CERTAIN} and the parabola turns within the range of "
    "valence",
    paper=lambda data: f"t {T_QUADRATIC[data]}, p < .001",
    each=BOTH,
)
@in_every(Evidence.runs)
def is_quadratic(run: SeedRun) -> Finding:
    """Layer-wise tracing gives words that people find very positive or very negative the highest scores."""
    return _curve(run, "softmax", CERTAIN)


@claim(
    lambda data: f"gradient-not-quadratic-{data}",
    rule=f"{EVERY} the quadratic term of the gradient of all outcomes added up has p of {DOUBTFUL} or more",
    paper=lambda data: f"p {P_GRADIENT[data]}",
    each=BOTH,
)
def is_not_quadratic(evidence: Evidence, data: str) -> Finding:
    """Gradients show no such curve."""
    rows = [(run, run.regression(run.gradient)) for run in evidence.runs(data)]
    holds = all(row["b2_p"] >= DOUBTFUL for _, row in rows)
    other = "; ".join(
        f"{run.title}: {_regression(run.regression(OF_CLASS))}"
        for run in evidence.runs(data)
        if OF_CLASS in run.study.methods
    )
    note = f"Of the predicted class: {other}." if other else ""
    here = "; ".join(f"{run.title}: {_regression(row)}" for run, row in rows)
    effect = mean_effect("t of the quadratic term", (row["b2_t"] for _, row in rows), "seeds")
    return Finding(here, holds, note, effect, {"seeds": len(rows), "words": int(rows[0][1]["words"])})


@claim(
    lambda data: f"lat-quadratic-exact-{data}",
    says="That curve of layer-wise tracing stands on the words alone that raters have rated as they stand.",
    rule=f"{EVERY} the quadratic term over words that are matched exactly is positive with p < {CERTAIN}, and the "
    "parabola turns within the range of valence",
    paper=lambda data: f"t {T_QUADRATIC[data]}, p < .001 (words matched exactly, by lemma or by hand)",
    kind="reading",
    post_hoc=True,
    each=BOTH,
)
@in_every(Evidence.runs)
def is_quadratic_exactly(run: SeedRun) -> Finding:
    """Layer-wise tracing on words that are matched exactly: t grows with the number of words, r² does not."""
    return _judge_curve(run.exact_regression(TRACING), CERTAIN)


@claim(
    lambda data: f"gradient-not-quadratic-exact-{data}",
    says="Gradients show no such curve on them.",
    rule=f"{EVERY} the quadratic term over words that are matched exactly has p of {DOUBTFUL} or more",
    paper=lambda data: f"p {P_GRADIENT[data]} (words matched exactly, by lemma or by hand)",
    kind="reading",
    post_hoc=True,
    each=BOTH,
)
@in_every(Evidence.runs)
def is_not_quadratic_exactly(run: SeedRun) -> Finding:
    """Gradients on words that are matched exactly."""
    row = run.exact_regression(run.gradient)
    effect = Effect("t of the quadratic term", float(row["b2_t"]))
    return Finding(_regression(row), bool(row["b2_p"] >= DOUBTFUL), "", effect)


@claim(
    lambda data: f"lat-gradient-correlate-{data}",
    rule=lambda data: f"{EVERY} Spearman's correlation over the rated words is at least {AGREE[data]}",
    paper=lambda data: f"{SPEARMAN[data]}",
    each=BOTH,
)
def correlate(evidence: Evidence, data: str) -> Finding:
    """Layer-wise tracing and gradients put words in a like order."""
    found = [(run, run.spearman(TRACING, run.gradient)) for run in evidence.runs(data)]
    shown = "; ".join(f"{run.title}: {value:.2f}" for run, value in found)
    effect = mean_effect("Spearman's correlation", (value for _, value in found), "seeds")
    return Finding(shown, all(value >= AGREE[data] for _, value in found), "", effect, {"seeds": len(found)})


def _heads_claim(kind: str, tag: str) -> Callable[[Judge], Judge]:
    return claim(
        id_by_data(f"heads-above-chance-{kind}"),
        says=f"Every head brings more attention to {tag} words than even attention would.",
        rule=f"{EVERY} the 95% interval over texts of each head's share is above chance (Eq. 14); a head whose "
        "interval has chance in it decides nothing",
        paper="all heads",
        post_hoc=True,
        each=BOTH,
        tag=tag,
    )


@_heads_claim("positive", POSITIVE)
@_heads_claim("negative", NEGATIVE)
@in_every(Evidence.runs)
def heads_above_chance(run: SeedRun, tag: str) -> Finding:
    """Whether every head gives words of a kind more than even attention would."""
    rows = rows_with(run.study.heads, tag=tag)
    above = int((rows["share"] > rows["chance"]).sum())
    least, chance = rows.loc[rows["share"].idxmin()], rows["chance"].iloc[0]
    shown = f"{above} of {len(rows)} heads, {least['share']:.3f} to {rows['share'].max():.3f}, chance {chance:.3f}"
    if "error" not in rows:
        effect = Effect("least share of a head over chance", ratio(least["share"], chance))
        return at_chance(Finding(shown, None, "", effect), "How far texts differ was not kept.")
    low, high = (rows["share"] + side * 1.96 * rows["error"] for side in (-1, 1))
    by_chance = [ratio(float(one[least.name]), chance) for one in (rows["share"], low, high)]
    effect = Effect("least share of a head over chance", by_chance[0], by_chance[1], by_chance[2], "95%")
    clearly = (
        f"{int((low > chance).sum())} of them by their whole interval, {int((high < chance).sum())} below chance so."
    )
    found = Finding(shown, bool((low > chance).all()), clearly, effect)
    if not found.holds and not (high < chance).any():
        return at_chance(found, "Chance is within the interval of a head.")
    return found


@claim(
    id_by_data("emotional-words-on-top"),
    rule=f"{EVERY} very positive and very negative words are more frequent among the top {TOP:.0%} of the words that "
    f"stand there twice or more than among the others (Fisher's exact test, p < {DOUBTFUL})",
    paper="seen in Figure 4",
    each=BOTH,
)
@in_every(Evidence.runs)
def emotional_words_on_top(run: SeedRun) -> Finding:
    """Emotional words have the highest scores."""
    return _on_top(run, lambda words: words["tag"] != "", "greater")


@claim(
    id_by_data("stop-words-not-on-top"),
    rule=f"{EVERY} they are less frequent there than among the others (Fisher's exact test, p < {DOUBTFUL})",
    paper="seen in Figure 4",
    each=BOTH,
)
@in_every(Evidence.runs)
def stop_words_not_on_top(run: SeedRun) -> Finding:
    """Stop words have not."""
    return _on_top(run, lambda words: words["word"].isin(STOP_WORDS), "less")


@claim(
    id_by_data("top-layer-spreads-evenly"),
    rule=f"{EVERY} traced attention has at least {EVEN:.0%} of the largest entropy at the highest layer, and more than "
    "at the input",
    paper="seen in Figure 3",
    kind="reading",
    each=BOTH,
)
@in_every(Evidence.runs)
def top_layer_is_even(run: SeedRun) -> Finding:
    """The highest layer spreads the local attention nearly evenly, the lower ones funnel it."""
    by_layer = run.evenness[run.evenness["layer"] > 0].set_index("layer")["evenness"]
    top, bottom = by_layer[by_layer.index.max()], by_layer[by_layer.index.min()]
    here = f"{top:.3f} at the top, {bottom:.3f} at the input"
    effect = Effect("share of the largest entropy at the top", float(top))
    return Finding(here, bool(top >= EVEN and top > bottom), "", effect)


@claim(
    id_by_data("some-head-specialises"),
    rule=f"{EVERY} some head brings at least {SPECIAL} times chance to words of one of the kinds",
    paper="0.24 against 0.15 (SEND, head 4, very negative words)",
    each=BOTH,
)
@in_every(Evidence.runs)
def some_head_specialises(run: SeedRun) -> Finding:
    """Some head specialises in very positive or very negative words."""
    heads = run.study.heads.assign(times=lambda rows: rows["share"] / rows["chance"])
    best = heads.loc[heads["times"].idxmax()]
    share = f"{best['share']:.3f} on {best['tag']} words, chance {best['chance']:.3f}"
    effect = Effect("share of the most special head over chance", float(best["times"]))
    return Finding(f"head {best['head']}, {share}", bool(best["times"] >= SPECIAL), "", effect)


@claim(
    id_by_data("lat-quadratic-survives-length-correction"),
    rule=f"{EVERY} the quadratic term of scores times the words of their sentence is positive with p < {DOUBTFUL}, and "
    "the parabola turns within the range of valence",
    paper="not looked at; softmax makes scores about 1 / N",
    kind="own",
    each=BOTH,
)
@in_every(Evidence.runs)
def survives_length_correction(run: SeedRun) -> Finding:
    """Ours: the curve of layer-wise tracing is not made by the lengths of sentences."""
    return _curve(run, "length_corrected", DOUBTFUL)


def _curve(run: SeedRun, scaling: str, certain: float) -> Finding:
    return _judge_curve(run.regression(TRACING, scaling), certain)


def _judge_curve(row: Mapping[str, Any], certain: float) -> Finding:
    holds = bool(row["b2_t"] > 0 and row["b2_p"] < certain and row["vertex_inside"])
    return Finding(_regression(row), holds, "", Effect("t of the quadratic term", float(row["b2_t"])))


def _regression(row: Mapping[str, Any]) -> str:
    return f"t {row['b2_t']:.2f}, p {row['b2_p']:.2g}, r² {row['r_squared']:.3f} ({row['words']} words)"


def _on_top(run: SeedRun, chosen: Callable[[pd.DataFrame], Any], alternative: Literal["greater", "less"]) -> Finding:
    """Whether words of a kind are more or less frequent among those with the highest scores than among the others."""
    from scipy.stats import fisher_exact

    words = run.study.words[run.study.words["count"] >= 2]
    kind = chosen(words)
    top = words[TRACING] >= words[TRACING].quantile(1 - TOP)
    table = [[int((kind & of).sum()), int((~kind & of).sum())] for of in (top, ~top)]
    p = float(fisher_exact(table, alternative=alternative).pvalue)
    here = f"{kind[top].mean():.3f} of the top, {kind.mean():.3f} of all words, p {p:.2g}"
    effect = Effect("share among the top less that of all words", float(kind[top].mean() - kind.mean()))
    return Finding(here, p < DOUBTFUL, "", effect)


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
