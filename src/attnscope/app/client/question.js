// What is asked: a model, a text or a pair, and texts worth trying.

import { element, percent, thousands } from "/views/drawing.js";

// ---- Which methods are asked: a check box for each, by what it needs.

const NEEDS = { weights: "From the weights", gradients: "With gradients", model: "Running the model again" };
const WITHOUT_MODEL = "needs the model, and a record was opened without it";

/** @typedef {{name: string, needs: "weights" | "gradients" | "model", about: string}} Method */

/** The methods of one text, folded until wanted. It says which are chosen by calling `choose`. */
export class Methods {
  /** @param {{methods: Method[], choose: (names: string[]) => void}} given */
  constructor({ methods, choose }) {
    this.boxes = methods.map(({ name, needs, about }) => {
      const box = element("input", { type: "checkbox", value: name, onchange: () => choose(this.chosen) });
      const why = element("span", { className: "quiet" });
      const label = element("label", { className: "check", title: about }, box, name, why);
      return { name, needs, box, label, why };
    });
    const groups = Object.entries(NEEDS).map(([needs, words]) => {
      const some = this.boxes.filter((one) => one.needs === needs);
      return element(
        "div",
        { className: "group", role: "group", ariaLabel: words, hidden: !some.length },
        element("span", { className: "quiet" }, words),
        element("div", {}, ...some.map(({ label }) => label)),
      );
    });
    this.summary = element("summary", {});
    this.node = element("details", { className: "methods" }, this.summary, ...groups);
  }

  /** The methods that are ticked, in their order. @returns {string[]} */
  get chosen() {
    return this.boxes.filter(({ box }) => box.checked).map(({ name }) => name);
  }

  /** Ticks the methods that are asked of a text, and says why others are off.
   * @param {string[]} chosen @param {{usual: string[], hasModel: boolean, because?: string}} text `usual`: those it is asked by itself; others are slow */
  show(chosen, { usual, hasModel, because = ", because this text is long" }) {
    let isLong = false;
    for (const { name, needs, box, why, label } of this.boxes) {
      const lacking = needs === "model" && !hasModel;
      const slow = !lacking && !usual.includes(name);
      isLong ||= slow;
      box.checked = chosen.includes(name) && !lacking;
      box.disabled = lacking;
      label.classList.toggle("lacking", lacking);
      why.textContent = lacking ? ` ${WITHOUT_MODEL}` : slow ? " slow" : "";
    }
    const off = isLong ? ` · slow ones are off at first${because}` : "";
    this.summary.replaceChildren(
      "Methods ",
      element("span", { className: "quiet" }, `${this.chosen.length} of ${this.boxes.length}${off}`),
    );
  }
}

// ---- The answer: what the model predicts, as bars, and what is to be known about it.

/** A label on one line, with what cannot be seen made visible. @param {string} label */
export const visible = (label) =>
  label.trim() ? label.trim().replace(/\n/g, "⏎") : JSON.stringify(label).slice(1, -1).replace(/ /g, "␣") || "(nothing)";

/** The answer of one text, read out when it comes; between the prediction and its reasons stands what is explained. */
export class Answer {
  /** @param {HTMLElement} explaining */
  constructor(explaining) {
    this.outcomes = element("div", { className: "predicted" });
    this.carried = element("p", { className: "carried" });
    this.quiet = element("div", {});
    const parts = [this.outcomes, explaining, this.carried, this.quiet];
    this.node = element("section", { className: "answer", ariaLive: "polite", ariaLabel: "Prediction" }, ...parts);
  }

  /** Shows an answer, or none. @param {{prediction: {label: string, probability: number}[], more_outcomes: number, sentences: string[], summary?: string} | null} reply */
  show(reply) {
    this.tell("");
    const quiet = (reply?.sentences ?? []).map((sentence) => element("p", { className: "quiet" }, sentence));
    this.outcomes.replaceChildren(...(reply ? predicted(reply.prediction ?? [], reply.more_outcomes ?? 0, reply.summary) : []));
    this.quiet.replaceChildren(...quiet);
  }

  /** Says which tokens carried the answer. @param {string | null} sentence */
  tell(sentence) {
    this.carried.textContent = sentence ?? "";
  }
}

