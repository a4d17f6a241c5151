// What a link keeps: all that a view declares, and nothing that does not fit; the address of the app and back.

import assert from "node:assert/strict";
import { test } from "node:test";

import { carriedStates, changesOf, fromAddress, toAddress } from "../../../src/attnscope/app/client/address.js";
import { Model, fitting } from "../../../src/attnscope/views/view_model.js";

const kept = {
  layer: { kind: "number", optional: false, of: "model" },
  heads: { kind: "numbers", optional: true, of: "model" },
  keys: { kind: "numbers", optional: false, of: "text" },
  words: { kind: "switch", optional: false, of: "" },
};

test("what fits is taken, nonsense is not, and nothing only where nothing may be chosen", () => {
  assert.deepEqual(fitting({ kept }, { layer: 2, heads: null, keys: [1], words: true }), { layer: 2, heads: null, keys: [1], words: true });
  assert.deepEqual(fitting({ kept }, { layer: null, heads: ["x"], keys: 1, words: 1, other: 2, payload: {} }), {});
  assert.deepEqual(fitting({ kept }, "nonsense"), {});
});

test("a kind that nobody knows fails", () => {
  assert.throws(() => fitting({ kept: { mood: { kind: "mood" } } }, { mood: 1 }), TypeError);
});

test("a model keeps all that is declared, and tells of changes", () => {
  const [told, saved] = [[], []];
  const model = new Model({ layer: 0, heads: null, keys: [], words: false, kept, payload: {}, blobs: {} }, () => saved.push(model.state()));
  model.on("change:layer", (value) => told.push(value));
  model.set("layer", 3);
  model.set("layer", 3);
  model.save_changes();
  assert.deepEqual(told, [3]);
  assert.deepEqual(saved, [{ layer: 3, heads: null, keys: [], words: false }]);
});

test("an address says what it was made of", () => {
  const shown = [
    { model: "demo", text: "a & b", view: "head", methods: ["raw", "flow"], states: { head: { layer: 2, keys: [1] } } },
    { model: "demo", text: "c", target: " plural", against: "singular", by: "sentence", states: {} },
    { opened: "saved.safetensors", view: "scores", states: {} },
  ];
  for (const panes of [shown.slice(0, 2), shown.slice(1)]) {
    const place = { panes, inStep: true };
    assert.deepEqual(fromAddress(toAddress(place), ["head", "scores"]), place);
  }
  assert.equal(fromAddress("#text=a&by=letter", ["head"]).panes[0].by, undefined);
  assert.equal(fromAddress("#%%%", ["head"]), null);
});

test("a choice outlives a text unless it speaks of its tokens, and a model unless it speaks of its heads", () => {
  const states = { head: { layer: 2, heads: [1], keys: [3], words: true } };
  assert.deepEqual(carriedStates(states, true, kept), { head: { layer: 2, heads: [1], words: true } });
  assert.deepEqual(carriedStates(states, false, kept), { head: { words: true } });
  assert.deepEqual(changesOf({ layer: 1, keys: [2] }, { layer: 1, keys: [] }), { keys: [2] });
});
