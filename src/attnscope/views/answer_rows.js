// What the answer view says: where the score of some words goes, which words took from some passages; and the words themselves.

import { element, inkOn, percent, short } from "./drawing.js";
import { Recent, blob } from "./weights.js";

/** @typedef {"document" | "question" | "turn" | "answer" | "marker"} Kind
 *  @typedef {{method: string, order: string, special: boolean, queries: number[], keys: number[]}} Chosen
 *  @typedef {{tokens: number[], shares: Float64Array, partShares: number[], origin: Record<Kind, number>, order: number[], end: number,
 *   source: number[], wordShares: number[], wordEnd: number, drops: number[], dropOfAll: number}} Rows what a choice selects: `end` is that of the scale of passages, `wordEnd` that of words */

/** In the order in which they stand. @type {Kind[]} */
export const KINDS = ["document", "question", "turn", "answer", "marker"];
/** Kinds that have no ink: a few tokens of these take most of what attention gives. */
const SIDE = ["answer", "marker"];
/** What each kind is called. @type {Record<Kind, string>} */
export const TITLES = {
  document: "Documents",
  question: "Question",
  turn: "Other turns",
  answer: "Its own earlier words",
  marker: "Markers and sinks",
};
const HELD = 12;
/** The share on markers and sinks from which on the rest is doubted. */
const RESTING = 0.9;
const LONGEST = 40;
/** What is always to be known of the figures. */
const CAUTION = "A share is where the score of this method goes: it is no proof that the model used what stands there.";
const DROP =
  "A drop is measured: by how much the log-probability of the selected words falls when that document is deleted and the model reads the rest again.";

const sizes = (values) => values.reduce((sum, value) => sum + Math.abs(value), 0);

/** Arrays of a view, decoded when they are first looked at. */
export class AnswerArrays {
  #recent = new Recent(HELD);

  /** @param {{get: (name: string) => any}} model @param {AnswerPayload} payload */
  constructor(model, payload) {
    this.model = model;
    this.payload = payload;
  }

  /** The scores of a method, token after token. @param {number} place @returns {Promise<Float32Array>} */
  scores(place) {
    return this.#array(`scores${place}`);
  }

  /** The drops of each token: of every part, and at the end of all documents; null where none were measured.
   * @returns {Promise<Float32Array | null>} */
  async drops() {
    return this.payload.drops || this.payload.dropOfAll ? this.#array("drops") : null;
  }

  #array(name) {
    return this.#recent.get(name, () => blob(this.model, name).then((buffer) => new Float32Array(buffer)));
  }
}

/** The sum over some tokens, as shares of all of it without signs. @param {Float32Array} scores @param {number} width @param {number[]} tokens */
export function sharesOf(scores, width, tokens) {
  const sums = new Float64Array(width);
  let whole = 0;
  for (const token of tokens)
    for (let place = 0; place < width; place++) {
      const score = scores[token * width + place];
      sums[place] += score;
      whole += Math.abs(score);
    }
  return whole > 0 ? sums.map((sum) => sum / whole) : sums;
}

/** What a choice selects: the same rules as those of the printed figure, in answer_scene.py.
 * @param {AnswerPayload} payload @param {Float32Array} scores @param {Float32Array | null} drops @param {Chosen} chosen @returns {Rows} */
export function rowsOf(payload, scores, drops, chosen) {
  const { parts, passages, words, context } = payload;
  const [width, count] = [passages.length, payload.tokens.length];
  const asked = chosen.queries.filter((place) => place < count);
  const tokens = asked.length ? asked : payload.tokens.map((_, place) => place);
  const kept = chosen.keys.filter((place) => place < width);
  const source = kept.length ? kept : context;
  const shares = sharesOf(scores, width, tokens);
  const partShares = parts.map(() => 0);
  passages.forEach(({ part }, place) => (partShares[part] += shares[place]));
  const origin = /** @type {Record<Kind, number>} */ (Object.fromEntries(KINDS.map((kind) => [kind, 0])));
  parts.forEach(({ kind }, part) => (origin[kind] += partShares[part]));
  const order = parts.map((_, part) => part).filter((part) => chosen.special || !isSide(parts[part].kind));
  const sum = (column) => tokens.reduce((sum, token) => sum + drops[token * (parts.length + 1) + column], 0);
  const fell = parts.map((_, part) => (drops ? sum(part) : NaN));
  const sizes = { strongest: partShares.map(Math.abs), drop: drops && fell }[chosen.order];
  const place = (part) => KINDS.indexOf(parts[part].kind);
  // what was not measured stands behind what was
  const size = (part) => (Number.isNaN(sizes[part]) ? -Infinity : sizes[part]);
  const fall = (one, other) => (size(one) === size(other) ? 0 : size(other) - size(one));
  if (sizes) order.sort((one, other) => place(one) - place(other) || fall(one, other) || one - other);
  const wordShares = words.map((word) => {
    const own = sharesOf(scores, width, word);
    return source.reduce((sum, from) => sum + own[from], 0);
  });
  return {
    tokens,
    shares,
    partShares,
    origin,
    order,
    end: passages.reduce((most, { part }, place) => (isSide(parts[part].kind) ? most : Math.max(most, Math.abs(shares[place]))), 0),
    source,
    wordShares,
    wordEnd: wordShares.reduce((most, share) => Math.max(most, Math.abs(share)), 0),
    drops: fell,
    dropOfAll: drops ? sum(parts.length) : NaN,
  };
}

