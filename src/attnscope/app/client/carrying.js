// What was chosen in the views of one text, as far as it makes sense for the next.

/** What says nothing about another text. */
const OF_TOKENS = ["query", "queries", "keys", "pinned"];
/** What says nothing about another model. */
const OF_MODEL = [...OF_TOKENS, "layer", "head", "heads", "sort_layers", "sort_heads"];

/** The choices that outlive a text. @param {Record<string, object>} states by view @param {boolean} sameModel @returns {Record<string, object>} */
export function carriedStates(states, sameModel) {
  const gone = sameModel ? OF_TOKENS : OF_MODEL;
  const kept = (state) => Object.fromEntries(Object.entries(state).filter(([name]) => !gone.includes(name)));
  return Object.fromEntries(Object.entries(states).map(([view, state]) => [view, kept(state)]));
}
