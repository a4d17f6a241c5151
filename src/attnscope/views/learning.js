// The learning view: curves over the steps of a training, a panel for each quantity; one step is read in all of them.

import { colours, element, thousands, written } from "./drawing.js";
import { Frame } from "./frame.js";
import { Curves, LearningPanel, called, figure, nearestPlace, readingAt, sample } from "./learning_panel.js";

// ---- What the curves are at one step: a row for each name, which is its legend too, and a column for each quantity.

class LearningReadout {
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
    this.head.replaceChildren(
      element("tr", {}, this.step, ...quantities.map((quantity) => element("th", { scope: "col", title: quantity }, quantity))),
    );
    const groups = [...new Set(names.map(({ group }) => group))].sort((one, other) => Number(!one) - Number(!other));
    const bodies = groups.map((group) => {
      const own = names.filter((one) => one.group === group).map(({ name }) => name);
      const title =
        group && !(own.length === 1 && own[0] === group)
          ? [element("tr", {}, element("th", { scope: "rowgroup", colSpan: quantities.length + 1 }, this.#button(own, group, "group")))]
          : [];
      return element("tbody", {}, ...title, ...own.map((name) => this.#row(name, quantities, look(name))));
    });
    this.table.replaceChildren(this.head, ...bodies);
    this.#buttons[held]?.[0].focus();
  }

  #row(name, quantities, look) {
    const cells = quantities.map(() => element("td"));
    // where columns do not fit, a value stands beside the name of its quantity
    cells.forEach((cell, place) => (cell.dataset.quantity = quantities[place]));
    this.#cells.push(...cells.map((cell, place) => ({ cell, name, quantity: quantities[place] })));
    const row = element("tr", {}, element("th", { scope: "row" }, this.#button([name], called(name), "name", sample(look))), ...cells);
    row.addEventListener("pointerenter", () => this.acts.point(name));
    row.addEventListener("pointerleave", () => this.acts.point(null));
    return row;
  }

  #button(names, text, kind, ...before) {
    const button = element(
      "button",
      { type: "button", className: `chip ${kind}`, title: `${text}. Click: show or hide. Double click, or Shift and click: alone.` },
      ...before,
      element("span", {}, text),
    );
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

  /** Writes what every curve is at a step. @param {number | null} step @param {boolean} latest @param {(quantity: string, name: string) => import("./learning_panel.js").Reading | null} read */
  read(step, latest, read) {
    this.step.replaceChildren(
      step === null ? "No step yet" : `Step ${thousands(step)}`,
      element("span", { className: "quiet" }, latest ? " latest" : ""),
    );
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

/** Curves of a panel that have their names at their ends. */
const LABELLED = 8;
const NARROWEST = 288;
const SAID = 6;

class LearningView {
  #panels = [];
  #latest = new Map();
  #hovered = null;
  #first = null;

  /** @param {Frame} frame */
  constructor(frame) {
    this.frame = frame;
    this.curves = new Curves(frame.model);
    this.title = element("h3", { hidden: true });
    this.panels = element("div", { className: "panels", tabIndex: 0, role: "group", ariaLabel: "Curves. Arrow keys move the step." });
    this.waiting = element("p", { className: "quiet", hidden: true }, "No rows have come yet.");
    this.readout = new LearningReadout({
      toggle: (names) => this.#toggle(names),
      alone: (names) => this.#alone(names),
      point: (name) => this.#showFirst(name),
    });
    this.stepper = this.#stepControl();
    this.#listen();
  }

  get payload() {
    return this.frame.model.get("payload");
  }

  isShown = (name) => {
    const chosen = this.frame.get("names");
    return chosen === null || chosen.includes(name);
  };

  look = (name) => {
    const { colour, dash } = this.looks.get(name);
    return { colour: colour === null ? this.palette.read("text") : this.palette.categorical[colour], dash };
  };

  /** The place of the step that is pinned, or of the last. */
  #pinnedPlace() {
    const { steps } = this.curves;
    const step = this.frame.get("step");
    return step === null ? steps.length - 1 : nearestPlace(steps, step);
  }

  // ---- drawing

  async draw() {
    const { frame, panels } = this;
    await this.curves.read();
    const { quantities, names, title } = this.payload;
    this.palette = colours(frame.el);
    this.looks = new Map(names.map((look) => [look.name, look]));
    this.title.hidden = !title;
    this.title.textContent = title ?? "";
    this.waiting.hidden = this.curves.all.length > 0;
    this.#latest = new Map(this.curves.all.map((curve) => [JSON.stringify([curve.quantity, curve.name]), curve]));
    if (this.#panels.map(({ quantity }) => quantity).join("\n") !== quantities.join("\n")) {
      this.#panels = quantities.map((quantity) => this.#panel(quantity));
      panels.replaceChildren(...this.#panels.map(({ node }) => node));
    }
    const { steps } = this.curves;
    const layout = {
      ...this.#room(),
      steps: steps.length ? [steps[0], steps.at(-1)] : [0, 1],
      log: frame.get("scale") === "log",
      palette: this.palette,
      look: this.look,
    };
    for (const panel of this.#panels) {
      const shown = this.#shownIn(panel.quantity);
      panel.draw(shown, layout, shown.length <= LABELLED && shown.length + this.#panels.length > 2);
    }
    this.readout.draw(this.payload, this.look, this.isShown);
    this.#say();
    this.moved();
  }

  #panel(quantity) {
    const panel = new LearningPanel(quantity);
    panel.over.addEventListener("pointermove", (event) => this.#pointed(panel, event));
    panel.over.addEventListener("pointerleave", () => ((this.#hovered = null), this.#showFirst(null)));
    panel.over.addEventListener("click", (event) => {
      const step = this.#stepOf(panel, event);
      if (step !== null) this.frame.set({ step: this.frame.get("step") === step ? null : step });
    });
    return panel;
  }

  #shownIn(quantity) {
    return this.curves.all.filter((curve) => curve.quantity === quantity && this.isShown(curve.name));
  }

  /** The width of a panel, and how much of it names take at the right. */
  #room() {
    const whole = this.panels.clientWidth;
    const across = Math.max(1, Math.min(this.#panels.length, Math.floor((whole + 16) / (NARROWEST + 16))));
    this.panels.style.setProperty("--across", String(across));
    const width = Math.floor((whole - 16 * (across - 1)) / across);
    const labelled = this.#panels.map(({ quantity }) => this.#shownIn(quantity)).filter((shown) => shown.length <= LABELLED);
    const longest = Math.max(0, ...labelled.flatMap((shown) => (shown.length > 1 ? shown.map(({ name }) => name.length) : [])));
    return { width, right: longest ? Math.min(28 + longest * 7, 104, Math.floor(width / 3)) : 40 };
  }

  // ---- the step

  /** The step control: a slider with its buttons, and back to the latest. */
  #stepControl() {
    const slider = element("input", {
      type: "range",
      min: "0",
      step: "1",
      ariaLabel: "Step",
      oninput: () => this.#pin(Number(slider.value)),
    });
    const button = (sign, words, act) => element("button", { type: "button", ariaLabel: words, onclick: act }, sign);
    const shown = element("output", {});
    const latest = element("button", { type: "button", className: "latest", onclick: () => this.frame.set({ step: null }) }, "Latest");
    const node = element(
      "div",
      { className: "stepper" },
      element("span", { className: "quiet" }, "Step"),
      element(
        "div",
        {},
        button("‹", "Step before", () => this.#pin(this.#pinnedPlace() - 1)),
        slider,
        button("›", "Step after", () => this.#pin(this.#pinnedPlace() + 1)),
        shown,
        latest,
      ),
    );
    const refresh = () => {
      const place = Math.max(this.#pinnedPlace(), 0);
      slider.max = String(Math.max(this.curves.steps.length - 1, 0));
      slider.value = String(place);
      shown.textContent = this.curves.steps.length ? thousands(this.curves.steps[place]) : "none";
      slider.setAttribute("aria-valuetext", shown.textContent);
      latest.disabled = this.frame.get("step") === null;
    };
    return { node, refresh };
  }

  /** Pins the step at a place among all steps. @param {number} place */
  #pin(place) {
    const { steps } = this.curves;
    if (!steps.length) return;
    this.frame.set({ step: steps[Math.min(Math.max(place, 0), steps.length - 1)] });
    this.#readAloud();
  }

  #listen() {
    const { frame, panels } = this;
    const leap = () => Math.max(1, Math.round(this.curves.steps.length / 20));
    const moves = {
      ArrowLeft: () => -1,
      ArrowRight: () => 1,
      PageDown: () => -leap(),
      PageUp: leap,
      Home: () => -Infinity,
      End: () => Infinity,
    };
    panels.addEventListener("keydown", (event) => {
      const move = moves[event.key];
      if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
      this.#pin(this.#pinnedPlace() + move());
      event.preventDefault();
    });
    frame.listKey("← →", "step before, step after, on the curves");
    frame.listKey("Page Up, Page Down", "a twentieth of the steps on, back");
    frame.listKey("Home End", "first and last step");
    frame.listKey("Shift Enter", "on a name: it alone; so does a double click");
    frame.key("l", "linear or logarithmic steps", () => frame.set({ scale: frame.get("scale") === "log" ? "linear" : "log" }));
    frame.key("Escape", "all names, the latest step", () => frame.set({ step: null, names: null }));
  }

  #stepOf(panel, event) {
    const { steps } = this.curves;
    return steps.length ? steps[nearestPlace(steps, panel.stepAt(event.offsetX))] : null;
  }

  #pointed(panel, event) {
    const step = this.#stepOf(panel, event);
    if (step === null) return;
    this.#hovered = step;
    const name = panel.nameAt(event.offsetY, step);
    this.#showFirst(name);
    const reading = name === null ? null : this.#read(panel.quantity, name, step);
    const lines = reading ? [called(name), `${panel.quantity}: ${this.#words(reading, step)}`] : [panel.quantity];
    this.frame.tell({ x: event.clientX, y: event.clientY }, [...lines, `Step ${thousands(step)}`]);
  }

  #read(quantity, name, step) {
    const curve = this.#latest.get(JSON.stringify([quantity, name]));
    return curve ? readingAt(curve, step) : null;
  }

  #words({ value, low, high, step }, asked) {
    const band = Number.isFinite(low) ? ` (${figure(low)} to ${figure(high)})` : "";
    return `${figure(value)}${band}${step === asked ? "" : `, at step ${thousands(step)}`}`;
  }

  /** Puts one name before the others; null: none. */
  #showFirst(name) {
    this.#first = name !== null && this.isShown(name) ? name : null;
    if (this.#hovered === null) this.frame.tell(null);
    this.moved();
  }

  /** Makes all that depends on the step true again. */
  moved() {
    const {
      curves: { steps },
      frame,
    } = this;
    const pinned = frame.get("step");
    const step = this.#hovered ?? (steps.length ? steps[this.#pinnedPlace()] : null);
    const across = this.#hovered !== null || pinned !== null ? step : null;
    for (const panel of this.#panels) panel.layout && panel.point(across, this.#first);
    this.readout.read(step, this.#hovered === null && pinned === null, (quantity, name) => this.#read(quantity, name, step));
    this.stepper.refresh();
  }

  // ---- names

  #toggle(names) {
    const all = this.payload.names.map(({ name }) => name);
    const on = names.every(this.isShown);
    const some = all.filter((name) => (names.includes(name) ? !on : this.isShown(name)));
    this.frame.set({ names: some.length === all.length ? null : some });
  }

  /** Shows some names alone, or all again; what has no name is no rival of theirs and stays. */
  #alone(some) {
    const names = this.payload.names.map(({ name }) => name).filter((name) => !name || some.includes(name));
    const chosen = this.frame.get("names");
    const already = chosen !== null && chosen.length === names.length && names.every((name) => chosen.includes(name));
    this.frame.set({ names: already ? null : names });
  }

  // ---- in words

  /** The values of some curves of a panel at a step, in words. */
  #valuesOf(quantity, step) {
    const shown = this.#shownIn(quantity);
    const texts = shown
      .slice(0, SAID)
      .map(({ name }) => ({ name, reading: this.#read(quantity, name, step) }))
      .filter(({ reading }) => reading)
      .map(({ name, reading }) => `${name} ${figure(reading.value)}`.trim());
    return `${quantity}: ${texts.join(", ")}${shown.length > SAID ? `, and ${shown.length - SAID} more` : ""}`;
  }

  #readAloud() {
    const step = this.curves.steps[this.#pinnedPlace()];
    this.frame.tell(null, [`Step ${thousands(step)}`, ...this.payload.quantities.map((quantity) => this.#valuesOf(quantity, step))]);
  }

  #say() {
    const {
      frame,
      curves: { all, steps },
      payload: { quantities, names },
    } = this;
    const hidden = names.filter(({ name }) => !this.isShown(name)).length;
    const gaps = all.reduce((sum, { values }) => values.reduce((count, value) => count + Number(!Number.isFinite(value)), sum), 0);
    const finer = this.#panels.some(({ drawn }) =>
      drawn.some(({ curve, places }) => places.length < curve.steps.length && curve.values.every(Number.isFinite)),
    );
    const count = (number, one) => `${thousands(number)} ${one}${number === 1 ? "" : "s"}`;
    frame.said.textContent = [
      steps.length
        ? `${count(steps.length, "step")}${frame.get("scale") === "log" ? ", on a logarithmic axis of step + 1" : ""}; each panel on its own linear scale with zero.`
        : "",
      finer ? "Where several steps share a pixel, their least and their largest are drawn; the values at a step are exact." : "",
      all.some(({ steps: own }) => own.length < steps.length)
        ? "What was not measured at the step stands in italics, as it was last before."
        : "",
      all.some(({ low }) => low) ? "The shade runs from low to high." : "",
      gaps ? `Gaps: ${count(gaps, "value")} not measured or not finite.` : "",
      hidden ? `Hidden: ${count(hidden, "name")} of ${thousands(names.length)}.` : "",
    ]
      .filter(Boolean)
      .join(" ");
    const last = steps.at(-1);
    frame.summary.textContent = steps.length
      ? `${count(quantities.length, "quantity").replace("quantitys", "quantities")} over steps ${thousands(steps[0])} to ${thousands(last)}. Last: ${quantities.map((quantity) => this.#valuesOf(quantity, last)).join("; ")}.`
      : "No rows have come yet.";
  }

  /** A row for each curve that is shown: where it began, ended, and was least and largest. */
  table() {
    const rows = this.payload.quantities
      .flatMap((quantity) => this.#shownIn(quantity))
      .map(({ quantity, name, steps, values }) => {
        const finite = values.filter(Number.isFinite);
        const ends = finite.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
        const figures = finite.length ? [finite[0], finite.at(-1), ...ends].map(figure) : Array(4).fill("not measured");
        return [
          quantity,
          name,
          this.looks.get(name).group,
          thousands(steps.length),
          `${thousands(steps[0])} to ${thousands(steps.at(-1))}`,
          ...figures,
        ];
      });
    return {
      caption: "Each curve that is shown",
      columns: ["quantity", "name", "group", "rows", "steps", "first", "last", "least", "largest"],
      rows,
    };
  }
}

/** Draws the view into an element and keeps it true to the model. @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const frame = new Frame({ model, el }, "learning", "Learning view: curves over the steps of a training");
  const view = new LearningView(frame);
  // while a training runs, what has changed is not to be read out at every step
  frame.summary.setAttribute("aria-live", "off");
  frame.add(view.stepper);
  frame.select("Axis of steps", "scale", [
    ["linear", "Linear"],
    ["log", "Logarithmic"],
  ]);
  frame.top.before(view.title);
  frame.body.append(view.waiting, view.panels);
  frame.reading.after(view.readout.node);
  return frame.start(view, ["step"], () => view.moved());
}
