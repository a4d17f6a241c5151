// The lines of the head view: which there are, where they run, and which one the pointer is on.

import { exact, percent, thousands } from "./drawing.js";
import { LONG_LIST, eachIn, loudest, unitRest, unitRows } from "./units.js";

/** What no screen shows: a line as faint as one step of its opacity. */
const FAINTEST = 1 / 255;
/** Lines of the first frame, few enough to be seen at once on a machine without a graphics card; each later frame doubles them. */
const AT_ONCE = 128;

/** Up to so many tokens every row is in sight; longer texts scroll within the view, beside a strip of the whole text. */
const MOST_ROWS = 160;
const LONG_HEIGHT = 600;
/** Lines of special tokens and sinks keep this share of their ink, and less beyond so many rows: many run together. */
const [FADED, FADED_ROWS] = [0.1, 32];

/** The height in which so many rows are shown. @param {number} rows @param {number} row the height of one */
export const panelHeight = (rows, row) => (rows <= MOST_ROWS ? rows * row : LONG_HEIGHT);

/** The share of their ink that lines of special tokens and sinks have while nothing is looked at. @param {number} rows */
export const fadedShare = (rows) => FADED * Math.min(1, FADED_ROWS / rows);

/** @typedef {{query: number, key: number, head: number, weight: number}} Line query and key are rows of the columns */

/** The lines of some heads of a layer, and what is left out of them.
 * @param {import("./weights.js").Layer} layer @param {number[]} heads their places
 * @param {{shape: [number, number, number], queries: import("./units.js").Unit[], keys: import("./units.js").Unit[], shownQueries: number[], shownKeys: number[], masked: Set<number>, threshold: number, opacity: (weight: number) => number, between: (query: import("./units.js").Unit, key: import("./units.js").Unit) => boolean}} given */
