"""The claims on how patterns change from layer to layer, on other sentences, and on pronouns, each with its rule."""

import pandas as pd

from ..claims import Effect, Finding, Unmeasured, at_chance, claim, mean_effect, together
from .claims import EVERY, LENGTH, ORDER, ORDER_RULE, REFERENCES, TIE, Evidence, cell_pairs, higher
from .pronoun_pairs import sign_of

# From the first layer to the last: what becomes of the residual, and whether words stand out more.


TRACED = ("rollout", "flow")
NOT_AT_THIS_SIZE = "Not run at this size: the committed models were looked at before this was asked."


@claim(
    "residual-fades-higher-up",
    rule=f"{EVERY}, for rollout and for flow, the share of [CLS] in its own row is lower at the last layer than at the "
    "first, by 95% intervals, and at no layer higher than at the one below",
    paper="seen in Figure 1",
)
def residual_fades(evidence: Evidence) -> Finding:
    """As we move to the higher layers the residual connections fade away."""
    return _from_first_to_last(evidence, "own", "the share of [CLS] in its own row", steady=True)


@claim(
    "more-distinctive-higher-up",
    rule=f"{EVERY}, for rollout and for flow, what [CLS] has from the words (itself and the verb's place left out) is "
    "less even at the last layer than at the first, by 95% intervals, and what raw attention gives them is not",
    paper="seen in Figure 1",
)
def more_distinctive(evidence: Evidence) -> Finding:
    """In contrast to raw attention, patterns of rollout and flow become more distinctive in the higher layers."""
    traced = _from_first_to_last(evidence, "even", "how even the row of [CLS] is over the words")
    raw = [_fall(rows, "even") for _, rows in _by_seed(evidence, "raw")]
    contrast = not all(fall for fall, *_ in raw)
    shown = ", ".join(f"{first:.3f} to {last:.3f}" for _, first, last in raw)
    here = f"{traced.here}; raw {shown}"
    return Finding(here, together((traced.holds, contrast)), traced.note, traced.effect, traced.n)


def _by_seed(evidence: Evidence, method: str) -> list[tuple[int, pd.DataFrame]]:
    rows = evidence.where("residual", method=method).sort_values("layer")
    if rows["layer"].nunique() < 2:
        raise Unmeasured("There is but one layer.")
    return list(rows.groupby("seed"))


def _fall(rows: pd.DataFrame, column: str) -> tuple[bool, float, float]:
    """Whether the interval of the last layer lies below that of the first, and both means."""
    first, last = rows.iloc[0], rows.iloc[-1]
    return bool(last[f"{column}_high"] < first[f"{column}_low"]), float(first[column]), float(last[column])


def _from_first_to_last(evidence: Evidence, column: str, of: str, *, steady: bool = False) -> Finding:
    """Whether a figure falls from the first layer to the last in every seed; steadily, where that is asked."""
    shown, verdicts, falls = [], [], []
    for method in TRACED:
        for seed, rows in _by_seed(evidence, method):
            fallen, first, last = _fall(rows, column)
            verdicts.append(fallen and not (steady and bool((rows[column].diff() > 0).any())))
            falls.append(first - last)
            shown.append(f"{method}, seed {seed}: {' '.join(f'{value:.3f}' for value in rows[column])}")
    effect = mean_effect(f"{of}, first layer less last", falls, "methods and seeds")
    return Finding(f"{of}, {'; '.join(shown)}", all(verdicts), "", effect, {"seeds": len(falls) // len(TRACED)})


# On other sentences than the headline's.


WITH_ATTRACTORS, WRONG = "attractors, right", "natural, wrong"


@claim(
    "order-survives-with-attractors",
    says=f"{ORDER}in sentences that are chosen for their attractors, where the model is right.",
    rule=f"{ORDER_RULE}on those of Linzen's subset that the model gets right",
    paper="one mix of sentences only",
    kind="own",
    sentences=WITH_ATTRACTORS,
)
@claim(
    "order-survives-where-wrong",
    says=f"{ORDER}where the model is wrong.",
    rule=f"{ORDER_RULE}on held-out sentences that the model gets wrong",
    paper="right and wrong answers together",
    kind="own",
    sentences=WRONG,
)
def order_on_others(evidence: Evidence, sentences: str) -> Finding:
    """Flow, rollout and raw attention on a part of the sentences that the headline leaves out."""
    runs = [run.others[sentences] for run in evidence.trained if sentences in run.others]
    if len(runs) < len(evidence.trained):
        raise Unmeasured(NOT_AT_THIS_SIZE)
    above = higher(runs, cell_pairs(REFERENCES, "rollout", "raw", evidence.deep))
    level = higher(runs, cell_pairs(REFERENCES, "flow", "rollout", evidence.deep), -TIE)
    here = f"rollout over raw, {above.here}; flow over rollout, {level.here}"
    counted = {"sentences": min(len(run.values) for run in runs), "seeds": len(runs)}
    return Finding(here, together((above.holds, level.holds)), LENGTH, level.effect, counted)


# Pronouns (Figure 4).


FEWEST, CERTAIN, VARIED = 20, 0.05, 0.1
NO_PRONOUNS = (
    "Not run: Figure 4 needs a masked language model (--model), or an encoder that a head is trained on (--head-on)."
)


@claim(
    "pronouns-follow-rollout-and-flow",
    rule=f"over at least {FEWEST} sentence pairs with exchanged names, the name with more rollout, and that with more "
    "flow, is the one of the likelier pronoun more often than that with more raw attention, all at the last layer "
    "(sign test, p < .05 for both); it fails where either is so less often (p < .05), and else nothing is decided, nor "
    f"where one pronoun is the likelier in more than {1 - VARIED:.0%} of the sentences",
    paper="so in both sentences of Figure 4",
)
def pronouns_follow(evidence: Evidence) -> Finding:
    """For a masked pronoun rollout and flow agree with what BERT predicts, and raw attention does not."""
    table = evidence.where("pronouns")
    sentences = table["sentence"].nunique()
    agreed = table.groupby("method")["agrees"].mean()
    signs = {method: sign_of(table, method) for method in TRACED}
    his = float((table.drop_duplicates("sentence")["predicted"] == "his").mean())
    shown = "; ".join(
        f"{method} ahead of raw in {sign.ahead} and behind in {sign.behind} sentences, p {sign.more:.2g}"
        for method, sign in signs.items()
    )
    here = (
        f"right in {', '.join(f'{agreed[method]:.0%} by {method}' for method in ('raw', *TRACED))}; {shown}; "
        f"his is the likelier in {his:.0%}"
    )
    least = min(agreed[method] - agreed["raw"] for method in TRACED)
    effect = Effect("share of sentences right, less that of raw attention, the smaller of two", float(least))
    found = Finding(
        here, all(sign.more < CERTAIN for sign in signs.values()), "", effect, {"pairs": table["pair"].nunique()}
    )
    if sentences < 2 * FEWEST:
        return at_chance(found, f"{sentences} sentences are fewer than {FEWEST} pairs have.")
    if not VARIED <= his <= 1 - VARIED:
        return at_chance(found, "The model nearly always prefers the same pronoun, whatever the names do.")
    undecided = not found.holds and not any(sign.fewer < CERTAIN for sign in signs.values())
    return at_chance(found, "What differs between the methods may be chance.") if undecided else found
