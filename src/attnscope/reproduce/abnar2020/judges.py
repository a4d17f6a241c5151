"""How each claim is judged: functions from what was measured to what was found."""

from collections.abc import Sequence
from typing import Any

from ..claims import Finding, Unmeasured
from .evidence import Counts, Evidence, by_layer, headline, higher, rows_of, share
from .tables import Cell, Correlations

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
MEASURED = ("blank_out", "gradient")
LENGTH = (
    "Gradients are taken by their length: their sum over dimensions, which the authors take, is zero but for rounding "
    "in a model with a LayerNorm on every way."
)
TIES = (
    "Flows are exact here, so that saturated ones are ties, which dense ranks favour; the authors' solver left their "
    "order to rounding."
)


def _agreement(evidence: Evidence) -> list[Correlations]:
    return [run.correlations for run in evidence.runs]


def first_layer_is_the_same(evidence: Evidence) -> Finding:
    """Rollout and flow at the first layer."""
    shown = "; ".join(f"{run.name}: {run.first_layers_apart:.0e}" for run in evidence.runs)
    holds = max(run.first_layers_apart for run in evidence.runs) <= SAME
    return Finding(f"largest difference, {shown}", holds, "By definition: one layer has no paths to add.")


def raw_collapses(evidence: Evidence) -> Finding:
    """Raw attention by layer."""
    runs, layers = _agreement(evidence), range(1, evidence.layers + 1)
    pairs = [(headline(of, "raw", 1), headline(of, "raw", layer)) for of in MEASURED for layer in layers[1:]]
    highest = higher(runs, pairs)
    halved = all(
        run.mean(headline(of, "raw", layer)) < run.mean(headline(of, "raw", 1)) / 2
        for run in runs
        for of in MEASURED
        for layer in layers[1:4]
    )
    shown = [by_layer(runs, headline(of, "raw", 1), layers) for of in MEASURED]
    here = f"blank-out, {shown[0]}; gradients, {shown[1]}; layer 1 above others, {highest.here}"
    return Finding(here, highest.holds and halved, LENGTH)


def _pairs(
    references: Sequence[str],
    better: str,
    worse: str,
    layers: Sequence[int],
    kind: tuple[str, str] = ("authors", "all"),
) -> list[tuple[Cell, Cell]]:
    return [
        ((reference, better, layer, *kind), (reference, worse, layer, *kind))
        for reference in references
        for layer in layers
    ]


def _deep(evidence: Evidence) -> range:
    return range(3, evidence.layers + 1)


def rollout_beats_raw(reference: str, evidence: Evidence) -> Finding:
    """Rollout against raw attention from the third layer on."""
    note = LENGTH if reference == "gradient" else ""
    return higher(_agreement(evidence), _pairs([reference], "rollout", "raw", _deep(evidence)), note=note)


def flow_beats_rollout(reference: str, last: int, evidence: Evidence) -> Finding:
    """Flow against rollout from the second layer to the last that is asked about."""
    layers = range(2, last + 1)
    average = higher(_agreement(evidence), _pairs([reference], "flow", "rollout", layers, ("average", "all")))
    note = f"{TIES} By average ranks it {'holds too' if average.holds else 'does not hold'} ({average.here})."
    if reference == "gradient":
        note = f"{LENGTH} {note}"
    return higher(_agreement(evidence), _pairs([reference], "flow", "rollout", layers), note=note)


def raw_is_best_at_first(evidence: Evidence) -> Finding:
    """Raw attention against the others at the first layer."""
    note = (
        "At the first layer rollout and flow are half raw attention and half [CLS] itself, so that the place of "
        f"[CLS] in the order is all that differs; over the words alone the three are the same. {LENGTH}"
    )
    return higher(_agreement(evidence), _pairs(MEASURED, "raw", "rollout", [1]), note=note)


