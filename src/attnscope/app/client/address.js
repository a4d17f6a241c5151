// The link: what every pane shows, in the part of the address that never leaves the browser.
//
// #model=demo&text=the+key&view=head&head_state={"layer":2}&pane=2&model=… : readable, so that a person can write one.

/** @typedef {"token" | "word" | "sentence"} Level what gets one score each
 *  @typedef {{model?: string, text?: string, second?: string | null, opened?: string, view?: string, methods?: string[] | null,
 *   target?: string | null, against?: string | null, truncate?: string | null, by?: Level, states: Record<string, object>}} Shown what a pane shows; `opened` names a file that no link can hold
 *  @typedef {{panes: Shown[], inStep: boolean}} Place */

const NAMES = ["model", "text", "second", "opened", "target", "against", "truncate", "view"];
/** @type {Level[]} */
export const LEVELS = ["word", "token", "sentence"];
const STATE = /_state$/;
const SOON = 250; // milliseconds until a choice is in the link: a slider makes many

/** What the address says, or nothing; nonsense says nothing. @param {string} hash @param {string[]} views @returns {Place | null} */
export function fromAddress(hash, views) {
  const place = { panes: [], inStep: false };
  let pane = null;
  for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (name === "in_step") place.inStep = value === "1";
    if (name === "pane" || !pane) place.panes.push((pane = { states: {} }));
    if (NAMES.includes(name)) pane[name] = value;
    else if (name === "by") pane.by = LEVELS.find((level) => level === value);
    else if (name === "methods") pane.methods = value.split(",").filter(Boolean);
    else if (views.includes(name.replace(STATE, ""))) pane.states[name.replace(STATE, "")] = parsed(value);
  }
  place.panes = place.panes.filter(({ text, opened }) => text !== undefined || opened !== undefined).slice(0, 2);
  return place.panes.length ? place : null;
}

function parsed(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** The address of a place. @param {Place} place */
export function toAddress({ panes, inStep }) {
  const said = new URLSearchParams();
  panes.forEach(({ states, methods, by, ...rest }, number) => {
    if (number) said.append("pane", String(number + 1));
    for (const name of NAMES) if (rest[name] || (name === "text" && rest.text !== undefined)) said.append(name, rest[name]);
    if (by && by !== "word") said.append("by", by);
    if (methods) said.append("methods", methods.join(","));
    for (const [name, state] of Object.entries(states)) if (Object.keys(state).length) said.append(`${name}_state`, JSON.stringify(state));
  });
  if (inStep && panes.length > 1) said.append("in_step", "1");
  return `#${said}`;
}

/** What was chosen that the view did not open with. @param {Record<string, unknown>} state @param {Record<string, unknown>} opening */
export function changesOf(state, opening) {
  return Object.fromEntries(Object.entries(state).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(opening[name])));
}

/** Writes the address soon, however often it is asked to; `now` writes at once. @param {() => Place} place */
export function addressKeeper(place) {
  let waiting = 0;
  const now = () => {
    clearTimeout(waiting);
    waiting = 0;
    const address = toAddress(place());
    if (address !== location.hash) history.replaceState(null, "", address);
  };
  return { soon: () => (waiting ||= setTimeout(now, SOON)), now };
}

// ---- What was chosen in the views of one text, as far as it makes sense for the next.

/** The choices that outlive a text. @param {Record<string, object>} states by view @param {boolean} sameModel
 * @param {Record<string, Kept>} kept what each name speaks of @returns {Record<string, object>} */
export function carriedStates(states, sameModel, kept) {
  const outlives = (name) => kept[name]?.of !== "text" && (sameModel || kept[name]?.of !== "model");
  const carried = (state) => Object.fromEntries(Object.entries(state).filter(([name]) => outlives(name)));
  return Object.fromEntries(Object.entries(states).map(([view, state]) => [view, carried(state)]));
}
