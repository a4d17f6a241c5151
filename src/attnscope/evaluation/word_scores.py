"""Scores of words: the mean of what a method gives a word, over all places where it stands in some texts."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from ..attribution.choosing import Method
from ..engine import check_recipe
from ..record import Model, Text
from .exact_tables import read_card, read_table, write_card, write_table
from .word_measuring import WHAT, Watch, asked_of, forget_parts, measured, own_folder

WORDS, CARD = "words.csv", "words.json"


def word_scores(
    model: Model,
    texts: Iterable[Text],
    methods: Sequence[str | Method] | None = None,
    *,
    minimum_count: int = 1,
    out: str | Path | None = None,
    resume: bool = False,
    batch_size: int = 16,
    truncate: bool = False,
    watch: Watch | None = None,
) -> pd.DataFrame:
    """The mean score of each word, over every place where it stands in the texts, by each method.

    Wu, Nguyen & Ong 2020, section 6.3. Special tokens are set aside, pieces of a word are summed, and scores go through
    a softmax over the words of the text, as in the paper; a column `…_length_corrected` has N times that for a text of
    N words, because a softmax over N words is about 1 / N. Words are in lower case; give texts as lists of words where
    the model's own idea of a word is not wanted.

    `methods` are names (of WORD_METHODS or METHODS) or functions of a record; by default WORD_METHODS as far as the
    model serves them. With a folder `out` the sums are kept while they grow, and `resume` goes on from there to the
    very same table. Memory grows with the number of different words, not of texts.
    """
    folder = own_folder(out, resume, CARD)
    asked = asked_of(model, texts, methods, minimum_count=minimum_count, batch_size=batch_size, truncate=truncate)
    if folder is not None and (folder / CARD).exists():
        check_recipe(folder, WHAT, read_card(folder / CARD), asked.recipe)
        return read_table(folder / WORDS)
    found = measured(model, asked, folder, watch)
    table = found.words.table(minimum_count)
    if folder is not None:
        write_table(folder / WORDS, table)
        write_card(folder / CARD, {**asked.recipe, "left_out": dict(found.left_out)})
        forget_parts(folder)
    return table
