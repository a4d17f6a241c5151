// What every view draws with: numbers out of bytes, colours out of the style sheet, sharp canvases, plain elements.

/** One number of a packed array; an axis of length 1 stands for all its places.
 * @param {Packed} packed @param {...number} places @returns {number} */
export function at(packed, ...places) {
  packed.values ??= new Float32Array(Uint8Array.from(atob(packed.bytes), (letter) => letter.charCodeAt(0)).buffer);
  let offset = 0;
  packed.shape.forEach((length, axis) => (offset = offset * length + (length === 1 ? 0 : places[axis])));
  return packed.values[offset];
}

/** The scales in the scheme of the moment, as the style sheet has them.
 * @param {Element} el @returns {Palette} */
export function colours(el) {
  const style = getComputedStyle(el);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    sequential: read("sequential").split(" "),
    diverging: read("diverging").split(" "),
    categorical: read("categorical").split(" "),
    read,
  };
}

/** Black or white, whichever reads better on a colour; always a contrast of at least 4.5 to 1.
 * @param {string} colour */
export function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((from) => {
    const byte = parseInt(colour.slice(from, from + 2), 16) / 255;
    return byte <= 0.04045 ? byte / 12.92 : ((byte + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

/** Gives a canvas its size in CSS pixels, sharp on any screen, and returns its cleared context.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
export function sharp(canvas, width, height) {
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(density, 0, 0, density, 0, 0);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  return context;
}

/** Diagonal lines in a box: nothing was measured here, or a colour is used for the second time.
 * @param {CanvasRenderingContext2D} context */
export function hatch(context, left, top, width, height, colour) {
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.beginPath();
  for (let start = -height; start < width; start += 5) {
    context.moveTo(left + start, top + height);
    context.lineTo(left + start + height, top);
  }
  context.strokeStyle = colour;
  context.stroke();
  context.restore();
}

/** The colours of a scale side by side, each on whole pixels of the screen: between them nothing shines through.
 * @param {CanvasRenderingContext2D} context @param {{left: number, top: number, width: number, height: number}} box
 * @param {(share: number) => string} colour from 0 to 1 */
export function drawRamp(context, { left, top, width, height }, colour) {
  const density = context.getTransform().a;
  const [start, end, high, low] = [left, left + width, top, top + height].map((place) => Math.round(place * density));
  context.save();
  context.setTransform(1, 0, 0, 1, 0, 0);
  for (let pixel = start; pixel < end; pixel++) {
    context.fillStyle = colour((pixel - start) / (end - start - 1));
    context.fillRect(pixel, high, 1, low - high);
  }
  context.restore();
}

/** The scale with its ends and quarters in real units.
 * @param {HTMLCanvasElement} canvas @param {{signed?: boolean, root: boolean, largest: number}} scale */
export function drawScale(canvas, scale, palette) {
  const [left, room] = [20, 240];
  const context = sharp(canvas, room + 2 * left, 32);
  const steps = scale.signed ? palette.diverging : palette.sequential;
  drawRamp(context, { left, top: 0, width: room, height: 12 }, (share) => steps[Math.round(share * (steps.length - 1))]);
  context.strokeStyle = palette.read("line");
  context.strokeRect(left + 0.5, 0.5, room - 1, 11);
  context.textAlign = "center";
  context.fillStyle = palette.read("quiet");
  for (const part of scale.signed ? [-1, -0.5, 0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]) {
    const place = left + (scale.signed ? (part + 1) / 2 : part) * room;
    context.fillRect(Math.round(place) - (part === 1 ? 1 : 0), 12, 1, 4);
    const value = scale.root ? Math.sign(part) * part ** 2 : part;
    context.fillText(short(value * scale.largest), place, 25);
  }
}

// ---- Where the colours of some tokens begin and end.

/** How much of its start a scale that does not begin at 0 spans, at least: what hardly differs is not drawn as if it did. */
const LEAST_SPAN = 0.1;

/** @typedef {{start: number, end: number}} Scale */

/** The scale of a row: from 0 to the largest size of its scores. Special tokens and sinks are set aside, because one of them
 * often holds nearly all and would leave the others blank. Where all others are above half of the largest, so that the row
 * would be one dark bar, it begins at the smallest. @param {number[]} scores @param {boolean[]} quiet @returns {Scale} */
export function scaleOf(scores, quiet) {
  const finite = scores.filter(Number.isFinite);
  const others = scores.filter((score, place) => Number.isFinite(score) && !quiet[place]);
  const counted = others.some(Boolean) ? others : finite;
  const end = counted.reduce((most, score) => Math.max(most, Math.abs(score)), 0);
  const least = counted.reduce((least, score) => Math.min(least, score), Infinity);
  if (counted.length < 2 || !(least > end / 2) || finite.some((score) => score < 0)) return { start: 0, end };
  return { start: least, end: Math.max(end, least * (1 + LEAST_SPAN)) };
}

/** How far along its scale a score is, from 0 to 1, or from −1 for what is below zero. @param {number} score @param {Scale} scale */
export function shareOf(score, { start, end }) {
  if (!(end > start) || !Number.isFinite(score)) return 0;
  return Math.min(Math.max((score - start) / (end - start), start ? 0 : -1), 1);
}

/** Whether a score lies outside its scale: a special token or a sink. @param {number} score @param {Scale} scale */
export const isBeyond = (score, { start, end }) => Math.abs(score) > end * (1 + 1e-9) || (start > 0 && score < start * (1 - 1e-9));

/** The colour of a score as a share of the end of its scale: from 0, or where it is signed from −1.
 * @param {Palette} palette @param {boolean} signed @param {boolean} root */
export function groundOf(palette, signed, root) {
  const scale = signed ? palette.diverging : palette.sequential;
  return (share) => {
    const inked = root ? Math.sign(share) * Math.sqrt(Math.abs(share)) : share;
    return scale[Math.round((signed ? (1 + inked) / 2 : Math.min(Math.max(inked, 0), 1)) * (scale.length - 1))];
  };
}

/** A number as exact as its error allows (two digits of it), or with four digits where no error is known.
 * @param {number} value @param {number} [error] */
export function written(value, error = NaN) {
  if (!Number.isFinite(value)) return "not measured";
  const sign = (text) => text.replace("-", "−");
  if (error > 0) {
    const digits = Math.min(Math.max(1 - Math.floor(Math.log10(error)), 0), 8);
    return sign(`${value.toFixed(digits)} ± ${error.toFixed(digits)}`);
  }
  return sign(String(+value.toPrecision(Math.abs(value) < 1e4 ? 4 : 7)));
}

/** A number with the digits that its error leaves sure, at most four; where not even three are, with the error.
 * @param {number} value @param {number} error the most that it may be off */
export function exact(value, error) {
  const digits = error <= 0.00005 ? 4 : 3;
  return `${value.toFixed(digits)}${error > 0.0005 ? ` ± ${error.toFixed(3)}` : ""}`.replace(/-/g, "−");
}

/** A share in per cent; nothing is rounded to nothing or to everything. @param {number} share */
export function percent(share) {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  if (share < 1 && share >= 0.9995) return "> 99.9 %";
  return `${(100 * share).toFixed(1)} %`;
}

/** A count with commas; the browser's own way takes a thirtieth of a second when it is first used. @param {number} count */
export const thousands = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ",");

/** A number at the end of a scale, short. @param {number} value */
export const short = (value) =>
  (value && Math.abs(value) < 1e-4 ? value.toExponential(1) : String(+value.toPrecision(3))).replaceAll("-", "−");

/** An element with properties and children; texts become text, never markup.
 * @template {keyof HTMLElementTagNameMap} Name @param {Name} name @param {Record<string, unknown>} [properties]
 * @param {...(Node | string)} children @returns {HTMLElementTagNameMap[Name]} */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("aria")) made.setAttribute(`aria-${key.slice(4).toLowerCase()}`, String(value));
    else if (key in made) made[key] = value;
    else made.setAttribute(key, String(value));
  }
  made.append(...children);
  return made;
}