/** The outcomes as bars, or in words why there are none. @returns {HTMLElement[]} */
function predicted(outcomes, more, summary) {
  if (summary) return [element("p", {}, summary)];
  if (!outcomes.length)
    return [
      element(
        "p",
        { className: "quiet" },
        "No prediction: this model has no head that answers here, or the record was made from weights alone. What follows shows where its read-out looks.",
      ),
    ];
  const [{ label, probability }] = outcomes;
  if (outcomes.length === 1 && !more)
    return [element("p", { className: "prediction" }, "Output ", element("b", {}, visible(label)), ` ${probability.toFixed(4)}`)];
  const rows = outcomes.map((outcome) => {
    const bar = element("progress", { max: 1, value: outcome.probability, ariaHidden: "true" });
    return element(
      "tr",
      {},
      element("th", { scope: "row", dir: "auto", title: outcome.label }, visible(outcome.label)),
      element("td", {}, bar),
      element("td", {}, percent(outcome.probability)),
    );
  });
  const table = element(
    "table",
    { className: "outcomes" },
    element("caption", { className: "hidden" }, "Probability of each outcome"),
    element("tbody", {}, ...rows),
  );
  const told = [
    element("p", { className: "prediction" }, "Predicts ", element("b", { dir: "auto" }, visible(label)), ` with ${percent(probability)}`),
    table,
  ];
  if (more) told.push(element("p", { className: "quiet" }, `${more} more outcomes are not shown.`));
  return told;
}

/** @typedef {{name: string, task: string, size: string, longest: number | null, pairs: boolean,
 *   examples: {text: string, second: string | null, why: string}[]}} Model
 *  @typedef {{model: string, text: string, second: string | null}} Asked */

/** What a model is for, in words. */
const TASKS = { masked_lm: "masked language model", causal_lm: "language model", encoder_decoder: "encoder and decoder" };

/** A form for one text. It says what to look at by calling `look`. */
export class Question {
  #models;
  #limit;
  #asked = null;

