"""How the claims on copying, on several heads and on locality are judged: from what was measured to what was found."""

import pandas as pd

from ..claims import Finding, Unmeasured
from .measuring import Evidence

LEARNED = 0.95
"""The accuracy from which a task counts as learned."""
CERTAIN = 0.05
KNOWN = 1.0
"""How much higher, in nats, log β is at the right place than elsewhere where words are known at all."""
SAME_LEXICAL = 0.1
"""How far apart, in nats, log β at the right place may be for two tasks to be called the same."""
MOSTLY, SURELY = 0.8, 0.9
"""Shares of the combinations of heads that learn."""
BEGUN = 1.0
"""The log-odds at the keyword rise this far above the mean before an order is read."""
ABOUT = 0.5
"""Two log-odds are about equal where they differ by less than this share of the distance beside them."""


def always_learns(task: str, evidence: Evidence) -> Finding:
    """Whether every seed has learned the task at the last check."""
    last = _last(evidence, task)
    return Finding(
        f"{_learned(last)}, at step {_step(evidence, task)}", bool((last >= LEARNED).all()), _when(evidence, task)
    )


def sometimes_fails(task: str, control: str, evidence: Evidence) -> Finding:
    """Whether some seed fails, and more fail than in the control, by Fisher's exact test."""
    from scipy.stats import fisher_exact

    here, there = _last(evidence, task), _last(evidence, control)
    table = [[int((part < LEARNED).sum()), int((part >= LEARNED).sum())] for part in (here, there)]
    p = float(fisher_exact(table, alternative="greater").pvalue)
    said = f"{table[0][0]} of {len(here)} fail against {table[1][0]} of {len(there)}, p {p:.2g}"
    if (here < LEARNED).all():
        said += "; that some learn is not seen"
    return Finding(said, table[0][0] > 0 and p < CERTAIN, _when(evidence, task))


def always_fails(task: str, control: str, evidence: Evidence) -> Finding:
    """Whether no seed ever learns the task, and every seed learns the control."""
    here, there = _best(evidence, task), _last(evidence, control)
    said = (
        f"best accuracies {_numbers(here)} by step {_step(evidence, task)}; {_learned(there)} of the control by step "
        f"{_step(evidence, control)}"
    )
    return Finding(said, bool((here < LEARNED).all() and (there >= LEARNED).all()))


def same_lexical(first: str, second: str, evidence: Evidence) -> Finding:
    """Whether log β at the right place, under uniform attention, ends the same in both tasks, seed by seed."""
    ends = [_uniform_end(evidence, task) for task in (first, second)]
    both = ends[0].index.intersection(ends[1].index)
    if both.empty:
        raise Unmeasured("Uniform attention was not trained on both tasks.")
    right = [end.loc[both, "lexical_right"] for end in ends]
    if any((end.loc[both, "lexical_right"] - end.loc[both, "lexical_other"] < KNOWN).any() for end in ends):
        raise Unmeasured("Under uniform attention the right words were not learned, so that there is no β to compare.")
    top = [end.loc[both, "lexical_top"] for end in ends]
    said = (
        f"log β at the right place {_numbers(right[0])} against {_numbers(right[1])}; largest there in "
        f"{_numbers(top[0])} against {_numbers(top[1])} of the words"
    )
    return Finding(said, bool(((right[0] - right[1]).abs() <= SAME_LEXICAL).all()))


def bad_heads_fail(evidence: Evidence) -> Finding:
    """Whether most combinations of eight bad heads fail."""
    reached = _reached(evidence, "bad")
    return Finding(_learned(reached), float((reached < LEARNED).mean()) > 0.5)


def good_head_suffices(evidence: Evidence) -> Finding:
    """Whether most combinations with one good head learn, and more than without."""
    from scipy.stats import fisher_exact

    with_one, without = _reached(evidence, "good"), _reached(evidence, "bad")
    table = [[int((part >= LEARNED).sum()), int((part < LEARNED).sum())] for part in (with_one, without)]
    p = float(fisher_exact(table, alternative="greater").pvalue)
    said = f"{_learned(with_one)} against {_learned(without)} without, p {p:.2g}"
    return Finding(said, bool((with_one >= LEARNED).mean() >= MOSTLY and p < CERTAIN))


