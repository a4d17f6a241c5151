"""Every claim with the rule by which it is judged, in the order of the paper's argument."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import claims
from ..claims import NO_RUN, Effect, Finding, Unmeasured, claim, mean_effect, together
from .scoring import Cell, Correlations

# What the claims are judged on: the models of all seeds, what their sentences gave, and the classifier of Table 3.


Counts = dict[int, tuple[int, int]]
"""By attractors: how many verbs were right, and of how many."""


@dataclass(frozen=True, eq=False)
class Run:
    """One model: its seed, every figure of Tables 1 and 2, and how often it is right."""

    correlations: Correlations
    """Of the headline: sentences in their natural mix that the model gets right."""
    first_layer_gap: float
    """The largest difference of any token's share between rollout and flow at the first layer."""
    held_out: Counts
    """On sentences of the text it was trained on."""
    testing: Counts
    """On all test sentences."""
    others: Mapping[str, Correlations] = field(default_factory=dict)
    """The same figures on other sentences: natural ones that it gets wrong, and those chosen for their attractors."""

    @property
    def name(self) -> str:
        """The model in words."""
        return self.correlations.name


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence(claims.Evidence):
    """Everything that was measured: by seed and layer the saturation of flow, the evenness, the subjects, and more."""

    runs: tuple[Run, ...]
    """As far as there are any; claims rest on `trained`."""
    sentiment: Correlations | str
    """Table 3, or the sentence that says why there is none."""

    @property
    def layers(self) -> int:
        """How many layers the agreement model has."""
        return int(self.where("saturation")["layer"].max())

    @property
    def deep(self) -> range:
        """The layers from the third on."""
        return range(3, self.layers + 1)

    @property
    def trained(self) -> tuple[Run, ...]:
        """The agreement models, at least one.

        Raises:
            Unmeasured: If there is none.
        """
        if not self.runs:
            raise Unmeasured(NO_RUN)
        return self.runs

    @property
    def agreement(self) -> list[Correlations]:
        """Tables 1 and 2 of all seeds."""
        return [run.correlations for run in self.trained]


def share(counts: Counts) -> float:
    """The share of right answers, over all attractors."""
    return sum(right for right, _ in counts.values()) / sum(of for _, of in counts.values())


# The claims.


NAMES = {
    "blank_out": "blank-out",
    "gradient": "input gradients",
    "gradient_sum": "the sum of input gradients",
    "cls": "by the row of [CLS]",
    "maximum": "by the maximum over sources",
}
"""What the tables are about, in words."""
SAME = 1e-6
"""Rollout is computed in 32-bit numbers."""
EVEN = 0.9
"""Of the largest entropy: attention that is as good as uniform."""
FOCUSED = 0.02
"""The least by which rollout's entropy is below that of flow, as a share of the largest."""
TIE = 0.02
"""Flow and rollout that differ by no more than this are level, as .70 and .71 are in the paper's Table 1."""
SATURATED = 0.9
ACCURATE = 0.95
REFERENCES = ("blank_out", "gradient")
LENGTH = (
    "Gradients are taken by their length: their sum over dimensions, which the authors take, is zero but for rounding "
    "in a model with a LayerNorm on every way."
)
TIES = (
    "Flows are exact here, so that saturated ones are ties, which dense ranks favour; the authors' solver left their "
    "order to rounding."
)
NO_FIGURE = "Not every layer that is asked about has a figure here."
EVERY, APART = "in every seed", "with the 95% interval of the difference above zero"


@claim(
    "layer1-rollout-equals-flow",
    rule=f"no token's share differs by more than {SAME:g}",
    paper="the same, by definition",
    kind="by-definition",
)
def first_layer_is_the_same(evidence: Evidence) -> Finding:
    """In the first layer rollout and flow are the same."""
    shown = "; ".join(f"{run.name}: {run.first_layer_gap:.0e}" for run in evidence.trained)
    holds = max(run.first_layer_gap for run in evidence.trained) <= SAME
    effect = mean_effect("largest difference of shares", (run.first_layer_gap for run in evidence.trained), "seeds")
    note = "By definition: one layer has no paths to add."
    return Finding(f"largest difference, {shown}", holds, note, effect, {"seeds": len(evidence.trained)})


