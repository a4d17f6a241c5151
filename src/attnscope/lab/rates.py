"""Learning rates over time: each is a function that gives the rate of a step, counted from zero."""

import math
from collections.abc import Callable

Rate = Callable[[int], float]


def constant(rate: float) -> Rate:
    """The same learning rate at every step."""
    return lambda _step: rate


def warmup_then_decay(peak: float, warmup: int, steps: int) -> Rate:
    """The learning rate at each step: up in a line to `peak`, then down in a line to zero after the last step.

    >>> rate = warmup_then_decay(peak=1.0, warmup=2, steps=6)
    >>> [rate(step) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """

    def rate(step: int) -> float:
        return peak * min((step + 1) / max(1, warmup), (steps - step) / max(1, steps - warmup))

    return rate


def cosine_restarts(peak: float, first: int, longer: int | float) -> Rate:
    """Down from `peak` along half a cosine and up again at once: `first` steps, then `longer` times as many.

    Loshchilov & Hutter 2017, with T_0 = `first` and T_mult = `longer`.

    >>> rate = cosine_restarts(peak=1.0, first=2, longer=2)
    >>> [round(rate(step), 2) for step in range(7)]
    [1.0, 0.5, 1.0, 0.85, 0.5, 0.15, 1.0]
    """

    def rate(step: int) -> float:
        begun, length = 0.0, float(first)
        while step >= begun + length:
            begun, length = begun + length, length * longer
        return peak * (1 + math.cos(math.pi * (step - begun) / length)) / 2

    return rate
