"""Every claim with the rule by which it is judged; the rules were written before any model was looked at."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..claims import Effect, Finding, Unmeasured, at_chance, claim, in_every, mean_effect, ratio, rows_with, together
from .paper import LARGE, MODERATE, PENALTIES, SCALINGS, TITLES, accuracy_in_paper
from .words import MATCHED, NEGATIVE, NEUTRAL, OUTLIER, POSITIVE, RankSum, rank_sum

# What the claims are judged on: accuracies, the scores of words, and the made-up sentences.


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything that was measured."""

    accuracies: pd.DataFrame
    """data, variant, scaling (λ), seed, penalty, test_accuracy and what `TrainedRun.row` has."""
    words: pd.DataFrame
    """The rows of `word_table`, with the settings of their run."""
    made_up: pd.DataFrame
    """Of each run on made-up sentences, at its end: set, seed, penalty, dot products, V·W, mean scores."""
    skewed: pd.DataFrame
    """share of positive sentences, seed, V·W at the end."""

    def accuracy(self, data: str, variant: str, scaling: float, penalty: float = 0.0) -> "pd.Series[float]":
        """The accuracy on test texts of each seed."""
        rows = rows_with(self.accuracies, data=data, variant=variant, scaling=scaling, penalty=penalty)
        if rows.empty:
            raise Unmeasured(f"{TITLES[data]} is not run at this scale.")
        return rows.set_index("seed")["test_accuracy"]

    def runs(self, data: Sequence[str], variant: str, scaling: float, penalty: float = 0.0) -> "list[WordsOfRun]":
        """The words of each run on these data sets, as far as they were run."""
        words = self.words[self.words["data"].isin(data)]
        rows = rows_with(words, variant=variant, scaling=scaling, penalty=penalty)
        if rows.empty:
            sets = [TITLES[name] for name in data]
            raise Unmeasured(f"{' and '.join(sets)} {'is' if len(sets) == 1 else 'are'} not run at this scale.")
        groups = rows.groupby(["data", "seed"], sort=False)
        return [WordsOfRun(str(name), int(seed), group) for (name, seed), group in groups]


@dataclass(frozen=True, eq=False)
class WordsOfRun:
    """The words of one run."""

    data: str
    seed: int
    table: pd.DataFrame

    @property
    def title(self) -> str:
        """The run in few words."""
        return f"{TITLES[self.data]} seed {self.seed}"

    @property
    def context_dot_output(self) -> float:
        """V·W."""
        return float(self.table["context_dot_output"].iloc[0])

    def of(self, kind: str, column: str) -> np.ndarray:
        """A column for the words of a kind, as far as it is known."""
        values: np.ndarray = self.table.loc[self.table["kind"] == kind, column].dropna().to_numpy(dtype=float)
        if not len(values):
            raise Unmeasured(f"{self.title} has no words of the kind “{kind}”.")
        return values

    @property
    def gap(self) -> RankSum:
        """Positive words against negative ones by attention score."""
        return rank_sum(self.of(POSITIVE, "attention"), self.of(NEGATIVE, "attention"))


# On accuracy (Table 2), for each data set.


SMALLEST, ONE = SCALINGS[0], SCALINGS[1]
COLLAPSE, POOR, FLAT, BARELY = 0.15, 0.03, 0.04, 0.05
"""Differences of accuracy: what makes a collapse, a poor result, a flat stretch, and what hardly matters."""
EVERY = "in every seed"
LSTM_IN_TEXT = "The paper's text says the opposite of its table: with an LSTM too, a proper λ is crucial."


def _in_paper(variant: str, scaling: float) -> Callable[[str], str]:
    """The paper's accuracy at a λ against that at 10."""
    return lambda data: " against ".join(f"{accuracy_in_paper(data, variant, place)}%" for place in (scaling, MODERATE))


