"""How much is run at each scale, where nothing else is said."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import BadInput


@dataclass(frozen=True)
class Scale:
    """The data, the seeds, the epochs at most of each training, and the sentences that are looked at."""

    toy: bool
    """Whether sentences and raters are our own toys."""
    seeds: tuple[int, ...]
    epochs: int
    sentences_per_step: int
    sentences: int | None
    """Test sentences that words are scored in; all where there is no number."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the model, where they are not the paper's."""


SMALL = {"layers": 2, "heads": 2, "head_width": 8, "width": 16}
SCALES = {
    "smoke": Scale(True, (1,), 3, 50, 60, SMALL),
    "cpu": Scale(False, (1, 2), 15, 50, None),
    "paper": Scale(False, (1, 2, 3, 4, 5), 200, 500, None),
}


def scale_named(name: str) -> Scale:
    """The scale, if there is one of that name."""
    if name not in SCALES:
        raise BadInput(f"There is no scale {name!r}: choose {', '.join(SCALES)}.")
    return SCALES[name]
