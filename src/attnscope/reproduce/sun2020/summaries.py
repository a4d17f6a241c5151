"""The words of all runs in short: how many of each kind there are, what their scores are, and how kinds compare."""

import pandas as pd

from .ranks import compared
from .word_tables import MATCHED, NEGATIVE, NEUTRAL, OUTLIER, POSITIVE

RUN = ["data", "variant", "scaling", "seed", "penalty"]
SCORES = ("polarity", "attention", "weight", "local_polarity", "local_attention")
AGAINST = ((POSITIVE, NEUTRAL), (NEGATIVE, NEUTRAL), (POSITIVE, MATCHED), (NEGATIVE, MATCHED), (POSITIVE, NEGATIVE))


def score_summary(words: pd.DataFrame) -> pd.DataFrame:
    """The median and quartiles of each score over the words of each kind in each run."""
    rows = []
    for (*run, kind), table in words[words["kind"] != OUTLIER].groupby([*RUN, "kind"], sort=False):
        for score in SCORES:
            if score in table and table[score].notna().any():
                low, middle, high = table[score].quantile([0.25, 0.5, 0.75])
                told = {
                    "words": int(table[score].notna().sum()),
                    "median": middle,
                    "quartile_1": low,
                    "quartile_3": high,
                }
                rows.append(dict(zip(RUN, run, strict=True)) | {"kind": kind, "score": score} | told)
    return pd.DataFrame(rows)


def comparisons(words: pd.DataFrame) -> pd.DataFrame:
    """For each run, score and two kinds of words: the share of pairs in which the first is above, and p of that."""
    rows = []
    for run, table in words.groupby(RUN, sort=False):
        kinds = dict(list(table.groupby("kind")))
        pairs = [pair for pair in AGAINST if set(pair) <= set(kinds)]
        pairs = pairs or [(kind, NEUTRAL) for kind in kinds if kind != NEUTRAL]
        for first, second in pairs:
            for score in (name for name in SCORES if name in table):
                one, other = (kinds[kind][score].dropna().to_numpy(float) for kind in (first, second))
                if len(one) and len(other):
                    found = compared(one, other)
                    told = {"first": first, "second": second, "score": score, "above": found.above, "p": found.p}
                    rows.append(dict(zip(RUN, run, strict=True)) | told)
    return pd.DataFrame(rows)
