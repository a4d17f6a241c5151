// The rows of the scores view: the text that asks, then the text once for each method on the colour of its scores.

import { element, groundOf, inkOn, isBeyond, shareOf, short } from "./drawing.js";
import { passFocus, stepOf, tokenButton } from "./units.js";
import { Recent, blob, fromHalves } from "./weights.js";

/** The end of a scale, short. @param {number} value */
export function ending(value) {
  return value > 0 && value < 0.001 ? value.toExponential(1).replace("-", "−") : short(value);
}

// ---- The scores out of their bytes, for a layer and a query; their order, and how far two orders agree.

/** @typedef {{values: Float64Array, own: boolean, exact: boolean}} Found `own`: the method's own scores, in place of what was asked for */

const TIE = 1e9;
const MAPS_HELD = 24;

/** The scores of every method, decoded when they are first looked at. */
export class ScoreMaps {
  #model;
  #recent = new Recent(MAPS_HELD);

  /** @param {{get: (name: string) => any}} model @param {ScoresPayload} payload */
  constructor(model, payload) {
    this.#model = model;
    this.payload = payload;
    this.keys = payload.keys.texts.length;
  }

  /** What a method says for a layer by its place, null for its own choice, and the mean over some queries; without
   * queries of the read-out. Where it does not say, its own scores.
   * @param {number} place of the method @param {number | null} layer @param {number[]} queries @returns {Promise<Found>} */
  async found(place, layer, queries) {
    const method = this.payload.methods[place];
    if (queries.length && method.map) {
      const rows = await this.#rows(`map${place}_${layer ?? this.payload.layers.length - 1}`);
      const values = new Float64Array(this.keys);
      for (const query of queries) rows(query).forEach((value, key) => (values[key] += value / queries.length));
      return { values, own: false, exact: false };
    }
    if (!queries.length && layer !== null && method.rows)
      return { values: (await this.#rows(`rows${place}`))(layer), own: false, exact: false };
    const every = await this.#hold("own", (buffer) => new Float64Array(buffer));
    return { values: every.subarray(place * this.keys, (place + 1) * this.keys), own: queries.length > 0 || layer !== null, exact: true };
  }

  /** The rows of an array: the largest of each, and 16-bit floats over it. */
  #rows(name) {
    return this.#hold(name, (buffer) => {
      const count = buffer.byteLength / (4 + 2 * this.keys);
      const largest = new Float32Array(buffer, 0, count);
      const shares = new Uint16Array(buffer, 4 * count);
      return (row) =>
        Float64Array.from(fromHalves(shares.subarray(row * this.keys, (row + 1) * this.keys)), (share) => share * largest[row]);
    });
  }

  /** @template Decoded @param {string} name @param {(buffer: ArrayBuffer) => Decoded} decode @returns {Promise<Decoded>} */
  #hold(name, decode) {
    return this.#recent.get(name, () => blob(this.#model, name).then(decode));
  }
}

/** The rank of each value, 1 for the smallest; what differs by less than 1e-9 shares the mean of its ranks.
 * @param {number[]} values */
function averageRanks(values) {
  const rounded = values.map((value) => Math.round(value * TIE));
  const order = rounded.map((_, place) => place).sort((one, other) => rounded[one] - rounded[other]);
  const ranks = new Array(values.length);
  for (let start = 0; start < order.length;) {
    let end = start;
    while (end < order.length && rounded[order[end]] === rounded[order[start]]) end++;
    for (let place = start; place < end; place++) ranks[order[place]] = (start + 1 + end) / 2;
    start = end;
  }
  return ranks;
}

/** Spearman's rank correlation; NaN where either ranks nothing. @param {number[]} first @param {number[]} second */
function spearman(first, second) {
  if (first.length < 2 || ![...first, ...second].every(Number.isFinite)) return NaN;
  const middle = (first.length + 1) / 2;
  const [one, other] = [first, second].map((values) => averageRanks(values).map((rank) => rank - middle));
  const product = (left, right) => left.reduce((sum, value, place) => sum + value * right[place], 0);
  const spread = Math.sqrt(product(one, one) * product(other, other));
  return spread ? product(one, other) / spread : NaN;
}

