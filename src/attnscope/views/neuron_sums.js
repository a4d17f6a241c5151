// From a query and the keys to weights: products, sums, scaling, bias and softmax, out of the vectors of one layer.

import { LAYERS_HELD, Recent, blob, fromHalves } from "./weights.js";

/** @typedef {{shape: [number, number, number], key_count: number, key_heads: number[], units: number[], scaling: number[], softcap: number | null, biases: (number | null)[], bias_heads: number, errors: {logits: number[], weights: number[]}, layers: number[], heads: number[]}} Vectors
 *  @typedef {{dot: number, scaled: number, capped: number, bias: number, logit: number, weight: number, products: Float32Array}} Sum one key's way to its weight */

/** The vectors of a record, decoded one layer at a time. */
export class VectorLayers {
  #model;
  #recent = new Recent(LAYERS_HELD);

  /** @param {{get: (name: string) => any}} model @param {Vectors} described */
  constructor(model, described) {
    this.#model = model;
    this.described = described;
  }

  /** One layer by its place. @param {number} place @returns {Promise<{queries: Float32Array, keys: Float32Array, bias: Float32Array | null}>} */
  layer(place) {
    return this.#recent.get(place, () => this.#decoded(place));
  }

  async #decoded(place) {
    const { shape: [heads, queries, width], units, biases } = this.described;
    const values = fromHalves(new Uint16Array(await blob(this.#model, `layer${place}`)));
    if (units[place] !== 1) values.forEach((value, index) => (values[index] = value * units[place]));
    const bias = biases[place] === null ? null : fromHalves(new Uint16Array(await blob(this.#model, `bias${biases[place]}`)));
    const cut = heads * queries * width;
    return { queries: values.subarray(0, cut), keys: values.subarray(cut), bias };
  }

  /** One head's part of a layer: `query(position)` and `key(position)` are vectors, `sums(query)` the way to each weight.
   * @param {Awaited<ReturnType<VectorLayers["layer"]>>} layer @param {number} place @param {number} head its place */
  head(layer, place, head) {
    const { shape: [, queryCount, width], key_count: keyCount, key_heads: keyHeads, bias_heads: biasHeads, scaling, softcap } = this.described;
    const query = (position) => layer.queries.subarray((head * queryCount + position) * width, (head * queryCount + position + 1) * width);
    const key = (position) => layer.keys.subarray((keyHeads[head] * keyCount + position) * width, (keyHeads[head] * keyCount + position + 1) * width);
    const added = (from, to) => (layer.bias ? layer.bias[((biasHeads === 1 ? 0 : head) * queryCount + from) * keyCount + to] : 0);
    const sums = (position) => {
      const made = Array.from({ length: keyCount }, (_, to) => {
        const products = query(position).map((value, dimension) => value * key(to)[dimension]);
        const dot = products.reduce((sum, product) => sum + product, 0);
        const scaled = dot * scaling[place];
        const capped = softcap === null ? scaled : softcap * Math.tanh(scaled / softcap);
        const bias = added(position, to);
        return { dot, scaled, capped, bias, logit: capped + bias, weight: 0, products };
      });
      const most = Math.max(...made.map(({ logit }) => logit));
      const total = made.reduce((sum, { logit }) => sum + (most > -Infinity ? Math.exp(logit - most) : 0), 0);
      // a query that may attend to nothing has weights of zero
      for (const sum of made) sum.weight = total ? Math.exp(sum.logit - most) / total : 0;
      return made;
    };
    return { query, key, sums };
  }
}

/** The dimensions as they stand, or from the largest product down to the smallest. @param {Float32Array} products @param {string} order */
export function dimensionOrder(products, order) {
  const dimensions = Array.from(products, (_, dimension) => dimension);
  return order === "contribution" ? dimensions.sort((one, other) => products[other] - products[one]) : dimensions;
}
