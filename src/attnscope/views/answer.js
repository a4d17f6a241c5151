// The answer view: the answer as text, beside it what the model read, and which part of the one goes with which of the other.

import { colours, drawRamp, element, groundOf, percent, sharp } from "./drawing.js";
import { Frame } from "./frame.js";
import {
  AnswerArrays,
  AnswerWords,
  KINDS,
  Reply,
  STEPS,
  TITLES,
  dropText,
  isSide,
  paintOn,
  rowsOf,
  signedPercent,
  spaced,
  strongestFirst,
} from "./answer_rows.js";

/** Pixels of the part of the context in sight, of the strip beside it, and of the bar in a legend. */
const [HEIGHT, STRIP, LEGEND] = [616, 48, 120];
/** Passages that are named first. */
const FIRST = 3;

// ---- The context: documents with their passages, and a strip of all of them where they are long.

/** What the model read, part by part. */
class Context {
  #order = "";

  /** @param {AnswerPanel} panel */
  constructor(panel) {
    this.panel = panel;
    const { parts, passages } = panel.payload;
    this.passages = passages.map(({ text }, place) => {
      const { before, word, after } = spaced(text);
      const node = element("span", { className: "token passage", role: "button", tabIndex: -1, dir: "auto" }, word || "␣");
      node.dataset.place = String(place);
      return { node, before, after };
    });
    this.parts = parts.map(({ name, kind }, part) => {
      const title = element(
        "button",
        { type: "button", className: "title", dir: "auto", onclick: (event) => this.#pinPart(part, event) },
        name,
      );
      const [bar, share, drop] = [element("i", {}), element("span", { className: "share" }), element("span", { className: "drop quiet" })];
      const places = passages.flatMap((passage, place) => (passage.part === part ? [place] : []));
      const texts = places.flatMap((place) => {
        const { before, node, after } = this.passages[place];
        // a marker is a sign of its own, whatever stands around it; behind the last passage no empty lines are wanted
        return kind === "marker" ? [node, " "] : [before, node, place === places.at(-1) ? "" : after];
      });
      const head = element("header", {}, title, element("span", { className: "meter", ariaHidden: "true" }, bar), share, drop);
      const node = element("article", { className: `part ${kind}`, ariaLabel: name }, head, element("p", {}, ...texts));
      head.addEventListener("pointerenter", () => this.panel.preview({ keys: places }));
      head.addEventListener("pointerleave", () => this.panel.preview(null));
      return { node, title, bar, share, drop, places };
    });
    this.list = element("div", { className: "parts" });
    this.area = element("div", { className: "area", tabIndex: 0, role: "group", ariaLabel: "What the model read" }, this.list);
    this.canvas = element("canvas", { ariaHidden: "true" });
    this.band = element("div", { className: "band" });
    this.strip = element("div", { className: "strip", ariaHidden: "true", hidden: true }, this.canvas, this.band);
    this.node = element("div", { className: "context" }, this.area, this.strip);
    this.area.addEventListener("scroll", () => this.#placeBand());
    for (const coming of ["pointerover", "focusin"]) this.list.addEventListener(coming, (event) => this.#pointed(event));
    for (const going of ["pointerleave", "focusout"]) this.list.addEventListener(going, () => this.panel.preview(null));
    this.list.addEventListener("click", (event) => this.#clicked(event));
    this.list.addEventListener("keydown", (event) => this.#typed(event));
    const go = (event) => {
      const box = this.canvas.getBoundingClientRect();
      this.area.scrollTop = ((event.clientY - box.top) / box.height) * this.area.scrollHeight - this.area.clientHeight / 2;
    };
    this.strip.addEventListener("pointerdown", (event) => (this.strip.setPointerCapture(event.pointerId), go(event)));
    this.strip.addEventListener("pointermove", (event) => event.buttons & 1 && go(event));
  }

  #at(event) {
    const node = event.target.closest?.(".passage");
    return node ? Number(node.dataset.place) : null;
  }

  #pointed(event) {
    const place = this.#at(event);
    if (place === null) return event.target.closest("header") ? undefined : this.panel.preview(null);
    this.panel.preview({ keys: [place] });
    const box =
      event.type === "focusin" ? this.passages[place].node.getBoundingClientRect() : { left: event.clientX, bottom: event.clientY + 8 };
    return this.panel.tellPassage({ x: box.left, y: box.bottom - 8 }, place);
  }

  #clicked(event) {
    const place = this.#at(event);
    // letters that were selected to be copied are no click
    if (place === null || String(getSelection()).length > 0) return;
    this.panel.frame.pin("keys", [place], event.shiftKey);
  }

  #pinPart(part, event) {
    const { places } = this.parts[part];
    this.panel.frame.pin("keys", places, event.shiftKey);
  }

  #typed(event) {
    const place = this.#at(event);
    if (place === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const nodes = /** @type {HTMLElement[]} */ ([...this.list.querySelectorAll(".passage")]);
    const from = nodes.indexOf(this.passages[place].node);
    if (event.key === "Enter" || event.key === " ") this.panel.frame.pin("keys", [place], event.shiftKey);
    else if (event.key in STEPS) this.focus(Number(nodes[Math.min(Math.max(from + STEPS[event.key], 0), nodes.length - 1)].dataset.place));
    else return;
    event.preventDefault();
  }

  /** Brings a passage into sight and gives it the focus. @param {number} place */
  focus(place) {
    for (const { node } of this.passages) node.tabIndex = -1;
    const { node } = this.passages[place];
    node.tabIndex = 0;
    this.bringIntoSight(place);
    node.focus({ preventScroll: true });
  }

  /** Scrolls the documents, and never the page. @param {number} place */
  bringIntoSight(place) {
    const [box, around] = [this.passages[place].node.getBoundingClientRect(), this.area.getBoundingClientRect()];
    if (box.top < around.top || box.bottom > around.bottom)
      this.area.scrollTop += box.top - around.top - Math.max(16, (around.height - box.height) / 3);
  }

  /** The passage that has the focus, or null. */
  get focused() {
    const active = /** @type {HTMLElement} */ (/** @type {Document} */ (this.node.getRootNode()).activeElement);
    return this.list.contains(active) && active.dataset.place !== undefined ? Number(active.dataset.place) : null;
  }

  /** Puts the parts in their order; what has the focus keeps it. @param {number[]} order */
  arrange(order) {
    const wanted = order.join();
    if (wanted === this.#order) return;
    const held = this.focused;
    this.#order = wanted;
    this.list.replaceChildren(...order.map((part) => this.parts[part].node));
    if (!this.list.querySelector(".passage[tabindex='0']")) this.list.querySelector(".passage")?.setAttribute("tabindex", "0");
    if (held !== null) this.passages[held].node.focus({ preventScroll: true });
  }

  /** @param {import("./answer_rows.js").Rows} rows @param {(share: number) => string} ground @param {number[]} keys */
  paint({ shares, end, partShares, drops }, ground, keys) {
    const { parts, passages } = this.panel.payload;
    const pinned = new Set(keys);
    this.passages.forEach(({ node }, place) => {
      if (isSide(parts[passages[place].part].kind)) Object.assign(node.style, { backgroundColor: "", color: "" });
      else paintOn(node, ground(end ? shares[place] / end : 0));
      if (node.getAttribute("aria-pressed") !== String(pinned.has(place))) node.setAttribute("aria-pressed", String(pinned.has(place)));
    });
    const most = Math.max(...parts.map(({ kind }, part) => (isSide(kind) ? 0 : Math.abs(partShares[part]))), 0);
    this.parts.forEach(({ bar, share, drop, title, places }, part) => {
      bar.style.width = `${most ? Math.min(100, (100 * Math.abs(partShares[part])) / most) : 0}%`;
      bar.classList.toggle("below", partShares[part] < 0);
      share.textContent = signedPercent(partShares[part]);
      drop.textContent = dropText(drops[part]);
      title.setAttribute("aria-pressed", String(places.length > 0 && places.every((place) => pinned.has(place))));
    });
    this.#drawStrip(shares, end, ground);
  }

  /** All documents in little, on the same colours; where they fit there is none. */
  #drawStrip(shares, end, ground) {
    const { area, canvas, strip } = this;
    const whole = area.scrollHeight;
    strip.hidden = whole <= area.clientHeight + 1;
    if (strip.hidden) return;
    const context = sharp(canvas, STRIP, area.clientHeight);
    const around = area.getBoundingClientRect();
    const [across, down] = [STRIP / area.clientWidth, area.clientHeight / whole];
    const { parts, passages } = this.panel.payload;
    const blank = ground(0);
    this.passages.forEach(({ node }, place) => {
      if (!node.isConnected) return;
      const colour = isSide(parts[passages[place].part].kind) ? blank : ground(end ? shares[place] / end : 0);
      context.fillStyle = colour;
      for (const { left, top, width, height } of node.getClientRects())
        context.fillRect(
          (left - around.left) * across,
          (top - around.top + area.scrollTop) * down,
          width * across,
          Math.max(height * down, 1),
        );
    });
    this.#placeBand();
  }

  #placeBand() {
    const { area } = this;
    const share = (pixels) => `${(100 * pixels) / area.scrollHeight}%`;
    Object.assign(this.band.style, { top: share(area.scrollTop), height: share(area.clientHeight) });
  }
}