/** A table of texts: the first cell of each row names it. @param {(string | number)[]} columns @param {(string | number)[][]} rows
 * @param {...HTMLElement} caption */
export function plainTable(columns, rows, ...caption) {
  const cell = (text, place) => (place ? element("td", {}, String(text)) : element("th", { scope: "row" }, String(text)));
  const names = columns.map((name) => element("th", { scope: "col" }, String(name)));
  return element(
    "table",
    { className: "plain" },
    ...caption,
    element("thead", {}, element("tr", {}, ...names)),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell)))),
  );
}

// ---- Places on a map of layers and heads: the one under the pointer, and the one that a key leads to.

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] };

/** A place that is on the map. @param {number} place @param {number} count */
const within = (place, count) => Math.min(Math.max(place, 0), count - 1);

/** The row and the column under the pointer. @param {PointerEvent} event on the map @param {{width: number, height: number}} cell
 * @param {[number, number]} counts of rows and columns @returns {[number, number]} */
export function pointedPlace({ offsetX, offsetY }, { width, height }, [rows, columns]) {
  return [within(Math.floor(offsetY / height), rows), within(Math.floor(offsetX / width), columns)];
}

/** Where a key leads from a place, or null for a key that does not move: arrows to the neighbours, Home and End along the row.
 * @param {KeyboardEvent} event @param {[number, number]} from row and column @param {[number, number]} counts of them
 * @returns {[number, number] | null} */
export function movedPlace({ key, ctrlKey, metaKey, altKey }, from, counts) {
  if (!(key in MOVES) || ctrlKey || metaKey || altKey) return null;
  const [row, column] = from.map((place, axis) => within(place + MOVES[key][axis], counts[axis]));
  return [row, column];
}
