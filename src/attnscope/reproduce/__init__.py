"""The papers, run again: each experiment writes a report with the paper's claims, judged."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from .claims import Claim as Claim
from .claims import read_claims as read_claims
from .experiment import Experiment as Experiment
from .writing import Reproduction as Reproduction
from .writing import compare as compare

PAPERS = ("vig2019", "abnar2020", "sun2020", "wu2020", "snell2021")


class _Experiments(Mapping[str, Experiment]):
    """Each is imported when it is asked for, because its models take seconds to import."""

    def __getitem__(self, paper: str) -> Experiment:
        if paper not in PAPERS:
            raise KeyError(paper)
        experiment: Experiment = getattr(import_module(f"{__name__}.{paper}"), f"reproduce_{paper}")
        return experiment

    def __iter__(self) -> Iterator[str]:
        return iter(PAPERS)

    def __len__(self) -> int:
        return len(PAPERS)


EXPERIMENTS: Mapping[str, Experiment] = _Experiments()
"""Every experiment by the name of its paper."""