// ---- Both, with where the score goes, and what is said of it.

/** The answer beside its context. */
export class AnswerPanel {
  #told = "";
  #state = null;
  #scores = null;
  #drops = null;

  /** @param {Frame} frame @param {AnswerPayload} payload @param {AbortController} ended */
  constructor(frame, payload, ended) {
    this.frame = frame;
    this.payload = payload;
    this.ended = ended;
    this.arrays = new AnswerArrays(frame.model, payload);
    this.words = new AnswerWords(payload);
    /** The tokens that are shown: pinned, or pointed at. @type {number[]} */
    this.shownQueries = [];
    this.reply = new Reply(this);
    this.context = new Context(this);
    this.picked = element("p", { className: "picked", ariaLive: "polite" });
    this.origin = KINDS.filter((kind) => payload.parts.some((part) => part.kind === kind)).map((kind) => {
      const [bar, share, drop] = [element("i", {}), element("td", {}), element("td", { className: "drop quiet" })];
      const row = element(
        "tr",
        {},
        element("th", { scope: "row" }, TITLES[kind]),
        element("td", { className: "meter", ariaHidden: "true" }, element("span", {}, bar)),
        share,
        ...(payload.dropOfAll ? [drop] : []),
      );
      return { kind, row, bar, share, drop };
    });
    const where = element(
      "table",
      { className: "origin" },
      element("caption", {}, "Was it in the context? Where the score goes"),
      element("tbody", {}, ...this.origin.map(({ row }) => row)),
    );
    this.first = element("ol", { className: "strongest" });
    this.legend = ["Passages", "Words"].map((words) => {
      const [from, to] = [element("span", {}, "0"), element("span", {})];
      const canvas = element("canvas", { ariaHidden: "true" });
      return { node: element("div", {}, element("span", {}, words), from, canvas, to), from, canvas, to };
    });
    const legend = element("div", { className: "legend quiet" }, ...this.legend.map(({ node }) => node));
    const warned = payload.methods.flatMap(({ name, warnings }) => warnings.map((warning) => [`${name}: `, warning]));
    const warnings = [...payload.notes.map((note) => ["", note]), ...warned];
    this.warnings = element(
      "ul",
      { className: "warnings quiet", hidden: !warnings.length },
      ...warnings.map(([name, words]) => element("li", {}, element("b", {}, name), words)),
    );
    this.resting = element("p", { className: "resting", role: "note" });
    const strongest = element("section", { ariaLabel: "Strongest passages" }, element("h5", {}, "Strongest passages"), this.first);
    const side = element("div", { className: "answer-side" }, this.reply.node, this.picked, where, this.resting, strongest, legend);
    this.node = element("div", { className: `answer-panel${payload.drops ? " dropped" : ""}` }, side, this.context.node);
    this.context.area.style.maxHeight = `${HEIGHT}px`;
    frame.key("m", "next of the strongest passages", () => this.#next());
    frame.key("x", "next method", () => this.#nextMethod());
    frame.listKey("← →", "next word or passage; with Shift, select words");
    frame.listKey("Enter", "pin the word or passage; with Shift, add it");
    frame.key("Escape", "release all: the whole answer, all documents", () => frame.set({ queries: [], keys: [] }));
  }

  /** What is chosen. */
  get chosen() {
    const { frame, payload } = this;
    const name = frame.get("method");
    const method = payload.methods.some((one) => one.name === name) ? name : payload.methods[0].name;
    return {
      method,
      order: frame.get("order", "strongest"),
      special: Boolean(frame.get("special", false)),
      root: Boolean(frame.get("root", false)),
      queries: frame.get("queries", []).filter((place) => place < payload.tokens.length),
      keys: frame.get("keys", []).filter((place) => place < payload.passages.length),
    };
  }

  /** Chooses tokens, or adds them to those that are. @param {"queries" | "keys"} name @param {number[]} places @param {boolean} more */
  choose(name, places, more) {
    const every = new Set([...(more ? this.frame.get(name, []) : []), ...places]);
    this.frame.set({ [name]: [...every].sort((one, other) => one - other) });
  }

  /** Decodes what is asked for, puts the strongest first, and colours all of it. */
  async draw() {
    const { chosen } = this;
    const place = this.payload.methods.findIndex(({ name }) => name === chosen.method);
    [this.#scores, this.#drops] = await Promise.all([this.arrays.scores(place), this.arrays.drops()]);
    const rows = this.#rows(chosen);
    this.#state = { chosen, rows };
    this.context.arrange(rows.order);
    this.#paint(rows, chosen, chosen);
    this.#sayMore(rows, chosen);
    const asked = JSON.stringify([chosen.method, chosen.queries, chosen.order]);
    const [best] = strongestFirst(this.payload, rows);
    // another span has its strongest passage elsewhere: it comes into sight, unless a passage is being read
    if (this.#told && this.#told !== asked && best !== undefined && this.context.focused === null) this.context.bringIntoSight(best);
    this.#told = asked;
  }

  #rows(chosen) {
    return rowsOf(this.payload, this.#scores, this.#drops, chosen);
  }

  /** Shows what would be pinned, and what is pinned again when nothing is pointed at; nothing moves.
   * @param {{queries?: number[], keys?: number[]} | null} pointed */
  preview(pointed) {
    if (!this.#state) return undefined;
    const { chosen, rows } = this.#state;
    this.frame.tell(null);
    if (!pointed) return this.#paint(rows, chosen, chosen);
    const asked = { ...chosen, ...pointed };
    return this.#paint(this.#rows(asked), asked, chosen);
  }

  #paint(rows, shown, pinned) {
    this.shownQueries = shown.queries;
    this.shownRows = rows;
    const { signed } = this.payload.methods.find(({ name }) => name === shown.method);
    this.palette = colours(this.frame.el);
    const ground = groundOf(this.palette, signed, shown.root);
    this.reply.paint(rows, ground, pinned.queries);
    this.context.paint(rows, ground, pinned.keys);
    const most = Math.max(...Object.values(rows.origin).map(Math.abs), 0);
    for (const { kind, bar, share, drop } of this.origin) {
      bar.style.width = `${most ? (100 * Math.abs(rows.origin[kind])) / most : 0}%`;
      bar.classList.toggle("below", rows.origin[kind] < 0);
      share.textContent = signedPercent(rows.origin[kind]);
      if (kind === "document") drop.textContent = dropText(rows.dropOfAll);
    }
    this.picked.textContent = this.words.aboutSpan(rows, shown);
    [rows.end, rows.wordEnd].forEach((end, place) => {
      this.legend[place].from.textContent = signed ? `−${percent(end)}` : "0";
      this.legend[place].to.textContent = percent(end);
    });
    this.node.scene = { chosen: shown, ...rows, shares: [...rows.shares] };
  }

  #sayMore(rows, chosen) {
    this.frame.said.textContent = this.words.say(rows, chosen);
    this.frame.summary.textContent = this.words.summary(rows, chosen);
    this.resting.textContent = this.words.resting(rows, chosen);
    this.resting.hidden = !this.resting.textContent;
    const { passages, parts } = this.payload;
    const best = strongestFirst(this.payload, rows).slice(0, FIRST);
    this.first.replaceChildren(
      ...best.map((place) => {
        const { text, part } = passages[place];
        const go = element(
          "button",
          { type: "button", className: "go", dir: "auto", onclick: () => this.context.focus(place) },
          text.trim(),
        );
        return element("li", {}, go, element("span", { className: "quiet" }, `${parts[part].name} · ${signedPercent(rows.shares[place])}`));
      }),
    );
    const { signed } = this.payload.methods.find(({ name }) => name === chosen.method);
    const ground = groundOf(this.palette, signed, chosen.root);
    for (const { canvas } of this.legend)
      drawRamp(sharp(canvas, LEGEND, 12), { left: 0, top: 0, width: LEGEND, height: 12 }, (share) =>
        ground(signed ? 2 * share - 1 : share),
      );
  }

  /** Reads a passage out. @param {{x: number, y: number}} at @param {number} place */
  tellPassage(at, place) {
    const { chosen, rows } = this.#state;
    this.frame.tell(at, this.words.aboutPassage(place, rows, chosen.queries, chosen.method));
  }

  #next() {
    const best = strongestFirst(this.payload, this.#state.rows).slice(0, 20);
    const at = this.context.focused === null ? -1 : best.indexOf(this.context.focused);
    if (best.length) this.context.focus(best[(at + 1) % best.length]);
  }

  #nextMethod() {
    const names = this.payload.methods.map(({ name }) => name);
    this.frame.set({ method: names[(names.indexOf(this.chosen.method) + 1) % names.length] });
  }

  /** The passages that are shown, as rows. */
  table() {
    return this.words.table(this.#state.rows, this.#state.chosen);
  }
}

/** Draws the view into an element and keeps it true to the model. @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const payload = model.get("payload");
  const frame = new Frame({ model, el }, "answer", "Answer view: which passages the words of an answer go with");
  const ended = new AbortController();
  const panel = new AnswerPanel(frame, payload, ended);
  if (payload.methods.length > 1)
    frame.select(
      "Method",
      "method",
      payload.methods.map(({ name }) => [name, name]),
    );
  frame.select("Documents", "order", [
    ["strongest", "Largest share first"],
    ...(payload.drops ? [/** @type {[string, string]} */ (["drop", "Largest drop first"])] : []),
    ["reading", "As they were read"],
  ]);
  frame.check("Own words, markers and sinks", "special", "s", "the answer’s own words, markers and sinks");
  frame.check("Square-root scale", "root");
  frame.body.append(panel.node);
  frame.foot.before(panel.warnings);
  const end = frame.start({ draw: () => panel.draw(), table: () => panel.table() });
  return () => (ended.abort(), end());
}
