// The drawings of the tracing view: the dots of one head with the lines between its layers, and how dark a value is.

import { blob } from "./weights.js";

// ---- What has gathered by layer, head and token, and the lines between layers, out of their bytes.

/** @typedef {{from: number, to: number, value: number}} Line between units of a row and of the row below */

/** The trace of a text: rows run from the read-out down to the input. */
export class Trace {
  #held = null;

  /** @param {{get: (name: string) => any}} model @param {TracingPayload["trace"]} described @param {number} tokens */
  constructor(model, described, tokens) {
    this.model = model;
    this.described = described;
    this.tokens = tokens;
    const layers = described.layers.map((layer, place) => ({ layer, place })).reverse();
    /** The rows from the top: the number of the layer, null for the read-out. */
    this.rows = described.readout ? [{ layer: null, place: null }, ...layers] : layers;
  }

  /** Decodes the bytes, once. */
  load() {
    this.#held ??= this.#decoded();
    return this.#held;
  }

  async #decoded() {
    const values = new Float32Array(await blob(this.model, "trace"));
    const start = this.described.readout ? this.tokens : 0;
    this.readout = start ? values.subarray(0, start) : null;
    this.values = values.subarray(start);
    const count = this.described.lines;
    if (count === null) return;
    const buffer = await blob(this.model, "lines");
    const places = new Uint16Array(buffer, 4 * count);
    const column = (number) => places.subarray(number * count, (number + 1) * count);
    this.lines = { values: new Float32Array(buffer, 0, count), layer: column(0), head: column(1), from: column(2), to: column(3) };
  }

  /** What a head holds in one row by unit: a word holds what its tokens do. `head` null: the mean over heads.
   * @param {{place: number | null}} row @param {number | null} head @param {import("./units.js").Unit[]} units */
  held(row, head, units) {
    const { heads } = this.described;
    const one = (place) => {
      if (row.place === null) return this.readout;
      const start = (row.place * heads.length + place) * this.tokens;
      return this.values.subarray(start, start + this.tokens);
    };
    if (head !== null || row.place === null)
      return Float32Array.from(units, ({ places }) => places.reduce((sum, place) => sum + one(head)[place], 0));
    const parts = heads.map((_, place) => one(place));
    return Float32Array.from(
      units,
      ({ places }) => parts.reduce((sum, part) => sum + places.reduce((all, place) => all + part[place], 0), 0) / heads.length,
    );
  }

  /** How much of the read-out is read from a unit. @param {import("./units.js").Unit} unit */
  readFrom({ places }) {
    return this.readout ? places.reduce((sum, place) => sum + this.readout[place], 0) : 0;
  }

  /** The lines of a head by the row they start from, between units that are shown; of the mean of heads for null.
   * @param {number | null} head @param {import("./units.js").Unit[]} units @returns {Line[][]} */
  linesOf(head, units) {
    const rows = this.rows.map(() => new Map());
    if (!this.lines || !this.readout) return rows.map(() => []);
    const unitOf = new Map(units.flatMap(({ places }, number) => places.map((place) => [place, number])));
    const { values, layer, head: heads, from, to } = this.lines;
    for (let line = 0; line < values.length; line++) {
      if ((head !== null && heads[line] !== head) || !unitOf.has(from[line]) || !unitOf.has(to[line])) continue;
      const sums = rows[this.described.layers.length - 1 - layer[line]];
      const name = unitOf.get(from[line]) * units.length + unitOf.get(to[line]);
      sums.set(name, (sums.get(name) ?? 0) + values[line] / (head === null ? this.described.heads.length : 1));
    }
    return rows.map((sums) =>
      [...sums].map(([name, value]) => ({ from: Math.floor(name / units.length), to: name % units.length, value })),
    );
  }
}

const GUTTER = 24;
const LARGE_GUTTER = 72;
const PANEL_GAP = 24;
const LABELS = 96;
/** Pixels between dots from which on their tokens can stand upright below them, and the letters of one there. */
const [LABELLED, SMALL_LETTERS] = [10, 10];
const LINE_LEVELS = 32;
/** Dots fainter than this only mark a place, and lines may cross them. */
const FAINT_DOT = 0.1;

