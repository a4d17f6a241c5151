"""How much is run at each scale: what each stage says of itself, brought together."""

from dataclasses import dataclass

from ...errors import BadInput
from . import classification, copying, heads, locality, theory, translation


@dataclass(frozen=True)
class Scale:
    """The settings of every stage."""

    toy: bool
    """Whether texts and pairs are made up."""
    widths: tuple[int, ...]
    """Of the proxies whose first step is compared with theory."""
    copying: copying.CopyingScale
    heads: heads.HeadsScale
    locality: locality.LocalityScale
    classification: classification.ClassificationScale
    translation: translation.TranslationScale


STAGES = (copying, heads, locality, classification, translation)
SCALES = {
    "smoke": Scale(True, (64, 1_024), *(stage.SMOKE for stage in STAGES)),
    "cpu": Scale(False, theory.WIDTHS, *(stage.CPU for stage in STAGES)),
    "paper": Scale(False, theory.WIDTHS, *(stage.PAPER for stage in STAGES)),
}


def scale_named(name: str) -> Scale:
    """The scale, if there is one of that name."""
    if name not in SCALES:
        raise BadInput(f"There is no scale {name!r}: choose {', '.join(SCALES)}.")
    return SCALES[name]
