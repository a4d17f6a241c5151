// The frame that every view of a record stands in: controls, keys, what is read out, and a redraw when anything changes.

import { colours, element, plainTable } from "./drawing.js";
import { hasPieces, pinnedAfter } from "./units.js";

const STEPS = { ArrowLeft: ["layer", -1], ArrowRight: ["layer", 1], ArrowUp: ["head", -1], ArrowDown: ["head", 1] };

/** @typedef {{get: (name: string) => any, set: (name: string, value: unknown) => void, on: Function, off: Function, save_changes: () => void}} Model
 *  @typedef {{node: HTMLElement, refresh: () => void}} Control */

/** What a frame stands around. `draw` may be asynchronous (a layer is decoded when it is first looked at); what changes
 * meanwhile is drawn after it. `table` makes the rows of `View as table` when it is opened.
 * @typedef {{draw: () => unknown, table: () => {caption: string, columns: (string | number)[], rows: (string | number)[][]}}} Drawing */

/** A frame around one view. The view adds controls and parts to it, and then starts it. */
export class Frame {
  #controls = [];
  #keys = new Map();
  #steps = new Map();
  #listed = [];
  #pending = null;
  #last = Promise.resolve();
  #cleanup = [];
  #work = 0;

  /** @type {Drawing} */
  #view = null;
  #rows = element("div", { className: "scroll table" });

