// The documents that a question is about: pasted, typed, or read from text files here, in the browser.

import { element, thousands } from "/views/drawing.js";

/** @typedef {{title: string, text: string}} Document */

const TEXTS = /\.(txt|md|markdown|csv|json|jsonl|html?|tex|rst|log)$/i;
/** Between two documents that are pasted together. */
const BETWEEN = /^\s*(?:-{3,}|={3,}|\*{3,})\s*$/m;

/** The documents in a text that was pasted: parts between lines of dashes. @param {string} text @returns {Document[]} */
export function pastedDocuments(text) {
  const parts = text.split(new RegExp(BETWEEN, "gm")).filter((part) => part.trim());
  return parts.map((part) => ({ title: "", text: part.trim() }));
}

/** A list of documents. It says that something was changed by calling `changed`. */
export class Documents {
  #rows = [];

  /** @param {{limits: {documents: number, context: number}, changed: () => void, complain: (sentence: string) => void}} given */
  constructor({ limits, changed, complain }) {
    this.limits = limits;
    this.changed = changed;
    this.complain = complain;
    this.chooser = element("input", {
      type: "file",
      multiple: true,
      hidden: true,
      onchange: () => this.read([...this.chooser.files]).then(() => (this.chooser.value = "")),
    });
    this.list = element("div", { className: "documents" });
    this.more = element("button", { type: "button", onclick: () => this.#add({ title: "", text: "" }).text.focus() }, "Add a document");
    const files = element("button", { type: "button", onclick: () => this.chooser.click() }, "Open text files");
    this.summary = element("summary", {});
    this.node = element(
      "details",
      { className: "reading-list", open: true },
      this.summary,
      this.list,
      element("div", { className: "act" }, this.more, files, this.chooser),
    );
    this.#count();
  }

  /** What stands there; what is empty is none. @returns {Document[]} */
  get documents() {
    return this.#rows
      .map(({ title, text }) => ({ title: title.value.trim(), text: text.value }))
      .filter(({ title, text }) => text.trim() || title);
  }

  /** Puts documents in place of those that are there. @param {Document[]} documents */
  fill(documents) {
    for (const row of [...this.#rows]) this.#remove(row);
    for (const one of documents.length ? documents : [{ title: "", text: "" }]) this.#add(one);
  }

  /** What is wrong with them, or nothing. */
  get complaint() {
    const { documents, limits } = this;
    const letters = documents.reduce((sum, { text }) => sum + text.length, 0);
    const empty = documents.find(({ text }) => !text.trim());
    if (empty) return `The document “${empty.title}” is empty: paste its text, or take it away.`;
    if (documents.length > limits.documents)
      return `There are ${documents.length} documents, and at most ${limits.documents} are read: take some away.`;
    if (letters > limits.context)
      return `These documents have ${thousands(letters)} characters, and at most ${thousands(limits.context)} are read: shorten them.`;
    return "";
  }

  /** Reads text files into documents, each called by its name. @param {File[]} files */
  async read(files) {
    const other = files.find(({ name, type }) => !TEXTS.test(name) && !type.startsWith("text/"));
    if (other) return this.complain(`“${other.name}” is no text file: open .txt or .md files, or paste the text.`);
    const large = files.find(({ size }) => size > 4 * this.limits.context);
    if (large) return this.complain(`“${large.name}” is too large: at most ${thousands(this.limits.context)} characters are read.`);
    this.#dropEmpty();
    for (const file of files) this.#add({ title: file.name.replace(TEXTS, ""), text: await file.text() });
    return this.changed();
  }

  #dropEmpty() {
    for (const row of [...this.#rows]) if (!row.text.value.trim() && !row.title.value.trim()) this.#remove(row);
  }

  #add({ title, text }) {
    const number = this.#rows.length + 1;
    const row = {
      title: element("input", {
        type: "text",
        ariaLabel: `Title of document ${number}`,
        placeholder: `Document ${number}`,
        value: title,
        maxLength: 200,
      }),
      text: element("textarea", {
        rows: 3,
        ariaLabel: `Document ${number}`,
        placeholder: "Paste a text",
        spellcheck: false,
        dir: "auto",
        value: text,
      }),
      node: null,
    };
    const away = element(
      "button",
      {
        type: "button",
        className: "plain-button",
        ariaLabel: `Take document ${number} away`,
        onclick: () => (this.#remove(row), this.changed()),
      },
      "Take away",
    );
    row.node = element("div", { className: "document-row" }, element("div", { className: "document-head" }, row.title, away), row.text);
    for (const box of [row.title, row.text]) box.addEventListener("input", () => (this.#count(), this.changed()));
    row.text.addEventListener("paste", (event) => this.#pasted(event, row));
    this.#rows.push(row);
    this.list.append(row.node);
    this.#count();
    return row;
  }

  /** Several documents that are pasted into an empty one become several. */
  #pasted(event, row) {
    const found = row.text.value.trim() ? [] : pastedDocuments(event.clipboardData?.getData("text/plain") ?? "");
    if (found.length < 2) return;
    event.preventDefault();
    const [first, ...others] = found;
    row.text.value = first.text;
    for (const other of others) this.#add(other);
    this.changed();
  }

  #remove(row) {
    this.#rows.splice(this.#rows.indexOf(row), 1);
    row.node.remove();
    this.#count();
  }

  #count() {
    const { documents } = this;
    const letters = documents.reduce((sum, { text }) => sum + text.length, 0);
    const counted = documents.length === 1 ? "1 document" : `${documents.length || "no"} documents`;
    this.summary.replaceChildren(
      "Documents ",
      element("span", { className: "quiet" }, `${counted}${letters ? ` · ${thousands(letters)} characters` : ""}`),
    );
    this.more.disabled = this.#rows.length >= this.limits.documents;
  }
}
