// How much room views take: the pure functions of head_lines.js, neuron_strips.js and text_document.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LinesByRow, fadedShare, inBands, listed, panelHeight } from "../../../src/attnscope/views/head_lines.js";
import { stripLayout } from "../../../src/attnscope/views/neuron_strips.js";
import { layOut, lineOf, stripOf } from "../../../src/attnscope/views/text_document.js";

test("up to 160 tokens every row is in sight", () => {
  assert.deepEqual(
    [1, 40, 160, 161, 500].map((rows) => panelHeight(rows, 24)),
    [24, 960, 3840, 600, 600],
  );
});

test("lines of special tokens and sinks get fainter where many run together", () => {
  assert.deepEqual(
    [8, 32, 64, 160].map((rows) => fadedShare(rows).toFixed(3)),
    ["0.100", "0.100", "0.050", "0.020"],
  );
});

test("strips of dimensions are wide enough to be read, or only the products are left", () => {
  for (const dimensions of [8, 16, 32, 64, 128])
    for (let width = 120; width < 1400; width += 20) {
      const { strip, whole, narrow } = stripLayout(dimensions, width);
      if (!narrow) assert.ok(strip >= Math.min(72, 8 * dimensions) && strip / dimensions >= 1.5);
      assert.ok(whole <= width, `${dimensions} dimensions in ${width}`);
    }
  assert.equal(stripLayout(16, 316).narrow, true);
  assert.equal(stripLayout(16, 700).narrow, undefined);
});

test("a document has lines of whole words, and a word wider than a line is broken", () => {
  const units = [false, true, false, false, true, true, false].map((join) => ({ join }));
  const widths = [30, 30, 50, 60, 60, 60, 20];
  const { starts, left } = layOut(
    units,
    (place) => widths[place],
    100,
    (place) => place === 5,
  );
  // “0 1” leaves no room for 2; 3, 4 and 5 are one word, wider than a line; 5 ends a line
  assert.deepEqual(starts, [0, 2, 3, 4, 5, 6]);
  assert.deepEqual([...left], [0, 30, 0, 0, 0, 0, 0]);
  assert.deepEqual(
    [0, 1, 2, 5, 6].map((place) => lineOf(starts, place)),
    [0, 0, 1, 4, 5],
  );
});

test("a strip has in each place what is farthest from 0 there", () => {
  const layout = { starts: [0, 2, 3, 4], left: Float32Array.of(0, 50, 0, 0), width: Float32Array.of(50, 50, 100, 100), room: 100 };
  const cells = stripOf(layout, [0.25, -0.5, 0.125, -1], 2);
  assert.equal(cells.length, 64);
  assert.deepEqual([cells[0], cells[15], cells[16], cells[31], cells[32], cells[63]], [0.25, 0.25, -0.5, -0.5, -1, -1]);
});

test("lines are found by the rows they begin and end at", () => {
  const lines = [
    [2, 0],
    [0, 1],
    [2, 2],
    [1, 0],
  ].map(([query, key]) => ({ query, key, head: 0, weight: 1 }));
  assert.deepEqual(new LinesByRow(lines, "query", 3).between(1, 3), [lines[3], lines[0], lines[2]]);
  assert.deepEqual(new LinesByRow(lines, "key", 3).between(0, 1), [lines[0], lines[3]]);
  assert.deepEqual([...inBands(Float32Array.of(1, 3, 2, 0, 5), 2)], [3, 5]);
  assert.equal(listed([0, 1, 2, 5, 7, 8]), "0–2, 5, 7–8");
});
