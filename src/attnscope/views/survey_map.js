// The map of the survey view: cells, numbers of layers and heads, bars by layer, and the scale. Pictures only, no state.

import { at, element, hatch, inkOn, sharp, short, written } from "./drawing.js";

export const BARS = 112;
export const LEAST = 13;

/** The colour and the letters of a role. @param {SurveyRoles} roles @param {number} place */
export function drawSwatch(roles, place) {
  const colour = roles.colours[place];
  const canvas = element("canvas", { className: "swatch", ariaHidden: "true" });
  const context = sharp(canvas, 24, 16);
  context.fillStyle = colour;
  context.fillRect(0, 0, 24, 16);
  context.fillStyle = inkOn(colour);
  context.textAlign = "center";
  context.font = "11px system-ui, sans-serif";
  context.fillText(roles.letters[place], 12, 8.5, 22);
  return canvas;
}

/** The scale of a map: linear from 0 or by square root; signed figures diverge from 0.
 * @param {{values: number[][]}} map @param {boolean} root @param {Palette} palette */
export function scaleOf(map, root, palette) {
  const measured = map.values.flat().filter(Number.isFinite);
  const signed = measured.some((value) => value < 0);
  const largest = measured.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const share = (value) => {
    const part = largest > 0 ? Math.min(Math.abs(value) / largest, 1) : 0;
    return root ? Math.sqrt(part) : part;
  };
  const colour = (value) =>
    signed
      ? palette.diverging[Math.round(127.5 + 127.5 * Math.sign(value) * share(value))]
      : palette.sequential[Math.round(255 * share(value))];
  return { signed, largest, root, colour };
}

