// The host of a saved page: gives each view its model and its element, as a notebook widget would.

/** A model as anywidget has it: values by name, and listeners that are told of changes. */
class Model {
  #values;
  #listeners = new Map();

  /** @param {Record<string, unknown>} values */
  constructor(values) {
    this.#values = new Map(Object.entries(values));
  }

  /** @param {string} name */
  get(name) {
    return this.#values.get(name);
  }

  /** @param {string} name @param {unknown} value */
  set(name, value) {
    if (this.#values.get(name) === value) return;
    this.#values.set(name, value);
    for (const listener of [...(this.#listeners.get(`change:${name}`) ?? [])]) listener(value);
  }

  /** @param {string} event `change:` and a name @param {(value: unknown) => void} listener */
  on(event, listener) {
    if (!this.#listeners.has(event)) this.#listeners.set(event, new Set());
    this.#listeners.get(event).add(listener);
  }

  /** @param {string} event @param {(value: unknown) => void} [listener] none: all of this event */
  off(event, listener) {
    if (listener) this.#listeners.get(event)?.delete(listener);
    else this.#listeners.delete(event);
  }

  /** A page has nobody to send changes to: they are already where they are shown. */
  save_changes() {}
}

globalThis.attnscopeHost = {
  /** Every model of the page, in order, so that whoever opens the page can read what is selected. */
  models: [],

  /** Draws every view of this name. @param {string} name @param {(given: {model: Model, el: Element}) => unknown} render */
  mount(name, render) {
    for (const el of document.querySelectorAll(`[data-view="${name}"]`)) {
      const model = new Model(JSON.parse(el.querySelector("script").textContent));
      el.replaceChildren();
      this.models.push(model);
      render({ model, el });
    }
  },
};
