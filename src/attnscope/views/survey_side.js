// What stands beside the map of the survey view: the heads that are pinned, or those that stand out.

import { element } from "./drawing.js";
import { headElements } from "./survey_head.js";

const LISTED = 8;

/** The side of the view. */
export class SurveySide {
  /** @param {import("./survey_figures.js").SurveyFigures} figures
   * @param {{pin: (layer: number, head: number, beside: boolean) => void, leave: () => void}} told `pin` a head by its
   *   places, or release it; `leave` to the map */
  constructor(figures, { pin, leave }) {
    Object.assign(this, { figures, pin, leave });
    this.node = element("aside", { className: "side", ariaLabel: "Pinned heads" });
  }

  /** @param {ReturnType<typeof import("./drawing.js").colours>} palette */
  draw(palette) {
    const [first] = this.figures.pinned;
    const top = this.node.scrollTop;
    this.node.replaceChildren(...(first ? this.#pinned(palette) : this.#highest()));
    // a head that is added leaves what was read in its place
    this.node.scrollTop = first && this.node.dataset.head === String(first) ? top : 0;
    this.node.dataset.head = first ? String(first) : "";
  }

  #pinned(palette) {
    const { payload, pinned } = this.figures;
    return pinned.map(([number, head], place) => {
      const [down, across] = [payload.layers.indexOf(number), payload.heads.indexOf(head)];
      const release = element("button", { type: "button", onclick: () => (this.pin(down, across, true), this.leave()) }, "Release ", ...(place ? [] : [element("kbd", {}, "Esc")]));
      const bar = element("div", { className: "bar" }, element("h3", {}, `Layer ${number}, head ${head}`), release);
      return element("section", {}, bar, ...headElements(payload, down, across, palette));
    });
  }

  #highest() {
    const { figures, figures: { map, payload: { layers, heads, roles } } } = this;
    const order = figures.ranked();
    const shown = map.roles ? roles.names.map((name) => order.find((place) => figures.roleOf(...place) === name)).filter(Boolean) : order.slice(0, LISTED);
    const rows = shown.map(([layer, head]) => {
      const button = element("button", { type: "button", onclick: (event) => this.pin(layer, head, event.shiftKey) }, `${layers[layer]}.${heads[head]}`);
      return element("tr", {}, ...[button, figures.figure(layer, head), figures.roleOf(layer, head)].map((cell) => element("td", {}, cell)));
    });
    const names = ["Head", map.unit || (map.roles ? "Score" : "Value"), "Role"].map((name) => element("th", { scope: "col" }, name));
    const list = element("table", { className: "highest" }, element("thead", {}, element("tr", {}, ...names)), element("tbody", {}, ...rows));
    const hint = "Click a cell, or press Enter on it, to pin a head here: its role, its exemplars, its figures. With Shift, several.";
    return [element("div", { className: "bar" }, element("h3", {}, map.roles ? "The clearest head of each role" : "Highest in this map")), element("p", { className: "quiet" }, hint), list];
  }
}