@claim(
    lambda data: f"dp-collapses-at-lambda-0001-{data}",
    says=lambda data: f"Dot-product attention learns next to nothing of {TITLES[data]} with λ = .001.",
    rule=f"{EVERY} accuracy is at least {COLLAPSE:.0%} below that with λ = 10",
    paper=_in_paper("dot", SMALLEST),
    kind="reading",
    each=TITLES,
    scaling=SMALLEST,
    least=COLLAPSE,
)
@claim(
    lambda data: f"dp-poor-at-lambda-1-{data}",
    says=lambda data: f"With λ = 1 it does worse on {TITLES[data]} than with 10.",
    rule=f"{EVERY} accuracy is at least {POOR:.0%} below that with λ = 10",
    paper=_in_paper("dot", ONE),
    each=TITLES,
    scaling=ONE,
    least=POOR,
)
def falls(evidence: Evidence, data: str, scaling: float, least: float) -> Finding:
    """Whether the accuracy of dot products is lower at a small λ than at 10 by at least so much, in every seed."""
    there, here = (evidence.accuracy(data, "dot", place) for place in (scaling, MODERATE))
    effect = mean_effect("loss of accuracy", here - there, "seeds")
    return Finding(_pairs(there, here), bool(((here - there) >= least).all()), "", effect, {"seeds": len(here)})


@claim(
    lambda data: f"dp-flat-from-lambda-10-{data}",
    says=lambda data: f"From λ = 10 on it does equally well on {TITLES[data]}.",
    rule=f"mean accuracies from 10 to 10,000 differ by no more than {FLAT:.0%}",
    paper=lambda data: ", ".join(f"{accuracy_in_paper(data, 'dot', scaling)}%" for scaling in SCALINGS[2:]),
    each=TITLES,
)
def is_flat(evidence: Evidence, data: str) -> Finding:
    """How far apart the mean accuracies are from λ = 10 on."""
    means = [float(evidence.accuracy(data, "dot", scaling).mean()) for scaling in SCALINGS if scaling >= MODERATE]
    apart = max(means) - min(means)
    shown = ", ".join(f"{mean:.1%}" for mean in means)
    seeds = len(evidence.accuracy(data, "dot", MODERATE))
    return Finding(shown, apart <= FLAT, "", Effect("largest difference of mean accuracies", apart), {"seeds": seeds})


@claim(
    lambda data: f"dpl-barely-affected-{data}",
    says=lambda data: f"Behind an LSTM, λ hardly matters on {TITLES[data]}.",
    rule=f"{EVERY} accuracy with λ = .001 is no more than {BARELY:.0%} below that with 10",
    paper=_in_paper("dot_lstm", SMALLEST),
    kind="reading",
    each=TITLES,
)
def stays(evidence: Evidence, data: str) -> Finding:
    """Whether the accuracy behind an LSTM is lower at a small λ than at 10 by no more than so much, in every seed."""
    there, here = (evidence.accuracy(data, "dot_lstm", place) for place in (SMALLEST, MODERATE))
    effect = mean_effect("loss of accuracy", here - there, "seeds")
    holds = bool(((here - there) <= BARELY).all())
    return Finding(_pairs(there, here), holds, LSTM_IN_TEXT, effect, {"seeds": len(here)})


def _pairs(there: "Iterable[float]", here: "Iterable[float]") -> str:
    return "; ".join(f"{low:.1%} against {high:.1%}" for low, high in zip(there, here, strict=True))


# On the scores of words (Figures 2 to 5).


BINARY = ("sst", "imdb", "20news1")
CERTAIN = 0.001
NEAR_ZERO = 0.25
"""Neutral words are near zero where their median is within this share of the median of polar ones."""
CLOSED, LOST = 0.25, 0.01
"""The share of the gap that a penalty may leave, and the accuracy that it may cost."""
APART = 10.0
"""How many times as large as with neutral words dot products among polar words are."""
ATTENDED = (
    f"in every data set and seed both kinds of polar words stand above neutral ones (rank-sum test, p < {CERTAIN})"
)


