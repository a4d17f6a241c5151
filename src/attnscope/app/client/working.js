// Long work: a thin bar, what is being done, and a way out; never two at a time.

import { element, thousands } from "/views/drawing.js";

const PATIENCE = 200; // milliseconds before work is worth a word

/** One piece of work at a time: newer work ends what is older. */
export class Working {
  #now = null;

  /** @param {(busy: boolean) => void} busy is told when work begins and ends */
  constructor(busy) {
    this.busy = busy;
    this.bar = element("progress", { className: "thin", ariaLabel: "Progress", hidden: true });
    this.words = element("span", { className: "quiet" });
    this.cancel = element("button", { type: "button", className: "cancel", onclick: () => this.stop() }, "Cancel");
    this.node = element("div", { className: "working", hidden: true }, this.words, this.cancel);
  }

  /** Ends what is under way. */
  stop() {
    this.#now?.abort();
  }

  /** Does some work, unless newer work ends it; gives what it gives, or nothing when it was ended.
   * @template Result @param {string} doing @param {(signal: AbortSignal, tell: (progress: {done: number, of: number, doing: string}) => void) => Promise<Result>} work
   * @param {() => void} cancelled what is done when the reader ends it @returns {Promise<Result | undefined>} */
  async run(doing, work, cancelled) {
    const mine = new AbortController();
    this.#now?.abort("newer");
    this.#now = mine;
    this.bar.hidden = this.node.hidden = true;
    this.busy(true);
    const shown = setTimeout(() => this.node.hidden && this.#show(doing), PATIENCE);
    try {
      return await work(mine.signal, (progress) => this.#now === mine && this.#tell(progress));
    } catch (error) {
      if (!mine.signal.aborted) throw error;
      if (mine.signal.reason !== "newer") cancelled();
    } finally {
      clearTimeout(shown);
      if (this.#now === mine) this.#end();
    }
  }

  #show(doing) {
    this.bar.removeAttribute("value");
    this.words.textContent = `${doing} …`;
    this.bar.hidden = this.node.hidden = false;
  }

  #tell({ done, of, doing }) {
    this.#show(doing);
    if (!(of > 0)) return;
    this.bar.max = of;
    this.bar.value = done;
    this.words.textContent = `${doing} · ${thousands(done)} of ${thousands(of)}`;
  }

  #end() {
    this.#now = null;
    this.bar.hidden = this.node.hidden = true;
    this.busy(false);
  }
}
