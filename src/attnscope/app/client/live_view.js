// One view on the page: its module draws it, its arrays are fetched when it looks at them, its choices are kept.

import { changesOf } from "/client/address.js";
import { arrayOf } from "/client/server.js";
import { Model, fitting } from "/views/view_model.js";

/** @typedef {{id: string, name: string, values: Record<string, any>, blobs: string[], figures: boolean, carried: string | null, warnings: string[]}} Made */

/** A view that is drawn, and can be asked for its files. */
export class LiveView {
  #opening;
  #end = () => {};
  #ended = false;
  #renew;
  #renewing = null;

  /** @param {Made} made @param {{renew: () => Promise<Made>, keep: (view: LiveView) => void, fail: (error: Error) => void, said: unknown}} given
   *   `renew` asks the server for the same view again when it no longer keeps it; `keep` hears of every choice; `said` is what a link says was chosen */
  constructor(made, { renew, keep, fail, said }) {
    const { payload, kept, ...opening } = made.values;
    this.id = made.id;
    this.name = made.name;
    this.payload = payload;
    this.figures = made.figures;
    this.warnings = made.warnings ?? [];
    this.carried = made.carried;
    this.keep = keep;
    this.fail = fail;
    this.#opening = opening;
    this.#renew = renew;
    const chosen = { ...opening, ...fitting({ kept }, said) };
    this.model = new Model({ ...chosen, payload, kept, blobs: this.#arrays() }, () => this.keep(this));
  }

  /** Draws into an element, unless it was ended before its module came. @param {HTMLElement} el */
  async draw(el) {
    const { render } = await import(`/views/${this.name}.js`);
    if (this.#ended) return;
    this.#end = render({ model: this.model, el }) ?? this.#end;
  }

  /** Ends the view, so that its element can be used again. */
  end() {
    this.#ended = true;
    this.#end();
  }

  /** What was chosen that the view did not open with. */
  get changes() {
    return changesOf(this.model.state(), this.#opening);
  }

  /** What is chosen, as the server takes it. */
  get state() {
    return this.model.state();
  }

  /** The layers that can be chosen. @returns {number[]} */
  get layers() {
    return this.payload.layers ?? this.payload.weights?.layers ?? [];
  }

  /** Asks the server about this view; when it has forgotten it, the view is made again first, once.
   * @template Result @param {(id: string) => Promise<Result>} ask @returns {Promise<Result>} */
  async asking(ask) {
    try {
      return await ask(this.id);
    } catch (error) {
      if (!error.isForgotten) throw error;
      this.#renewing ??= this.#renew().finally(() => (this.#renewing = null));
      this.id = (await this.#renewing).id;
      return ask(this.id);
    }
  }

  #arrays() {
    const fetched = (name) =>
      this.asking((id) => arrayOf(id, name)).catch((error) => {
        this.fail(error);
        throw error;
      });
    return new Proxy({}, { get: (_, name) => (typeof name === "string" ? fetched(name) : undefined) });
  }
}