/** How dark a value is: its share of the largest, or the square root of it.
 * @param {number} largest @param {boolean} root */
export const darkness = (largest, root) => (value) => {
  const share = Math.min(Math.max(value / largest, 0), 1);
  return root ? Math.sqrt(share) : share;
};

/** Tokens that stay in sight where they are folded, at most: more would be dots without shape. */
const UNFOLDED = 40;
/** Tokens up to which small panels show all. */
const FOLDED_FROM = 64;
/** Pixels of a column of one head alone. */
const LARGE_PITCH = 16;
/** How much fainter lines are that rest on a special token or a sink. */
const RESTING = 0.3;

/** How many of so many tokens have a column with their name below it. @param {number} units @param {number} width @param {boolean} large */
export function roomFor(units, width, large) {
  if (large) return Math.max(Math.floor((width - LARGE_GUTTER - 16) / LARGE_PITCH), 4);
  const room = Math.max(Math.floor((width - GUTTER) / LABELLED), 4);
  return Math.min(room, units > FOLDED_FROM ? UNFOLDED : FOLDED_FROM);
}

/** How many panels stand side by side, how far their dots are apart, and the room for the tokens below them.
 * @param {number} panels @param {import("./units.js").Unit[]} shown @param {number} width @param {number} rows */
export function panelLayout(panels, shown, width, rows) {
  const units = Math.max(shown.length, 1);
  const pitchOf = (columns) => ((width + PANEL_GAP) / columns - PANEL_GAP - GUTTER) / units;
  let columns = panels;
  while (columns > 1 && pitchOf(columns) < LABELLED) columns--;
  const pitch = Math.min(Math.max(pitchOf(columns), 2), 14);
  const step = Math.min(Math.max(112 / rows, pitch, 8), 18);
  // upright names of some six pixels a letter, where they stand apart
  const foot = pitch >= LABELLED ? Math.max(24, 12 + 6 * Math.min(Math.max(...shown.map(({ text }) => text.length)), SMALL_LETTERS)) : 4;
  return { columns, pitch, step, gutter: GUTTER, foot, width: GUTTER + units * pitch, height: rows * step + 8 + foot, gap: PANEL_GAP };
}

/** One head over the whole width, with room for its tokens below.
 * @param {number} units @param {number} width @param {number} rows */
export function largeLayout(units, width, rows) {
  // a canvas has an end: very long texts stand closer
  const least = Math.min(LARGE_PITCH, Math.max(2, 8000 / units));
  const pitch = Math.min(Math.max((width - LARGE_GUTTER - 16) / units, least), 64);
  const step = Math.min(Math.max(400 / rows, 16), 40);
  return {
    columns: 1,
    pitch,
    step,
    gutter: LARGE_GUTTER,
    foot: LABELS,
    width: LARGE_GUTTER + units * pitch + 16,
    height: rows * step + LABELS,
    large: true,
  };
}

/** Where a unit and a row stand. */
export const dotAt = (layout, unit, row) => ({ x: layout.gutter + (unit + 0.5) * layout.pitch, y: 4 + (row + 0.5) * layout.step });

/** The unit and the row under a point, or null. */
export function placeAt(layout, x, y, units, rows) {
  const [unit, row] = [Math.floor((x - layout.gutter) / layout.pitch), Math.floor((y - 4) / layout.step)];
  return unit >= 0 && unit < units && row >= 0 && row < rows ? { unit, row } : null;
}

/** Draws the dots of one head and the lines between them, which lie over the faint dots and under the others.
 * @param {CanvasRenderingContext2D} context @param {Float32Array[]} values by row
 * @param {{from: number, to: number, value: number}[][]} lines by row */
