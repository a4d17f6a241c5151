// What has gathered by layer, head and token, and the lines between layers, out of their bytes.

import { blob } from "./weights.js";

/** @typedef {{layers: number[], heads: number[], readout: boolean, lines: number | null, faintest_line: number, lines_left_out: number, warnings: string[]}} Described
 *  @typedef {{from: number, to: number, value: number}} Line between units of a row and of the row below */

/** The trace of a text: rows run from the read-out down to the input. */
export class Trace {
  #held = null;

  /** @param {{get: (name: string) => any}} model @param {Described} described @param {number} tokens */
  constructor(model, described, tokens) {
    Object.assign(this, { model, described, tokens });
    const layers = described.layers.map((layer, place) => ({ layer, place })).reverse();
    /** The rows from the top: the number of the layer, null for the read-out. */
    this.rows = described.readout ? [{ layer: null, place: null }, ...layers] : layers;
  }

  /** Decodes the bytes, once. */
  load() {
    this.#held ??= this.#decoded();
    return this.#held;
  }

  async #decoded() {
    const values = new Float32Array(await blob(this.model, "trace"));
    const start = this.described.readout ? this.tokens : 0;
    this.readout = start ? values.subarray(0, start) : null;
    this.values = values.subarray(start);
    const count = this.described.lines;
    if (count === null) return;
    const buffer = await blob(this.model, "lines");
    const places = new Uint16Array(buffer, 4 * count);
    const column = (number) => places.subarray(number * count, (number + 1) * count);
    this.lines = { values: new Float32Array(buffer, 0, count), layer: column(0), head: column(1), from: column(2), to: column(3) };
  }

  /** What a head holds in one row by unit: a word holds what its tokens do. `head` null: the mean over heads.
   * @param {{place: number | null}} row @param {number | null} head @param {import("./units.js").Unit[]} units */
  held(row, head, units) {
    const { heads } = this.described;
    const one = (place) => {
      if (row.place === null) return this.readout;
      const start = (row.place * heads.length + place) * this.tokens;
      return this.values.subarray(start, start + this.tokens);
    };
    if (head !== null || row.place === null) return Float32Array.from(units, ({ places }) => places.reduce((sum, place) => sum + one(head)[place], 0));
    const parts = heads.map((_, place) => one(place));
    return Float32Array.from(units, ({ places }) => parts.reduce((sum, part) => sum + places.reduce((all, place) => all + part[place], 0), 0) / heads.length);
  }

  /** The lines of a head by the row they start from, between units that are shown; of the mean of heads for null.
   * @param {number | null} head @param {import("./units.js").Unit[]} units @returns {Line[][]} */
  linesOf(head, units) {
    const rows = this.rows.map(() => new Map());
    if (!this.lines || !this.readout) return rows.map(() => []);
    const unitOf = new Map(units.flatMap(({ places }, number) => places.map((place) => [place, number])));
    const { values, layer, head: heads, from, to } = this.lines;
    for (let line = 0; line < values.length; line++) {
      if ((head !== null && heads[line] !== head) || !unitOf.has(from[line]) || !unitOf.has(to[line])) continue;
      const sums = rows[this.described.layers.length - 1 - layer[line]];
      const name = unitOf.get(from[line]) * units.length + unitOf.get(to[line]);
      sums.set(name, (sums.get(name) ?? 0) + values[line] / (head === null ? this.described.heads.length : 1));
    }
    return rows.map((sums) => [...sums].map(([name, value]) => ({ from: Math.floor(name / units.length), to: name % units.length, value })));
  }
}
