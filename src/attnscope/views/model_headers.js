// The headers of the model view: a button for each layer and head, with its mean, which sorts the other axis by its figures.

import { element, written } from "./drawing.js";
import { passFocus } from "./token_list.js";

/** Whether a statistic is a share of a whole: its scale ends at 1, and it needs no unit. @param {{unit: string}} statistic */
export const isShare = ({ unit }) => unit === "share" || unit === "weight";

/** The unit of a statistic behind its figure. @param {{unit: string}} statistic */
export const unitAfter = (statistic) => (isShare(statistic) ? "" : ` ${statistic.unit}`);

/** Places in the order of their figures, falling or rising; what was not measured comes last.
 * @param {number[]} figures @param {boolean} falling */
export function sortedPlaces(figures, falling) {
  const rank = (place) => (Number.isFinite(figures[place]) ? (falling ? -1 : 1) * figures[place] : Infinity);
  return figures.map((_, place) => place).sort((one, other) => (rank(one) === rank(other) ? one - other : rank(one) - rank(other)));
}

/** The headers of both axes, and in their corner those that sort by means. */
export class ModelHeaders {
  /** @param {import("./frame.js").Frame} frame @param {{layers: number[], heads: number[], pooled?: boolean}} described */
  constructor(frame, { layers, heads, pooled }) {
    Object.assign(this, { frame, layers, heads, pooled });
    this.down = element("div", { className: "down", role: "group", ariaLabel: "Layers" }, ...layers.map((layer) => this.#header("heads", layer)));
    this.along = element("div", { className: "along", role: "group", ariaLabel: "Heads" }, ...heads.map((head) => this.#header("layers", head)));
    this.corner = element("div", { className: "corner" }, this.#header("heads", "mean"), this.#header("layers", "mean"));
    this.#roving(this.down, ["ArrowUp", "ArrowDown"]);
    this.#roving(this.along, ["ArrowLeft", "ArrowRight"]);
  }

  /** A header: sorts the other axis by its figures, falling, then rising, then as in the model.
   * @param {"layers" | "heads"} sorts @param {number | "mean"} by */
  #header(sorts, by) {
    const button = element("button", { type: "button", className: "header" }, element("span"), element("i", { ariaHidden: "true" }));
    const name = `sort_${sorts}`;
    button.addEventListener("click", () => {
      const [now, falling] = this.frame.get(name) ?? [];
      this.frame.set({ [name]: now !== by ? [by, true] : falling ? [by, false] : null });
    });
    for (const kind of ["pointerenter", "focus"]) button.addEventListener(kind, () => this.frame.tell(null, [button.title]));
    for (const kind of ["pointerleave", "blur"]) button.addEventListener(kind, () => this.frame.tell(null));
    return Object.assign(button, { sorts, by });
  }

  /** Lets arrow keys walk through headers, of which only one is a stop of the Tab key. */
  #roving(group, [back, forth]) {
    [...group.children].forEach((button, place) => (button.tabIndex = place ? -1 : 0));
    group.addEventListener("keydown", (event) => {
      const next = { [back]: event.target.previousElementSibling, [forth]: event.target.nextElementSibling }[event.key];
      if (!next) return;
      passFocus(event.target, next);
      event.preventDefault();
    });
  }

  /** Puts the headers into the order of what they stand for, and writes their means.
   * @param {{rows: number[], columns: number[]}} order places @param {{statistic: object, largest: number, ofLayer: (layer: number) => number, ofHead: (head: number) => number}} figures */
  draw({ rows, columns }, { statistic, largest, ofLayer, ofHead }) {
    const { layers, heads } = this;
    this.#reorder(this.down, rows.map((place) => layers[place]));
    this.#reorder(this.along, columns.map((place) => heads[place]));
    const figure = (value) => `${statistic.title.toLowerCase()} ${written(value)}${unitAfter(statistic)}`;
    rows.forEach((place, row) => this.#write(this.down.children[row], String(layers[place]), ofLayer(place) / (largest || 1), `Layer ${layers[place]}: ${figure(ofLayer(place))}, mean of ${heads.length} heads`));
    columns.forEach((place, column) => {
      const name = this.pooled ? "Mean of all heads" : `Head ${heads[place]}`;
      this.#write(this.along.children[column], this.pooled ? "mean" : String(heads[place]), ofHead(place) / (largest || 1), `${name}: ${figure(ofHead(place))}, mean of ${layers.length} layers`);
    });
    this.#write(this.corner.children[0], "head", null, "Heads by their mean over layers");
    this.#write(this.corner.children[1], "layer", null, "Layers by their mean over heads");
  }

  #reorder(group, numbers) {
    const held = group.getRootNode().activeElement;
    const buttons = new Map([...group.children].map((button) => [button.by, button]));
    const wanted = numbers.map((number) => buttons.get(number));
    if (wanted.some((button, place) => group.children[place] !== button)) group.replaceChildren(...wanted);
    if (wanted.includes(held)) held.focus();
  }

  #write(button, text, share, said) {
    const [now, falling] = this.frame.get(`sort_${button.sorts}`) ?? [];
    const on = now === button.by;
    const sign = button.sorts === "layers" ? (falling ? "▾" : "▴") : falling ? "▸" : "◂";
    const next = !on ? "highest first" : falling ? "lowest first" : "as in the model";
    const [name, bar] = button.children;
    name.textContent = text;
    name.dataset.sign = on ? sign : "";
    bar.style.width = Number.isFinite(share) ? `${Math.round(100 * share)}%` : "0";
    bar.hidden = share === null;
    button.title = `${said}. Click: ${button.sorts} ${next}`;
    button.setAttribute("aria-label", `${said}; sort ${button.sorts}, ${next}`);
    button.setAttribute("aria-pressed", String(on));
  }
}