def _words(*data: str, variant: str = "dot", scaling: float = MODERATE) -> Callable[[Evidence], list[WordsOfRun]]:
    """The runs whose words a claim is about."""
    return lambda evidence: evidence.runs(data, variant, scaling)


def _above_neutral(run: WordsOfRun, score: str, neutral: str = NEUTRAL) -> Finding:
    """Whether both kinds of polar words stand above neutral ones by a score."""
    control = run.of(neutral, score)
    found = [rank_sum(run.of(kind, score), control) for kind in (POSITIVE, NEGATIVE)]
    here = f"positive above in {found[0]}, negative in {found[1]}"
    effect = Effect("share of pairs with the polar word above, of the lesser kind", min(one.above for one in found))
    return Finding(here, all(one.p < CERTAIN for one in found), "", effect)


@claim(
    "polarity-signs-at-lambda-10",
    rule=f"in every data set and seed the medians have these signs, that of neutral words is within {NEAR_ZERO:.0%} of "
    f"the smaller of the two, and both rank-sum tests have p < {CERTAIN}",
    paper="seen in Figure 2",
)
@in_every(_words(*BINARY))
def polarity_signs(run: WordsOfRun) -> Finding:
    """With λ = 10 positive words have positive polarity scores, negative ones negative, neutral ones about none."""
    return _has_signs(run)


def _has_signs(run: WordsOfRun) -> Finding:
    positive, negative, neutral = (run.of(kind, "polarity") for kind in (POSITIVE, NEGATIVE, NEUTRAL))
    up, down, middle = (float(np.median(values)) for values in (positive, negative, neutral))
    holds = up > 0 > down and abs(middle) <= NEAR_ZERO * min(up, -down)
    holds &= rank_sum(positive, neutral).p < CERTAIN and rank_sum(neutral, negative).p < CERTAIN
    effect = Effect("median of positive words less that of negative ones", up - down)
    return Finding(f"medians {up:.2f}, {middle:.2f}, {down:.2f}", holds, "", effect)


@claim(
    "polar-tokens-attended-at-lambda-10",
    rule=ATTENDED,
    paper="seen in Figure 2",
)
@in_every(_words(*BINARY))
def polar_words_attended(run: WordsOfRun) -> Finding:
    """With λ = 10 both kinds of polar words have higher attention scores than neutral ones."""
    return _above_neutral(run, "attention")


@claim(
    "gap-follows-sign-of-vw-at-lambda-100",
    rule=f"{EVERY} the rank-sum test in that direction has p < {CERTAIN}",
    paper="positive below negative (Figure 3, one seed)",
)
@in_every(_words("sst", scaling=LARGE))
def gap_follows_sign(run: WordsOfRun) -> Finding:
    """With λ = 100 positive and negative words part by their attention scores, in the direction of the sign of V·W."""
    product, gap = run.context_dot_output, run.gap
    other_way = rank_sum(run.of(NEGATIVE, "attention"), run.of(POSITIVE, "attention"))
    p = gap.p if product > 0 else other_way.p
    along = gap.above if product > 0 else 1 - gap.above
    effect = Effect("share of pairs in the direction of V·W", along)
    return Finding(f"V·W {product:.2f}, positive above negative in {gap}", p < CERTAIN, "", effect)


