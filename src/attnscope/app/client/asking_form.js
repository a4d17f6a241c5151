// What is asked: a model, documents, a question about them, and how the answer is to be written.

import { TOKENS } from "/client/chat_link.js";
import { Documents } from "/client/documents.js";
import { element, thousands } from "/views/drawing.js";

/** @typedef {import("/client/chat_link.js").Asked} Asked */

const [MOST_TOKENS, MOST_TEMPERATURE] = [1000, 2];
const DRAWING = "At a temperature of 0 the likeliest token is taken each time; above it tokens are drawn, and the seed repeats them.";
const NOBODY_WRITES =
  "None of the models that are served here writes text: start the server with one that does, such as attnscope serve HuggingFaceTB/SmolLM2-135M-Instruct.";

/** A number by its name. @param {string} label @param {number} least @param {number} most @param {number} step */
const numberBox = (label, least, most, step) =>
  element("input", { type: "number", ariaLabel: label, min: String(least), max: String(most), step: String(step) });

/** What stands in a box, or something else where there is no number. @param {HTMLInputElement} box @param {number} otherwise */
const numberIn = (box, otherwise) => (box.value.trim() && Number.isFinite(Number(box.value)) ? Number(box.value) : otherwise);

/** The form of a question. It says what to ask by calling `ask`. */
export class AskingForm {
  #asked = null;
  /** What was asked and answered before. @type {import("/client/chat_link.js").Turn[]} */
  #turns = [];

  /** @param {{models: any[], limits: Record<string, number>, ask: (asked: Asked) => void}} given */
  constructor({ models, limits, ask }) {
    this.models = models.filter(({ writes }) => writes);
    this.limits = limits;
    this.send = ask;
    this.model = element(
      "select",
      { ariaLabel: "Model", onchange: () => this.#describe() },
      ...this.models.map(({ name }) => element("option", { value: name }, name)),
    );
    this.about = element("span", { className: "quiet about-model" });
    this.documents = new Documents({
      limits: { documents: limits.documents, context: limits.context },
      changed: () => this.#edited(),
      complain: (sentence) => this.complain(sentence),
    });
    this.question = this.#box("Question", "Ask a question");
    this.given = this.#box("Given answer", "Leave it empty to have the model write one");
    this.earlier = element("div", { className: "earlier" });
    this.tokens = numberBox("Tokens at most", 1, MOST_TOKENS, 1);
    this.temperature = numberBox("Temperature", 0, MOST_TEMPERATURE, 0.1);
    this.seed = numberBox("Seed", 0, 2 ** 32 - 1, 1);
    for (const box of [this.tokens, this.temperature, this.seed]) box.addEventListener("input", () => this.#edited());
    const label = (words, input) => element("label", {}, element("span", { className: "quiet" }, words), input);
    const numbers = [label("Tokens at most", this.tokens), label("Temperature", this.temperature), label("Seed", this.seed)];
    this.options = element(
      "details",
      { className: "how" },
      element("summary", {}, "How it answers"),
      element("div", { className: "numbers" }, ...numbers),
      element("p", { className: "quiet" }, DRAWING),
      label("Or explain an answer that is there, such as another model’s", this.given),
    );
    this.button = element("button", { type: "submit", className: "look", title: "Ctrl+Enter" }, "Ask");
    this.further = element(
      "button",
      { type: "button", hidden: true, title: "Keep this question and its answer, and ask another one" },
      "Ask further",
    );
    this.complaint = element("p", { className: "complaint", role: "alert", hidden: true });
    const chosen = element("div", { className: "chosen" }, label("Model", this.model), this.about);
    this.node = element(
      "form",
      { className: "question", noValidate: true },
      element("div", { className: "asking" }, chosen),
      this.documents.node,
      this.earlier,
      this.question,
      element("div", { className: "act" }, this.button, this.further),
      this.options,
      this.complaint,
    );
    this.node.addEventListener("submit", (event) => (event.preventDefault(), this.ask()));
    this.node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.ask();
    });
    this.button.disabled = !this.models.length;
    if (!this.models.length) this.complain(NOBODY_WRITES);
    this.#describe();
  }

