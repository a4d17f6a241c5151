// The model view: every layer and head at once as a small picture of its map; one click shows a head with its tokens, in place.

import { element } from "./drawing.js";
import { Frame } from "./frame.js";
import { HEAD_STATE, HeadPanel } from "./head_panel.js";
import { GRID_STATE, ModelGrid } from "./model_grid.js";
import { headChips, nextHead, recordControls } from "./record_controls.js";
import { Thumbnails } from "./thumbnails.js";
import { Layers } from "./weights.js";

/** The head view while it stands in place of the grid: hidden, a pointer that leaves it has nothing to say. */
class EnlargedHead extends HeadPanel {
  hover(rows, place, lines) {
    if (!this.node.closest("[hidden]")) super.hover(rows, place, lines);
  }
}

/** Draws the view into an element and keeps it true to the model.
 * @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const payload = model.get("payload");
  const { layers, heads } = payload.weights;
  const frame = new Frame({ model, el, name: "model", label: "Model view: the attention map of every head", draw, table: () => (enlarged() ? panel.table() : grid.table()) });
  const enlarged = () => Boolean(frame.get("enlarged", false));
  frame.select("Statistic", "statistic", payload.statistics.map(({ name, title }) => [name, title]));
  frame.controls.lastChild.classList.add("of-grid");
  recordControls(frame, payload);
  // what chooses among the lines of one head has nothing to choose among the maps of all
  for (const choice of frame.controls.querySelectorAll(".stepper, .threshold, label:has(select[aria-label=Sentences])")) choice.classList.add("of-head");
  const panel = new EnlargedHead(frame, payload, new Layers(model, payload.weights));
  const thumbnails = new Thumbnails(model, payload.maps, heads.length);
  const grid = new ModelGrid(frame, payload, thumbnails, (layer, head) => frame.set({ layer, head, heads: [head], enlarged: true }));
  const back = element("button", { type: "button", onclick: leave }, "‹ All heads ", element("kbd", {}, "Esc"));
  const [title, role] = [element("h3"), element("span", { className: "quiet" })];
  const one = element("div", { className: "one", hidden: true }, element("div", { className: "bar" }, back, title, role), headChips(frame, payload.weights), panel.node);
  frame.body.append(grid.node, one);
  frame.stepping("layer", (by) => enlarged() && frame.set({ layer: layers[Math.min(Math.max(layers.indexOf(frame.get("layer")) + by, 0), layers.length - 1)] }));
  frame.stepping("head", (by) => {
    const next = nextHead(heads, chosen(), by);
    if (enlarged()) frame.set({ heads: [next], head: next });
  });
  frame.key("Escape", "back to all heads, once no token is pinned", () => {
    if (!enlarged()) return;
    if (frame.get("queries", []).length || frame.get("keys", []).length) frame.set({ queries: [], keys: [] });
    else leave();
  });

  /** The heads that are shown enlarged, by their numbers. */
  function chosen() {
    return frame.get("heads") ?? heads;
  }

  /** Goes back to all heads: to the one that was looked at last. */
  function leave() {
    const [only, ...more] = chosen();
    frame.set({ enlarged: false, head: more.length || only === undefined ? frame.get("head") : only });
  }

  async function draw() {
    const opened = enlarged();
    const before = frame.holder.dataset.shows;
    frame.holder.dataset.shows = opened ? "head" : "grid";
    if (opened) {
      one.hidden = false;
      nameHead();
      grid.node.hidden = true;
      frame.tell(null);
      await panel.draw();
      if (before === "grid") back.focus({ preventScroll: true });
      return;
    }
    grid.node.hidden = false;
    if (before === "head") panel.hover(null);
    one.hidden = true;
    await grid.draw();
    if (before === "head") grid.focus();
  }

  /** Says which head is enlarged, and what it does on this text. */
  function nameHead() {
    const layer = Math.max(layers.indexOf(frame.get("layer")), 0);
    const shown = chosen().filter((head) => heads.includes(head));
    title.textContent = shown.length === 1 ? grid.nameOf(layer, heads.indexOf(shown[0])) : `Layer ${layers[layer]}, ${shown.length === heads.length ? "all" : shown.length} heads`;
    role.textContent = shown.length === 1 ? grid.roleOf(layer, heads.indexOf(shown[0])) : "";
  }

  return frame.start([...new Set([...HEAD_STATE, ...GRID_STATE, "enlarged"])]);
}

export default { render };