/** Whether a part has no ink. @param {Kind} kind */
export const isSide = (kind) => SIDE.includes(kind);

/** The passages that have ink by the size of their share, the largest first. @param {AnswerPayload} payload @param {Rows} rows */
export function strongestFirst({ parts, passages }, { shares }) {
  const inked = passages.flatMap(({ part }, place) => (isSide(parts[part].kind) || !shares[place] ? [] : [place]));
  return inked.sort((one, other) => Math.abs(shares[other]) - Math.abs(shares[one]) || one - other);
}

/** A share in per cent, with its sign. @param {number} share */
export const signedPercent = (share) => (share < 0 ? `−${percent(-share)}` : percent(share));

/** A text in quotes, a long one cut. @param {string} text */
export function quoted(text) {
  const plain = text.trim().replace(/\s+/g, " ");
  const letters = [...plain];
  return `“${letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : plain}”`;
}

/** A fall of log-probability: a rise has a minus. @param {number} drop */
export const dropText = (drop) => (Number.isFinite(drop) ? `drop ${short(+drop.toFixed(3)) || 0}` : "");

/** The words of the view: they read what it shows and change nothing. */
export class AnswerWords {
  /** @param {AnswerPayload} payload */
  constructor(payload) {
    this.payload = payload;
  }

  /** What is selected of the answer. @param {number[]} queries */
  who(queries) {
    return queries.length ? quoted(this.text(queries)) : "the whole answer";
  }

  /** The text of some tokens; between those that do not follow each other stands an ellipsis. @param {number[]} tokens */
  text(tokens) {
    const parts = tokens.map((token, at) => (at && tokens[at - 1] !== token - 1 ? " … " : "") + this.payload.tokens[token]);
    return parts.join("");
  }

  /** The probability of some tokens, one after the other. @param {number[]} tokens */
  probability(tokens) {
    const log = tokens.reduce((sum, token) => sum + Math.log(this.payload.probabilities[token]), 0);
    return tokens.length === 1 ? `probability ${percent(Math.exp(log))}` : `log-probability ${short(+log.toFixed(3))}`;
  }

  /** Of the words that are shown: what they are, how sure the model was, and how much they took from what is chosen.
   * @param {Rows} rows @param {Chosen} chosen */
  aboutSpan({ tokens, shares, source }, { queries, keys }) {
    const who = this.who(queries);
    const share = source.reduce((sum, place) => sum + shares[place], 0);
    const from = keys.length ? this.what(keys) : this.context();
    return `${who[0].toUpperCase()}${who.slice(1)}: ${this.probability(tokens)} · ${signedPercent(share)} on ${from}`;
  }

  /** Of a passage: its share and rank, and the drop of its document. @param {number} place @param {Rows} rows @param {number[]} queries @param {string} method */
  aboutPassage(place, rows, queries, method) {
    const { passages, parts } = this.payload;
    const { text, part } = passages[place];
    const rank = strongestFirst(this.payload, rows).indexOf(place) + 1;
    const lines = [quoted(text), `${method}: ${signedPercent(rows.shares[place])} of the score of ${this.who(queries)}`];
    if (rank) lines.push(`rank ${rank} of ${passages.filter((one) => !isSide(parts[one.part].kind)).length}`);
    lines.push(this.aboutPart(part, rows));
    return lines;
  }

