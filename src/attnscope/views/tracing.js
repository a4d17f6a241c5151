// The tracing view: attention handed down from the read-out to the input, a dot for each head, layer and token.

import { colours, drawRamp, element, inkOn, isBeyond, percent, scaleOf, sharp, short } from "./drawing.js";
import { Frame, nextHead, quietControl, wordsControl } from "./frame.js";
import { Trace, darkness, dotAt, drawDots, drawRows, drawTokens, largeLayout, panelLayout, placeAt, roomFor } from "./tracing_dots.js";
import { TokenList, loudest, placesHolding, unitsOf } from "./units.js";

// ---- Heads side by side, one of them enlarged, and the text on the colour of what it gathers: the body of the tracing view.

/** Pixels below the dots from which on tokens have room there. */
const LEAST_FOOT = 24;

/** A scale never ends below this: what holds nothing is not drawn as if it held all. */
const SMALLEST_SCALE = 1e-4;

/** Small multiples of dots over the text that they end on. */
class TracingPanel {
  #hover = null;
  /** The switch that unfolds a long text. @type {HTMLElement | null} */
  fold = null;

  /** @param {import("./frame.js").Frame} frame @param {Pick<TracingPayload, "keys">} payload @param {import("./tracing_dots.js").Trace} trace */
  constructor(frame, payload, trace) {
    this.frame = frame;
    this.payload = payload;
    this.trace = trace;
    const { heads } = trace.described;
    const places = heads.length > 1 ? [null, ...heads.keys()] : [0];
    this.panels = places.map((head) => this.#panel(head));
    this.grid = element("div", { className: "panels" }, ...this.panels.map(({ node }) => node));
    this.back = element(
      "button",
      { type: "button", className: "back", onclick: () => frame.set({ head: null }) },
      "All heads ",
      element("kbd", {}, "Esc"),
    );
    this.scale = element("canvas", { className: "scale", ariaHidden: "true" });
    this.caption = element("p", { className: "quiet caption" });
    this.text = new TokenList({
      name: "text",
      label: "The text: choose tokens",
      look: (unit, box) => this.#overText(unit, box),
      leave: () => this.hover(null),
      pin: (unit, more) => this.#pin(unit, more),
    });
    this.node = element(
      "div",
      { className: "tracing-panel" },
      this.back,
      this.grid,
      element("div", { className: "legend" }, this.scale),
      this.caption,
      this.text.node,
    );
    frame.stepping("head", (by) => frame.set({ head: nextHead(heads, this.head() === null ? [] : [heads[this.head()]], by) }));
    frame.listKey("n p", "next and previous token");
    frame.listKey("Enter", "enlarge the head, or pin the token; with Shift, add it");
    frame.key("Escape", "back to all heads, or release the tokens", () =>
      frame.set(this.head() !== null && this.panels.length > 1 ? { head: null } : { keys: [] }),
    );
  }

  /** A small panel: a title that enlarges it, and its dots. @param {number | null} head its place, null for the mean */
  #panel(head) {
    const { heads } = this.trace.described;
    const open = () => head !== null && this.frame.set({ head: heads[head] });
    const canvas = element("canvas", { className: "dots" });
    const title =
      head === null
        ? element("span", { className: "title" }, "Mean of heads")
        : element(
            "button",
            { type: "button", className: "title", ariaLabel: `Enlarge head ${heads[head]}`, onclick: open },
            `Head ${heads[head]}`,
          );
    const node = element("div", { className: `panel${head === null ? " mean" : ""}` }, title, canvas);
    const panel = { head, node, canvas, title, base: document.createElement("canvas") };
    canvas.addEventListener("pointermove", (event) => this.#overDots(panel, event));
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("click", (event) => (this.layout.large ? this.#clickedDots(event) : open()));
    return panel;
  }

  /** The place of the head that is enlarged, or null. */
  head() {
    const { heads } = this.trace.described;
    const place = heads.indexOf(this.frame.get("head"));
    return heads.length === 1 ? 0 : place < 0 ? null : place;
  }

  /** Decodes the trace, lays the panels out, and paints. */
  async draw() {
    const { frame, trace, payload } = this;
    await trace.load();
    this.palette = colours(frame.el);
    this.every = unitsOf(payload.keys, Boolean(frame.get("words", false)));
    this.units = frame.get("special", true) ? this.every : this.every.filter(({ quiet }) => !quiet);
    const chosen = this.head();
    this.back.hidden = chosen === null || this.panels.length === 1;
    const width = this.node.clientWidth || 640;
    this.columns = this.#unfolded(roomFor(this.units.length, width, chosen !== null));
    const drawn = this.columns.map((unit) => this.units[unit]);
    for (const panel of this.panels) {
      panel.node.hidden = chosen !== null && panel.head !== chosen;
      panel.values = trace.rows.map((row) => trace.held(row, panel.head, drawn));
    }
    const shown = this.panels.filter(({ node }) => !node.hidden);
    const quiet = drawn.map((unit) => unit.quiet);
    this.largest = this.#largest(drawn.map((unit) => unit.quiet || trace.readFrom(unit) > 0.5));
    this.layout =
      chosen === null ? panelLayout(shown.length, drawn, width, trace.rows.length) : largeLayout(drawn.length, width, trace.rows.length);
    this.grid.style.gridTemplateColumns = `repeat(${this.layout.columns}, ${this.layout.width}px)`;
    this.grid.classList.toggle("large", chosen !== null);
    const given = {
      layout: this.layout,
      dark: darkness(this.largest, Boolean(frame.get("root", false))),
      palette: this.palette,
      threshold: frame.get("threshold", 0),
      chosen: this.#row().layer,
      quiet,
    };
    this.dark = given.dark;
    for (const panel of shown) this.#base(panel, given);
    this.#fillText();
    this.#scaleBar();
    this.paint();
    this.#say(shown);
  }

  /** The end of the scale: one for all heads, so that one that is enlarged is as dark as it was among the others. The read-out,
   * special tokens and sinks are set aside, because they hold nearly all. @param {boolean[]} aside by column */
  #largest(aside) {
    const below = this.trace.rows.flatMap(({ layer }, row) => (layer === null ? [] : [row]));
    const held = this.panels.flatMap(({ values }) => below.flatMap((row) => [...values[row]]));
    const flags = this.panels.flatMap(() => below.flatMap(() => aside));
    const most = (wanted) => held.reduce((most, value, place) => (wanted(place) && value > most ? value : most), 0);
    return Math.max(SMALLEST_SCALE, most((place) => !flags[place]) || most(() => true));
  }

  /** The units that have a column, in the order of the text: where not all have room, those that are pinned and those that hold
   * most in any head and row. @param {number} room */
  #unfolded(room) {
    const { units, trace, frame } = this;
    const overfull = units.length > room;
    if (this.fold) this.fold.hidden = !overfull;
    if (!overfull || !frame.get("folded", true)) return units.map((_, unit) => unit);
    const most = new Float64Array(units.length);
    for (const { head } of this.panels)
      for (const row of trace.rows) trace.held(row, head, units).forEach((value, unit) => (most[unit] = Math.max(most[unit], value)));
    const kept = loudest(most, room, placesHolding(units, frame.get("keys", [])));
    this.quietest = most.reduce((loud, value, unit) => (kept.includes(unit) ? loud : Math.max(loud, value)), 0);
    return kept;
  }

  /** Draws one panel where it is kept, so that pointing at it only lays a mark over it. */
  #base(panel, given) {
    const { layout, trace, frame } = this;
    const units = this.columns.map((unit) => this.units[unit]);
    const context = sharp(panel.base, layout.width, layout.height);
    const lines = frame.get("lines", true) ? trace.linesOf(panel.head, units) : [];
    drawRows(context, trace.rows, given);
    drawDots(context, panel.values, lines, given);
    if (layout.foot >= LEAST_FOOT) drawTokens(context, units, trace.rows.length, given);
    // what was drawn, for whoever wants to check it against the trace
    panel.canvas.scene = {
      head: panel.head === null ? null : trace.described.heads[panel.head],
      layers: trace.rows.map(({ layer }) => layer),
      places: units.map(({ places }) => places),
      values: panel.values.map((row) => [...row]),
      shades: panel.values.map((row) => Array.from(row, (value) => (value < given.threshold ? null : given.dark(value)))),
      lines: lines.flatMap((some, row) => some.filter(({ value }) => value >= given.threshold).map((line) => ({ ...line, row }))),
      labels: layout.foot >= LEAST_FOOT ? units.map(({ text }) => text) : [],
      largest: this.largest,
      x: units.map((_, unit) => dotAt(layout, unit, 0).x),
      y: trace.rows.map((_, row) => dotAt(layout, 0, row).y),
    };
  }

