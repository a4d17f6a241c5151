// What the scores view says: numbers and tokens in a sentence, what is shown, what is not, and as a table.

import { percent, short } from "./drawing.js";
import { rankOf } from "./scores_values.js";

const LONGEST = 60;
/** Letters and marks that turn the direction of what follows them. */
const TURNING = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;

/** A score with the digits it has: four of a method's own, three of what travelled as 16-bit floats.
 * @param {number} value @param {boolean} exactly */
function figure(value, exactly) {
  return Number.isFinite(value) ? String(+value.toPrecision(exactly ? 4 : 3)).replace(/-/g, "−") : "not computed";
}

/** The end of a scale, short. @param {number} value */
export function ending(value) {
  return value > 0 && value < 0.001 ? value.toExponential(1).replace("-", "−") : short(value);
}

/** A token in quotes: a long one cut, and one that turns the direction kept to itself. @param {string} text */
function quoted(text) {
  const letters = text.length > LONGEST ? [...text] : null;
  const cut = letters && letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : text;
  return TURNING.test(cut) ? `“\u2068${cut}\u2069”` : `“${cut}”`;
}

/** The words of a panel: they read what it shows and change nothing. */
export class ScoresWords {
  /** @param {import("./scores_panel.js").ScoresPanel} panel */
  constructor(panel) {
    this.panel = panel;
  }

  /** What is said of a token that asks. @param {import("./units.js").Unit} unit */
  aboutQuery(unit) {
    const { readout } = this.panel.payload;
    const mass = readout ? unit.places.reduce((sum, place) => sum + readout[place], 0) : 0;
    return [`Query ${quoted(unit.text)}`, "click: what this token gets from the others", ...(mass > 0 ? [`the read-out takes ${percent(mass)} from here`] : [])];
  }

  /** The exact figure: method, token, score, rank, layer, query. */
  about(data, column) {
    const score = data.scores[column];
    const rank = Number.isFinite(score) ? [`rank ${rankOf(score, data.every)} of ${data.every.length}`] : [];
    const where = data.own ? `read-out only: ${this.why(data.method)}` : this.#where();
    return [`${data.method.name}: ${quoted(this.panel.shown[column].text)}`, [figure(score, data.exact), ...rank].join(", "), where];
  }

  /** Why a method says nothing of another query or layer. */
  why({ name, without }) {
    return without ? `${without}.`.replace(/^./, (letter) => letter.toUpperCase()) : `The read-out of ${name} by layer is not here.`;
  }

  /** The query and the layer that are shown. */
  #where() {
    const { layer, queries, payload: { layers } } = this.panel;
    const own = queries.length ? `layer ${layers.at(-1)}` : "as the method scores by itself";
    return `${this.#query()}, ${layer === null ? own : `layer ${layers[layer]}`}`;
  }

  #query() {
    const names = this.#names(this.panel.queries);
    if (!names.length) return "read-out";
    return names.length > 1 ? `mean of the queries ${names.join(", ")}` : `query ${names[0]}`;
  }

  #names(places) {
    return this.panel.queryUnits.filter((unit) => unit.places.some((place) => places.includes(place))).map(({ text }) => quoted(text));
  }

  /** The sum over the tokens that are pinned, method by method. */
  sum() {
    const { frame, units, data } = this.panel;
    const pinned = new Set(frame.get("keys", []));
    const chosen = units.filter(({ places }) => places.some((place) => pinned.has(place)));
    const names = chosen.map(({ text }) => quoted(text)).join(" + ");
    const sums = this.panel.shownMethods().map((place) => {
      const { method, sum, exact } = data[place];
      return `${method.name} ${figure(chosen.reduce((whole, unit) => whole + sum(unit), 0), exact)}`;
    });
    return chosen.length ? `${names}${chosen.length > 1 ? " in sum" : ""}: ${sums.join(" · ")}` : "";
  }

  /** What the methods warn of, and what is not here: by whom, and what. @returns {[string, string][]} */
  warnings() {
    const { methods, left_out: leftOut, trust } = this.panel.payload;
    const warned = new Map();
    for (const { name, warnings } of methods) for (const warning of warnings) warned.set(warning, [...(warned.get(warning) ?? []), name]);
    const lines = [...warned].map(([warning, names]) => [names.join(", "), warning]);
    for (const { name, without, map } of methods) if (!map && without && !without.endsWith("read-out only")) lines.push([name, without]);
    for (const [name, why] of Object.entries(leftOut)) lines.push(["Left out", `${name}. ${why}`]);
    if (trust && methods.some((method) => method.trust)) lines.push(trust.split(/: (.*)/s).slice(0, 2));
    return lines;
  }

  /** What is shown on which scale, what agreement is, and what has no ink. */
  say() {
    const { frame, payload, data, shown, asked, queries, rows } = this.panel;
    const methods = this.panel.shownMethods().map((place) => data[place]);
    const root = frame.get("root", false) ? "square-root" : "linear";
    const reference = data.find(({ isReference }) => isReference);
    const shared = frame.get("scale", "each") === "shared";
    const said = [`Shown: ${this.#where()}. Ink is the score, on a ${root} scale from 0 to ${shared ? "the largest of all methods that are shares of one whole; others are in units of their own" : "the largest of each row"}.`];
    if (rows.tooWide) said.push("Aligned columns do not fit here, so the text runs on.");
    const silent = this.#names(asked.filter((place) => !queries.includes(place)));
    if (silent.length) said.push(`${silent.join(", ")} ${silent.length > 1 ? "attend" : "attends"} to nothing: ${queries.length ? "left out of the mean" : "in its place the read-out is shown"}.`);
    if (payload.methods.length > 1) said.push(`Agreement is Spearman’s rank correlation with ${reference.method.name} over the ${shown.length} ${frame.get("words", false) ? "words" : "tokens"} shown.`);
    const only = methods.filter(({ own }) => own).map(({ method }) => method.name);
    if (queries.length && methods.some(({ own }) => own !== reference.own)) said.push("Rows of different queries have no agreement.");
    if (only.length) said.push(`For ${only.join(", ")} the read-out is shown, as nothing else is here.`);
    if (rows.below) said.push(`${rows.below} scores below ${frame.get("threshold", 0).toFixed(3)} of the end of their scale have no ink.`);
    if (methods.some(({ hidden }) => hidden > 1e-6)) said.push(`Special tokens and sinks are hidden; they take ${methods.map(({ method, hidden }) => `${method.name} ${percent(hidden)}`).join(", ")}.`);
    frame.said.textContent = said.join(" ");
    const best = methods.map((one) => `${one.method.name}: highest ${quoted(shown[one.scores.indexOf(Math.max(...one.scores))]?.text ?? "")}`);
    frame.summary.textContent = `Scores for ${this.#where()}. ${best.join("; ")}.`;
  }

  /** The rows of the table: every token that is shown under every method. */
  table() {
    const methods = this.panel.shownMethods().map((place) => this.panel.data[place]);
    return {
      caption: `Scores for ${this.#where()}`,
      columns: ["Token", ...methods.map(({ method, own }) => `${method.name}${own ? " (read-out)" : ""}`)],
      rows: this.panel.shown.map(({ text }, column) => [text, ...methods.map(({ scores, exact }) => figure(scores[column], exact))]),
    };
  }
}
