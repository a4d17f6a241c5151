// The scores view: the text on the colour of each method's scores, methods side by side, and how far they agree.

import { colours, drawRamp, element, groundOf, isBeyond, percent, scaleOf, sharp } from "./drawing.js";
import { Frame, quietControl, wordsControl } from "./frame.js";
import { LONG_TEXT, ScoresDocument } from "./text_document.js";
import { ScoreMaps, ScoreRows, rankAgreement, rankOf } from "./scores_rows.js";
import { loudest, placesHolding, unitsOf } from "./units.js";

// ---- What the scores view says: numbers and tokens in a sentence, what is shown, what is not, and as a table.

const LONGEST = 60;
/** Rows of the table of a long text. */
const MOST_ROWS = 500;
/** Letters and marks that turn the direction of what follows them. */
const TURNING = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;

/** A score with the digits it has: four of a method's own, three of what travelled as 16-bit floats.
 * @param {number} value @param {boolean} exactly */
function figure(value, exactly) {
  return Number.isFinite(value) ? String(+value.toPrecision(exactly ? 4 : 3)).replace(/-/g, "−") : "not computed";
}

/** A token in quotes: a long one cut, and one that turns the direction kept to itself. @param {string} text */
function quoted(text) {
  const letters = text.length > LONGEST ? [...text] : null;
  const cut = letters && letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : text;
  return TURNING.test(cut) ? `“\u2068${cut}\u2069”` : `“${cut}”`;
}

/** The words of a panel: they read what it shows and change nothing. */
class ScoresWords {
  /** @param {ScoresPanel} panel */
  constructor(panel) {
    this.panel = panel;
  }

  /** What is said of a token that asks. @param {import("./units.js").Unit} unit */
  aboutQuery(unit) {
    const { readout } = this.panel.payload;
    const mass = readout ? unit.places.reduce((sum, place) => sum + readout[place], 0) : 0;
    return [
      `Query ${quoted(unit.text)}`,
      "click: what this token gets from the others",
      ...(mass > 0 ? [`the read-out takes ${percent(mass)} from here`] : []),
    ];
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
    const {
      layer,
      queries,
      payload: { layers },
    } = this.panel;
    const own = queries.length ? `layer ${layers.at(-1)}` : "as the method scores by itself";
    return `${this.#query()}, ${layer === null ? own : `layer ${layers[layer]}`}`;
  }

