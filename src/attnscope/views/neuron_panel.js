// Tokens left and right, strips of dimensions between them, and the sum that makes a weight: the body of the neuron view.

import { colours, element, percent, sharp, short } from "./drawing.js";
import { dimensionOrder } from "./neuron_sums.js";
import { drawColumns, drawStairScale, drawSum, signedColour, stripLayout } from "./neuron_strips.js";
import { unitsOf } from "./units.js";

const ROW = 24;
const MOST_HEIGHT = 480;
const SUM_HEIGHT = 112;
const SCALE_WIDTH = 280;

/** What the panel shows of the model. */
export const NEURON_STATE = ["layer", "head", "query", "keys", "order", "special", "threshold", "root"];

const figure = (value, digits = 2) => (value === -Infinity ? "−∞" : value.toFixed(digits).replace("-", "−"));

/** One query against every key. */
export class NeuronPanel {
  #hover = null;
  #dimension = null;

  /** @param {import("./frame.js").Frame} frame @param {object} payload @param {import("./neuron_sums.js").VectorLayers} layers */
  constructor(frame, payload, layers) {
    Object.assign(this, { frame, payload, layers });
    this.masked = new Set(payload.queries.masked);
    this.columns = {};
    for (const side of ["queries", "keys"]) {
      const list = element("div", { className: `tokens ${side}`, role: "listbox", ariaLabel: side === "queries" ? "Tokens that attend: choose one" : "Tokens attended to", ariaMultiselectable: String(side === "keys") });
      this.columns[side] = { list, units: unitsOf(payload[side], false), shown: [], focused: 0 };
      list.addEventListener("focusin", (event) => (this.columns[side].focused = this.columns[side].shown[Number(event.target.dataset.row)]));
      list.addEventListener("click", (event) => this.#clicked(side, event));
      list.addEventListener("keydown", (event) => this.#moved(side, event));
    }
    const { queries, keys } = this.columns;
    keys.list.addEventListener("pointerover", (event) => this.#overKey(event));
    keys.list.addEventListener("focusin", (event) => this.#overKey(event));
    for (const leaving of ["pointerleave", "focusout"]) keys.list.addEventListener(leaving, () => this.hover(null));
    this.headings = element("canvas", { className: "headings", ariaHidden: "true" });
    this.strips = element("canvas", { className: "strips" });
    const bar = element("div", { className: "bar quiet" }, element("span", {}, "attends"), this.headings, element("span", {}, "attended to"));
    this.grid = element("div", { className: "columns" }, bar, queries.list, element("div", { className: "middle" }, this.strips), keys.list);
    this.area = element("div", { className: "area", tabIndex: -1 }, this.grid);
    this.bars = element("canvas", { className: "bars" });
    this.steps = element("div", { className: "steps", role: "group", ariaLabel: "From the products to the weight" });
    this.scales = ["query, key", "query × key"].map((words) => ({ words, canvas: element("canvas", { className: "scale", ariaHidden: "true" }) }));
    this.heading = element("h3", {});
    this.node = element("div", { className: "neuron-panel" }, this.area, element("div", { className: "legend" }, ...this.scales.map(({ canvas }) => canvas)), this.heading, this.steps, this.bars);
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
    const { frame, layers: { described } } = this;
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
    const quiet = (unit) => !frame.get("special", true) && (unit.special || unit.sink);
    const { queries, keys } = this.columns;
    queries.shown = queries.units.flatMap((unit, position) => (quiet(unit) && position !== this.query ? [] : [position]));
    keys.shown = keys.units.flatMap((unit, position) => (quiet(unit) || this.sums[position].weight < threshold ? [] : [position]));
    // one scale for all that is shown of a head: the strips of two tokens can be compared
    this.largest = { vectors: 1e-9, products: 1e-9 };
    const most = (name, values) => values.forEach((value) => (this.largest[name] = Math.max(this.largest[name], Math.abs(value))));
    for (const position of queries.shown) most("vectors", this.vectors.query(position));
    for (const position of keys.shown) most("vectors", this.vectors.key(position));
    for (const position of keys.shown) most("products", this.sums[position].products);
    for (const side of ["queries", "keys"]) this.#fill(side);
    this.#layOut();
    this.paint();
  }

  /** Makes the tokens of one column; only what has changed. */
  #fill(side) {
    const { list, units, shown } = this.columns[side];
    const signature = JSON.stringify(shown);
    if (list.dataset.signature !== signature) {
      list.dataset.signature = signature;
      // who reads by key stays on the token that was read, or the one after it
      const focused = list.contains(list.getRootNode().activeElement);
      const kept = Math.max(shown.findIndex((place) => place >= this.columns[side].focused), 0);
      list.replaceChildren(...shown.map((place, row) => {
        const unit = units[place];
        const made = element("button", { type: "button", className: `token${unit.special ? " special" : ""}${unit.join ? " join" : ""}`, role: "option", tabIndex: row === kept ? 0 : -1, dir: "auto", title: unit.text.length > 24 ? unit.text : "" }, unit.text.slice(0, 200));
        made.dataset.row = String(row);
        return made;
      }));
      if (focused) list.children[kept]?.focus();
    }
    const pinned = side === "queries" ? [this.query] : this.frame.get("keys", []);
    [...list.children].forEach((token, row) => {
      token.setAttribute("aria-selected", String(pinned.includes(shown[row])));
      if (side === "keys") token.classList.toggle("unseen", this.sums[shown[row]].logit === -Infinity);
    });
  }

  #layOut() {
    const { queries, keys } = this.columns;
    const rows = Math.max(queries.shown.length, keys.shown.length, 1);
    const height = Math.min(rows * ROW, MOST_HEIGHT);
    const texts = queries.list.offsetWidth + keys.list.offsetWidth;
    const around = this.node.clientWidth || 640;
    this.layout = stripLayout(this.layers.described.shape[2], around - texts - (rows * ROW > height ? 16 : 0));
    this.size = { rows, height, around };
    this.area.style.maxHeight = `${MOST_HEIGHT + ROW}px`;
    this.grid.style.height = `${(rows + 1) * ROW}px`;
  }

  /** The key that is looked at: under the pointer, else the last one pinned, else the one with the largest weight. */
  #active() {
    const { shown } = this.columns.keys;
    const pinned = this.frame.get("keys", []).filter((position) => shown.includes(position));
    const strongest = shown.reduce((best, position) => (best === null || this.sums[position].weight > this.sums[best].weight ? position : best), null);
    return { key: this.#hover ?? pinned.at(-1) ?? strongest, ordering: pinned.at(-1) ?? this.#hover ?? strongest, pinned };
  }

  /** Paints the strips, the sum of the key that is looked at, and what is said of it. */
  paint() {
    if (!this.sums) return;
    const { queries, keys } = this.columns;
    const { key, ordering, pinned } = this.#active();
    const { layers, frame, palette, layout, sums, vectors, chosen } = this;
    const width = layers.described.shape[2];
    this.order = ordering === null ? dimensionOrder(new Float32Array(width), "natural") : dimensionOrder(sums[ordering].products, frame.get("order", "natural"));
    const colour = signedColour(palette.diverging, Boolean(frame.get("root", false)));
    const top = this.area.scrollTop;
    const inSight = (shown) => shown.flatMap((position, row) => (row * ROW + ROW > top && row * ROW < top + this.size.height ? [{ position, y: row * ROW - top }] : []));
    const rows = inSight(keys.shown).map(({ position, y }) => ({ position, y, key: vectors.key(position), ...sums[position], active: position === key }));
    const asking = inSight(queries.shown).map(({ position, y }) => ({ position, y, vector: vectors.query(position), active: position === this.query }));
    const given = { layout, order: this.order, colour, largest: this.largest, palette, row: ROW, dimension: this.#dimension };
    drawColumns(sharp(this.headings, layout.whole, ROW), sharp(this.strips, layout.whole, this.size.height), asking, rows, given);
    this.scales.forEach(({ words, canvas }, place) => drawStairScale(sharp(canvas, SCALE_WIDTH, 16), words, place ? this.largest.products : this.largest.vectors, { colour, palette }));
    // what was drawn, for whoever wants to check it against the record
    this.strips.scene = { ...chosen, query: this.query, key, order: [...this.order], rows: rows.map(({ position, y, dot, scaled, bias, logit, weight }) => ({ key: position, y, dot, scaled, bias, logit, weight })) };
    this.#sum(key, pinned, colour);
    this.#say();
  }

  /** The products of one key as bars and as a sum, step by step to its weight. */
  #sum(key, pinned, colour) {
    const { layers: { described }, columns: { queries, keys }, size, chosen } = this;
    const context = sharp(this.bars, size.around, SUM_HEIGHT);
    if (key === null) {
      this.heading.textContent = "No key is shown";
      this.steps.replaceChildren();
      this.bars.scene = null;
      return;
    }
    const sum = this.sums[key];
    this.bar = drawSum(context, sum.products, { order: this.order, colour, largest: this.largest.products, palette: this.palette, width: size.around, height: SUM_HEIGHT, dimension: this.#dimension });
    this.bars.scene = { key, order: [...this.order], products: this.order.map((dimension) => sum.products[dimension]), sum: sum.dot };
    this.heading.replaceChildren(element("bdi", {}, queries.units[this.query].text.slice(0, 40)), " → ", element("bdi", {}, keys.units[key].text.slice(0, 40)));
    const step = (sign, value, words) => element("div", {}, element("b", {}, sign, value), element("span", { className: "quiet" }, words));
    const rank = 1 + this.sums.filter(({ weight }) => weight > sum.weight).length;
    const steps = [step("Σ = ", figure(sum.dot), `sum of ${sum.products.length} products`), step("× ", short(described.scaling[chosen.place]), "scaling"), step("= ", figure(sum.scaled), "scaled")];
    if (described.softcap !== null) steps.push(step("→ ", figure(sum.capped), `soft cap at ${short(described.softcap)}`));
    steps.push(step(sum.bias < 0 && sum.bias > -Infinity ? "− " : "+ ", figure(sum.bias < 0 && sum.bias > -Infinity ? -sum.bias : sum.bias), sum.bias === -Infinity ? "bias: masked" : "bias"), step("= ", figure(sum.logit), "logit"));
    steps.push(step("softmax → ", sum.weight.toFixed(3), `weight, rank ${rank} of ${this.sums.length}`));
    if (pinned.length > 1) steps.push(step("", pinned.reduce((all, position) => all + this.sums[position].weight, 0).toFixed(3), `${pinned.length} pinned keys together`));
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

  #overKey(event) {
    const token = event.target.closest?.(".token");
    if (!token || !this.sums) return;
    const key = this.columns.keys.shown[Number(token.dataset.row)];
    this.hover(key, null, null, this.#told(key));
  }

  #told(key) {
    const { queries, keys } = this.columns;
    const sum = this.sums[key];
    const { layer, head } = this.chosen;
    const rank = 1 + this.sums.filter(({ weight }) => weight > sum.weight).length;
    return [`“${queries.units[this.query].text.slice(0, 40)}” → “${keys.units[key].text.slice(0, 40)}”`, `Layer ${layer}, head ${head}`, `logit ${figure(sum.logit)}`, `weight ${sum.weight.toFixed(3)}, rank ${rank} of ${this.sums.length}`];
  }

  /** What is said of one dimension: its three figures, and its rank among the products. */
  #toldOf(key, dimension) {
    const { products } = this.sums[key];
    const rank = 1 + products.filter((product) => product > products[dimension]).length;
    const figures = `${short(this.vectors.query(this.query)[dimension])} × ${short(this.vectors.key(key)[dimension])} = ${short(products[dimension])}`;
    return [`“${this.columns.keys.units[key].text.slice(0, 40)}”, dimension ${dimension}`, `query × key: ${figures}`, `contribution ${rank} of ${products.length}`];
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
      return this.hover(null, dimension, place, [`“${this.columns.queries.units[query].text.slice(0, 40)}”, dimension ${dimension}`, `query ${short(this.vectors.query(query)[dimension])}`]);
    }
    const key = this.#rowAt(event, "keys");
    if (key === undefined) return this.hover(null);
    if (index === null) return this.hover(key, null, place, this.#told(key));
    if (key !== this.#hover && this.frame.get("order") === "contribution") {
      // dimensions may be sorted for this very key: its own order comes first
      this.#hover = key;
      this.paint();
    }
    return this.hover(key, this.order[index], place, this.#toldOf(key, this.order[index]));
  }

  #overBars(event) {
    const { key } = this.bars.scene ?? { key: null };
    const dimension = this.bar && this.order[this.bar.at(event.offsetX)];
    if (key === null || dimension === undefined) return this.hover(null);
    // the key stays what it is: the pointer has left its row, and is on its own sum
    return this.hover(key, dimension, { x: event.clientX, y: event.clientY }, this.#toldOf(key, dimension));
  }

  #clickedStrip(event) {
    const query = this.layout.at(event.offsetX).column === "query";
    const position = this.#rowAt(event, query ? "queries" : "keys");
    if (position !== undefined) this.#pin(query ? "queries" : "keys", position, event.shiftKey);
  }

  #clicked(side, event) {
    const token = event.target.closest(".token");
    if (token) this.#pin(side, this.columns[side].shown[Number(token.dataset.row)], event.shiftKey);
  }

  /** Chooses the query; pins a key, releases it if it is pinned, or with `more` adds it to those that are. */
  #pin(side, position, more) {
    if (side === "queries") return this.frame.set({ query: position });
    const pinned = this.frame.get("keys", []);
    const others = pinned.filter((other) => other !== position);
    const on = others.length < pinned.length;
    return this.frame.set({ keys: more ? (on ? others : [...pinned, position]) : on ? [] : [position] });
  }

  #moved(side, event) {
    const token = event.target.closest(".token");
    const by = { n: 1, p: -1 }[event.key];
    if (!token || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && event.shiftKey) this.#pin(side, this.columns[side].shown[Number(token.dataset.row)], true);
    else if (by) {
      const next = this.columns[side].list.children[Number(token.dataset.row) + by];
      if (!next) return;
      [token.tabIndex, next.tabIndex] = [-1, 0];
      next.focus();
    } else return;
    event.preventDefault();
  }