@claim(
    "penalty-closes-gap-without-accuracy-loss",
    rule=f"with one strength of {', '.join(f'{strength:g}' for strength in PENALTIES)} no more than {CLOSED:.0%} of the"
    f" gap is left {EVERY}, and mean accuracy is no more than {LOST:.0%} lower",
    paper="almost none left, no significant difference",
    kind="reading",
)
def penalty_closes_gap(evidence: Evidence) -> Finding:
    """A penalty on |V·W| closes that gap and costs no accuracy."""

    def at(strength: float) -> tuple[dict[int, float], float]:
        runs = evidence.runs(["sst"], "dot", LARGE, strength)
        accuracy = float(evidence.accuracy("sst", "dot", LARGE, strength).mean())
        return {run.seed: abs(run.gap.above - 0.5) for run in runs}, accuracy

    without, plain = at(0.0)
    shown, holds, least = [f"without: {_percents(without.values())}, accuracy {plain:.1%}"], False, 1.0
    for strength in PENALTIES:
        left, accuracy = at(strength)
        holds |= all(left[seed] <= CLOSED * without[seed] for seed in without) and accuracy >= plain - LOST
        least = min(least, max(left[seed] / without[seed] if without[seed] else 1.0 for seed in without))
        shown.append(f"c = {strength:g}: {_percents(left.values())}, accuracy {accuracy:.1%}")
    effect = Effect("share of the gap that the best strength leaves in its worst seed", least)
    note = "Gaps are how far the share of pairs with the positive word above is from 50%, by seed."
    return Finding("; ".join(shown), holds, note, effect, {"seeds": len(without), "strengths": len(PENALTIES)})


@claim(
    "label-tokens-attended-20news2",
    rule=f"{EVERY} the rank-sum test has p < {CERTAIN}",
    paper="seen in Figure 3c",
)
@in_every(_words("20news2"))
def labels_attended(run: WordsOfRun) -> Finding:
    """With three classes, words that go with one label have higher attention scores than neutral ones."""
    labels = [kind for kind in run.table["kind"].unique() if kind != NEUTRAL]
    polar = np.concatenate([run.of(kind, "attention") for kind in labels])
    found = rank_sum(polar, run.of(NEUTRAL, "attention"))
    return Finding(
        f"above in {found}", found.p < CERTAIN, "", Effect("share of pairs above neutral words", found.above)
    )


@claim(
    "additive-behaves-alike",
    rule=f"the rules for dot products hold for it on SST {EVERY}",
    paper="seen in Figure 4",
)
def additive_alike(evidence: Evidence) -> Finding:
    """Additive attention shows the same signs, and the same attention to polar words."""
    runs = _words("sst", variant="additive")
    signs = in_every(runs)(_has_signs)(evidence)
    attention = in_every(runs)(lambda run: _above_neutral(run, "attention"))(evidence)
    holds = together((signs.holds, attention.holds))
    return Finding(f"{signs.here}; {attention.here}", holds, "", attention.effect, attention.n)


@claim(
    "polar-weights-above-neutral",
    rule=f"{EVERY} both rank-sum tests have p < {CERTAIN}",
    paper="seen in Figure 5",
)
@in_every(_words("sst"))
def weights_above_neutral(run: WordsOfRun) -> Finding:
    """Polar words have larger attention weights in test sentences than neutral ones."""
    return _above_neutral(run, "weight")


@claim(
    "synthetic-dot-products",
    says="On made-up sentences vectors of like polar words point the same way, those of opposite ones apart, and "
    "neutral ones to neither.",
    rule=f"{EVERY} mean dot products have these signs, and are more than {APART:g} times those with neutral words",
    paper="seen in the supplement",
)
def dot_products_apart(evidence: Evidence) -> Finding:
    """Whether vectors of like words point the same way, those of opposite words apart, and neutral ones nowhere."""
    rows = rows_with(evidence.made_up, set="I", penalty=0)
    shown, holds, apart = [], True, []
    for row in rows.to_dict("records"):
        like, opposite = (row["positive-positive"], row["negative-negative"]), row["positive-negative"]
        aside = max(abs(row[name]) for name in ("positive-neutral", "negative-neutral", "neutral-neutral"))
        holds &= min(like) > APART * aside and opposite < -APART * aside
        apart.append(ratio(min(*like, -opposite), aside))
        shown.append(f"seed {row['seed']}: {like[0]:.2f}, {like[1]:.2f}, {opposite:.2f}; with neutral {aside:.3f}")
    if not shown:
        raise Unmeasured("Made-up sentences were not learned.")
    effect = mean_effect("least dot product of polar words over that with neutral ones", apart, "seeds")
    return Finding("; ".join(shown), holds, "", effect, {"seeds": len(rows)})


