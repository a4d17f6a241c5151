"""The scripts of the views: their pure functions by node's own tests, and how a page puts them together."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from attnscope import AttentionRecord, minimum_cut
from attnscope.attribution.flow_graph import FlowGraph
from attnscope.attribution.flow_kernels import SCALE
from attnscope.attribution.heads import with_residual
from attnscope.errors import BadInput
from attnscope.views import VIEWS, View
from attnscope.views.choices import KEPT
from attnscope.views.page import HERE, module_text, modules_of

TESTS = Path(__file__).parent / "js"
OLDEST = (20, 19)
"""The first version of node that takes a script with imports for what it is."""
SHARED = {
    "attention_graph",
    "attention_words",
    "drawing",
    "frame",
    "host",
    "notebook",
    "text_document",
    "units",
    "view_model",
    "weights",
}
"""Scripts that are no part of one view."""


@pytest.fixture(scope="module")
def node():
    """Node, where it is found and new enough."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is missing: install it to run the tests of the scripts.")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, re.findall(r"\d+", said)[:2])) < OLDEST:
        pytest.skip(f"node {said.strip()} is too old: the tests of the scripts need 20.19 or newer.")
    return found


def test_the_pure_functions_of_the_scripts(node):
    tests = sorted(map(str, TESTS.glob("*.test.mjs")))
    assert tests
    ran = subprocess.run([node, "--test", *tests], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


DRAWN = """
import { readFileSync } from "node:fs";
const { maximumFlow } = await import(process.argv[1]);
const found = JSON.parse(readFileSync(0)).map(({ capacities, tokens, source, sink, causal }) => {
  const { flow } = maximumFlow(capacities.map((layer) => Float64Array.from(layer)), tokens, source, sink, causal);
  return flow.map((layer) => [...layer]);
});
console.log(JSON.stringify(found));
"""


def test_the_page_and_the_printed_figure_draw_the_same_flow(node):
    """A maximum flow may take many ways; both take the same ones."""
    cases, expected = [], []
    for seed in range(16):
        causal, layers, tokens = bool(seed % 2), 2 + seed % 4, 5 + seed
        scores = 2 * torch.randn(layers, 1, 1, tokens, tokens, generator=torch.Generator().manual_seed(seed))
        if causal:
            scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -torch.inf)
        record = AttentionRecord.from_weights(
            list(scores.softmax(-1)), [f"t{place}" for place in range(tokens)], causal
        )
        source, sink = tokens - 1, seed % tokens
        graph = FlowGraph.of(with_residual(record.weights[:, 0].double(), 0.5), causal)
        capacities = graph.capacity.reshape(layers, -1).astype(float).tolist()
        given = {"capacities": capacities, "tokens": tokens, "source": source, "sink": sink, "causal": causal}
        cases.append(given)
        expected.append((minimum_cut(record, source, sink).along * SCALE).reshape(layers, -1).tolist())
    command = [node, "--input-type=module", "-e", DRAWN, (HERE / "attention_graph.js").as_uri()]
    ran = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == expected


def test_a_view_has_at_most_two_scripts():
    scripts = {path.stem for path in HERE.glob("*.js")} - SHARED
    for view in VIEWS:
        own = {script for script in scripts if script.partition("_")[0] == view}
        assert view in own
        assert len(own) <= 2
        scripts -= own
    assert scripts == set()


@pytest.mark.parametrize("name", VIEWS)
def test_a_page_holds_each_script_once_before_those_that_import_it(name):
    modules = modules_of(name)
    assert modules[-1] == name
    assert len(set(modules)) == len(modules)
    text = module_text(name)
    assert not re.search(r"^(import|export default)\b", text, re.MULTILINE)
    assert re.findall(r"^export (?:async )?\w+ (\w+)", text, re.MULTILINE)[-1] == "render"
    for module in modules[:-1]:
        assert text.count(f"const in_{module} = ") == 1
        assert text.index(f"const in_{module} = ") < text.index(f"}} = in_{module};")


@pytest.mark.parametrize("name", VIEWS)
def test_everything_that_a_script_chooses_is_declared(name):
    """In a notebook each is a trait, in a link a value of its kind: what is not declared could not be kept."""
    texts = [(HERE / f"{module}.js").read_text(encoding="utf-8") for module in modules_of(name)]
    chosen = {found for text in texts for found in re.findall(r'frame\.(?:get\("|set\(\{ )(\w+)', text)}
    assert chosen
    assert chosen <= KEPT.keys()


def test_a_view_that_keeps_what_nobody_declared_fails():
    with pytest.raises(BadInput, match=r"keeps mood, which KEPT in .* does not declare"):
        View("head", {}, {"layer": 0, "mood": "sunny"})
