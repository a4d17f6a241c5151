"""How much is run at each scale, where nothing else is said."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import BadInput


@dataclass(frozen=True)
class Scale:
    """The data, the seeds, and how long each model is trained."""

    toy: bool
    """Whether sentences, stories and raters are our own toys."""
    seeds: tuple[int, ...]
    epochs: int
    patience: int
    """How many epochs in a row may bring nothing better before a training ends."""
    sentences_per_step: int
    story_epochs: int
    story_patience: int
    stories_per_step: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the model, where they are not the paper's."""


SMALL = {"layers": 2, "heads": 2, "head_width": 8, "width": 16}
SCALES = {
    "smoke": Scale(True, (1,), 3, 3, 50, 3, 3, 5, SMALL),
    "cpu": Scale(False, (1, 2), 15, 5, 50, 40, 10, 25),
    "paper": Scale(False, (1, 2, 3, 4, 5), 200, 200, 500, 200, 200, 25),
}


def scale_named(name: str) -> Scale:
    """The scale, if there is one of that name."""
    if name not in SCALES:
        raise BadInput(f"There is no scale {name!r}: choose {', '.join(SCALES)}.")
    return SCALES[name]


# The figures of Wu, Nguyen & Ong (2020) that the report sets beside ours.


ACCURACY, CONCORDANCE = 0.475, 0.54
"""SST-5 (Table 1, in percent there), and the mean concordance per transcript of SEND."""
T_QUADRATIC = {"sst": 7.04, "send": 6.21}
"""t of the quadratic term for layer-wise tracing (Fig. 5)."""
P_GRADIENT = {"sst": 0.19, "send": 0.28}
SPEARMAN = {"sst": 0.80, "send": 0.37}
"""Between layer-wise tracing and gradients, over words."""
