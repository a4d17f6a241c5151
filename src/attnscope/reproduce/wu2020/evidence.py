"""What the claims are judged on: the models of all seeds with their words, on sentences and on stories."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...evaluation import LexiconStudy
from ..judging import Unmeasured
from .data import SEND

NO_SEND = "SEND is given only on request, by its authors: who has it names its folder by --send."


@dataclass(frozen=True, eq=False)
class Run:
    """One model: how well it does, what its words get, and how even its traced attention is by layer."""

    seed: int
    score: float
    """The share of right sentences, or the mean concordance of stories."""
    study: LexiconStudy
    evenness: pd.DataFrame

    def regression(self, method: str, scaling: str = "softmax") -> dict[str, Any]:
        """The row of one regression."""
        table = self.study.regressions
        rows = table[(table["method"] == method) & (table["scaling"] == scaling)]
        if rows.empty:
            raise Unmeasured(f"There are no scores by {method.replace('_', ' ')}: {self.study.card['left_out']}.")
        return dict(rows.iloc[0])

    def spearman(self, first: str, second: str) -> float:
        """How far two methods agree on the order of the rated words, in either order of their names."""
        table = self.study.correlations
        chosen = table[(table["over"] == "matched") & (table["scaling"] == "softmax")]
        for one, other in ((first, second), (second, first)):
            rows = chosen[(chosen["first"] == one) & (chosen["second"] == other)]
            if not rows.empty:
                return float(rows["spearman"].iloc[0])
        raise Unmeasured(f"There are no scores by both {first} and {second}.")


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything that was measured."""

    sentences: tuple[Run, ...]
    stories: tuple[Run, ...]
    """Empty where there are no stories."""
    told: str = SEND
    """What the stories are. No claim rests on a stand-in."""

    def runs(self, data: str) -> tuple[Run, ...]:
        """The models of one of the two data sets, as far as claims may rest on them."""
        if data == "sst":
            return self.sentences
        if not self.stories or self.told != SEND:
            raise Unmeasured(NO_SEND)
        return self.stories