  /** What stands in the form. @returns {Asked} */
  get asked() {
    return {
      model: this.model.value,
      question: this.question.value,
      documents: this.documents.documents,
      turns: this.#turns,
      answer: this.given.value.trim() ? this.given.value : null,
      tokens: Math.round(numberIn(this.tokens, TOKENS)),
      temperature: numberIn(this.temperature, 0),
      seed: Math.round(numberIn(this.seed, 0)),
    };
  }

  /** Puts a question into the form. @param {Partial<Asked>} asked @returns {boolean} whether its model is served here */
  fill({ model, question = "", documents = [], turns = [], answer = null, tokens = TOKENS, temperature = 0, seed = 0 }) {
    const served = model === undefined || this.models.some(({ name }) => name === model);
    if (served && model !== undefined) this.model.value = model;
    [this.question.value, this.given.value] = [question, answer ?? ""];
    [this.tokens.value, this.temperature.value, this.seed.value] = [tokens, temperature, seed].map(String);
    this.options.open = answer !== null || temperature > 0;
    this.documents.fill(documents);
    this.#turns = turns;
    this.#showTurns();
    this.#describe();
    return served;
  }

  /** Asks for what stands in the form, or says what is missing. */
  ask() {
    const { asked } = this;
    const wrong = this.#wrong(asked);
    if (this.button.disabled) return undefined;
    if (wrong) return this.complain(wrong);
    return this.send(asked);
  }

  /** @param {Asked} asked */
  #wrong({ question, answer, tokens, temperature }) {
    const limit = this.limits.characters;
    const long = [question, answer ?? ""].find(({ length }) => length > limit);
    if (!question.trim()) return "Type a question first.";
    if (long) return `This text has ${thousands(long.length)} characters, and at most ${thousands(limit)} are read: shorten it.`;
    if (this.documents.complaint) return this.documents.complaint;
    if (tokens < 1 || tokens > MOST_TOKENS) return `An answer has from 1 to ${thousands(MOST_TOKENS)} tokens.`;
    if (temperature < 0 || temperature > MOST_TEMPERATURE) return `The temperature is from 0 to ${MOST_TEMPERATURE}.`;
    return "";
  }

  /** Says what is wrong, with what can be done about it; nothing takes it away. @param {string} [sentence] @param {HTMLElement[]} actions */
  complain(sentence = "", ...actions) {
    this.complaint.hidden = !sentence;
    this.complaint.replaceChildren(sentence, ...actions.flatMap((action) => [" ", action]));
  }

  /** Shows which question is answered, so that an edited one is seen to be new. @param {Asked | null} asked */
  settled(asked) {
    this.#asked = asked && JSON.stringify(asked);
    this.#compare();
  }

  /** Keeps a question and its answer, and makes room for the next question. @param {import("/client/chat_link.js").Turn} turn */
  goOn(turn) {
    this.#turns = [...this.#turns, turn];
    this.#showTurns();
    [this.question.value, this.given.value] = ["", ""];
    this.#edited();
    this.question.focus();
  }

  #showTurns() {
    const turns = this.#turns.map(({ question, answer }) =>
      element("p", { dir: "auto" }, element("b", {}, question), " ", element("span", { className: "quiet" }, answer)),
    );
    const forget = () => ((this.#turns = []), this.#showTurns(), this.#edited());
    const away = element("button", { type: "button", className: "plain-button", onclick: forget }, "Begin anew");
    this.earlier.replaceChildren(...turns, ...(turns.length ? [away] : []));
  }

  #box(label, hint) {
    const box = element("textarea", { rows: 2, ariaLabel: label, placeholder: hint, spellcheck: false, dir: "auto" });
    box.addEventListener("input", () => this.#edited());
    return box;
  }

  #describe() {
    const model = this.models.find(({ name }) => name === this.model.value);
    const longest = model?.longest ? `up to ${thousands(model.longest)} tokens` : "";
    this.about.textContent = [model?.size, longest].filter(Boolean).join(" · ");
    this.#compare();
  }

  #edited() {
    if (this.models.length) this.complain();
    this.#compare();
  }

  #compare() {
    this.node.dataset.new = String(JSON.stringify(this.asked) !== this.#asked);
  }
}