/** What fills the cell of one head: the colour of its figure, or of its role. */
function fillOf(map, layer, head, scale) {
  if (!map.roles) return Number.isFinite(map.values[layer][head]) ? scale.colour(map.values[layer][head]) : null;
  const role = at(map.roles.place, layer, head);
  return Number.isFinite(role) ? map.roles.colours[role] : null;
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
      const fill = fillOf(map, layer, head, scale);
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
      context.fillStyle = map.roles.colours[role];
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

// ---- What is chosen of a survey: the statistic, its label and measure, and the figure of each head by them, in numbers and words.

/** @typedef {{title: string, unit: string, meaning: string, barsTitle: string, values: number[][], errors: number[][],
 *   layers: {value: number, error: number, parts?: [number, number][]}[], chance?: number[][], prefix?: string, roles?: SurveyRoles}} SurveyMap by layer and head */

/** Whether two lists hold the same. */
export const sameList = (one, other) => one?.length === other.length && other.every((item, place) => item === one[place]);

const meanOf = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

/** The figures that the model names; heads are by their places, except where numbers are spoken of. */
export class SurveyFigures {
  /** @param {import("./frame.js").Frame} frame @param {SurveyPayload} payload */
  constructor(frame, payload) {
    this.frame = frame;
    this.payload = payload;
  }

  // ---- what is chosen

  /** The statistic, or null where roles are the map. */
  get statistic() {
    const { statistics, roles } = this.payload;
    return statistics.find(({ name }) => name === this.frame.get("statistic")) ?? (roles ? null : statistics[0]);
  }

  /** The labels of a statistic that are chosen, as the number of their row. */
  rowOf(statistic) {
    return Math.max(
      0,
      statistic.rows.findIndex((row) => sameList(this.frame.get("label"), row)),
    );
  }

  /** The measures of a statistic that make a map: those that differ from head to head. */
  measuresOf(statistic) {
    return statistic.measures.filter(({ name, array }) => name === "value" || (name !== "error" && array.shape[1] * array.shape[2] > 1));
  }

  /** The pinned heads by their numbers; a link may name some that are not here. */
  get pinned() {
    const { layers, heads } = this.payload;
    return [this.frame.get("pinned", [])]
      .flat()
      .filter((place) => Array.isArray(place) && layers.includes(place[0]) && heads.includes(place[1]));
  }

  /** The place of the head that the keys have moved to, or null. @returns {[number, number] | null} */
  get selected() {
    const { layers, heads } = this.payload;
    /** @type {[number, number]} */
    const place = [layers.indexOf(this.frame.get("layer")), heads.indexOf(this.frame.get("head"))];
    return place.includes(-1) ? null : place;
  }

  // ---- the map

  #grid(read) {
    return this.payload.layers.map((_, layer) => this.payload.heads.map((_, head) => read(layer, head)));
  }

  /** Reads the map of the moment: the figure and its error for each head, and by layer. @returns {SurveyMap} */
  read() {
    this.map = this.statistic ? this.#statisticMap(this.statistic) : this.#roleMap();
    return this.map;
  }

  /** @returns {SurveyMap} */
  #roleMap() {
    const { layers, heads, roles } = this.payload;
    /** @returns {[number, number][]} role and count */
    const parts = (layer) =>
      roles.names
        .map((_, role) => /** @type {[number, number]} */ ([role, heads.filter((_, head) => at(roles.place, layer, head) === role).length]))
        .filter(([, count]) => count);
    return {
      title: "Role of each head",
      unit: "",
      prefix: "score ",
      barsTitle: "heads by role",
      roles,
      meaning: "What each head does, as far as its figures tell; the letters in a cell are its role.",
      values: this.#grid((layer, head) => at(roles.value, layer, head)),
      errors: this.#grid((layer, head) => (roles.error ? at(roles.error, layer, head) : NaN)),
      layers: layers.map((_, layer) => ({ value: heads.length, error: NaN, parts: parts(layer) })),
    };
  }

  /** @param {SurveyStatistic} statistic @returns {SurveyMap} */
  #statisticMap(statistic) {
    const row = this.rowOf(statistic);
    const measures = this.measuresOf(statistic);
    const measure = measures.find(({ name }) => name === this.frame.get("measure")) ?? measures[0];
    const plain = measure.name === "value";
    const beside = (name) => plain && statistic.measures.find((one) => one.name === name)?.array;
    const [errors, chance] = [beside("error"), beside("chance")];
    const values = this.#grid((layer, head) => at(measure.array, row, layer, head));
    const labels = statistic.rows[row].map((label) => statistic.words[label]).join(", ");
    const known = plain && statistic.byLayer;
    const ofLayer = (layer) => ({ value: at(known.value, row, layer), error: known.error ? at(known.error, row, layer) : NaN });
    return {
      title: [statistic.title, labels, plain ? "" : measure.title].filter(Boolean).join(" · "),
      unit: plain ? statistic.unit : measure.title.split(":")[0].toLowerCase(),
      meaning: statistic.meaning,
      values,
      barsTitle: known ? "by layer" : "mean by layer",
      errors: this.#grid((layer, head) => (errors ? at(errors, row, layer, head) : NaN)),
      chance: chance && this.#grid((layer, head) => at(chance, row, layer, head)),
      layers: values.map((figures, layer) => (known ? ofLayer(layer) : { value: meanOf(figures.filter(Number.isFinite)), error: NaN })),
    };
  }

  /** The places of all measured heads, the highest first. */
  ranked() {
    const value = ([layer, head]) => this.map.values[layer][head];
    const places = this.#grid((layer, head) => [layer, head]).flat();
    return places.filter((place) => Number.isFinite(value(place))).sort((one, other) => value(other) - value(one));
  }

  // ---- in words

  roleOf(layer, head) {
    const { roles } = this.payload;
    return roles?.names[at(roles.place, layer, head)] ?? "";
  }

  /** The role of a head with its colour and letters, as far as there is one. @returns {(Node | string)[]} */
  roleElements(layer, head) {
    const { roles } = this.payload;
    const place = roles ? at(roles.place, layer, head) : NaN;
    return Number.isFinite(place) ? [drawSwatch(roles, place), roles.names[place]] : [];
  }

  /** The figure of a head with its error. */
  figure(layer, head) {
    return written(this.map.values[layer][head], this.map.errors[layer][head]);
  }

  /** What is said of a head. */
  about(layer, head) {
    const {
      map,
      payload: { layers, heads },
    } = this;
    const chance = map.chance ? `, by chance ${written(map.chance[layer][head])}` : "";
    const unit = map.unit && Number.isFinite(map.values[layer][head]) ? ` ${map.unit}` : "";
    return [
      `Layer ${layers[layer]}, head ${heads[head]}`,
      `${map.prefix ?? ""}${this.figure(layer, head)}${unit}${chance}`,
      this.roleOf(layer, head),
    ].filter(Boolean);
  }

  /** What is said of the bar of a layer. */
  aboutLayer(layer) {
    const {
      map,
      payload: { layers, roles },
    } = this;
    const { value, error, parts } = map.layers[layer];
    return [
      `Layer ${layers[layer]}`,
      parts
        ? parts.map(([role, count]) => `${roles.names[role]} ${count}`).join(", ")
        : `${written(value, error)} ${map.unit}, ${map.barsTitle}`,
    ];
  }

  /** How many heads were not measured, in words. */
  get missing() {
    const count = this.map.values.flat().filter((value) => !Number.isFinite(value)).length;
    return count ? `; hatched: ${count} ${count === 1 ? "head" : "heads"} not measured` : "";
  }

  /** The map in one sentence. */
  summary() {
    const {
      map,
      payload: { layers, heads },
    } = this;
    const [best] = this.ranked();
    const highest = best ? `highest ${this.figure(...best)} at layer ${layers[best[0]]}, head ${heads[best[1]]}` : "nothing measured";
    return `${map.title}${map.unit ? `, ${map.unit}` : ""}: ${layers.length} layers by ${heads.length} heads, ${highest}${this.missing}.`;
  }

  /** The rows of the table: a layer each, with the figure of every head. */
  table() {
    const {
      map,
      payload: { layers, heads },
    } = this;
    const text = (layer, head) =>
      map.roles ? `${this.roleOf(layer, head)} ${written(map.values[layer][head])}` : this.figure(layer, head);
    return {
      caption: `${map.title}${map.unit ? ` (${map.unit})` : ""}`,
      columns: ["layer \\ head", ...heads],
      rows: layers.map((number, layer) => [number, ...heads.map((_, head) => text(layer, head))]),
    };
  }
}

