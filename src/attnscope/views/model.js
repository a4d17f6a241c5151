// The model view: every layer and head at once as a small picture of its map; one click shows a head with its tokens, in place.

import { at, colours, drawScale, element, movedPlace, percent, pointedPlace, sharp, short, written } from "./drawing.js";
import { Frame, headChips, nextHead, recordControls } from "./frame.js";
import { HeadPanel } from "./head.js";
import { listed } from "./head_lines.js";
import { ModelHeaders, Thumbnails, colourTable, isShare, pictures, sideFor, sortedPlaces, unitAfter, weightOf } from "./model_maps.js";
import { unitsOf } from "./units.js";
import { Layers } from "./weights.js";

// ---- All heads at once: layers down, heads across, a picture of the map of each; headers that sort; point to read, Enter to enlarge.

const TALLEST = 780;
const [SMALLEST_CELL, LOWEST_CELL, LARGEST_CELL] = [14, 52, 240];
/** Pixels between two pictures, where the bar of the head's statistic stands; fewer where many stand in a narrow place. */
const [BETWEEN, CLOSE, NARROW] = [8, 5, 32];

/** The mean of numbers that were measured. @param {number[]} numbers */
const meanOf = (numbers) => {
  const measured = numbers.filter(Number.isFinite);
  return measured.length ? measured.reduce((sum, number) => sum + number, 0) / measured.length : NaN;
};

/** The pictures of all heads with their headers. */
class ModelGrid {
  #painted = "";
  #cell = 0;
  #rows = [];
  #columns = [];

