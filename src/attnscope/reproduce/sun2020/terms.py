"""What drives the scores of words while a classifier learns from real text: the terms A to F over the first epochs."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from ...files import written_atomically
from ...lab.data import ClassifiedTexts
from ...lab.models import AttentionClassifier
from ...lab.polarity_training import curves, train_watched
from ...lab.probes import WatchedTerms
from .scales import Scale
from .sweeping import LARGE, MODERATE
from .word_tables import NEGATIVE, NEUTRAL, POSITIVE, kinds_of

EPOCHS, LOOKS = 8, 40
SEED = 1


def term_curves(folder: Path, data: ClassifiedTexts, scale: Scale) -> pd.DataFrame:
    """Rows of scaling (λ), step, quantity, name, group and value."""
    drawn = [
        {"scaling": scaling, **row}
        for scaling in (MODERATE, LARGE)
        for row in curves(_seen(folder / f"terms-{scaling:g}.json", data, scaling, scale))
    ]
    return pd.DataFrame(drawn)


def _seen(path: Path, data: ClassifiedTexts, scaling: float, scale: Scale) -> list[dict[str, Any]]:
    """What the probe saw of a run, trained now or before."""
    if path.exists():
        kept: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return kept
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
    seen = [row for row in log if "probe" in row]
    with written_atomically(path) as temporary:
        temporary.write_text(json.dumps(seen) + "\n", encoding="utf-8")
    checkpoint.unlink(missing_ok=True)
    return seen
