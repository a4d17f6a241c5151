// What is explained: which outcome, why not another, and by tokens, words or sentences.

import { LEVELS } from "/client/address.js";
import { visible } from "/client/question.js";
import { element } from "/views/drawing.js";

/** @typedef {{target: string | null, against: string | null}} Outcomes no target: the prediction
 *  @typedef {import("/client/address.js").Level} Level */

/** The prediction, whatever else it could have been. @type {Readonly<Outcomes>} */
export const PREDICTION = Object.freeze({ target: null, against: null });

const option = (value, words) => element("option", { value }, words);

/** Three choices beside the prediction. It says what is asked by calling `ask`, and by what by calling `divide`. */
export class Explaining {
  #outcomes = [];

  /** @param {{ask: (outcomes: Outcomes) => void, divide: (by: Level) => void}} given */
  constructor({ ask, divide }) {
    const asked = () => ask({ target: this.target.value || null, against: this.against.value || null });
    this.target = element("select", { ariaLabel: "Explain", title: "The outcome whose reasons are shown", dir: "auto", onchange: asked });
    this.against = element("select", {
      ariaLabel: "and not",
      title: "Another outcome: why is it not that one?",
      dir: "auto",
      onchange: asked,
    });
    this.by = element(
      "select",
      { ariaLabel: "by", title: "What gets one score each", onchange: () => divide(/** @type {Level} */ (this.by.value)) },
      ...LEVELS.map((level) => option(level, level)),
    );
    const label = (words, select) => element("label", {}, element("span", { className: "quiet" }, words), select);
    this.division = label("by", this.by);
    this.choices = [label("Explain", this.target), label("and not", this.against)];
    this.node = element(
      "div",
      { className: "explaining", role: "group", ariaLabel: "What is explained", hidden: true },
      ...this.choices,
      this.division,
    );
  }

  /** Shows what is asked of a text; nothing where there is none.
   * @param {{outcomes: string[], target: string | null, against: string | null} | null} reply @param {Level} by */
  show(reply, by) {
    this.node.hidden = !reply;
    if (!reply) return;
    // a link may ask for an outcome that is not among the best
    const known = new Set([...reply.outcomes, ...[reply.target, reply.against].filter((outcome) => outcome !== null)]);
    this.#outcomes = [...known];
    const single = this.#outcomes.length < 2;
    for (const choice of this.choices) choice.hidden = single;
    this.division.firstElementChild.textContent = single ? "Scores by" : "by";
    const [predicted] = this.#outcomes;
    const explained = reply.target ?? predicted;
    // the prediction has no value of its own: the next text may have another
    this.target.replaceChildren(...this.#outcomes.map((outcome) => option(outcome === predicted ? "" : outcome, visible(outcome))));
    this.target.value = explained === predicted ? "" : explained;
    const others = this.#outcomes.filter((outcome) => outcome !== explained);
    this.against.replaceChildren(option("", "–"), ...others.map((outcome) => option(outcome, visible(outcome))));
    this.against.value = reply.against ?? "";
    this.by.value = by;
  }
}
