"""Claims on what drives the scores of words: the signs of B, C, E, F, π and ρ along training (sections 4.1 and 4.2)."""

from collections.abc import Callable

import pandas as pd

from ..claims import Effect, Finding, Judge, Unmeasured, at_chance, claim, rows_with
from .evidence import Evidence

REAL, MADE_UP = "sst", "made-up"
STUDIES = {REAL: "SST", MADE_UP: "made-up sentences"}
ALONG = 0.95
"""The share of the looks at which a sign must be right: training is noisy."""
NEAR_ZERO = 0.25
"""Neutral words are near zero where they are within this share of the polar ones."""
FEWEST = 10
"""Fewer looks do not say how it was along training."""
RULE = (
    f"in every run the mean over the words of each polar kind has that sign at {ALONG:.0%} or more of the looks behind "
    f"the first step, and that over neutral words is within {NEAR_ZERO:.0%} of the smaller of both (the median over "
    f"the looks); fewer than {FEWEST} looks decide nothing"
)


def _signs_claim(name: str, says: str, paper: str, term: str) -> Callable[[Judge], Judge]:
    return claim(
        lambda data: f"signs-of-{name}-{data}",
        says=lambda data: f"{says} while {STUDIES[data]} {'is' if data == REAL else 'are'} learned.",
        rule=RULE,
        paper=paper,
        post_hoc=True,
        each=STUDIES,
        term=term,
    )


@_signs_claim(
    "pi-and-b",
    "π, and with it B, is above zero for positive words, below for negative ones and about zero for neutral ones",
    "π and B > 0, < 0, ≈ 0 (section 4.1)",
    "B",
)
@_signs_claim(
    "c",
    "C is above zero for positive words, below for negative ones and about zero for neutral ones",
    "C > 0, < 0, ≈ 0 (section 4.1)",
    "C",
)
@_signs_claim(
    "rho-and-e",
    "ρ, and with it E, is above zero for positive and for negative words, and about zero for neutral ones",
    "ρ and E > 0 for both, ≈ 0 (sections 4.1 and 4.2)",
    "E",
)
@_signs_claim(
    "f",
    "F is not below zero for positive and for negative words, and about zero for neutral ones",
    "F ≥ 0 for both, ≈ 0 (section 4.2)",
    "F",
)
def has_signs(evidence: Evidence, data: str, term: str) -> Finding:
    """Whether a term has the paper's sign for both polar kinds along every run, and is small for neutral words."""
    if evidence.signs.empty:
        raise Unmeasured("What drives the scores was not watched.")
    rows = rows_with(evidence.signs, data=data, term=term)
    if rows.empty:
        raise Unmeasured(f"What drives the scores was not watched on {STUDIES[data]}.")
    worst = rows.groupby("kind", sort=False)["right"].min()
    neutral = float(rows["neutral"].max())
    shares = ", ".join(f"{kind} words {share:.0%}" for kind, share in worst.items())
    here = f"right at the fewest looks of any run: {shares}; neutral words at most {neutral:.0%} of them"
    wrong = rows[rows["right"] < ALONG]
    at_end = rows[rows["last"] * rows["expected"] < 0]
    note = f"Below {ALONG:.0%} of the looks: {_named(wrong)}." if len(wrong) else ""
    note += f" The wrong sign at the end: {_named(at_end)}." if len(at_end) else ""
    holds = bool(wrong.empty and neutral <= NEAR_ZERO)
    effect = Effect("least share of looks with the right sign", float(worst.min()))
    looks = rows.groupby("run")["looks"].first()
    found = Finding(here, holds, note.strip(), effect, {"runs": len(looks), "looks": int(looks.sum())})
    if rows["looks"].min() < FEWEST:
        return at_chance(found, "Only the end of training was kept, which does not say how it was on the way.")
    return found


def _named(rows: pd.DataFrame) -> str:
    """Which runs these are, and which words."""
    return "; ".join(f"{row.run}, {row.kind} words ({row.last:.2g} at the end)" for row in rows.itertuples())
