"""Every compiled loop of a sweep run once, so that the compiler's minutes fall into set-up: they are kept on disk."""

from ..data.packed import ClassifiedTexts, PackedTexts
from ..vocabulary import Vocabulary
from .runs import VARIANTS, RunSettings
from .training import sweep


def warm_up() -> None:
    """Train each variant on two words."""
    texts = PackedTexts.of([[4, 5], [5]], [0, 1])
    data = ClassifiedTexts("two words", ("negative", "positive"), Vocabulary(["bad", "good"]), texts, texts, texts)
    sweep(data, [RunSettings(variant) for variant in VARIANTS], width=2, epochs=1)
