"""Figures 1, 4, 5 and 8: the table C of which words meet which, on the paper's own small examples.

C of Eq. 16: where an input word and an output word stand in the same pair, 1/L is added, L being the length of the
source. What it gives each input word, Trans(o|i) of Eq. 17, is all that a bag of words can learn of single words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pandas as pd

from ...views.printing import INK, PAGE, QUIET, Plot, drawn_figure
from ..document import Block, Figure, under

Pairs = Sequence[tuple[str, str]]
"""Sources and outputs, with spaces between their words."""


@dataclass(frozen=True)
class CountExample:
    """Pairs of one of the paper's figures, and what their table shows."""

    figure: int
    name: str
    pairs: Pairs
    shows: str


def _orders(letters: str) -> list[tuple[str, str]]:
    orders = permutations(letters)
    return [(" ".join(order), " ".join(f"{letter}'" for letter in order)) for order in orders]


NEAR, NOUNS = (("dieser", "this"), ("guter", "good")), (("Film", "movie"), ("Mann", "man"))
EXAMPLES = (
    CountExample(
        1,
        "translation",
        tuple((f"{one} {two}", f"{first} {second}") for one, first in NEAR for two, second in NOUNS),
        "translations meet most",
    ),
    CountExample(4, "permutations", _orders("ABCD"), "every word meets all alike"),
    CountExample(
        5,
        "classification",
        (("great movie", "positive"), ("bad movie", "negative")),
        "great and bad meet one class",
    ),
    CountExample(
        8,
        "two sets",
        (*_orders("ABCD"), *_orders("EFGH")),
        "the set is known, and no more",
    ),
)
"""The sentences of the first are ours; the others are the paper's."""


def count_table(pairs: Pairs) -> pd.DataFrame:
    """C: a row for each input word, a column for each output word, both in the order in which they first stand.

    >>> count_table([("great movie", "positive"), ("bad movie", "negative")]).loc["movie"].tolist()
    [0.5, 0.5]
    """
    cut = [(source.split(), output.split()) for source, output in pairs]
    rows, columns = (list(dict.fromkeys(word for pair in cut for word in pair[side])) for side in (0, 1))
    table = pd.DataFrame(0.0, index=rows, columns=columns)
    for source, output in cut:
        for read in source:
            for said in output:
                table.loc[read, said] += 1 / len(source)
    return table


def translation_shares(counts: pd.DataFrame) -> pd.DataFrame:
    """Trans(o|i): each row of C divided by its sum (Eq. 17)."""
    return counts.div(counts.sum(axis=1), axis=0)


def count_tables() -> Plot:
    """All four as grids: the darker, the larger a word's share of what its row meets; the counts stand in the cells."""
    with drawn_figure(PAGE, 2.5) as figure:
        for axes, example in zip(figure.subplots(1, len(EXAMPLES)), EXAMPLES, strict=True):
            counts = count_table(example.pairs)
            shares = translation_shares(counts).to_numpy()
            axes.imshow(shares, cmap="Greys", vmin=0, vmax=1.4, aspect="auto")
            axes.set_xticks(range(counts.shape[1]), counts.columns, rotation=90, fontsize=6)
            axes.set_yticks(range(counts.shape[0]), counts.index, fontsize=6)
            axes.tick_params(length=0)
            axes.set_title(f"Fig. {example.figure}: {example.name}", fontsize=7, loc="left")
            axes.set_xlabel(example.shows, fontsize=6, color=QUIET)
            if counts.size <= 36:  # in more cells than this no number can be read
                for row, column in np.ndindex(*counts.shape):
                    if counts.iat[row, column]:
                        ink = "white" if shares[row, column] > 0.75 else INK
                        shown = f"{counts.iat[row, column]:g}"[:4]
                        axes.text(column, row, shown, ha="center", va="center", fontsize=5.5, color=ink)
    return Plot(figure, "Which input words meet which output words in four small data sets.")


def count_blocks() -> Iterator[Block]:
    """The figure with what it shows."""
    words = (
        "The count table C by input word (rows) and output word (columns); darker where the output word has a larger "
        "share of what the input word meets. Where all of a row is alike, counts tell nothing, and nothing draws "
        "attention to the right place. The sentences of Figure 1 are ours, the rest are the paper's examples."
    )
    yield from under("Figures 1, 4, 5 and 8: what counts tell", Figure("fig01_04_05_08_counts", count_tables(), words))
