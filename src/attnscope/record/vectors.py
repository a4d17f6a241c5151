"""Attention without the matrix: weights as rows, blocks and products of queries and keys, as flash attention has them.

A weight is exp(score - normalizer): the score of a query and a key, and the log-sum-exp of all scores of the query, one
number, which is kept. So any row, any block and any product with weights can be computed by itself, exactly, and memory
grows with the tokens and not with their square.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

BLOCK = 2**20
"""How many weights of all heads are computed at a time: what stays in the caches of a processor."""
TILE, QUERIES_OF_TILE = 2**18, 128
"""Where rows need not be whole, so many weights are computed at a time, those of so many queries on some keys: small
enough for the allocator to give the same memory again, which larger ones have cleared anew each time."""
KEYS_TOGETHER = 64
"""The keys of a tile are a multiple of so many: rows that begin askew in memory take a tenth longer."""
NOTHING = -1e4
"""The logarithm of what is not there: its exponential is exactly zero in float32, and it can be added to scores."""
FEATURES = 8
"""Fused kernels are quickest with vectors of a multiple of so many numbers."""
FEW = 32
"""Rows of less than one in so many queries are computed by themselves."""


def of_heads(groups: Float[Tensor, "group key width"], heads: int) -> Float[Tensor, "head key width"]:
    """The vectors of each head, where heads in a row share those of a group."""
    return groups.repeat_interleave(heads // groups.shape[0], 0)


@dataclass(frozen=True, eq=False)
class LayerVectors:
    """What decides the attention of one layer on one text."""

    queries: Float[Tensor, "head query head_width"]
    keys: Float[Tensor, "group key head_width"]
    """Heads in a row share the keys of a group."""
    normalizers: Float[Tensor, "head query"]
    """The log-sum-exp of the scores of each query."""
    scaling: float
    softcap: float | None = None
    back: int | None = None
    """How many tokens back a query sees; None: all."""
    ahead: int | None = None
    """How many tokens ahead a query sees: none where attention is causal; None: all."""
    bias: Float[Tensor, "#head query key"] | None = None
    """What is added to the scores: -inf where a key is hidden otherwise than by `back` and `ahead`."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """How many heads, queries and keys there are."""
        return self.queries.shape[0], self.queries.shape[1], self.keys.shape[1]

    @property
    def is_plain(self) -> bool:
        """Whether a fused kernel knows this attention: all keys, or all up to the query itself."""
        causal = self.ahead == 0 and self.back is None and self.bias is None and self.shape[1] == self.shape[2]
        return self.softcap is None and (self.sees_all or causal)

    @property
    def sees_all(self) -> bool:
        """Whether every query sees every key."""
        return self.back is None and self.ahead is None and self.bias is None


def scores_of_block(
    layer: LayerVectors,
    queries: slice | Sequence[int],
    keys: slice = slice(None),
    less: Float[Tensor, "head some_query"] | None = None,
) -> Float[Tensor, "head some_query some_key"]:
    """softcap(scaling * queries @ keys.T) + bias, -inf where a key is hidden; `less` is taken away from each row."""
    heads, query_count, key_count = layer.shape
    groups = layer.keys.shape[0]
    asking = layer.queries[:, queries].float()
    together = asking.reshape(groups, -1, asking.shape[-1])  # the heads of a group ask the same keys at once
    answering = layer.keys[:, keys].float()
    shape = (heads, asking.shape[1], answering.shape[1])
    if layer.softcap is None and less is not None:  # in one pass
        taken = less.reshape(groups, -1, 1)
        scores = torch.baddbmm(taken, together, answering.mT, beta=-1, alpha=layer.scaling).reshape(shape)
        less = None
    else:
        scores = (together @ answering.mT).reshape(shape).mul_(layer.scaling)
    if layer.softcap is not None:
        scores = scores.div_(layer.softcap).tanh_() * layer.softcap  # what a gradient needs of it stays as it is
    if less is not None:
        scores = scores.sub_(less.unsqueeze(-1))
    if layer.bias is not None:
        scores = scores + layer.bias[:, queries][..., keys].to(scores)
    if _surely_sees(layer, queries, keys):
        return scores
    hidden = _hidden(layer, torch.arange(query_count)[queries], torch.arange(key_count)[keys])
    return scores if hidden is None else scores.masked_fill_(hidden.to(scores.device), -torch.inf)


def _surely_sees(layer: LayerVectors, queries: slice | Sequence[int], keys: slice) -> bool:
    """Whether all of these queries see all of these keys, as far as two ends tell: most tiles are whole."""
    if layer.back is None and layer.ahead is None:
        return True
    if not isinstance(queries, slice) or None in (queries.start, queries.stop, keys.start, keys.stop):
        return False
    sees_ahead = layer.ahead is None or keys.stop - 1 <= queries.start + layer.ahead
    return sees_ahead and (layer.back is None or keys.start >= queries.stop - 1 - layer.back)


def _hidden(layer: LayerVectors, queries: Tensor, keys: Tensor) -> Bool[Tensor, "some_query some_key"] | None:
    """Which of these keys each of these queries does not see, or None where it sees them all."""
    if not len(queries) or not len(keys):
        return None
    ahead = keys - queries.unsqueeze(-1)
    hidden = None
    if layer.ahead is not None and int(keys[-1]) > int(queries.min()) + layer.ahead:
        hidden = ahead > layer.ahead
    if layer.back is not None and int(keys[0]) < int(queries.max()) - layer.back:
        hidden = -ahead > layer.back if hidden is None else hidden | (-ahead > layer.back)
    return hidden


def visible(layer: LayerVectors, queries: Sequence[int]) -> Bool[Tensor, "some_query key"]:
    """Which keys some queries see."""
    chosen = torch.tensor(list(queries))
    seen = torch.ones(len(chosen), layer.shape[2], dtype=torch.bool)
    hidden = _hidden(layer, chosen, torch.arange(layer.shape[2]))
    seen = seen if hidden is None else seen & ~hidden
    return seen if layer.bias is None else seen & (layer.bias[:, chosen] > -torch.inf).any(0)


def keys_seen(layer: LayerVectors) -> tuple[Int[Tensor, " query"], Int[Tensor, " query"]]:
    """The first and the last key that each query sees by how far it sees, whatever a bias may hide between them."""
    _, queries, keys = layer.shape
    places = torch.arange(queries)
    first = (places - (queries if layer.back is None else layer.back)).clamp(0, keys)
    return first, (places + (keys if layer.ahead is None else layer.ahead)).clamp_max(keys - 1)


def handed_over(layer: LayerVectors, amounts: Float64[Tensor, "row head query"]) -> Float64[Tensor, "row head key"]:
    """What keys have when each query gives its amount to every key it sees: running sums of begins and ends."""
    first, last = keys_seen(layer)
    changes = torch.zeros(*amounts.shape[:2], layer.shape[2] + 1, dtype=torch.float64)
    return changes.index_add_(-1, first, amounts).index_add_(-1, last + 1, -amounts).cumsum(-1)[..., :-1]


def rows(layer: LayerVectors, queries: Sequence[int]) -> Float[Tensor, "head some_query key"]:
    """The weights of some queries over all keys."""
    return _weights(layer, list(queries))


def _weights(
    layer: LayerVectors, queries: slice | Sequence[int], keys: slice = slice(None)
) -> Float[Tensor, "head some_query some_key"]:
    """exp(score - normalizer); a query that sees nothing has a row of zeros."""
    return scores_of_block(layer, queries, keys, layer.normalizers[:, queries].nan_to_num(neginf=0.0)).exp_()


def spans(layer: LayerVectors) -> Iterator[tuple[slice, slice]]:
    """Blocks of queries, each with the keys it may see, of at most `BLOCK` weights."""
    heads, queries, keys = layer.shape
    step = max(1, BLOCK // (heads * max(1, keys)))
    if layer.back is not None or layer.ahead is not None:
        step = max(step, min(64, queries))
    for first in range(0, queries, step):
        last = min(first + step, queries)
        begin = 0 if layer.back is None else max(0, first - layer.back)
        end = keys if layer.ahead is None else min(keys, last + layer.ahead)
        yield slice(first, last), slice(begin, end)


def blocks(layer: LayerVectors) -> Iterator[tuple[slice, slice, Float[Tensor, "head some_query some_key"]]]:
    """All weights, block by block: the queries, the keys they may see, and the weights between them."""
    for queries, keys in spans(layer):
        yield queries, keys, _weights(layer, queries, keys)


def tiles(layer: LayerVectors) -> Iterator[tuple[slice, slice]]:
    """The same of some queries and some keys at a time: what stays in the cache whatever the length of a text."""
    heads, queries, keys = layer.shape
    wide = max(1, round(TILE / (heads * QUERIES_OF_TILE * KEYS_TOGETHER))) * KEYS_TOGETHER
    for first in range(0, queries, QUERIES_OF_TILE):
        last = min(first + QUERIES_OF_TILE, queries)
        begin = 0 if layer.back is None else max(0, first - layer.back)
        end = keys if layer.ahead is None else min(keys, last + layer.ahead)
        for start in range(begin, end, wide):
            yield slice(first, last), slice(start, min(start + wide, end))


def normalizers_of(layer: LayerVectors) -> Float[Tensor, "head query"]:
    """The log-sum-exp of the scores of each query; what `layer` has as its own is not looked at."""
    if layer.is_plain and layer.queries.device.type == "cpu":
        return fused_attention(layer.queries, layer.keys, layer.keys, layer.ahead == 0, layer.scaling)[1].float()
    return torch.cat([scores_of_block(layer, queries, keys).logsumexp(-1) for queries, keys in spans(layer)], 1)


def fused_attention(
    queries: Float[Tensor, "head query width"],
    keys: Float[Tensor, "group key width"],
    values: Float[Tensor, "group key width"],
    causal: bool,
    scaling: float,
) -> tuple[Float[Tensor, "head query width"], Float[Tensor, "head query"]]:
    """What fused attention puts out on a processor, and the log-sum-exp of the scores of each query."""
    # vectors that do not lie together in memory are read wrongly, without a word
    together = [vectors if vectors.stride(-1) == 1 else vectors.contiguous() for vectors in (queries, keys, values)]
    batches = [vectors.unsqueeze(0) for vectors in together]
    output, normalizers = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(  # noqa: SLF001 -- no other name
        *batches, 0.0, causal, scale=scaling
    )
    return output[0], normalizers[0]


# ---- what rows of amounts become one layer below: amounts @ weights


def carry(layer: LayerVectors, amounts: Float[Tensor, "row head query"]) -> Float[Tensor, "row head key"]:
    """Amounts at the queries of each head, handed to the keys by its weights: amounts @ weights, for several rows.

    From a few queries by their rows. Else by a fused kernel, where it knows this attention and has several threads to
    share: one call has one meeting of its threads, where tiles have thousands, which on a busy machine cost more than
    all they save. On one thread tiles are a third quicker, since the kernel multiplies values that nobody needs.
    """
    giving = (amounts != 0).any(0).any(0).nonzero().flatten().tolist()
    if len(giving) <= layer.shape[1] // FEW:
        given = amounts[..., giving].float().transpose(0, 1)
        return (given @ rows(layer, giving)).transpose(0, 1)
    if layer.is_plain and amounts.device.type == "cpu" and torch.get_num_threads() > 1:
        room = _wide(layer.queries.shape[-1] + 1)
        return torch.cat([_carry_fused(layer, some, room) for some in amounts.float().split(room)])
    given = amounts.float().transpose(0, 1)
    carried = given.new_zeros(*given.shape[:2], layer.shape[2])
    for queries, seen in tiles(layer):
        carried[..., seen] += given[..., queries] @ _weights(layer, queries, seen)
    return carried.transpose(0, 1)


def _wide(width: int) -> int:
    return math.ceil(width / FEATURES) * FEATURES


def _carry_fused(
    layer: LayerVectors, amounts: Float[Tensor, "row head query"], width: int
) -> Float[Tensor, "row head key"]:
    """The same in one call of fused attention in which keys ask and queries answer.

    With b_q = sum over rows of |amounts|, what key k gets together is sum_q b_q exp(s_qk - z_q), the exponential of the
    log-sum-exp over queries of s_qk + log b_q - z_q: what the kernel finds beside its output, if the query vectors have
    log b_q - z_q as one more feature and the key vectors a one. Its output then is the mean of whatever the queries
    hold, by these very weights: they hold each row's part of b_q, so as many rows as vectors are wide cost one pass.
    Order is reversed, so that a mask that hides later keys from queries hides earlier queries from keys.
    """
    heads, queries, keys = layer.shape
    together = amounts.abs().sum(0)
    exponents = torch.where(together > 0, together.log() - layer.normalizers, NOTHING).clamp_min(NOTHING)
    parts = (amounts / together.masked_fill(together == 0, 1.0)).permute(1, 2, 0)
    asked = of_heads(layer.keys.float(), heads)
    answers = torch.zeros(heads, queries, width)
    answers[..., : asked.shape[-1]] = layer.queries.float() * layer.scaling
    answers[..., asked.shape[-1]] = exponents
    asking = torch.zeros(heads, keys, width)
    asking[..., : asked.shape[-1]] = asked
    asking[..., asked.shape[-1]] = 1.0
    held = torch.nn.functional.pad(parts, (0, width - parts.shape[-1]))
    causal = layer.ahead == 0
    if causal:
        asking, answers, held = asking.flip(1), answers.flip(1), held.flip(1)
    means, logarithms = fused_attention(asking, answers, held, causal, 1.0)
    carried = means[..., : len(amounts)] * logarithms.exp().unsqueeze(-1)
    return (carried.flip(1) if causal else carried).permute(2, 0, 1)
