// The scores of a long text: a document of which only the lines in sight are made, beside a strip of the whole text for each method.

import { element, groundOf, inkOn, isBeyond, shareOf, sharp, thousands } from "./drawing.js";
import { ending } from "./scores_rows.js";
import { stepOf, tokenButton } from "./units.js";

/** Texts of more units than this are documents: a button for every token under every method would take seconds. */
export const LONG_TEXT = 1500;
/** Pixels of a line, of the part of the document in sight, and of a strip. */
const [LINE, HEIGHT, STRIP] = [28, 616, 64];
/** Lines that are made above and below those in sight, so that scrolling meets no gap. */
const AROUND = 6;
/** Cells of a line in a strip, and pixels that a line of a short document takes there at most. */
const [COLUMNS, TALLEST] = [32, 4];
/** What stands around a token, as the style sheet has it: at either side, around a special token, and behind each. */
const [BESIDE, SPECIAL, BEHIND, WIDEST] = [3, 6, 1, 220];
/** Letters of a line that are told of it. */
const TOLD = 60;

// ---- Where tokens stand: lines of whole words, from widths that were measured without making any of them.

/** @typedef {{starts: number[], left: Float32Array, width: Float32Array, room: number}} Layout the first unit of each line, and where each unit is in its line */

/** Lines of whole words. @param {{join: boolean}[]} units @param {(place: number) => number} widthOf @param {number} room
 * @param {(place: number) => boolean} endsLine @returns {Layout} */
export function layOut(units, widthOf, room, endsLine) {
  const [left, width] = [new Float32Array(units.length), Float32Array.from(units, (_, place) => widthOf(place))];
  const starts = units.length ? [0] : [];
  for (let place = 0, across = 0; place < units.length;) {
    let [end, whole] = [place, 0];
    do whole += width[end++];
    while (end < units.length && units[end].join);
    const fits = across + whole <= room;
    // a word that fits into no line is broken between its pieces
    if (!fits && whole > room) [end, whole] = [place + 1, width[place]];
    if (across && across + whole > room) [across] = [0, starts.push(place)];
    for (; place < end; across += width[place++]) left[place] = across;
    if (endsLine(end - 1) && end < units.length) [across] = [0, starts.push(end)];
  }
  return { starts, left, width, room };
}

/** The line that a unit stands in. @param {number[]} starts @param {number} place */
export function lineOf(starts, place) {
  let [first, end] = [0, starts.length];
  while (end - first > 1) {
    const middle = (first + end) >> 1;
    if (starts[middle] <= place) first = middle;
    else end = middle;
  }
  return first;
}

/** The whole text in so many rows of `COLUMNS` cells: in each the share that is farthest from 0 of what falls on it.
 * @param {Layout} layout @param {ArrayLike<number>} shares by unit @param {number} rows */
export function stripOf({ starts, left, width, room }, shares, rows) {
  const cells = new Float32Array(rows * COLUMNS);
  for (let line = 0; line < starts.length; line++) {
    const end = starts[line + 1] ?? left.length;
    const row = Math.floor((line * rows) / starts.length) * COLUMNS;
    for (let place = starts[line]; place < end; place++) {
      const from = Math.min(Math.floor((left[place] / room) * COLUMNS), COLUMNS - 1);
      const to = Math.min(Math.ceil(((left[place] + width[place]) / room) * COLUMNS), COLUMNS);
      for (let cell = row + from; cell < row + to; cell++) if (Math.abs(shares[place]) > Math.abs(cells[cell])) cells[cell] = shares[place];
    }
  }
  return cells;
}

// ---- The document.

/** The text once, on the colour of one method, and a strip for every method; a click in a strip goes there. */
export class ScoresDocument {
  #signature = "";
  /** @type {Layout} */
  #layout = { starts: [], left: new Float32Array(), width: new Float32Array(), room: 1 };
  /** The lines that are made, by their numbers. @type {Map<number, HTMLElement>} */
  #made = new Map();
  #strips = [];
  #colour = (share) => String(share);
  #widths = new Map();
  /** Scores that have no ink because they are below the threshold. */
  below = 0;

