// The attention graph of the flow view: maximum flow with its cut, edges between words, and which of them are drawn.

import assert from "node:assert/strict";
import { test } from "node:test";

import { betweenUnits, drawnEdges, maximumFlow } from "../../../src/attnscope/views/attention_graph.js";
import { saturationWords } from "../../../src/attnscope/views/attention_words.js";
import { loudest } from "../../../src/attnscope/views/units.js";

const TWO = [Float64Array.from([3, 1, 2, 2]), Float64Array.from([2, 2, 0, 4])];

test("a flow is as large as its cut", () => {
  const { value, flow, cut } = maximumFlow(TWO, 2, 0, 0, false);
  assert.equal(value, 4);
  assert.deepEqual([...flow[1]], [2, 2, 0, 0]);
  assert.deepEqual([flow[0][0], flow[0][2]], [2, 2]);
  assert.equal(
    cut.reduce((sum, { capacity }) => sum + capacity, 0),
    value,
  );
  assert.ok(
    cut.every(({ layer, query }) => layer === 1 && query === 0),
    "the cut is the one nearest the source",
  );
});

test("in a causal graph nothing flows to what comes later", () => {
  assert.deepEqual(maximumFlow(TWO, 2, 0, 1, true), { value: 0, flow: [new Float64Array(4), new Float64Array(4)], cut: [] });
});

test("attention of a word is the mean over its pieces, and what passes is their sum", () => {
  const edges = { layers: [Float64Array.from([1, 0, 0, 0.5, 0.5, 0, 0.25, 0.25, 0.5])] };
  const units = [{ places: [0] }, { places: [1, 2] }];
  assert.deepEqual([...betweenUnits(edges, units, 3)[0]], [1, 0, 0.75, 1.25]);
  assert.deepEqual([...betweenUnits(edges, units, 3, () => null)[0]], [1, 0, 0.375, 0.625]);
  assert.deepEqual([...betweenUnits(edges, units, 3, () => [2])[0]], [0, 0, 0.25, 0.75]);
});

test("what cannot be reached, is below the threshold or out of sight is not drawn", () => {
  const grids = [Float64Array.from([0.5, 0.5, 1, 0]), Float64Array.from([0.9, 0.1, 0.5, 0.5])];
  const given = { shown: [0, 1], threshold: 0.2, reached: [0], quiet: null, byLayer: false };
  const { edges, largest, left } = drawnEdges(grids, 2, given);
  assert.deepEqual(
    edges.map(({ layer, query, key }) => [layer, query, key]),
    [
      [1, 0, 0],
      [0, 0, 0],
      [0, 0, 1],
    ],
  );
  assert.deepEqual([largest, left.below], [0.9, 0.1]);
});

test("scales leave out what stays on its token or rests on a sink, and may be one for each layer", () => {
  const grids = [Float64Array.from([0.4, 0.08, 0.02, 0.2, 0.1, 0, 0, 0, 0.2]), Float64Array.from([0.5, 0.3, 0.2, 0, 0, 0, 0, 0, 0])];
  const given = { shown: [0, 1, 2], threshold: 0, reached: null, quiet: [true, false, false] };
  assert.deepEqual(drawnEdges(grids, 3, { ...given, byLayer: false }).ends, [0.3, 0.3]);
  assert.deepEqual(drawnEdges(grids, 3, { ...given, byLayer: true }).ends, [0.08, 0.3]);
  assert.deepEqual(drawnEdges(grids, 3, { ...given, quiet: null, byLayer: false }).ends, [0.5, 0.5]);
  const faint = grids.map((grid) => grid.map((value) => value * 1e-6));
  assert.deepEqual(drawnEdges(faint, 3, { ...given, byLayer: true }).ends, [1e-4, 1e-4]);
  const { edges } = drawnEdges(grids, 3, { ...given, byLayer: true });
  assert.deepEqual(
    edges.filter(({ layer }) => layer === 0).map(({ query, key, rests }) => [query, key, rests]),
    [
      [0, 0, true],
      [0, 1, false],
      [0, 2, false],
      [1, 0, true],
      [1, 1, true],
      [2, 2, true],
    ],
  );
});

test("a long text keeps what is asked for and then the loudest, in its order", () => {
  assert.deepEqual(loudest([0.1, 0.5, 0.2, 0.4], 2, [0]), [0, 1]);
  assert.deepEqual(loudest([0.2, 0.2, 0.2], 2), [0, 1]);
});

test("what is said of limits counts the flows from the source, and whether the scores view speaks of the same", () => {
  const counted = { name: "“it”", layer: 5, of: 50, met: 49, given: 9, taken: 40 };
  const most = saturationWords(counted, 1);
  assert.match(most, /Of the 50 flows from “it” at layer 5 .* 49 \(98.0 %\) are only as large as one of their two ends allows/);
  assert.match(most, /gives away: 9; .* at the first layer: 40\)\. Such flows tell nothing of the way between: little can be read/);
  assert.match(most, /the scores view speaks of the same flows/);
  const one = saturationWords({ ...counted, met: 1, given: 1, taken: 0 }, 0.02);
  assert.match(one, /1 \(2.0 %\) is only .* the others do\. The model reads 2.0 % of its answer from here/);
  assert.match(saturationWords({ ...counted, met: 0, given: 0, taken: 0 }, 1), /allows\. So all of them tell something/);
});
