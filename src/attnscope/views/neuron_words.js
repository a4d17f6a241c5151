// What the neuron view says: of a key, of one of its dimensions, of all that is not shown, and as a table.

import { percent, short } from "./drawing.js";

/** A figure with two digits; a minus as long as a plus. @param {number} value */
export const figure = (value) => (value === -Infinity ? "−∞" : value.toFixed(2).replace("-", "−"));

/** The words of a panel: they read what it shows and change nothing. */
export class NeuronWords {
  /** @param {import("./neuron_panel.js").NeuronPanel} panel */
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
    return [`${this.#quoted("queries", query)} → ${this.#quoted("keys", key)}`, `Layer ${chosen.layer}, head ${chosen.head}`, `logit ${figure(logit)}`, `weight ${weight.toFixed(3)}, ${this.rank(key)}`];
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
    return [`${this.#quoted("keys", key)}, dimension ${dimension}`, `query × key: ${figures}`, `contribution ${rank} of ${products.length}`];
  }

  /** What is not shown, how exact the figures are, and what the strongest key is. */
  say() {
    const { frame, sums, query, masked, layers: { described }, columns: { queries, keys } } = this.panel;
    const { layer, head, place, headPlace } = this.panel.chosen;
    const shown = new Set(keys.shown);
    const left = sums.filter((_, position) => !shown.has(position));
    const sharing = described.heads.filter((_, other) => other !== headPlace && described.key_heads[other] === described.key_heads[headPlace]);
    const said = [`Colour is the value, on a ${frame.get("root", false) ? "square-root" : "linear"} scale.`];
    if (this.panel.layout.narrow) said.push("There is room for the products of query and key only: the vectors, their sum and the logit are told when a row is pointed at.");
    if (left.length) said.push(`${left.length} keys are not shown and take ${percent(left.reduce((sum, { weight }) => sum + weight, 0))} of the attention.`);
    if (sharing.length) said.push(`Head ${head} shares its keys with head${sharing.length > 1 ? "s" : ""} ${sharing.join(", ")} (grouped queries).`);
    said.push(`Vectors are 16-bit floats (three digits): in layer ${layer} logits differ from the record by at most ${described.errors.logits[place]}, weights by at most ${described.errors.weights[place]}.`);
    frame.said.textContent = said.join(" ");
    const best = sums.reduce((best, sum, position) => (sum.weight > sums[best].weight ? position : best), 0);
    const attends = masked.has(query) ? "attends to nothing" : `attends most to “${keys.units[best].text}”, ${sums[best].weight.toFixed(3)} (logit ${figure(sums[best].logit)})`;
    frame.summary.textContent = `Layer ${layer}, head ${head}: “${queries.units[query].text}” ${attends}.`;
  }

  /** The rows of the table: every key of the chosen query. */
  table() {
    const { sums, query, chosen, columns: { queries, keys } } = this.panel;
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
