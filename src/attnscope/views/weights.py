"""A record's weights for a page: bytes by layer, whole or cut to the largest of each row, within a budget."""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from ..errors import BadInput
from ..record import AttentionRecord, VectorRecord
from ..record.storage import encoded_rows
from ..record.vectors import blocks

# Numbers in few bytes: arrays as deflated bytes or as base64, and bytes as text that a page may hold.
# A page is text, so its bytes must be written in letters. Base64 needs 4/3 of their size and travels anywhere, a
# notebook included; seven bits to a letter need 8/7, and only a file of its own may hold them, for many are control
# characters.


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


def pack_array(array: Shaped[np.ndarray, "*axes"]) -> dict[str, Any]:
    """The shape and the bytes of 32-bit floats; an axis along which nothing changes is kept once, with length 1.

    >>> pack_array(np.array([[0.5, 0.5], [2.0, 2.0]]))["shape"]
    [2, 1]
    """
    try:
        with np.errstate(over="raise"):
            array = np.asarray(array, dtype="<f4")
    except FloatingPointError:
        raise BadInput(
            "A page holds numbers up to 3.4e38 and cannot show what is larger: look for it in the table."
        ) from None
    for axis in range(array.ndim):
        first = array.take([0], axis)
        if np.array_equal(array, np.broadcast_to(first, array.shape), equal_nan=True):
            array = first
    return {"shape": list(array.shape), "bytes": b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")}


def unpack_array(packed: dict[str, Any]) -> Shaped[np.ndarray, "*axes"]:
    """The array back, as a script sees it."""
    return np.frombuffer(b64decode(packed["bytes"]), dtype="<f4").reshape(packed["shape"])


def deflate(*arrays: Shaped[np.ndarray, "..."]) -> bytes:
    """The bytes of arrays behind each other, little-endian, deflated; `weights.js` reads them."""
    # runs and frequencies are all there is to win in attention: looking for longer repeats takes five times as long
    deflating = zlib.compressobj(level=6, wbits=-zlib.MAX_WBITS, strategy=zlib.Z_RLE)
    parts = [deflating.compress(_little_endian(array).tobytes()) for array in arrays]
    return b"".join([*parts, deflating.flush()])


def inflate(content: bytes) -> bytes:
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


EXACT_BYTES = 100_000
"""Up to here weights travel as 16-bit floats (three digits) by default; beyond, as the record's uint8 code (two)."""
PAGE_BYTES = 250_000
"""What a page takes beside its weights: scripts, colours, the texts of ordinary length."""
LONG_BYTES = 12_000_000
"""The budget of a page of a record of vectors, whose weights would take gigabytes."""
LEAST_KEYS = 8
"""Where a page has no room for so many keys of each query in every layer, it has some of the layers only."""
CHUNK, SPARSE = 32, 3
"""Keys of a chunk of a row, and how many times as many chunks as keys make it worth to look for the best ones first."""
MOST_KEYS = 2**16
"""Places that 16 bits tell apart."""


Code = Literal["float16", "uint8"]
Kept = tuple[Float[Tensor, "head query kept"], Int[Tensor, "head query kept"], Float[Tensor, "head query"]]
"""The largest weights of each row of a layer, where they stand, and what is left of the row."""
Largest = Callable[[int], Kept]
"""Finds them, by the place of a layer."""


@dataclass(frozen=True)
class Form:
    """How weights travel: their code, and how many keys of each row."""

    code: Code
    """"float16", or "uint8" for the square root of a weight over its row's largest, in 255 steps."""
    top_keys: int | None = None
    """The number of largest keys of each row that travel, or None for all; the others are one mass."""
    layers: tuple[int, ...] | None = None
    """The places of the layers that travel, or None for all."""

    def size(self, record: AttentionRecord) -> int:
        """The bytes on a page, at most."""
        layers, heads, queries, keys = record.shape
        rows = (layers if self.layers is None else len(self.layers)) * heads * queries
        one = 2 if self.code == "float16" else 1
        row = 4 + (keys * one if self.top_keys is None else 4 + self.top_keys * (2 + one))
        return int(rows * row * WORST) + 1


def form_for(record: AttentionRecord, size_budget: int | None = None, keys_per_query: int | None = None) -> Form:
    """The most exact form that fits `size_budget`, the bytes of the saved page: as 16-bit floats, as bytes, or cut.

    Without a budget all weights stay, and a small page goes before a fourth digit. `keys_per_query` asks for that many
    of the largest of each row, whatever the budget would allow. Of a record of vectors the largest of each row travel,
    within 12 MB if no budget is given, and where that is too little for all layers, those of some.
    """
    layers, heads, queries, keys = record.shape
    if keys_per_query is not None and keys_per_query < 1:
        raise BadInput(f"At least one key of each query is shown; keys_per_query is {keys_per_query}.")
    if isinstance(record, VectorRecord):
        return _form_of_vectors(record, LONG_BYTES if size_budget is None else size_budget, keys_per_query)
    if keys_per_query is not None and keys_per_query < keys:
        return Form("uint8", keys_per_query)
    exact, whole = Form("float16"), Form("uint8")
    if size_budget is None:
        return exact if exact.size(record) <= EXACT_BYTES else whole
    left = size_budget - PAGE_BYTES
    for form in (exact, whole):
        if form.size(record) <= left:
            return form
    kept = int((left / WORST / (layers * heads * queries) - 8) // 3)
    if kept < 1:
        smallest = Form("uint8", 1).size(record) + PAGE_BYTES
        raise BadInput(
            f"These weights do not fit into {size_budget:,} bytes: one key of each query takes {smallest:,};"
            " give a larger size_budget, or fewer layers and heads with record.select()."
        )
    return Form("uint8", min(kept, keys - 1))


def _form_of_vectors(record: VectorRecord, size_budget: int, keys_per_query: int | None) -> Form:
    """The largest keys of each row, of all layers or of as many as have room for some keys of each, spread evenly."""
    layers, heads, queries, keys = record.shape
    if keys > MOST_KEYS:
        raise BadInput(f"A page holds texts of up to {MOST_KEYS:,} tokens, and this one has {keys:,}.")
    room = (size_budget - PAGE_BYTES) / WORST / (heads * queries)
    wanted = min(keys_per_query or LEAST_KEYS, keys - 1)
    count = min(max(int(room // (8 + 3 * wanted)), 1), layers)
    fitting = int((room / count - 8) // 3)
    if fitting < 1:
        return Form("uint8", 1, ())
    places = tuple(sorted({round(step * (layers - 1) / max(count - 1, 1)) for step in range(count)}))
    return Form("uint8", min(keys_per_query or fitting, fitting, keys - 1), None if count == layers else places)


def row_blocks(record: AttentionRecord, place: int) -> Iterator[tuple[range, Float[Tensor, "head row key"]]]:
    """The weights of a layer from the first key on: of all queries at once, or as vectors give them of some at a time.

    Of vectors they end with the last key that any of these queries sees: in a causal text that halves the work.
    """
    if not isinstance(record, VectorRecord):
        yield range(record.shape[2]), record.weights[place]
        return
    for queries, keys, weights in blocks(record.layer(place)):
        yield range(queries.start, queries.stop), torch.nn.functional.pad(weights, (keys.start, 0))


def weight_blobs(record: AttentionRecord, form: Form) -> tuple[dict[str, Any], OnDemand]:
    """What a script must know of the weights, and the weights themselves: one blob for each layer that travels."""
    layers = range(record.shape[0]) if form.layers is None else form.layers
    largest: Largest = partial(_largest, record, form.top_keys or 0)
    if isinstance(record, VectorRecord):
        largest = cache(largest)  # they are few, and took a pass over all weights to find
    rest_mass = 0.0
    if form.top_keys is not None:
        rest_mass = sum(float(largest(place)[2].mean()) for place in layers) / max(len(layers), 1)
    blobs = OnDemand({f"layer{place}": partial(_layer_bytes, record, form, largest, place) for place in layers})
    head_count, query_count, key_count = record.shape[1:]
    described = {
        "code": form.code,
        "kept": form.top_keys,
        "rest": rest_mass,
        "shape": [head_count, query_count, key_count],
        "layers": list(record.layers),
        "left_out": [number for place, number in enumerate(record.layers) if place not in layers],
        "heads": list(record.heads),
        "pooled": record.pooled,
    }
    return described, blobs


def _layer_bytes(record: AttentionRecord, form: Form, largest: Largest, place: int) -> bytes:
    """One layer as its form wants it."""
    rows = []
    if form.top_keys is not None:
        weights, positions, rest = largest(place)
        rows += [rest.numpy(), positions.numpy().astype(np.uint16)]
    else:
        weights = record.weights[place]
    if form.code == "float16":
        return deflate(*rows, weights.to(torch.float16).numpy())
    codes, scales = encoded_rows(weights.unsqueeze(0))
    return deflate(*rows, scales[0].numpy(), codes[0].numpy())


def _largest(record: AttentionRecord, kept: int, place: int) -> Kept:
    """The largest weights of each row of a layer, where they stand, and what is left of the row."""
    found = [largest_of_rows(weights, kept) for _, weights in row_blocks(record, place)]
    weights, positions = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
    rest = (1 - weights.sum(-1)).clamp(min=0.0)
    rest[:, list(record.masked_queries)] = 0.0
    return weights, positions, rest


def largest_of_rows(
    weights: Float[Tensor, "head row key"], kept: int
) -> tuple[Float[Tensor, "head row kept"], Int[Tensor, "head row kept"]]:
    """The largest weights of each row and where they stand, as `topk` has them, and in long rows ten times as fast.

    The largest `kept` of a row are in those `kept` of its chunks whose own largest are largest, so that only these are
    looked through.
    """
    weights = torch.nn.functional.pad(weights, (0, max(kept - weights.shape[2], 0)))
    heads, rows, keys = weights.shape
    if keys < SPARSE * CHUNK * kept:
        values, positions = weights.topk(kept, dim=-1)
        return values, positions
    chunks = torch.nn.functional.pad(weights, (0, -keys % CHUNK), value=-1.0).view(heads, rows, -1, CHUNK)
    chosen = chunks.amax(-1).topk(kept, dim=-1, sorted=False).indices
    looked_at = chunks.gather(2, chosen.unsqueeze(-1).expand(-1, -1, -1, CHUNK)).flatten(2)
    values, places = looked_at.topk(kept, dim=-1)
    return values, chosen.gather(-1, places // CHUNK) * CHUNK + places % CHUNK
