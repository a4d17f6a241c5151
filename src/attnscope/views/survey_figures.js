// What is chosen of a survey: the statistic, its label and measure, and the figure of each head by them, in numbers and words.

import { at, written } from "./drawing.js";

/** @typedef {{title: string, unit: string, meaning: string, barsTitle: string, values: number[][], errors: number[][],
 *   layers: {value: number, error: number, parts?: [number, number][]}[], chance?: number[][], prefix?: string, roles?: object}} SurveyMap by layer and head */

/** Whether two lists hold the same. */
export const sameList = (one, other) => one?.length === other.length && other.every((item, place) => item === one[place]);

const meanOf = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

/** The figures that the model names; heads are by their places, except where numbers are spoken of. */
export class SurveyFigures {
  /** @param {import("./frame.js").Frame} frame @param {object} payload */
  constructor(frame, payload) {
    Object.assign(this, { frame, payload });
  }

  // ---- what is chosen

  /** The statistic, or null where roles are the map. */
  get statistic() {
    const { statistics, roles } = this.payload;
    return statistics.find(({ name }) => name === this.frame.get("statistic")) ?? (roles ? null : statistics[0]);
  }

  /** The labels of a statistic that are chosen, as the number of their row. */
  rowOf(statistic) {
    return Math.max(0, statistic.rows.findIndex((row) => sameList(this.frame.get("label"), row)));
  }

  /** The measures of a statistic that make a map: those that differ from head to head. */
  measuresOf(statistic) {
    return statistic.measures.filter(({ name, array }) => name === "value" || (name !== "error" && array.shape[1] * array.shape[2] > 1));
  }

  /** The pinned heads by their numbers; a link may name some that are not here. */
  get pinned() {
    const { layers, heads } = this.payload;
    return [this.frame.get("pinned", [])].flat().filter((place) => Array.isArray(place) && layers.includes(place[0]) && heads.includes(place[1]));
  }

  /** The place of the head that the keys have moved to, or null. */
  get selected() {
    const { layers, heads } = this.payload;
    const place = [layers.indexOf(this.frame.get("layer")), heads.indexOf(this.frame.get("head"))];
    return place.includes(-1) ? null : place;
  }

  // ---- the map

  #grid(read) {
    return this.payload.layers.map((_, layer) => this.payload.heads.map((_, head) => read(layer, head)));
  }

  /** Reads the map of the moment: the figure and its error for each head, and by layer. @returns {SurveyMap} */
  read() {
    this.map = this.statistic ? this.#statisticMap(this.statistic) : this.#roleMap();
    return this.map;
  }

  #roleMap() {
    const { layers, heads, roles } = this.payload;
    const parts = (layer) => roles.names.map((_, role) => [role, heads.filter((_, head) => at(roles.place, layer, head) === role).length]).filter(([, count]) => count);
    return {
      title: "Role of each head", unit: "", prefix: "score ", barsTitle: "heads by role", roles,
      meaning: "What each head does, as far as its figures tell; the letter in a cell is its role.",
      values: this.#grid((layer, head) => at(roles.value, layer, head)),
      errors: this.#grid((layer, head) => (roles.error ? at(roles.error, layer, head) : NaN)),
      layers: layers.map((_, layer) => ({ value: heads.length, error: NaN, parts: parts(layer) })),
    };
  }

  #statisticMap(statistic) {
    const row = this.rowOf(statistic);
    const measures = this.measuresOf(statistic);
    const measure = measures.find(({ name }) => name === this.frame.get("measure")) ?? measures[0];
    const plain = measure.name === "value";
    const beside = (name) => plain && statistic.measures.find((one) => one.name === name)?.array;
    const [errors, chance] = [beside("error"), beside("chance")];
    const values = this.#grid((layer, head) => at(measure.array, row, layer, head));
    const labels = statistic.rows[row].map((label) => statistic.words[label]).join(", ");
    const known = plain && statistic.byLayer;
    const ofLayer = (layer) => ({ value: at(known.value, row, layer), error: known.error ? at(known.error, row, layer) : NaN });
    return {
      title: [statistic.title, labels, plain ? "" : measure.title].filter(Boolean).join(" · "),
      unit: plain ? statistic.unit : measure.title.split(":")[0].toLowerCase(),
      meaning: statistic.meaning, values,
      barsTitle: known ? "by layer" : "mean by layer",
      errors: this.#grid((layer, head) => (errors ? at(errors, row, layer, head) : NaN)),
      chance: chance && this.#grid((layer, head) => at(chance, row, layer, head)),
      layers: values.map((figures, layer) => (known ? ofLayer(layer) : { value: meanOf(figures.filter(Number.isFinite)), error: NaN })),
    };
  }

  /** The places of all measured heads, the highest first. */
  ranked() {
    const value = ([layer, head]) => this.map.values[layer][head];
    const places = this.#grid((layer, head) => [layer, head]).flat();
    return places.filter((place) => Number.isFinite(value(place))).sort((one, other) => value(other) - value(one));
  }

  // ---- in words

  roleOf(layer, head) {
    const { roles } = this.payload;
    return roles?.names[at(roles.place, layer, head)] ?? "";
  }

  /** The figure of a head with its error. */
  figure(layer, head) {
    return written(this.map.values[layer][head], this.map.errors[layer][head]);
  }

  /** What is said of a head. */
  about(layer, head) {
    const { map, payload: { layers, heads } } = this;
    const chance = map.chance ? `, by chance ${written(map.chance[layer][head])}` : "";
    const unit = map.unit && Number.isFinite(map.values[layer][head]) ? ` ${map.unit}` : "";
    return [`Layer ${layers[layer]}, head ${heads[head]}`, `${map.prefix ?? ""}${this.figure(layer, head)}${unit}${chance}`, this.roleOf(layer, head)].filter(Boolean);
  }

  /** What is said of the bar of a layer. */
  aboutLayer(layer) {
    const { map, payload: { layers, roles } } = this;
    const { value, error, parts } = map.layers[layer];
    return [`Layer ${layers[layer]}`, parts ? parts.map(([role, count]) => `${roles.names[role]} ${count}`).join(", ") : `${written(value, error)} ${map.unit}, ${map.barsTitle}`];
  }

  /** How many heads were not measured, in words. */
  get missing() {
    const count = this.map.values.flat().filter((value) => !Number.isFinite(value)).length;
    return count ? `; hatched: ${count} ${count === 1 ? "head" : "heads"} not measured` : "";
  }

  /** The map in one sentence. */
  summary() {
    const { map, payload: { layers, heads } } = this;
    const [best] = this.ranked();
    const highest = best ? `highest ${this.figure(...best)} at layer ${layers[best[0]]}, head ${heads[best[1]]}` : "nothing measured";
    return `${map.title}${map.unit ? `, ${map.unit}` : ""}: ${layers.length} layers by ${heads.length} heads, ${highest}${this.missing}.`;
  }

  /** The rows of the table: a layer each, with the figure of every head. */
  table() {
    const { map, payload: { layers, heads } } = this;
    const text = (layer, head) => (map.roles ? `${this.roleOf(layer, head)} ${written(map.values[layer][head])}` : this.figure(layer, head));
    return {
      caption: `${map.title}${map.unit ? ` (${map.unit})` : ""}`,
      columns: ["layer \\ head", ...heads],
      rows: layers.map((number, layer) => [number, ...heads.map((_, head) => text(layer, head))]),
    };
  }
}
