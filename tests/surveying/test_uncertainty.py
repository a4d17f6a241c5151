"""The standard error of a survey is the spread that its values really have over other corpora of the same kind."""

from itertools import islice

import numpy as np

from attnscope import survey
from attnscope.syntax import agreement_sentences

NAMES = ["distance", "entropy"]
CORPORA, SENTENCES = 12, 60


def test_the_error_is_the_spread_over_independent_corpora(demo) -> None:
    surveys = [
        survey(demo, list(islice(agreement_sentences(1000 + seed), SENTENCES)), NAMES, shard_size=6)
        for seed in range(CORPORA)
    ]
    for name in NAMES:
        values = np.stack([one[name].result()["value"] for one in surveys])
        errors = np.sqrt((np.stack([one[name].result()["error"] for one in surveys]) ** 2).mean(0))
        spread = values.std(0, ddof=1)
        some = spread > 1e-6  # what never happens has no spread
        assert some.any()
        # each spread is itself uncertain by a fifth, so many are judged together
        assert 0.7 < np.exp(np.mean(np.log(errors[some] / spread[some]))) < 1.4, name
        assert np.mean((errors[some] / spread[some] > 0.5) & (errors[some] / spread[some] < 2)) > 0.9, name
        layers = np.stack([one[name].by_layer()["value"] for one in surveys]).std(0, ddof=1)
        told = np.stack([one[name].by_layer()["error"] for one in surveys]).mean(0)
        assert 0.6 < np.exp(np.mean(np.log(told[layers > 1e-6] / layers[layers > 1e-6]))) < 1.6, name