def raw_is_even(evidence: Evidence) -> Finding:
    """How even raw attention is above the third layer."""
    deep = rows_of(evidence.evenness, range(4, evidence.layers + 1), "raw")
    first = rows_of(evidence.evenness, [1], "raw").set_index("seed")
    shown = "; ".join(
        f"seed {seed}: {_with_interval(first.loc[seed])} at layer 1, then {', '.join(map(_with_interval, rows))}"
        for seed, rows in ((seed, rows.to_dict("records")) for seed, rows in deep.groupby("seed"))
    )
    lowest = deep.groupby("seed")["low"].min()
    holds = bool((lowest >= EVEN).all() and (lowest > first["high"]).all())
    return Finding(f"entropy as a share of the largest, {shown} at layers 4 to {evidence.layers}", holds)


def rollout_is_focused(evidence: Evidence) -> Finding:
    """How even rollout and flow are at the last layer."""
    last = [evidence.layers]
    rollout, flow = (rows_of(evidence.evenness, last, method).set_index("seed") for method in ("rollout", "flow"))
    shown = "; ".join(
        f"seed {seed}: {_with_interval(rollout.loc[seed])} against {_with_interval(flow.loc[seed])}"
        for seed in rollout.index
    )
    holds = bool((rollout["high"] + FOCUSED < flow["low"]).all())
    note = (
        "Saturated flow cannot be focused, whatever a model has learned: each token can take at least the half that is "
        "its own residual and at most 1, so that no share is more than twice another."
    )
    return Finding(f"entropy as a share of the largest at layer {last[0]}, rollout against flow, {shown}", holds, note)


def _with_interval(row: Any) -> str:
    return f"{row['evenness']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"


def is_accurate(evidence: Evidence) -> Finding:
    """How often the models are right."""
    found = [share(run.held_out) for run in evidence.runs]
    shown = "; ".join(f"{run.name}: {_with_error(run.held_out)}" for run in evidence.runs)
    tested = ", ".join(f"{share(run.testing):.3f}" for run in evidence.runs)
    note = f"On the test sentences, whose numbers of attractors stand in the table below: {tested}."
    return Finding(shown, sum(found) / len(found) >= ACCURATE, note)


def _with_error(counts: Counts) -> str:
    """The share of right answers with its 95% interval (Wilson 1927)."""
    total = sum(of for _, of in counts.values())
    found, z = share(counts), 1.96
    middle = (found + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * (found * (1 - found) / total + z**2 / (4 * total**2)) ** 0.5
    return f"{found:.3f} [{middle - half:.3f}, {middle + half:.3f}]"


def order_survives(kind: tuple[str, str], evidence: Evidence) -> Finding:
    """Flow, rollout and raw attention with other ranks or other tokens."""
    runs, layers = _agreement(evidence), _deep(evidence)
    above = higher(runs, _pairs(MEASURED, "rollout", "raw", layers, kind))
    level = higher(runs, _pairs(MEASURED, "flow", "rollout", layers, kind), -TIE)
    return Finding(
        f"rollout over raw, {above.here}; flow over rollout, {level.here}", above.holds and level.holds, LENGTH
    )


def sentiment_order(evidence: Evidence) -> Finding:
    """Rollout and flow against raw attention in the classifier of Table 3."""
    run = evidence.sentiment
    if isinstance(run, str):
        raise Unmeasured(run)
    layers = range(3, max(cell[2] for cell in run.cells) + 1)
    found = {
        source: higher(
            [run], [pair for better in ("rollout", "flow") for pair in _pairs([source], better, "raw", layers)]
        )
        for source in ("maximum", "cls")
    }
    by_row = found["cls"]
    verdict = "holds too" if by_row.holds else "does not hold"
    note = (
        f"By the row of [CLS] it {verdict} ({by_row.here}). The authors' own logs with other choices reverse the order."
    )
    return Finding(found["maximum"].here, found["maximum"].holds, note)


def flow_is_saturated(evidence: Evidence) -> Finding:
    """How much of the deepest flow is a trivial cut."""
    last = rows_of(evidence.saturation, [evidence.layers])
    shown = "; ".join(
        f"seed {row['seed']}: {row['saturated']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        for row in last.to_dict("records")
    )
    return Finding(f"at layer {evidence.layers}, {shown}", bool((last["low"] >= SATURATED).all()))
