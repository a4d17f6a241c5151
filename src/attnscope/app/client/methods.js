// Which methods are asked: a check box for each, by what it needs.

import { element } from "/views/drawing.js";

const NEEDS = { weights: "From the weights", gradients: "With gradients", model: "Running the model again" };
const WITHOUT_MODEL = "needs the model, and a record was opened without it";

/** The methods of one text, folded until wanted. It says which are chosen by calling `choose`. */
export class Methods {
  /** @param {{methods: {name: string, needs: "weights" | "gradients" | "model", about: string}[], choose: (names: string[]) => void}} given */
  constructor({ methods, choose }) {
    this.boxes = methods.map(({ name, needs, about }) => {
      const box = element("input", { type: "checkbox", value: name, onchange: () => choose(this.chosen) });
      const why = element("span", { className: "quiet" });
      const label = element("label", { className: "check", title: about }, box, name, why);
      return { name, needs, box, label, why };
    });
    const groups = Object.entries(NEEDS).map(([needs, words]) => {
      const some = this.boxes.filter((one) => one.needs === needs);
      return element("div", { className: "group", role: "group", ariaLabel: words, hidden: !some.length }, element("span", { className: "quiet" }, words), element("div", {}, ...some.map(({ label }) => label)));
    });
    this.summary = element("summary", {});
    this.node = element("details", { className: "methods" }, this.summary, ...groups);
  }

  /** The methods that are ticked, in their order. @returns {string[]} */
  get chosen() {
    return this.boxes.filter(({ box }) => box.checked).map(({ name }) => name);
  }

  /** Ticks the methods that are asked of a text, and says why others are off.
   * @param {string[]} chosen @param {{usual: string[], hasModel: boolean}} text `usual`: those it is asked by itself; others are slow */
  show(chosen, { usual, hasModel }) {
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
    const off = isLong ? " · slow ones are off at first, because this text is long" : "";
    this.summary.replaceChildren("Methods ", element("span", { className: "quiet" }, `${this.chosen.length} of ${this.boxes.length}${off}`));
  }
}
