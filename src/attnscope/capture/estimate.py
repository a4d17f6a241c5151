"""The price beforehand: bytes and forward passes, told without running the model."""

from collections.abc import Sequence
from dataclasses import dataclass

from .batching import by_length, windows

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
    """What is alive at once: the model's own attention of a batch, and the records that wait for their turn."""
    head_mean_bytes: int
    """All records together with heads="mean"."""
    generates: bool
    """Whether the model first writes its own output for each text, which takes further passes."""

    def __str__(self) -> str:
        passes = "1 forward pass" if self.forward_passes == 1 else f"{self.forward_passes} forward passes"
        writing = " after writing the output of each text" if self.generates else ""
        words = _in_words
        return (
            f"{self.texts} text(s) of up to {self.longest} tokens: {passes}{writing}, {words(self.record_bytes)} of"
            f" attention weights ({words(self.peak_bytes)} at peak; {words(self.head_mean_bytes)} with heads='mean')"
        )


def estimate_of(
    lengths: Sequence[int], batch_size: int, layers: int, heads: int, *, padded: bool, generates: bool
) -> Estimate:
    """From the tokens of each text and the size of the stack; a decoder's output is as long as its source here."""
    per_pair = layers * heads * FLOAT32_BYTES
    passes, peak = 0, 0
    for window in windows(lengths, batch_size, lambda length: per_pair * length**2):
        batches = by_length(window, batch_size if padded else 1)
        largest = max(len(batch) * max(window[position] for position in batch) ** 2 for batch in batches)
        passes += len(batches)
        peak = max(peak, per_pair * (largest + sum(length**2 for length in window)))
    record_bytes = sum(per_pair * length**2 for length in lengths)
    return Estimate(
        texts=len(lengths),
        longest=max(lengths),
        forward_passes=passes,
        record_bytes=record_bytes,
        peak_bytes=peak,
        head_mean_bytes=record_bytes // heads,
        generates=generates,
    )


def _in_words(count: int | float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
