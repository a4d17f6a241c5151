"""Parts of a stack of layers in relative terms: the paper speaks of 12 layers, other models have more or fewer."""

from ..judging import Unmeasured

FEWEST = 4
"""In a stack of fewer layers, to be early, in the middle or late says nothing."""


def first(layers: int, parts: int) -> range:
    """The first of so many parts of the layers.

    >>> first(12, 3), first(30, 3)
    (range(0, 4), range(0, 10))
    """
    _check(layers)
    return range(-(-layers // parts))


def last(layers: int, parts: int) -> range:
    """The last of so many parts.

    >>> last(12, 4), last(12, 2)
    (range(9, 12), range(6, 12))
    """
    _check(layers)
    return range(layers - -(-layers // parts), layers)


def middle_half(layers: int) -> range:
    """The layers without the first and the last quarter.

    >>> middle_half(12), middle_half(6), middle_half(30)
    (range(3, 9), range(1, 5), range(7, 23))
    """
    _check(layers)
    return range(layers // 4, layers - layers // 4)


def halves(layers: int) -> tuple[range, range]:
    """The lower and the deeper half; one layer in the very middle belongs to neither.

    >>> halves(5)
    (range(0, 2), range(3, 5))
    """
    _check(layers)
    return range(layers // 2), range(layers - layers // 2, layers)


def named(layers: range) -> str:
    """The layers in words.

    >>> named(range(9, 12)), named(range(1))
    ('layers 9–11', 'layer 0')
    """
    return f"layer {layers[0]}" if len(layers) == 1 else f"layers {layers[0]}–{layers[-1]}"


def _check(layers: int) -> None:
    if layers < FEWEST:
        raise Unmeasured(f"The model has {layers} layers; depth is not judged in fewer than {FEWEST}.")