@claim(
    "raw-collapses-after-layer1",
    rule=f"{EVERY}, for blank-out and for gradients, its correlation is highest at layer 1, by 95% intervals, and less "
    "than half of that at layers 2 to 4",
    paper="blank-out .69 .10 -.11 -.09 .20 .29; gradient .53 .16 -.06 .00 .24 .46",
)
def raw_collapses(evidence: Evidence) -> Finding:
    """Raw attention agrees with what the model uses in the first layer only."""
    layers = range(1, evidence.layers + 1)
    pairs = [(_headline(of, "raw", 1), _headline(of, "raw", layer)) for of in REFERENCES for layer in layers[1:]]
    highest = higher(evidence.agreement, pairs)
    halved = all(
        run.mean(_headline(of, "raw", layer)) < run.mean(_headline(of, "raw", 1)) / 2
        for run in evidence.agreement
        for of in REFERENCES
        for layer in layers[1:4]
    )
    blank_out, gradients = (_raw_by_layer(evidence, of, layers) for of in REFERENCES)
    here = f"blank-out, {blank_out}; gradients, {gradients}; layer 1 above others, {highest.here}"
    return Finding(here, together((highest.holds, halved)), LENGTH, highest.effect, highest.n)


def _raw_by_layer(evidence: Evidence, reference: str, layers: Sequence[int]) -> str:
    return "; ".join(
        f"{run.name}: {' '.join(_short(run.mean(_headline(reference, 'raw', layer))) for layer in layers)}"
        for run in evidence.agreement
    )


def _short(value: float) -> str:
    """A correlation as tables have it.

    >>> _short(0.694), _short(-0.11)
    ('.69', '-.11')
    """
    return f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.2f}"


@claim(
    "rollout-beats-raw-from-layer3-blankout",
    says="From the third layer on rollout agrees better with blank-out than raw attention does.",
    rule=f"{EVERY} its mean correlation is higher at each of these layers, {APART}",
    paper="rollout .51 .62 .70 .71, raw -.11 -.09 .20 .29",
    reference="blank_out",
)
@claim(
    "rollout-beats-raw-from-layer3-gradient",
    says="From the third layer on rollout agrees better with gradients than raw attention does.",
    rule=f"{EVERY} its mean correlation is higher at each of these layers, {APART}",
    paper="rollout .39 .47 .53 .54, raw -.06 .00 .24 .46",
    reference="gradient",
)
def rollout_beats_raw(evidence: Evidence, reference: str) -> Finding:
    """Rollout against raw attention from the third layer on."""
    note = LENGTH if reference == "gradient" else ""
    return higher(evidence.agreement, cell_pairs([reference], "rollout", "raw", evidence.deep), note=note)


@claim(
    "flow-above-rollout-layers2-4-blankout",
    says="At layers 2 to 4 flow agrees better with blank-out than rollout does.",
    rule=f"{EVERY} its mean correlation is higher at each of these layers, {APART}",
    paper="flow .44 .70 .70, rollout .38 .51 .62",
    reference="blank_out",
    last=4,
)
@claim(
    "flow-above-rollout-layers2-6-gradient",
    says="At layers 2 to 6 flow agrees better with gradients than rollout does.",
    rule=f"{EVERY} its mean correlation is higher at each of these layers, {APART}",
    paper="flow .31 .54 .61 .60 .61, rollout .27 .39 .47 .53 .54",
    reference="gradient",
    last=6,
)
def flow_beats_rollout(evidence: Evidence, reference: str, last: int) -> Finding:
    """Flow against rollout from the second layer to the last that is asked about."""
    layers = range(2, last + 1)
    average = higher(evidence.agreement, cell_pairs([reference], "flow", "rollout", layers, ("average", "all")))
    note = f"{TIES} By average ranks it {_verdict(average)} ({average.here})."
    if reference == "gradient":
        note = f"{LENGTH} {note}"
    return higher(evidence.agreement, cell_pairs([reference], "flow", "rollout", layers), note=note)


@claim(
    "raw-best-at-layer1",
    rule=f"{EVERY}, for blank-out and for gradients, its mean correlation is higher than both, {APART}",
    paper="blank-out .69 against .32; gradient .53 against .22",
    kind="reading",
)
def raw_is_best_at_first(evidence: Evidence) -> Finding:
    """At the first layer raw attention agrees better than rollout and flow do."""
    note = (
        "At the first layer rollout and flow are half raw attention and half [CLS] itself, so that the place of "
        f"[CLS] in the order is all that differs; over the words alone the three are the same. {LENGTH}"
    )
    return higher(evidence.agreement, cell_pairs(REFERENCES, "raw", "rollout", [1]), note=note)