  /** @param {{models: Model[], limit: number, look: (asked: Asked) => void, actions: HTMLElement[]}} given `limit`: characters; `actions`: what else can be done */
  constructor({ models, limit, look, actions }) {
    this.#models = models;
    this.#limit = limit;
    this.look = look;
    this.model = element(
      "select",
      { ariaLabel: "Model", onchange: () => this.#modelChosen() },
      ...models.map(({ name }) => element("option", { value: name }, name)),
    );
    this.about = element("span", { className: "quiet about-model" });
    this.text = this.#box("Text", "Type or paste a text");
    this.second = this.#box("Second text", "The text that is read together with the first");
    this.second.hidden = true;
    this.pair = element("button", { type: "button", onclick: () => this.#togglePair() }, "Second text");
    this.button = element("button", { type: "submit", className: "look", title: "Ctrl+Enter" }, "Look");
    this.examples = element("div", { className: "examples", role: "group", ariaLabel: "Examples" });
    this.why = element("p", { className: "quiet why" });
    this.complaint = element("p", { className: "complaint", role: "alert", hidden: true });
    this.opened = element("p", { className: "from-file", hidden: true });
    this.typed = element(
      "div",
      { className: "typed" },
      this.text,
      this.second,
      element("div", { className: "act" }, this.button, this.pair),
      this.examples,
      this.why,
    );
    this.chosen = element(
      "div",
      { className: "chosen" },
      element("label", {}, element("span", { className: "quiet" }, "Model"), this.model),
      this.about,
    );
    const head = element("div", { className: "asking" }, this.chosen, this.opened, element("div", { className: "openers" }, ...actions));
    this.node = element("form", { className: "question", noValidate: true }, head, this.typed, this.complaint);
    this.node.addEventListener("submit", (event) => (event.preventDefault(), this.ask()));
    this.node.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.ask();
    });
    this.#describe();
  }

  /** What stands in the form. @returns {Asked} */
  get asked() {
    return { model: this.model.value, text: this.text.value, second: this.second.hidden ? null : this.second.value };
  }

  /** Puts a text into the form. @param {Partial<Asked>} asked */
  fill({ model, text = "", second = null }) {
    if (model && this.#described(model)) this.model.value = model;
    this.text.value = text;
    this.second.value = second ?? "";
    this.second.hidden = second === null || !this.#described(this.model.value)?.pairs;
    this.#describe();
  }

  /** Asks for what stands in the form, or says what is missing. */
  ask() {
    const { model, text, second } = this.asked;
    const letters = text.length + (second?.length ?? 0);
    if (!text.trim()) return this.complain("Type a text first, or take one of the examples.");
    if (second !== null && !second.trim()) return this.complain("The second text is empty: type it, or take it away.");
    if (letters > this.#limit)
      return this.complain(`This text has ${thousands(letters)} characters, and at most ${thousands(this.#limit)} are read: shorten it.`);
    this.look({ model, text, second });
  }

  /** Says what is wrong, with what can be done about it; nothing takes it away.
   * @param {string} [sentence] @param {HTMLElement[]} actions */
  complain(sentence = "", ...actions) {
    this.complaint.hidden = !sentence;
    this.complaint.replaceChildren(sentence, ...actions.flatMap((action) => [" ", action]));
  }

  /** Shows which text is looked at, so that an edited one is seen to be new. @param {Asked | null} asked */
  settled(asked) {
    this.#asked = asked && JSON.stringify(asked);
    this.#compare();
  }

  /** Shows a file in place of the form, or the form again. @param {string} [sentence] @param {HTMLElement[]} actions */
  showOpened(sentence = "", ...actions) {
    this.opened.hidden = !sentence;
    this.typed.hidden = this.chosen.hidden = Boolean(sentence);
    this.opened.replaceChildren(sentence, ...actions);
  }

  #described(name) {
    return this.#models.find((model) => model.name === name);
  }

  #box(label, hint) {
    const box = element("textarea", { rows: 2, ariaLabel: label, placeholder: hint, spellcheck: false, dir: "auto" });
    box.addEventListener("input", () => (this.complain(), this.#compare()));
    return box;
  }

  #modelChosen() {
    this.#describe();
    if (!this.#described(this.model.value)?.pairs) this.second.hidden = true;
    if (this.text.value.trim()) this.ask();
  }

  #togglePair() {
    this.second.hidden = !this.second.hidden;
    this.#compare();
    if (!this.second.hidden) this.second.focus();
  }

  /** Says what the model is, and which texts are worth trying on it. */
  #describe() {
    const model = this.#described(this.model.value);
    const longest = model?.longest ? `up to ${thousands(model.longest)} tokens` : "";
    this.about.textContent = [TASKS[model?.task] ?? model?.task, model?.size, longest].filter(Boolean).join(" · ");
    this.pair.hidden = !model?.pairs;
    this.examples.replaceChildren(...(model?.examples ?? []).map((example) => this.#example(model.name, example)));
    this.#compare();
  }

  #example(model, { text, second, why }) {
    const words = second ? `${text} / ${second}` : text;
    const choose = () => (this.fill({ model, text, second }), this.ask());
    const chip = element(
      "button",
      { type: "button", className: "example", title: why, ariaDescription: why, dir: "auto", onclick: choose },
      words,
    );
    chip.dataset.asked = JSON.stringify({ model, text, second: second ?? null });
    const tell = () => (this.why.textContent = why);
    for (const coming of ["pointerenter", "focus"]) chip.addEventListener(coming, tell);
    for (const going of ["pointerleave", "blur"]) chip.addEventListener(going, () => this.#compare());
    return chip;
  }

  /** Marks the example that is in the form, gives its reason, and tells whether the form holds something new. */
  #compare() {
    const asked = JSON.stringify(this.asked);
    this.pair.textContent = this.second.hidden ? "Second text" : "Without second text";
    this.node.dataset.new = String(asked !== this.#asked);
    this.why.textContent = "";
    for (const chip of /** @type {Iterable<HTMLElement>} */ (this.examples.children)) {
      chip.setAttribute("aria-pressed", String(chip.dataset.asked === asked));
      if (chip.dataset.asked === asked) this.why.textContent = chip.title;
    }
  }
}
