"""Which data sets can be had: what is missing is told before anything is trained, and left out with its reason."""

from collections.abc import Iterable
from pathlib import Path

from ...corpora import dataset
from ...errors import BadInput

NAMES = {"sms": "sms_spam"}
"""Data sets that lie under another name than they have in tables."""


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
