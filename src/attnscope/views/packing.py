"""Numbers in few bytes: arrays as deflated bytes or as base64, and bytes as text that a page may hold.

A page is text, so its bytes must be written in letters. Base64 needs 4/3 of their size and travels anywhere, a notebook
included; seven bits to a letter need 8/7, and only a file of its own may hold them, for many are control characters.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Shaped

Writer = Callable[[bytes], str]
"""How bytes are written in a page."""
ESCAPED = (0, ord("\r"), ord("<"))
"""Letters that HTML replaces, or that could end a script: they are written 128 places higher."""
WORST = 1.19
"""Bytes of a page that a byte takes at most in seven-bit letters, where deflating has won nothing."""


class OnDemand(Mapping[str, bytes]):
    """Arrays by name, each made when it is read: a server sends the layers that are looked at."""

    def __init__(self, makers: Mapping[str, Callable[[], bytes]]) -> None:
        self._makers = dict(makers)

    def __getitem__(self, name: str) -> bytes:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __or__(self, others: Mapping[str, bytes]) -> "OnDemand":
        """These and others, none of them made."""
        return OnDemand({**self._makers, **{name: partial(others.__getitem__, name) for name in others}})


def packed(array: Shaped[np.ndarray, "*axes"]) -> dict[str, Any]:
    """The shape and the bytes of 32-bit floats; an axis along which nothing changes is kept once, with length 1.

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


def deflated(*arrays: Shaped[np.ndarray, "..."]) -> bytes:
    """The bytes of arrays behind each other, little-endian, deflated; `weights.js` reads them."""
    # runs and frequencies are all there is to win in attention: looking for longer repeats takes five times as long
    deflating = zlib.compressobj(level=6, wbits=-zlib.MAX_WBITS, strategy=zlib.Z_RLE)
    parts = [deflating.compress(_little_endian(array).tobytes()) for array in arrays]
    return b"".join([*parts, deflating.flush()])


def inflated(content: bytes) -> bytes:
    """What was deflated, as a script sees it."""
    return zlib.decompress(content, wbits=-zlib.MAX_WBITS)


def base64_text(content: bytes) -> str:
    """Bytes as base64."""
    return b64encode(content).decode("ascii")


def seven_bit_text(content: bytes) -> str:
    """Bytes as letters of seven bits: every seven bytes are eight letters; zeros are added to fill the last ones.

    >>> len(seven_bit_text(bytes(700))), "<" in seven_bit_text(bytes(range(256)))
    (800, False)
    """
    groups = np.frombuffer(content + bytes(-len(content) % 7), dtype=np.uint8).reshape(-1, 7).astype(np.uint16)
    letters = np.empty((len(groups), 8), dtype=np.uint8)
    carried = np.zeros(len(groups), dtype=np.uint16)
    for place in range(7):
        letters[:, place] = carried << (7 - place) & 127 | groups[:, place] >> (place + 1)
        carried = groups[:, place]
    letters[:, 7] = carried & 127
    flat = letters.reshape(-1)
    flat[np.isin(flat, ESCAPED)] += 128
    return flat.tobytes().decode("latin-1")


WRITERS: dict[str, Writer] = {"base64": base64_text, "seven": seven_bit_text}


def _little_endian(array: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
