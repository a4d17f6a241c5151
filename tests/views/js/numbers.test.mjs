// Numbers, colours and places on a map: the pure functions of drawing.js, learning_panel.js, model_maps.js and scores_rows.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  at,
  exact,
  inkOn,
  isBeyond,
  movedPlace,
  percent,
  pointedPlace,
  scaleOf,
  shareOf,
  short,
  thousands,
  written,
} from "../../../src/attnscope/views/drawing.js";
import { nearestPlace, outline, placeUpTo, readingAt, spread, ticksBetween } from "../../../src/attnscope/views/learning_panel.js";
import { sortedPlaces, weightOf } from "../../../src/attnscope/views/model_maps.js";
import { rankAgreement, rankOf } from "../../../src/attnscope/views/scores_rows.js";

test("a number is as exact as its error allows", () => {
  assert.equal(written(0.123456), "0.1235");
  assert.equal(written(-0.5, 0.012), "−0.500 ± 0.012");
  assert.equal(written(NaN), "not measured");
  assert.equal(exact(0.12345, 0.00001), "0.1235");
  assert.equal(exact(0.12345, 0.002), "0.123 ± 0.002");
});

test("a share is never rounded to nothing or to everything", () => {
  assert.deepEqual([0, 0.0001, 0.5, 0.9999, 1].map(percent), ["0.0 %", "< 0.1 %", "50.0 %", "> 99.9 %", "100.0 %"]);
});

test("counts have commas and ends of scales three digits", () => {
  assert.deepEqual([thousands(7), thousands(1234567), short(-0.012345)], ["7", "1,234,567", "−0.0123"]);
});

test("text on a colour is black or white, whichever reads better", () => {
  assert.deepEqual(["#ffffff", "#000000", "#ffd700", "#00008b"].map(inkOn), ["#000000", "#ffffff", "#000000", "#ffffff"]);
});

test("a scale of scores leaves special tokens out, and begins late only where all others are near to each other", () => {
  const sink = [0.9, 0.02, 0.05, 0.01];
  const quiet = [true, false, false, false];
  assert.deepEqual(scaleOf(sink, quiet), { start: 0, end: 0.05 });
  assert.deepEqual(
    sink.map((score) => isBeyond(score, scaleOf(sink, quiet))),
    [true, false, false, false],
  );
  assert.deepEqual([shareOf(0.9, { start: 0, end: 0.05 }), shareOf(-0.025, { start: 0, end: 0.05 })], [1, -0.5]);
  // one dark bar: from the smallest on, and what differs by a few per cent only stays pale
  assert.deepEqual(scaleOf([0.6, 1, 0.8], [false, false, false]), { start: 0.6, end: 1 });
  const alike = scaleOf([1, 0.5, 0.51], [true, false, false]);
  assert.equal(alike.start, 0.5);
  assert.ok(Math.abs(alike.end - 0.55) < 1e-12 && shareOf(0.51, alike) < 0.21);
  assert.equal(isBeyond(-0.1, { start: 0, end: 1 }), false);
  // signs keep their zero, and a text of special tokens alone has a scale too
  assert.deepEqual(scaleOf([0.6, 1, -0.1], [false, false, true]), { start: 0, end: 1 });
  assert.deepEqual(scaleOf([0.2, 0.1, 0], [true, true, false]), { start: 0, end: 0.2 });
  assert.deepEqual(scaleOf([NaN, 0], [false, false]), { start: 0, end: 0 });
});

test("an axis of length one stands for all its places", () => {
  const bytes = btoa(String.fromCharCode(...new Uint8Array(Float32Array.from([0.5, 2]).buffer)));
  const packed = { shape: [2, 1], bytes };
  assert.deepEqual([at(packed, 0, 7), at(packed, 1, 3)], [0.5, 2]);
});

test("the pointer and the keys stay on the map", () => {
  assert.deepEqual(pointedPlace({ offsetX: 95, offsetY: -4 }, { width: 10, height: 10 }, [3, 5]), [0, 4]);
  assert.deepEqual(movedPlace({ key: "ArrowDown" }, [2, 1], [3, 5]), [2, 1]);
  assert.deepEqual(movedPlace({ key: "End" }, [1, 1], [3, 5]), [1, 4]);
  assert.equal(movedPlace({ key: "ArrowUp", ctrlKey: true }, [1, 1], [3, 5]), null);
});

test("a curve is read at a step or last before it", () => {
  const steps = Float64Array.from([0, 10, 20]);
  const curve = { steps, values: Float64Array.from([3, 2, 1]), low: null, high: null };
  assert.deepEqual(
    [-1, 0, 9, 10, 99].map((step) => placeUpTo(steps, step)),
    [-1, 0, 0, 1, 2],
  );
  assert.deepEqual(
    [-5, 4, 6, 16].map((step) => nearestPlace(steps, step)),
    [0, 0, 1, 2],
  );
  assert.equal(readingAt(curve, 15).value, 2);
  assert.equal(readingAt(curve, -1), null);
});

test("of a pixel the first, the least, the largest and the last are drawn", () => {
  assert.deepEqual(outline([0, 0, 0, 0, 0, 1], [1, 5, 2, 0, 3, 3]), [0, 1, 3, 4, 5]);
});

test("ticks are round, and names are moved apart", () => {
  const ticks = ticksBetween(0, 1, 5);
  assert.ok(ticks.length >= 2 && ticks.length <= 6 && ticks.every((tick) => tick >= 0 && tick <= 1));
  assert.deepEqual(spread([10, 11, 99], 100), [10, 23, 99]);
  assert.deepEqual(spread([95, 99], 100), [87, 100]);
});

test("what was not measured is sorted last", () => {
  assert.deepEqual(sortedPlaces([1, NaN, 3, 1], true), [2, 0, 3, 1]);
  assert.deepEqual(sortedPlaces([1, NaN, 3, 1], false), [0, 3, 2, 1]);
});

test("the code of a picture is the square root of a weight", () => {
  assert.deepEqual([0, 255].map(weightOf), [0, 1]);
});

test("ranks agree as Spearman has it", () => {
  assert.equal(rankAgreement([1, 2, 3], [10, 20, 30]), 1);
  assert.equal(rankAgreement([1, 2, 3], [3, 2, 1]), -1);
  assert.equal(rankOf(2, [1, 2, 3]), 2);
});