@claim(
    "raw-near-uniform-above-layer3",
    rule=f"{EVERY} the row of [CLS] has on average {EVEN:.0%} of the largest entropy or more at each of these layers, "
    "and more than at layer 1, by 95% intervals",
    paper="seen in Figures 1 and 2",
)
def raw_is_even(evidence: Evidence) -> Finding:
    """Above the third layer raw attention is nearly uniform."""
    first = evidence.where("evenness", method="raw", layer=1).set_index("seed")
    every = evidence.where("evenness", method="raw")
    deep = every[every["layer"] > 3]
    if deep.empty:
        raise Unmeasured(NO_FIGURE)
    shown = "; ".join(
        f"seed {seed}: {_with_interval(first.loc[seed])} at layer 1, then "
        f"{', '.join(map(_with_interval, rows.to_dict('records')))}"
        for seed, rows in deep.groupby("seed")
    )
    lowest = deep.groupby("seed")["low"].min()
    holds = bool((lowest >= EVEN).all() and (lowest > first["high"]).all())
    here = f"entropy as a share of the largest, {shown} at layers 4 to {evidence.layers}"
    effect = mean_effect("least lower end above layer 3", lowest, "seeds")
    return Finding(here, holds, "", effect, {"seeds": len(lowest)})


@claim(
    "rollout-more-focused-than-flow",
    rule=f"{EVERY} its mean entropy at the last layer is lower by more than {FOCUSED:.0%} of the largest, by 95% "
    "intervals",
    paper="seen in Figure 3",
)
def rollout_is_focused(evidence: Evidence) -> Finding:
    """Rollout is more focused than flow."""
    rollout, flow = (
        evidence.where("evenness", method=method, layer=evidence.layers).set_index("seed")
        for method in ("rollout", "flow")
    )
    shown = "; ".join(
        f"seed {seed}: {_with_interval(rollout.loc[seed])} against {_with_interval(flow.loc[seed])}"
        for seed in rollout.index
    )
    holds = bool((rollout["high"] + FOCUSED < flow["low"]).all())
    note = (
        "Saturated flow cannot be focused, whatever a model has learned: each token can take at least the half that is "
        "its own residual and at most 1, so that no share is more than twice another."
    )
    here = f"entropy as a share of the largest at layer {evidence.layers}, rollout against flow, {shown}"
    effect = mean_effect("entropy of flow less that of rollout", flow["evenness"] - rollout["evenness"], "seeds")
    return Finding(here, holds, note, effect, {"seeds": len(rollout)})


@claim(
    "accuracy-096",
    rule=f"the mean over seeds is at least {ACCURATE:.0%}, on held-out sentences of the text trained on, in its own "
    "mix",
    paper=".96",
)
def is_accurate(evidence: Evidence) -> Finding:
    """The model finds the number of 96% of the verbs."""
    found = [share(run.held_out) for run in evidence.trained]
    shown = "; ".join(f"{run.name}: {_with_wilson_interval(run.held_out)}" for run in evidence.trained)
    tested = ", ".join(f"{share(run.testing):.3f}" for run in evidence.trained)
    note = f"On the test sentences, whose numbers of attractors stand in the table below: {tested}."
    verbs = sum(of for _, of in evidence.trained[0].held_out.values())
    effect = mean_effect("accuracy", found, "seeds")
    return Finding(shown, sum(found) / len(found) >= ACCURATE, note, effect, {"seeds": len(found), "verbs": verbs})


