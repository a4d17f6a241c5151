// The drawings of the neuron view: strips of dimensions, figures and softmax bars, and one sum as bars.

import { drawRamp, percent, short } from "./drawing.js";
import { LayerStore, blob, fromHalves } from "./weights.js";

// ---- From a query and the keys to weights: products, sums, scaling, bias and softmax, out of the vectors of one layer.

/** @typedef {{dot: number, scaled: number, capped: number, bias: number, logit: number, weight: number, products: Float32Array}} Sum one key's way to its weight */

/** The vectors of a record.
 * @extends {LayerStore<NeuronPayload["vectors"], {queries: Float32Array, keys: Float32Array, bias: Float32Array | null}>} */
export class VectorLayers extends LayerStore {
  /** @param {number} place */
  async decode(place) {
    const {
      shape: [heads, queries, width],
      units,
      biases,
    } = this.described;
    const values = fromHalves(new Uint16Array(await blob(this.model, `layer${place}`)));
    if (units[place] !== 1) values.forEach((value, index) => (values[index] = value * units[place]));
    const bias = biases[place] === null ? null : fromHalves(new Uint16Array(await blob(this.model, `bias${biases[place]}`)));
    const cut = heads * queries * width;
    return { queries: values.subarray(0, cut), keys: values.subarray(cut), bias };
  }

