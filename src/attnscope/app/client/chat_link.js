// The link of a question: what was asked and chosen, as far as it fits into an address.

/** @typedef {import("/client/documents.js").Document} Document
 *  @typedef {{question: string, answer: string}} Turn what was asked before, and what was answered
 *  @typedef {{model: string, question: string, documents: Document[], turns: Turn[], answer: string | null, tokens: number, temperature: number, seed: number}} Asked */

/** Characters of documents that a link holds: longer ones are pasted again. */
const LINKED = 6000;
/** Tokens of an answer, where nobody says how many. */
export const TOKENS = 100;
/** The view that is looked at first. */
export const VIEW = "answer";

/** @typedef {Asked & {methods: string[] | null, view: string, states: Record<string, object>, missing: number}} Place */

/** What the address says, or nothing. @param {string} hash @returns {Partial<Place> | null} */
export function fromAddress(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  if (!said.has("question")) return null;
  const number = (name, otherwise) => (Number.isFinite(Number(said.get(name) ?? NaN)) ? Number(said.get(name)) : otherwise);
  const documents = said.getAll("document").map((text) => {
    const [title, ...lines] = text.split("\n");
    return { title, text: lines.join("\n") };
  });
  const states = {};
  for (const [name, value] of said)
    if (name.endsWith("_state"))
      try {
        states[name.slice(0, -"_state".length)] = JSON.parse(value) ?? {};
      } catch {
        // nonsense says nothing
      }
  return {
    model: said.get("model") ?? undefined,
    question: said.get("question"),
    documents,
    turns: turnsIn(said.get("turns")),
    answer: said.get("answer"),
    tokens: number("tokens", TOKENS),
    temperature: number("temperature", 0),
    seed: number("seed", 0),
    methods: said.get("methods")?.split(",").filter(Boolean) ?? null,
    view: said.get("view") ?? VIEW,
    states,
    missing: number("missing", 0),
  };
}

/** The address of what was asked. @param {Omit<Place, "missing">} place */
export function toAddress({ model, question, documents, turns, answer, tokens, temperature, seed, methods, view, states }) {
  const said = new URLSearchParams({ model, question });
  const letters = documents.reduce((sum, { title, text }) => sum + title.length + text.length, 0);
  if (letters <= LINKED) for (const { title, text } of documents) said.append("document", `${title.replace(/\n/g, " ")}\n${text}`);
  else said.set("missing", String(documents.length));
  if (turns.length) said.set("turns", JSON.stringify(turns));
  if (answer !== null) said.set("answer", answer);
  else {
    if (tokens !== TOKENS) said.set("tokens", String(tokens));
    if (temperature > 0) for (const [name, value] of Object.entries({ temperature, seed })) said.set(name, String(value));
  }
  if (methods) said.set("methods", methods.join(","));
  if (view !== VIEW) said.set("view", view);
  for (const [name, state] of Object.entries(states)) if (Object.keys(state).length) said.set(`${name}_state`, JSON.stringify(state));
  return `#${said}`;
}

/** @param {string | null} text @returns {Turn[]} */
function turnsIn(text) {
  try {
    const turns = JSON.parse(text ?? "[]");
    const fits = (turn) => typeof turn?.question === "string" && typeof turn?.answer === "string";
    return Array.isArray(turns) && turns.every(fits) ? turns.map(({ question, answer }) => ({ question, answer })) : [];
  } catch {
    return [];
  }
}