def _with_wilson_interval(counts: Counts) -> str:
    """The share of right answers with its 95% interval (Wilson 1927)."""
    total = sum(of for _, of in counts.values())
    found, z = share(counts), 1.96
    middle = (found + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * (found * (1 - found) / total + z**2 / (4 * total**2)) ** 0.5
    return f"{found:.3f} [{middle - half:.3f}, {middle + half:.3f}]"


ORDER = "From the third layer on flow is level with or above rollout, and rollout above raw attention, also "
ORDER_RULE = (
    f"{EVERY}, at each of these layers, for blank-out and gradients, by 95% intervals rollout is above raw and "
    f"flow no more than {TIE} below rollout, "
)


@claim(
    "order-survives-without-cls",
    says=f"{ORDER}without [CLS] and the verb's place.",
    rule=f"{ORDER_RULE}over the words alone",
    paper="the authors' run without [CLS], layer 6, blank-out: raw .26, rollout .41, flow .49",
    kind="own",
    cells=("authors", "words"),
)
@claim(
    "order-survives-average-ranks",
    says=f"{ORDER}with average ranks, which are right where scores are tied.",
    rule=f"{ORDER_RULE}by average ranks",
    paper="dense ranks only",
    kind="own",
    cells=("average", "all"),
)
def order_survives(evidence: Evidence, cells: tuple[str, str]) -> Finding:
    """Flow, rollout and raw attention with other ranks or other tokens."""
    above = higher(evidence.agreement, cell_pairs(REFERENCES, "rollout", "raw", evidence.deep, cells))
    level = higher(evidence.agreement, cell_pairs(REFERENCES, "flow", "rollout", evidence.deep, cells), -TIE)
    here = f"rollout over raw, {above.here}; flow over rollout, {level.here}"
    return Finding(here, together((above.holds, level.holds)), LENGTH, level.effect, level.n)


@claim(
    "sst2-rollout-and-flow-above-raw",
    rule="the mean correlation of both is higher at each of these layers, by the authors' maximum over sources, "
    f"{APART}",
    paper="layers 3, 5, 6: rollout .12 .13 .13, flow .11 .12 .14, raw .09 .08 .09",
)
def sentiment_order(evidence: Evidence) -> Finding:
    """From the third layer on rollout and flow agree better with gradients in a sentiment classifier than raw does."""
    run = evidence.sentiment
    if isinstance(run, str):
        raise Unmeasured(run)
    layers = range(3, max(cell[2] for cell in run.cells) + 1)
    by_maximum, by_row = (
        higher([run], [pair for better in ("rollout", "flow") for pair in cell_pairs([source], better, "raw", layers)])
        for source in ("maximum", "cls")
    )
    note = (
        f"By the row of [CLS] it {_verdict(by_row)} ({by_row.here}). The authors' own logs with other choices reverse "
        "the order."
    )
    return Finding(by_maximum.here, by_maximum.holds, note, by_maximum.effect, by_maximum.n)


@claim(
    "deep-flow-is-saturated",
    rule=f"{EVERY} at least {SATURATED:.0%} of the flows from [CLS] at the last layer are that, by 95% intervals",
    paper="not looked at; flow hardly changes from layer 3 on",
    kind="own",
)
def flow_is_saturated(evidence: Evidence) -> Finding:
    """Ours: deep flow is no more than what one token can give or the other take in a single layer."""
    last = evidence.where("saturation", layer=evidence.layers)
    shown = "; ".join(f"seed {row['seed']}: {_with_interval(row, 'saturated')}" for row in last.to_dict("records"))
    effect = mean_effect("share of saturated flows", last["saturated"], "seeds")
    holds = bool((last["low"] >= SATURATED).all())
    return Finding(f"at layer {evidence.layers}, {shown}", holds, "", effect, {"seeds": len(last)})


# What several judges do.


def _headline(reference: str, method: str, layer: int) -> Cell:
    """The figure that the paper shows: dense ranks in the formula without ties, over all tokens."""
    return (reference, method, layer, "authors", "all")


def cell_pairs(
    references: Sequence[str],
    better: str,
    worse: str,
    layers: Sequence[int],
    kind: tuple[str, str] = ("authors", "all"),
) -> list[tuple[Cell, Cell]]:
    """Of each reference and layer the cell that should be higher, and the other."""
    return [((of, better, layer, *kind), (of, worse, layer, *kind)) for of in references for layer in layers]


def higher(
    runs: Sequence[Correlations], pairs: Sequence[tuple[Cell, Cell]], least: float = 0.0, note: str = ""
) -> Finding:
    """Whether the first of every pair is above the second in every run, the whole 95% interval by more than `least`.

    The interval is that of the difference when sentences are drawn again. What is shown of each run is the pair whose
    interval begins lowest.
    """
    shown, holds, least_of_runs = [], True, []
    for run in runs:
        found = [(*run.difference(one, other), one) for one, other in pairs]
        if not found or any(math.isnan(apart) for apart, *_ in found):
            raise Unmeasured(NO_FIGURE)
        apart, low, high, cell = min(found, key=lambda item: item[1])
        holds &= low > least
        least_of_runs.append((low, apart, high))
        shown.append(f"{run.name} {apart:+.2f} [{low:.2f}, {high:.2f}] (layer {cell[2]}, {NAMES[cell[0]]})")
    low, apart, high = min(least_of_runs)
    effect = Effect("smallest difference of rank correlations", apart, low, high, "95%")
    return Finding("smallest difference: " + "; ".join(shown), holds, note, effect, {"seeds": len(runs)})


def _verdict(finding: Finding) -> str:
    return "holds too" if finding.holds else "does not hold"


def _with_interval(row: Any, column: str = "evenness") -> str:
    return f"{row[column]:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
