// The maps of all heads as small pictures: out of their bytes, to any size, on one scale.

import { blob } from "./weights.js";

/** @typedef {{shape: [number, number], block: [number, number], units: [number, number], pair: object, weight: object, hidden: number}} MapsDescribed */

/** The pictures of each choice (tokens or words, all or without special tokens), decoded when first looked at. */
export class Thumbnails {
  #model;
  #held = new Map();

  /** @param {{get: (name: string) => any}} model @param {Record<string, MapsDescribed>} described @param {number} heads */
  constructor(model, described, heads) {
    this.#model = model;
    Object.assign(this, { described, heads });
  }

  /** The name of what is chosen, as far as there is something to choose. @param {boolean} words @param {boolean} special */
  named(words, special) {
    const level = words && "words" in this.described ? "words" : "tokens";
    return !special && `${level}-quiet` in this.described ? `${level}-quiet` : level;
  }

  /** The codes of all pictures: the square root of a weight, in 255 steps. @param {string} name @returns {Promise<Uint8Array>} */
  codes(name) {
    if (!this.#held.has(name)) this.#held.set(name, blob(this.#model, name).then((buffer) => new Uint8Array(buffer)));
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