  #query() {
    const names = this.#names(this.panel.queries);
    if (!names.length) return "read-out";
    return names.length > 1 ? `mean of the queries ${names.join(", ")}` : `query ${names[0]}`;
  }

  #names(places) {
    return placesHolding(this.panel.queryUnits, places).map((unit) => quoted(this.panel.queryUnits[unit].text));
  }

  /** The sum over the tokens that are pinned, method by method. */
  sum() {
    const { frame, units, data } = this.panel;
    const chosen = placesHolding(units, frame.get("keys", [])).map((unit) => units[unit]);
    const names = chosen.map(({ text }) => quoted(text)).join(" + ");
    const sums = this.panel.shownMethods().map((place) => {
      const { method, sum, exact } = data[place];
      return `${method.name} ${figure(
        chosen.reduce((whole, unit) => whole + sum(unit), 0),
        exact,
      )}`;
    });
    return chosen.length ? `${names}${chosen.length > 1 ? " in sum" : ""}: ${sums.join(" · ")}` : "";
  }

  /** What the methods warn of, and what is not here: by whom, and what. @returns {[string, string][]} */
  warnings() {
    const { methods, left_out: leftOut, trust } = this.panel.payload;
    const warned = new Map();
    for (const { name, warnings } of methods) for (const warning of warnings) warned.set(warning, [...(warned.get(warning) ?? []), name]);
    /** @type {[string, string][]} */
    const lines = [...warned].map(([warning, names]) => [names.join(", "), /[.!?]$/.test(warning) ? warning : `${warning}.`]);
    for (const { name, without, map } of methods) if (!map && without && !without.endsWith("read-out only")) lines.push([name, without]);
    for (const [name, why] of Object.entries(leftOut)) lines.push(["Left out", `${name}. ${why}`]);
    if (trust && methods.some((method) => method.trust)) lines.push(/** @type {[string, string]} */ (trust.split(/: (.*)/s).slice(0, 2)));
    return lines;
  }

  /** What is shown on which scale, what agreement is, and what has no ink. */
  say() {
    const { frame, payload, data, shown, asked, queries, rows } = this.panel;
    const methods = this.panel.shownMethods().map((place) => data[place]);
    const root = frame.get("root", false) ? "square-root" : "linear";
    const reference = data.find(({ isReference }) => isReference);
    const shared = frame.get("scale", "each") === "shared";
    const said = [
      `Shown: ${this.#where()}. Ink is the score, on a ${root} scale from 0 to ${shared ? "the largest of all methods that are shares of one whole; others are in units of their own" : "the largest of each row"}.`,
    ];
    const outside = methods.some(({ scores, scale }) => scores.some((score) => isBeyond(score, scale)));
    if (outside) said.push("Scales leave out special tokens and sinks: those beyond them have a bar above.");
    const late = methods.filter(({ scale }) => scale.start).map(({ method }) => method.name);
    if (late.length)
      said.push(
        `All scores of ${late.join(", ")} are near to each other: ${late.length > 1 ? "their scales begin" : "its scale begins"} at the smallest, not at 0.`,
      );
    said.push(...rows.notes);
    const silent = this.#names(asked.filter((place) => !queries.includes(place)));
    if (silent.length)
      said.push(
        `${silent.join(", ")} ${silent.length > 1 ? "attend" : "attends"} to nothing: ${queries.length ? "left out of the mean" : "in its place the read-out is shown"}.`,
      );
    if (payload.methods.length > 1)
      said.push(
        `Agreement is Spearman’s rank correlation with ${reference.method.name} over the ${shown.length} ${frame.get("words", false) ? "words" : "tokens"} shown.`,
      );
    const only = methods.filter(({ own }) => own).map(({ method }) => method.name);
    if (queries.length && methods.some(({ own }) => own !== reference.own)) said.push("Rows of different queries have no agreement.");
    if (only.length) said.push(`For ${only.join(", ")} the read-out is shown, as nothing else is here.`);
    if (rows.below) said.push(`${rows.below} scores below ${frame.get("threshold", 0).toFixed(3)} of the end of their scale have no ink.`);
    if (methods.some(({ hidden }) => hidden > 1e-6))
      said.push(
        `Special tokens and sinks are hidden; they take ${methods.map(({ method, hidden }) => `${method.name} ${percent(hidden)}`).join(", ")}.`,
      );
    frame.said.textContent = said.join(" ");
    const highest = (scores) => scores.reduce((best, score, place) => (score > (scores[best] ?? -Infinity) ? place : best), 0);
    const best = methods.map((one) => `${one.method.name}: highest ${quoted(shown[highest(one.scores)]?.text ?? "")}`);
    frame.summary.textContent = `Scores for ${this.#where()}. ${best.join("; ")}.`;
  }

  /** The rows of the table: every token that is shown under every method; of a long text those that score highest. */
  table() {
    const { shown } = this.panel;
    const methods = this.panel.shownMethods().map((place) => this.panel.data[place]);
    const places = loudest(methods[0].scores.map(Math.abs), shown.length > LONG_TEXT ? MOST_ROWS : shown.length);
    const cut = places.length < shown.length ? `: the ${places.length} highest of ${shown.length} by ${methods[0].method.name}` : "";
    return {
      caption: `Scores for ${this.#where()}${cut}`,
      columns: ["Token", ...methods.map(({ method, own }) => `${method.name}${own ? " (read-out)" : ""}`)],
      rows: places.map((column) => [shown[column].text, ...methods.map(({ scores, exact }) => figure(scores[column], exact))]),
    };
  }
}

// ---- What methods say of each token: the body of the scores view, with its scales, its sums and its warnings.

const LEGEND = 160;

