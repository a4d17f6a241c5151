// One panel of the learning view: the curves of a quantity over the steps, zero, a step across, one curve before the others.

import { element, sharp, short, thousands } from "./drawing.js";
import { blob } from "./weights.js";

// ---- The curves of a training out of their bytes, with the rows of late behind them; what they are at a step; which points are drawn.

/** @typedef {{quantity: string, name: string, steps: Float64Array, values: Float64Array, low: Float64Array | null, high: Float64Array | null}} Curve
 *  @typedef {{value: number, low: number, high: number, step: number}} Reading */

const ROW = 5;

/** The last place whose number is not above another, or −1. @param {ArrayLike<number>} sorted @param {number} number */
export function placeUpTo(sorted, number) {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (sorted[middle] <= number) from = middle + 1;
    else to = middle;
  }
  return from - 1;
}

/** The place whose number is nearest to another. @param {ArrayLike<number>} sorted @param {number} number */
export function nearestPlace(sorted, number) {
  const before = Math.max(placeUpTo(sorted, number), 0);
  return before + 1 < sorted.length && sorted[before + 1] - number < number - sorted[before] ? before + 1 : before;
}

/** What a curve was at a step, or last before it; null before its first. @param {Curve} curve @param {number} step @returns {Reading | null} */
export function readingAt({ steps, values, low, high }, step) {
  const place = placeUpTo(steps, step);
  return place < 0 ? null : { value: values[place], low: low ? low[place] : NaN, high: high ? high[place] : NaN, step: steps[place] };
}

/** The places of a curve that are worth drawing: of each pixel across the first, the least, the largest and the last; −1 is a gap.
 * @param {ArrayLike<number>} across the pixel of each place @param {ArrayLike<number>} values @returns {number[]} */
export function outline(across, values) {
  const kept = [];
  let some = [];
  const flush = () => {
    kept.push(...new Set(some.sort((one, other) => one - other)));
    some = [];
  };
  for (let place = 0; place < values.length; place++) {
    if (!Number.isFinite(values[place])) {
      flush();
      if (kept.length && kept.at(-1) >= 0) kept.push(-1);
    } else if (some.length && across[some[0]] === across[place]) {
      const [first, least, most] = some;
      some = [first, values[place] < values[least] ? place : least, values[place] > values[most] ? place : most, place];
    } else {
      flush();
      some = [place, place, place, place];
    }
  }
  flush();
  return kept;
}

const joined = (one, other) => {
  const both = new Float64Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
};

/** All curves of a view, read anew when the model has more. */
export class Curves {
  #model;
  #payload = null;
  #blobs = null;
  #settled = [];
  /** @type {Curve[]} */
  all = [];
  /** Every step of any curve, rising. */
  steps = new Float64Array(0);

  /** @param {{get: (name: string) => any}} model */
  constructor(model) {
    this.#model = model;
  }

