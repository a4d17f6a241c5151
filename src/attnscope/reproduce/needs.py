"""What a paper needs beyond a trial: data sets and packages with their sizes, its time, and what is missing."""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from ..corpora import CORPORA, files_here
from ..errors import BadInput
from ..numerals import counted
from .experiment import Experiment

FEW = 3
DRAWING = {"matplotlib": "attnscope[figures]"}
"""What every paper is drawn with."""


def plan_run(experiment: Experiment, scale: str, given: Mapping[str, Any]) -> str:
    """All that a run at this scale with these options reads and takes, in one sentence, before anything starts.

    Raises:
        BadInput: If something of it is missing, with all that is, so that one errand is enough.
    """
    if scale not in experiment.needs_at:
        return ""
    splits = _splits_needed(experiment, given)
    lacking = [
        *_lacking_data(splits, given.get("data")),
        *_lacking_packages(experiment),
        *experiment.lacks(scale, given),
    ]
    takes = experiment.takes.get(scale, "a time that was never measured")
    if lacking:
        raise BadInput(
            f"{experiment.name} at the scale {scale} lacks {len(lacking)} of its needs, and would then take {takes}: "
            f"{'; '.join(lacking)}{f'; {experiment.leaves_out} does without data sets' * bool(experiment.leaves_out)}."
        )
    return f"{experiment.name} at the scale {scale} {_list_reading(splits)}takes {takes}."


def _splits_needed(experiment: Experiment, given: Mapping[str, Any]) -> dict[str, list[str]]:
    """The parts of each data set that these options do not do without."""
    spared = {name for option, names in experiment.replaces.items() if option in given for name in names}
    spared |= set(experiment.spares(given))
    splits: dict[str, list[str]] = {}
    for need in experiment.needs:
        name, _, split = need.partition(":")
        if name not in spared:
            splits.setdefault(name, []).append(split)
    return splits


def _list_reading(splits: Mapping[str, list[str]]) -> str:
    if not splits:
        return ""
    whole = sum(CORPORA[name].megabytes or 0 for name in splits)
    named = ", ".join(f"{name}{_size_of(name)}" for name in splits)
    return f"reads {counted(len(splits), 'data set')} of {whole} MB together ({named}), all of them here, and "


def _size_of(name: str) -> str:
    megabytes = CORPORA[name].megabytes
    return "" if megabytes is None else f" {megabytes} MB"


def _lacking_data(splits: Mapping[str, list[str]], place: Any) -> Iterator[str]:
    for name, needed in splits.items():
        if missing := [split for split in needed if split not in files_here(name, place)]:
            # a set of many files is named as a whole, so that the sentence stays one
            what = ", ".join(missing) if len(missing) <= FEW else f"{len(missing)} files"
            size = f", some{_size_of(name)}" if _size_of(name) else ""
            how = f"attnscope data {f'get {name}' if CORPORA[name].downloads else f'add {name} FILE'}"
            yield f"the data set {name} ({what}{size}: {how})"


def _lacking_packages(experiment: Experiment) -> Iterator[str]:
    for package, extra in {**DRAWING, **experiment.packages}.items():
        if find_spec(package) is None:
            yield f"the package {package} (pip install '{extra}')"