/** The scores of every method for a layer and a query. */
export class ScoresPanel {
  /** @param {import("./frame.js").Frame} frame @param {ScoresPayload} payload */
  constructor(frame, payload) {
    this.frame = frame;
    this.payload = payload;
    this.maps = new ScoreMaps(frame.model, payload);
    this.words = new ScoresWords(this);
    /** Whether there is any method that knows another query than the read-out. */
    this.asks = payload.methods.some(({ map }) => map);
    /** Whether the tokens that ask are those that are asked. */
    this.own = payload.stack !== "cross";
    /** @type {ScoreRows | ScoresDocument} */
    this.rows = new ScoreRows(this);
    this.picked = element("p", { className: "picked", ariaLive: "polite" });
    this.legend = element("div", { className: "legend quiet" });
    const warnings = this.words.warnings();
    this.warnings = element(
      "ul",
      { className: "warnings quiet", hidden: !warnings.length },
      ...warnings.map(([name, words]) => element("li", {}, element("b", {}, `${name}: `), words)),
    );
    this.node = element("div", { className: "scores-panel" }, this.rows.node, this.legend, this.picked);
    frame.listKey("n p", "next and previous token");
    frame.listKey("↑ ↓", "method");
    frame.listKey("Enter", "pin the token, or ask for this query; with Shift, add it");
    frame.key("Escape", "release all, back to the read-out", () => frame.set({ queries: [], keys: [], methods: null }));
  }

  /** The methods that are shown, by their places. */
  shownMethods() {
    const chosen = this.frame.get("methods");
    const places = this.payload.methods.map((_, place) => place);
    const some = chosen ? places.filter((place) => chosen.includes(this.payload.methods[place].name)) : places;
    return some.length ? some : places;
  }