  /** Reads what has changed. */
  async read() {
    const [payload, blobs] = [this.#model.get("payload"), this.#model.get("blobs")];
    if (payload === this.#payload && blobs === this.#blobs) return;
    if (blobs !== this.#blobs)
      this.#settled = "curves" in (blobs ?? {}) ? this.#unpacked(payload, new Float64Array(await blob(this.#model, "curves"))) : [];
    this.all = this.#withRecent(payload);
    const every = new Set();
    // curves that are measured together share their steps
    for (const steps of new Set(this.all.map(({ steps }) => steps))) for (const step of steps) every.add(step);
    this.steps = Float64Array.from(every).sort();
    [this.#payload, this.#blobs] = [payload, blobs];
  }

  /** The arrays of what has settled. */
  #unpacked({ grids, curves }, numbers) {
    let from = 0;
    const next = (count) => numbers.subarray(from, (from += count));
    const steps = grids.map(next);
    return curves
      .filter(({ grid }) => grid !== null)
      .map(({ grid, band }) => {
        const count = grids[grid];
        const [values, low, high] = [next(count), ...(band ? [next(count), next(count)] : [null, null])];
        return { steps: steps[grid], values, low, high };
      });
  }

  /** The curves with their rows of late, which are behind all that have settled. */
  #withRecent({ curves, recent }) {
    const rows = new Float64Array(Uint8Array.from(atob(recent), (letter) => letter.charCodeAt(0)).buffer);
    const late = curves.map(() => [[], [], [], []]);
    for (let row = 0; row < rows.length; row += ROW) late[rows[row]].forEach((column, place) => column.push(rows[row + 1 + place]));
    return curves.map(({ quantity, name }, place) => {
      const held = this.#settled[place] ?? { steps: [], values: [], low: null, high: null };
      const [steps, values, low, high] = late[place];
      if (!steps.length) return { quantity, name, ...held };
      const band = held.low || low.some(Number.isFinite);
      const none = () => new Float64Array(held.steps.length).fill(NaN);
      return {
        quantity,
        name,
        steps: joined(held.steps, steps),
        values: joined(held.values, values),
        low: band ? joined(held.low ?? none(), low) : null,
        high: band ? joined(held.high ?? none(), high) : null,
      };
    });
  }
}

const HEIGHT = 176;
const [LEFT, TOP, BOTTOM] = [60, 8, 24];
const GAP = 13;
/** The dashes of names of one colour; the printed figure has the same. */
const DASHES = [[], [6, 3], [1.5, 2.5], [8, 2, 2, 2]];

/** A value as a reader wants it: six digits, and what is no number in words. @param {number} value */
export function figure(value) {
  if (Number.isNaN(value)) return "not measured";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  return String(+value.toPrecision(6)).replace("-", "−").replace("e-", "e−");
}

/** What is called by a name; what has none is all there is. @param {string} name */
export const called = (name) => name || "no name";

/** A short line as a curve has it. @param {{colour: string, dash: number}} look */
export function sample({ colour, dash }) {
  const space = "http://www.w3.org/2000/svg";
  const [svg, line] = [document.createElementNS(space, "svg"), document.createElementNS(space, "line")];
  for (const [name, value] of Object.entries({ width: 24, height: 12, "aria-hidden": "true" })) svg.setAttribute(name, String(value));
  for (const [name, value] of Object.entries({
    x1: 1,
    x2: 23,
    y1: 6,
    y2: 6,
    stroke: colour,
    "stroke-width": 2,
    "stroke-dasharray": DASHES[dash].join(" "),
  }))
    line.setAttribute(name, String(value));
  svg.append(line);
  return svg;
}

/** @typedef {{width: number, right: number, steps: [number, number], log: boolean, palette: Palette, look: (name: string) => {colour: string, dash: number}}} Layout */

/** Round numbers between two, few of them. @param {number} from @param {number} to @param {number} most */
export function ticksBetween(from, to, most) {
  const rough = (to - from) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((each) => each * power >= rough) ?? 10);
  const first = Math.ceil(from / step - 1e-9);
  return Array.from({ length: Math.max(Math.floor(to / step + 1e-9) - first + 1, 0) }, (_, place) => (first + place) * step);
}

/** Steps that are named on the axis. @param {[number, number]} steps @param {boolean} log @param {number} most */
function stepTicks([from, to], log, most) {
  if (from === to) return [from];
  if (!log) return ticksBetween(from, to, most).filter(Number.isInteger);
  const powers = [0, ...Array.from({ length: 16 }, (_, power) => 10 ** power)].filter((step) => step >= from && step <= to);
  const few = powers.filter((_, place) => place % Math.ceil(powers.length / (most + 1)) === 0);
  return few.length ? few : [from];
}

/** Moves labels apart, in rising order, within a room. @param {number[]} places @param {number} bottom */
export function spread(places, bottom) {
  const moved = [...places];
  for (let place = 1; place < moved.length; place++) moved[place] = Math.max(moved[place], moved[place - 1] + GAP);
  for (let place = moved.length - 1, ceiling = bottom; place >= 0; ceiling = moved[place--] - GAP)
    moved[place] = Math.min(moved[place], ceiling);
  return moved;
}

export class LearningPanel {
  /** @type {Curve[]} */
  curves = [];

  /** @param {string} quantity */
  constructor(quantity) {
    this.quantity = quantity;
    const canvas = (name) => element("canvas", { className: name, ariaHidden: "true" });
    this.ground = canvas("ground");
    this.lines = canvas("lines");
    this.over = canvas("over");
    this.field = element("div", { className: "field" }, this.ground, this.lines, this.over);
    this.node = element("figure", { className: "panel" }, element("figcaption", { title: quantity }, quantity), this.field);
  }

