// Tokens, words and the lines between them: the pure functions of units.js, frame.js and head_lines.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { nextHead } from "../../../src/attnscope/views/frame.js";
import { lineAt, linesOf, strongest } from "../../../src/attnscope/views/head_lines.js";
import { eachIn, hasPieces, pinnedAfter, unitRest, unitRows, unitsOf } from "../../../src/attnscope/views/units.js";

const SIDE = {
  texts: ["[CLS]", "play", "ing"],
  joins: [2],
  special: [0],
  sinks: [],
  sentences: null,
  words: [
    { text: "[CLS]", places: [0] },
    { text: "playing", places: [1, 2] },
  ],
};

test("units are tokens or whole words", () => {
  assert.deepEqual(
    unitsOf(SIDE, false).map(({ text, special, join }) => [text, special, join]),
    [
      ["[CLS]", true, false],
      ["play", false, false],
      ["ing", false, true],
    ],
  );
  assert.deepEqual(
    unitsOf(SIDE, true).map(({ text, places, join }) => [text, places, join]),
    [
      ["[CLS]", [0], false],
      ["playing", [1, 2], false],
    ],
  );
  assert.equal(hasPieces(SIDE), true);
});

test("a word gets the sum of its pieces and gives their mean, without those that attend to nothing", () => {
  const values = Float32Array.from([0.5, 0.25, 0.25, 0.25, 0.25, 0.5, 1, 0, 0]);
  const words = unitsOf(SIDE, true);
  const rowsOf = (layer, masked) => {
    const rows = unitRows(layer, 0, [1, 3, 3], words, words, new Set(masked));
    const found = [0, 1].map(() => [0, 0]);
    found.forEach((row, query) => eachIn(rows, query, (key, weight) => (row[key] = weight)));
    return found.flat();
  };
  assert.deepEqual(rowsOf({ values }, []), [0.5, 0.5, 0.625, 0.375]);
  assert.deepEqual(rowsOf({ values }, [2]), [0.5, 0.5, 0.25, 0.75]);
  // the two largest keys of each row, in any order
  const cut = { values: Float32Array.from([0.5, 0.25, 0.5, 0.25, 1, 0]), places: Uint16Array.from([0, 2, 2, 1, 0, 1]) };
  assert.deepEqual(rowsOf(cut, []), [0.5, 0.25, 0.5, 0.375]);
  assert.deepEqual([...unitRest(Float32Array.from([0, 0.5, 0.25]), 0, 3, words, new Set())], [0, 0.375]);
});

test("a click pins, again releases, and with Shift adds", () => {
  assert.deepEqual(pinnedAfter([], [1, 2], false), [1, 2]);
  assert.deepEqual(pinnedAfter([1, 2], [1, 2], false), []);
  assert.deepEqual(pinnedAfter([0], [1, 2], true), [0, 1, 2]);
  assert.deepEqual(pinnedAfter([0, 1, 2], [1, 2], true), [0]);
});

test("arrow keys step round the heads", () => {
  assert.deepEqual([nextHead([0, 2, 5], [5], 1), nextHead([0, 2, 5], [0], -1), nextHead([0, 2, 5], [0, 2], 1)], [0, 5, 0]);
});

test("lines are those from the threshold on, and all that is left out is counted", () => {
  const units = unitsOf(SIDE, false);
  const layer = { values: Float32Array.from([0.75, 0.25, 0, 0.5, 0.5, 0, 0, 0, 1]), rest: null };
  const given = { shape: [1, 3, 3], queries: units, keys: units, shownQueries: [1, 2], shownKeys: [1, 2], masked: new Set() };
  const { lines, left } = linesOf(layer, [0], { ...given, threshold: 0.6, opacity: (weight) => weight, between: () => true });
  assert.deepEqual(lines, [{ query: 1, key: 1, head: 0, weight: 1 }]);
  assert.deepEqual([left.below, left.belowMass, left.hiddenMass, left.mass], [1, 0.5, 0.5, 2]);
});

test("the nearest line is found, and the strongest are kept", () => {
  const lines = [
    { query: 0, key: 0, head: 0, weight: 0.25 },
    { query: 1, key: 1, head: 0, weight: 0.75 },
  ];
  const y = (row) => row * 24;
  assert.equal(lineAt(lines, { x: 50, y: 23 }, y, 100), lines[1]);
  assert.equal(lineAt(lines, { x: 50, y: 12 }, y, 100), null);
  assert.deepEqual(strongest(lines, 1), [lines[1]]);
});
