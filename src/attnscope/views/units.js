// What stands in a row or column of a view: a token or a whole word, and how weights of tokens become weights of words.

import { element } from "./drawing.js";

/** @typedef {{text: string, places: number[], special: boolean, sink: boolean, quiet: boolean, join: boolean, sentence: number | null}} Unit
 *  `quiet` is a special token or one that holds a sink */

/** The units of one side: its tokens, or its words. @param {Side} side @param {boolean} words @returns {Unit[]} */
export function unitsOf(side, words) {
  const [special, joins, sinks] = [new Set(side.special), new Set(side.joins), new Set(side.sinks)];
  const unit = (text, places) => ({
    text,
    places,
    special: special.has(places[0]),
    sink: places.some((place) => sinks.has(place)),
    quiet: special.has(places[0]) || places.some((place) => sinks.has(place)),
    join: !words && joins.has(places[0]),
    sentence: side.sentences ? side.sentences[places[0]] : null,
  });
  return words ? side.words.map((word) => unit(word.text, word.places)) : side.texts.map((text, place) => unit(text, [place]));
}

/** The places of the units that a long text keeps in sight, in its order: those asked for, and then the loudest.
 * @param {ArrayLike<number>} loudness by unit @param {number} most @param {number[]} [always] */
export function loudest(loudness, most, always = []) {
  const asked = new Set(always);
  const order = Array.from(loudness, (_, place) => place);
  order.sort((one, other) => Number(asked.has(other)) - Number(asked.has(one)) || loudness[other] - loudness[one] || one - other);
  return order.slice(0, most).sort((one, other) => one - other);
}

/** The places of the units that hold any of these tokens. @param {Unit[]} units @param {number[]} tokens */
export function placesHolding(units, tokens) {
  const held = new Set(tokens);
  return units.flatMap(({ places }, unit) => (places.some((place) => held.has(place)) ? [unit] : []));
}

/** Whether a side has words of several tokens, so that there is something to choose. @param {Side} side */
export const hasPieces = (side) => side.words.some(({ places }) => places.length > 1);

/** The weights of one head between units, row after row: of every key unit, or of those that are named.
 * @typedef {{starts: Int32Array, keys: ArrayLike<number> | null, weights: ArrayLike<number>}} UnitRows */

/** The weights of one head between units: a word gets the sum of its pieces' and gives their mean.
 * @param {{values: Float32Array, places?: Uint16Array | null}} layer of tokens @param {number} head @param {[number, number, number]} shape
 * @param {Unit[]} queries @param {Unit[]} keys @param {Set<number>} masked queries that attend to nothing @returns {UnitRows} */
export function unitRows({ values, places = null }, head, [heads, tokens, count], queries, keys, masked) {
  const width = values.length / (heads * tokens);
  const first = head * tokens * width;
  if (queries.length === tokens && keys.length === count) {
    const end = first + tokens * width;
    const starts = Int32Array.from({ length: tokens + 1 }, (_, row) => row * width);
    return { starts, keys: places && places.subarray(first, end), weights: values.subarray(first, end) };
  }
  const unitOf = new Int32Array(count);
  keys.forEach((key, unit) => key.places.forEach((place) => (unitOf[place] = unit)));
  const [starts, named, weights, sums] = [new Int32Array(queries.length + 1), [], [], new Float32Array(keys.length)];
  queries.forEach((query, row) => {
    const [asked, touched] = [query.places.filter((place) => !masked.has(place)), new Set()];
    for (const place of asked)
      for (let step = 0; step < width; step++) {
        const at = first + place * width + step;
        const unit = unitOf[places ? places[at] : step];
        sums[unit] += values[at] / asked.length;
        if (values[at]) touched.add(unit);
      }
    for (const unit of touched) {
      named.push(unit);
      weights.push(sums[unit]);
      sums[unit] = 0;
    }
    starts[row + 1] = named.length;
  });
  return { starts, keys: named, weights };
}

/** Visits the weights of one row: each key unit and its weight. @param {UnitRows} rows @param {number} row @param {(key: number, weight: number) => void} visit */
export function eachIn({ starts, keys, weights }, row, visit) {
  const end = starts[row + 1];
  for (let place = starts[row]; place < end; place++) visit(keys ? keys[place] : place - starts[row], weights[place]);
}

