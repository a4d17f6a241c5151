"""The verdict: which method it names, and with what numbers."""

import numpy as np

from attnscope.evaluation.per_text import Figure
from attnscope.evaluation.tabulating import tabulated
from attnscope.evaluation.verdict import CAVEAT, verdict


def table(texts=50, layer_value=0.0, **means):
    """A table where each method has a mean and every text is close to it."""
    figures = [Figure(method, None, "blank_out", "spearman", "without") for method in means]
    figures.append(Figure("steady", 0, "blank_out", "spearman", "without"))
    noise = np.random.default_rng(0).normal(scale=0.05, size=(texts, len(figures)))
    return tabulated(figures, np.array([*means.values(), layer_value]) + noise, np.full(texts, 9), seed=0)


def test_it_names_who_follows_and_who_does_not():
    said = verdict(table(steady=0.6, good=0.5, even=0.2, bad=-0.3, random=0.0, position=0.2, frequency=0.1))
    assert said[0].startswith("steady follows what blanking a token out changes best: Spearman 0.6")
    assert said[0].endswith("0.41 above its best baseline (position).")
    assert said[1].startswith("Above every baseline there too: good 0.")
    assert said[2].startswith("Not to be told from its best baseline there: even 0.")
    assert said[3].startswith("Below its best baseline there, so not to be read as an explanation here: bad -0.")
    assert said[-1] == CAVEAT


def test_it_says_so_when_none_follows():
    said = verdict(table(steady=0.1, random=0.0, position=0.3))
    assert said[0].startswith("No method is clearly above its best baseline in following what blanking a token out")
    assert "where position alone reaches 0.29" in said[0]


def test_it_names_a_better_layer():
    said = " ".join(verdict(table(layer_value=0.8, steady=0.3, random=0.0)))
    assert "better at another layer" in said
    assert "steady at 0 (0.8" in said


def test_it_warns_of_few_texts():
    assert "This rests on only 5 texts: take the intervals as rough." in verdict(table(texts=5, steady=0.6, random=0.0))
    assert not any("only" in sentence for sentence in verdict(table(steady=0.6, random=0.0)))
