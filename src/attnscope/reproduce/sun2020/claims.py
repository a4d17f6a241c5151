"""Claims on the scores of words (Figures 2 to 5) and on made-up sentences, each with the rule by which it is judged."""

import math
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from ..claims import Effect, Finding, Unmeasured, at_chance, claim, in_every, mean_effect, ratio, rows_with, together
from .evidence import EVERY, Evidence, WordsOfRun
from .paper import LARGE, MODERATE, PENALTIES, TITLES
from .words import MATCHED, NEGATIVE, NEUTRAL, OUTLIER, POSITIVE, PRODUCT, RankSum, rank_sum

BINARY = ("sst", "imdb", "20news1")
GAPS = ("sst", "20news1")
"""V·W comes out below zero on the first and above on the second."""
HALF = 0.5
CERTAIN = 0.001
NEAR_ZERO = 0.25
"""Neutral words are near zero where their median is within this share of the median of polar ones."""
CLOSED, LOST = 0.25, 0.01
"""The share of the gap that a penalty may leave, and the accuracy that it may cost."""
BALANCED, PAPER_STEPS = 0.5, 30_000
"""The share of positive sentences of balanced data, and the steps of the supplement's 500 epochs."""
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
    rule=f"{EVERY} of {' and '.join(TITLES[name] for name in GAPS)} the rank-sum test in that direction has p < "
    f"{CERTAIN}",
    paper="positive below negative (Figure 3, one seed)",
    post_hoc=True,
)
def gap_follows_sign(evidence: Evidence) -> Finding:
    """With λ = 100 positive and negative words part by their attention scores, in the direction of the sign of V·W."""
    found = {name: evidence.comparisons(data=name, variant="dot", scaling=LARGE, penalty=0) for name in GAPS}
    if missing := [TITLES[name] for name, rows in found.items() if rows.empty]:
        raise Unmeasured(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not run with λ = 100.")
    rows = rows_with(pd.concat(found.values()), first=POSITIVE, second=NEGATIVE, score="attention")
    shown, along, right = [], [], []
    for row in rows.to_dict("records"):
        product, gap = float(row[PRODUCT]), RankSum(row["above"], row["p"])
        # p is that of the positive ones above; the other way round it is what is left
        right.append(gap.p < CERTAIN if product > 0 else 1 - gap.p < CERTAIN)
        along.append(gap.above if product > 0 else 1 - gap.above)
        shown.append(f"{TITLES[row['data']]} seed {row['seed']}: V·W {product:.2f}, positive above negative in {gap}")
    effect = mean_effect("share of pairs in the direction of V·W", along)
    return Finding("; ".join(shown), all(right), "", effect, {"runs": len(rows)})


# Figure 3a and b: what a large λ does to both scores.


def _size_at(evidence: Evidence, score: str, scaling: float, column_of: Callable[[pd.DataFrame], float]) -> pd.Series:
    """How large a score is on SST at a λ, for each seed."""
    rows = evidence.scores(data="sst", variant="dot", scaling=scaling, penalty=0)
    if rows.empty:
        raise Unmeasured(f"The words of SST with λ = {scaling:g} are not there.")
    rows = rows_with(rows, score=score)
    return pd.Series({seed: column_of(table) for seed, table in rows.groupby("seed")})


def _farthest_quartile(table: pd.DataFrame) -> float:
    return float(table[["quartile_1", "quartile_3"]].abs().to_numpy().max())


def _lesser_median(table: pd.DataFrame) -> float:
    return float(table[table["kind"].isin([POSITIVE, NEGATIVE])]["median"].abs().min())


@claim(
    "attention-shrinks-at-lambda-100",
    says="With λ = 100 the attention scores of all words are much smaller than with λ = 10.",
    rule=f"{EVERY} on SST the quartile that is farthest from zero, of any kind of word, is at most half as far",
    paper="seen in Figure 3b against 2d",
    post_hoc=True,
    score="attention",
    size_of=_farthest_quartile,
    most=HALF,
)
@claim(
    "polarity-stays-large-at-lambda-100",
    says="With λ = 100 polar words still have polarity scores of large size.",
    rule=f"{EVERY} on SST the smaller of the medians of positive and negative words is at least half of that with λ = "
    "10",
    paper="seen in Figure 3a against 2a",
    post_hoc=True,
    score="polarity",
    size_of=_lesser_median,
    least=HALF,
)
def size_at_large_scaling(
    evidence: Evidence,
    score: str,
    size_of: Callable[[pd.DataFrame], float],
    most: float = math.inf,
    least: float = 0.0,
) -> Finding:
    """How large a score is at λ = 100 over what it is at 10, in every seed."""
    moderate, large = (_size_at(evidence, score, scaling, size_of) for scaling in (MODERATE, LARGE))
    times = (large / moderate).dropna()
    if times.empty:
        raise Unmeasured("No seed has words at both λ.")
    shown = "; ".join(f"seed {seed}: {large[seed]:.2f} against {moderate[seed]:.2f}" for seed in times.index)
    effect = mean_effect("size with λ = 100 over that with 10", times, "seeds")
    return Finding(shown, bool(times.between(least, most).all()), "", effect, {"seeds": len(times)})


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
    rule="in every beginning |V·W| is smaller with as many positive as negative sentences than with each of the four "
    "larger shares of positive ones",
    paper="seen in the supplement",
    post_hoc=True,
)
def smaller_when_balanced(evidence: Evidence) -> Finding:
    """V·W stays smaller where both classes are equally frequent."""
    if evidence.skewed.empty or BALANCED not in set(evidence.skewed["share"]):
        raise Unmeasured("Skewed sentences were not learned.")
    products = evidence.skewed.pivot_table(index="seed", columns="share", values="V·W")
    sizes = products.abs()
    right = (sizes.drop(columns=BALANCED).min(axis=1) > sizes[BALANCED]).to_dict()
    shown = "; ".join(f"beginning {seed}: {_numbers(row)}" for seed, row in products.iterrows())
    rising = int((products.diff(axis=1).iloc[:, 1:] > 0).all(axis=1).sum())
    note = (
        f"So it is in {sum(right.values())} of {len(right)} beginnings. V·W itself rises with every step of the share "
        f"in {rising} of them, so that its size grows where it is above zero and shrinks where it is below."
    )
    if "step" in evidence.skewed:
        note += f" After {int(evidence.skewed['step'].iloc[0]):,} steps; the paper's 500 epochs are {PAPER_STEPS:,}."
    more = sizes.drop(columns=BALANCED).mean(axis=1) - sizes[BALANCED]
    effect = mean_effect("mean |V·W| of skewed sets less that of the balanced", more, "beginnings")
    here = f"V·W by share of positive sentences ({', '.join(f'{share:.0%}' for share in products)}): {shown}"
    return Finding(here, all(right.values()), note, effect, {"beginnings": len(right), "runs": len(evidence.skewed)})


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
