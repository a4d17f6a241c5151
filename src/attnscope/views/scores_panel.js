// The text once for each method, on the colour of its scores: the body of the scores view.

import { colours, element, inkOn, percent, sharp } from "./drawing.js";
import { ScoreMaps, rankOf, spearman } from "./scores_values.js";
import { ending, figure, quoted } from "./scores_words.js";
import { unitsOf } from "./units.js";

const LEGEND = 160;

/** What the panel shows of the model. */
export const SCORES_STATE = ["layer", "queries", "keys", "words", "special", "threshold", "root", "scale", "layout", "reference", "methods"];

/** Rows of methods, tokens as columns or as running text. */
export class ScoresPanel {
  #column = null;

  /** @param {import("./frame.js").Frame} frame @param {object} payload */
  constructor(frame, payload) {
    Object.assign(this, { frame, payload, maps: new ScoreMaps(frame.model, payload) });
    this.asks = payload.methods.some(({ map }) => map);
    this.own = payload.stack !== "cross";
    this.rows = element("div", { className: "rows" });
    this.picked = element("p", { className: "picked", ariaLive: "polite" });
    this.legend = element("div", { className: "legend quiet" });
    this.warnings = element("ul", { className: "warnings quiet" });
    this.node = element("div", { className: "scores-panel" }, this.rows, this.legend, this.picked);
    this.rows.addEventListener("pointerover", (event) => this.#pointed(event));
    this.rows.addEventListener("pointerleave", () => this.#look(null));
    this.rows.addEventListener("focusin", (event) => this.#pointed(event));
    this.rows.addEventListener("focusout", () => this.#look(null));
    this.rows.addEventListener("click", (event) => this.#clicked(event));
    this.rows.addEventListener("keydown", (event) => this.#moved(event));
    this.#warn();
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
    this.asked = asked;
    this.layer = layer;
    this.data = this.#measured(found, queries.length > 0);
    this.#fill();
    this.#paint();
    this.#say();
  }

  /** Scores of units, the end of each scale, the agreement with the reference. */
  #measured(found, other) {
    const { frame, payload } = this;
    const sums = found.map(({ values }) => (unit) => unit.places.reduce((sum, place) => sum + values[place], 0));
    const scores = sums.map((sum) => this.shown.map(sum));
    const ends = scores.map((row) => row.reduce((most, value) => (Math.abs(value) > most ? Math.abs(value) : most), 0));
    const methods = this.shownMethods();
    const together = Math.max(0, ...methods.filter((place) => payload.methods[place].shares).map((place) => ends[place]));
    const reference = Math.max(0, payload.methods.findIndex(({ name }) => name === frame.get("reference")));
    return payload.methods.map((method, place) => {
      const every = this.units.map(sums[place]);
      const mass = every.reduce((sum, value) => sum + Math.abs(value), 0);
      const seen = scores[place].reduce((sum, value) => sum + Math.abs(value), 0);
      // an order for one query has nothing to do with that for another
      const comparable = !other || found[place].own === found[reference].own;
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
        agreement: comparable ? spearman(scores[place], scores[reference]) : NaN,
        hidden: mass > 0 ? Math.max(0, 1 - seen / mass) : 0,
      };
    });
  }

  // ---- rows

  /** Makes the rows; only when what stands in them has changed. */
  #fill() {
    const aligned = this.frame.get("layout", "aligned") === "aligned";
    const methods = this.shownMethods();
    const places = (units) => units.map((unit) => unit.places[0]);
    const signature = JSON.stringify([aligned, methods, places(this.shown), this.units.length]);
    if (this.rows.dataset.signature === signature) return;
    this.rows.dataset.signature = signature;
    this.rows.className = `rows ${aligned ? "aligned" : "running"}`;
    this.rows.style.gridTemplateColumns = aligned ? `var(--names) repeat(${this.shown.length}, max-content) max-content` : "";
    const made = methods.map((place) => this.#row(place));
    this.rows.replaceChildren(this.#head(), ...made);
    this.cells = new Map(made.map((row) => [Number(row.dataset.method), [...row.querySelectorAll(".token")]]));
    for (const first of this.rows.querySelectorAll(".head .token, .row:nth-child(2) .token")) {
      if (first === first.parentElement.querySelector(".token")) first.tabIndex = 0;
    }
  }

  #token(unit, place) {
    const starts = unit.sentence === 1 && this.units.find(({ sentence }) => sentence === 1) === unit;
    const kinds = [["special", unit.special], ["join", unit.join], ["second", starts]].filter(([, is]) => is).map(([name]) => name);
    const made = element("button", { type: "button", className: ["token", ...kinds].join(" "), tabIndex: -1, dir: "auto", title: unit.text.length > 24 ? unit.text.slice(0, 400) : "" }, unit.text);
    made.dataset.column = String(place);
    return made;
  }

  /** The text itself, where another query can be asked for, and what the numbers at the edge are. */
  #head() {
    const readout = element("button", { type: "button", className: "readout", title: "Where the model reads its answer", onclick: () => this.frame.set({ queries: [] }) }, "Read-out");
    const name = element("div", { className: "name" }, ...(this.asks ? [element("span", { className: "quiet" }, "Query"), readout] : [element("span", { className: "quiet" }, "Method")]));
    const cells = element("div", { className: `cells${this.own ? "" : " apart"}`, role: "group", ariaLabel: "Query: the token that asks" }, ...(this.asks ? this.shownQueries.map((unit, place) => this.#token(unit, place)) : []));
    if (!this.asks) cells.classList.add("apart");
    const several = this.payload.methods.length > 1;
    const edge = element("div", { className: "edge quiet" }, element("span", {}, "scale to"), element("span", { title: "Spearman’s rank correlation over the tokens that are shown" }, several ? "agrees" : ""));
    return element("div", { className: "row head" }, name, cells, edge);
  }

  #row(place) {
    const { name, trust, rows, map } = this.payload.methods[place];
    const alone = element("button", { type: "button", className: "method", title: "Show this method alone, or all again", onclick: () => this.frame.set({ methods: this.frame.get("methods") ? null : [name] }) }, name);
    const about = [];
    if (trust && Number.isFinite(trust.value)) {
      const span = trust.low === undefined || trust.high === undefined ? "" : ` (${trust.low.toFixed(2)} to ${trust.high.toFixed(2)})`;
      about.push(element("span", { className: "quiet trust" }, `trust ${trust.value.toFixed(2)}${span}`.replace(/-/g, "−")));
    }
    // it has its line from the start, so that nothing moves when another query is asked for
    if (!rows || !map) about.push(element("span", { className: "quiet only" }));
    const cells = element("div", { className: "cells", role: "group", ariaLabel: name }, ...this.shown.map((unit, column) => this.#token(unit, column)));
    const row = element("div", { className: "row" }, element("div", { className: "name" }, alone, ...about), cells, element("div", { className: "edge" }, element("span", { className: "quiet end" }), element("span", { className: "agreement" })));
    row.dataset.method = String(place);
    return row;
  }

  /** Colours every token, and writes what stands beside the rows. */
  #paint() {
    const palette = colours(this.frame.el);
    const [threshold, root] = [this.frame.get("threshold", 0), Boolean(this.frame.get("root", false))];
    const pinned = new Set(this.frame.get("keys", []));
    this.below = 0;
    const scene = [];
    for (const row of this.rows.querySelectorAll(".row[data-method]")) {
      const data = this.data[Number(row.dataset.method)];
      const scale = palette[data.method.signed ? "diverging" : "sequential"];
      const grounds = data.scores.map((score) => {
        let share = data.end > 0 && Number.isFinite(score) ? score / data.end : 0;
        if (Math.abs(share) < threshold) {
          this.below += share ? 1 : 0;
          share = 0;
        }
        if (root) share = Math.sign(share) * Math.sqrt(Math.abs(share));
        return scale[Math.round((data.method.signed ? (1 + share) / 2 : Math.min(Math.max(share, 0), 1)) * (scale.length - 1))];
      });
      this.cells.get(data.place).forEach((token, column) => {
        const pressed = String(this.shown[column].places.some((place) => pinned.has(place)));
        if (token.getAttribute("aria-pressed") !== pressed) token.setAttribute("aria-pressed", pressed);
        token.classList.toggle("missing", !Number.isFinite(data.scores[column]));
        // thousands of tokens: only those whose colour changes are touched
        if (token.dataset.ground === grounds[column]) return;
        token.dataset.ground = grounds[column];
        token.style.backgroundColor = grounds[column];
        token.style.color = inkOn(grounds[column]);
      });
      const only = row.querySelector(".only");
      if (only) {
        only.textContent = data.own || !(data.method.rows || data.method.map) ? "read-out only" : "";
        only.classList.toggle("now", data.own);
        only.title = only.textContent && this.#why(data.method);
      }
      row.querySelector(".end").textContent = `${data.method.signed ? "±" : ""}${ending(data.end)}`;
      row.querySelector(".agreement").textContent = this.payload.methods.length < 2 ? "" : data.isReference ? "ref." : Number.isNaN(data.agreement) ? "–" : data.agreement.toFixed(2).replace("-", "−");
      scene.push({ method: data.method.name, own: data.own, scores: data.scores, end: data.end, agreement: data.agreement, grounds });
    }
    for (const [column, token] of [...this.rows.querySelectorAll(".head .token")].entries()) {
      const { places } = this.shownQueries[column];
      const mass = this.payload.readout ? places.reduce((sum, place) => sum + this.payload.readout[place], 0) : 0;
      token.setAttribute("aria-pressed", String(places.some((place) => this.asked.includes(place))));
      token.style.setProperty("--mass", String(mass));
    }
    this.rows.querySelector(".readout")?.setAttribute("aria-pressed", String(!this.asked.length));
    // what was drawn, for whoever wants to check it against the scores
    const chosen = Object.fromEntries(SCORES_STATE.map((name) => [name, this.frame.get(name)]));
    this.rows.scene = { chosen, layer: this.layer, queries: this.asked, tokens: this.shown.map(({ text }) => text), rows: scene };
    this.#scales(palette, root);
    this.#sum();
  }

  #why({ name, without }) {
    return without ? `${without}.`.replace(/^./, (letter) => letter.toUpperCase()) : `The read-out of ${name} by layer is not here.`;
  }

  /** The scales that are in use. */
  #scales(palette, root) {
    const used = this.shownMethods().map((place) => this.payload.methods[place].signed);
    const end = this.frame.get("scale", "each") === "shared" ? "the end of the scale" : "largest of the row";
    const bar = (scale, from, to) => {
      const canvas = element("canvas", { ariaHidden: "true" });
      const context = sharp(canvas, LEGEND, 12);
      for (let left = 0; left < LEGEND; left++) {
        const along = left / (LEGEND - 1);
        const share = scale === palette.diverging ? 2 * along - 1 : along;
        const inked = root ? Math.sign(share) * Math.sqrt(Math.abs(share)) : share;
        context.fillStyle = scale[Math.round((scale === palette.diverging ? (1 + inked) / 2 : inked) * (scale.length - 1))];
        context.fillRect(left, 0, 1.5, 12);
      }
      return element("div", {}, element("span", {}, from), canvas, element("span", {}, `${to}${root ? ", square root" : ""}`));
    };
    this.legend.replaceChildren(...(used.includes(false) ? [bar(palette.sequential, "0", end)] : []), ...(used.includes(true) ? [bar(palette.diverging, `− ${end}`, `+ ${end}`)] : []));
  }

  // ---- pointing and pinning

  #at(event) {
    const token = event.target.closest?.(".token");
    const row = token?.closest(".row");
    return token && this.data ? { token, row, column: Number(token.dataset.column), head: row.classList.contains("head") } : null;
  }

  /** Looks at a column for as long as the pointer stays. @param {number | null} column */
  #look(column, place = null, lines = []) {
    if (column !== this.#column) {
      for (const token of this.rows.querySelectorAll(".token.looked")) token.classList.remove("looked");
      if (column !== null) for (const token of this.rows.querySelectorAll(`.row[data-method] .token[data-column="${column}"]`)) token.classList.add("looked");
    }
    this.#column = column;
    this.frame.tell(place, lines);
  }

  #pointed(event) {
    const found = this.#at(event);
    if (!found) return this.#look(null);
    const box = found.token.getBoundingClientRect();
    const place = { x: box.left, y: box.bottom - 8 };
    if (found.head) return this.#look(null, place, this.#aboutQuery(this.shownQueries[found.column]));
    return this.#look(found.column, place, this.#told(this.data[Number(found.row.dataset.method)], found.column));
  }

  #aboutQuery(unit) {
    const mass = this.payload.readout ? unit.places.reduce((sum, place) => sum + this.payload.readout[place], 0) : 0;
    return [`Query ${quoted(unit.text)}`, "click: what this token gets from the others", ...(mass > 0 ? [`the read-out takes ${percent(mass)} from here`] : [])];
  }

