"""Wu, Nguyen & Ong (2020) as an experiment: what belongs to it."""

from ..claims import rules_in
from ..experiment import Experiment
from . import claims
from .figures import report_of
from .paper import SCALES, TITLE, Options
from .stages import TRAINED, VECTOR_TEXTS, evidence_of, find_vectors, prepare, run_sentences, run_stories

reproduce_wu2020 = Experiment(
    name="wu2020",
    title=TITLE,
    scales=SCALES,
    options=Options,
    prepare=prepare,
    stages={"vectors": find_vectors, "sentences": run_sentences, "stories": run_stories},
    evidence=evidence_of,
    rules=rules_in(claims),
    report=report_of,
    needs=(
        *("sst:train", "sst:dev", "sst:test", "warriner:all"),
        *("imdb:train", "imdb:val", "imdb:test", "wikitext2:valid", "wikitext2:test"),
    ),
    spares=lambda given: () if given.get("vectors") == TRAINED else VECTOR_TEXTS,
    replaces={"corpus": ("sst",), "lexicon": ("warriner",)},
    packages={"statsmodels": "attnscope[lexicon]"},
    takes={"cpu": "hours on two cores"},
)
"""Table 1, Figures 3 to 6 and every claim. Without SEND its claims are not judged."""
