"""How each claim is judged: functions from what was measured to what was found."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..claims import Finding, Unmeasured
from .evidence import Evidence, WordsOfRun
from .scales import PENALTIES, SCALINGS
from .sweeping import LARGE, MODERATE
from .word_tables import NEGATIVE, NEUTRAL, OUTLIER, POSITIVE, Compared, compared

SMALLEST, ONE = SCALINGS[0], SCALINGS[1]
COLLAPSE, POOR, FLAT, BARELY = 0.15, 0.03, 0.04, 0.05
"""Differences of accuracy: what makes a collapse, a poor result, a flat stretch, and what hardly matters."""
CERTAIN = 0.001
NEAR_ZERO = 0.25
"""Neutral words lie near zero where their median is within this share of the median of polar ones."""
CLOSED, LOST = 0.25, 0.01
"""The share of the gap that a penalty may leave, and the accuracy that it may cost."""
APART = 10.0
"""How many times as large as with neutral words dot products among polar words are."""
BINARY = ("sst", "imdb", "20news1")


def falls(data: str, variant: str, low: float, least: float, evidence: Evidence) -> Finding:
    """Whether accuracy at a small λ is lower than at 10 by at least so much, in every seed."""
    there, here = evidence.accuracy(data, variant, low), evidence.accuracy(data, variant, MODERATE)
    return Finding(_pairs(there, here), bool(((here - there) >= least).all()))


def stays(data: str, variant: str, low: float, most: float, evidence: Evidence) -> Finding:
    """Whether accuracy at a small λ is lower than at 10 by no more than so much, in every seed."""
    there, here = evidence.accuracy(data, variant, low), evidence.accuracy(data, variant, MODERATE)
    return Finding(_pairs(there, here), bool(((here - there) <= most).all()))


def is_flat(data: str, evidence: Evidence) -> Finding:
    """How far apart the mean accuracies are from λ = 10 on."""
    means = [float(evidence.accuracy(data, "dot", scaling).mean()) for scaling in SCALINGS if scaling >= MODERATE]
    return Finding(", ".join(f"{mean:.3f}" for mean in means), max(means) - min(means) <= FLAT)


def polarity_signs(data: Sequence[str], variant: str, evidence: Evidence) -> Finding:
    """Whether positive words have positive scores, negative ones negative, and neutral ones scores near zero."""

    def judged(run: WordsOfRun) -> tuple[str, bool]:
        positive, negative, neutral = (run.of(kind, "polarity") for kind in (POSITIVE, NEGATIVE, NEUTRAL))
        up, down, middle = (float(np.median(values)) for values in (positive, negative, neutral))
        holds = up > 0 > down and abs(middle) <= NEAR_ZERO * min(up, -down)
        holds &= compared(positive, neutral).p < CERTAIN and compared(neutral, negative).p < CERTAIN
        return f"medians {up:.2f}, {middle:.2f}, {down:.2f}", holds

    return _every(evidence.runs(data, variant, MODERATE), judged)


def polar_attended(data: Sequence[str], variant: str, against: str, evidence: Evidence) -> Finding:
    """Whether positive and negative words have higher attention scores than neutral ones."""

    def judged(run: WordsOfRun) -> tuple[str, bool]:
        neutral = run.of(against, "attention")
        found = [compared(run.of(kind, "attention"), neutral) for kind in (POSITIVE, NEGATIVE)]
        return f"positive above in {found[0]}, negative in {found[1]}", all(one.p < CERTAIN for one in found)

    return _every(evidence.runs(data, variant, MODERATE), judged)


def gap_follows_sign(evidence: Evidence) -> Finding:
    """Whether at λ = 100 those words have the higher attention scores that the sign of V·W says."""

    def judged(run: WordsOfRun) -> tuple[str, bool]:
        product, gap = run.context_dot_output, _gap(run)
        return f"V·W {product:.2f}, positive above negative in {gap}", (
            gap.p < CERTAIN if product > 0 else _gap(run, swapped=True).p < CERTAIN
        )

    return _every(evidence.runs(["sst"], "dot", LARGE), judged)


def penalty_closes_gap(evidence: Evidence) -> Finding:
    """Whether one strength of the penalty closes the gap in every seed, and costs no accuracy in the mean."""
    without = {run.seed: abs(_gap(run).above - 0.5) for run in evidence.runs(["sst"], "dot", LARGE)}
    plain = float(evidence.accuracy("sst", "dot", LARGE).mean())
    shown, holds = [f"without: {_numbers(without.values())}, accuracy {100 * plain:.1f}"], False
    for strength in PENALTIES:
        left = {run.seed: abs(_gap(run).above - 0.5) for run in evidence.runs(["sst"], "dot", LARGE, strength)}
        accuracy = float(evidence.accuracy("sst", "dot", LARGE, strength).mean())
        holds |= all(left[seed] <= CLOSED * without[seed] for seed in without) and accuracy >= plain - LOST
        shown.append(f"c = {strength:g}: {_numbers(left.values())}, accuracy {100 * accuracy:.1f}")
    return Finding("; ".join(shown), holds, "Gaps are |share of pairs with the positive word above - .5|, by seed.")


def labels_attended(evidence: Evidence) -> Finding:
    """Whether words that go with one of three labels have higher attention scores than neutral ones."""

    def judged(run: WordsOfRun) -> tuple[str, bool]:
        labels = [kind for kind in run.table["kind"].unique() if kind != NEUTRAL]
        polar = np.concatenate([run.of(kind, "attention") for kind in labels])
        found = compared(polar, run.of(NEUTRAL, "attention"))
        return f"above in {found}", found.p < CERTAIN

    return _every(evidence.runs(["20news2"], "dot", MODERATE), judged)


def additive_alike(evidence: Evidence) -> Finding:
    """Whether additive attention shows both: the signs of polarity, and attention to polar words."""
    signs = polarity_signs(["sst"], "additive", evidence)
    attended = polar_attended(["sst"], "additive", NEUTRAL, evidence)
    return Finding(f"{signs.here}; {attended.here}", signs.holds and attended.holds)


def weights_above_neutral(evidence: Evidence) -> Finding:
    """Whether polar words have larger mean weights in test sentences than neutral ones."""

    def judged(run: WordsOfRun) -> tuple[str, bool]:
        found = [compared(run.of(kind, "weight"), run.of(NEUTRAL, "weight")) for kind in (POSITIVE, NEGATIVE)]
        return f"positive above in {found[0]}, negative in {found[1]}", all(one.p < CERTAIN for one in found)

    return _every(evidence.runs(["sst"], "dot", MODERATE), judged)


def weights_follow_scores(evidence: Evidence) -> Finding:
    """Whether of positive and negative words the kind with the lower attention scores has the lower weights."""

    def judged(run: WordsOfRun) -> tuple[str, bool]:
        scores = compared(run.of(POSITIVE, "attention"), run.of(NEGATIVE, "attention"))
        weights = compared(run.of(POSITIVE, "weight"), run.of(NEGATIVE, "weight"))
        same = (scores.above > 0.5) == (weights.above > 0.5)
        return f"positive above negative in {scores.above:.2f} by score, {weights.above:.2f} by weight", same

    return _every(evidence.runs(["sst"], "dot", MODERATE), judged)


def relative_outlier(evidence: Evidence) -> Finding:
    """Whether a weight can be large by its neighbours alone: the last word of "is this progress"."""

    def judged(run: WordsOfRun) -> tuple[str, bool]:
        if not (run.table["kind"] == OUTLIER).any():
            raise Unmeasured(f"The words of “{OUTLIER}” are not all in the texts of {run.title}.")
        scores = run.of(OUTLIER, "attention")
        polar = np.median(np.concatenate([run.of(kind, "attention") for kind in (POSITIVE, NEGATIVE)]))
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        holds = bool(shares.argmax() == len(shares) - 1 and (scores < polar).all())
        return f"scores {_numbers(scores)}, weights {_numbers(shares)}, polar median {polar:.2f}", holds

    return _every(evidence.runs(["sst"], "dot", MODERATE), judged)


def dot_products_apart(evidence: Evidence) -> Finding:
    """Whether vectors of like words point the same way, those of opposite words apart, and neutral ones nowhere."""
    rows = evidence.made_up[(evidence.made_up["set"] == "I") & (evidence.made_up["penalty"] == 0)]
    shown, holds = [], True
    for row in rows.to_dict("records"):
        like, opposite = (row["positive-positive"], row["negative-negative"]), row["positive-negative"]
        aside = max(abs(row[name]) for name in ("positive-neutral", "negative-neutral", "neutral-neutral"))
        holds &= min(like) > APART * aside and opposite < -APART * aside
        shown.append(f"seed {row['seed']}: {like[0]:.2f}, {like[1]:.2f}, {opposite:.2f}; with neutral {aside:.3f}")
    return Finding("; ".join(shown), holds)


def smaller_when_balanced(evidence: Evidence) -> Finding:
    """Whether |V·W| is smallest where both classes are equally frequent."""
    sizes = evidence.skewed.assign(size=evidence.skewed["V·W"].abs()).groupby("share")["size"]
    means, noise = sizes.mean(), float(sizes.sem().fillna(0).max())
    shown = ", ".join(f"{share:.0%}: {size:.2f}" for share, size in means.items())
    here = f"mean |V·W| by share of positive sentences {shown}"
    if means.max() - means.min() <= noise:
        return Finding(here, None, f"They are equal within the noise of the beginnings ({noise:.2g}).")
    return Finding(here, float(means.idxmin()) == 0.5)


def _every(runs: Iterable[WordsOfRun], judged: Callable[[WordsOfRun], tuple[str, bool]]) -> Finding:
    """The finding that holds where it does in every run."""
    found = [(run.title, *judged(run)) for run in runs]
    return Finding("; ".join(f"{title}: {shown}" for title, shown, _ in found), all(holds for *_, holds in found))


def _gap(run: WordsOfRun, *, swapped: bool = False) -> Compared:
    """Positive words against negative ones by attention score, or the other way round."""
    positive, negative = run.of(POSITIVE, "attention"), run.of(NEGATIVE, "attention")
    return compared(negative, positive) if swapped else compared(positive, negative)


def _pairs(there: "Iterable[float]", here: "Iterable[float]") -> str:
    return "; ".join(f"{100 * low:.1f} against {100 * high:.1f}" for low, high in zip(there, here, strict=True))


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)