  /** The exact figure: method, token, score, rank, layer, query. */
  #told(data, column) {
    const unit = this.shown[column];
    const score = data.scores[column];
    const rank = Number.isFinite(score) ? [`rank ${rankOf(score, data.every)} of ${data.every.length}`] : [];
    return [`${data.method.name}: ${quoted(unit.text)}`, [figure(score, data.exact), ...rank].join(", "), this.#where(data)];
  }

  #where(data) {
    if (data.own) return `read-out only: ${this.#why(data.method)}`;
    const { layers } = this.payload;
    const layer = this.layer === null && this.asked.length ? `layer ${layers.at(-1)}` : this.layer === null ? "as the method scores by itself" : `layer ${layers[this.layer]}`;
    return `${this.#queryName()}, ${layer}`;
  }

  #queryName() {
    if (!this.asked.length) return "read-out";
    const names = this.queryUnits.filter(({ places }) => places.some((place) => this.asked.includes(place))).map(({ text }) => quoted(text));
    return names.length > 1 ? `mean of the queries ${names.join(", ")}` : `query ${names[0]}`;
  }

  #clicked(event) {
    const found = this.#at(event);
    if (found) this.#pin(found, event.shiftKey);
  }

  /** Pins a token, releases it if it is pinned, or with `more` adds it; in the first row, asks for it as a query. */
  #pin({ head, column }, more) {
    const [name, units] = head ? ["queries", this.shownQueries] : ["keys", this.shown];
    const pinned = this.frame.get(name, []);
    const { places } = units[column];
    const on = places.some((place) => pinned.includes(place));
    const others = pinned.filter((place) => !places.includes(place));
    this.frame.set({ [name]: more ? (on ? others : [...pinned, ...places].sort((one, other) => one - other)) : on ? [] : places });
  }

  #moved(event) {
    const found = this.#at(event);
    if (!found || event.ctrlKey || event.metaKey || event.altKey) return;
    const along = { n: 1, p: -1 }[event.key];
    const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" && event.shiftKey) this.#pin(found, true);
    else if (along || down) {
      const tokens = (row) => [...(row?.querySelectorAll(".token") ?? [])];
      const next = along ? tokens(found.row)[found.column + along] : tokens(down > 0 ? found.row.nextElementSibling : found.row.previousElementSibling)[found.column];
      if (next) {
        [found.token.tabIndex, next.tabIndex] = [-1, 0];
        next.focus();
      }
    } else return;
    event.preventDefault();
  }

  /** The sum over the tokens that are pinned, method by method. */
  #sum() {
    const pinned = new Set(this.frame.get("keys", []));
    const units = this.units.filter(({ places }) => places.some((place) => pinned.has(place)));
    const names = units.map(({ text }) => quoted(text)).join(" + ");
    const sums = this.shownMethods().map((place) => {
      const data = this.data[place];
      return `${data.method.name} ${figure(units.reduce((sum, unit) => sum + data.sum(unit), 0), data.exact)}`;
    });
    this.picked.textContent = units.length ? `${names}${units.length > 1 ? " in sum" : ""}: ${sums.join(" · ")}` : "";
  }

  // ---- in words

  /** What the methods warn of, and what is not here. */
  #warn() {
    const { methods, left_out: leftOut, trust } = this.payload;
    const warned = new Map();
    for (const { name, warnings } of methods) for (const warning of warnings) warned.set(warning, [...(warned.get(warning) ?? []), name]);
    const lines = [...warned].map(([warning, names]) => [names.join(", "), warning]);
    for (const { name, without, map } of methods) if (!map && without && !without.endsWith("read-out only")) lines.push([name, without]);
    for (const [name, why] of Object.entries(leftOut)) lines.push(["Left out", `${name}. ${why}`]);
    if (trust && methods.some((method) => method.trust)) lines.push(trust.split(/: (.*)/s).slice(0, 2));
    this.warnings.replaceChildren(...lines.map(([name, words]) => element("li", {}, element("b", {}, `${name}: `), words)));
    this.warnings.hidden = !lines.length;
  }

  #say() {
    const { frame, payload } = this;
    const methods = this.shownMethods().map((place) => this.data[place]);
    const root = frame.get("root", false) ? "square-root" : "linear";
    const reference = this.data.find(({ isReference }) => isReference);
    const shared = frame.get("scale", "each") === "shared";
    const said = [`Shown: ${this.#where({ own: false })}. Ink is the score, on a ${root} scale from 0 to ${shared ? "the largest of all methods that are shares of one whole; others are in units of their own" : "the largest of each row"}.`];
    if (payload.methods.length > 1) said.push(`Agreement is Spearman’s rank correlation with ${reference.method.name} over the ${this.shown.length} ${frame.get("words", false) ? "words" : "tokens"} shown.`);
    const only = methods.filter(({ own }) => own).map(({ method }) => method.name);
    if (this.asked.length && methods.some(({ own }) => own !== reference.own)) said.push("Rows of different queries have no agreement.");
    if (only.length) said.push(`For ${only.join(", ")} the read-out is shown, as nothing else is here.`);
    if (this.below) said.push(`${this.below} scores below ${frame.get("threshold", 0).toFixed(3)} of the end of their scale have no ink.`);
    if (methods.some(({ hidden }) => hidden > 1e-6)) said.push(`Special tokens and sinks are hidden; they take ${methods.map(({ method, hidden }) => `${method.name} ${percent(hidden)}`).join(", ")}.`);
    frame.said.textContent = said.join(" ");
    const best = methods.map((data) => `${data.method.name}: highest ${quoted(this.shown[data.scores.indexOf(Math.max(...data.scores))]?.text ?? "")}`);
    frame.summary.textContent = `Scores for ${this.#where({ own: false })}. ${best.join("; ")}.`;
  }

  /** The rows of the table: every token that is shown under every method. */
  table() {
    const methods = this.shownMethods().map((place) => this.data[place]);
    return {
      caption: `Scores for ${this.#where({ own: false })}`,
      columns: ["Token", ...methods.map(({ method, own }) => `${method.name}${own ? " (read-out)" : ""}`)],
      rows: this.shown.map(({ text }, column) => [text, ...methods.map(({ scores, exact }) => figure(scores[column], exact))]),
    };
  }
}
