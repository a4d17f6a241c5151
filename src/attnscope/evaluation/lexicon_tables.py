"""The tables of a lexicon study: words with their valence, a regression for each method, and methods side by side."""

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Float64

from ..errors import BadInput
from .matching import Matcher
from .regression import FEWEST, Quadratic, quadratic
from .word_tally import SCALINGS, column_of


def with_valence(table: pd.DataFrame, matcher: Matcher, tag_of: Callable[[str], str | None]) -> pd.DataFrame:
    """The words with what the lexicon says: value (NaN without a match), how it was matched, by which entries, tag."""
    matches = [matcher.match(word) for word in table["word"]]
    said = pd.DataFrame(
        {
            "value": [np.nan if match is None else match.value for match in matches],
            "matched": ["none" if match is None else match.way for match in matches],
            "entries": ["" if match is None else " ".join(match.entries) for match in matches],
            "tag": [tag_of(word) or "" for word in table["word"]],
        }
    )
    scores = table.drop(columns=["word", "count"])
    return pd.concat([table[["word", "count"]], said, scores], axis=1)


def fitted(words: pd.DataFrame, column: str) -> Quadratic:
    """The quadratic regression of one column on valence, over all words that the lexicon has."""
    matched = words.dropna(subset=["value"])
    return quadratic(_numbers(matched, "value"), _numbers(matched, column))


def regressions(words: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """One regression for each method and scaling (Wu, Nguyen & Ong 2020, Eq. 12)."""
    values = words["value"].dropna()
    if len(values) < FEWEST or values.nunique() < 3:
        raise BadInput(
            f"The lexicon has only {len(values)} of these {len(words)} words, with {values.nunique()} different values:"
            " a parabola needs more; give more texts or another lexicon."
        )
    return pd.DataFrame(
        [
            {"method": method, "scaling": scaling, **fitted(words, column_of(method, scaling)).to_row()}
            for method in methods
            for scaling in SCALINGS
        ]
    )


def correlations(words: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Spearman's rank correlation of each two methods, over the words of the lexicon and over all words."""
    from scipy.stats import spearmanr  # it takes a second to import

    rows = []
    for over, chosen in (("matched", words.dropna(subset=["value"])), ("all", words)):
        for scaling in SCALINGS:
            for first, second in combinations(methods, 2):
                pair = [_numbers(chosen, column_of(method, scaling)) for method in (first, second)]
                # ranks of scores that are all alike are not defined
                varied = all(len(np.unique(values)) > 1 for values in pair)
                found = spearmanr(*pair) if varied else None
                rows.append(
                    {
                        "first": first,
                        "second": second,
                        "scaling": scaling,
                        "over": over,
                        "words": len(chosen),
                        "spearman": np.nan if found is None else float(found.statistic),
                        "p": np.nan if found is None else float(found.pvalue),
                    }
                )
    columns = ["first", "second", "scaling", "over", "words", "spearman", "p"]
    return pd.DataFrame(rows, columns=columns)


def _numbers(table: pd.DataFrame, column: str) -> Float64[np.ndarray, " word"]:
    numbers: Float64[np.ndarray, " word"] = table[column].to_numpy(dtype=np.float64)
    return numbers
