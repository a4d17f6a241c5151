// One head of the survey view: its role with evidence, its exemplars with the pair marked, its figures among all heads.

import { at, element, sharp, written } from "./drawing.js";
import { drawSwatch } from "./survey_map.js";

const STANDING_OUT = 3;

/** All that is known of one head, as elements for the side of the view. */
export function headElements(payload, layer, head, palette) {
  return [...roleElements(payload, layer, head, palette), ...exemplarElements(payload, layer, head, payload.roleExemplars, "Cases of its role"), ...exemplarElements(payload, layer, head, payload.exemplars, "Its largest weights"), ...figureElements(payload, layer, head, palette)];
}

function roleElements({ roles, heads }, layer, head, palette) {
  const place = roles ? at(roles.place, layer, head) : NaN;
  if (!Number.isFinite(place)) return [];
  const number = layer * heads.length + head;
  const score = written(at(roles.value, layer, head), roles.error && at(roles.error, layer, head));
  const name = element("p", { className: "role" }, drawSwatch(roles, place, palette), element("strong", {}, roles.names[place]), element("span", { className: "quiet" }, `score ${score}`));
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
    return element("li", {}, element("span", { className: "weight" }, weight.toFixed(2)), element("span", { dir: "auto", className: "sentence" }, ...tokens));
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
  const meaning = "The dot is this head with its standard error, the long line the mean over all heads, the short lines all heads. Of many labels, those furthest above the mean.";
  const columns = element("div", { className: "columns quiet", ariaHidden: "true" }, element("span", {}, "this head"), element("span", {}, "mean"));
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
  return {
    name: statistic.rows[row].map((label) => statistic.words[label]).join(" "),
    value, mean, all,
    error: errors ? at(errors, row, layer, head) : NaN,
    beyond: (value - mean) / (spread || 1),
    others: others.map(({ title, array }) => `${title.split(":")[0]} ${written(at(array, row, layer, head))}`),
  };
}

function tableOf(figures, palette, whole) {
  const body = element("tbody");
  for (const figure of figures) {
    const strip = element("canvas", { role: "img", ariaLabel: `${written(figure.value)} among heads from ${written(Math.min(...figure.all))} to ${written(Math.max(...figure.all))}` });
    drawStrip(strip, figure, palette);
    const name = element("th", { scope: "row" }, figure.name);
    const mean = element("td", { className: "quiet" }, element("span", { className: "hidden" }, "mean over all heads "), written(figure.mean, figure.error).split(" ±")[0]);
    body.append(element("tr", {}, name, element("td", {}, strip), element("td", {}, written(figure.value, figure.error)), mean));
    if (whole && figure.others.length) body.append(element("tr", {}, element("td", { colSpan: 4, className: "quiet others" }, figure.others.join(" · "))));
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
