// The views of one text: each made when it is first looked at, and kept alive while the text stays.

import { element } from "/views/drawing.js";
import { LiveView } from "/client/live_view.js";
import { makeView } from "/client/server.js";

/** @typedef {{methods: string[] | null, queries: number[] | null, said: unknown}} Wish what a view is to be made of, and what a link says was chosen */

/** Holds the views of a text, one of them in sight. */
export class Stage {
  #panels = new Map();
  #again;

  /** @param {{number: number, working: import("/client/working.js").Working, keep: (view: LiveView) => void, again: () => Promise<string>}} given
   *   `again` reads the text again when the server has forgotten it, and gives its new id */
  constructor({ number, working, keep, again }) {
    Object.assign(this, { number, working, keep });
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
    return element("div", { id, className: "view-panel aside", role: "tabpanel", ariaLabelledby: `${id}-tab` }, element("div", { className: "trouble" }), element("ul", { className: "warnings quiet" }), element("div", { className: "drawing" }));
  }

  /** Brings a view into sight. @param {string} name */
  select(name) {
    for (const [other, { panel }] of this.#panels) panel.classList.toggle("aside", other !== name);
  }

  /** Makes a view and draws it; one that is there stays in sight until then. @param {string} text its id @param {string} name @param {Wish} wish */
  async make(text, name, wish) {
    const held = this.#panels.get(name);
    this.#trouble(name);
    const asked = { text, view: name, methods: wish.methods, queries: wish.queries };
    let made;
    try {
      made = await this.working.run("Preparing the view", (signal, tell) => this.#made(asked, signal, tell), () => this.#cancelled(name, text, wish));
    } catch (error) {
      this.#trouble(name, error, () => this.make(text, name, wish));
    }
    if (!made || this.#panels.get(name) !== held) return null;
    const [, warnings, drawing] = held.panel.children;
    const renew = () => this.#made(asked);
    const view = new LiveView(made, { renew, keep: this.keep, said: wish.said, fail: (error) => this.#trouble(name, error, () => this.make(asked.text, name, { ...wish, said: view.changes })) });
    // the scores view lists the warnings of its methods itself
    const listed = name === "scores" ? [] : view.warnings;
    warnings.replaceChildren(...listed.map((warning) => element("li", {}, warning)));
    held.view?.end();
    held.view = view;
    await view.draw(drawing);
    return view;
  }

  /** Makes a view; when the server has forgotten the text, it is read again first, once. `asked` learns its new id. */
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