// ---- One head of the survey view: its role with evidence, its exemplars with the pair marked, its figures among all heads.

const STANDING_OUT = 3;

/** All that is known of one head, as elements for the side of the view. */
export function headElements(payload, layer, head, palette) {
  return [
    ...roleElements(payload, layer, head),
    ...exemplarElements(payload, layer, head, payload.roleExemplars, "Cases of its role"),
    ...exemplarElements(payload, layer, head, payload.exemplars, "Its largest weights"),
    ...figureElements(payload, layer, head, palette),
  ];
}

function roleElements({ roles, heads }, layer, head) {
  const place = roles ? at(roles.place, layer, head) : NaN;
  if (!Number.isFinite(place)) return [];
  const number = layer * heads.length + head;
  const score = written(at(roles.value, layer, head), roles.error && at(roles.error, layer, head));
  const name = element(
    "p",
    { className: "role" },
    drawSwatch(roles, place),
    element("strong", {}, roles.names[place]),
    element("span", { className: "quiet" }, `score ${score}`),
  );
  const lines = [name];
  if (roles.evidence?.[number]) lines.push(element("p", {}, roles.evidence[number]));
  if (roles.also?.[number]) lines.push(element("p", { className: "quiet" }, `Also: ${roles.also[number]}`));
  return lines;
}

function exemplarElements({ layers, heads }, layer, head, exemplars, title) {
  const rows = exemplars?.of[`${layers[layer]},${heads[head]}`];
  if (!rows) return [];
  const items = rows.map(([text, query, key, weight]) => {
    const tokens = exemplars.texts[text].map((token, place) => {
      const kind = place === query ? (place === key ? "query key" : "query") : place === key ? "key" : "";
      // the space before a marked token is not part of the mark
      const [, space, rest] = kind ? token.match(/^(\s*)([^]*)$/) : [token, "", token];
      const name = place === query ? "b" : place === key ? "u" : "span";
      const marked = element(name, { className: `piece ${kind}` }, rest || "␣");
      return space ? element("span", {}, space, marked) : marked;
    });
    return element(
      "li",
      {},
      element("span", { className: "weight" }, weight.toFixed(2)),
      element("span", { dir: "auto", className: "sentence" }, ...tokens),
    );
  });
  const [bold, underlined] = [element("b", { className: "piece query" }, "bold"), element("u", { className: "piece key" }, "underlined")];
  const meaning = element("p", { className: "quiet" }, "The weight, and the text: ", bold, " attends to ", underlined, ".");
  return [element("h4", {}, title), meaning, element("ol", { className: "exemplars" }, ...items)];
}

