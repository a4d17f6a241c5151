"""What drives the scores of words while a classifier learns from real text: the terms A to F over the first epochs."""

from functools import partial
from pathlib import Path

import pandas as pd

from ...lab.data import ClassifiedTexts
from ...lab.models import AttentionClassifier
from ...lab.polarity_training import curves, train_watched
from ...lab.probes import WatchedTerms
from .kept_rows import Rows, kept_rows
from .scales import Scale
from .sweeping import LARGE, MODERATE
from .word_tables import NEGATIVE, NEUTRAL, POSITIVE, kinds_of

EPOCHS, LOOKS = 8, 40
SEED = 1


def term_curves(folder: Path, data: ClassifiedTexts, scale: Scale) -> pd.DataFrame:
    """Rows of scaling (λ), step, quantity, name, group and value."""
    drawn = []
    for scaling in (MODERATE, LARGE):
        path = folder / f"terms-{scaling:g}.json"
        rows = kept_rows(path, partial(_watched, path, data, scaling, scale))
        drawn += [{"scaling": scaling, **row} for row in curves(rows)]
    return pd.DataFrame(drawn)


def _watched(path: Path, data: ClassifiedTexts, scaling: float, scale: Scale) -> Rows:
    """What the probe sees of a run that is trained now; until it is done, a checkpoint lies beside the file."""
    steps = EPOCHS * -(-len(data.train) // 100)
    looks = {round(look * steps / LOOKS) for look in range(LOOKS + 1)}
    chosen = {kind: numbers for kind, numbers in kinds_of(data).items() if kind in {POSITIVE, NEGATIVE, NEUTRAL}}
    checkpoint = path.with_suffix(".safetensors")
    _, log = train_watched(
        data,
        lambda: AttentionClassifier(data.vocabulary, scaling=scaling, classes=data.classes, width=scale.width),
        checkpoint,
        epochs=EPOCHS,
        seed=SEED,
        probes=lambda model: [WatchedTerms(model, data.train, chosen, steps=looks)],
    )
    checkpoint.unlink(missing_ok=True)
    return [row for row in log if "probe" in row]
