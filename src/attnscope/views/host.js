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
    for (const event of [`change:${name}`, "change"]) for (const listener of [...(this.#listeners.get(event) ?? [])]) listener(value);
  }

  /** @param {string} event `change`, or `change:` and a name @param {(value: unknown) => void} listener */
  on(event, listener) {
    if (!this.#listeners.has(event)) this.#listeners.set(event, new Set());
    this.#listeners.get(event).add(listener);
  }

  /** @param {string} event @param {(value: unknown) => void} [listener] none: all of this event */
  off(event, listener) {
    if (listener) this.#listeners.get(event)?.delete(listener);
    else this.#listeners.delete(event);
  }

  /** What is selected, to be kept in a link. */
  state() {
    return Object.fromEntries([...this.#values].filter(([name, value]) => name !== "payload" && name !== "blobs" && value !== undefined));
  }

  /** A page has nobody to send changes to, but its address: a link restores what is selected. */
  save_changes() {
    globalThis.attnscopeHost.keepInAddress();
  }
}

/** Bytes out of letters of seven bits each: eight letters are seven bytes; 0, 13 and 60 stand 128 places higher.
 * @param {string} text */
function fromSevenBits(text) {
  const bytes = new Uint8Array((text.length >> 3) * 7);
  let held = 0;
  for (let letter = 0, place = 0; letter < text.length; letter++) {
    const bits = text.charCodeAt(letter) & 127;
    const within = letter & 7;
    if (within) bytes[place++] = (held << within) | (bits >> (7 - within));
    held = bits;
  }
  return bytes;
}

const READERS = {
  base64: (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)),
  seven: fromSevenBits,
};

const isNumber = (value) => Number.isInteger(value) && value >= 0;
const isText = (value) => typeof value === "string";
const isSwitch = (value) => typeof value === "boolean";
const listOf = (fits) => (value) => Array.isArray(value) && value.every(fits);
const isSorting = (value) => Array.isArray(value) && value.length === 2 && (isNumber(value[0]) || isText(value[0])) && isSwitch(value[1]);

/** What can be selected in any view, and what it must be: a link may say anything. */
const KINDS = {
  layer: isNumber, head: isNumber, query: isNumber,
  heads: listOf(isNumber), queries: listOf(isNumber), keys: listOf(isNumber), pinned: listOf(listOf(isNumber)),
  words: isSwitch, special: isSwitch, root: isSwitch, lines: isSwitch, enlarged: isSwitch,
  threshold: (value) => Number.isFinite(value) && value >= 0,
  between: isText, order: isText, scale: isText, layout: isText, reference: isText, statistic: isText, measure: isText, role: isText,
  methods: listOf(isText), label: listOf(isText), sort_layers: isSorting, sort_heads: isSorting,
};

/** What of a link fits the view: names it knows, values of their kind, and nothing where it opens with nothing.
 * @param {Record<string, unknown>} values what it opens with @param {unknown} said */
function fitting(values, said) {
  const entries = said && typeof said === "object" ? Object.entries(said) : [];
  const nullable = ["heads", "head", "layer", "methods", "label", "role", "sort_layers", "sort_heads"];
  return Object.fromEntries(entries.filter(([name, value]) => name in values && (KINDS[name]?.(value) || (value === null && nullable.includes(name)))));
}

/** The arrays of a view, each decoded when it is asked for. @param {Element} el */
function blobsOf(el) {
  const blobs = {};
  for (const script of el.querySelectorAll("script[data-blob]")) {
    const { blob, code, size } = script.dataset;
    // letters of seven bits may end in zeros that belong to nothing
    Object.defineProperty(blobs, blob, { get: () => READERS[code](script.textContent).subarray(0, Number(size)), enumerable: true });
  }
  return blobs;
}

globalThis.attnscopeHost = {
  /** Every model of the page by the place of its view, so that whoever opens the page can read what is selected. */
  models: [],

  /** Draws every view of this name. @param {string} name @param {(given: {model: Model, el: Element}) => unknown} render */
  mount(name, render) {
    const kept = this.fromAddress();
    document.querySelectorAll("[data-view]").forEach((el, place) => {
      if (el.dataset.view !== name) return;
      const values = JSON.parse(el.querySelector("script").textContent);
      const model = new Model({ ...values, ...fitting(values, kept[place]), blobs: blobsOf(el) });
      el.replaceChildren();
      this.models[place] = model;
      render({ model, el });
    });
  },

  /** What a link says was selected, by the place of each view; a link that says nonsense says nothing. */
  fromAddress() {
    try {
      const kept = JSON.parse(decodeURIComponent(location.hash.slice(1)) || "[]");
      return Array.isArray(kept) ? kept : [];
    } catch {
      return [];
    }
  },

  keepInAddress() {
    const states = Array.from(this.models, (model) => model?.state() ?? {});
    try {
      history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(states))}`);
    } catch {
      // a sandboxed page has no address of its own
    }
  },
};