/** Spearman’s correlation; where only one of the two has signs, that of the sizes. @param {number[]} first @param {number[]} second */
export function rankAgreement(first, second) {
  const signed = (values) => values.some((value) => value < 0);
  if (signed(first) === signed(second)) return spearman(first, second);
  return spearman(first.map(Math.abs), second.map(Math.abs));
}

/** The place of a value among others, 1 for the highest. @param {number} value @param {number[]} values */
export const rankOf = (value, values) => 1 + values.filter((other) => other > value).length;

/** Rows of methods, tokens as columns or as running text. */
export class ScoreRows {
  #column = null;
  #made = [];
  #asking = [];
  #signature = "";
  /** Whether the text to choose a query from is unfolded: null until somebody says. @type {boolean | null} */
  #choosing = null;
  /** Scores that have no ink because they are below the threshold. */
  below = 0;
  /** Whether aligned columns are wanted and do not fit. */
  tooWide = false;

  /** @param {import("./scores.js").ScoresPanel} panel */
  constructor(panel) {
    this.panel = panel;
    this.node = element("div", { className: "rows" });
    for (const coming of ["pointerover", "focusin"]) this.node.addEventListener(coming, (event) => this.#pointed(event));
    for (const going of ["pointerleave", "focusout"]) this.node.addEventListener(going, () => this.#look(null));
    this.node.addEventListener("click", (event) => this.#pin(this.#at(event), event.shiftKey));
    this.node.addEventListener("keydown", (event) => this.#pressed(event));
  }

  /** What is said of how the rows stand. */
  get notes() {
    return this.tooWide ? ["Aligned columns do not fit here, so the text runs on."] : [];
  }

  // ---- making

  /** Makes the rows; only when what stands in them has changed. */
  fill() {
    const { frame, shown, units } = this.panel;
    const wanted = frame.get("layout", "aligned") === "aligned";
    const methods = this.panel.shownMethods();
    const room = this.panel.node.clientWidth;
    const signature = JSON.stringify([wanted, methods, shown.map(({ places }) => places[0]), units.length, wanted && room]);
    if (this.#signature === signature) return;
    this.#signature = signature;
    this.#make(methods, wanted);
    // columns that do not fit would hide tokens: the text runs on instead
    this.tooWide = wanted && this.node.scrollWidth > this.node.clientWidth + 1;
    if (this.tooWide) this.#make(methods, false);
  }

  #make(methods, aligned) {
    const { shown } = this.panel;
    this.aligned = aligned;
    this.node.className = `rows ${aligned ? "aligned" : "running"}`;
    this.node.style.gridTemplateColumns = aligned ? `var(--names) repeat(${shown.length}, max-content) max-content` : "";
    const head = this.#head();
    this.#made = methods.map((place) => this.#row(place));
    this.node.replaceChildren(head, ...this.#made.map(({ node }) => node));
    for (const first of [this.#asking[0], this.#made[0].tokens[0]]) if (first) first.tabIndex = 0;
  }

  #tokens(units) {
    const second = this.panel.units.find(({ sentence }) => sentence === 1);
    return units.map((unit, column) => {
      const made = tokenButton(unit, column);
      made.classList.toggle("second", unit === second);
      return made;
    });
  }

  /** The text itself, where another query can be asked for, and what the numbers at the edge are. */
  #head() {
    const { frame, asks, own, shownQueries, payload } = this.panel;
    this.#asking = asks ? this.#tokens(shownQueries) : [];
    this.readout = element(
      "button",
      { type: "button", className: "readout", title: "Where the model reads its answer", onclick: () => frame.set({ queries: [] }) },
      "Read-out",
    );
    this.chooser = element(
      "button",
      {
        type: "button",
        className: "readout chooser",
        hidden: true,
        title: "Choose a token: what it gets from the others",
        onclick: () => {
          this.#choosing = !this.#isChoosing();
          this.#foldChooser();
        },
      },
      "Another query",
    );
    const name = element(
      "div",
      { className: "name" },
      element("span", { className: "quiet" }, asks ? "Query" : "Method"),
      ...(asks ? [this.readout, this.chooser] : []),
    );
    this.cells = element(
      "div",
      { className: `cells${own && asks ? "" : " apart"}`, role: "group", ariaLabel: "Query: the token that asks" },
      ...this.#asking,
    );
    const agrees = element(
      "span",
      { title: "Spearman’s rank correlation over the tokens that are shown" },
      payload.methods.length > 1 ? "agreement" : "",
    );
    return element(
      "div",
      { className: "row head" },
      name,
      this.cells,
      element(
        "div",
        { className: "edge quiet" },
        element("span", { title: "Where the colours of the row end: its largest score beside special tokens and sinks" }, "scale ends"),
        agrees,
      ),
    );
  }

  #isChoosing() {
    return this.#choosing ?? this.panel.asked.length > 0;
  }

  /** Running text stands once for each method: that of the queries, which is the same, unfolds when it is asked for. */
  #foldChooser() {
    const folds = !this.aligned && this.panel.own && this.panel.asks;
    this.chooser.hidden = !folds;
    this.chooser.setAttribute("aria-expanded", String(this.#isChoosing()));
    this.cells.hidden = folds && !this.#isChoosing();
  }

  #row(place) {
    const { frame, payload, shown } = this.panel;
    const { name, trust, rows, map } = payload.methods[place];
    const alone = element(
      "button",
      {
        type: "button",
        className: "method",
        title: "Show this method alone, or all again",
        onclick: () => frame.set({ methods: frame.get("methods") ? null : [name] }),
      },
      name,
    );
    const about = [];
    if (trust && Number.isFinite(trust.value)) {
      const span = trust.low === undefined || trust.high === undefined ? "" : ` (${trust.low.toFixed(2)} to ${trust.high.toFixed(2)})`;
      about.push(element("span", { className: "quiet trust" }, `trust ${trust.value.toFixed(2)}${span}`.replace(/-/g, "−")));
    }
    // it has its line from the start, so that nothing moves when another query is asked for; where none can be, it says nothing
    const chosen = payload.methods.some((method) => method.rows || method.map);
    const only = (rows && map) || !chosen ? null : element("span", { className: "quiet only" });
    if (only) about.push(only);
    const [end, agreement] = [element("span", { className: "quiet end" }), element("span", { className: "agreement" })];
    const tokens = this.#tokens(shown);
    const cells = element("div", { className: "cells", role: "group", ariaLabel: name }, ...tokens);
    const node = element(
      "div",
      { className: "row" },
      element("div", { className: "name" }, alone, ...about),
      cells,
      element("div", { className: "edge" }, end, agreement),
    );
    node.dataset.method = String(place);
    return { place, node, tokens, only, end, agreement };
  }

  // ---- painting

  /** Colours every token, and writes what stands beside the rows. @param {Palette} palette */
  paint(palette) {
    const { frame, payload, shownQueries, asked, queries } = this.panel;
    this.below = 0;
    const scene = this.#made.map((row) => this.#paintRow(row, palette));
    this.#asking.forEach((token, column) => {
      const { places } = shownQueries[column];
      token.setAttribute("aria-pressed", String(places.some((place) => asked.includes(place))));
      token.style.setProperty("--mass", String(payload.readout ? places.reduce((sum, place) => sum + payload.readout[place], 0) : 0));
    });
    this.readout.setAttribute("aria-pressed", String(!queries.length));
    this.#foldChooser();
    // what was drawn, for whoever wants to check it against the scores
    const chosen = Object.fromEntries(Object.keys(frame.kept).map((name) => [name, frame.get(name)]));
    this.node.scene = { chosen, layer: this.panel.layer, queries: asked, tokens: this.panel.shown.map(({ text }) => text), rows: scene };
  }

  #paintRow({ place, tokens, only, end, agreement }, palette) {
    const { frame, payload, shown, words } = this.panel;
    const data = this.panel.data[place];
    const [threshold, pinned] = [frame.get("threshold", 0), new Set(frame.get("keys", []))];
    const ground = groundOf(palette, data.method.signed, Boolean(frame.get("root", false)));
    const shares = data.scores.map((score) => shareOf(score, data.scale));
    const beyond = data.scores.map((score) => isBeyond(score, data.scale));
    const below = (share) => Math.abs(share) < threshold;
    this.below += shares.filter((share) => share && below(share)).length;
    const grounds = shares.map((share) => ground(below(share) ? 0 : share));
    tokens.forEach((token, column) => {
      const pressed = String(shown[column].places.some((from) => pinned.has(from)));
      if (token.getAttribute("aria-pressed") !== pressed) token.setAttribute("aria-pressed", pressed);
      token.classList.toggle("missing", !Number.isFinite(data.scores[column]));
      token.classList.toggle("beyond", beyond[column]);
      // thousands of tokens: only those whose colour changes are touched
      if (token.dataset.ground === grounds[column]) return;
      token.dataset.ground = grounds[column];
      token.style.backgroundColor = grounds[column];
      token.style.color = inkOn(grounds[column]);
    });
    if (only) {
      only.textContent = data.own || !(data.method.rows || data.method.map) ? "read-out only" : "";
      only.classList.toggle("now", data.own);
      only.title = only.textContent && words.why(data.method);
    }
    const { start } = data.scale;
    end.textContent = `${start ? `${ending(start)}–` : data.method.signed ? "±" : ""}${ending(data.scale.end)}`;
    agreement.textContent =
      payload.methods.length < 2
        ? ""
        : data.isReference
          ? "ref."
          : Number.isNaN(data.agreement)
            ? "–"
            : data.agreement.toFixed(2).replace("-", "−");
    return { method: data.method.name, own: data.own, scores: data.scores, ...data.scale, beyond, agreement: data.agreement, grounds };
  }

  // ---- pointing, pinning, keys

  /** The token of an event: its row, null for the text that asks, and its column. */
  #at(event) {
    const token = event.target.closest?.(".token");
    if (!token || !this.panel.data) return null;
    const method = token.closest(".row").dataset.method;
    return {
      token,
      column: Number(token.dataset.place),
      row: method === undefined ? null : this.#made.find(({ place }) => place === Number(method)),
    };
  }