  /** Draws the curves that are shown. @param {Curve[]} curves @param {Layout} layout @param {boolean} labelled whether curves have their names at their ends */
  draw(curves, layout, labelled) {
    this.curves = curves;
    this.layout = layout;
    const {
      width,
      right,
      steps: [from, to],
      log,
    } = layout;
    const [start, end] = log ? [Math.log1p(from), Math.log1p(to)] : [from, to];
    const room = width - LEFT - right;
    this.x = (step) => LEFT + (end > start ? ((log ? Math.log1p(step) : step) - start) / (end - start) : 0.5) * room;
    this.stepAt = (x) => {
      const place = start + ((x - LEFT) / room) * (end - start);
      return log ? Math.expm1(place) : place;
    };
    const [least, most] = this.#range();
    this.y = (value) => TOP + ((most - value) / (most - least)) * (HEIGHT - TOP - BOTTOM);
    this.#drawGround(least, most);
    this.#drawLines(labelled);
    sharp(this.over, width, HEIGHT);
  }

  /** From the least to the largest that is shown, zero among them, with a little room. */
  #range() {
    let [least, most] = [0, 0];
    for (const { values, low, high } of this.curves) {
      for (const numbers of low ? [values, low, high] : [values]) {
        for (const number of numbers) {
          if (!Number.isFinite(number)) continue;
          if (number < least) least = number;
          if (number > most) most = number;
        }
      }
    }
    const room = (most - least || 1) * 0.06;
    return [least < 0 ? least - room : 0, most > 0 || least === 0 ? most + room : 0];
  }