  /** @param {import("./scores.js").ScoresPanel} panel */
  constructor(panel) {
    this.panel = panel;
    this.cells = element("div", { className: "lines" });
    this.sheet = element("div", { className: "row" }, this.cells);
    this.area = element("div", { className: "area", tabIndex: 0, role: "group" }, this.sheet);
    this.band = element("div", { className: "band" });
    this.strips = element("div", { className: "strips" });
    this.node = element("div", { className: "rows document" }, this.area, this.strips);
    this.node.style.minHeight = `${HEIGHT}px`;
    /** Pixels of the document in sight: as high as the strips with their names. */
    this.high = HEIGHT;
    this.area.addEventListener("scroll", () => this.#show());
    for (const coming of ["pointerover", "focusin"]) this.cells.addEventListener(coming, (event) => this.#pointed(event));
    for (const going of ["pointerleave", "focusout"]) this.cells.addEventListener(going, () => this.panel.frame.tell(null));
    this.cells.addEventListener("click", (event) => this.#pin(event));
    this.cells.addEventListener("keydown", (event) => this.#pressed(event));
    panel.frame.key("m", "next of the twenty highest scores", () => this.#nextHighest());
  }

  /** What is said of the document. */
  get notes() {
    const { data } = this.panel;
    const lines = thousands(this.#layout.starts.length);
    const strip = `the whole text of ${lines} lines, each place as dark as the highest score in it: click to go there`;
    return [`The text is on the colour of ${data[this.#place()].method.name}; each strip is ${strip}, or press m for the next high score.`];
  }

  /** The place of the method whose colours the text has. */
  #place() {
    return this.panel.shownMethods()[0];
  }

  // ---- making

  /** Lays the text out; only when it or its room has changed. What is in sight stays so. */
  fill() {
    const { panel } = this;
    if (!this.#strips.length) this.#makeStrips();
    const room = this.area.clientWidth - 8;
    const signature = JSON.stringify([room, panel.shown.length, panel.units.length, panel.shown[0]?.places]);
    if (signature === this.#signature) return;
    const kept = this.#signature ? panel.shown.findIndex(({ places }) => places[0] >= this.#first) : this.#pinnedPlace();
    this.#signature = signature;
    const breaks = new Set(panel.payload.breaks);
    const measure = this.#measure();
    // a letter may be a little wider on the page than measured: a line is not filled to its edge
    this.#layout = layOut(panel.shown, measure, Math.max(room - 4, 64), (place) => breaks.has(panel.shown[place].places.at(-1)));
    const lines = this.#layout.starts.length;
    this.sheet.style.height = `${lines * LINE}px`;
    const high = Math.min(lines * TALLEST, HEIGHT);
    for (const { canvas } of this.#strips) {
      canvas.height = Math.min(lines, high);
      Object.assign(canvas.style, { width: `${STRIP}px`, height: `${high}px` });
    }
    if (kept > 0) this.area.scrollTop = lineOf(this.#layout.starts, kept) * LINE;
  }

  /** The first token in sight. */
  get #first() {
    return this.firstInSight ?? 0;
  }

  #pinnedPlace() {
    const [pinned] = this.panel.frame.get("keys", []);
    return pinned === undefined ? -1 : this.panel.shown.findIndex(({ places }) => places.includes(pinned));
  }

  /** How wide each unit is on the page; every text is measured once. */
  #measure() {
    const { shown } = this.panel;
    const context = sharp(element("canvas"), 1, 1);
    const { fontFamily } = getComputedStyle(this.node);
    const widths = this.#widths;
    const fonts = [`14px ${fontFamily}`, `12px ${fontFamily}`];
    return (place) => {
      const { text, special, join } = shown[place];
      const name = special ? `\u0000${text}` : text;
      if (!widths.has(name)) {
        context.font = fonts[Number(special)];
        widths.set(name, context.measureText(text).width);
      }
      const side = special ? SPECIAL : BESIDE;
      return Math.min(widths.get(name) + (join ? 0 : side) + (shown[place + 1]?.join ? 0 : side), WIDEST) + BEHIND;
    };
  }

  #makeStrips() {
    const { frame, payload } = this.panel;
    this.#strips = payload.methods.map(({ name, trust }, place) => {
      const title = "Read the text on the colour of this method";
      const chosen = element("button", { type: "button", className: "method", title, onclick: () => frame.set({ methods: [name] }) }, name);
      const trusted = trust && Number.isFinite(trust.value) ? `trust ${trust.value.toFixed(2)}`.replace("-", "−") : "";
      const [end, agreement] = [element("span", { className: "end" }), element("span", { className: "agreement" })];
      const canvas = element("canvas", { width: COLUMNS });
      const names = element("div", { className: "name" }, chosen, element("div", { className: "quiet" }, end, agreement, trusted));
      return { place, names, chosen, end, agreement, canvas };
    });
    const maps = element("div", { className: "maps", ariaHidden: "true" }, ...this.#strips.map(({ canvas }) => canvas), this.band);
    const go = (event) => {
      const box = maps.getBoundingClientRect();
      this.area.scrollTop = ((event.clientY - box.top) / box.height) * this.#layout.starts.length * LINE - this.high / 2;
    };
    maps.addEventListener("pointerdown", (event) => (maps.setPointerCapture(event.pointerId), go(event)));
    maps.addEventListener("pointermove", (event) => (event.buttons & 1 ? go(event) : this.#overStrips(event)));
    maps.addEventListener("pointerleave", () => frame.tell(null));
    this.strips.replaceChildren(element("div", { className: "names" }, ...this.#strips.map(({ names }) => names)), maps);
  }

  // ---- painting

  /** Colours the strips and the lines in sight. @param {Palette} palette */
  paint(palette) {
    const { frame, data, layer, asked } = this.panel;
    const [threshold, root] = [frame.get("threshold", 0), Boolean(frame.get("root", false))];
    const below = (share) => Math.abs(share) < threshold;
    this.below = 0;
    const rows = this.#strips.map(({ place, chosen, end, agreement, canvas }) => {
      const { method, scale, scores, isReference, agreement: agrees, own } = data[place];
      const shares = Float32Array.from(scores, (score) => shareOf(score, scale));
      if (this.panel.shownMethods().includes(place)) this.below += shares.filter((share) => share && below(share)).length;
      const ground = groundOf(palette, method.signed, root);
      const inked = shares.map((share) => (below(share) ? 0 : share));
      paintStrip(canvas, stripOf(this.#layout, inked, canvas.height), ground);
      chosen.setAttribute("aria-pressed", String(place === this.#place()));
      canvas.classList.toggle("chosen", place === this.#place());
      end.textContent = `${scale.start ? `${ending(scale.start)}–` : method.signed ? "±" : "0–"}${ending(scale.end)}`;
      const agreed = Number.isNaN(agrees) ? "" : `agrees ${agrees.toFixed(2).replace("-", "−")}`;
      agreement.textContent = data.length < 2 ? "" : isReference ? "reference" : agreed;
      if (place === this.#place()) this.#colour = (unit) => ground(inked[unit]);
      return { method: method.name, own, scores, ...scale, agreement: agrees };
    });
    const { method } = data[this.#place()];
    this.area.setAttribute("aria-label", `The text on the colour of ${method.name}; scroll to read on`);
    this.sheet.dataset.method = String(this.#place());
    this.high = this.area.clientHeight || HEIGHT;
    const held = this.#focused();
    this.#made.forEach((line) => line.remove());
    this.#made.clear();
    this.#show();
    if (held >= 0) this.#focus(held);
    // what was drawn, for whoever wants to check it against the scores
    const chosen = Object.fromEntries(Object.keys(frame.kept).map((name) => [name, frame.get(name)]));
    this.node.scene = { chosen, layer, queries: asked, lines: this.#layout.starts.length, rows };
  }

  /** Makes the lines in sight and those around them, and lets go of all others. */
  #show() {
    const { starts } = this.#layout;
    if (!starts.length || !this.panel.data) return;
    const top = this.area.scrollTop;
    const at = Math.min(Math.floor(top / LINE), starts.length - 1);
    this.firstInSight = this.panel.shown[starts[at]].places[0];
    const [from, to] = [Math.max(at - AROUND, 0), Math.min(at + Math.ceil(this.high / LINE) + AROUND, starts.length)];
    const held = this.#focused() < 0 ? -1 : lineOf(starts, this.#focused());
    for (const [line, node] of this.#made) if ((line < from || line >= to) && line !== held) (node.remove(), this.#made.delete(line));
    let after = this.#made.get(held) && held >= to ? this.#made.get(held) : null;
    for (let line = to - 1; line >= from; line--) {
      const node = this.#made.get(line) ?? this.#line(line);
      if (node.parentNode !== this.cells) this.cells.insertBefore(node, after);
      after = node;
      this.#made.set(line, node);
    }
    if (!this.cells.querySelector(".token[tabindex='0']")) this.#made.get(at)?.querySelector("button")?.setAttribute("tabindex", "0");
    const share = (pixels) => `${(100 * pixels) / (starts.length * LINE)}%`;
    Object.assign(this.band.style, { top: share(top), height: share(this.high) });
  }

  #line(line) {
    const { starts } = this.#layout;
    const { shown, data, frame } = this.panel;
    const [{ scores, scale }, pinned] = [data[this.#place()], new Set(frame.get("keys", []))];
    const tokens = shown.slice(starts[line], starts[line + 1]).map((unit, step) => {
      const place = starts[line] + step;
      const [made, ground] = [tokenButton(unit, place), this.#colour(place)];
      made.setAttribute("aria-pressed", String(unit.places.some((from) => pinned.has(from))));
      made.classList.toggle("joined", Boolean(shown[place + 1]?.join));
      made.classList.toggle("missing", !Number.isFinite(scores[place]));
      made.classList.toggle("beyond", isBeyond(scores[place], scale));
      Object.assign(made.style, { backgroundColor: ground, color: inkOn(ground) });
      return made;
    });
    const node = element("div", { className: "line" }, ...tokens);
    node.dataset.line = String(line);
    node.style.top = `${line * LINE}px`;
    return node;
  }

  // ---- pointing, pinning, keys

  #at(event) {
    const token = event.target.closest?.(".token");
    return token && this.panel.data ? { token, place: Number(token.dataset.place) } : null;
  }

  #pointed(event) {
    const found = this.#at(event);
    if (!found) return this.panel.frame.tell(null);
    const box = found.token.getBoundingClientRect();
    const { words, data } = this.panel;
    return this.panel.frame.tell({ x: box.left, y: box.bottom - 8 }, words.about(data[this.#place()], found.place));
  }

  /** Tells the line under the pointer, and the highest score that a strip has of it. */
  #overStrips(event) {
    const { shown, data, frame } = this.panel;
    const { starts } = this.#layout;
    const canvas = event.target.closest?.("canvas");
    const strip = this.#strips.find((one) => one.canvas === canvas);
    if (!strip) return frame.tell(null);
    const share = Math.min(Math.max(event.offsetY / canvas.clientHeight, 0), 0.999999);
    const [from, to] = [share, share + 1 / canvas.height].map((part) => Math.floor(part * starts.length));
    const [first, end] = [starts[from], starts[Math.max(to, from + 1)] ?? shown.length];
    const { scores, method } = data[strip.place];
    let best = first;
    for (let place = first; place < end; place++) if (Math.abs(scores[place]) > Math.abs(scores[best])) best = place;
    const text = shown
      .slice(first, end)
      .reduce((said, { text, join }) => (said.length > TOLD ? said : `${said}${join ? "" : " "}${text}`), "");
    return frame.tell({ x: event.clientX, y: event.clientY, wide: STRIP }, [
      `Line ${thousands(from + 1)} of ${thousands(starts.length)}: ${text.trim()}…`,
      `${method.name}, highest here: “${shown[best].text}” ${ending(Math.abs(scores[best]))}`,
    ]);
  }

  #pin(event) {
    const found = this.#at(event);
    if (found) this.panel.pin("keys", found.place, event.shiftKey);
  }

  #pressed(event) {
    const found = this.#at(event);
    if (!found || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && event.shiftKey) this.#pin(event);
    else if (stepOf(event)) this.#focus(found.place + stepOf(event));
    else return;
    event.preventDefault();
  }

  /** The place of the token that has the focus, or -1. */
  #focused() {
    const active = /** @type {HTMLElement} */ (/** @type {Document} */ (this.node.getRootNode()).activeElement);
    return this.cells.contains(active) ? Number(active.dataset.place) : -1;
  }

  /** Brings a token into sight and gives it the focus. @param {number} place */
  #focus(place) {
    if (!this.panel.shown[place]) return;
    const line = lineOf(this.#layout.starts, place);
    const [top, high] = [this.area.scrollTop, this.area.clientHeight - LINE];
    if (line * LINE < top || line * LINE > top + high) this.area.scrollTop = line * LINE - high / 2;
    this.#show();
    const token = /** @type {HTMLElement} */ (this.#made.get(line).children[place - this.#layout.starts[line]]);
    this.cells.querySelector(".token[tabindex='0']")?.setAttribute("tabindex", "-1");
    token.tabIndex = 0;
    token.focus({ preventScroll: true });
  }

  /** Goes to the next of the highest scores behind the token that has the focus, or the part in sight. */
  #nextHighest() {
    if (!this.node.isConnected) return;
    const { scores } = this.panel.data[this.#place()];
    const sizes = scores.map((score, place) => ({ size: this.panel.shown[place].quiet ? -1 : Math.abs(score) || 0, place }));
    const highest = sizes.sort((one, other) => other.size - one.size).slice(0, 20);
    const here = this.#focused();
    const places = highest.map(({ place }) => place).sort((one, other) => one - other);
    this.#focus(places.find((place) => place > here) ?? places[0]);
  }
}

/** @param {HTMLCanvasElement} canvas of one pixel for each cell @param {Float32Array} cells @param {(share: number) => string} ground */
function paintStrip(canvas, cells, ground) {
  const image = new ImageData(canvas.width, canvas.height);
  const known = new Map();
  cells.forEach((share, cell) => {
    const colour = ground(share);
    if (!known.has(colour))
      known.set(
        colour,
        [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16)),
      );
    image.data.set([...known.get(colour), 255], 4 * cell);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}
