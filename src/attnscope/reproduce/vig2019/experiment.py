"""Vig & Belinkov (2019) as an experiment: what belongs to it."""

from ..claims import rules_in
from ..experiment import Experiment
from . import distance_claims, syntax_claims
from .figures import evidence_of, report_of
from .paper import SCALES, TITLE, Options
from .stages import lacks, prepare, run_survey

reproduce_vig2019 = Experiment(
    name="vig2019",
    title=TITLE,
    scales=SCALES,
    options=Options,
    prepare=prepare,
    stages={"survey": run_survey},
    evidence=evidence_of,
    rules=rules_in(syntax_claims, distance_claims),
    report=report_of,
    needs=("ud_ewt:dev", "ud_ewt:test"),
    replaces={"corpus": ("ud_ewt",)},
    packages={"conllu": "attnscope[syntax]"},
    lacks=lacks,
    takes={"cpu": "some 15 minutes on one core"},
)
"""Every figure, table and claim, for any model and corpus.

The scale "smoke" has the shipped model and 200 sentences of the shipped grammar; "cpu" GPT-2 over the dev and test
sentences of ud_ewt; "paper" 10,000 sentences of all of ud_ewt. A corpus is the name of a data set ("ud_ewt",
"wikitext2", "ud_ewt:train") or whatever `survey` takes. Where GPT-2 cannot be loaded, another model must be named, and
the claims are then about that model.
"""