  /** The place of the layer that is chosen, or null for each method's own. */
  #layer() {
    const place = this.payload.layers.indexOf(this.frame.get("layer"));
    return place < 0 ? null : place;
  }

  /** Decodes what is asked for, makes the rows, and colours them. */
  async draw() {
    const { frame, payload } = this;
    const [layer, masked] = [this.#layer(), new Set(payload.queries.masked)];
    const asked = frame.get("queries", []).filter((query) => query < payload.queries.texts.length);
    const queries = asked.filter((query) => !masked.has(query));
    const found = await Promise.all(payload.methods.map((_, place) => this.maps.found(place, layer, queries)));
    const words = Boolean(frame.get("words", false));
    this.units = unitsOf(payload.keys, words);
    this.queryUnits = unitsOf(payload.queries, words);
    const needed = (unit) => frame.get("special", true) || !unit.quiet;
    this.shown = this.units.filter(needed);
    this.shownQueries = this.own ? this.queryUnits.filter(needed) : this.queryUnits;
    // of what is asked for, a token that attends to nothing has no scores
    this.asked = asked;
    this.queries = queries;
    this.layer = layer;
    this.data = this.#measured(found);
    this.palette = colours(frame.el);
    this.#choose(this.shown.length > LONG_TEXT ? ScoresDocument : ScoreRows);
    this.rows.fill();
    this.rows.paint(this.palette);
    this.#scales();
    this.picked.textContent = this.words.sum();
    this.words.say();
  }

  /** Rows of methods, or a document where the text is long. @param {typeof ScoreRows | typeof ScoresDocument} Wanted */
  #choose(Wanted) {
    if (this.rows instanceof Wanted) return;
    const made = new Wanted(this);
    this.rows.node.replaceWith(made.node);
    this.rows = made;
  }

  /** Scores of units, the end of each scale, the agreement with the reference. */
  #measured(found) {
    const { frame, payload } = this;
    const sums = found.map(
      ({ values }) =>
        (unit) =>
          unit.places.reduce((sum, place) => sum + values[place], 0),
    );
    const scores = sums.map((sum) => this.shown.map(sum));
    const quiet = this.shown.map((unit) => unit.quiet);
    const scales = scores.map((row) => scaleOf(row, quiet));
    const sharing = this.shownMethods().filter((place) => payload.methods[place].shares);
    const together = { start: 0, end: Math.max(0, ...sharing.map((place) => scales[place].end)) };
    const reference = Math.max(
      0,
      payload.methods.findIndex(({ name }) => name === frame.get("reference")),
    );
    return payload.methods.map((method, place) => {
      const every = this.units.map(sums[place]);
      const mass = every.reduce((sum, value) => sum + Math.abs(value), 0);
      const seen = scores[place].reduce((sum, value) => sum + Math.abs(value), 0);
      // an order for one query has nothing to do with that for another
      const comparable = !this.queries.length || found[place].own === found[reference].own;
      return {
        method,
        place,
        scores: scores[place],
        every,
        sum: sums[place],
        own: found[place].own,
        exact: found[place].exact,
        scale: frame.get("scale", "each") === "shared" && method.shares ? together : scales[place],
        isReference: place === reference,
        agreement: comparable ? rankAgreement(scores[place], scores[reference]) : NaN,
        hidden: mass > 0 ? Math.max(0, 1 - seen / mass) : 0,
      };
    });
  }

  /** The scales that are in use. */
  #scales() {
    const used = this.shownMethods().map((place) => this.payload.methods[place].signed);
    const root = Boolean(this.frame.get("root", false));
    const end = this.frame.get("scale", "each") === "shared" ? "end of the scale" : "end of the row’s scale";
    const shown = this.shownMethods().map((place) => this.data[place]);
    const outside = shown.some(({ scores, scale }) => scores.some((score) => isBeyond(score, scale)));
    const bar = (signed, from, to) => {
      const canvas = element("canvas", { ariaHidden: "true" });
      const ground = groundOf(this.palette, signed, root);
      drawRamp(sharp(canvas, LEGEND, 12), { left: 0, top: 0, width: LEGEND, height: 12 }, (share) =>
        ground(signed ? 2 * share - 1 : share),
      );
      return element("div", {}, element("span", {}, from), canvas, element("span", {}, `${to}${root ? ", square root" : ""}`));
    };
    this.legend.replaceChildren(
      ...(used.includes(false) ? [bar(false, "0", end)] : []),
      ...(used.includes(true) ? [bar(true, "−", `+ ${end} (orange: below 0)`)] : []),
      ...(outside ? [element("div", {}, element("span", { className: "sample beyond" }), "beyond the scale: special token or sink")] : []),
    );
  }

  /** Pins a token, or asks for it as a query. @param {"keys" | "queries"} name @param {number} column @param {boolean} more */
  pin(name, column, more) {
    const { places } = (name === "queries" ? this.shownQueries : this.shown)[column];
    this.frame.pin(name, places, more);
  }

  /** Every token that is shown under every method, as rows. */
  table() {
    return this.words.table();
  }
}

/** Draws the view into an element and keeps it true to the model. @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const payload = model.get("payload");
  const { methods, layers, keys } = payload;
  const frame = new Frame({ model, el }, "scores", "Scores view: what methods say of each token");
  const panel = new ScoresPanel(frame, payload);
  if (methods.some(({ rows, map }) => rows || map))
    frame.stepper("Layer", "layer", [...layers, null], (layer) => (layer === null ? "overall" : String(layer)));
  if (keys.texts.length <= LONG_TEXT)
    frame.select("Layout", "layout", [
      ["aligned", "Aligned where it fits"],
      ["text", "Running text"],
    ]);
  if (methods.length > 1)
    frame.select(
      "Agreement with",
      "reference",
      methods.map(({ name }) => [name, name]),
    );
  if (methods.filter(({ shares }) => shares).length > 1)
    frame.select("Scale", "scale", [
      ["each", "Each row"],
      ["shared", "Shared"],
    ]);
  frame.threshold(1, "Hide below, as a share of the largest");
  wordsControl(frame, keys);
  quietControl(frame, keys);
  frame.check("Square-root scale", "root");
  frame.body.append(panel.node);
  frame.said.after(panel.warnings);
  return frame.start(panel);
}
