"""Claims on accuracy, each with the rule by which it is judged: Table 2, for each data set and variant."""

from collections.abc import Callable, Iterable

from ..claims import Effect, Finding, Judge, Kind, claim, mean_effect
from .evidence import EVERY, Evidence
from .paper import MODERATE, SCALINGS, TITLES, accuracy_in_paper

SMALLEST, ONE = SCALINGS[0], SCALINGS[1]
COLLAPSE, POOR, FLAT, BARELY = 0.15, 0.03, 0.04, 0.05
"""Differences of accuracy: what makes a collapse, a poor result, a flat stretch, and what hardly matters."""
LSTM_IN_TEXT = "The paper's text says the opposite of its table: with an LSTM too, a proper λ is crucial."


def _in_paper(variant: str, scaling: float) -> Callable[[str], str]:
    """The paper's accuracy at a λ against that at 10."""
    return lambda data: " against ".join(f"{accuracy_in_paper(data, variant, place)}%" for place in (scaling, MODERATE))


def _from_10_in_paper(variant: str) -> Callable[[str], str]:
    """The paper's accuracies from λ = 10 on."""
    return lambda data: ", ".join(f"{accuracy_in_paper(data, variant, scaling)}%" for scaling in SCALINGS[2:])


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
    paper=_from_10_in_paper("dot"),
    each=TITLES,
)
def is_flat(evidence: Evidence, data: str) -> Finding:
    """How far apart the mean accuracies are from λ = 10 on."""
    return _flatness(evidence, data, "dot")


@claim(
    lambda data: f"dpl-barely-affected-{data}",
    says=lambda data: (
        f"In the paper's Table 2 λ hardly matters on {TITLES[data]} behind an LSTM; its text says the opposite."
    ),
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


# The other variants: behind an affine layer (DP-A), and additive attention (AD).


OTHERS = {"dpa": ("dot_affine", "behind an affine layer"), "ad": ("additive", "with additive attention")}
"""By the name in an id: the variant, and how it is called."""


def _worse_claim(short: str, kind: Kind) -> Callable[[Judge], Judge]:
    variant, name = OTHERS[short]
    return claim(
        lambda data: f"{short}-worse-below-lambda-10-{data}",
        says=lambda data: f"With λ of .001 and 1 accuracy on {TITLES[data]} is worse {name} too.",
        rule=f"{EVERY} and for both λ it is at least {POOR:.0%} below that with λ = 10",
        paper=lambda data: ", ".join(f"{accuracy_in_paper(data, variant, scaling)}%" for scaling in SCALINGS[:3]),
        kind=kind,
        post_hoc=True,
        each=TITLES,
        variant=variant,
    )


@_worse_claim("dpa", "paper")
@_worse_claim("ad", "reading")
def is_worse_below(evidence: Evidence, data: str, variant: str) -> Finding:
    """Whether a variant does worse at both small λ than at 10 by at least so much, in every seed."""
    here = evidence.accuracy(data, variant, MODERATE)
    losses = {scaling: here - evidence.accuracy(data, variant, scaling) for scaling in (SMALLEST, ONE)}
    shown = "; ".join(f"λ = {scaling:g}: {_pairs(here - loss, here)}" for scaling, loss in losses.items())
    least = [min(losses[SMALLEST][seed], losses[ONE][seed]) for seed in here.index]
    effect = mean_effect("loss of accuracy at the better of both", least, "seeds")
    return Finding(shown, bool(min(least) >= POOR), "", effect, {"seeds": len(here)})


def _flat_claim(short: str, kind: Kind) -> Callable[[Judge], Judge]:
    variant, name = OTHERS[short]
    return claim(
        lambda data: f"{short}-flat-from-lambda-10-{data}",
        says=lambda data: f"From λ = 10 on accuracy on {TITLES[data]} is equal {name} too.",
        rule=f"mean accuracies from 10 to 10,000 differ by no more than {FLAT:.0%}",
        paper=_from_10_in_paper(variant),
        kind=kind,
        post_hoc=True,
        each=TITLES,
        variant=variant,
    )


@_flat_claim("dpa", "paper")
@_flat_claim("ad", "reading")
def variant_is_flat(evidence: Evidence, data: str, variant: str) -> Finding:
    """How far apart the mean accuracies of a variant are from λ = 10 on."""
    return _flatness(evidence, data, variant)


def _flatness(evidence: Evidence, data: str, variant: str) -> Finding:
    means = [float(evidence.accuracy(data, variant, scaling).mean()) for scaling in SCALINGS if scaling >= MODERATE]
    apart = max(means) - min(means)
    shown = ", ".join(f"{mean:.1%}" for mean in means)
    seeds = len(evidence.accuracy(data, variant, MODERATE))
    return Finding(
        shown, bool(apart <= FLAT), "", Effect("largest difference of mean accuracies", apart), {"seeds": seeds}
    )


def _pairs(there: "Iterable[float]", here: "Iterable[float]") -> str:
    return "; ".join(f"{low:.1%} against {high:.1%}" for low, high in zip(there, here, strict=True))
