"""The verdict: which method it names, and with what numbers."""

import re

import numpy as np

from attnscope.evaluation.per_text import Figure
from attnscope.evaluation.result import CAVEAT, verdict
from attnscope.evaluation.tables import tabulate


def table(texts=50, layer_value=0.0, **means):
    """A table where each method has a mean and every text is close to it."""
    figures = [Figure(method, None, "blank_out", "spearman", "without") for method in means]
    figures.append(Figure("steady", 0, "blank_out", "spearman", "without"))
    noise = np.random.default_rng(0).normal(scale=0.05, size=(texts, len(figures)))
    return tabulate(figures, np.array([*means.values(), layer_value]) + noise, np.full(texts, 9), seed=0)


def test_it_names_who_follows_and_who_does_not():
    said = verdict(table(steady=0.6, good=0.5, even=0.2, bad=-0.3, random=0.0, position=0.2, frequency=0.1))
    assert said[0] == (
        "Conclusion: ask steady first on this model: it is clearly above its best baseline in what was measured."
    )
    said = said[1:]
    assert said[0].startswith("steady follows what blanking a token out changes best: Spearman 0.6")
    assert said[0].endswith("0.41 above its best baseline (position).")
    assert said[1].startswith("Clearly better than their best baseline there too: good 0.")
    assert said[2].startswith("May be no better than their best baseline there, since the interval of the difference")
    assert re.search(r"includes zero: even 0\.\d\d \(difference [+-]0\.0\d \[-0\.\d\d, \+0\.\d\d\]\)\.$", said[2])
    assert said[3].startswith(
        "Clearly worse than their best baseline there, so not to be read as an explanation here: bad -0."
    )
    assert said[-1] == CAVEAT


def test_it_says_so_when_none_follows():
    said = verdict(table(steady=0.1, random=0.0, position=0.3))
    assert said[0].startswith("Conclusion: no method follows this model clearly better than a baseline does")
    said = said[1:]
    assert said[0].startswith("No method is clearly above its best baseline in following what blanking a token out")
    assert "where position alone reaches 0.29" in said[0]


def test_it_names_a_better_layer():
    said = " ".join(verdict(table(layer_value=0.8, steady=0.3, random=0.0)))
    assert "better at another layer" in said
    assert "steady at 0 (0.8" in said


def test_few_texts_give_figures_and_no_verdict():
    for texts, said in ((1, "Only 1 text was read"), (29, "Only 29 texts were read")):
        found = verdict(table(texts=texts, steady=0.6, random=0.0))
        assert found == [f"{said}, so these are figures without a verdict: it takes at least 30.", CAVEAT]
    assert verdict(table(texts=30, steady=0.6, random=0.0))[0].startswith("Conclusion: ask steady")