  /** One head's part of a layer: `query(position)` and `key(position)` are vectors, `sums(query)` the way to each weight.
   * @param {Awaited<ReturnType<VectorLayers["layer"]>>} layer @param {number} place @param {number} head its place */
  head(layer, place, head) {
    const {
      shape: [, queryCount, width],
      key_count: keyCount,
      key_heads: keyHeads,
      bias_heads: biasHeads,
      scaling,
      softcap,
    } = this.described;
    const query = (position) => layer.queries.subarray((head * queryCount + position) * width, (head * queryCount + position + 1) * width);
    const key = (position) =>
      layer.keys.subarray((keyHeads[head] * keyCount + position) * width, (keyHeads[head] * keyCount + position + 1) * width);
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

// ---- What the neuron view says: of a key, of one of its dimensions, of all that is not shown, and as a table.

/** A figure with two digits; a minus as long as a plus. @param {number} value */
export const figure = (value) => (value === -Infinity ? "−∞" : value.toFixed(2).replace("-", "−"));

/** The words of a panel: they read what it shows and change nothing. */
export class NeuronWords {
  /** @param {import("./neuron.js").NeuronPanel} panel */
  constructor(panel) {
    this.panel = panel;
  }

  /** A token in quotes, cut where it is long. @param {"queries" | "keys"} side @param {number} position */
  #quoted(side, position) {
    return `“${this.panel.columns[side].units[position].text.slice(0, 40)}”`;
  }

  /** The rank of a key's weight among all keys. @param {number} key */
  rank(key) {
    const { sums } = this.panel;
    return `rank ${1 + sums.filter(({ weight }) => weight > sums[key].weight).length} of ${sums.length}`;
  }

  /** What is said of a key. @param {number} key */
  about(key) {
    const { sums, query, chosen } = this.panel;
    const { logit, weight } = sums[key];
    return [
      `${this.#quoted("queries", query)} → ${this.#quoted("keys", key)}`,
      `Layer ${chosen.layer}, head ${chosen.head}`,
      `logit ${figure(logit)}`,
      `weight ${weight.toFixed(3)}, ${this.rank(key)}`,
    ];
  }

  /** What is said of one dimension of a query. @param {number} query @param {number} dimension */
  aboutQuery(query, dimension) {
    return [`${this.#quoted("queries", query)}, dimension ${dimension}`, `query ${short(this.panel.vectors.query(query)[dimension])}`];
  }

  /** What is said of one dimension of a key: its three figures, and its rank among the products. */
  aboutProduct(key, dimension) {
    const { sums, vectors, query } = this.panel;
    const { products } = sums[key];
    const rank = 1 + products.filter((product) => product > products[dimension]).length;
    const figures = `${short(vectors.query(query)[dimension])} × ${short(vectors.key(key)[dimension])} = ${short(products[dimension])}`;
    return [
      `${this.#quoted("keys", key)}, dimension ${dimension}`,
      `query × key: ${figures}`,
      `contribution ${rank} of ${products.length}`,
    ];
  }

  /** What is not shown, how exact the figures are, and what the strongest key is. */
  say() {
    const {
      frame,
      sums,
      query,
      masked,
      layers: { described },
      columns: { queries, keys },
    } = this.panel;
    const { layer, head, place, headPlace } = this.panel.chosen;
    const shown = new Set(keys.shown);
    const left = sums.filter((_, position) => !shown.has(position));
    const sharing = described.heads.filter(
      (_, other) => other !== headPlace && described.key_heads[other] === described.key_heads[headPlace],
    );
    const said = [`Colour is the value, on a ${frame.get("root", false) ? "square-root" : "linear"} scale.`];
    if (this.panel.layout.narrow)
      said.push(
        "There is room for the products of query and key only: the vectors, their sum and the logit are told when a row is pointed at.",
      );
    const { rows, height } = this.panel.size;
    const inSight = Math.floor(height / this.panel.rowHeight);
    if (rows > inSight) said.push(`${inSight} of ${rows} rows are in sight: scroll over them for the others.`);
    if (left.length)
      said.push(
        `${left.length} keys are not shown and take ${percent(left.reduce((sum, { weight }) => sum + weight, 0))} of the attention.`,
      );
    if (sharing.length)
      said.push(`Head ${head} shares its keys with head${sharing.length > 1 ? "s" : ""} ${sharing.join(", ")} (grouped queries).`);
    said.push(
      `Vectors are 16-bit floats (three digits): in layer ${layer} logits differ from the record by at most ${described.errors.logits[place]}, weights by at most ${described.errors.weights[place]}.`,
    );
    frame.said.textContent = said.join(" ");
    const best = sums.reduce((best, sum, position) => (sum.weight > sums[best].weight ? position : best), 0);
    const attends = masked.has(query)
      ? "attends to nothing"
      : `attends most to “${keys.units[best].text}”, ${sums[best].weight.toFixed(3)} (logit ${figure(sums[best].logit)})`;
    frame.summary.textContent = `Layer ${layer}, head ${head}: “${queries.units[query].text}” ${attends}.`;
  }

  /** The rows of the table: every key of the chosen query. */
  table() {
    const {
      sums,
      query,
      chosen,
      columns: { queries, keys },
    } = this.panel;
    return {
      caption: `Layer ${chosen?.layer}, head ${chosen?.head}: the keys of “${queries.units[query ?? 0].text}”`,
      columns: ["Key", "Sum of products", "Scaled", "Bias", "Logit", "Weight"],
      rows: keys.shown.map((position) => {
        const { dot, scaled, bias, logit, weight } = sums[position];
        return [keys.units[position].text, figure(dot), figure(scaled), figure(bias), figure(logit), weight.toFixed(4)];
      }),
    };
  }
}

const GAP = 16;
const FIGURE = 56;
const BAR = 80;
const WEIGHT = 48;
const WIDEST = 8;
/** Pixels of a dimension below which a strip cannot be read. */
const NARROWEST = 1.5;
/** Pixels below which a strip is too small to tell dimensions apart, and its heading does not fit. */
const SMALLEST = 72;
const LABEL = 48;

/** A colour for a signed value from −1 to 1, below zero orange, above it blue. @param {string[]} scale @param {boolean} root */
export function signedColour(scale, root) {
  const half = (scale.length - 1) / 2;
  return (share) => {
    const size = Math.min(Math.abs(share), 1);
    return scale[Math.round(half + half * Math.sign(share) * (root ? Math.sqrt(size) : size))];
  };
}

/** Where the columns stand: three strips of `dimensions`, two figures and the softmax bar, in the width there is.
 * @param {number} dimensions @param {number} width */
export function stripLayout(dimensions, width) {
  const fixed = 2 * FIGURE + BAR + WEIGHT + 5 * GAP;
  const each = (width - fixed) / 3 / dimensions;
  const cell = Math.min(Math.floor(2 * each) / 2, WIDEST);
  if (each < NARROWEST || cell * dimensions < Math.min(SMALLEST, WIDEST * dimensions)) return narrowLayout(dimensions, width);
  const strip = cell * dimensions;
  const lefts = { query: GAP / 2, key: GAP * 1.5 + strip, product: GAP * 2.5 + 2 * strip };
  const dot = GAP * 2.5 + 3 * strip + FIGURE;
  const logit = dot + FIGURE;
  const bar = logit + GAP;
  const whole = bar + BAR + WEIGHT + GAP / 2;
  /** The column and the dimension's place under a point. @param {number} x */
  const at = (x) => {
    for (const [column, left] of Object.entries(lefts))
      if (x >= left && x < left + strip) return { column, index: Math.floor((x - left) / cell) };
    return { column: x < lefts.key ? "query" : "sum", index: x < lefts.key ? 0 : null };
  };
  return { cell, strip, lefts, dot, logit, bar, weight: bar + BAR + 8, whole, at };
}

/** Where there is no room for three strips: the products and the weight alone.
 * @param {number} dimensions @param {number} width */
function narrowLayout(dimensions, width) {
  const strip = Math.max(width - WEIGHT - GAP, 48);
  const cell = strip / dimensions;
  const lefts = { product: GAP / 2 };
  const at = (x) =>
    x >= GAP / 2 && x < GAP / 2 + strip ? { column: "product", index: Math.floor((x - GAP / 2) / cell) } : { column: "sum", index: null };
  return { cell, strip, lefts, dot: null, logit: null, bar: null, weight: GAP + strip, whole: strip + WEIGHT + GAP, at, narrow: true };
}

/** Paints the headings, and the rows that are in sight: the queries with their vectors, the keys with theirs, the
 * products with the chosen query, the sums and the weights.
 * @param {CanvasRenderingContext2D} top @param {CanvasRenderingContext2D} context */
export function drawColumns(top, context, queries, keys, given) {
  const { layout, palette, row, largest, colour } = given;
  const { lefts, strip, dot, logit, bar } = layout;
  const [ink, quiet, line] = [palette.text, palette.quiet, palette.line];
  top.fillStyle = quiet;
  const headings = layout.narrow
    ? [
        ["query × key", lefts.product],
        ["weight", layout.weight],
      ]
    : [
        ["query", lefts.query],
        ["key", lefts.key],
        ["query × key", lefts.product],
        ["softmax", bar],
      ];
  for (const [words, left] of headings)
    top.fillText(words, left, row / 2, left === bar ? BAR : left === layout.weight ? WEIGHT : strip + GAP - 4);
  top.textAlign = "right";
  if (!layout.narrow)
    for (const [words, right] of [
      ["sum", dot],
      ["logit", logit],
    ])
      top.fillText(words, right, row / 2);
  // on whole pixels of the screen, so that nothing shines through between two dimensions
  const density = context.getTransform().a;
  const whole = (place) => Math.round(place * density) / density;
  const stripAt = (left, y, values, most, alpha) => {
    context.globalAlpha = alpha;
    given.order.forEach((dimension, place) => {
      const [start, end] = [left + place * layout.cell, left + (place + 1) * layout.cell].map(whole);
      context.fillStyle = colour(values[dimension] / most);
      context.fillRect(start, y + 4, end - start, row - 8);
    });
    context.globalAlpha = 1;
  };
  const framed = (left, y) => {
    context.strokeStyle = ink;
    context.strokeRect(left - 1.5, y + 2.5, strip + 3, row - 5);
  };
  for (const { vector, y, active } of layout.narrow ? [] : queries) {
    stripAt(lefts.query, y, vector, largest.vectors, active ? 1 : 0.35);
    if (active) framed(lefts.query, y);
  }
  for (const { key, products, y, active, dot: sum, logit: score, weight } of keys) {
    const seen = score > -Infinity;
    if (!layout.narrow) stripAt(lefts.key, y, key, largest.vectors, seen ? 1 : 0.35);
    stripAt(lefts.product, y, products, largest.products, seen ? 1 : 0.35);
    if (active) for (const left of layout.narrow ? [lefts.product] : [lefts.key, lefts.product]) framed(left, y);
    const middle = y + row / 2 + 0.5;
    context.fillStyle = seen ? ink : quiet;
    if (!layout.narrow) {
      context.textAlign = "right";
      context.fillText(sum.toFixed(2).replace("-", "−"), dot, middle);
      context.fillText(seen ? score.toFixed(2).replace("-", "−") : "masked", logit, middle);
      context.textAlign = "left";
      context.fillStyle = line;
      context.fillRect(bar, y + 4, 1, row - 8);
      context.fillStyle = palette.bar;
      context.fillRect(bar + 1, y + 6, weight * (BAR - 1), row - 12);
    }
    context.fillStyle = seen ? ink : quiet;
    context.fillText(weight.toFixed(3), layout.weight, middle);
  }
  if (given.dimension === null) return;
  const place = given.order.indexOf(given.dimension);
  context.strokeStyle = palette.focus;
  const foot = Math.max(...queries.map(({ y }) => y + row), ...keys.map(({ y }) => y + row), 0);
  for (const left of Object.values(lefts)) context.strokeRect(left + place * layout.cell - 0.5, 0.5, layout.cell + 1, foot - 1);
}

/** One scale in its own units, from minus its largest to its largest.
 * @param {CanvasRenderingContext2D} context @param {string} words @param {number} most */
export function drawSignedScale(context, words, most, { colour, palette }) {
  const [wide, size] = [96, String(+most.toPrecision(3))];
  const before = `${words}  −${size}`;
  const left = Math.round(context.measureText(before).width) + 8;
  context.fillStyle = palette.quiet;
  context.fillText(before, 0, 8);
  context.fillText(size, left + wide + 8, 8);
  drawRamp(context, { left, top: 3, width: wide, height: 10 }, (share) => colour(2 * share - 1));
}

/** One sum as a staircase: a bar for each product in the order of the strips, from the sum before it to the sum with it.
 * @param {CanvasRenderingContext2D} context @param {Float32Array} products */
export function drawSum(context, products, { order, colour, largest, palette, width, height, dimension }) {
  const span = width - 2 * LABEL;
  const cell = span / order.length;
  const running = [0];
  for (const place of order) running.push(running.at(-1) + products[place]);
  const [low, high] = [Math.min(...running), Math.max(...running)];
  const y = (value) => 8 + ((height - 16) * (high - value)) / Math.max(high - low, 1e-9);
  const [ink, quiet] = [palette.text, palette.quiet];
  context.fillStyle = palette.line;
  context.fillRect(LABEL, Math.round(y(0)), span, 1);
  order.forEach((place, index) => {
    const left = LABEL + index * cell;
    const [from, to] = [y(running[index]), y(running[index + 1])];
    // a bar has its length for its value: its colour only repeats the strip's, so it may not vanish into the ground
    context.fillStyle = colour(Math.sign(products[place]) * Math.max(Math.abs(products[place]) / largest, 0.35));
    context.fillRect(left + 0.5, Math.min(from, to), Math.max(cell - 1, 1), Math.max(Math.abs(from - to), 1));
    context.fillStyle = ink;
    context.fillRect(left, Math.round(to), cell, 1);
    if (place !== dimension) return;
    context.strokeStyle = palette.focus;
    context.strokeRect(left - 0.5, 4.5, cell + 1, height - 9);
  });
  context.textAlign = "right";
  context.fillStyle = quiet;
  context.fillText("0", LABEL - 8, y(0));
  context.textAlign = "left";
  context.fillStyle = ink;
  context.fillText(running.at(-1).toFixed(2).replace("-", "−"), LABEL + span + 6, y(running.at(-1)));
  /** The place of the dimension under a point. @param {number} x */
  const at = (x) => Math.min(Math.max(Math.floor((x - LABEL) / cell), 0), order.length - 1);
  return { at };
}
