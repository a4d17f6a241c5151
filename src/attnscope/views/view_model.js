// What a view holds where no notebook does: values by name, listeners, and what of a link's choice fits.

/** A model as anywidget has it: values by name, and listeners that are told of changes. */
export class Model {
  #values;
  #listeners = new Map();

  /** @param {Record<string, unknown>} values @param {() => void} keep what is called when a choice is to be kept */
  constructor(values, keep) {
    this.#values = new Map(Object.entries(values));
    this.save_changes = keep;
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
}

const isNumber = (value) => Number.isInteger(value) && value >= 0;
const isText = (value) => typeof value === "string";
const isSwitch = (value) => typeof value === "boolean";
const listOf = (fits) => (value) => Array.isArray(value) && value.every(fits);
const isSorting = (value) => Array.isArray(value) && value.length === 2 && (isNumber(value[0]) || isText(value[0])) && isSwitch(value[1]);

/** What can be selected in any view, and what it must be: a link may say anything. */
const KINDS = {
  layer: isNumber,
  head: isNumber,
  query: isNumber,
  step: isNumber,
  heads: listOf(isNumber),
  queries: listOf(isNumber),
  keys: listOf(isNumber),
  pinned: listOf(listOf(isNumber)),
  words: isSwitch,
  special: isSwitch,
  root: isSwitch,
  lines: isSwitch,
  enlarged: isSwitch,
  opacity: (value) => Number.isFinite(value) && value >= 0 && value <= 1,
  threshold: (value) => Number.isFinite(value) && value >= 0,
  between: isText,
  order: isText,
  scale: isText,
  layout: isText,
  reference: isText,
  statistic: isText,
  measure: isText,
  role: isText,
  methods: listOf(isText),
  names: listOf(isText),
  label: listOf(isText),
  sort_layers: isSorting,
  sort_heads: isSorting,
};

/** What of a link fits the view: names it knows, values of their kind, and nothing where it opens with nothing.
 * @param {Record<string, unknown>} values what it opens with @param {unknown} said */
export function fitting(values, said) {
  const entries = said && typeof said === "object" ? Object.entries(said) : [];
  const nullable = ["heads", "head", "layer", "methods", "label", "role", "step", "names", "sort_layers", "sort_heads"];
  return Object.fromEntries(
    entries.filter(([name, value]) => name in values && (KINDS[name]?.(value) || (value === null && nullable.includes(name)))),
  );
}
