// The curves of a training out of their bytes, with the rows of late behind them; what they are at a step; which points are drawn.

import { blob } from "./weights.js";

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
    if (blobs !== this.#blobs) this.#settled = "curves" in (blobs ?? {}) ? this.#unpacked(payload, new Float64Array(await blob(this.#model, "curves"))) : [];
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
    return curves.filter(({ grid }) => grid !== null).map(({ grid, band }) => {
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
      return { quantity, name, steps: joined(held.steps, steps), values: joined(held.values, values), low: band ? joined(held.low ?? none(), low) : null, high: band ? joined(held.high ?? none(), high) : null };
    });
  }
}
