// The head view: tokens left and right, a line for each weight, head by head and layer by layer.

import { colours, element, sharp } from "./drawing.js";
import { Frame, headChips, recordControls } from "./frame.js";
import { HeadWords, LinesByRow, drawLines, fadedShare, inBands, lineAt, linesOf, panelHeight, strongest } from "./head_lines.js";
import { LONG_LIST, TokenList, eachIn, loudest, placesHolding, unitsOf } from "./units.js";
import { Layers } from "./weights.js";

// ---- Tokens left and right, a line for each weight between them: the body of the head view, wherever it stands.

const ROW = 24;
/** Pixels of the figures beside a column: with a stripe for each head, and where there is little room without. */
const [FIGURES, FEW_FIGURES, NARROW_PANEL] = [132, 52, 640];
const STRIP = 20;
/** Lines that a screen can tell apart and a browser draws without a visible wait. */
const MOST_LINES = 4000;

/** Two columns of tokens with the lines of the chosen heads between them. */
export class HeadPanel {
  #hover = null;
  #scene = null;
  /** Sums of weights that were asked for, until the next draw. @type {Map<string, Float32Array[]>} */
  #sums = new Map();

  /** @param {import("./frame.js").Frame} frame @param {HeadPayload} payload @param {import("./weights.js").Layers} layers */
  constructor(frame, payload, layers) {
    this.frame = frame;
    this.payload = payload;
    this.layers = layers;
    this.masked = new Set(payload.queries.masked);
    this.rowHeight = ROW;
    this.words = new HeadWords(this, MOST_LINES);
    this.lines = element("canvas", { className: "lines" });
    this.strip = element("canvas", { className: "strip", title: "The whole text: click to go there" });
    this.columns = {};
    for (const [side, label] of [
      ["queries", "Tokens that attend"],
      ["keys", "Tokens attended to"],
    ]) {
      const list = new TokenList({
        name: `column ${side}`,
        label,
        look: (row, box) => this.#pointed(side, row, box),
        leave: () => this.hover(null),
        pin: (row, more) => this.#pin(side, row, more),
      });
      this.columns[side] = { list, figures: element("canvas", { className: "figures" }), units: [], shown: [] };
    }
    const { queries, keys } = this.columns;
    const sticky = (canvas) => element("div", { className: "cell" }, canvas);
    this.grid = element(
      "div",
      { className: "columns" },
      sticky(queries.figures),
      queries.list.node,
      sticky(this.lines),
      keys.list.node,
      sticky(keys.figures),
    );
    this.area = element("div", { className: "area", tabIndex: -1 }, this.grid);
    this.node = element("div", { className: "head-panel" }, this.area, this.strip);
    this.area.addEventListener("scroll", () => this.paint());
    this.lines.addEventListener("pointermove", (event) => this.#overLines(event));
    this.lines.addEventListener("pointerleave", () => this.hover(null));
    this.strip.addEventListener(
      "click",
      (event) => (this.area.scrollTop = (event.offsetY / this.strip.clientHeight) * this.area.scrollHeight - this.area.clientHeight / 2),
    );
    frame.listKey("n p", "next and previous token");
    frame.listKey("Enter", "pin the token, or release it; with Shift, add it");
    frame.key("Escape", "release all", () => frame.set({ queries: [], keys: [] }));
    frame.key("g", "go to where the token that is looked at has its largest weight", () => this.#goToLargest());
  }

  /** The heads that are shown, by their places. */
  heads() {
    const { heads } = this.layers.described;
    const chosen = this.frame.get("heads");
    const places = heads.map((_, place) => place);
    return chosen ? places.filter((place) => chosen.includes(heads[place])) : places;
  }

  colour(head) {
    const { categorical } = this.palette;
    return categorical[head % categorical.length];
  }

  /** Decodes the layer, lays the columns out, and paints. */
  async draw() {
    const { frame, payload, layers } = this;
    const described = layers.described;
    const place = Math.max(described.layers.indexOf(frame.get("layer")), 0);
    if (this.#isLeftOut(described.layers[place])) return;
    const layer = await layers.layer(place);
    const palette = colours(frame.el);
    // read once for each draw: a style that is read while painting costs more than the painting
    this.palette = { categorical: palette.categorical, text: palette.read("text"), focus: palette.read("focus") };
    this.layer = layer;
    const [words, special] = [Boolean(frame.get("words", false)), frame.get("special", true)];
    const between = frame.get("between", "all");
    const allowed = (query, key) => between === "all" || between === `${query.sentence}${key.sentence}`;
    const needed = (side, unit) =>
      (special || !unit.quiet) && (between === "all" || unit.sentence === Number(between[side === "queries" ? 0 : 1]));
    for (const side of ["queries", "keys"]) {
      const column = this.columns[side];
      column.units = unitsOf(payload[side], words);
      column.shown = column.units.flatMap((unit, place) => (needed(side, unit) ? [place] : []));
      column.list.fill(column.shown.map((place) => column.units[place]));
      column.list.select(frame.get(side, []));
    }
    const { queries, keys } = this.columns;
    const given = {
      shape: described.shape,
      queries: queries.units,
      keys: keys.units,
      shownQueries: queries.shown,
      shownKeys: keys.shown,
      masked: this.masked,
      threshold: frame.get("threshold", 0),
      opacity: (weight) => this.#opacity(weight),
      between: allowed,
    };
    const found = linesOf(layer, this.heads(), given);
    const quiet = [queries, keys].some(({ units, shown }) => shown.some((unit) => units[unit].special || units[unit].sink));
    const best = found.lines.reduce((best, line) => (line.weight > (best?.weight ?? 0) ? line : best), null);
    const [begin, end] = [queries, keys].map(({ shown }, side) => new LinesByRow(found.lines, side ? "key" : "query", shown.length));
    this.found = { ...found, best, hasQuiet: quiet, begin, end };
    this.#sums = new Map();
    this.#layOut();
    this.paint();
  }

  /** Says so where the weights of a layer had no room. @param {number} layer its number */
  #isLeftOut(layer) {
    const without = this.layers.described.left_out.includes(layer);
    this.node.hidden = without;
    if (!without) return false;
    this.found = null;
    this.frame.said.textContent = `The weights of layer ${layer} have no room in this page: views.head(record, layer=${layer}) shows them.`;
    this.frame.summary.textContent = this.frame.said.textContent;
    return true;
  }

  #layOut() {
    const { queries, keys } = this.columns;
    const rows = Math.max(queries.shown.length, keys.shown.length, 1);
    const height = panelHeight(rows, ROW);
    const around = this.node.clientWidth || 640;
    const long = rows * ROW > height;
    this.strip.hidden = !long;
    const texts = Math.max(queries.list.node.scrollWidth, keys.list.node.scrollWidth, 64);
    const beside = around < NARROW_PANEL ? FEW_FIGURES : FIGURES;
    const middle = Math.min(Math.max(around - 2 * Math.min(texts, 220) - 2 * beside - (long ? STRIP + 24 : 8), 64), 420);
    this.size = { height, middle, rows, beside };
    this.area.style.maxHeight = `${height}px`;
    this.grid.style.height = `${rows * ROW}px`;
    sharp(this.lines, middle, height);
    for (const { figures } of [queries, keys]) sharp(figures, beside, height);
    if (long) sharp(this.strip, STRIP, height);
  }

  #opacity(weight) {
    return Math.min(1, this.frame.get("root", false) ? Math.sqrt(weight) : weight);
  }

