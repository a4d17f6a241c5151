// The views of one text: each made when it is first looked at, and kept alive while the text stays.

import { LiveView } from "/client/live_view.js";
import { makeView } from "/client/server.js";
import { element } from "/views/drawing.js";

// ---- Tabs: one for each view, walked through by arrow keys; a view that cannot be had says why.

const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

/** A row of tabs. It says which was chosen by calling `choose`, and which is looked at by calling `tell`. */
export class Tabs {
  #tabs = [];

  /** @param {{label: string, choose: (name: string) => void, tell: (sentence: string) => void}} given */
  constructor({ label, choose, tell }) {
    this.choose = choose;
    this.tell = tell;
    this.node = element("div", { className: "tabs", role: "tablist", ariaLabel: label });
    this.node.addEventListener("keydown", (event) => this.#pressed(event));
  }

  /** Makes the tabs. @param {{name: string, title: string, why_not: string | null, panel: string}[]} views `panel`: the id of what it shows */
  fill(views) {
    this.#tabs = views.map(({ name, title, why_not: whyNot, panel }) => {
      const tab = element(
        "button",
        { type: "button", role: "tab", id: `${panel}-tab`, tabIndex: -1, ariaSelected: false, ariaControls: panel, title: whyNot ?? "" },
        title,
      );
      tab.dataset.tab = name;
      if (whyNot) tab.setAttribute("aria-disabled", "true");
      for (const coming of ["pointerenter", "focus"]) tab.addEventListener(coming, () => whyNot && this.tell(whyNot));
      for (const going of ["pointerleave", "blur"]) tab.addEventListener(going, () => whyNot && this.tell(""));
      tab.addEventListener("click", () => (whyNot ? this.tell(whyNot) : this.choose(name)));
      return tab;
    });
    this.node.replaceChildren(...this.#tabs);
    this.node.hidden = !this.#tabs.length;
  }

  /** Marks the tab that is shown. @param {string} name */
  select(name) {
    for (const tab of this.#tabs) {
      const on = tab.dataset.tab === name;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
    }
  }

  #pressed(event) {
    const step = STEPS[event.key];
    const from = this.#tabs.indexOf(event.target);
    if (step === undefined || from < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const last = this.#tabs.length - 1;
    const to = Number.isFinite(step) ? (from + step + last + 1) % (last + 1) : step < 0 ? 0 : last;
    this.#tabs[to].focus();
    // a view that cannot be had can still be read about
    if (!this.#tabs[to].hasAttribute("aria-disabled")) this.choose(this.#tabs[to].dataset.tab);
  }
}

/** @typedef {{methods: string[] | null, by: import("/client/explaining.js").Level, queries: number[] | null, drops?: string | null, said: unknown}} Wish what a view is to be made of, and what a link says was chosen */

/** Holds the views of a text, one of them in sight. */
export class Stage {
  #panels = new Map();
  #again;

  /** @param {{number: number, working: import("/client/working.js").Working, keep: (view: LiveView) => void, again: (signal: AbortSignal) => Promise<string>}} given
   *   `again` reads the text again when the server has forgotten it, and gives its new id */
  constructor({ number, working, keep, again }) {
    this.number = number;
    this.working = working;
    this.keep = keep;
    this.#again = again;
    this.node = element("div", { className: "stage" });
  }

  /** The id of a view's panel. @param {string} name */
  panelId(name) {
    return `pane${this.number}-${name}`;
  }

  /** The view of this name, if it is drawn. @param {string} name @returns {LiveView | null} */
  live(name) {
    return this.#panels.get(name)?.view ?? null;
  }

  /** Ends all views: another text is coming. @param {{name: string}[]} views those it has */
  clear(views = []) {
    for (const { view } of this.#panels.values()) view?.end();
    this.#panels = new Map(views.map(({ name }) => [name, { panel: this.#panel(name), view: null }]));
    this.node.replaceChildren(...[...this.#panels.values()].map(({ panel }) => panel));
  }

  #panel(name) {
    const id = this.panelId(name);
    return element(
      "div",
      { id, className: "view-panel aside", role: "tabpanel", ariaLabelledby: `${id}-tab` },
      element("div", { className: "trouble" }),
      element("ul", { className: "warnings quiet" }),
      element("div", { className: "drawing" }),
    );
  }

  /** Brings a view into sight. @param {string} name */
  select(name) {
    for (const [other, { panel }] of this.#panels) panel.classList.toggle("aside", other !== name);
  }

  /** Makes a view and draws it; one that is there stays in sight until then. @param {string} text its id @param {string} name @param {Wish} wish */
  async make(text, name, wish) {
    const held = this.#panels.get(name);
    this.#trouble(name);
    const asked = { text, view: name, methods: wish.methods, by: wish.by, queries: wish.queries, drops: wish.drops ?? null };
    let made;
    try {
      made = await this.working.run(
        "Preparing the view",
        (signal, tell) => this.#made(asked, signal, tell),
        () => this.#cancelled(name, text, wish),
      );
    } catch (error) {
      this.#trouble(name, error, () => this.make(text, name, wish));
    }
    if (!made || this.#panels.get(name) !== held) return null;
    const [, warnings, drawing] = held.panel.children;
    const renew = () => this.#made(asked);
    const view = new LiveView(made, {
      renew,
      keep: this.keep,
      said: wish.said,
      fail: (error) => this.#trouble(name, error, () => this.make(asked.text, name, { ...wish, said: view.changes })),
    });
    // the scores view lists the warnings of its methods itself
    const listed = name === "scores" ? [] : view.warnings;
    warnings.replaceChildren(...listed.map((warning) => element("li", {}, warning)));
    held.view?.end();
    held.view = view;
    await view.draw(drawing);
    return view;
  }

  /** Makes a view; when the server has forgotten the text, it is read again first, once. `asked` learns its new id.
   * @param {Parameters<typeof makeView>[0]} asked @param {AbortSignal} [signal] @param {Parameters<typeof makeView>[2]} [tell] */
  async #made(asked, signal, tell = () => {}) {
    try {
      return await makeView(asked, signal, tell);
    } catch (error) {
      if (!error.isForgotten) throw error;
      asked.text = await this.#again(signal);
      return makeView(asked, signal, tell);
    }
  }

  #cancelled(name, text, wish) {
    if (!this.#panels.has(name)) return;
    this.#trouble(name, { message: "Cancelled.", isPassing: true }, () => this.make(text, name, wish));
  }

  /** Says what went wrong where the view would be, and offers to try again; without an error all is well. */
  #trouble(name, error = null, again = null) {
    const [place] = this.#panels.get(name)?.panel.children ?? [];
    if (!place) return;
    if (!error) return place.replaceChildren();
    const retry = element("button", { type: "button", onclick: again }, "Try again");
    place.replaceChildren(element("p", { className: "complaint", role: "alert" }, error.message, " ", ...(error.isPassing ? [retry] : [])));
  }
}