export function drawDots(context, values, lines, { layout, dark, palette, threshold, quiet }) {
  const { sequential } = palette;
  const radius = Math.min(Math.min(layout.pitch, layout.step) / 2 - 0.75, layout.large ? 9 : 5.5);
  const drawSome = (wanted) =>
    values.forEach((row, place) =>
      row.forEach((value, unit) => {
        const shade = dark(value);
        if (value < threshold || !wanted(shade)) return;
        const { x, y } = dotAt(layout, unit, place);
        context.fillStyle = sequential[Math.round(shade * (sequential.length - 1))];
        context.beginPath();
        if (radius < 1.5) context.rect(x - layout.pitch / 2, y - layout.step / 2 + 1, layout.pitch, layout.step - 2);
        else context.arc(x, y, radius, 0, 2 * Math.PI);
        context.fill();
      }),
    );
  drawSome((shade) => shade < FAINT_DOT);
  const split = (resting) => lines.map((some) => some.filter(({ to }) => quiet[to] === resting));
  drawHanded(context, split(true), { layout, dark, threshold, colour: palette.read("quiet"), share: RESTING });
  drawHanded(context, split(false), { layout, dark, threshold, colour: sequential.at(-1), share: 1 });
  drawSome((shade) => shade >= FAINT_DOT);
}

function drawHanded(context, lines, { layout, dark, threshold, colour, share }) {
  const bundles = Array.from({ length: LINE_LEVELS + 1 }, () => null);
  lines.forEach((some, row) =>
    some.forEach(({ from, to, value }) => {
      if (value < threshold) return;
      const level = Math.max(1, Math.round(dark(value) * LINE_LEVELS));
      bundles[level] ??= new Path2D();
      const [start, end] = [dotAt(layout, from, row), dotAt(layout, to, row + 1)];
      bundles[level].moveTo(start.x, start.y);
      bundles[level].lineTo(end.x, end.y);
    }),
  );
  context.strokeStyle = colour;
  context.lineWidth = layout.large ? 1.5 : 1;
  bundles.forEach((path, level) => {
    if (!path) return;
    context.globalAlpha = (share * level) / LINE_LEVELS;
    context.stroke(path);
  });
  context.globalAlpha = 1;
}

/** The names of the rows: all of them beside a large panel, the first and the last layer beside a small one. */
export function drawRows(context, rows, { layout, palette, chosen }) {
  context.textAlign = "right";
  rows.forEach(({ layer }, row) => {
    const end = row === rows.length - 1 || (layer !== null && (row === 0 || rows[row - 1].layer === null));
    const roomy = layout.step >= 13;
    const { y } = dotAt(layout, 0, row);
    if (layer === chosen && rows.length > 1) {
      context.fillStyle = palette.read("focus");
      context.fillRect(layout.gutter - 3, y - layout.step / 2 + 1, 2, layout.step - 2);
    }
    if (layout.large ? !(roomy || end || layer === null) : !end) return;
    context.fillStyle = palette.read("quiet");
    context.fillText(layer === null ? "read-out" : layout.large ? `layer ${layer}` : String(layer), layout.gutter - 8, y + 0.5);
  });
  context.textAlign = "left";
}

/** The tokens below a large panel, aslant where they stand close. @param {import("./units.js").Unit[]} units */
export function drawTokens(context, units, rows, { layout, palette }) {
  const top = 4 + rows * layout.step + 8;
  const most = layout.large ? 14 : SMALL_LETTERS;
  const texts = units.map(({ text }) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text));
  context.font = `${layout.large ? (layout.pitch < 20 ? 12 : 14) : 10}px system-ui, sans-serif`;
  const level = layout.large && texts.every((text) => context.measureText(text).width <= layout.pitch - 6);
  if (layout.pitch < LABELLED) return;
  texts.forEach((text, unit) => {
    context.save();
    context.translate(dotAt(layout, unit, 0).x, top);
    context.fillStyle = palette.read(units[unit].special ? "quiet" : "text");
    if (!level) context.rotate(layout.large ? -Math.PI / 3 : -Math.PI / 2);
    context.textAlign = level ? "center" : "right";
    context.fillText(text, layout.large ? 0 : 6, level ? 8 : layout.large ? 4 : 0);
    context.restore();
  });
}
