"""The compiled solver of flows: compiled once, whatever it is asked."""

import pytest
import torch

from attnscope.attribution import flow_kernels
from attnscope.attribution.flow import FlowGraph


@pytest.mark.parametrize("causal", [False, True])
def test_one_pair_and_many_are_solved_by_the_same_compiled_code(causal):
    seen = torch.ones(5, 5).tril() if causal else torch.ones(5, 5)
    maps = (torch.arange(75.0).view(3, 5, 5).sin().exp() * seen).double()
    graph = FlowGraph.of(maps / maps.sum(-1, keepdim=True), causal)
    one, many = graph.pairs(2, [4], [2]), graph.rows(2, [3, 4])
    assert one[0, 0] == many[1, 2]
    assert len(flow_kernels.solve_pairs_serially.signatures) == 1
