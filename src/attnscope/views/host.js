// The host of a saved page: gives each view its model and its element, as a notebook widget would.

import { Model, fitting } from "./view_model.js";

/** Bytes out of letters of seven bits each: eight letters are seven bytes; 0, 13 and 60 stand 128 places higher.
 * @param {string} text */
function fromSevenBits(text) {
  const bytes = new Uint8Array((text.length >> 3) * 7);
  let held = 0;
  for (let letter = 0, place = 0; letter < text.length; letter++) {
    const bits = text.charCodeAt(letter) & 127;
    const within = letter & 7;
    if (within) bytes[place++] = (held << within) | (bits >> (7 - within));
    held = bits;
  }
  return bytes;
}

const READERS = {
  base64: (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)),
  seven: fromSevenBits,
};

/** The arrays of a view, each decoded when it is asked for. @param {Element} el */
function blobsOf(el) {
  const blobs = {};
  for (const script of /** @type {NodeListOf<HTMLScriptElement>} */ (el.querySelectorAll("script[data-blob]"))) {
    const { blob, code, size } = script.dataset;
    // letters of seven bits may end in zeros that belong to nothing
    Object.defineProperty(blobs, blob, { get: () => READERS[code](script.textContent).subarray(0, Number(size)), enumerable: true });
  }
  return blobs;
}

globalThis.attnscopeHost = {
  /** Every model of the page by the place of its view, so that whoever opens the page can read what is selected. */
  models: [],

  /** Draws every view of this name. @param {string} name @param {(given: {model: Model, el: Element}) => unknown} render */
  mount(name, render) {
    const kept = this.fromAddress();
    /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-view]")).forEach((el, place) => {
      if (el.dataset.view !== name) return;
      const values = JSON.parse(el.querySelector("script").textContent);
      const model = new Model({ ...values, ...fitting(values, kept[place]), blobs: blobsOf(el) }, () => this.keepInAddress());
      el.replaceChildren();
      this.models[place] = model;
      render({ model, el });
    });
  },

  /** What a link says was selected, by the place of each view; a link that says nonsense says nothing. */
  fromAddress() {
    try {
      const kept = JSON.parse(decodeURIComponent(location.hash.slice(1)) || "[]");
      return Array.isArray(kept) ? kept : [];
    } catch {
      return [];
    }
  },

  keepInAddress() {
    const states = Array.from(this.models, (model) => model?.state() ?? {});
    try {
      history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(states))}`);
    } catch {
      // a sandboxed page has no address of its own
    }
  },
};
