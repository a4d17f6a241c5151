// Numbers and tokens as the scores view writes them in a sentence.

import { short } from "./drawing.js";

const LONGEST = 60;
/** Letters and marks that turn the direction of what follows them. */
const TURNING = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;

/** A score with the digits it has: four of a method's own, three of what travelled as 16-bit floats.
 * @param {number} value @param {boolean} exactly */
export function figure(value, exactly) {
  return Number.isFinite(value) ? String(+value.toPrecision(exactly ? 4 : 3)).replace(/-/g, "−") : "not computed";
}

/** The end of a scale, short. @param {number} value */
export function ending(value) {
  return value > 0 && value < 0.001 ? value.toExponential(1).replace("-", "−") : short(value);
}

/** A token in quotes: a long one cut, and one that turns the direction kept to itself. @param {string} text */
export function quoted(text) {
  const letters = text.length > LONGEST ? [...text] : null;
  const cut = letters && letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : text;
  return TURNING.test(cut) ? `“\u2068${cut}\u2069”` : `“${cut}”`;
}