  /** The row that the text shows. */
  #row() {
    return this.trace.rows.find(({ layer }) => layer !== null && layer === this.frame.get("layer")) ?? this.trace.rows.at(-1);
  }

  /** The text with what the chosen layer holds as background and font weight. */
  #fillText() {
    const { units, trace } = this;
    this.held = trace.held(this.#row(), this.head(), units);
    const scale = {
      start: 0,
      end: Math.max(
        SMALLEST_SCALE,
        scaleOf(
          [...this.held],
          units.map(({ quiet }) => quiet),
        ).end,
      ),
    };
    const dark = darkness(scale.end, Boolean(this.frame.get("root", false)));
    this.text.fill(units);
    this.text.select(this.frame.get("keys", []));
    const { sequential } = this.palette;
    this.text.tokens.forEach((token, place) => {
      const share = dark(this.held[place]);
      const colour = sequential[Math.round(share * (sequential.length - 1))];
      token.classList.toggle("beyond", isBeyond(this.held[place], scale));
      Object.assign(token.style, { backgroundColor: colour, color: inkOn(colour), fontWeight: String(400 + 100 * Math.round(4 * share)) });
      token.dataset.value = String(this.held[place]);
    });
    const { layer } = this.#row();
    const whose = this.head() === null ? "mean of heads" : `head ${trace.described.heads[this.head()]}`;
    this.caption.textContent = `The text: what ${layer === trace.described.layers[0] ? `layer ${layer}, on the input,` : `layer ${layer}`} holds (${whose}), from 0 to ${short(scale.end)}, as background and weight${this.held.some((value) => isBeyond(value, scale)) ? "; special tokens and sinks beyond that have a bar above" : ""}.`;
  }

  #scaleBar() {
    const wide = 96;
    const context = sharp(this.scale, 344, 16);
    const { sequential } = this.palette;
    drawRamp(
      context,
      { left: 16, top: 3, width: wide, height: 10 },
      (share) => sequential[Math.round(this.dark(this.largest * share) * (sequential.length - 1))],
    );
    context.fillStyle = this.palette.read("quiet");
    context.fillText("0", 0, 8.5);
    context.fillText(`≥ ${short(this.largest)} of a head’s attention`, 16 + wide + 8, 8.5);
  }

  /** Lays the marks of what is looked at, or pinned, over the panels. */
  paint() {
    if (!this.layout) return;
    const { layout, units } = this;
    const marked = placesHolding(units, this.frame.get("keys", []));
    for (const { node, canvas, base } of this.panels) {
      if (node.hidden) continue;
      const context = sharp(canvas, layout.width, layout.height);
      context.drawImage(base, 0, 0, layout.width, layout.height);
      const tall = this.trace.rows.length * layout.step;
      const column = (unit, colour) => {
        const place = this.columns.indexOf(unit);
        if (place < 0) return;
        context.strokeStyle = this.palette.read(colour);
        context.strokeRect(layout.gutter + place * layout.pitch + 0.5, 3.5, Math.max(layout.pitch - 1, 1), tall + 1);
      };
      for (const unit of marked) column(unit, "text");
      if (this.#hover && this.#hover.unit !== undefined) column(this.#hover.unit, "focus");
    }
    this.text.tokens.forEach((token, unit) => token.classList.toggle("looked", unit === this.#hover?.unit));
  }

  // ---- pointing and pinning

  /** Looks at a token for as long as the pointer stays. @param {{unit: number} | null} at */
  hover(at, place = null, lines = []) {
    const same = at?.unit === this.#hover?.unit;
    this.#hover = at;
    if (!same) this.paint();
    this.frame.tell(place, lines);
  }

  /** What is said of a dot: its figure, its rank in its row, its share of the layer over all heads, and what is pinned. */
  #told(values, row, head, unit) {
    const { heads } = this.trace.described;
    const value = values[unit];
    const rank = 1 + values.filter((other) => other > value).length;
    const where = row.layer === null ? "Read-out" : `Layer ${row.layer}`;
    const lines = [`“${this.units[unit].text.slice(0, 60)}”`];
    if (row.layer === null) lines.push(`Read-out: ${value.toFixed(4)}, rank ${rank} of ${values.length}`);
    else if (head === null)
      lines.push(
        `${where}, sum of ${heads.length} heads: ${(value * heads.length).toFixed(4)}, rank ${rank} of ${values.length}`,
        `${percent(value)} of the layer`,
      );
    else
      lines.push(
        `${where}, head ${heads[head]}: ${value.toFixed(4)}, rank ${rank} of ${values.length}`,
        `${percent(value / heads.length)} of the layer with all its heads`,
      );
    const chosen = placesHolding(this.units, this.frame.get("keys", []));
    if (chosen.length > 1)
      lines.push(`${chosen.length} pinned tokens together: ${chosen.reduce((sum, place) => sum + values[place], 0).toFixed(4)}`);
    return lines;
  }

  #overDots(panel, event) {
    if (!this.layout) return;
    const at = placeAt(this.layout, event.offsetX, event.offsetY, this.columns.length, this.trace.rows.length);
    if (!at) return this.hover(null);
    const [unit, row] = [this.columns[at.unit], this.trace.rows[at.row]];
    return this.hover(
      { unit },
      { x: event.clientX, y: event.clientY },
      this.#told(this.trace.held(row, panel.head, this.units), row, panel.head, unit),
    );
  }

  #overText(unit, box) {
    if (this.held) this.hover({ unit }, { x: box.left, y: box.bottom }, this.#told(this.held, this.#row(), this.head(), unit));
  }

  #clickedDots(event) {
    const at = placeAt(this.layout, event.offsetX, event.offsetY, this.columns.length, this.trace.rows.length);
    if (at) this.#pin(this.columns[at.unit], event.shiftKey);
  }

  #pin(unit, more) {
    this.frame.pin("keys", this.units[unit].places, more);
  }

  // ---- in words

  /** What the rows are, what is not drawn and how much it holds, and where most has gathered. */
  #say(shown) {
    const { described, rows } = this.trace;
    const threshold = this.frame.get("threshold", 0);
    const said = [
      `${described.readout ? "The top row is the read-out; below it" : "From the top"} layer ${described.layers.at(-1)} down to layer ${described.layers[0]}, on the input tokens.`,
      `Ink is on a ${this.frame.get("root", false) ? "square-root" : "linear"} scale that ends with the largest besides the read-out, special tokens and sinks; lines to these are grey.`,
    ];
    const mass = (row, units) => this.trace.held(row, this.head(), units).reduce((sum, value) => sum + value, 0);
    // queries that attend to nothing hand nothing on: what they lose is lost, not hidden
    const hidden = (row) => mass(row, this.every) - mass(row, this.units);
    if (this.units.length < this.every.length)
      said.push(
        `${this.every.length - this.units.length} special tokens and sinks are hidden: they hold ${percent(hidden(this.#row()))} at layer ${this.#row().layer}, ${percent(rows.reduce((sum, row) => sum + hidden(row), 0) / rows.length)} over all rows.`,
      );
    const folded = this.units.length - this.columns.length;
    if (folded)
      said.push(
        `${folded} tokens that hold at most ${short(this.quietest)} anywhere are folded away: “Fold quiet tokens”, key f, unfolds them.`,
      );
    const faint = shown.flatMap(({ values }) => values.flatMap((row) => [...row].filter((value) => value < threshold)));
    if (faint.length)
      said.push(
        `${faint.length} dots below ${threshold.toFixed(3)} are not drawn (${percent(faint.reduce((sum, value) => sum + value, 0) / (shown.length * rows.length))} of the attention).`,
      );
    if (described.lines !== null && this.frame.get("lines", true))
      said.push(
        `Lines hand on at least ${described.faintest_line} of a head’s attention; fainter ones, ${percent(described.lines_left_out)} of it, are not drawn.`,
      );
    for (const warning of described.warnings) said.push(`${warning[0].toUpperCase()}${warning.slice(1)}.`);
    this.frame.said.textContent = said.join(" ");
    const best = this.held.indexOf(Math.max(...this.held));
    const whose = this.head() === null ? "all heads" : `head ${described.heads[this.head()]}`;
    this.frame.summary.textContent = this.units.length
      ? `Layer ${this.#row().layer}, ${whose}: most has gathered on “${this.units[best].text}”, ${percent(this.held[best])}.`
      : "Every token is hidden.";
  }

  /** The rows of the table: a token each, with what every layer holds of it. */
  table() {
    const { rows, described } = this.trace;
    const head = this.head();
    const columns = rows.map((row) => this.trace.held(row, head, this.units));
    return {
      caption: head === null ? `Mean of ${described.heads.length} heads, by layer` : `Head ${described.heads[head]}, by layer`,
      columns: ["Token", ...rows.map(({ layer }) => (layer === null ? "Read-out" : `Layer ${layer}`))],
      rows: this.units.map(({ text }, unit) => [text, ...columns.map((values) => values[unit].toFixed(4))]),
    };
  }
}

/** Draws the view into an element and keeps it true to the model. @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const { keys, trace: described } = model.get("payload");
  const frame = new Frame({ model, el }, "tracing", "The text: choose tokens");
  const panel = new TracingPanel(frame, { keys }, new Trace(model, described, keys.texts.length));
  frame.stepper("Layer of the text", "layer", described.layers);
  frame.threshold();
  wordsControl(frame, keys);
  quietControl(frame, keys);
  panel.fold = frame.check("Fold quiet tokens", "folded", "f", "fold or unfold quiet tokens of a long text");
  if (described.lines !== null) frame.check("Lines", "lines");
  frame.check("Square-root scale", "root");
  frame.body.append(panel.node);
  return frame.start(panel);
}
