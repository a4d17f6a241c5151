// What the curves are at one step: a row for each name, which is its legend too, and a column for each quantity.

import { element, thousands, written } from "./drawing.js";
import { DASHES } from "./learning_panel.js";

/** A value as a reader wants it: six digits, and what is no number in words. @param {number} value */
export function figure(value) {
  if (Number.isNaN(value)) return "not measured";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  return String(+value.toPrecision(6)).replace("-", "−").replace("e-", "e−");
}

/** What is called by a name; what has none is all there is. @param {string} name */
export const called = (name) => name || "no name";

/** A short line as a curve has it. @param {{colour: string, dash: number}} look */
function sample({ colour, dash }) {
  const space = "http://www.w3.org/2000/svg";
  const [svg, line] = [document.createElementNS(space, "svg"), document.createElementNS(space, "line")];
  for (const [name, value] of Object.entries({ width: 24, height: 12, "aria-hidden": "true" })) svg.setAttribute(name, String(value));
  for (const [name, value] of Object.entries({ x1: 1, x2: 23, y1: 6, y2: 6, stroke: colour, "stroke-width": 2, "stroke-dasharray": DASHES[dash].join(" ") })) line.setAttribute(name, String(value));
  svg.append(line);
  return svg;
}

export class LearningReadout {
  #known = "";
  #cells = [];
  #buttons = [];

  /** @param {{toggle: (names: string[]) => void, alone: (names: string[]) => void, point: (name: string | null) => void}} acts */
  constructor(acts) {
    this.acts = acts;
    this.head = element("thead");
    this.step = element("th", { scope: "col", className: "step" });
    this.table = element("table", { className: "readout" }, this.head);
    this.node = element("div", { className: "scroll readings", tabIndex: 0, role: "group", ariaLabel: "Values at the step" }, this.table);
  }

  /** Makes the rows, if others are there than before, and marks those that are shown.
   * @param {{quantities: string[], names: {name: string, group: string}[]}} payload @param {(name: string) => {colour: string, dash: number}} look @param {(name: string) => boolean} isShown */
  draw({ quantities, names }, look, isShown) {
    const known = JSON.stringify([quantities, names, names.map(({ name }) => look(name))]);
    if (known !== this.#known) this.#fill(quantities, names, look);
    this.#known = known;
    for (const [button, of] of this.#buttons) button.setAttribute("aria-pressed", String(of.every(isShown)));
  }

  #fill(quantities, names, look) {
    const held = this.#buttons.findIndex(([button]) => button.matches(":focus"));
    [this.#cells, this.#buttons] = [[], []];
    this.head.replaceChildren(element("tr", {}, this.step, ...quantities.map((quantity) => element("th", { scope: "col", title: quantity }, quantity))));
    const groups = [...new Set(names.map(({ group }) => group))].sort((one, other) => Number(!one) - Number(!other));
    const bodies = groups.map((group) => {
      const own = names.filter((one) => one.group === group).map(({ name }) => name);
      const title = group && !(own.length === 1 && own[0] === group) ? [element("tr", {}, element("th", { scope: "rowgroup", colSpan: quantities.length + 1 }, this.#button(own, group, "group")))] : [];
      return element("tbody", {}, ...title, ...own.map((name) => this.#row(name, quantities, look(name))));
    });
    this.table.replaceChildren(this.head, ...bodies);
    this.#buttons[held]?.[0].focus();
  }

  #row(name, quantities, look) {
    const cells = quantities.map(() => element("td"));
    this.#cells.push(...cells.map((cell, place) => ({ cell, name, quantity: quantities[place] })));
    const row = element("tr", {}, element("th", { scope: "row" }, this.#button([name], called(name), "name", sample(look))), ...cells);
    row.addEventListener("pointerenter", () => this.acts.point(name));
    row.addEventListener("pointerleave", () => this.acts.point(null));
    return row;
  }

  #button(names, text, kind, ...before) {
    const button = element("button", { type: "button", className: `chip ${kind}`, title: `${text}. Click: show or hide. Double click, or Shift and click: alone.` }, ...before, element("span", {}, text));
    button.addEventListener("click", (event) => {
      if (event.shiftKey) this.acts.alone(names);
      else if (event.detail <= 1) this.acts.toggle(names);
    });
    button.addEventListener("dblclick", (event) => event.shiftKey || this.acts.alone(names));
    if (names.length === 1) {
      button.addEventListener("focus", () => button.matches(":focus-visible") && this.acts.point(names[0]));
      button.addEventListener("blur", () => this.acts.point(null));
    }
    this.#buttons.push([button, names]);
    return button;
  }

  /** Writes what every curve is at a step. @param {number | null} step @param {boolean} latest @param {(quantity: string, name: string) => import("./learning_curves.js").Reading | null} read */
  read(step, latest, read) {
    this.step.replaceChildren(step === null ? "No step yet" : `Step ${thousands(step)}`, element("span", { className: "quiet" }, latest ? " latest" : ""));
    for (const { cell, name, quantity } of this.#cells) {
      const reading = step === null ? null : read(quantity, name);
      const band = reading && Number.isFinite(reading.low) ? `${written(reading.low)} to ${written(reading.high)}` : "";
      // measured more seldom than others: what it was last, and when
      const since = reading && reading.step !== step ? `at step ${thousands(reading.step)}` : "";
      cell.title = [band, since].filter(Boolean).join(", ");
      cell.classList.toggle("before", Boolean(since));
      cell.replaceChildren(reading ? figure(reading.value) : "", ...(since ? [element("span", { className: "hidden" }, ` ${since}`)] : []));
    }
  }
}
