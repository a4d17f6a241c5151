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

/** The weights of one head between units: a word gets the sum of its pieces' and gives their mean.
 * @param {Float32Array} values `[head, query, key]` of tokens @param {number} head @param {[number, number, number]} shape
 * @param {Unit[]} queries @param {Unit[]} keys @param {Set<number>} masked queries that attend to nothing
 * @returns {Float32Array} `[query unit, key unit]` */
export function unitGrid(values, head, [, tokens, width], queries, keys, masked) {
  const start = head * tokens * width;
  if (queries.length === tokens && keys.length === width) return values.subarray(start, start + tokens * width);
  const grid = new Float32Array(queries.length * keys.length);
  queries.forEach(({ places }, query) => {
    const asked = places.filter((place) => !masked.has(place));
    for (const place of asked) {
      const row = start + place * width;
      keys.forEach((key, column) => {
        for (const from of key.places) grid[query * keys.length + column] += values[row + from] / asked.length;
      });
    }
  });
  return grid;
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

/** Tokens in reading order: down a column, or along a text. */
export class TokenList {
  #units = [];
  #signature = "";
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
    const made = units.map((unit, row) => tokenButton(unit, row, this.room));
    for (const token of made) token.setAttribute("role", "option");
    if (made.length) made[kept].tabIndex = 0;
    this.#filling = true;
    this.node.replaceChildren(...made);
    if (focused) made[kept]?.focus();
    this.#filling = false;
    // a view fills its lists before it draws: what the token tells is known after that
    if (focused) queueMicrotask(() => (made.length ? this.look(kept, made[kept].getBoundingClientRect()) : this.leave()));
  }

  /** Marks the units that hold any of these tokens. @param {number[]} places */
  select(places) {
    const chosen = new Set(places);
    this.tokens.forEach((token, row) =>
      token.setAttribute("aria-selected", String(this.#units[row].places.some((place) => chosen.has(place)))),
    );
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
    const next = stepOf(event) ? this.tokens[row + stepOf(event)] : null;
    if (event.key === "Enter" && event.shiftKey) this.pin(row, true);
    else if (next) passFocus(token, next);
    else return;
    event.preventDefault();
  }
}
