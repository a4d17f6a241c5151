"""How the claims on agreements are judged: from what was measured to what was found."""

import math
from collections.abc import Sequence

from scipy.stats import norm

from ..claims import Finding, Unmeasured
from .measuring import Evidence

CERTAIN = 0.05
HALF = 0.5
"""ξ is not trivial where it is at least this share of the way from guessing to the end of training."""
ALIKE = 0.10
"""How far A(β_uf, β_log) may be from A(β_uf, β_px) for both to be called alike; the paper's differ by .07 at most."""


def above_chance(data: str, pair: str, evidence: Evidence) -> Finding:
    """Whether an agreement at its best checkpoint is above chance, given that it is the best of so many."""
    curve, best = evidence.curve(data, pair), evidence.best(data, pair)
    # the level is shared among the checkpoints, because the highest of many is taken
    width = float(norm.isf(CERTAIN / 2 / len(curve))) * best["error"]
    said = (
        f"{_percent(best['agreement'])} (chance {_percent(best['chance'])}) at step {int(best['step'])}, "
        f"at the end {_percent(curve['agreement'].iloc[-1])}"
    )
    return Finding(said, bool(best["agreement"] - width > best["chance"]), _same_seed(data, pair, evidence))


def nontrivial_context(data: str, pair: str, evidence: Evidence) -> Finding:
    """Whether ξ is at least half of the way from guessing to the end of training."""
    row = evidence.context(data, pair)
    if not row["best"] > row["trivial"]:
        raise Unmeasured(
            f"The models end with {_percent(row['best'])} and guessing gives {_percent(row['trivial'])}: nothing was "
            "learned of which a share could be told."
        )
    way = (row["performance"] - row["trivial"]) / (row["best"] - row["trivial"])
    star = "" if row["reached"] else "*"
    said = f"{_percent(row['performance'])}{star} of {_percent(row['best'])}, guessing gives {_percent(row['trivial'])}"
    return Finding(said, bool(way >= HALF), "" if row["reached"] else "* No checkpoint agrees more.")


def frozen_below(data: str, evidence: Evidence) -> Finding:
    """Whether attention that learns alone agrees less with the usual attention than β of uniform attention does."""
    frozen, uniform = evidence.best(data, "attention_frozen"), evidence.best(data, "attention_uniform")
    said = f"{_percent(frozen['agreement'])} against {_percent(uniform['agreement'])}"
    return Finding(said, bool(frozen["agreement"] < uniform["agreement"]))


def logistic_agrees(data: str, evidence: Evidence) -> Finding:
    """Whether logistic regression agrees with β of uniform attention about as well as the proxy does."""
    proxy, logistic = evidence.best(data, "uniform_proxy"), evidence.best(data, "uniform_logistic")
    said = f"{_percent(proxy['agreement'])} (proxy), {_percent(logistic['agreement'])} (logistic)"
    return Finding(said, bool(abs(logistic["agreement"] - proxy["agreement"]) <= ALIKE))


def rises_then_falls(sets: Sequence[str], evidence: Evidence) -> Finding:
    """Whether A(α, β_uf) is clearly highest between the first and the last checkpoint, on every data set run."""
    shown, holds = [], True
    for data in sets:
        try:
            curve, best = evidence.curve(data, "attention_uniform"), evidence.best(data, "attention_uniform")
        except Unmeasured:
            continue
        ends = [curve["agreement"].iloc[0], curve["agreement"].iloc[-1]]
        errors = [math.hypot(best["error"], curve["error"].iloc[place]) for place in (0, -1)]
        holds &= all(best["agreement"] - end > 2 * error for end, error in zip(ends, errors, strict=True))
        shown.append(
            f"{data} {_percent(ends[0])}, {_percent(best['agreement'])} at {int(best['step'])}, {_percent(ends[1])}"
        )
    if not shown:
        raise Unmeasured("No data set was run.")
    return Finding("; ".join(shown), holds)


def seeds_disagree(data: str, others: Sequence[str], evidence: Evidence) -> Finding:
    """Whether two seeds agree less on where to look, beyond chance, on this data set than on each other one run."""

    def beyond(name: str) -> float:
        last = evidence.curve(name, "attention_attention").iloc[-1]
        return float((last["agreement"] - last["chance"]) / (1 - last["chance"]))

    here, there = beyond(data), {}
    for name in others:
        try:
            there[name] = beyond(name)
        except Unmeasured:
            continue
    if not there:
        raise Unmeasured("No other data set was run.")
    said = f"{here:.2f} of what is beyond chance; {', '.join(f'{name} {value:.2f}' for name, value in there.items())}"
    return Finding(said, all(here < value for value in there.values()))


def _same_seed(data: str, pair: str, evidence: Evidence) -> str:
    try:
        best = evidence.best(data, pair, seeds="same")
    except Unmeasured:
        return ""
    return f"With both from one seed: {_percent(best['agreement'])} at best."


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
