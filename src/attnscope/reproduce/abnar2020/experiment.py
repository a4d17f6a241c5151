"""Abnar & Zuidema (2020) as an experiment: what belongs to it."""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..claims import rules_in
from ..experiment import Experiment
from . import claims, pattern_claims
from .figures import report_of
from .paper import PARSER, SCALES, TITLE, Options
from .sentiment import run_sentiment
from .stages import build_examples, evidence_of, fill_gaps, prepare, score_test_sentences, train_models


def _lacks(_scale: str, given: Mapping[str, Any]) -> Iterator[str]:
    """The spaCy model, where spaCy itself is there."""
    parser = str(given.get("parser", PARSER))
    if _is_installed("spacy") and not _is_installed(parser) and not Path(parser).exists():
        yield f"the spaCy model {parser} (some 13 MB: python -m spacy download {parser})"


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # no name of a package
        return False


reproduce_abnar2020 = Experiment(
    name="abnar2020",
    title=TITLE,
    scales=SCALES,
    options=Options,
    prepare=prepare,
    stages={
        "examples": build_examples,
        "pronouns": fill_gaps,
        "sentiment": run_sentiment,
        "models": train_models,
        "scores": score_test_sentences,
    },
    evidence=evidence_of,
    rules=rules_in(claims, pattern_claims),
    report=report_of,
    needs=(
        *("ud_ewt:train", "ud_ewt:dev", "wikitext2:valid", "wikitext2:test", "imdb:train"),
        *("agreement:test", "agreement:gold"),
    ),
    needs_at=("cpu",),  # the paper's own sentences are a file to be given
    replaces={"corpus": ("ud_ewt", "wikitext2", "imdb")},
    packages={"conllu": "attnscope[syntax]", "spacy": "attnscope[syntax]"},
    lacks=_lacks,
    takes={"cpu": "some 90 minutes on two cores"},
)
"""Tables 1 to 3, Figures 1 to 4 and every claim: three seeds on verbs of real text, tested on Linzen's subset ("cpu"),
or on Linzen's own file, given as `corpus` ("paper")."""
