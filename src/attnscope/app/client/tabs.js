// Tabs: one for each view, walked through by arrow keys; a view that cannot be had says why.

import { element } from "/views/drawing.js";

const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

/** A row of tabs. It says which was chosen by calling `choose`, and which is looked at by calling `tell`. */
export class Tabs {
  #tabs = [];

  /** @param {{label: string, choose: (name: string) => void, tell: (sentence: string) => void}} given */
  constructor({ label, choose, tell }) {
    Object.assign(this, { choose, tell });
    this.node = element("div", { className: "tabs", role: "tablist", ariaLabel: label });
    this.node.addEventListener("keydown", (event) => this.#pressed(event));
  }

  /** Makes the tabs. @param {{name: string, title: string, why_not: string | null, panel: string}[]} views `panel`: the id of what it shows */
  fill(views) {
    this.#tabs = views.map(({ name, title, why_not: whyNot, panel }) => {
      const tab = element("button", { type: "button", role: "tab", id: `${panel}-tab`, tabIndex: -1, ariaSelected: false, ariaControls: panel, title: whyNot ?? "" }, title);
      tab.dataset.tab = name;
      if (whyNot) tab.setAttribute("aria-disabled", "true");
      for (const coming of ["pointerenter", "focus"]) tab.addEventListener(coming, () => whyNot && this.tell(whyNot));
      for (const going of ["pointerleave", "blur"]) tab.addEventListener(going, () => whyNot && this.tell(""));
      tab.addEventListener("click", () => (whyNot ? this.tell(whyNot) : this.choose(name)));
      return tab;
    });
    this.node.replaceChildren(...this.#tabs);
    this.node.hidden = !this.#tabs.length;
  }

  /** Marks the tab that is shown. @param {string} name */
  select(name) {
    for (const tab of this.#tabs) {
      const on = tab.dataset.tab === name;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
    }
  }

  #pressed(event) {
    const step = STEPS[event.key];
    const from = this.#tabs.indexOf(event.target);
    if (step === undefined || from < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const last = this.#tabs.length - 1;
    const to = Number.isFinite(step) ? (from + step + last + 1) % (last + 1) : step < 0 ? 0 : last;
    this.#tabs[to].focus();
    // a view that cannot be had can still be read about
    if (!this.#tabs[to].hasAttribute("aria-disabled")) this.choose(this.#tabs[to].dataset.tab);
  }
}
