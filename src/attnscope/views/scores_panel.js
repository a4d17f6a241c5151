// What methods say of each token: the body of the scores view, with its scales, its sums and its warnings.

import { colours, drawRamp, element, sharp } from "./drawing.js";
import { ScoreRows, groundOf } from "./scores_rows.js";
import { ScoreMaps, rankAgreement } from "./scores_values.js";
import { ScoresWords } from "./scores_words.js";
import { pinnedAfter } from "./token_list.js";
import { unitsOf } from "./units.js";

const LEGEND = 160;

/** What the panel shows of the model. */
export const SCORES_STATE = ["layer", "queries", "keys", "words", "special", "threshold", "root", "scale", "layout", "reference", "methods"];

/** The scores of every method for a layer and a query. */
export class ScoresPanel {
  names = SCORES_STATE;

  /** @param {import("./frame.js").Frame} frame @param {object} payload */
  constructor(frame, payload) {
    Object.assign(this, { frame, payload, maps: new ScoreMaps(frame.model, payload), words: new ScoresWords(this) });
    /** Whether there is any method that knows another query than the read-out. */
    this.asks = payload.methods.some(({ map }) => map);
    /** Whether the tokens that ask are those that are asked. */
    this.own = payload.stack !== "cross";
    this.rows = new ScoreRows(this);
    this.picked = element("p", { className: "picked", ariaLive: "polite" });
    this.legend = element("div", { className: "legend quiet" });
    const warnings = this.words.warnings();
    this.warnings = element("ul", { className: "warnings quiet", hidden: !warnings.length }, ...warnings.map(([name, words]) => element("li", {}, element("b", {}, `${name}: `), words)));
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
    const needed = (unit) => frame.get("special", true) || (!unit.special && !unit.sink);
    this.shown = this.units.filter(needed);
    this.shownQueries = this.own ? this.queryUnits.filter(needed) : this.queryUnits;
    // of what is asked for, a token that attends to nothing has no scores
    Object.assign(this, { asked, queries, layer });
    this.data = this.#measured(found);
    this.palette = colours(frame.el);
    this.rows.fill();
    this.rows.paint(this.palette);
    this.#scales();
    this.picked.textContent = this.words.sum();
    this.words.say();
  }

  /** Scores of units, the end of each scale, the agreement with the reference. */
  #measured(found) {
    const { frame, payload } = this;
    const sums = found.map(({ values }) => (unit) => unit.places.reduce((sum, place) => sum + values[place], 0));
    const scores = sums.map((sum) => this.shown.map(sum));
    const ends = scores.map((row) => row.reduce((most, value) => (Math.abs(value) > most ? Math.abs(value) : most), 0));
    const sharing = this.shownMethods().filter((place) => payload.methods[place].shares);
    const together = Math.max(0, ...sharing.map((place) => ends[place]));
    const reference = Math.max(0, payload.methods.findIndex(({ name }) => name === frame.get("reference")));
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
        end: frame.get("scale", "each") === "shared" && method.shares ? together : ends[place],
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
    const end = this.frame.get("scale", "each") === "shared" ? "the end of the scale" : "largest of the row";
    const bar = (signed, from, to) => {
      const canvas = element("canvas", { ariaHidden: "true" });
      const ground = groundOf(this.palette, signed, root);
      drawRamp(sharp(canvas, LEGEND, 12), { left: 0, top: 0, width: LEGEND, height: 12 }, (share) => ground(signed ? 2 * share - 1 : share));
      return element("div", {}, element("span", {}, from), canvas, element("span", {}, `${to}${root ? ", square root" : ""}`));
    };
    this.legend.replaceChildren(...(used.includes(false) ? [bar(false, "0", end)] : []), ...(used.includes(true) ? [bar(true, `− ${end}`, `+ ${end}`)] : []));
  }

  /** Pins a token, or asks for it as a query. @param {"keys" | "queries"} name @param {number} column @param {boolean} more */
  pin(name, column, more) {
    const { places } = (name === "queries" ? this.shownQueries : this.shown)[column];
    this.frame.set({ [name]: pinnedAfter(this.frame.get(name, []), places, more).sort((one, other) => one - other) });
  }

  /** Every token that is shown under every method, as rows. */
  table() {
    return this.words.table();
  }
}
