"""Methods on a record of vectors: rows are carried down the layers, and no map is ever held.

Every method whose scores are the read-out times maps needs only what one row becomes in one layer, `carry`, which costs
one pass of fused attention for as many rows as vectors are wide. What even attention would give to a row, the
reference of `normalize="receptive_field"`, takes a sum.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Float64, Shaped
from torch import Tensor

from ..errors import BadInput
from ..record import TokenScores
from ..record.scores import scores_of
from ..record.vector_record import VectorRecord
from ..record.vectors import FEW, LayerVectors, blocks, carry, handed_over, keys_seen, of_heads, rows
from .heads import Heads, checked_layer, lean_to_first, over

Carry = Callable[[LayerVectors, Float[Tensor, "row head query"]], Float[Tensor, "row head key"]]
"""What rows at the queries of each head become at its keys."""
LARGEST_MAP = 2**26
"""A map of some rows has at most so many numbers: those that are not asked for take their place too."""
MOST_EFFECTIVE = 64
"""For so many queries effective attention is computed without a map."""

_swept: WeakKeyDictionary[VectorRecord, tuple[Tensor, Tensor]] = WeakKeyDictionary()


def refuse_map(record: VectorRecord) -> Float[Tensor, "layer query key"]:
    """The sentence for a whole map, which is what a record of vectors is made to do without."""
    layers, _, queries, keys = record.shape
    raise BadInput(
        f"A map of {layers} layers over {queries} x {keys} tokens is what a record of vectors does without: ask for"
        " single rows of it, scores.at(query, layer)."
    )


def one_hot(record: VectorRecord, query: int) -> Float[Tensor, " query"]:
    """A row that begins at one query."""
    row = torch.zeros(record.shape[2])
    row[query] = 1.0
    return row


def carried_row(record: VectorRecord, layer: int, row: Float[Tensor, " query"]) -> Float[Tensor, "head key"]:
    """What a row at the queries of one layer becomes at its keys, head by head."""
    return carry(record.layer(layer), row.expand(1, record.shape[1], -1))[0]


def raw_row(
    record: VectorRecord, heads: Heads, layer: int, row: Float[Tensor, " query"], by: Carry = carry
) -> Float[Tensor, " key"]:
    """A row times the pooled weights of one layer."""
    return _pooled_rows(record.layer(layer), heads, row.unsqueeze(0), by, _as_they_are)[0]


def _pooled_rows(
    layer: LayerVectors,
    heads: Heads,
    given: Float[Tensor, "row query"],
    by: Carry,
    change: Callable[[Float[Tensor, "some_query some_key"]], Float[Tensor, "some_query some_key"]],
) -> Float[Tensor, "row key"]:
    """Rows times the pooled weights of one layer; of the largest over heads, as `change` has them."""
    if heads == "max" and by is carry:
        return _largest(layer, given, change)
    return _pooled(by(layer, given.unsqueeze(1).expand(-1, layer.shape[0], -1)), heads)


def rolled_down(
    record: VectorRecord,
    heads: Heads,
    residual: float,
    row: Float[Tensor, " token"],
    layers: range,
    by: Carry = carry,
) -> Float[Tensor, " token"]:
    """A row of the rollout, from the last of these layers down to the first."""
    for layer in reversed(layers):
        mixed = _pooled_rows(record.layer(layer), heads, row.unsqueeze(0), by, _brought_to_one)[0]
        row = (1 - residual) * mixed + residual * row
    return row


def rolled_rows(
    record: VectorRecord, heads: Heads, residual: float, start: int, queries: Sequence[int], by: Carry = carry
) -> Float[Tensor, "layer some_query token"]:
    """The rows of these queries in the rollout of every layer, all in one sweep down."""
    count, _, tokens, _ = record.shape
    own = torch.stack([one_hot(record, query) for query in queries])
    waiting = own.new_zeros(0, tokens)
    for layer in reversed(range(count)):
        if layer < start:
            waiting = torch.cat([waiting, own])
            continue
        # those that begin here are few and cost their rows alone; those from above ask all queries
        parts = [
            (1 - residual) * _pooled_rows(record.layer(layer), heads, given, by, _brought_to_one) + residual * given
            for given in (waiting, own)
            if len(given)
        ]
        waiting = torch.cat(parts)
    return waiting.reshape(count, len(own), tokens).flip(0)


def rolled_heads(record: VectorRecord, heads: Heads, residual: float, start: int) -> Float[Tensor, "layer head token"]:
    """The rollout of the read-out by each head of each layer, with the layers below pooled (abnar2020, A.1)."""
    count, of_heads, tokens, _ = record.shape
    waiting = record.readout.new_zeros(0, tokens)
    for layer in reversed(range(count)):
        vectors = record.layer(layer)
        own = (1 - residual) * carry(vectors, record.readout.expand(1, of_heads, -1))[0] + residual * record.readout
        if layer >= start and len(waiting):
            below = _pooled(carry(vectors, waiting.unsqueeze(1).expand(-1, of_heads, -1)), heads)
            waiting = (1 - residual) * below + residual * waiting
        waiting = torch.cat([waiting, own])
    return waiting.reshape(count, of_heads, tokens).flip(0)


def sweep_down(record: VectorRecord) -> tuple[Float[Tensor, " token"], Float[Tensor, "layer head token"]]:
    """The rollout of the read-out with heads averaged and half a residual, and layer-wise tracing, in one sweep.

    Two rows cost what one does, so whoever asks for one of them has the other when it is asked for next.
    """
    of_heads = record.shape[1]
    rolled, traced, layers = record.readout, record.readout.expand(of_heads, -1), []
    for layer in reversed(range(record.shape[0])):
        both = carry(record.layer(layer), torch.stack([rolled.expand(of_heads, -1), traced]))
        rolled, traced = (rolled + both[0].mean(0)) / 2, both[1]
        layers.append(traced)
    return rolled, torch.stack(layers[::-1])


def sweep_once(record: VectorRecord) -> tuple[Float[Tensor, " token"], Float[Tensor, "layer head token"]]:
    """What `sweep_down` finds, computed when it is first asked for."""
    if record not in _swept:
        _swept[record] = sweep_down(record)
    return _swept[record]


def _pooled(carried: Float[Tensor, "row head key"], heads: Heads) -> Float[Tensor, "row key"]:
    """One row for all heads, as `pooled_heads` has one map."""
    if heads in ("mean", "max"):
        return carried.mean(1)
    chosen = [heads] if isinstance(heads, int) else heads
    count = carried.shape[1]
    if isinstance(chosen, str) or not chosen or not all(-count <= head < count for head in chosen):
        raise BadInput(f"heads={heads!r} is not mean, max, or heads between 0 and {count - 1}.")
    return carried[:, list(chosen)].mean(1)


def _largest(
    layer: LayerVectors,
    given: Float[Tensor, "row query"],
    change: Callable[[Float[Tensor, "some_query some_key"]], Float[Tensor, "some_query some_key"]],
) -> Float[Tensor, "row key"]:
    """Rows times the largest weights over heads, as they are for raw attention or changed for what joins layers."""
    found = given.new_zeros(len(given), layer.shape[2])
    for queries, keys, weights in _blocks_from(layer, (given != 0).any(0)):
        found[:, keys] += given[:, queries] @ change(weights.amax(0))
    return found


def _blocks_from(
    layer: LayerVectors, row: Shaped[Tensor, " query"]
) -> Iterable[tuple[slice | list[int], slice, Float[Tensor, "head some_query some_key"]]]:
    """The weights that a row meets: of a few queries their rows, else block by block."""
    giving = row.nonzero().flatten().tolist()
    return [(giving, slice(None), rows(layer, giving))] if len(giving) <= len(row) // FEW else blocks(layer)


def _as_they_are(largest: Float[Tensor, "some_query some_key"]) -> Float[Tensor, "some_query some_key"]:
    return largest


def _brought_to_one(largest: Float[Tensor, "some_query some_key"]) -> Float[Tensor, "some_query some_key"]:
    sums = largest.sum(-1, keepdim=True)
    return largest / sums.masked_fill(sums == 0, 1.0)


# ---- even attention, as a reference


def carry_evenly(layer: LayerVectors, amounts: Float[Tensor, "row head query"]) -> Float[Tensor, "row head key"]:
    """The same where every query attends evenly to all keys it may see."""
    if layer.bias is not None:
        raise BadInput(
            "What this model's queries see is no one span of keys, so there is no even attention to compare."
        )
    first, last = keys_seen(layer)
    return handed_over(layer, amounts.double() / (last - first + 1))


def scores_without_matrix(
    record: VectorRecord,
    method: str,
    row: Callable[[Carry, int, Float[Tensor, " query"]], Float[Tensor, " key"]],
    normalize: str | None,
    compute_per_head: Callable[[], Float[Tensor, "layer head key"]] | None = None,
    known: Float[Tensor, " key"] | None = None,
    layer: int = -1,
    compute_rows: Callable[[Carry], Float[Tensor, "layer some_query key"]] | None = None,
    queries: Sequence[int] = (),
) -> TokenScores:
    """The scores of a method that says what a row becomes from a layer down; `known` where they were computed.

    Of some `queries` the rows at all layers are computed together, when the first of them is asked for.
    """
    if normalize not in (None, "receptive_field"):
        raise BadInput(f'normalize is None or "receptive_field" here, not {normalize!r}.')
    place = checked_layer(record, layer)

    def at(layer: int, given: Float[Tensor, " query"]) -> Float[Tensor, " key"]:
        plain = row(carry, layer, given)
        return plain if normalize is None else over(plain, row(carry_evenly, layer, given))

    found = known if known is not None and normalize is None else at(place, record.readout)
    scores = scores_by_rows(record, method, at, found, () if method == "raw" else lean_to_first(record, found))
    scores = scores if compute_per_head is None else replace(scores, compute_per_head=compute_per_head)
    if compute_rows is None:
        return scores

    @cache
    def chosen() -> Float[Tensor, "layer some_query key"]:
        plain = compute_rows(carry)
        return plain if normalize is None else over(plain, compute_rows(carry_evenly))

    def at_query(layer: int, query: int) -> Float[Tensor, " key"]:
        known = query in queries
        return chosen()[layer, list(queries).index(query)] if known else at(layer, one_hot(record, query))

    return replace(scores, compute_row=at_query, compute_map=lambda: _map_of_some(record, queries, chosen))


def _map_of_some(
    record: VectorRecord, queries: Sequence[int], rows: Callable[[], Float[Tensor, "layer some_query key"]]
) -> Float[Tensor, "layer query key"]:
    """A map with these rows, the others NaN, as a full record has it, where it is small."""
    layers, _, tokens, keys = record.shape
    if layers * tokens * keys > LARGEST_MAP:
        return refuse_map(record)
    whole = torch.full((layers, tokens, keys), torch.nan)
    whole[:, list(queries)] = rows().float()
    return whole


def scores_by_rows(
    record: VectorRecord,
    method: str,
    row: Callable[[int, Float[Tensor, " query"]], Float[Tensor, " key"]],
    scores: Float[Tensor, " key"],
    warnings: tuple[str, ...] = (),
) -> TokenScores:
    """The scores of a method that has no map here, but says what a row becomes from a layer down."""
    return scores_of(
        record,
        method,
        scores,
        warnings=warnings,
        compute_map=lambda: refuse_map(record),
        compute_row=lambda layer, query: row(layer, one_hot(record, query)),
    )


# ---- what speaks for the answer


def speak_down(record: VectorRecord, layer: int, row: Float[Tensor, " token"]) -> Float64[Tensor, " token"]:
    """What a row of R - I has of attention that speaks for the answer (Chefer et al. 2021): R_l = (I + Ā_l) R_{l-1}.

    Ā = mean_h((∇A ⊙ A)⁺), block by block: the gradient at a weight is that of what its head puts out, times the value.
    """
    if record.output_gradients is None or record.group_values is None:
        raise BadInput('This needs gradients: take the record with model.record(text, keep="vectors", gradients=True).')
    gathered = torch.zeros_like(row, dtype=torch.float64)  # apart from the row's own one, which would outshine it
    for below in reversed(range(layer + 1)):
        gradients = record.output_gradients[below].float()
        values = of_heads(record.group_values[below].float(), record.shape[1])
        held, found = row + gathered, torch.zeros_like(gathered)
        for queries, keys, weights in _blocks_from(record.layer(below), held):
            speaking = weights.mul_(gradients[:, queries] @ values[:, keys].mT).clamp_min_(0).mean(0)
            found[keys] += held[queries] @ speaking.double()
        gathered += found
    return gathered


# ---- what reaches the output


def value_lengths(record: VectorRecord, layer: int) -> Float[Tensor, "head key"]:
    """The length of each key's value behind the output projection, from values before it: the root of v W W' v'."""
    values, products = _values(record, layer)
    return torch.einsum("hkv,hvw,hkw->hk", values, products, values).clamp_min(0).sqrt()