  // ---- in words

  /** What is not shown, how exact the figures are, and what the strongest key is. */
  #say() {
    const { described } = this.layers;
    const { layer, head, place, headPlace } = this.chosen;
    const shown = new Set(this.columns.keys.shown);
    const left = this.sums.filter((_, position) => !shown.has(position));
    const sharing = described.heads.filter((_, other) => other !== headPlace && described.key_heads[other] === described.key_heads[headPlace]);
    const said = [`Colour is the value, on a ${this.frame.get("root", false) ? "square-root" : "linear"} scale.`];
    if (left.length) said.push(`${left.length} keys are not shown and take ${percent(left.reduce((sum, { weight }) => sum + weight, 0))} of the attention.`);
    if (sharing.length) said.push(`Head ${head} shares its keys with head${sharing.length > 1 ? "s" : ""} ${sharing.join(", ")} (grouped queries).`);
    said.push(`Vectors are 16-bit floats (three digits): in layer ${layer} logits differ from the record by at most ${described.errors.logits[place]}, weights by at most ${described.errors.weights[place]}.`);
    this.frame.said.textContent = said.join(" ");
    const best = this.sums.reduce((best, sum, position) => (sum.weight > this.sums[best].weight ? position : best), 0);
    const { queries, keys } = this.columns;
    const masked = this.masked.has(this.query) ? "attends to nothing" : `attends most to “${keys.units[best].text}”, ${this.sums[best].weight.toFixed(3)} (logit ${figure(this.sums[best].logit)})`;
    this.frame.summary.textContent = `Layer ${layer}, head ${head}: “${queries.units[this.query].text}” ${masked}.`;
  }

  /** The rows of the table: every key of the chosen query. */
  table() {
    const { units, shown } = this.columns.keys;
    const { layer, head } = this.chosen ?? {};
    return {
      caption: `Layer ${layer}, head ${head}: the keys of “${this.columns.queries.units[this.query ?? 0].text}”`,
      columns: ["Key", "Sum of products", "Scaled", "Bias", "Logit", "Weight"],
      rows: shown.map((position) => {
        const { dot, scaled, bias, logit, weight } = this.sums[position];
        return [units[position].text, figure(dot), figure(scaled), figure(bias), figure(logit), weight.toFixed(4)];
      }),
    };
  }
}