/** What is beyond the keys that travel, for each query unit. @param {Float32Array | null} rest `[head, query]` of tokens */
export function unitRest(rest, head, tokens, queries, masked) {
  if (!rest) return null;
  return Float32Array.from(queries, ({ places }) => {
    const asked = places.filter((place) => !masked.has(place));
    return asked.reduce((sum, place) => sum + rest[head * tokens + place], 0) / Math.max(asked.length, 1);
  });
}

// ---- Tokens as buttons in a list: pointed at, pinned, and walked through by keys; and what is pinned after a click.

/** A token as a button; one that may not fit has its text as a title. @param {Unit} unit
 * @param {number} place in the list @param {number} [room] letters that fit */
export function tokenButton(unit, place, room = 24) {
  const kinds = ["special", "join"].filter((kind) => unit[kind]);
  const made = element(
    "button",
    {
      type: "button",
      className: ["token", ...kinds].join(" "),
      tabIndex: -1,
      dir: "auto",
      title: unit.text.length > room ? unit.text.slice(0, 400) : "",
    },
    unit.text,
  );
  made.dataset.place = String(place);
  return made;
}

/** Moves the focus, and the one stop of the Tab key with it. @param {HTMLElement} from @param {HTMLElement} to */
export function passFocus(from, to) {
  [from.tabIndex, to.tabIndex] = [-1, 0];
  to.focus();
}

/** By how many tokens a key walks: n to the next, p to the one before. @param {KeyboardEvent} event */
export const stepOf = (event) => ({ n: 1, p: -1 })[event.key] ?? 0;

/** What is pinned after a click: this alone, or nothing if it was pinned; with `more` it joins the others or leaves them.
 * @param {number[]} pinned @param {number[]} places of the unit that was clicked @param {boolean} more */
export function pinnedAfter(pinned, places, more) {
  const on = places.some((place) => pinned.includes(place));
  if (!more) return on ? [] : [...places];
  return on ? pinned.filter((place) => !places.includes(place)) : [...pinned, ...places];
}

/** Lists of more tokens than this have only the rows in sight. */
export const LONG_LIST = 1000;
/** Rows that are made above and below them. */
const AROUND = 16;
/** Pixels of a row of a column, as the style sheet has it, and around its text. */
const [ROW, BESIDE] = [24, 28];

/** Tokens in reading order: down a column, or along a text. */
export class TokenList {
  #units = [];
  #signature = "";
  #chosen = new Set();
  /** The rows that are made. */
  #span = [0, 0];
  /** The token that was read last by key. */
  #place = 0;
  #filling = false;