  /** @param {import("./frame.js").Frame} frame @param {ModelPayload} payload @param {import("./model_maps.js").Thumbnails} thumbnails
   * @param {(layer: number, head: number) => void} enlarge given their numbers */
  constructor(frame, payload, thumbnails, enlarge) {
    const { layers, heads, pooled } = payload.weights;
    this.frame = frame;
    this.payload = payload;
    this.thumbnails = thumbnails;
    this.enlarge = enlarge;
    this.layers = layers;
    this.heads = heads;
    this.pooled = pooled;
    this.cells = element("canvas", { className: "cells", tabIndex: 0, role: "application" });
    this.cells.setAttribute("aria-roledescription", "maps of all heads");
    this.cursor = element("div", { className: "cursor", hidden: true });
    this.headers = new ModelHeaders(frame, payload.weights);
    const { corner, along, down } = this.headers;
    this.scale = element("canvas");
    this.barKey = element("span", {});
    this.weightKey = element("span", { className: "quiet" });
    this.legend = element(
      "div",
      { className: "legend" },
      this.scale,
      this.weightKey,
      element("span", { className: "quiet bar-key" }, element("i", { ariaHidden: "true" }), this.barKey),
    );
    const chart = element(
      "div",
      { className: "chart" },
      corner,
      along,
      down,
      element("div", { className: "field" }, this.cells, this.cursor),
    );
    this.node = element("div", { className: "grid" }, element("div", { className: "scroll maps" }, chart), this.legend);
    this.cells.addEventListener("pointermove", (event) => this.#point(this.#placeOf(event)));
    this.cells.addEventListener("pointerleave", () => this.#point(null));
    this.cells.addEventListener("click", (event) => this.#open(this.#placeOf(event)));
    this.cells.addEventListener("keydown", (event) => this.#pressed(event));
    for (const kind of ["focus", "blur"]) this.cells.addEventListener(kind, () => this.#point(null));
    frame.listKey("← → ↑ ↓", "among all heads: move; Home and End for the first and the last");
    frame.listKey("Enter", "among all heads: enlarge the head");
  }

  // ---- drawing

  /** Decodes the pictures that are chosen and draws them in their order. */
  async draw() {
    const { frame, payload, layers, heads, thumbnails } = this;
    const [words, special] = [Boolean(frame.get("words", false)), Boolean(frame.get("special", true))];
    const name = thumbnails.named(words, special);
    const codes = await thumbnails.codes(name);
    if (name !== thumbnails.named(Boolean(frame.get("words", false)), Boolean(frame.get("special", true)))) return;
    this.statistic = payload.statistics.find((one) => one.name === frame.get("statistic")) ?? payload.statistics[0];
    this.value = (layer, head) => at(this.statistic.values, layer, head);
    this.ofLayer = (layer) => meanOf(heads.map((_, head) => this.value(layer, head)));
    this.ofHead = (head) => meanOf(layers.map((_, layer) => this.value(layer, head)));
    this.#rows = this.#order("sort_layers", layers, this.ofLayer, (place, by) => this.value(place, Math.max(heads.indexOf(by), 0)));
    this.#columns = this.#order("sort_heads", heads, this.ofHead, (place, by) => this.value(Math.max(layers.indexOf(by), 0), place));
    const units = { queries: unitsOf(payload.queries, name.startsWith("words")), keys: unitsOf(payload.keys, name.startsWith("words")) };
    const seen = (side) => (name.endsWith("-quiet") ? units[side].filter(({ quiet }) => !quiet) : units[side]);
    this.shown = { name, codes, queries: seen("queries"), keys: seen("keys"), ...thumbnails.described[name] };
    this.palette = colours(frame.el);
    const most = Math.max(...layers.flatMap((_, layer) => heads.map((_, head) => this.value(layer, head))).filter(Number.isFinite), 1e-9);
    this.largest = isShare(this.statistic) ? 1 : most;
    this.headers.draw({ rows: this.#rows, columns: this.#columns }, this);
    this.#layOut();
    // moving over the grid changes none of this, and hundreds of pictures need not be painted again for it
    const signature = JSON.stringify([
      name,
      this.#rows,
      this.#columns,
      this.statistic.name,
      Boolean(frame.get("root", false)),
      this.#cell,
      this.side,
      window.devicePixelRatio,
      this.palette.read("ground"),
    ]);
    if (signature !== this.#painted) this.#paint();
    this.#painted = signature;
    this.#say();
    this.#point(null);
  }

  /** The places of layers or heads in the order that is chosen. @param {(place: number) => number} mean @param {(place: number, by: number) => number} value */
  #order(name, numbers, mean, value) {
    const [by, falling] = this.frame.get(name) ?? [];
    if (by === undefined) return numbers.map((_, place) => place);
    return sortedPlaces(
      numbers.map((_, place) => (by === "mean" ? mean(place) : value(place, by))),
      falling,
    );
  }

  #layOut() {
    const room = (this.node.clientWidth || 640) - this.headers.corner.offsetWidth - 8;
    const wide = Math.min(Math.max(Math.floor(room / this.heads.length), SMALLEST_CELL), LARGEST_CELL);
    const wanted = Math.min(wide, Math.max(LOWEST_CELL, Math.floor(TALLEST / this.layers.length)));
    const density = window.devicePixelRatio || 1;
    const most = Math.min(wide, Math.round(1.25 * wanted));
    const between = wide < NARROW ? CLOSE : BETWEEN;
    // by the tokens, whatever is shown of them: a picture keeps its size when words are joined or tokens hidden
    this.side =
      sideFor(Math.floor((wanted - between) * density), Math.floor((most - between) * density), this.thumbnails.described.tokens.shape) /
      density;
    this.#cell = Math.ceil(this.side) + between;
    this.node.style.setProperty("--cell", `${this.#cell}px`);
    this.node.style.setProperty("--side", `${this.side}px`);
  }

  #paint() {
    const { layers, heads, palette, side, shown } = this;
    const [cell, density] = [this.#cell, window.devicePixelRatio || 1];
    const hairline = 1 / density;
    const context = sharp(this.cells, heads.length * cell, layers.length * cell);
    const pixels = Math.round(side * density);
    const picture = pictures(shown.shape, pixels, colourTable(palette.sequential, Boolean(this.frame.get("root", false))));
    const [line, bar] = [palette.read("line"), palette.read("bar")];
    const scene = [];
    this.#rows.forEach((layer, row) =>
      this.#columns.forEach((head, column) => {
        // the frame stands around the picture: its outermost pixels are the first and the last token, most often special ones
        const [left, top] = [column * cell + hairline, row * cell + hairline];
        const codes = this.thumbnails.of(shown.codes, shown.name, layer, head);
        if (codes.length) context.putImageData(picture(codes), Math.round(left * density), Math.round(top * density));
        context.strokeStyle = line;
        context.lineWidth = hairline;
        context.strokeRect(left - hairline / 2, top - hairline / 2, side + hairline, side + hairline);
        const value = this.value(layer, head);
        const length = Number.isFinite(value) ? side * Math.min(value / this.largest, 1) : 0;
        context.fillStyle = bar;
        context.fillRect(left, top + side + hairline + 1, length, 2);
        scene.push({
          layer: layers[layer],
          head: heads[head],
          left,
          top,
          side,
          value,
          bar: length,
          get pixels() {
            return Array.from(codes, weightOf);
          },
        });
      }),
    );
    // what was drawn, for whoever wants to check it against the weights
    this.cells.scene = scene;
    this.cells.setAttribute(
      "aria-label",
      `${layers.length} layers by ${heads.length} heads. Arrow keys move, Enter enlarges, question mark lists the keys.`,
    );
    drawScale(this.scale, { signed: false, largest: 1, root: Boolean(this.frame.get("root", false)) }, palette);
  }

  // ---- in words

  #say() {
    const { frame, shown, statistic } = this;
    // what is drawn may be coarser than what travels
    const pixels = Math.round(this.side * (window.devicePixelRatio || 1));
    const [down, across] = shown.shape.map((blocks, axis) => Math.ceil(shown.units[axis] / Math.max(Math.min(blocks, pixels), 1)));
    const unit = shown.name.startsWith("words") ? "word" : "token";
    const many = (count) => (count === 1 ? `one ${unit}` : `${count} ${unit}s`);
    const largest =
      down * across === 1 ? `one pixel is one weight` : `one pixel is the largest weight from ${many(down)} to ${many(across)}`;
    const [high, wide] = shown.block;
    const pixel = shown.mean ? `one pixel is what each of ${many(high)} gives to ${many(wide)} together, in the mean` : largest;
    this.weightKey.textContent = `weight, ${frame.get("root", false) ? "square-root" : "linear"} scale; ${pixel}; rows are the ${unit}s that attend, columns those attended to`;
    this.barKey.textContent = `bars: ${statistic.title.toLowerCase()}, as wide as a map at ${short(this.largest)}${unitAfter(statistic)}`;
    const said = [
      `The bar below each map is its ${statistic.title.toLowerCase()} (${statistic.meaning}), from 0 to ${short(this.largest)}${unitAfter(statistic)}, over tokens that have a choice; in the headers, its mean.`,
    ];
    if (!shown.shape[0] || !shown.shape[1]) said.push("Every token is special or a sink: nothing is left to draw.");
    else if (shown.hidden > 1e-6) said.push(`Tokens that are hidden take ${percent(shown.hidden)} of the attention.`);
    const { kept, left_out: leftOut } = this.payload.weights;
    if (kept !== null) said.push(`The maps are of all weights; enlarged, each query has its ${kept} largest keys.`);
    if (leftOut.length)
      said.push(`Heads of these layers cannot be enlarged, as their weights have no room in this page: ${listed(leftOut)}.`);
    frame.said.textContent = said.join(" ");
    const places = this.layers.flatMap((_, layer) => this.heads.map((_, head) => [layer, head]));
    const [layer, head] = places.reduce((best, place) => (this.value(...place) > this.value(...best) ? place : best));
    frame.summary.textContent = `Maps of ${this.layers.length} layers by ${this.heads.length} heads, ${shown.units[0]} by ${shown.units[1]} ${unit}s; highest ${statistic.title.toLowerCase()} ${written(this.value(layer, head))} at layer ${this.layers[layer]}, head ${this.heads[head]}.`;
  }

  /** The name of a head. @param {number} layer its place @param {number} head its place */
  nameOf(layer, head) {
    return `Layer ${this.layers[layer]}, ${this.pooled ? "mean of all heads" : `head ${this.heads[head]}`}`;
  }

  /** The role of a head in words: what it does on this one text. */
  roleOf(layer, head) {
    const { names, places, shares, chances, counted } = this.payload.roles;
    const role = places[layer][head];
    const share = at(shares, layer, head);
    const of = !counted[role]
      ? "its attention"
      : this.payload.keys.special.length + this.payload.keys.sinks.length
        ? "what goes to no special token or sink"
        : "its attention";
    const why =
      chances[role] !== null
        ? `, ${percent(share)} of ${of} (${percent(chances[role])} by chance)`
        : names[role] === "broad"
          ? `, ${percent(share)} of the largest entropy`
          : "";
    return `On this text: ${names[role]}${why}`;
  }

  #strongest(layer, head) {
    const { queries, keys, pair, weight } = this.shown;
    const [query, key] = [queries[at(pair, layer, head, 0)], keys[at(pair, layer, head, 1)]];
    const cut = (text) => (text.length > 40 ? `${[...text].slice(0, 40).join("")}…` : text);
    return query && key
      ? `Strongest: “${cut(query.text)}” → “${cut(key.text)}” ${at(weight, layer, head).toFixed(4)}`
      : "No pair of tokens to choose from";
  }

  /** What is said of a head. */
  told(layer, head) {
    const { statistic } = this;
    const value = this.value(layer, head);
    const all = this.layers.flatMap((_, row) => this.heads.map((_, column) => this.value(row, column)));
    const rank = Number.isFinite(value)
      ? `${unitAfter(statistic)}, rank ${1 + all.filter((other) => other > value).length} of ${all.length}`
      : "";
    return [
      this.nameOf(layer, head),
      `${statistic.title} ${written(value)}${rank}`,
      this.roleOf(layer, head),
      this.#strongest(layer, head),
    ];
  }

  /** The rows of the table: every head with its figures, in the order of the grid. */
  table() {
    const { statistics, roles } = this.payload;
    return {
      caption: "Every head on this text, as sorted",
      columns: ["Layer", "Head", ...statistics.map(({ title }) => title), "Role on this text"],
      rows: this.#rows.flatMap((layer) =>
        this.#columns.map((head) => [
          this.layers[layer],
          this.heads[head],
          ...statistics.map(({ values }) => written(at(values, layer, head))),
          roles.names[roles.places[layer][head]],
        ]),
      ),
    };
  }

  // ---- pointing and opening

  #placeOf(event) {
    return pointedPlace(event, { width: this.#cell, height: this.#cell }, [this.layers.length, this.heads.length]);
  }

  /** Where the head that the model names stands in the grid: its row and its column. */
  #selected() {
    const place = (numbers, order, name) => Math.max(order.indexOf(Math.max(numbers.indexOf(this.frame.get(name)), 0)), 0);
    return /** @type {[number, number]} */ ([place(this.layers, this.#rows, "layer"), place(this.heads, this.#columns, "head")]);
  }

  /** Looks at a head for as long as the pointer stays, else at the one that has the focus. @param {[number, number] | null} place row and column */
  #point(place) {
    const shown = place ?? (document.activeElement === this.cells ? this.#selected() : null);
    this.cursor.hidden = !shown;
    if (!shown) return this.frame.tell(null);
    const [row, column] = shown;
    Object.assign(this.cursor.style, { left: `${column * this.#cell + 2}px`, top: `${row * this.#cell + 2}px` });
    const box = this.cells.getBoundingClientRect();
    // beside the picture; where that has no room, below it
    const below = this.node.clientWidth < 560 ? this.side : 0;
    const corner = { x: box.left + column * this.#cell + this.side - 6, y: box.top + row * this.#cell - 10 + below };
    return this.frame.tell(corner, this.told(this.#rows[row], this.#columns[column]));
  }

  #open([row, column]) {
    this.enlarge(this.layers[this.#rows[row]], this.heads[this.#columns[column]]);
  }

  #pressed(event) {
    const moved = movedPlace(event, this.#selected(), [this.layers.length, this.heads.length]);
    if (moved) {
      this.frame.set({ layer: this.layers[this.#rows[moved[0]]], head: this.heads[this.#columns[moved[1]]] });
      this.#inSight(...moved);
    } else if (event.key === "Enter" || event.key === " ") this.#open(this.#selected());
    else return;
    event.preventDefault();
  }

  /** Scrolls so that a picture is seen beside the headers. */
  #inSight(row, column) {
    const scroll = this.node.firstElementChild;
    const [top, left] = [row * this.#cell, column * this.#cell];
    const [high, wide] = [
      scroll.clientHeight - this.headers.along.offsetHeight - this.#cell,
      scroll.clientWidth - this.headers.corner.offsetWidth - this.#cell,
    ];
    scroll.scrollTop = Math.min(Math.max(scroll.scrollTop, top - high), top);
    scroll.scrollLeft = Math.min(Math.max(scroll.scrollLeft, left - wide), left);
  }

  /** Gives the focus to the picture that the model names. */
  focus() {
    this.#inSight(...this.#selected());
    this.cells.focus({ preventScroll: true });
    this.#point(null);
  }
}

/** The head view while it stands in place of the grid: hidden, a pointer that leaves it has nothing to say. */
class EnlargedHead extends HeadPanel {
  hover(rows, place, lines) {
    if (!this.node.closest("[hidden]")) super.hover(rows, place, lines);
  }
}

/** Draws the view into an element and keeps it true to the model. @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const payload = model.get("payload");
  const { layers, heads } = payload.weights;
  const frame = new Frame({ model, el }, "model", "Model view: the attention map of every head");
  const enlarged = () => Boolean(frame.get("enlarged", false));
  frame.select(
    "Statistic",
    "statistic",
    payload.statistics.map(({ name, title }) => [name, title]),
  );
  frame.controls.lastElementChild.classList.add("of-grid");
  recordControls(frame, payload);
  // what chooses among the lines of one head has nothing to choose among the maps of all
  for (const choice of frame.controls.querySelectorAll(".stepper, .threshold, label:has(select[aria-label=Sentences])"))
    choice.classList.add("of-head");
  const panel = new EnlargedHead(frame, payload, new Layers(model, payload.weights));
  const thumbnails = new Thumbnails(model, payload.maps, heads.length);
  const grid = new ModelGrid(frame, payload, thumbnails, (layer, head) => frame.set({ layer, head, heads: [head], enlarged: true }));
  const back = element("button", { type: "button", onclick: leave }, "‹ All heads ", element("kbd", {}, "Esc"));
  const [title, role] = [element("h3"), element("span", { className: "quiet" })];
  const one = element(
    "div",
    { className: "one", hidden: true },
    element("div", { className: "bar" }, back, title, role),
    headChips(frame, payload.weights),
    panel.node,
  );
  frame.body.append(grid.node, one);
  frame.stepping(
    "layer",
    (by) => enlarged() && frame.set({ layer: layers[Math.min(Math.max(layers.indexOf(frame.get("layer")) + by, 0), layers.length - 1)] }),
  );
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
    title.textContent =
      shown.length === 1
        ? grid.nameOf(layer, heads.indexOf(shown[0]))
        : `Layer ${layers[layer]}, ${shown.length === heads.length ? "all" : shown.length} heads`;
    role.textContent = shown.length === 1 ? grid.roleOf(layer, heads.indexOf(shown[0])) : "";
  }

  return frame.start({ draw, table: () => (enlarged() ? panel.table() : grid.table()) });
}
