// The controls that views of a record share: the layer, words, special tokens, the threshold, the sentences of a pair.

import { colours, element } from "./drawing.js";
import { hasPieces } from "./units.js";

/** Adds the controls that make sense for this record. @param {import("./frame.js").Frame} frame @param {object} payload */
export function recordControls(frame, payload) {
  const { queries, keys } = payload;
  frame.stepper("Layer", "layer", payload.weights.layers);
  if (queries.sentences) {
    const names = { 0: "A", 1: "B" };
    const pairs = ["00", "01", "10", "11"].map((pair) => [pair, `${names[pair[0]]} → ${names[pair[1]]}`]);
    frame.select("Sentences", "between", [["all", "All"], ...pairs]);
  }
  frame.threshold();
  wordsControl(frame, queries, keys);
  quietControl(frame, queries, keys);
  frame.check("Square-root scale", "root");
}

/** Words or tokens, where some word has several. @param {import("./frame.js").Frame} frame @param {...object} sides */
export function wordsControl(frame, ...sides) {
  if (sides.some(hasPieces)) frame.check("Whole words", "words", "w", "whole words or tokens");
}

/** Special tokens and sinks, where there are some. @param {import("./frame.js").Frame} frame @param {...object} sides */
export function quietControl(frame, ...sides) {
  const any = (kind) => sides.some((side) => side[kind].length);
  if (any("special") || any("sinks")) frame.check(any("special") ? "Special tokens and sinks" : "Sinks", "special", "s", "special tokens and sinks");
}

/** The head that an arrow key steps to: the next one round, or from several the first or the last.
 * @param {number[]} heads all of them @param {number[]} shown @param {number} by */
export function nextHead(heads, shown, by) {
  if (shown.length !== 1) return by > 0 ? heads[0] : heads.at(-1);
  return heads[(heads.indexOf(shown[0]) + by + heads.length) % heads.length];
}

/** A chip for each head: click shows or hides it, double click isolates it; ↑ and ↓ step from head to head.
 * @param {import("./frame.js").Frame} frame @param {import("./weights.js").Described} described */
export function headChips(frame, { heads, pooled }) {
  const chosen = () => frame.get("heads") ?? heads;
  const choose = (some) => frame.set({ heads: some.length === heads.length ? null : some });
  const made = heads.map((head, place) => {
    const swatch = element("i", { ariaHidden: "true" });
    const chip = element("button", { type: "button", className: "chip", ariaLabel: `Head ${head}`, title: "Click: show or hide. Double click: this head alone." }, swatch, String(head));
    chip.addEventListener("click", (event) => {
      if (event.detail > 1) return;
      const on = chosen().includes(head);
      choose(on ? chosen().filter((other) => other !== head) : heads.filter((other) => other === head || chosen().includes(other)));
    });
    chip.addEventListener("dblclick", () => choose([head]));
    swatch.classList.toggle("again", place % 16 >= 8);
    return chip;
  });
  const all = element("button", { type: "button", onclick: () => choose(heads) }, "All");
  const node = element("div", { className: "chips", role: "group", ariaLabel: "Heads" }, element("span", { className: "quiet" }, "Heads"), ...made, all);
  node.hidden = heads.length < 2 || Boolean(pooled);
  frame.stepping("head", (by) => choose([nextHead(heads, chosen(), by)]));
  const refresh = () => {
    const { categorical } = colours(frame.el);
    made.forEach((chip, place) => {
      chip.setAttribute("aria-pressed", String(chosen().includes(heads[place])));
      chip.firstChild.style.setProperty("--chip", categorical[place % categorical.length]);
    });
  };
  frame.follow({ node, refresh });
  return node;
}