  /** The rows whose tokens are looked at: under the pointer, else pinned. */
  #active() {
    if (this.#hover) return this.#hover;
    const rows = (side) => {
      const { units, shown } = this.columns[side];
      return placesHolding(
        shown.map((place) => units[place]),
        this.frame.get(side, []),
      );
    };
    const [queries, keys] = [rows("queries"), rows("keys")];
    return queries.length || keys.length ? { queries, keys } : null;
  }

  /** Paints the lines, the figures beside them and the overview for what is looked at now. */
  paint() {
    if (!this.found) return;
    const active = this.#active();
    const { height, middle } = this.size;
    const top = this.area.scrollTop;
    const [first, last] = [Math.floor(top / ROW), Math.ceil((top + height) / ROW)];
    const visible = (row) => row * ROW + ROW > top && row * ROW < top + height;
    for (const { list } of Object.values(this.columns)) list.show(first, last);
    const [fromQuery, fromKey] = [new Set(active?.queries), new Set(active?.keys)];
    const { lines, begin, end } = this.found;
    const chosen = active
      ? lines.filter(({ query, key }) => (!fromQuery.size || fromQuery.has(query)) && (!fromKey.size || fromKey.has(key)))
      : lines;
    // of all lines only those at rows in sight are looked at: a long text has hundreds of thousands
    const span = (some) => some.between(Math.min(first, some.starts.length - 1), Math.min(last, some.starts.length - 1));
    const coming = () => span(end).filter(({ query }) => query < first || query >= last);
    // and of a long text those that begin there: what comes from thousands of rows elsewhere would be one curtain
    const near = active ? chosen : [...span(begin), ...(this.size.rows > LONG_LIST ? [] : coming())];
    const quiet = (side, row) => this.columns[side].units[this.columns[side].shown[row]].quiet;
    const rests = ({ query, key }) => !active && (quiet("queries", query) || quiet("keys", key));
    // of special tokens and sinks the lines that leave the part in sight are no reading of it: hundreds would run together
    const inSight = near.filter((line) => {
      const [from, to] = [visible(line.query), visible(line.key)];
      return (from && to) || ((from || to) && !rests(line));
    });
    const drawn = inSight.length > MOST_LINES ? strongest(inSight, MOST_LINES) : inSight;
    const y = (row) => row * ROW + ROW / 2 - top;
    const faded = fadedShare(this.size.rows);
    const opacity = (line) => this.#opacity(line.weight) * (rests(line) ? faded : 1);
    const { heads } = this.layers.described;
    const given = { y, width: middle, opacity, colour: (head) => this.colour(head), dash: (head) => (head % 16 < 8 ? [] : [5, 3]) };
    const scene = { lines: drawn, y, width: middle };
    this.#scene = scene;
    this.frame.busy(drawLines(sharp(this.lines, middle, height), drawn, { ...given, wanted: () => this.#scene === scene }));
    // what was drawn, for whoever wants to check it against the weights
    this.lines.scene = drawn.map((line) => ({
      query: this.columns.queries.shown[line.query],
      key: this.columns.keys.shown[line.key],
      head: heads[line.head],
      weight: line.weight,
      from: y(line.query),
      to: y(line.key),
      opacity: opacity(line),
      colour: this.colour(line.head),
    }));
    this.words.say(inSight.length - drawn.length);
    this.#figures("keys", fromQuery, fromKey);
    this.#figures("queries", fromKey, fromQuery);
    this.#overview(chosen, top);
  }

  /** The weight between what is looked at on the other side and every unit of this side: summed over tokens, by head.
   * @param {string} side queries or keys @param {Iterable<number>} others rows */
  weightsOf(side, others) {
    const rows = [...others];
    const name = `${side} ${rows}`;
    if (!this.#sums.has(name)) this.#sums.set(name, this.#summed(side, rows));
    return this.#sums.get(name);
  }

  #summed(side, others) {
    const { queries, keys } = this.columns;
    const asked = new Set(others.map((other) => keys.shown[other]));
    return this.found.rows.map((rows) => {
      const sums = new Float32Array(this.columns[side].units.length);
      if (side === "keys") for (const other of others) eachIn(rows, queries.shown[other], (key, weight) => (sums[key] += weight));
      else for (const query of queries.shown) eachIn(rows, query, (key, weight) => (sums[query] += asked.has(key) ? weight : 0));
      return sums;
    });
  }

  /** The figures of one column beside its tokens: a stripe for each head, and their mean. */
  #figures(side, others, own) {
    const { figures, shown } = this.columns[side];
    const { beside } = this.size;
    const context = sharp(figures, beside, this.size.height);
    if (!others.size) return;
    const top = this.area.scrollTop;
    const heads = this.heads();
    const stripe = Math.min(6, Math.floor(76 / Math.max(heads.length, 1)));
    const sums = this.weightsOf(side, others);
    context.fillStyle = this.palette.text;
    context.textAlign = side === "keys" ? "left" : "right";
    for (let row = Math.floor(top / ROW); row < shown.length && row * ROW < top + this.size.height; row++) {
      if (own.size && !own.has(row)) continue;
      const weights = sums.map((of) => of[shown[row]]);
      const mean = weights.reduce((sum, weight) => sum + weight, 0) / weights.length;
      if (mean < 0.0005 && !own.has(row)) continue;
      const middle = row * ROW + ROW / 2 - top;
      context.globalAlpha = 1;
      const unsure = this.layers.described.kept !== null && weights.some((weight) => weight === 0);
      context.fillText(`${unsure ? "≥ " : ""}${mean.toFixed(3)}`, side === "keys" ? 8 : beside - 8, middle + 0.5);
      if (heads.length < 2 || beside < FIGURES) continue;
      weights.forEach((weight, place) => {
        context.globalAlpha = Math.min(1, weight);
        context.fillStyle = this.colour(heads[place]);
        const across = 52 + place * stripe;
        context.fillRect(side === "keys" ? across : FIGURES - across - stripe, middle - 6, stripe - 1, 12);
      });
      context.globalAlpha = 1;
      context.fillStyle = this.palette.text;
    }
  }

  /** The whole text at the side: a hairline for each key, as dark as it is attended to, and the part in sight. */
  #overview(lines, top) {
    if (this.strip.hidden) return;
    const { height, rows } = this.size;
    const context = sharp(this.strip, STRIP, height);
    const received = new Float32Array(rows);
    for (const { key, weight } of lines) received[key] += weight;
    // more rows than pixels: each pixel has the most attended to of those that fall on it
    const bands = inBands(received, Math.floor(height));
    const most = bands.reduce((most, mass) => Math.max(most, mass), 1e-9);
    context.fillStyle = this.palette.text;
    bands.forEach((mass, band) => {
      context.globalAlpha = Math.sqrt(mass / most);
      context.fillRect(4, (band / bands.length) * height, STRIP - 8, Math.max(height / bands.length, 1));
    });
    context.globalAlpha = 1;
    context.strokeStyle = this.palette.focus;
    context.strokeRect(1.5, (top / (rows * ROW)) * height + 0.5, STRIP - 3, Math.max((height / (rows * ROW)) * height - 1, 4));
  }

  // ---- pointing and pinning

  /** Looks at rows for as long as the pointer stays. @param {{queries: number[], keys: number[]} | null} rows @param {{x: number, y: number}} [place] @param {string[]} [lines] */
  hover(rows, place, lines) {
    const same = JSON.stringify(rows) === JSON.stringify(this.#hover);
    this.#hover = rows;
    if (!same) this.paint();
    this.frame.tell(place ?? null, rows ? lines : []);
  }

  #pointed(side, row, box) {
    if (!this.found) return;
    const other = side === "queries" ? "keys" : "queries";
    this.#hover = null;
    const pinned = this.#active()?.[other] ?? [];
    const rows = side === "queries" ? { queries: [row], keys: pinned } : { queries: pinned, keys: [row] };
    // one token alone has its figures beside the other column: a note would only cover them
    this.hover(rows, pinned.length ? { x: box.right, y: box.top } : null, this.words.about(side, row, pinned));
  }

  #overLines(event) {
    if (!this.#scene) return;
    const line = lineAt(this.#scene.lines, { x: event.offsetX, y: event.offsetY }, this.#scene.y, this.#scene.width);
    if (!line) return this.#hover ? undefined : this.frame.tell(null);
    const place = this.heads().indexOf(line.head);
    const { queries, keys } = this.columns;
    const names = `“${queries.units[queries.shown[line.query]].text}” → “${keys.units[keys.shown[line.key]].text}”`;
    const layer = this.frame.get("layer", this.layers.described.layers[0]);
    this.frame.tell({ x: event.clientX, y: event.clientY }, [
      names,
      `Layer ${layer}, ${this.words.headName(line.head)}: ${this.words.exactly(place, [line.query], [line.key])}`,
    ]);
    return undefined;
  }

  /** Scrolls to the row of the other side that has most of what is looked at: in a long text it is far away. */
  #goToLargest() {
    const active = this.found && this.#active();
    if (!active) return;
    const [own, other] = active.queries.length ? ["queries", "keys"] : ["keys", "queries"];
    const sums = this.weightsOf(other, active[own]);
    const means = Float32Array.from(this.columns[other].shown, (unit) => sums.reduce((sum, weights) => sum + weights[unit], 0));
    const [row] = loudest(means, 1);
    this.area.scrollTop = row * ROW + ROW / 2 - this.size.height / 2;
  }

  #pin(side, row, more) {
    const { units, shown } = this.columns[side];
    this.frame.pin(side, units[shown[row]].places, more);
  }

  /** The largest weights of what is shown, as rows. */
  table() {
    return this.words.table();
  }
}

/** Draws the view into an element and keeps it true to the model. @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const payload = model.get("payload");
  const layers = new Layers(model, payload.weights);
  const frame = new Frame({ model, el }, "head", "Head view: where each token attends");
  const panel = new HeadPanel(frame, payload, layers);
  recordControls(frame, payload);
  frame.body.append(headChips(frame, payload.weights), panel.node);
  return frame.start(panel);
}
