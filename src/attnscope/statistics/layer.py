"""One layer's attention on a batch, with the sums that several statistics share, each worked out once."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from .batch import Batch
from .pairs import Pairs


@dataclass(frozen=True, eq=False)
class LayerAttention:
    """The weights of one layer on the sentences of a batch; rows of padding may hold anything."""

    batch: Batch
    layer: int
    weights: Float[Tensor, "sentence head query key"]

    @cached_property
    def kept(self) -> Float[Tensor, "sentence head query key"]:
        """The weights that count, 0 elsewhere."""
        mask = self.batch.kept.unsqueeze(1).to(self.weights.device)
        # a product is many times faster than a choice, which is needed only where a model makes NaN of padding
        product = self.weights * mask.to(self.weights.dtype)
        return torch.where(mask, self.weights, 0.0) if product.sum().isnan() else product

    @cached_property
    def given(self) -> Float[Tensor, "sentence head query"]:
        """How much of each row counts."""
        return self.kept.sum(-1)

    @cached_property
    def received(self) -> Float[Tensor, "sentence head key"]:
        """How much each column gets of what counts."""
        return self.kept.sum(-2)

    @cached_property
    def mass(self) -> Float64[Tensor, " head"]:
        """All that counts."""
        return self.given.double().sum((0, 2))

    @cached_property
    def rows(self) -> Float[Tensor, "sentence head query"]:
        """What each row sums to, null attention included: one, but for rounding."""
        return self.weights.sum(-1).masked_fill(~self.batch.real.unsqueeze(1).to(self.weights.device), 0.0)

    @cached_property
    def columns(self) -> Float[Tensor, "sentence head key"]:
        """What each column gets from all rows, null attention included."""
        real = self.batch.real.to(self.weights)
        sums = (real[:, None, None] @ self.weights).squeeze(2)
        if not sums.sum().isnan():
            return sums
        return self.weights.masked_fill(~self.batch.real[:, None, :, None].to(self.weights.device), 0.0).sum(-2)

    def received_by(self, keys: Bool[Tensor, "sentence token"]) -> Float64[Tensor, " head"]:
        """What all rows together give to these columns, null attention included."""
        return (self.columns * keys.unsqueeze(1).to(self.columns)).double().sum((0, 2))

    def along(self, pairs: Pairs) -> Float[Tensor, "pair head"]:
        """What counts of the weights of these pairs."""
        return self.kept[pairs.sentence, :, pairs.query, pairs.key]
