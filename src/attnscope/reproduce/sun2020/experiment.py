"""Sun & Lu (2020) as an experiment: what belongs to it."""

from ..claims import rules_in
from ..experiment import Experiment
from . import accuracy_claims, claims, sign_claims
from .figures import report_of
from .paper import SCALES, TITLE, Options
from .stages import evidence_of, prepare, run_made_up, run_next_steps, run_skewed, run_sweeps, run_terms

reproduce_sun2020 = Experiment(
    name="sun2020",
    title=TITLE,
    scales=SCALES,
    options=Options,
    prepare=prepare,
    stages={
        "sweeps": run_sweeps,
        "made_up": run_made_up,
        "skewed": run_skewed,
        "terms": run_terms,
        "next_steps": run_next_steps,
    },
    evidence=evidence_of,
    rules=rules_in(accuracy_claims, claims, sign_claims),
    report=report_of,
    needs=(
        *("sst:train", "sst:dev", "sst:test", "20news:train", "20news:test"),
        *("imdb:train", "imdb:val", "imdb:test"),
    ),
    takes={"cpu": "some 90 minutes on two cores"},
)
"""Tables 1 and 2, Figures 2 to 5, the made-up sentences and every claim, and the two steps that the paper names next.

The scale "smoke" has made-up sentences in place of SST; "cpu" all 112 cells of Table 2 with three seeds, one for IMDB;
"paper" 40 epochs and three seeds.
"""
