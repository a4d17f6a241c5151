// What a view holds where no notebook does: values by name, listeners, and what of a link's choice fits.

/** A model as anywidget has it: values by name, and listeners that are told of changes. */
export class Model {
  #values;
  #listeners = new Map();

  /** @param {Record<string, any>} values @param {() => void} keep what is called when a choice is to be kept */
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

  /** What is selected, to be kept in a link: all that the view declares. */
  state() {
    return Object.fromEntries(Object.keys(this.get("kept")).map((name) => [name, this.get(name)]));
  }
}

const isNumber = (value) => Number.isInteger(value) && value >= 0;
const isText = (value) => typeof value === "string";
const isSwitch = (value) => typeof value === "boolean";
const listOf = (fits) => (value) => Array.isArray(value) && value.every(fits);

/** What a value of each kind must be: a link may say anything. */
const FITS = {
  number: isNumber,
  numbers: listOf(isNumber),
  places: listOf(listOf(isNumber)),
  switch: isSwitch,
  share: (value) => Number.isFinite(value) && value >= 0 && value <= 1,
  text: isText,
  texts: listOf(isText),
  sorting: (value) => Array.isArray(value) && value.length === 2 && (isNumber(value[0]) || isText(value[0])) && isSwitch(value[1]),
};

/** What of a link fits the view: names that it declares, values of their kind, and nothing where nothing may be chosen.
 * @param {{kept: Record<string, Kept>}} values what it opens with @param {unknown} said */
export function fitting({ kept }, said) {
  const entries = said && typeof said === "object" ? Object.entries(said) : [];
  return Object.fromEntries(
    entries.filter(([name, value]) => name in kept && (value === null ? kept[name].optional : FITS[kept[name].kind](value))),
  );
}