  /** @param {{model: Model, el: HTMLElement}} given @param {string} name @param {string} label */
  constructor({ model, el }, name, label) {
    this.model = model;
    /** @type {Record<string, Kept>} */
    this.kept = model.get("kept");
    this.el = el;
    this.controls = element("div", { className: "controls" });
    this.body = element("div", { className: "body" });
    this.reading = element("p", { className: "reading", ariaLive: "polite" });
    this.said = element("p", { className: "said quiet" });
    this.summary = element("p", { className: "hidden summary", ariaLive: "polite" });
    this.note = element("div", { className: "note", hidden: true });
    this.table = element("details", {}, element("summary", {}, "View as table"), this.#rows);
    this.foot = element("div", { className: "foot" }, this.table);
    this.dialog = element("dialog", { ariaLabel: "Keys" });
    const keys = element(
      "button",
      { type: "button", className: "keys", onclick: () => this.#showKeys() },
      "Keys ",
      element("kbd", {}, "?"),
    );
    this.top = element("div", { className: "top" }, this.controls, keys);
    this.holder = element(
      "div",
      { className: `view ${name}`, role: "group", ariaLabel: label },
      this.top,
      this.summary,
      this.body,
      this.reading,
      this.said,
      this.foot,
      this.note,
      this.dialog,
    );
    el.classList.add("attnscope");
    el.replaceChildren(this.holder);
    this.table.addEventListener("toggle", () => this.#fillTable());
    this.holder.addEventListener("keydown", (event) => this.#pressed(event));
    this.key("?", "this list", () => this.#showKeys());
  }

  #fillTable() {
    if (!this.table.open) return;
    const { caption, columns, rows } = this.#view.table();
    this.#rows.replaceChildren(plainTable(columns, rows, element("caption", {}, caption)));
  }

  // ---- what is chosen

  /** What is chosen by this name, or a default. @param {string} name @param {any} [otherwise] */
  get(name, otherwise = null) {
    this.#checkKept(name);
    return this.model.get(name) ?? otherwise;
  }

  /** Chooses, tells whoever listens, and keeps it. @param {Record<string, unknown>} changes */
  set(changes) {
    Object.keys(changes).forEach((name) => this.#checkKept(name));
    for (const [name, value] of Object.entries(changes)) this.model.set(name, value);
    this.model.save_changes();
  }

  /** Pins tokens, releases them if they are pinned, or with `more` adds them to those that are.
   * @param {"queries" | "keys"} name @param {number[]} places @param {boolean} more */
  pin(name, places, more) {
    this.set({ [name]: pinnedAfter(this.get(name, []), places, more).sort((one, other) => one - other) });
  }

  /** What the view does not declare would be lost in a link: that is an error of the view. @param {string} name */
  #checkKept(name) {
    if (!(name in this.kept)) throw new Error(`This view keeps no ${name}: its state, in Python, does not declare it.`);
  }

  // ---- controls: each is made once and made true again before every draw

  /** Keeps a control true, wherever it stands. @param {Control} control */
  follow(control) {
    this.#controls.push(control);
    return control.node;
  }

  /** Puts a control among the others. @param {Control} control */
  add(control) {
    this.controls.append(this.follow(control));
    return control.node;
  }

  /** A number that steps through values, with its buttons and a slider: a layer. Arrow keys step too.
   * @param {string} title @param {"layer" | "head"} name @param {(number | null)[]} values @param {(value: number | null) => string} [words] */
  stepper(title, name, values, words = String) {
    const last = values.length - 1;
    const place = () => Math.max(values.indexOf(this.get(name)), 0);
    const slider = element("input", {
      type: "range",
      min: "0",
      max: String(last),
      step: "1",
      ariaLabel: title,
      oninput: () => this.set({ [name]: values[Number(slider.value)] }),
    });
    const shown = element("output", {});
    const step = (by) => this.set({ [name]: values[Math.min(Math.max(place() + by, 0), last)] });
    const button = (by, sign, words) => element("button", { type: "button", ariaLabel: words, onclick: () => step(by) }, sign);
    this.stepping(name, step);
    const node = element(
      "div",
      { className: "stepper" },
      element("span", { className: "quiet" }, title),
      element("div", {}, button(-1, "‹", `${title} before`), slider, button(1, "›", `${title} after`), shown),
    );
    node.hidden = last < 1;
    return this.add({ node, refresh: () => ((slider.value = String(place())), (shown.textContent = words(values[place()]))) });
  }

  /** Lets arrow keys step: layers with ← and →, heads with ↑ and ↓. @param {"layer" | "head"} name @param {(by: number) => void} step */
  stepping(name, step) {
    this.#steps.set(name, step);
  }

  /** One of several. @param {string} title @param {string} name @param {[string, string][]} options value and text */
  select(title, name, options) {
    const list = element(
      "select",
      { ariaLabel: title, onchange: () => this.set({ [name]: list.value }) },
      ...options.map(([value, text]) => element("option", { value }, text)),
    );
    const node = element("label", {}, element("span", { className: "quiet" }, title), list);
    return this.add({ node, refresh: () => (list.value = this.get(name, options[0][0])) });
  }

  /** Yes or no, with the key that switches it. @param {string} title @param {string} name @param {string} [key] @param {string} [words] */
  check(title, name, key, words) {
    const box = element("input", { type: "checkbox", onchange: () => this.set({ [name]: box.checked }) });
    if (key) this.key(key, words ?? title.toLowerCase(), () => this.set({ [name]: !this.get(name, false) }));
    const node = element("label", { className: "check", title: key ? `Key: ${key}` : "" }, box, title);
    return this.add({ node, refresh: () => (box.checked = Boolean(this.get(name, false))) });
  }

  /** A share on a slider. @param {string} title @param {string} name @param {{most: number, step: number, words: (share: number) => string}} scale */
  slider(title, name, { most, step, words }) {
    const slider = element("input", {
      type: "range",
      min: "0",
      max: String(most),
      step: String(step),
      ariaLabel: title,
      oninput: () => this.set({ [name]: Number(slider.value) }),
    });
    const shown = element("output", {});
    const node = element("label", {}, element("span", { className: "quiet" }, title), element("div", {}, slider, shown));
    this.add({ node, refresh: () => ((slider.value = String(this.get(name, 0))), (shown.textContent = words(this.get(name, 0)))) });
    return node;
  }

  /** The threshold below which nothing is drawn. @param {number} [most] @param {string} [title] */
  threshold(most = 0.5, title = "Hide below") {
    this.key("t", "hide what is below 0, 0.05, 0.1, 0.2", () => {
      const stops = [0, 0.05, 0.1, 0.2];
      this.set({ threshold: stops.find((stop) => stop > this.get("threshold", 0) + 1e-9) ?? 0 });
    });
    const node = this.slider(title, "threshold", { most, step: 0.005, words: (share) => share.toFixed(3) });
    return Object.assign(node, { className: "threshold", title: "Key: t" });
  }

  // ---- keys

  /** @param {string} key @param {string} words what it does @param {() => void} act */
  key(key, words, act) {
    this.#keys.set(key, act);
    this.#listed.push([key, words]);
  }

  /** Lists a key that the view itself listens to. @param {string} key @param {string} words */
  listKey(key, words) {
    this.#listed.push([key, words]);
  }

  #pressed(event) {
    if (this.dialog.open || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input[type=range], select");
    const step = STEPS[event.key];
    if (step && this.#steps.has(step[0]) && !typing) this.#steps.get(step[0])(step[1]);
    else if (this.#keys.has(event.key) && !(typing && event.key.length > 1)) this.#keys.get(event.key)();
    else return;
    event.preventDefault();
  }

  #showKeys() {
    const stepped = [
      ["layer", "← →", "layer"],
      ["head", "↑ ↓", "head"],
    ]
      .filter(([name]) => this.#steps.has(name))
      .map(([, key, words]) => [key, words]);
    const lines = [...stepped, ...this.#listed].flatMap(([key, words]) => [
      element("dt", {}, element("kbd", {}, key)),
      element("dd", {}, words),
    ]);
    this.dialog.replaceChildren(
      element("h4", {}, "Keys"),
      element("dl", {}, ...lines),
      element("form", { method: "dialog" }, element("button", {}, "Close")),
    );
    this.dialog.showModal();
  }

  // ---- what is read out

  /** Reads out lines: below the view, and with a place in a note beside it; without lines both are empty.
   * @param {{x: number, y: number, wide?: number} | null} place in the window, and how much left of it a note leaves free
   * @param {string[]} [lines] */
  tell(place, lines = []) {
    this.note.hidden = !place || !lines.length;
    this.reading.textContent = lines.join(" · ");
    if (this.note.hidden) return;
    this.note.replaceChildren(...lines.map((line) => element("div", {}, line)));
    const around = this.holder.getBoundingClientRect();
    const [width, height] = [this.note.offsetWidth, this.note.offsetHeight];
    const left = place.x - around.left + 12;
    const top = place.y - around.top + 12;
    this.note.style.left = `${Math.max(0, left + width > around.width ? left - width - 24 - (place.wide ?? 0) : left)}px`;
    this.note.style.top = `${Math.max(0, place.y + 12 + height > window.innerHeight ? top - height - 24 : top)}px`;
  }

  // ---- drawing

  /** Draws, and draws again whenever what is chosen, the size, the screen or the scheme changes.
   * @param {Drawing} view @param {string[]} [apart] names whose change draws little anew, by `moved` @param {() => void} [moved]
   * @returns {() => void} what ends it */
  start(view, apart = [], moved = () => {}) {
    this.#view = view;
    const again = () => this.redraw();
    /** @type {[string, () => void][]} */
    const heard = [...Object.keys(this.kept), "payload", "blobs"].map((name) => [`change:${name}`, apart.includes(name) ? moved : again]);
    for (const [name, act] of heard) this.model.on(name, act);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const stop = new AbortController();
    dark.addEventListener("change", again, stop);
    // a query is about one density: when it changes, the next one is asked for
    const watchDensity = () =>
      matchMedia(`(resolution: ${window.devicePixelRatio}dppx)`).addEventListener("change", () => (again(), watchDensity()), {
        once: true,
        signal: stop.signal,
      });
    watchDensity();
    let width = Math.round(this.holder.getBoundingClientRect().width);
    // only the width is given from outside: the height is the view's own, so that it never shrinks itself
    const watch = new ResizeObserver(([entry]) => {
      if (Math.round(entry.contentRect.width) === width) return;
      width = Math.round(entry.contentRect.width);
      again();
    });
    watch.observe(this.holder);
    this.#cleanup.push(() => {
      watch.disconnect();
      stop.abort();
      for (const [name, act] of heard) this.model.off(name, act);
    });
    again();
    return () => this.#cleanup.forEach((end) => end());
  }

  /** Draws once, soon, however often it is asked for, and never two at a time; `drawn` counts what has been drawn. */
  redraw() {
    if (this.#pending) return this.#pending;
    this.#pending = this.#last.then(async () => {
      this.#pending = null;
      if (!this.el.isConnected) {
        // a notebook has taken the view off its page; put back before a frame is drawn, no change of size would tell
        requestAnimationFrame(() => this.el.isConnected && this.redraw());
        return;
      }
      for (const control of this.#controls) control.refresh();
      await this.#view.draw();
      this.#fillTable();
      this.holder.dataset.drawn = String(Number(this.holder.dataset.drawn ?? 0) + 1);
    });
    this.#last = this.#pending.catch((error) => console.error(error));
    this.busy(this.#last);
    return this.#pending;
  }

  /** Says that the view is busy until this is done. @param {Promise<unknown>} work */
  async busy(work) {
    this.#work++;
    this.holder.setAttribute("aria-busy", "true");
    await work;
    if (!--this.#work) this.holder.removeAttribute("aria-busy");
  }
}

// ---- The controls that views of a record share: the layer, words, special tokens, the threshold, the sentences of a pair.

/** Adds the controls that make sense for this record. @param {Frame} frame @param {HeadPayload} payload */
export function recordControls(frame, payload) {
  const { queries, keys } = payload;
  frame.stepper("Layer", "layer", payload.weights.layers);
  if (queries.sentences) {
    const names = queries.pair ?? ["A", "B"];
    /** @type {[string, string][]} */
    const pairs = ["00", "01", "10", "11"].map((pair) => [pair, `${names[pair[0]]} → ${names[pair[1]]}`]);
    frame.select(names[0] === "A" ? "Sentences" : "From and to", "between", [["all", "All"], ...pairs]);
  }
  frame.threshold();
  wordsControl(frame, queries, keys);
  quietControl(frame, queries, keys);
  frame.check("Square-root scale", "root");
}

/** Words or tokens, where some word has several. @param {Frame} frame @param {...Side} sides */
export function wordsControl(frame, ...sides) {
  if (sides.some(hasPieces)) frame.check("Whole words", "words", "w", "whole words or tokens");
}

/** Special tokens and sinks, where there are some. @param {Frame} frame @param {...Side} sides */
export function quietControl(frame, ...sides) {
  const any = (kind) => sides.some((side) => side[kind].length);
  if (any("special") || any("sinks"))
    frame.check(any("special") ? "Special tokens and sinks" : "Sinks", "special", "s", "special tokens and sinks");
}

/** The head that an arrow key steps to: the next one round, or from several the first or the last.
 * @param {number[]} heads all of them @param {number[]} shown @param {number} by */
export function nextHead(heads, shown, by) {
  if (shown.length !== 1) return by > 0 ? heads[0] : heads.at(-1);
  return heads[(heads.indexOf(shown[0]) + by + heads.length) % heads.length];
}

/** A chip for each head: click shows or hides it, double click isolates it; ↑ and ↓ step from head to head.
 * @param {Frame} frame @param {DescribedWeights} described */
export function headChips(frame, { heads, pooled }) {
  const chosen = () => frame.get("heads") ?? heads;
  const choose = (some) => frame.set({ heads: some.length === heads.length ? null : some });
  const made = heads.map((head, place) => {
    const swatch = element("i", { ariaHidden: "true" });
    const chip = element(
      "button",
      { type: "button", className: "chip", ariaLabel: `Head ${head}`, title: "Click: show or hide. Double click: this head alone." },
      swatch,
      String(head),
    );
    chip.addEventListener("click", (event) => {
      if (event.detail > 1) return;
      const on = chosen().includes(head);
      choose(on ? chosen().filter((other) => other !== head) : heads.filter((other) => other === head || chosen().includes(other)));
    });
    chip.addEventListener("dblclick", () => choose([head]));
    swatch.classList.toggle("again", place % 16 >= 8);
    return chip;
  });
  const all = element("button", { type: "button", onclick: () => choose(heads) }, "All");
  const node = element(
    "div",
    { className: "chips", role: "group", ariaLabel: "Heads" },
    element("span", { className: "quiet" }, "Heads"),
    ...made,
    all,
  );
  node.hidden = heads.length < 2 || Boolean(pooled);
  frame.stepping("head", (by) => choose([nextHead(heads, chosen(), by)]));
  const refresh = () => {
    const { categorical } = colours(frame.el);
    made.forEach((chip, place) => {
      chip.setAttribute("aria-pressed", String(chosen().includes(heads[place])));
      chip.querySelector("i").style.setProperty("--chip", categorical[place % categorical.length]);
    });
  };
  frame.follow({ node, refresh });
  return node;
}