  /** @param {{name: string, label: string, several?: boolean, room?: number, look: (row: number, box: DOMRect) => void,
   *   leave: () => void, pin: (row: number, more: boolean) => void}} given `look` for as long as the pointer or the focus stays */
  constructor({ name, label, several = true, room, look, leave, pin }) {
    this.room = room;
    this.look = look;
    this.leave = leave;
    this.pin = pin;
    this.node = element("div", { className: `tokens ${name}`, role: "listbox", ariaLabel: label, ariaMultiselectable: several });
    for (const coming of ["pointerover", "focusin"]) this.node.addEventListener(coming, (event) => this.#looked(event));
    for (const going of ["pointerleave", "focusout"]) this.node.addEventListener(going, () => this.#filling || this.leave());
    this.node.addEventListener("click", (event) => this.#clicked(event));
    this.node.addEventListener("keydown", (event) => this.#pressed(event));
  }

  /** The buttons, in their order. @returns {HTMLButtonElement[]} */
  get tokens() {
    return /** @type {HTMLButtonElement[]} */ ([...this.node.children]);
  }

  /** Shows these units; buttons are made anew only where they are others. @param {Unit[]} units */
  fill(units) {
    const signature = JSON.stringify(units.map(({ places }) => places));
    this.#units = units;
    if (signature === this.#signature) return;
    this.#signature = signature;
    const focused = this.node.contains(/** @type {Document} */ (this.node.getRootNode()).activeElement);
    // who reads by key stays on the token that was read, or the next that is still there
    const kept = Math.max(
      units.findIndex(({ places }) => places.at(-1) >= this.#place),
      0,
    );
    this.node.style.width = units.length > LONG_LIST ? `${widestOf(units, this.node)}px` : "";
    const span =
      units.length > LONG_LIST ? [Math.min(this.#span[0], units.length), Math.min(this.#span[1], units.length)] : [0, units.length];
    const made = this.#make(span, kept, focused);
    // a view fills its lists before it draws: what the token tells is known after that
    const token = made[kept - span[0]];
    if (focused) queueMicrotask(() => (token ? this.look(kept, token.getBoundingClientRect()) : this.leave()));
  }

  /** Of a long list, makes the rows from one to another, and those around them. @param {number} from @param {number} to */
  show(from, to) {
    if (this.#units.length <= LONG_LIST) return;
    const around = (row, by) => Math.min(Math.max((Math.floor(row / AROUND) + by) * AROUND, 0), this.#units.length);
    const span = [around(from, -1), around(to, 2)];
    if (span[0] === this.#span[0] && span[1] === this.#span[1] && this.node.childElementCount) return;
    const active = /** @type {Document} */ (this.node.getRootNode()).activeElement;
    const focused = this.node.contains(active) ? Number(/** @type {HTMLElement} */ (active).dataset.place) : null;
    this.#make(span, focused ?? from, focused !== null);
  }

  /** @param {number[]} span @param {number} kept the row that the Tab key stops at, or the nearest that is made @param {boolean} focused */
  #make([from, to], kept, focused) {
    this.#span = [from, to];
    const made = this.#units.slice(from, to).map((unit, step) => {
      const token = tokenButton(unit, from + step, this.room);
      token.setAttribute("role", "option");
      token.setAttribute("aria-selected", String(unit.places.some((place) => this.#chosen.has(place))));
      return token;
    });
    const stop = made[Math.min(Math.max(kept - from, 0), made.length - 1)];
    if (stop) stop.tabIndex = 0;
    this.#filling = true;
    if (this.#units.length > LONG_LIST) this.node.style.paddingTop = `${from * ROW}px`;
    else this.node.style.removeProperty("padding-top");
    this.node.replaceChildren(...made);
    if (focused) stop?.focus({ preventScroll: this.#units.length > LONG_LIST });
    this.#filling = false;
    return made;
  }

  /** The button of a row, where it is made. @param {number} row */
  #button(row) {
    return /** @type {HTMLElement | undefined} */ (this.node.children[row - this.#span[0]]);
  }

  /** Marks the units that hold any of these tokens. @param {number[]} places */
  select(places) {
    this.#chosen = new Set(places);
    for (const token of this.tokens)
      token.setAttribute("aria-selected", String(this.#units[Number(token.dataset.place)].places.some((place) => this.#chosen.has(place))));
  }

  #looked(event) {
    const token = event.target.closest?.(".token");
    if (!token || this.#filling) return;
    const row = Number(token.dataset.place);
    if (event.type === "focusin") [this.#place] = this.#units[row].places;
    this.look(row, token.getBoundingClientRect());
  }

  #clicked(event) {
    const token = event.target.closest(".token");
    if (token) this.pin(Number(token.dataset.place), event.shiftKey);
  }

  #pressed(event) {
    const token = event.target.closest(".token");
    if (!token || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = Number(token.dataset.place);
    const next = stepOf(event) ? this.#button(row + stepOf(event)) : null;
    if (event.key === "Enter" && event.shiftKey) this.pin(row, true);
    else if (next) passFocus(token, next);
    else return;
    event.preventDefault();
  }
}

/** Pixels that the widest of many tokens needs, by those with most letters. @param {Unit[]} units @param {Element} node */
function widestOf(units, node) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = `14px ${getComputedStyle(node).fontFamily}`;
  const longest = [...new Set(units.map(({ text }) => text))].sort((one, other) => other.length - one.length).slice(0, 50);
  return Math.ceil(Math.max(...longest.map((text) => context.measureText(text).width)) + BESIDE);
}
