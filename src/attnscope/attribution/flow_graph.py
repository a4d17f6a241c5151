"""The graph that attention flows through, layer below layer, and its maximum flows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..progress import tell
from . import flow_kernels as kernels

PART_WORK = 2**26
"""Pairs x arcs that are solved between two words on how far it is: about a second."""


@dataclass(frozen=True)
class FlowGraph:
    """The layered graph: integer capacities, and whether queries see only what stands before them."""

    capacity: Int[np.ndarray, "layer token token"]
    causal: bool

    @classmethod
    def of(cls, maps: Float[Tensor, "layer token token"], causal: bool) -> "FlowGraph":
        """The graph of maps; what is negative (effective attention) is clipped, and its row renormalised."""
        positive = maps.double().clamp_min(0)
        positive = positive / positive.sum(-1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
        exact = torch.where((maps < 0).any(-1, keepdim=True), positive, maps.double())
        return cls(np.rint(exact.numpy() * kernels.SCALE).astype(np.int64), causal)

    def cuts(self, layer: int) -> tuple[Int[np.ndarray, "query token"], Int[np.ndarray, "query token"]]:
        """The trivial cuts: what each query of a layer can give, and what each token can take in the first layer."""
        return kernels.trivial_cuts(self.capacity, layer, self.causal)  # type: ignore[no-any-return]

    def rows(self, layer: int, queries: Sequence[int]) -> Int[np.ndarray, "query token"]:
        """The maximum flow from these queries at a layer to every token, each pair solved by itself."""
        if layer == 0:
            first: Int[np.ndarray, "query token"] = self.capacity[0][list(queries)]
            return first
        return self.pairs(layer, queries, range(self.capacity.shape[1]))

    def pairs(self, layer: int, queries: Sequence[int], tokens: Sequence[int]) -> Int[np.ndarray, "query token"]:
        """The maximum flow from each of these queries at a layer above the first to each of these tokens."""
        bounds = np.minimum(*self.cuts(layer))
        chosen = np.zeros_like(bounds, dtype=bool)
        places = np.ix_(list(queries), list(tokens))
        chosen[places] = True
        flows: Int[np.ndarray, "query token"] = self._solve(
            layer, chosen & (bounds > 0), np.zeros_like(bounds), bounds
        )[places]
        return flows

    def table(self) -> Int[np.ndarray, "layer query token"]:
        """The maximum flow of every pair at every layer; where bounds from the layer below meet, nothing is solved."""
        layers = [self.capacity[0]]
        for layer in range(1, len(self.capacity)):
            upper, lower = kernels.bounds_from_below(self.capacity, layer, layers[-1], self.causal)
            upper = np.minimum(upper, np.minimum(*self.cuts(layer)))
            # two layers make the upper bound exact: every path has one arc of each, and shares only those
            unsolved = lower < upper - kernels.SLACK if layer > 1 else np.zeros_like(upper, dtype=bool)
            layers.append(self._solve(layer, unsolved, upper, upper))
        return np.stack(layers)

    def _solve(
        self,
        layer: int,
        pairs: np.ndarray,
        otherwise: Int[np.ndarray, "query token"],
        bounds: Int[np.ndarray, "query token"],
    ) -> Int[np.ndarray, "query token"]:
        """The flows of the chosen pairs; `otherwise` holds those of the others."""
        sources, sinks = np.nonzero(pairs)
        flows = otherwise.copy()
        last = np.full_like(sinks, self.capacity.shape[1] - 1)
        lows, highs = (sinks, sources) if self.causal else (np.zeros_like(sinks), last)
        limits = bounds[pairs]
        size = max(PART_WORK // self.capacity[: layer + 1].size, 1)
        solved = []
        for start in range(0, len(sources), size):
            tell(start, len(sources))
            part = slice(start, start + size)
            given = (sources[part], sinks[part], lows[part], highs[part], limits[part])
            solved.append(kernels.solve_pairs(self.capacity, layer + 1, *given))
        flows[pairs] = np.concatenate(solved) if solved else 0
        return flows

    def from_readout(self, readout: Float[Tensor, " token"]) -> Int[np.ndarray, " token"]:
        """The flow to every token from a source above the top, with an arc as wide as the read-out to each query."""
        tokens = self.capacity.shape[1]
        above = np.zeros((1, tokens, tokens), np.int64)
        # the last token stands for the source: it lies among those that any path may visit
        above[0, -1] = np.rint(readout.double().numpy() * kernels.SCALE)
        graph = np.concatenate([self.capacity, above])
        sinks = np.arange(tokens)
        lows = sinks if self.causal else np.zeros_like(sinks)
        last = np.full_like(sinks, tokens - 1)
        bounds = np.minimum(graph[0].sum(0), graph[-1, -1].sum())
        return kernels.solve_pairs(graph, len(graph), last, sinks, lows, last, bounds)  # type: ignore[no-any-return]