/** Every statistic of the head; of many labels those that stand out, and the others on request. */
function figureElements(payload, layer, head, palette) {
  if (!payload.statistics.length) return [];
  const groups = payload.statistics.map((statistic) => {
    const figures = statistic.rows.map((_, row) => figureOf(payload, statistic, row, layer, head));
    const title = element("h5", {}, statistic.title, element("span", { className: "quiet" }, statistic.unit && ` ${statistic.unit}`));
    if (figures.length <= STANDING_OUT) return element("div", {}, title, tableOf(figures, palette, true));
    const order = [...figures].sort((one, other) => (other.beyond || 0) - (one.beyond || 0));
    const rest = element("details", {}, element("summary", {}, `All ${figures.length}`));
    rest.addEventListener("toggle", () => rest.open && rest.children.length < 2 && rest.append(tableOf(figures, palette, false)));
    return element("div", {}, title, tableOf(order.slice(0, STANDING_OUT), palette, true), rest);
  });
  const meaning =
    "The dot is this head with its standard error, the long line the mean over all heads, the short lines all heads. Of many labels, those furthest above the mean.";
  const columns = element(
    "div",
    { className: "columns quiet", ariaHidden: "true" },
    element("span", {}, "this head"),
    element("span", {}, "mean"),
  );
  return [element("h4", {}, "Its figures among all heads"), element("p", { className: "quiet" }, meaning), columns, ...groups];
}

function figureOf(payload, statistic, row, layer, head) {
  const measure = (name) => statistic.measures.find((one) => one.name === name)?.array;
  const [values, errors] = [measure("value"), measure("error")];
  const all = payload.layers.flatMap((_, down) => payload.heads.map((_, across) => at(values, row, down, across))).filter(Number.isFinite);
  const mean = all.reduce((sum, value) => sum + value, 0) / all.length;
  const spread = Math.sqrt(all.reduce((sum, value) => sum + (value - mean) ** 2, 0) / all.length);
  const value = at(values, row, layer, head);
  const others = statistic.measures.filter(({ name }) => name !== "value" && name !== "error");
  const named = (some) => some.map(({ title, array }) => `${title.split(":")[0]} ${written(at(array, row, layer, head))}`).join(" · ");
  return {
    name: statistic.rows[row].map((label) => statistic.words[label]).join(" "),
    value,
    mean,
    all,
    error: errors ? at(errors, row, layer, head) : NaN,
    beyond: (value - mean) / (spread || 1),
    chance: named(others.filter(({ name }) => name === "chance")),
    others: named(others),
  };
}

function tableOf(figures, palette, whole) {
  const body = element("tbody");
  for (const figure of figures) {
    const strip = element("canvas", {
      role: "img",
      ariaLabel: `${written(figure.value)} among heads from ${written(Math.min(...figure.all))} to ${written(Math.max(...figure.all))}`,
    });
    drawStrip(strip, figure, palette);
    const name = element("th", { scope: "row" }, figure.name);
    const spoken = element("span", { className: "hidden" }, "mean over all heads ");
    const mean = element("td", { className: "quiet" }, spoken, written(figure.mean, figure.error).split(" ±")[0]);
    body.append(
      element("tr", { title: figure.others }, name, element("td", {}, strip), element("td", {}, written(figure.value, figure.error)), mean),
    );
    const chance = whole && figure.chance && element("td", { colSpan: 4, className: "quiet others" }, figure.chance);
    if (chance) body.append(element("tr", {}, chance));
  }
  return element("table", { className: figures[0].name ? "figures named" : "figures" }, body);
}

/** Where a head stands among all heads, on a line from 0 to the largest. */
function drawStrip(canvas, { value, error, mean, all }, palette) {
  const [width, height] = [112, 20];
  const context = sharp(canvas, width, height);
  const [least, most] = [Math.min(0, ...all), Math.max(0, ...all, value + (error || 0))];
  const place = (number) => 6 + (most > least ? ((number - least) / (most - least)) * (width - 12) : 0);
  context.fillStyle = palette.read("line");
  context.fillRect(6, height / 2 - 0.5, width - 12, 1);
  context.fillStyle = palette.read("quiet");
  context.globalAlpha = Math.max(0.15, Math.min(0.6, 20 / all.length));
  for (const other of all) context.fillRect(place(other) - 0.5, height / 2 - 4, 1, 8);
  context.globalAlpha = 1;
  context.fillStyle = palette.read("text");
  context.fillRect(place(mean) - 0.75, 1, 1.5, height - 2);
  if (!Number.isFinite(value)) return;
  context.fillStyle = palette.read("accent");
  if (error > 0) context.fillRect(place(value - error), height / 2 - 1, Math.max(place(value + error) - place(value - error), 1), 2);
  context.beginPath();
  context.arc(place(value), height / 2, 4, 0, 2 * Math.PI);
  context.fill();
}
