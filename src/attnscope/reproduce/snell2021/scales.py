"""How much is run at each scale: what each stage says of itself, brought together."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

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

    def told(self, stages: Sequence[str]) -> dict[str, str]:
        """The settings of these stages in words, those of each data set by themselves."""
        rows: dict[str, str] = {}
        for stage in stages:
            settings: dict[str, Any] = {"widths": self.widths} if stage == "theory" else asdict(getattr(self, stage))
            sets = settings.pop("data") if stage == "classification" else {}
            rows[stage] = _in_words(settings)
            rows |= {f"{stage}: {name}": _in_words(each) for name, each in sets.items()}
        return rows


def _in_words(settings: Mapping[str, Any]) -> str:
    named = {
        name.replace("_", " "): value for name, value in settings.items() if value is not None and value is not False
    }
    return ", ".join(f"{name} {_in_words(each) if isinstance(each, dict) else each}" for name, each in named.items())


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