def carried_lengths(
    record: VectorRecord, heads: Heads, layer: int, row: Float[Tensor, " query"]
) -> Float[Tensor, " key"]:
    """A row times the weights of one layer, each times the length of what its key gives."""
    if heads == "max":
        raise BadInput('heads="max" needs whole maps: choose heads="mean", one head or some for a record of vectors.')
    return _pooled((carried_row(record, layer, row) * value_lengths(record, layer)).unsqueeze(0), heads)[0]


def effective_basis(record: VectorRecord, layer: int) -> Float[Tensor, "head key value_width"]:
    """What spans what the projected values span, and has their products with each other: V (W W')^(1/2)."""
    values, products = _values(record, layer)
    squares, directions = torch.linalg.eigh(products.double())
    roots: Tensor = directions * squares.clamp_min(0).sqrt().unsqueeze(-2) @ directions.mT
    return values.double() @ roots


def _values(
    record: VectorRecord, layer: int
) -> tuple[Float[Tensor, "head key value_width"], Float[Tensor, "head value_width value_width"]]:
    if record.group_values is None or record.value_products is None:
        raise BadInput('This needs values: take the record with model.record(text, keep="vectors", values=True).')
    values = record.group_values[layer].float()
    return of_heads(values, record.shape[1]), record.value_products[layer].float()


def rows_of_some(record: VectorRecord, layer: int, queries: list[int]) -> Float[Tensor, "head some_query key"]:
    """The weights of a few queries; of many they would be the matrix itself."""
    if len(queries) > MOST_EFFECTIVE:
        raise BadInput(
            f"Effective attention without a map is for at most {MOST_EFFECTIVE} queries, and this model reads its"
            f" answer at {len(queries)}: ask for single rows, scores.at(query, layer)."
        )
    return rows(record.layer(layer), queries)
