// How much room the head and neuron views take: the pure functions of head_lines.js and neuron_strips.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fadedShare, panelHeight } from "../../../src/attnscope/views/head_lines.js";
import { stripLayout } from "../../../src/attnscope/views/neuron_strips.js";

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