export function linesOf(layer, heads, { shape, queries, keys, shownQueries, shownKeys, masked, threshold, opacity, between }) {
  const rows = heads.map((head) => unitRows(layer, head, shape, queries, keys, masked));
  const rests = heads.map((head) => unitRest(layer.rest, head, shape[1], queries, masked));
  const columnOf = new Int32Array(keys.length).fill(-1);
  shownKeys.forEach((key, column) => (columnOf[key] = column));
  const lines = [];
  const left = { below: 0, belowMass: 0, faint: 0, faintMass: 0, hiddenMass: 0, restMass: 0, mass: 0 };
  rows.forEach((some, place) => {
    shownQueries.forEach((query, row) => {
      let [seen, sum] = [0, 0];
      eachIn(some, query, (key, weight) => {
        sum += weight;
        if (columnOf[key] < 0 || !between(queries[query], keys[key])) return;
        seen += weight;
        if (weight < threshold) {
          left.below += weight > 0 ? 1 : 0;
          left.belowMass += weight;
        } else if (opacity(weight) >= FAINTEST) lines.push({ query: row, key: columnOf[key], head: heads[place], weight });
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
  return { lines, left, rows };
}

/** Lines by the row they begin or end at, so that those in sight are found without a look at all others. */
export class LinesByRow {
  /** @param {Line[]} lines @param {"query" | "key"} side @param {number} rows */
  constructor(lines, side, rows) {
    this.lines = lines;
    this.starts = new Int32Array(rows + 1);
    this.order = new Int32Array(lines.length);
    for (const line of lines) this.starts[line[side] + 1]++;
    for (let row = 0; row < rows; row++) this.starts[row + 1] += this.starts[row];
    const next = this.starts.slice();
    lines.forEach((line, place) => (this.order[next[line[side]]++] = place));
  }

  /** The lines of rows from one up to another. @param {number} from @param {number} to */
  between(from, to) {
    return Array.from(this.order.subarray(this.starts[from], this.starts[to]), (place) => this.lines[place]);
  }
}

/** The largest of figures in each of some bands that share them evenly. @param {Float32Array} figures @param {number} bands */
export function inBands(figures, bands) {
  if (figures.length <= bands) return figures;
  const found = new Float32Array(bands);
  figures.forEach((figure, place) => {
    const band = Math.floor((place * bands) / figures.length);
    if (figure > found[band]) found[band] = figure;
  });
  return found;
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

/** Numbers as spans: 1–3, 7. @param {number[]} numbers in their order */
export function listed(numbers) {
  const spans = [];
  for (const number of numbers)
    if (spans.length && spans.at(-1)[1] === number - 1) spans.at(-1)[1] = number;
    else spans.push([number, number]);
  return spans.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(", ");
}

// ---- What the head view says: of a token, of a pair, of all that is not drawn, and as a table.

/** The words of a panel: they read what it shows and change nothing. */
export class HeadWords {
  /** @param {import("./head.js").HeadPanel} panel @param {number} most lines that are drawn at a time */
  constructor(panel, most) {
    this.panel = panel;
    this.most = most;
  }

  /** What is said of a token: alone where it looks most, or with what is pinned on the other side the exact weight. */
  about(side, row, pinned) {
    const { queries, keys } = this.panel.columns;
    const names = (column, rows) => rows.map((place) => `“${column.units[column.shown[place]].text}”`).join(" + ");
    const layer = `Layer ${this.panel.frame.get("layer", this.panel.layers.described.layers[0])}`;
    if (pinned.length) {
      const [from, to] = side === "queries" ? [[row], pinned] : [pinned, [row]];
      const lines = [`${names(queries, from)} → ${names(keys, to)}`];
      this.panel
        .heads()
        .slice(0, 6)
        .forEach((head, place) => lines.push(`${layer}, ${this.headName(head)}: ${this.exactly(place, from, to)}`));
      if (this.panel.heads().length > 6) lines.push(`and ${this.panel.heads().length - 6} more heads`);
      return lines;
    }
    const column = side === "queries" ? keys : queries;
    const sums = this.panel.weightsOf(side === "queries" ? "keys" : "queries", [row]);
    const mean = (unit) => sums.reduce((sum, weights) => sum + weights[unit], 0) / sums.length;
    const means = Float32Array.from(column.shown, mean);
    const best = loudest(means, 3)
      .sort((one, other) => means[other] - means[one])
      .map((other) => `“${column.units[column.shown[other]].text}” ${means[other].toFixed(3)}`);
    const heads = this.panel.heads().length === 1 ? this.headName(this.panel.heads()[0]) : `mean of ${this.panel.heads().length} heads`;
    return [
      side === "queries" ? `${names(queries, [row])} attends to` : `${names(keys, [row])} is attended to by`,
      best.join(", "),
      `${layer}, ${heads}`,
    ];
  }

  headName(head) {
    return this.panel.layers.described.pooled ? "mean of all heads" : `head ${this.panel.layers.described.heads[head]}`;
  }

  /** The exact weight between rows, with its rank among the keys of its row; of what did not travel only its limit. */
  exactly(place, from, to) {
    const { queries, keys } = this.panel.columns;
    const rows = this.panel.found.rows[place];
    let [sum, error, missing] = [0, 0, 0];
    for (const query of from)
      for (const key of to) {
        eachIn(rows, queries.shown[query], (unit, weight) => (sum += unit === keys.shown[key] ? weight : 0));
        const off = this.errorOf(this.panel.heads()[place], queries.units[queries.shown[query]], keys.units[keys.shown[key]]);
        error += off.error;
        missing += off.missing;
      }
    const { kept } = this.panel.layers.described;
    if (missing && sum === 0) return `not among the ${kept} largest of its row, which are all that is here`;
    const told = `${missing ? "at least " : ""}${exact(sum, error)}`;
    if (from.length > 1 || to.length > 1) return `${told} in sum`;
    if (missing) return told;
    let rank = 1;
    eachIn(rows, queries.shown[from[0]], (_, weight) => (rank += weight > sum ? 1 : 0));
    return `${told}, rank ${rank} of ${keys.units.length}`;
  }

  /** How far the weight between two units may be off, and how many weights of tokens in it did not travel. */
  errorOf(head, query, key) {
    const { kept } = this.panel.layers.described;
    const asked = query.places.filter((place) => !this.panel.masked.has(place));
    let [error, missing] = [0, 0];
    for (const from of asked)
      for (const to of key.places) {
        const value = this.panel.layer.at(head, from, to);
        error += this.panel.layer.error(head, from, value) / asked.length;
        missing += kept !== null && value === 0 ? 1 : 0;
      }
    return { error, missing };
  }

  /** What is not drawn, and how much it is. @param {number} faint lines in sight that are left out as the weakest */
  say(faint) {
    const { left, lines, best, hasQuiet } = this.panel.found;
    const said = [];
    const share = (mass) => percent(left.mass > 0 ? mass / left.mass : 0);
    const { rows, height } = this.panel.size;
    const inSight = Math.floor(height / this.panel.rowHeight);
    const beyond = rows > inSight ? ", and drawn only between rows in sight," : "";
    if (hasQuiet) said.push(`lines of special tokens and sinks are faded${beyond} until one of these tokens is looked at`);
    if (rows > inSight)
      said.push(`${inSight} of ${thousands(rows)} rows are in sight: scroll over them, or click the strip of the whole text`);
    if (rows > LONG_LIST) said.push("lines from rows out of sight are drawn while a token that they lead to is looked at");
    if (faint) said.push(`of the lines in sight the ${thousands(this.most)} strongest are drawn, ${thousands(faint)} are not`);
    if (left.faint)
      said.push(`${thousands(left.faint)} lines too faint to be seen are not drawn (${share(left.faintMass)} of the attention)`);
    if (left.below)
      said.push(
        `${thousands(left.below)} lines below ${this.panel.frame.get("threshold", 0).toFixed(3)} are not drawn (${share(left.belowMass)} of the attention)`,
      );
    if (left.hiddenMass > 1e-6 * left.mass) said.push(`tokens that are hidden take ${share(left.hiddenMass)}`);
    const { kept } = this.panel.layers.described;
    if (kept !== null) said.push(`each query has its ${kept} largest keys here, all others together take ${share(left.restMass)}`);
    const { layers, left_out: leftOut } = this.panel.layers.described;
    if (leftOut.length) said.push(`layers that have no room in this page: ${listed(leftOut)}`);
    // where there is nothing to step through, no control names the layer
    const only = layers.length === 1 ? `Layer ${layers[0]}. ` : "";
    this.panel.frame.said.textContent = `${only}Opacity is the weight, from 0 to 1, on a ${this.panel.frame.get("root", false) ? "square-root" : "linear"} scale.${said.length ? ` ${said.join("; ")}.`.replace(/^ ./, (start) => start.toUpperCase()) : ""}`;
    const { queries, keys } = this.panel.columns;
    const words = best
      ? `strongest “${queries.units[queries.shown[best.query]].text}” to “${keys.units[keys.shown[best.key]].text}” ${best.weight.toFixed(3)} in head ${this.panel.layers.described.heads[best.head]}`
      : "no line is drawn";
    this.panel.frame.summary.textContent = `Layer ${this.panel.frame.get("layer", this.panel.layers.described.layers[0])}: ${lines.length} lines of ${this.panel.heads().length === 1 ? "1 head" : `${this.panel.heads().length} heads`}, ${words}.`;
  }

  /** The rows of the table: the largest weights of what is shown, drawn or too faint for it. */
  table(most = 200) {
    const { queries, keys } = this.panel.columns;
    const threshold = this.panel.frame.get("threshold", 0);
    const inSight = new Set(keys.shown);
    const each = (visit) =>
      (this.panel.found?.rows ?? []).forEach((rows, place) =>
        queries.shown.forEach((query) =>
          eachIn(rows, query, (key, weight) => weight > 0 && weight >= threshold && inSight.has(key) && visit(weight, query, key, place)),
        ),
      );
    // a long text has millions: only the largest become rows
    let count = 0;
    each(() => count++);
    const weights = new Float32Array(count);
    each((weight) => (weights[--count] = weight));
    const limit = weights.sort()[Math.max(weights.length - most, 0)];
    const rows = [];
    each((weight, query, key, place) => weight >= limit && rows.push({ weight, query, key, place }));
    const largest = rows.sort((one, other) => other.weight - one.weight).slice(0, most);
    return {
      caption: `Layer ${this.panel.frame.get("layer", this.panel.layers.described.layers[0])}: the ${largest.length} largest of ${thousands(weights.length)} weights that are shown`,
      columns: ["From", "To", "Head", "Weight"],
      rows: largest.map(({ weight, query, key, place }) => {
        const head = this.panel.heads()[place];
        const { error } = this.errorOf(head, queries.units[query], keys.units[key]);
        return [queries.units[query].text, keys.units[key].text, this.panel.layers.described.heads[head], exact(weight, error)];
      }),
    };
  }
}