def random_heads_learn(evidence: Evidence) -> Finding:
    """Whether nearly all combinations of eight random heads learn."""
    reached = _reached(evidence, "random")
    return Finding(_learned(reached), bool((reached >= LEARNED).mean() >= SURELY))


def local_at_first(evidence: Evidence) -> Finding:
    """Hypothesis 2 in every seed, at the first check where the keyword has clearly risen."""
    found = []
    for seed, rows in _locality(evidence).groupby("seed"):
        risen = rows[rows["keyword"] - rows["mean"] >= BEGUN]
        if risen.empty:
            raise Unmeasured(f"In seed {seed} the log-odds at the keyword never rose by {BEGUN:g} above the mean.")
        found.append((seed, risen.iloc[0], ("keyword", "after", "mean", "last")))
    return _ordered(found)


def last_state_at_end(evidence: Evidence) -> Finding:
    """Observation 3 in every seed, at the last check."""
    table = _locality(evidence)
    return _ordered(
        [(seed, rows.iloc[-1], ("last", "after", "mean", "keyword")) for seed, rows in table.groupby("seed")]
    )


def _ordered(found: "list[tuple[object, pd.Series[float], tuple[str, str, str, str]]]") -> Finding:
    """Whether in each row the first lies above the second, that above the third, and the fourth is about the third."""
    shown, holds = [], True
    for seed, row, names in found:
        first, second, third, fourth = (float(row[name]) for name in names)
        holds &= first > second > third and abs(fourth - third) < ABOUT * (second - third)
        told = ", ".join(f"{name} {float(row[name]):.1f}" for name in names)
        shown.append(f"seed {seed}, step {int(row['step'])}: {told}")
    return Finding(f"log-odds in {'; '.join(shown)}", holds)


def _runs(evidence: Evidence, task: str) -> pd.DataFrame:
    table = evidence.copying
    rows = table[(table["task"] == task) & (table["attention"] == "learned")] if len(table) else table
    if rows.empty:
        raise Unmeasured("Copying was not run.")
    return rows.sort_values("step")


def _last(evidence: Evidence, task: str) -> "pd.Series[float]":
    return _runs(evidence, task).groupby("seed")["accuracy"].last()


def _best(evidence: Evidence, task: str) -> "pd.Series[float]":
    return _runs(evidence, task).groupby("seed")["accuracy"].max()


def _step(evidence: Evidence, task: str) -> int:
    return int(_runs(evidence, task)["step"].max())


def _when(evidence: Evidence, task: str) -> str:
    """At which check the seeds that learned had done so."""
    rows = _runs(evidence, task)
    first = rows[rows["accuracy"] >= LEARNED].groupby("seed")["step"].min()
    return f"Learned by step {first.median():g} in the median, {first.max():g} at the latest." if len(first) else ""


def _uniform_end(evidence: Evidence, task: str) -> pd.DataFrame:
    table = evidence.copying
    rows = table[(table["task"] == task) & (table["attention"] == "uniform")] if len(table) else table
    if rows.empty:
        raise Unmeasured("Uniform attention was not trained on copying.")
    return rows.sort_values("step").groupby("seed").last()


def _reached(evidence: Evidence, kind: str) -> "pd.Series[float]":
    """The best accuracy of each combination of heads of a kind; one that was drawn twice is one."""
    table = evidence.heads
    rows = table[table["kind"] == kind] if len(table) else table
    if rows.empty:
        raise Unmeasured("Several heads were not run, or too few heads of this kind were found.")
    return rows.groupby("heads")["accuracy"].max()


def _locality(evidence: Evidence) -> pd.DataFrame:
    if not len(evidence.locality):
        raise Unmeasured("Locality was not run.")
    return evidence.locality.sort_values("step")


def _learned(accuracies: "pd.Series[float]") -> str:
    return f"{int((accuracies >= LEARNED).sum())} of {len(accuracies)} learn"


def _numbers(values: "pd.Series[float]") -> str:
    return ", ".join(f"{value:.2f}" for value in values)