  /** Looks at a column for as long as the pointer stays. @param {number | null} column */
  #look(column, place = null, lines = []) {
    if (column !== this.#column) {
      for (const token of this.node.querySelectorAll(".token.looked")) token.classList.remove("looked");
      if (column !== null) for (const { tokens } of this.#made) tokens[column].classList.add("looked");
    }
    this.#column = column;
    this.panel.frame.tell(place, lines);
  }

  #pointed(event) {
    const found = this.#at(event);
    if (!found) return this.#look(null);
    const { words, shownQueries, data } = this.panel;
    const box = found.token.getBoundingClientRect();
    const place = { x: box.left, y: box.bottom - 8 };
    if (!found.row) return this.#look(null, place, words.aboutQuery(shownQueries[found.column]));
    return this.#look(found.column, place, words.about(data[found.row.place], found.column));
  }

  #pin(found, more) {
    if (found) this.panel.pin(found.row ? "keys" : "queries", found.column, more);
  }

  #pressed(event) {
    const found = this.#at(event);
    if (!found || event.ctrlKey || event.metaKey || event.altKey) return;
    const down = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0;
    if (event.key === "Enter" && event.shiftKey) this.#pin(found, true);
    else if (down || stepOf(event)) {
      const lists = [this.cells.hidden ? [] : this.#asking, ...this.#made.map(({ tokens }) => tokens)];
      const next = lists[(found.row ? 1 + this.#made.indexOf(found.row) : 0) + down]?.[found.column + stepOf(event)];
      if (next) passFocus(found.token, next);
    } else return;
    event.preventDefault();
  }
}
