"""How much is run at each scale, where nothing else is said."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import BadInput

PAPER_ENCODER = "distilbert-base-uncased"
"""What the classifier of Table 3 was fine-tuned from."""


@dataclass(frozen=True)
class Scale:
    """The text trained on, the seeds, the steps of each training and the sentences that are looked at."""

    text: str
    """"grammar", the shipped one; "text", present-tense verbs found in real text; "linzen", the file of the paper."""
    seeds: tuple[int, ...]
    steps: int
    sentences: int
    """Sentences of Tables 1 and 2."""
    reviews: int
    """Sentences of Table 3."""
    encoder: str | None
    """What the classifier of Table 3 is fine-tuned from; the shipped model stands in for it where there is none."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the agreement model, where they are not the paper's."""
    blanked: float = 0.02
    """The share of words that training replaces by [UNK]; the authors replace none."""


SCALES = {
    "smoke": Scale("grammar", (0,), 120, 40, 12, None, {"heads": 2, "width": 32}),
    "cpu": Scale("text", (0, 1, 2), 4_000, 2_000, 500, PAPER_ENCODER),
    "paper": Scale("linzen", (0, 1, 2), 150_000, 2_000, 100, PAPER_ENCODER, blanked=0.0),
}


def scale_named(name: str) -> Scale:
    """The scale, if there is one of that name."""
    if name not in SCALES:
        raise BadInput(f"There is no scale {name!r}: choose {', '.join(SCALES)}.")
    return SCALES[name]
