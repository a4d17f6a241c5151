// The lines of the head view: which there are, where they run, and which one the pointer is on.

import { unitGrid, unitRest } from "./units.js";

/** What no screen shows: a line as faint as one step of its opacity. */
const FAINTEST = 1 / 255;
/** Lines of the first frame, few enough to be seen at once on a machine without a graphics card; each later frame doubles them. */
const AT_ONCE = 128;

/** @typedef {{query: number, key: number, head: number, weight: number}} Line query and key are rows of the columns */

/** The lines of some heads of a layer, and what is left out of them.
 * @param {import("./weights.js").Layer} layer @param {number[]} heads their places
 * @param {{shape: [number, number, number], queries: object[], keys: object[], shownQueries: number[], shownKeys: number[], masked: Set<number>, threshold: number, opacity: (weight: number) => number, between: (query: object, key: object) => boolean}} given */
export function linesOf(layer, heads, { shape, queries, keys, shownQueries, shownKeys, masked, threshold, opacity, between }) {
  const grids = heads.map((head) => unitGrid(layer.values, head, shape, queries, keys, masked));
  const rests = heads.map((head) => unitRest(layer.rest, head, shape[1], queries, masked));
  const lines = [];
  const left = { below: 0, belowMass: 0, faint: 0, faintMass: 0, hiddenMass: 0, restMass: 0, mass: 0 };
  grids.forEach((grid, place) => {
    shownQueries.forEach((query, row) => {
      let [seen, sum] = [0, 0];
      for (let key = 0; key < keys.length; key++) sum += grid[query * keys.length + key];
      shownKeys.forEach((key, column) => {
        const weight = grid[query * keys.length + key];
        if (!between(queries[query], keys[key])) return;
        seen += weight;
        if (weight < threshold) {
          left.below += weight > 0 ? 1 : 0;
          left.belowMass += weight;
        } else if (opacity(weight) >= FAINTEST) lines.push({ query: row, key: column, head: heads[place], weight });
        else {
          left.faint += weight > 0 ? 1 : 0;
          left.faintMass += weight;
        }
      });
      left.hiddenMass += sum - seen;
      left.restMass += rests[place] ? rests[place][query] : 0;
      left.mass += sum + (rests[place] ? rests[place][query] : 0);
    });
  });
  return { lines, left, grids };
}

/** Draws lines between two columns, the strongest at once, the others frame by frame beneath them while they are wanted.
 * @param {CanvasRenderingContext2D} context @param {Line[]} lines @param {{y: (row: number) => number, width: number, colour: (head: number) => string, dash: (head: number) => number[], opacity: (line: Line) => number, wanted: () => boolean}} given */
export async function drawLines(context, lines, { y, width, colour, dash, opacity, wanted }) {
  const sorted = [...lines].sort((one, other) => other.weight - one.weight);
  context.lineWidth = 1.5;
  context.globalCompositeOperation = "destination-over";
  for (let start = 0, count = AT_ONCE; start < sorted.length; start += count, count = start) {
    if (start) await new Promise(requestAnimationFrame);
    if (!wanted()) return;
    // each its own stroke, which is drawn faster than many as one
    for (const line of sorted.slice(start, start + count)) {
      context.globalAlpha = opacity(line);
      context.strokeStyle = colour(line.head);
      context.setLineDash(dash(line.head));
      context.beginPath();
      context.moveTo(0, y(line.query));
      context.lineTo(width, y(line.key));
      context.stroke();
    }
  }
}

/** The line nearest to a point, if one is within a few pixels. @param {Line[]} lines */
export function lineAt(lines, point, y, width) {
  let [found, nearest] = [null, 4];
  for (const line of lines) {
    const [from, to] = [y(line.query), y(line.key)];
    const distance = Math.abs(from + ((to - from) * point.x) / width - point.y) / Math.hypot(1, (to - from) / width);
    if (distance < nearest || (distance === nearest && line.weight > found?.weight)) [found, nearest] = [line, distance];
  }
  return found;
}

/** The strongest of many lines. @param {Line[]} lines @param {number} most */
export function strongest(lines, most) {
  const limit = Float32Array.from(lines, ({ weight }) => weight).sort()[lines.length - most];
  return lines.filter(({ weight }) => weight >= limit).slice(0, most);
}
