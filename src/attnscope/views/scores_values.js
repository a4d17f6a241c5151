// The scores out of their bytes, for a layer and a query; their order, and how far two orders agree.

import { Recent, blob, fromHalves } from "./weights.js";

/** @typedef {{name: string, signed: boolean, shares: boolean, rows: boolean, map: boolean, without: string, warnings: string[], trust: {value: number, low?: number, high?: number} | null}} Method
 *  @typedef {{values: Float64Array, own: boolean, exact: boolean}} Found `own`: the method's own scores, in place of what was asked for */

const TIE = 1e9;
const MAPS_HELD = 24;

/** The scores of every method, decoded when they are first looked at. */
export class ScoreMaps {
  #model;
  #recent = new Recent(MAPS_HELD);

  /** @param {{get: (name: string) => any}} model @param {object} payload */
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
    if (!queries.length && layer !== null && method.rows) return { values: (await this.#rows(`rows${place}`))(layer), own: false, exact: false };
    const every = await this.#hold("own", (buffer) => new Float64Array(buffer));
    return { values: every.subarray(place * this.keys, (place + 1) * this.keys), own: queries.length > 0 || layer !== null, exact: true };
  }

  /** The rows of an array: the largest of each, and 16-bit floats over it. */
  #rows(name) {
    return this.#hold(name, (buffer) => {
      const count = buffer.byteLength / (4 + 2 * this.keys);
      const largest = new Float32Array(buffer, 0, count);
      const shares = new Uint16Array(buffer, 4 * count);
      return (row) => Float64Array.from(fromHalves(shares.subarray(row * this.keys, (row + 1) * this.keys)), (share) => share * largest[row]);
    });
  }

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
  for (let start = 0; start < order.length; ) {
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
