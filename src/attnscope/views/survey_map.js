// The map of the survey view: cells, numbers of layers and heads, bars by layer, and the scale. Pictures only, no state.

import { at, element, hatch, inkOn, sharp, short } from "./drawing.js";

const LABEL = 28;
const BARS = 112;
const LEAST = 13;

/** The colour of a role: its own in every map. */
const colourOf = (roles, place, palette) => palette.categorical[roles.colours[place]];

/** The colour and the letters of a role. @param {object} roles @param {number} place @param {ReturnType<import("./drawing.js").colours>} palette */
export function drawSwatch(roles, place, palette) {
  const colour = colourOf(roles, place, palette);
  const canvas = element("canvas", { className: "swatch", ariaHidden: "true" });
  const context = sharp(canvas, 20, 16);
  context.fillStyle = colour;
  context.fillRect(0, 0, 20, 16);
  context.fillStyle = inkOn(colour);
  context.textAlign = "center";
  context.font = "11px system-ui, sans-serif";
  context.fillText(roles.letters[place], 10, 8.5, 18);
  return canvas;
}

/** The size of a cell, so that the map fits the room it has; below the least size it scrolls instead.
 * @param {number} room @param {number} layers @param {number} heads */
export function cellSize(room, layers, heads) {
  const wide = Math.floor((room - LABEL - BARS - 24) / heads);
  const width = Math.min(Math.max(wide, LEAST), 44);
  return { width, height: Math.max(LEAST, Math.min(width, 28, Math.floor(640 / layers))) };
}

/** The scale of a map: linear from 0 or by square root; signed figures diverge from 0.
 * @param {{values: number[][]}} map @param {boolean} root @param {ReturnType<import("./drawing.js").colours>} palette */
export function scaleOf(map, root, palette) {
  const measured = map.values.flat().filter(Number.isFinite);
  const signed = measured.some((value) => value < 0);
  const largest = measured.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const share = (value) => {
    const part = largest > 0 ? Math.min(Math.abs(value) / largest, 1) : 0;
    return root ? Math.sqrt(part) : part;
  };
  const colour = (value) =>
    signed ? palette.diverging[Math.round(127.5 + 127.5 * Math.sign(value) * share(value))] : palette.sequential[Math.round(255 * share(value))];
  return { signed, largest, root, colour };
}

/** What fills the cell of one head: the colour of its figure, or of its role. */
function fillOf(map, layer, head, scale, palette) {
  if (!map.roles) return Number.isFinite(map.values[layer][head]) ? scale.colour(map.values[layer][head]) : null;
  const role = at(map.roles.place, layer, head);
  return Number.isFinite(role) ? colourOf(map.roles, role, palette) : null;
}

/** Draws all cells; roles stand in them as letters where there is room. Gives back what was drawn where.
 * @param {HTMLCanvasElement} canvas @returns {{row: number, column: number, value: number, colour: string | null, dimmed: boolean}[]} */
export function drawCells(canvas, map, cell, scale, palette, roles, onlyRole) {
  const context = sharp(canvas, map.values[0].length * cell.width, map.values.length * cell.height);
  const gap = cell.width > 8 ? 1 : 0;
  context.textAlign = "center";
  context.font = `${cell.height >= 20 ? 11 : 9}px system-ui, sans-serif`;
  const drawn = [];
  map.values.forEach((row, layer) =>
    row.forEach((value, head) => {
      const [left, top, width, height] = [head * cell.width, layer * cell.height, cell.width - gap, cell.height - gap];
      const role = roles ? at(roles.place, layer, head) : NaN;
      const fill = fillOf(map, layer, head, scale, palette);
      const dimmed = onlyRole !== null && roles?.names[role] !== onlyRole;
      drawn.push({ row: layer, column: head, value, colour: fill, dimmed });
      context.globalAlpha = dimmed ? 0.15 : 1;
      context.fillStyle = fill ?? palette.read("raised");
      context.fillRect(left, top, width, height);
      if (fill === null) hatch(context, left, top, width, height, palette.read("quiet"));
      if (Number.isFinite(role) && fill !== null && cell.width >= 16 && cell.height >= (map.roles ? LEAST : 18)) {
        context.fillStyle = inkOn(fill);
        context.fillText(roles.letters[role], left + width / 2, top + height / 2 + 0.5, width - 2);
      }
    }),
  );
  return drawn;
}

/** Numbers along one side of the map, as many as can be read.
 * @param {HTMLCanvasElement} canvas @param {number[]} numbers @param {number} step @param {boolean} down */
export function drawNumbers(canvas, numbers, step, down, palette) {
  const length = numbers.length * step;
  const context = sharp(canvas, down ? LABEL : length, down ? length : 20);
  const every = [1, 2, 4, 8, 16, 32].find((many) => many * step >= (down ? 13 : 20)) ?? 64;
  context.fillStyle = palette.read("quiet");
  context.textAlign = down ? "right" : "center";
  numbers.forEach((number, place) => {
    if (place % every) return;
    const middle = place * step + step / 2;
    context.fillText(String(number), down ? LABEL - 8 : middle, down ? middle : 10);
  });
}

/** Bars by layer with their errors; for roles, how many heads of each layer have each role.
 * @param {HTMLCanvasElement} canvas @param {HTMLCanvasElement} axis */
export function drawBars(canvas, axis, map, cell, palette) {
  const context = sharp(canvas, BARS, map.values.length * cell.height);
  const ends = map.layers.flatMap(({ value, error }) => [value, value + (error || 0), value - (error || 0)]).filter(Number.isFinite);
  const [least, most] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const [left, room] = [12, BARS - 28];
  const place = (value) => left + (most > least ? ((value - least) / (most - least)) * room : 0);
  map.layers.forEach(({ value, error, parts }, layer) => {
    const [top, height] = [layer * cell.height + 1, cell.height - 3];
    let from = 0;
    for (const [role, count] of parts ?? []) {
      context.fillStyle = colourOf(map.roles, role, palette);
      context.fillRect(place(from), top, place(from + count) - place(from) - 0.5, height);
      from += count;
    }
    if (!Number.isFinite(value) || parts) return;
    context.fillStyle = palette.read("bar");
    context.fillRect(Math.min(place(0), place(value)), top, Math.abs(place(value) - place(0)), height);
    if (!(error > 0)) return;
    context.fillStyle = palette.read("text");
    context.fillRect(place(value - error), top + height / 2 - 0.5, Math.max(place(value + error) - place(value - error), 1), 1);
    for (const end of [value - error, value + error]) context.fillRect(place(end) - 0.5, top + height / 2 - 2.5, 1, 5);
  });
  context.fillStyle = palette.read("line");
  context.fillRect(place(0) - 1, 0, 1, map.values.length * cell.height);
  const ticks = sharp(axis, BARS, 20);
  ticks.fillStyle = palette.read("quiet");
  ticks.textAlign = "center";
  ticks.fillText("0", place(0), 10);
  if (most > 0) ticks.fillText(short(most), Math.min(place(most), BARS - 16), 10);
}
