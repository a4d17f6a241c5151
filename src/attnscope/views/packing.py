"""Numbers in few bytes: arrays of 32-bit floats as base64, which a script reads without parsing a single number."""

from base64 import b64decode, b64encode
from typing import Any

import numpy as np
from jaxtyping import Shaped


def packed(array: Shaped[np.ndarray, "*axes"]) -> dict[str, Any]:
    """The shape and the bytes; an axis along which nothing changes is kept once, with length 1.

    >>> packed(np.array([[0.5, 0.5], [2.0, 2.0]]))["shape"]
    [2, 1]
    """
    array = np.asarray(array, dtype="<f4")
    for axis in range(array.ndim):
        first = array.take([0], axis)
        if np.array_equal(array, np.broadcast_to(first, array.shape), equal_nan=True):
            array = first
    return {"shape": list(array.shape), "bytes": b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")}


def unpacked(packed: dict[str, Any]) -> Shaped[np.ndarray, "*axes"]:
    """The array back, as a script sees it."""
    return np.frombuffer(b64decode(packed["bytes"]), dtype="<f4").reshape(packed["shape"])
