"""The price beforehand: bytes and forward passes, told without running the model."""

from collections.abc import Sequence
from dataclasses import dataclass

FLOAT32_BYTES = 4


@dataclass(frozen=True)
class Estimate:
    """What recording would take; `str()` says it in words."""

    texts: int
    longest: int
    forward_passes: int
    record_bytes: int
    """All records together, as float32."""
    peak_bytes: int
    """The attention of the largest batch while it runs: the model's copy and the records'."""
    head_mean_bytes: int
    """All records together with heads="mean"."""

    def __str__(self) -> str:
        passes = "1 forward pass" if self.forward_passes == 1 else f"{self.forward_passes} forward passes"
        words = _in_words
        return (
            f"{self.texts} text(s) of up to {self.longest} tokens: {passes}, {words(self.record_bytes)} of attention"
            f" weights ({words(self.peak_bytes)} at the peak; {words(self.head_mean_bytes)} with heads='mean')"
        )


def price(lengths: Sequence[int], batches: Sequence[Sequence[int]], layers: int, heads: int) -> Estimate:
    """From the tokens of each text, the batches (as positions in `lengths`) and the size of the model."""
    per_pair = layers * heads * FLOAT32_BYTES
    record_bytes = sum(per_pair * length**2 for length in lengths)
    largest = max(len(batch) * max(lengths[position] for position in batch) ** 2 for batch in batches)
    return Estimate(
        texts=len(lengths),
        longest=max(lengths),
        forward_passes=len(batches),
        record_bytes=record_bytes,
        peak_bytes=2 * per_pair * largest,
        head_mean_bytes=record_bytes // heads,
    )


def _in_words(count: int | float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