  #drawGround(least, most) {
    const { width, right, steps, log, palette } = this.layout;
    const context = sharp(this.ground, width, HEIGHT);
    const bottom = HEIGHT - BOTTOM;
    context.textAlign = "end";
    for (const value of this.curves.length ? ticksBetween(least, most, 5) : [0]) {
      const y = Math.round(this.y(value)) + 0.5;
      context.strokeStyle = palette.read(value === 0 ? "quiet" : "line");
      context.beginPath();
      context.moveTo(LEFT, y);
      context.lineTo(width - right, y);
      context.stroke();
      context.fillStyle = palette.read("quiet");
      context.fillText(short(value), LEFT - 6, y);
    }
    for (const step of stepTicks(steps, log, width - right > 260 ? 4 : 2)) {
      const text = thousands(step);
      const half = context.measureText(text).width / 2;
      const x = this.x(step);
      context.fillRect(Math.round(x), bottom, 1, 4);
      context.textAlign = "center";
      context.fillText(text, Math.max(x, half), bottom + 13);
    }
    context.textAlign = "end";
    context.fillText("step", width, bottom + 13);
    context.textAlign = "center";
    if (!this.curves.length) context.fillText("no curve is shown here", LEFT + (width - right - LEFT) / 2, bottom / 2);
  }

  #drawLines(labelled) {
    const { width, look } = this.layout;
    const context = sharp(this.lines, width, HEIGHT);
    const density = context.getTransform().a;
    this.drawn = this.curves.map((curve) => {
      const across = Float64Array.from(curve.steps, (step) => Math.floor(this.x(step) * density));
      return { curve, across, places: outline(across, curve.values) };
    });
    for (const { curve, across } of this.drawn) if (curve.low) this.#shade(context, curve, across);
    for (const one of this.drawn) this.#stroke(context, one, 1.5);
    this.labels = labelled ? this.#placedLabels() : [];
    for (const label of this.labels) this.#label(context, label);
    const scene = this.drawn.map(({ curve, places }) => ({
      name: curve.name,
      colour: look(curve.name).colour,
      points: places.map((place) => (place < 0 ? null : [curve.steps[place], curve.values[place]])),
    }));
    this.lines.scene = {
      quantity: this.quantity,
      curves: scene,
      labels: this.labels.map(({ name }) => name),
      x: scene.length ? this.layout.steps.map(this.x) : [],
    };
  }

  #stroke(context, { curve, places }, thick) {
    const { colour, dash } = this.layout.look(curve.name);
    Object.assign(context, { strokeStyle: colour, fillStyle: colour, lineWidth: thick, lineJoin: "round" });
    context.setLineDash(DASHES[dash]);
    context.beginPath();
    places.forEach((place, number) => {
      if (place < 0) return;
      const [x, y] = [this.x(curve.steps[place]), this.y(curve.values[place])];
      const begins = !number || places[number - 1] < 0;
      if (begins) context.moveTo(x, y);
      else context.lineTo(x, y);
      // one value between gaps is no line
      if (begins && !(places[number + 1] >= 0)) context.rect(x - 0.75, y - 0.75, 1.5, 1.5);
    });
    context.stroke();
    context.setLineDash([]);
  }

  /** The band of a curve: at each pixel across from the least low to the largest high. */
  #shade(context, { low, high }, across) {
    context.save();
    const density = context.getTransform().a;
    const columns = new Map();
    for (let place = 0; place < across.length; place++) {
      if (!Number.isFinite(low[place]) || !Number.isFinite(high[place])) continue;
      const held = columns.get(across[place]) ?? [Infinity, -Infinity];
      columns.set(across[place], [Math.min(held[0], low[place]), Math.max(held[1], high[place])]);
    }
    const edges = [...columns].map(([column, ends]) => [(column + 0.5) / density, ...ends.map(this.y)]);
    context.globalAlpha = 0.18;
    context.fillStyle = this.layout.look(this.drawn.find(({ curve }) => curve.low === low).curve.name).colour;
    context.beginPath();
    for (const [x, bottom] of edges) context.lineTo(x, bottom);
    for (const [x, , top] of edges.reverse()) context.lineTo(x, top);
    context.fill();
    context.restore();
  }

  /** Where names stand beside the ends of their curves. @returns {{name: string, y: number}[]} */
  #placedLabels() {
    const ends = this.curves
      .flatMap(({ name, values }) => {
        const value = values.findLast(Number.isFinite);
        return name && value !== undefined ? [{ name, y: this.y(value) }] : [];
      })
      .sort((one, other) => one.y - other.y);
    const places = spread(
      ends.map(({ y }) => Math.max(y, TOP)),
      HEIGHT - BOTTOM - 4,
    );
    return ends.map(({ name }, number) => ({ name, y: places[number] }));
  }

  #label(context, { name, y }) {
    const { width, right, palette, look } = this.layout;
    const { colour, dash } = look(name);
    const left = width - right;
    Object.assign(context, { strokeStyle: colour, lineWidth: 2, textAlign: "start" });
    context.setLineDash(DASHES[dash]);
    context.beginPath();
    context.moveTo(left + 4, y);
    context.lineTo(left + 14, y);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = palette.read("text");
    context.fillText(this.#fitting(context, name, right - 20), left + 18, y);
  }

  #fitting(context, text, room) {
    let shown = text.slice(0, 40);
    while (shown.length > 1 && context.measureText(shown === text ? shown : `${shown}…`).width > room) shown = shown.slice(0, -1);
    return shown === text ? text : `${shown}…`;
  }

  /** Draws a step across, a dot where it meets each curve, and one name before the others. @param {number | null} step @param {string | null} first */
  point(step, first) {
    const { width, palette, look } = this.layout;
    const context = this.over.getContext("2d");
    context.clearRect(0, 0, width, HEIGHT);
    this.lines.classList.toggle("pale", first !== null && this.drawn.some(({ curve }) => curve.name === first));
    for (const one of this.drawn) if (one.curve.name === first) this.#stroke(context, one, 2.5);
    for (const label of this.labels) if (label.name === first) this.#label(context, label);
    if (step === null) return;
    context.fillStyle = palette.read("text");
    context.fillRect(Math.round(this.x(step)), TOP, 1, HEIGHT - TOP - BOTTOM);
    for (const { curve } of this.drawn) {
      const reading = readingAt(curve, step);
      if (!reading || !Number.isFinite(reading.value) || (first !== null && curve.name !== first)) continue;
      context.fillStyle = look(curve.name).colour;
      context.beginPath();
      context.arc(this.x(reading.step), this.y(reading.value), 3, 0, 2 * Math.PI);
      context.fill();
    }
  }

  /** The name whose curve is nearest to a place at a step, if one is near. @param {number} y @param {number} step */
  nameAt(y, step) {
    let [best, near] = [null, 16];
    for (const { curve } of this.drawn) {
      const reading = readingAt(curve, step);
      const far = reading && Number.isFinite(reading.value) ? Math.abs(this.y(reading.value) - y) : Infinity;
      if (far < near) [best, near] = [curve.name, far];
    }
    return best;
  }
}
