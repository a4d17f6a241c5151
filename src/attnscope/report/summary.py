"""What a report says first, as plain data."""

from typing import Any

from ..attribution import raw
from ..record import AttentionRecord
from .tokens import shown


def summary(record: AttentionRecord) -> dict[str, Any]:
    """Text, prediction, and the raw attention of the last layer for each token, ready for JSON."""
    return {
        "text": text_of(record),
        "model": record.card.get("model"),
        "prediction": [{"label": label, "probability": probability} for label, probability in record.prediction],
        "method": "raw",
        "layer": record.layers[-1],
        "tokens": list(record.key_tokens),
        "special": list(record.key_special),
        "scores": raw(record).scores.tolist(),
    }


def text_of(record: AttentionRecord) -> str:
    """The text the model read; where the record does not hold it, its tokens."""
    if isinstance(record.text, str):
        return record.text
    return " ".join(record.text or shown(record.key_tokens))


def readout_words(record: AttentionRecord) -> str:
    """Where the model reads its answer, in words."""
    position = int(record.readout.argmax())
    share = float(record.readout[position])
    if share > 0.999:
        return f"“{shown(record.query_tokens)[position]}” (position {position})"
    if share < 1.001 / len(record.readout):
        return f"the mean over all {len(record.readout)} tokens"
    return f"a weighted mean of tokens (largest: “{shown(record.query_tokens)[position]}” with {share:.2f})"


def percent(share: float) -> str:
    """A share in per cent; nothing is rounded to certainty."""
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.1f} %"