  /** Of a part: what it is, its share and drop. @param {number} part @param {Rows} rows */
  aboutPart(part, rows) {
    const drop = dropText(rows.drops[part]);
    return `${this.payload.parts[part].name}: ${signedPercent(rows.partShares[part])}${drop ? `, ${drop}` : ""}`;
  }

  /** Passages by name: one in quotes, a whole part by its title. @param {number[]} keys */
  what(keys) {
    const { passages, parts } = this.payload;
    if (keys.length === 1) return quoted(passages[keys[0]].text);
    const [{ part }] = keys.map((place) => passages[place]);
    const every = passages.filter((one) => one.part === part).length;
    const whole = keys.length === every && keys.every((place) => passages[place].part === part);
    return whole ? quoted(parts[part].name) : `${keys.length} passages`;
  }

  /** What the words are coloured by where no passage is chosen. */
  context() {
    return this.payload.parts.some(({ kind }) => kind === "document") ? "the documents" : "the prompt";
  }

  /** What is shown, on which scale, what has no ink, and what the figures are not. @param {Rows} rows @param {Chosen & {root: boolean}} chosen */
  say(rows, chosen) {
    const method = this.payload.methods.find(({ name }) => name === chosen.method);
    const root = chosen.root ? "square-root" : "linear";
    const of = method?.signed ? "in all scores without their signs (blue is above zero, orange below)" : "in the score";
    const said = [
      `Shown: ${chosen.method} of ${this.who(chosen.queries)}. The ink of a passage is its share ${of};`,
      `that of a word is the share of its own score that goes to ${chosen.keys.length ? this.what(chosen.keys) : this.context()}. Scales are ${root}, from 0 to the largest.`,
    ];
    const aside = sizes([rows.origin.answer, rows.origin.marker]);
    if (aside > 0) said.push(`The answer’s own words, markers and sinks take ${percent(aside)} and have no ink.`);
    said.push(CAUTION);
    if (this.payload.drops || this.payload.dropOfAll) said.push(DROP);
    return said.join(" ");
  }

  /** Where nearly all of a score rests on what nobody wrote, the order of what is left means little: that is said.
   * @param {Rows} rows @param {Chosen} chosen */
  resting({ origin }, { method }) {
    const aside = Math.abs(origin.marker);
    if (aside < RESTING * sizes(Object.values(origin))) return "";
    const more = this.payload.drops ? "hold it against the drops" : "measure drops";
    return `${percent(aside)} of this score of ${method} rests on markers and sinks: how the rest is spread says little. Take another method, or ${more}.`;
  }

  /** For who does not see the page. @param {Rows} rows @param {Chosen} chosen */
  summary(rows, chosen) {
    const best = strongestFirst(this.payload, rows).slice(0, 3);
    const { passages, parts } = this.payload;
    const named = best.map(
      (place) => `${quoted(passages[place].text)} in ${parts[passages[place].part].name}, ${signedPercent(rows.shares[place])}`,
    );
    return `${chosen.method} of ${this.who(chosen.queries)}. Strongest: ${named.join("; ")}.`;
  }

  /** The passages that are shown as a table. @param {Rows} rows @param {Chosen} chosen */
  table(rows, chosen) {
    const { passages, parts } = this.payload;
    const shown = rows.order.flatMap((part) => passages.flatMap((passage, place) => (passage.part === part ? [place] : [])));
    return {
      caption: `${chosen.method} of ${this.who(chosen.queries)}: each passage with its share, and the drop of its document`,
      columns: ["Passage", "Part", "Share", "Share of the part", "Drop without the part"],
      rows: shown.map((place) => {
        const { part, text } = passages[place];
        const drop = Number.isFinite(rows.drops[part]) ? short(+rows.drops[part].toFixed(3)) : "–";
        return [text.trim(), parts[part].name, signedPercent(rows.shares[place]), signedPercent(rows.partShares[part]), drop];
      }),
    };
  }
}

/** Where keys lead among words or passages. */
export const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

/** Paints an element on the colour of a share. @param {HTMLElement} node @param {string} ground */
export function paintOn(node, ground) {
  Object.assign(node.style, { backgroundColor: ground, color: inkOn(ground) });
}

/** The spaces between words stay text, so that lines break there and a copy reads as the answer does. @param {string} text */
export function spaced(text) {
  const [, before, word, after] = /^(\s*)([^]*?)(\s*)$/.exec(text);
  return { before, word, after };
}

