// The attention graph of the flow view: maximum flow with its cut, edges between words, and which of them are drawn.

import assert from "node:assert/strict";
import { test } from "node:test";

import { betweenUnits, drawnEdges, maximumFlow } from "../../../src/attnscope/views/attention_graph.js";

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
  const given = { shown: [0, 1], threshold: 0.2, reached: [0], sideways: false };
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
