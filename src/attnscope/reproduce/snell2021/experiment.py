"""Snell et al. (2021) as an experiment: what is checked before it begins, its stages, and what they give together."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ...corpora import CORPORA, dataset
from ...engine import engine as engine_named
from ...errors import BadInput
from ...lab.word_vectors import check_vectors, word_vectors
from ..claims import rules_in
from ..experiment import Attempt, Experiment
from . import agreement_claims, claims
from .brought import PAIRS, missing_brought
from .claims import Evidence
from .classification import read_texts, run_classification, run_locality
from .copying import run_copying, run_heads
from .figures import report_of
from .paper import BROUGHT, SCALES, TITLE, Options, Scale
from .theory import check_theory
from .translation import NAME, check_sentences, run_translation

Stage = Attempt[Scale, Options]
NAMES = {"sms": "sms_spam"}
"""Data sets that have another name among the data sets than in tables."""
CLASSIFIED = ("sst", "20news", "imdb", "sms_spam", "ag_news", "amazon")
LEFT_OUT = "It was left out by --leave-out."


def prepare(attempt: Stage) -> Mapping[str, Any]:
    """Look for the data sets and read them before anything is trained; those that are missing are left out."""
    scale, data = attempt.scale, attempt.options.data
    engine_named(attempt.options.engine)  # which refuses a wrong name
    vectors = check_vectors(attempt.options.vectors)
    names = list(scale.classification.data) if "classification" in attempt.stages else []
    pairs = [NAME, *(() if scale.toy else PAIRS)] if "translation" in attempt.stages else []
    left_out, known = _left_out(attempt.options.leave_out), (*CLASSIFIED, NAME, *BROUGHT)
    if unknown := [name for name in left_out if name not in known]:
        raise BadInput(f"There is no data set {unknown[0]!r} to leave out: choose of {', '.join(known)}.")
    missing = {name: LEFT_OUT for name in (*names, *pairs) if NAMES.get(name, name) in left_out}
    if not scale.toy:
        wanted = [name for name in (*names, *pairs) if name not in missing]
        missing |= dict(missing_brought([name for name in wanted if name in BROUGHT], data))
        missing |= missing_data([name for name in wanted if name not in BROUGHT], data)
    folder = attempt.folder / "classification"
    texts = {name: read_texts(folder, name, scale.classification, data) for name in names if name not in missing}
    if vectors is not None:
        word_vectors(vectors, {word for each in texts.values() for word in each.vocabulary.words})
    if pairs and NAME not in missing:
        check_sentences(scale.translation, data)
    attempt.results |= {
        "missing": missing,
        "vectors": vectors,
        "texts": texts,
        "pairs": [name for name in pairs if name not in missing],
    }
    return {"scale": attempt.scale_name, "vectors": None if vectors is None else Path(vectors).name}


def _left_out(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def spare_data(given: Mapping[str, Any]) -> Iterator[str]:
    """The data sets that are left out, and those of stages that are not run."""
    yield from _left_out(given.get("leave_out", ""))
    stages = given.get("stages")
    if stages is not None:
        yield from () if "classification" in stages else CLASSIFIED
        yield from () if "translation" in stages else (NAME,)


def missing_data(names: Iterable[str], data: str | Path | None) -> dict[str, str]:
    """Why each data set that is not there is not; it is bad input if none is there."""
    wanted = list(names)
    missing: dict[str, str] = {}
    for name in wanted:
        try:
            dataset(NAMES.get(name, name), data)
        except BadInput as reason:
            missing[name] = str(reason)
    if wanted and len(missing) == len(wanted):
        raise BadInput(missing[wanted[0]])
    return missing


def classify_texts(attempt: Stage) -> dict[str, pd.DataFrame]:
    """The stage classification, on the data sets that are here."""
    folder, scale = attempt.folder / "classification", attempt.scale.classification
    return run_classification(folder, scale, attempt["texts"], attempt.options.engine, attempt["vectors"])


def translate(attempt: Stage) -> dict[str, pd.DataFrame]:
    """The stage translation, of the data sets that are here: each has a folder of its own."""
    options, found = attempt.options, []
    for name in attempt["pairs"]:
        folder = attempt.folder / ("translation" if name == NAME else f"translation-{name}")
        found.append(run_translation(folder, attempt.scale.translation, options.engine, options.data, name))
    return {table: pd.concat([each[table] for each in found], ignore_index=True) for table in (found or [{}])[0]}


def evidence_of(attempt: Stage) -> Evidence:
    """The tables of all stages; those of texts and of translation that have the same name are one."""
    found: dict[str, list[pd.DataFrame]] = {}
    for stage in attempt.stages:
        for name, table in attempt[stage].items():
            found.setdefault(name, []).append(table)
    return Evidence({name: pd.concat(tables, ignore_index=True) for name, tables in found.items()}, attempt["missing"])


reproduce_snell2021 = Experiment(
    name="snell2021",
    title=TITLE,
    scales=SCALES,
    options=Options,
    prepare=prepare,
    stages={
        "copying": lambda at: run_copying(at.folder / "copying", at.scale.copying, at.options.engine),
        "locality": lambda at: run_locality(at.folder / "locality", at.scale.locality, at.options.engine),
        "theory": lambda at: check_theory(at.scale.theory.widths),
        "classification": classify_texts,
        "heads": lambda at: run_heads(at.folder / "heads", at.scale.heads, at.options.engine),
        "translation": translate,
    },
    evidence=evidence_of,
    rules=rules_in(claims, agreement_claims),
    report=report_of,
    needs=(
        *(f"{name}:{split}" for name in CLASSIFIED for split in CORPORA[name].files if (name, split) != ("sst", "dev")),
        *(f"{NAME}:{part}.{language}" for part in ("train", "val") for language in ("en", "de")),
    ),
    spares=spare_data,
    leaves_out="--leave-out",
    takes={"cpu": "some 5 hours on two cores"},
)
"""Figures 3, 6 and 7, Tables 2 to 11 and every claim, the stages in the order of what matters most.

The command line asks for every data set that is not left out by name; a call from Python leaves out what is not found,
and its claims say so. Each training is kept, so that stages may be run one
after the other with `resume`: the report has all that are done. Words of texts begin at random unless vectors are
named, as they do in the authors' code.
"""