// ---- The answer: words that can be pointed at, pinned, dragged over, and walked through.

/** The words of the answer. */
export class Reply {
  #from = null;
  #dragged = false;

  /** @param {import("./answer.js").AnswerPanel} panel */
  constructor(panel) {
    this.panel = panel;
    const { words, tokens } = panel.payload;
    this.words = words.map((word, place) => {
      const { before, word: text, after } = spaced(word.map((token) => tokens[token]).join(""));
      const button = element("span", { className: "token", role: "button", tabIndex: place ? -1 : 0, dir: "auto" }, text || "␣");
      button.dataset.place = String(place);
      return { before, button, after };
    });
    this.node = element(
      "p",
      { className: "reply", role: "group", ariaLabel: "Answer" },
      ...this.words.flatMap(({ before, button, after }) => [before, button, after]),
    );
    for (const coming of ["pointerover", "focusin"]) this.node.addEventListener(coming, (event) => this.#pointed(event));
    for (const going of ["pointerleave", "focusout"]) this.node.addEventListener(going, () => this.panel.preview(null));
    this.node.addEventListener("pointerdown", (event) => this.#pressed(event));
    this.node.addEventListener("click", (event) => this.#clicked(event));
    this.node.addEventListener("keydown", (event) => this.#typed(event));
    addEventListener("pointerup", (event) => this.#released(event), { signal: panel.ended.signal });
  }

  #at(event) {
    const button = event.target.closest?.(".token");
    return button && this.node.contains(button) ? Number(button.dataset.place) : null;
  }

  /** The tokens from one word to another. @param {number} from @param {number} to */
  #span(from, to) {
    const words = this.panel.payload.words.slice(Math.min(from, to), Math.max(from, to) + 1);
    return words.flat().sort((one, other) => one - other);
  }

  #pointed(event) {
    const word = this.#at(event);
    if (word === null) return this.panel.preview(null);
    if (this.#from !== null && word !== this.#from) this.#dragged = true;
    const queries = this.#dragged ? this.#span(this.#from, word) : this.panel.payload.words[word];
    this.panel.preview({ queries });
  }

  #pressed(event) {
    if (event.button !== 0) return;
    [this.#from, this.#dragged] = [this.#at(event), false];
    if (this.#from === null) return;
    // a drag selects words of the answer, not letters of the page
    event.preventDefault();
    this.#focus(this.#from);
  }

  #released(event) {
    const [from, word] = [this.#from, this.#dragged ? (this.#at(event) ?? this.#last) : null];
    this.#from = null;
    if (!this.#dragged || from === null || word === null) return;
    this.panel.choose("queries", this.#span(from, word), event.shiftKey);
  }

  /** The word under the pointer when the drag left the words. */
  get #last() {
    const held = this.panel.shownQueries;
    return held.length ? this.panel.payload.words.findIndex((word) => word.includes(held.at(-1))) : null;
  }

  #clicked(event) {
    const word = this.#at(event);
    if (word === null || this.#dragged) return void (this.#dragged = false);
    this.panel.frame.pin("queries", this.panel.payload.words[word], event.shiftKey);
  }

  #typed(event) {
    const word = this.#at(event);
    if (word === null || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") this.panel.frame.pin("queries", this.panel.payload.words[word], event.shiftKey);
    else if (event.key in STEPS) {
      const to = Math.min(Math.max(word + STEPS[event.key], 0), this.words.length - 1);
      const held = this.panel.frame.get("queries", []);
      if (event.shiftKey) this.panel.choose("queries", [...(held.length ? held : this.#span(word, word)), ...this.#span(word, to)], false);
      this.#focus(to);
    } else return;
    event.preventDefault();
  }

  #focus(word) {
    for (const { button } of this.words) button.tabIndex = -1;
    this.words[word].button.tabIndex = 0;
    this.words[word].button.focus({ preventScroll: true });
  }

  /** @param {import("./answer_rows.js").Rows} rows @param {(share: number) => string} ground @param {number[]} queries */
  paint({ wordShares, wordEnd }, ground, queries) {
    const pinned = new Set(queries);
    this.words.forEach(({ button }, place) => {
      paintOn(button, ground(wordEnd ? wordShares[place] / wordEnd : 0));
      const held = this.panel.payload.words[place].some((token) => pinned.has(token));
      if (button.getAttribute("aria-pressed") !== String(held)) button.setAttribute("aria-pressed", String(held));
    });
  }
}
