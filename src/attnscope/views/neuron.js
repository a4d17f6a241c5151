// The neuron view: how a query and a key become a weight, dimension by dimension.

import { colours, element, sharp, short } from "./drawing.js";
import { Frame, quietControl } from "./frame.js";
import {
  NeuronWords,
  VectorLayers,
  dimensionOrder,
  drawColumns,
  drawSignedScale,
  drawSum,
  figure,
  signedColour,
  stripLayout,
} from "./neuron_strips.js";
import { TokenList, pinnedAfter, unitsOf } from "./units.js";

// ---- Tokens left and right, strips of dimensions between them, and the sum that makes a weight: the body of the neuron view.

const ROW = 24;
/** Up to so many tokens every row is in sight; longer texts scroll within the view. */
const MOST_ROWS = 160;
const LONG_HEIGHT = 480;
const SUM_HEIGHT = 112;
const SCALE_WIDTH = 280;

/** One query against every key. */
export class NeuronPanel {
  #hover = null;
  #dimension = null;
  #opened = false;

  /** @param {import("./frame.js").Frame} frame @param {NeuronPayload} payload @param {import("./neuron_strips.js").VectorLayers} layers */
  constructor(frame, payload, layers) {
    this.frame = frame;
    this.payload = payload;
    this.layers = layers;
    this.masked = new Set(payload.queries.masked);
    this.rowHeight = ROW;
    this.words = new NeuronWords(this);
    this.columns = {};
    for (const [side, label] of [
      ["queries", "Tokens that attend: choose one"],
      ["keys", "Tokens attended to"],
    ]) {
      const position = (row) => this.columns[side].shown[row];
      const look = (row) => side === "keys" && this.sums && this.hover(position(row), null, null, this.words.about(position(row)));
      const list = new TokenList({
        name: `column ${side}`,
        label,
        several: side === "keys",
        look,
        leave: () => this.hover(null),
        pin: (row, more) => this.#pin(side, position(row), more),
      });
      this.columns[side] = { list, units: unitsOf(payload[side], false), shown: [] };
    }
    const { queries, keys } = this.columns;
    this.headings = element("canvas", { className: "headings", ariaHidden: "true" });
    this.strips = element("canvas", { className: "strips" });
    const bar = element(
      "div",
      { className: "bar quiet" },
      element("span", {}, "attends"),
      this.headings,
      element("span", {}, "attended to"),
    );
    this.grid = element(
      "div",
      { className: "columns" },
      bar,
      queries.list.node,
      element("div", { className: "middle" }, this.strips),
      keys.list.node,
    );
    this.area = element("div", { className: "area", tabIndex: -1 }, this.grid);
    this.bars = element("canvas", { className: "bars" });
    this.steps = element("div", { className: "steps", role: "group", ariaLabel: "From the products to the weight" });
    this.scales = ["query, key", "query × key"].map((words) => ({
      words,
      canvas: element("canvas", { className: "scale", ariaHidden: "true" }),
    }));
    this.heading = element("h3", {});
    this.node = element(
      "div",
      { className: "neuron-panel" },
      this.area,
      element("div", { className: "legend" }, ...this.scales.map(({ canvas }) => canvas)),
      this.heading,
      this.steps,
      this.bars,
    );
    this.area.addEventListener("scroll", () => this.paint());
    this.strips.addEventListener("pointermove", (event) => this.#overStrips(event));
    this.strips.addEventListener("click", (event) => this.#clickedStrip(event));
    this.bars.addEventListener("pointermove", (event) => this.#overBars(event));
    for (const canvas of [this.strips, this.bars]) canvas.addEventListener("pointerleave", () => this.hover(null));
    frame.listKey("n p", "next and previous token");
    frame.listKey("Enter", "choose the query, or pin the key; with Shift, add it");
    frame.key("Escape", "release the keys", () => frame.set({ keys: [] }));
  }

  /** Decodes the layer, computes every sum of the chosen query, and paints. */
  async draw() {
    const {
      frame,
      layers: { described },
    } = this;
    const place = Math.max(described.layers.indexOf(frame.get("layer")), 0);
    const layer = await this.layers.layer(place);
    this.palette = colours(frame.el);
    // read once: every look at a style after something has changed makes the browser lay the page out
    for (const name of ["text", "quiet", "line", "bar", "focus"]) this.palette[name] = this.palette.read(name);
    const head = Math.max(described.heads.indexOf(frame.get("head")), 0);
    const count = this.columns.queries.units.length;
    this.query = Math.min(Math.max(frame.get("query", 0), 0), count - 1);
    this.vectors = this.layers.head(layer, place, head);
    this.sums = this.vectors.sums(this.query);
    this.chosen = { layer: described.layers[place], head: described.heads[head], place, headPlace: head };
    const threshold = frame.get("threshold", 0);
    const quiet = (unit) => !frame.get("special", true) && unit.quiet;
    const { queries, keys } = this.columns;
    queries.shown = queries.units.flatMap((unit, position) => (quiet(unit) && position !== this.query ? [] : [position]));
    keys.shown = keys.units.flatMap((unit, position) => (quiet(unit) || this.sums[position].weight < threshold ? [] : [position]));
    // one scale for all that is shown of a head: the strips of two tokens can be compared
    this.largest = { vectors: 1e-9, products: 1e-9 };
    const most = (name, values) => values.forEach((value) => (this.largest[name] = Math.max(this.largest[name], Math.abs(value))));
    for (const position of queries.shown) most("vectors", this.vectors.query(position));
    for (const position of keys.shown) most("vectors", this.vectors.key(position));
    for (const position of keys.shown) most("products", this.sums[position].products);
    for (const { list, units, shown } of [queries, keys]) list.fill(shown.map((position) => units[position]));
    queries.list.select([this.query]);
    keys.list.select(frame.get("keys", []));
    keys.list.tokens.forEach((token, row) => token.classList.toggle("unseen", this.sums[keys.shown[row]].logit === -Infinity));
    this.#layOut();
    this.#bringIntoSight();
    this.paint();
  }

  /** Scrolls a long text, once, to where the query and the key that it opens with stand. */
  #bringIntoSight() {
    if (this.#opened) return;
    this.#opened = true;
    const { queries, keys } = this.columns;
    const rows = [queries.shown.indexOf(this.query), keys.shown.indexOf(this.#active().key)].filter((row) => row >= 0);
    const middle = (rows.reduce((sum, row) => sum + row, 0) / Math.max(rows.length, 1) + 0.5) * ROW;
    this.area.scrollTop = Math.max(middle - this.size.height / 2, 0);
  }

  #layOut() {
    const { queries, keys } = this.columns;
    const rows = Math.max(queries.shown.length, keys.shown.length, 1);
    const height = rows <= MOST_ROWS ? rows * ROW : LONG_HEIGHT;
    const texts = queries.list.node.offsetWidth + keys.list.node.offsetWidth;
    const around = this.node.clientWidth || 640;
    this.layout = stripLayout(this.layers.described.shape[2], around - texts - (rows * ROW > height ? 16 : 0));
    this.size = { rows, height, around };
    this.area.style.maxHeight = `${height + ROW}px`;
    this.grid.style.height = `${(rows + 1) * ROW}px`;
  }

  /** The key that is looked at: under the pointer, else the last one pinned, else the one with the largest weight. */
  #active() {
    const { shown } = this.columns.keys;
    const pinned = this.frame.get("keys", []).filter((position) => shown.includes(position));
    const strongest = shown.reduce(
      (best, position) => (best === null || this.sums[position].weight > this.sums[best].weight ? position : best),
      null,
    );
    return { key: this.#hover ?? pinned.at(-1) ?? strongest, ordering: pinned.at(-1) ?? this.#hover ?? strongest, pinned };
  }

  /** Paints the strips, the sum of the key that is looked at, and what is said of it. */
  paint() {
    if (!this.sums) return;
    const { queries, keys } = this.columns;
    const { key, ordering, pinned } = this.#active();
    const { layers, frame, palette, layout, sums, vectors, chosen } = this;
    const width = layers.described.shape[2];
    this.order =
      ordering === null
        ? dimensionOrder(new Float32Array(width), "natural")
        : dimensionOrder(sums[ordering].products, frame.get("order", "natural"));
    const colour = signedColour(palette.diverging, Boolean(frame.get("root", false)));
    const top = this.area.scrollTop;
    const inSight = (shown) =>
      shown.flatMap((position, row) =>
        row * ROW + ROW > top && row * ROW < top + this.size.height ? [{ position, y: row * ROW - top }] : [],
      );
    const rows = inSight(keys.shown).map(({ position, y }) => ({
      position,
      y,
      key: vectors.key(position),
      ...sums[position],
      active: position === key,
    }));
    const asking = inSight(queries.shown).map(({ position, y }) => ({
      position,
      y,
      vector: vectors.query(position),
      active: position === this.query,
    }));
    const given = { layout, order: this.order, colour, largest: this.largest, palette, row: ROW, dimension: this.#dimension };
    drawColumns(sharp(this.headings, layout.whole, ROW), sharp(this.strips, layout.whole, this.size.height), asking, rows, given);
    // where only products are drawn, no colour stands for a vector
    this.scales[0].canvas.hidden = Boolean(layout.narrow);
    this.scales.forEach(({ words, canvas }, place) =>
      drawSignedScale(sharp(canvas, SCALE_WIDTH, 16), words, place ? this.largest.products : this.largest.vectors, { colour, palette }),
    );
    // what was drawn, for whoever wants to check it against the record
    this.strips.scene = {
      ...chosen,
      query: this.query,
      key,
      order: [...this.order],
      rows: rows.map(({ position, y, dot, scaled, bias, logit, weight }) => ({ key: position, y, dot, scaled, bias, logit, weight })),
    };
    this.#sum(key, pinned, colour);
    this.words.say();
  }

  /** The products of one key as bars and as a sum, step by step to its weight. */
  #sum(key, pinned, colour) {
    const {
      layers: { described },
      columns: { queries, keys },
      size,
      chosen,
    } = this;
    const context = sharp(this.bars, size.around, SUM_HEIGHT);
    if (key === null) {
      this.heading.textContent = "No key is shown";
      this.steps.replaceChildren();
      this.bars.scene = null;
      return;
    }
    const sum = this.sums[key];
    this.bar = drawSum(context, sum.products, {
      order: this.order,
      colour,
      largest: this.largest.products,
      palette: this.palette,
      width: size.around,
      height: SUM_HEIGHT,
      dimension: this.#dimension,
    });
    this.bars.scene = { key, order: [...this.order], products: this.order.map((dimension) => sum.products[dimension]), sum: sum.dot };
    this.heading.replaceChildren(
      element("bdi", {}, queries.units[this.query].text.slice(0, 40)),
      " → ",
      element("bdi", {}, keys.units[key].text.slice(0, 40)),
    );
    const step = (sign, value, words) => element("div", {}, element("b", {}, sign, value), element("span", { className: "quiet" }, words));
    const steps = [
      step("Σ = ", figure(sum.dot), `sum of ${sum.products.length} products`),
      step("× ", short(described.scaling[chosen.place]), "scaling"),
      step("= ", figure(sum.scaled), "scaled"),
    ];
    if (described.softcap !== null) steps.push(step("→ ", figure(sum.capped), `soft cap at ${short(described.softcap)}`));
    steps.push(
      step(
        sum.bias < 0 && sum.bias > -Infinity ? "− " : "+ ",
        figure(sum.bias < 0 && sum.bias > -Infinity ? -sum.bias : sum.bias),
        sum.bias === -Infinity ? "bias: masked" : "bias",
      ),
      step("= ", figure(sum.logit), "logit"),
    );
    steps.push(step("softmax → ", sum.weight.toFixed(3), `weight, ${this.words.rank(key)}`));
    if (pinned.length > 1)
      steps.push(
        step("", pinned.reduce((all, position) => all + this.sums[position].weight, 0).toFixed(3), `${pinned.length} pinned keys together`),
      );
    this.steps.replaceChildren(...steps);
  }

  // ---- pointing and pinning

  /** Looks at a key, and a dimension of it, for as long as the pointer stays. */
  hover(key, dimension = null, place = null, lines = []) {
    const same = key === this.#hover && dimension === this.#dimension;
    [this.#hover, this.#dimension] = [key, dimension];
    if (!same) this.paint();
    this.frame.tell(place, lines);
  }

  #rowAt(event, side) {
    return this.columns[side].shown[Math.floor((event.offsetY + this.area.scrollTop) / ROW)];
  }

  #overStrips(event) {
    if (!this.sums) return;
    const { column, index } = this.layout.at(event.offsetX);
    const place = { x: event.clientX, y: event.clientY };
    if (column === "query") {
      const query = this.#rowAt(event, "queries");
      const dimension = this.order[index];
      if (query === undefined) return this.hover(null);
      return this.hover(null, dimension, place, this.words.aboutQuery(query, dimension));
    }
    const key = this.#rowAt(event, "keys");
    if (key === undefined) return this.hover(null);
    if (index === null) return this.hover(key, null, place, this.words.about(key));
    if (key !== this.#hover && this.frame.get("order") === "contribution") {
      // dimensions may be sorted for this very key: its own order comes first
      this.#hover = key;
      this.paint();
    }
    return this.hover(key, this.order[index], place, this.words.aboutProduct(key, this.order[index]));
  }

  #overBars(event) {
    const { key } = this.bars.scene ?? { key: null };
    const dimension = this.bar && this.order[this.bar.at(event.offsetX)];
    if (key === null || dimension === undefined) return this.hover(null);
    // the key stays what it is: the pointer has left its row, and is on its own sum
    return this.hover(key, dimension, { x: event.clientX, y: event.clientY }, this.words.aboutProduct(key, dimension));
  }

  #clickedStrip(event) {
    const query = this.layout.at(event.offsetX).column === "query";
    const position = this.#rowAt(event, query ? "queries" : "keys");
    if (position !== undefined) this.#pin(query ? "queries" : "keys", position, event.shiftKey);
  }

  /** Chooses the query; pins a key, releases it if it is pinned, or with `more` adds it to those that are. */
  #pin(side, position, more) {
    if (side === "queries") return this.frame.set({ query: position });
    return this.frame.set({ keys: pinnedAfter(this.frame.get("keys", []), [position], more) });
  }

  /** Every key of the chosen query, as rows. */
  table() {
    return this.words.table();
  }
}

/** Draws the view into an element and keeps it true to the model. @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const payload = model.get("payload");
  const layers = new VectorLayers(model, payload.vectors);
  const frame = new Frame({ model, el }, "neuron", "Neuron view: how query and key become a weight");
  const panel = new NeuronPanel(frame, payload, layers);
  frame.stepper("Layer", "layer", payload.vectors.layers);
  frame.stepper("Head", "head", payload.vectors.heads);
  frame.select("Dimensions", "order", [
    ["natural", "In their own order"],
    ["contribution", "By contribution"],
  ]);
  frame.key("o", "order of the dimensions", () => frame.set({ order: frame.get("order") === "natural" ? "contribution" : "natural" }));
  frame.threshold();
  quietControl(frame, payload.queries, payload.keys);
  frame.check("Square-root scale", "root");
  frame.body.append(panel.node);
  return frame.start(panel);
}
