// The answer: what the model predicts, as bars, and what is to be known about it.

import { element, percent } from "/views/drawing.js";

/** A label on one line, with what cannot be seen made visible. @param {string} label */
const seen = (label) => (label.trim() ? label.trim().replace(/\n/g, "⏎") : JSON.stringify(label).slice(1, -1).replace(/ /g, "␣") || "(nothing)");

/** The answer of one text, read out when it comes. */
export class Answer {
  constructor() {
    this.node = element("section", { className: "answer", ariaLive: "polite", ariaLabel: "Prediction" });
    this.carried = element("p", { className: "carried" });
  }

  /** Shows an answer, or none. @param {{prediction: {label: string, probability: number}[], more_outcomes: number, sentences: string[], summary?: string} | null} reply */
  show(reply) {
    this.tell("");
    if (!reply) return this.node.replaceChildren();
    const quiet = (reply.sentences ?? []).map((sentence) => element("p", { className: "quiet" }, sentence));
    this.node.replaceChildren(...predicted(reply.prediction ?? [], reply.more_outcomes ?? 0, reply.summary), this.carried, ...quiet);
  }

  /** Says which tokens carried the answer. @param {string | null} sentence */
  tell(sentence) {
    this.carried.textContent = sentence ?? "";
  }
}

/** The outcomes as bars, or in words why there are none. @returns {HTMLElement[]} */
function predicted(outcomes, more, summary) {
  if (summary) return [element("p", {}, summary)];
  if (!outcomes.length) return [element("p", { className: "quiet" }, "No prediction: this model has no head that answers here, or the record was made from weights alone. What follows shows where its read-out looks.")];
  const [{ label, probability }] = outcomes;
  if (outcomes.length === 1 && !more) return [element("p", { className: "prediction" }, "Output ", element("b", {}, seen(label)), ` ${probability.toFixed(4)}`)];
  const rows = outcomes.map((outcome) => {
    const bar = element("progress", { max: 1, value: outcome.probability, ariaHidden: "true" });
    return element("tr", {}, element("th", { scope: "row", dir: "auto", title: outcome.label }, seen(outcome.label)), element("td", {}, bar), element("td", {}, percent(outcome.probability)));
  });
  const table = element("table", { className: "outcomes" }, element("caption", { className: "hidden" }, "Probability of each outcome"), element("tbody", {}, ...rows));
  const told = [element("p", { className: "prediction" }, "Predicts ", element("b", { dir: "auto" }, seen(label)), ` with ${percent(probability)}`), table];
  if (more) told.push(element("p", { className: "quiet" }, `${more} more outcomes are not shown.`));
  return told;
}
