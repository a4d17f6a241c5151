// The headers of the model view: a button for each layer and head, with its mean, which sorts the other axis by its figures.

import { element, written } from "./drawing.js";
import { passFocus } from "./units.js";
import { blob } from "./weights.js";

// ---- The maps of all heads as small pictures: out of their bytes, to any size, on one scale.

/** The pictures of each choice (tokens or words, all or without special tokens), decoded when first looked at. */
export class Thumbnails {
  #model;
  #held = new Map();

  /** @param {{get: (name: string) => any}} model @param {Record<string, DescribedMaps>} described @param {number} heads */
  constructor(model, described, heads) {
    this.#model = model;
    this.described = described;
    this.heads = heads;
  }

  /** The name of what is chosen, as far as there is something to choose. @param {boolean} words @param {boolean} special */
  named(words, special) {
    const level = words && "words" in this.described ? "words" : "tokens";
    return !special && `${level}-quiet` in this.described ? `${level}-quiet` : level;
  }

  /** The codes of all pictures: the square root of a weight, in 255 steps. @param {string} name @returns {Promise<Uint8Array>} */
  codes(name) {
    if (!this.#held.has(name))
      this.#held.set(
        name,
        blob(this.#model, name).then((buffer) => new Uint8Array(buffer)),
      );
    return this.#held.get(name);
  }

  /** The pixels of one head. @param {Uint8Array} codes @param {string} name @param {number} layer @param {number} head */
  of(codes, name, layer, head) {
    const [rows, columns] = this.described[name].shape;
    const start = (layer * this.heads + head) * rows * columns;
    return codes.subarray(start, start + rows * columns);
  }
}

/** The weight that a code stands for. @param {number} code */
export const weightOf = (code) => (code / 255) ** 2;

/** The colour of every code as a pixel, linear from 0 to 1 or by the square root. @param {string[]} sequential @param {boolean} root */
export function colourTable(sequential, root) {
  const table = new Uint32Array(256);
  const bytes = new Uint8Array(table.buffer);
  for (let code = 0; code < 256; code++) {
    const colour = sequential[root ? code : Math.round(255 * weightOf(code))];
    for (const place of [0, 1, 2]) bytes[4 * code + place] = parseInt(colour.slice(1 + 2 * place, 3 + 2 * place), 16);
    bytes[4 * code + 3] = 255;
  }
  return table;
}

/** Which of `count` codes fall on each of `side` pixels: from, and up to. @param {number} count @param {number} side */
function spansOf(count, side) {
  const [from, to] = [new Int32Array(side), new Int32Array(side)];
  for (let place = 0; place < side; place++) {
    from[place] = Math.floor((place * count) / side);
    to[place] = count <= side ? from[place] + 1 : Math.ceil(((place + 1) * count) / side);
  }
  return { from, to };
}

/** Makes pictures of one size: codes grow to blocks, or the largest of those that fall together is shown.
 * @param {[number, number]} shape rows and columns @param {number} side in pixels @param {Uint32Array} table
 * @returns {(codes: Uint8Array) => ImageData} */
export function pictures([rows, columns], side, table) {
  const [down, across] = [spansOf(rows, side), spansOf(columns, side)];
  return (codes) => {
    const image = new ImageData(side, side);
    const pixels = new Uint32Array(image.data.buffer);
    for (let y = 0; y < side; y++) {
      if (y && rows <= side && down.from[y] === down.from[y - 1]) {
        pixels.copyWithin(y * side, (y - 1) * side, y * side);
        continue;
      }
      for (let x = 0; x < side; x++) {
        let largest = 0;
        for (let row = down.from[y]; row < down.to[y]; row++) {
          for (let column = across.from[x]; column < across.to[x]; column++) {
            const code = codes[row * columns + column];
            if (code > largest) largest = code;
          }
        }
        pixels[y * side + x] = table[largest];
      }
    }
    return image;
  };
}

/** The side of a picture: near what is wanted, with pixels all alike in size where that is possible.
 * @param {number} wanted @param {number} most both in pixels of the screen @param {[number, number]} shape */
export function sideFor(wanted, most, [rows, columns]) {
  if (rows !== columns || !rows) return wanted;
  const [less, more] = [Math.floor(wanted / rows) * rows, Math.ceil(wanted / rows) * rows];
  return more <= most ? more : less >= 0.8 * wanted ? less : wanted;
}

/** Whether a statistic is a share of a whole: its scale ends at 1, and it needs no unit. @param {{unit: string}} statistic */
export const isShare = ({ unit }) => unit === "share" || unit === "weight";

/** The unit of a statistic behind its figure. @param {{unit: string}} statistic */
export const unitAfter = (statistic) => (isShare(statistic) ? "" : ` ${statistic.unit}`);

/** Places in the order of their figures, falling or rising; what was not measured comes last.
 * @param {number[]} figures @param {boolean} falling */
export function sortedPlaces(figures, falling) {
  const rank = (place) => (Number.isFinite(figures[place]) ? (falling ? -1 : 1) * figures[place] : Infinity);
  return figures.map((_, place) => place).sort((one, other) => (rank(one) === rank(other) ? one - other : rank(one) - rank(other)));
}

/** The headers of both axes, and in their corner those that sort by means. */
export class ModelHeaders {
  /** @param {import("./frame.js").Frame} frame @param {DescribedWeights} described */
  constructor(frame, { layers, heads, pooled }) {
    this.frame = frame;
    this.layers = layers;
    this.heads = heads;
    this.pooled = pooled;
    this.down = element(
      "div",
      { className: "down", role: "group", ariaLabel: "Layers" },
      ...layers.map((layer) => this.#header("heads", layer)),
    );
    this.along = element(
      "div",
      { className: "along", role: "group", ariaLabel: "Heads" },
      ...heads.map((head) => this.#header("layers", head)),
    );
    this.corner = element("div", { className: "corner" }, this.#header("heads", "mean"), this.#header("layers", "mean"));
    this.#roving(this.down, ["ArrowUp", "ArrowDown"]);
    this.#roving(this.along, ["ArrowLeft", "ArrowRight"]);
  }

  /** A header: sorts the other axis by its figures, falling, then rising, then as in the model.
   * @param {"layers" | "heads"} sorts @param {number | "mean"} by */
  #header(sorts, by) {
    const button = element("button", { type: "button", className: "header" }, element("span"), element("i", { ariaHidden: "true" }));
    const name = `sort_${sorts}`;
    button.addEventListener("click", () => {
      const [now, falling] = this.frame.get(name) ?? [];
      this.frame.set({ [name]: now !== by ? [by, true] : falling ? [by, false] : null });
    });
    for (const kind of ["pointerenter", "focus"]) button.addEventListener(kind, () => this.frame.tell(null, [button.title]));
    for (const kind of ["pointerleave", "blur"]) button.addEventListener(kind, () => this.frame.tell(null));
    return Object.assign(button, { sorts, by });
  }

  /** Lets arrow keys walk through headers, of which only one is a stop of the Tab key. */
  #roving(group, [back, forth]) {
    [...group.children].forEach((button, place) => (button.tabIndex = place ? -1 : 0));
    group.addEventListener("keydown", (event) => {
      const next = { [back]: event.target.previousElementSibling, [forth]: event.target.nextElementSibling }[event.key];
      if (!next) return;
      passFocus(event.target, next);
      event.preventDefault();
    });
  }

  /** Puts the headers into the order of what they stand for, and writes their means.
   * @param {{rows: number[], columns: number[]}} order places @param {{statistic: HeadStatistic, largest: number, ofLayer: (layer: number) => number, ofHead: (head: number) => number}} figures */
  draw({ rows, columns }, { statistic, largest, ofLayer, ofHead }) {
    const { layers, heads } = this;
    this.#reorder(
      this.down,
      rows.map((place) => layers[place]),
    );
    this.#reorder(
      this.along,
      columns.map((place) => heads[place]),
    );
    const figure = (value) => `${statistic.title.toLowerCase()} ${written(value)}${unitAfter(statistic)}`;
    rows.forEach((place, row) =>
      this.#write(
        this.down.children[row],
        String(layers[place]),
        ofLayer(place) / (largest || 1),
        `Layer ${layers[place]}: ${figure(ofLayer(place))}, mean of ${heads.length} heads`,
      ),
    );
    columns.forEach((place, column) => {
      const name = this.pooled ? "Mean of all heads" : `Head ${heads[place]}`;
      this.#write(
        this.along.children[column],
        this.pooled ? "mean" : String(heads[place]),
        ofHead(place) / (largest || 1),
        `${name}: ${figure(ofHead(place))}, mean of ${layers.length} layers`,
      );
    });
    this.#write(this.corner.children[0], "head", null, "Heads by their mean over layers");
    this.#write(this.corner.children[1], "layer", null, "Layers by their mean over heads");
  }

  #reorder(group, numbers) {
    const held = group.getRootNode().activeElement;
    const buttons = new Map([...group.children].map((button) => [button.by, button]));
    const wanted = numbers.map((number) => buttons.get(number));
    if (wanted.some((button, place) => group.children[place] !== button)) group.replaceChildren(...wanted);
    if (wanted.includes(held)) held.focus();
  }

  #write(button, text, share, said) {
    const [now, falling] = this.frame.get(`sort_${button.sorts}`) ?? [];
    const on = now === button.by;
    const sign = button.sorts === "layers" ? (falling ? "▾" : "▴") : falling ? "▸" : "◂";
    const next = !on ? "highest first" : falling ? "lowest first" : "as in the model";
    const [name, bar] = button.children;
    name.textContent = text;
    name.dataset.sign = on ? sign : "";
    bar.style.width = Number.isFinite(share) ? `${Math.round(100 * share)}%` : "0";
    bar.hidden = share === null;
    button.title = `${said}. Click: ${button.sorts} ${next}`;
    button.setAttribute("aria-label", `${said}; sort ${button.sorts}, ${next}`);
    button.setAttribute("aria-pressed", String(on));
  }
}