@claim(
    "vw-smaller-when-balanced",
    rule="of five shares of positive sentences the mean |V·W| over four beginnings is smallest at one half; means that "
    "differ by no more than their largest standard error decide nothing",
    paper="seen in the supplement",
    post_hoc=True,
)
def smaller_when_balanced(evidence: Evidence) -> Finding:
    """V·W stays smaller where both classes are equally frequent."""
    sizes = evidence.skewed.assign(size=evidence.skewed["V·W"].abs()).groupby("share")["size"]
    means, noise = sizes.mean(), float(sizes.sem().fillna(0).max())
    shown = ", ".join(f"{share:.0%}: {size:.2f}" for share, size in means.items())
    here = f"mean |V·W| by share of positive sentences {shown}"
    effect = Effect("mean |V·W| of skewed sets less that of the balanced", float(means.drop(0.5).mean() - means[0.5]))
    found = Finding(here, float(means.idxmin()) == 0.5, "", effect, {"runs": len(evidence.skewed)})
    if means.max() - means.min() <= noise:
        return at_chance(found, f"They are equal within the noise of the beginnings ({noise:.2g}).")
    return found


@claim(
    "weights-follow-scores",
    rule=f"{EVERY} the order of both kinds is the same by scores and by weights; an order that chance may give "
    f"(two-sided rank-sum test, p of {CERTAIN} or more) decides nothing",
    paper="positive below negative in Figures 2d and 5",
    kind="reading",
    post_hoc=True,
)
@in_every(_words("sst"))
def weights_follow_scores(run: WordsOfRun) -> Finding:
    """Of positive and negative words, those with the lower attention scores have the lower weights."""
    scores, weights = run.gap, rank_sum(run.of(POSITIVE, "weight"), run.of(NEGATIVE, "weight"))
    same = (scores.above > 0.5) == (weights.above > 0.5)
    here = f"positive above negative in {scores.above:.1%} by score, {weights.above:.1%} by weight"
    effect = Effect("share of pairs with the positive word above, by weight", weights.above)
    found = Finding(here, same, "", effect)
    if any(2 * min(one.p, 1 - one.p) >= CERTAIN for one in (scores, weights)):
        return at_chance(found, "The two kinds are not told apart by both.")
    return found


@claim(
    "relative-weight-outlier",
    rule=f'{EVERY} the last word of "{OUTLIER}" has the largest weight there, while the scores of all three are below '
    "the median of polar words",
    paper="so for this sentence",
)
@in_every(_words("sst"))
def relative_outlier(run: WordsOfRun) -> Finding:
    """A word may have a large weight for want of better neighbours."""
    if not (run.table["kind"] == OUTLIER).any():
        raise Unmeasured(f"The words of “{OUTLIER}” are not all in the texts of {run.title}.")
    scores = run.of(OUTLIER, "attention")
    polar = np.median(np.concatenate([run.of(kind, "attention") for kind in (POSITIVE, NEGATIVE)]))
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    holds = bool(shares.argmax() == len(shares) - 1 and (scores < polar).all())
    here = f"scores {_numbers(scores)}, weights {_percents(shares)}, polar median {polar:.2f}"
    return Finding(here, holds, "", Effect("weight of the last word", float(shares[-1])))


@claim(
    "neutral-effect-survives-frequency-matching",
    rule=f"{ATTENDED}, where each polar word has a neutral one that is about as frequent",
    paper="not looked at; 1,170 of 1,384 neutral words on SST occur ten times or less",
    kind="own",
)
@in_every(_words(*BINARY))
def attended_at_like_frequency(run: WordsOfRun) -> Finding:
    """Ours: polar words are attended because they are polar, not because neutral ones are rare."""
    return _above_neutral(run, "attention", MATCHED)


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def _percents(shares: Iterable[float]) -> str:
    return ", ".join(f"{share:.0%}" for share in shares)
