// What can be taken away from a view: the offline page, the figure, the Python that makes it.

import { codeOf, fileOf } from "/client/server.js";
import { element } from "/views/drawing.js";

const FORMATS = ["svg", "pdf", "png"];
const REFUSED = "This browser does not let the page copy: select the text and copy it.";

/** Hands a file to the reader. @param {{name: string, content: Blob}} file */
function download({ name, content }) {
  const address = URL.createObjectURL(content);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Copies a text; says whether the browser let it. @param {string} text */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Shows a text that was to be copied, so that it can be read, and copied by hand where the browser refuses.
 * @param {string} title @param {string} text */
export async function showCopied(title, text) {
  const done = await copied(text);
  const told = element("p", { className: "quiet", role: "status" }, done ? "Copied." : REFUSED);
  const copy = element(
    "button",
    { type: "button", onclick: async () => (told.textContent = (await copied(text)) ? "Copied." : REFUSED) },
    "Copy",
  );
  const close = element("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const shown = element("pre", { tabIndex: 0, ariaLabel: title }, text);
  const dialog = element(
    "dialog",
    { className: "code", ariaLabel: title, onclose: () => dialog.remove() },
    element("h4", {}, title),
    shown,
    element("div", { className: "act" }, copy, close, told),
  );
  document.body.append(dialog);
  dialog.showModal();
  copy.focus();
}

/** Buttons for the view in sight. */
export class Saving {
  /** @param {{view: () => import("/client/live_view.js").LiveView | null, fail: (error: Error) => void}} given */
  constructor({ view, fail }) {
    this.view = view;
    this.fail = fail;
    const page = this.#button("Save page", (live) => live.asking(async (id) => download(await fileOf(id, "page", { state: live.state }))));
    const python = this.#button("Copy Python", (live) =>
      live.asking(async (id) => showCopied("The same in Python", await codeOf(id, live.state))),
    );
    page.title = "One offline file with this view as it is now";
    const formats = FORMATS.map((format) =>
      this.#button(format.toUpperCase(), (live) =>
        live.asking(async (id) => download(await fileOf(id, "figure", { format, state: live.state }))),
      ),
    );
    const summary = element("summary", {}, "Save figure");
    this.figure = element(
      "details",
      { className: "menu" },
      summary,
      element("div", { className: "formats", role: "group", ariaLabel: "Save figure as" }, ...formats),
    );
    this.figure.addEventListener("keydown", (event) => event.key === "Escape" && this.figure.open && (this.#fold(), summary.focus()));
    this.figure.addEventListener(
      "focusout",
      (event) => this.figure.contains(/** @type {Node | null} */ (event.relatedTarget)) || this.#fold(),
    );
    this.node = element("div", { className: "saving", role: "group", ariaLabel: "Take away", hidden: true }, page, this.figure, python);
  }

  /** Shows what can be done with the view in sight. */
  refresh() {
    this.node.hidden = !this.view();
    this.figure.hidden = !this.view()?.figures;
  }

  #fold() {
    this.figure.open = false;
  }

  #button(words, act) {
    const button = element("button", { type: "button" }, words);
    button.addEventListener("click", async () => {
      this.#fold();
      button.disabled = true;
      try {
        await act(this.view());
      } catch (error) {
        this.fail(error);
      } finally {
        button.disabled = false;
      }
    });
    return button;
  }
}
