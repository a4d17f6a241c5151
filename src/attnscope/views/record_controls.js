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
  if (hasPieces(queries) || hasPieces(keys)) frame.check("Words", "words", "w", "words or tokens");
  const quiet = [...queries.special, ...keys.special, ...queries.sinks, ...keys.sinks];
  if (quiet.length) frame.check(keys.special.length ? "Special tokens and sinks" : "Sinks", "special", "s", "special tokens and sinks");
  frame.check("Square-root scale", "root");
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
  frame.stepping("head", (by) => {
    const shown = chosen();
    const next = shown.length === 1 ? heads[(heads.indexOf(shown[0]) + by + heads.length) % heads.length] : by > 0 ? heads[0] : heads.at(-1);
    choose([next]);
  });
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
