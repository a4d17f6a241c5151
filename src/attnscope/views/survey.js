// The survey view: all heads at once, coloured by any statistic or by role; point to read, click to pin one head.

import { at, colours, drawScale, element, hatch, inkOn, sharp, written } from "./drawing.js";
import { cellSize, drawBars, drawCells, drawNumbers, letter, scaleOf } from "./survey_map.js";
import { headElements } from "./survey_head.js";

const ROLES = "roles";
const STATE = ["statistic", "label", "measure", "root", "role", "layer", "head", "pinned"];
const LISTED = 8;
const KEYS = [
  ["← → ↑ ↓", "move over heads and layers"],
  ["Home End", "first and last head of the layer"],
  ["Enter", "pin the head, or release it"],
  ["Shift Enter", "pin the head beside those that are pinned; so does a click with Shift"],
  ["Esc", "release all pinned heads"],
  ["?", "this list"],
];

/** Draws the view into an element and keeps it true to the model.
 * @param {{model: {get: Function, set: Function, on: Function, off: Function, save_changes: Function}, el: HTMLElement}} given */
export function render({ model, el }) {
  const payload = model.get("payload");
  const { layers, heads, roles, statistics } = payload;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let cell = { width: 28, height: 28 };
  let map = null;
  let missed = false;

  // ---- the parts of the view

  const part = (name, properties, ...children) => element(name, properties, ...children);
  const controls = part("div", { className: "controls" });
  const meaning = part("p", { className: "quiet meaning" });
  const reading = part("p", { className: "reading", ariaLive: "polite" });
  const summary = part("p", { className: "hidden summary", ariaLive: "polite" });
  const [cells, along, down, bars, axis, scaleCanvas] = Array.from({ length: 6 }, () => part("canvas"));
  Object.assign(cells, { tabIndex: 0, className: "cells" });
  cells.setAttribute("role", "application");
  cells.setAttribute("aria-roledescription", "map of heads");
  const [cursor, note] = ["cursor", "note"].map((name) => part("div", { className: name, hidden: true }));
  const pins = part("div", { className: "pins" });
  const corner = part("div", { className: "corner quiet" }, "layer ↓ head →");
  const barsTitle = part("div", { className: "bars-title quiet" });
  const field = part("div", { className: "field" }, cells, pins, cursor);
  const above = [corner, part("div", { className: "along" }, along), part("div", { className: "axis" }, barsTitle, axis)];
  const chart = part("div", { className: "chart" }, ...above, part("div", { className: "down" }, down), field, part("div", { className: "bars" }, bars));
  const legend = part("div", { className: "legend" }, scaleCanvas, part("span", { className: "quiet unit" }));
  const roleList = part("ul", { className: "roles", ariaLabel: "Roles" });
  const table = part("details", {}, part("summary", {}, "View as table"), part("div", { className: "scroll table" }));
  const lines = (pairs) => part("dl", {}, ...pairs.flatMap(([name, text]) => [part("dt", {}, name), part("dd", {}, text)]));
  const card = part("details", {}, part("summary", {}, "What was surveyed"), lines(payload.card));
  const side = part("aside", { className: "side", ariaLabel: "Pinned heads" });
  const close = part("form", { method: "dialog" }, part("button", {}, "Close"));
  const keys = part("dialog", { ariaLabel: "Keys" }, part("h4", {}, "Keys on the map"), lines(KEYS.map(([key, text]) => [part("kbd", {}, key), text])), close);
  const scroll = part("div", { className: "scroll map" }, chart);
  const middle = part("div", { className: "middle" }, scroll, reading, legend, roleList);
  const holder = part("div", { className: "survey" }, controls, meaning, summary, middle, side, part("div", { className: "foot" }, table, card), note, keys);
  el.classList.add("attnscope");
  el.replaceChildren(holder);

  // ---- what is chosen

  const set = (changes) => {
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    model.save_changes();
  };
  const chosen = () => statistics.find(({ name }) => name === model.get("statistic")) ?? (roles ? null : statistics[0]);
  const same = (one, other) => one?.length === other.length && other.every((item, place) => item === one[place]);
  const here = ([layer, head]) => layers.includes(layer) && heads.includes(head);
  /** The pinned heads by their numbers; a link may name some that are not here. */
  const pinned = () => [model.get("pinned") ?? []].flat().filter(Array.isArray).filter(here);
  const rowOf = (statistic) => Math.max(0, statistic.rows.findIndex((row) => same(model.get("label"), row)));
  const measuresOf = (statistic) => statistic.measures.filter(({ name, array }) => name === "value" || (name !== "error" && array.shape[1] * array.shape[2] > 1));
  const grid = (read) => layers.map((_, layer) => heads.map((_, head) => read(layer, head)));
  const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

  /** The map of the moment: the figure and its error for each head, and by layer. */
  function currentMap() {
    const statistic = chosen();
    if (!statistic) {
      const layerOf = (layer) => roles.names.map((_, role) => [role, heads.filter((_, head) => at(roles.place, layer, head) === role).length]).filter(([, count]) => count);
      return {
        title: "Role of each head", unit: "", prefix: "score ", barsTitle: "heads by role", roles,
        meaning: "What each head does, as far as its figures tell; the letter in a cell is its role.",
        values: grid((layer, head) => at(roles.value, layer, head)),
        errors: grid((layer, head) => (roles.error ? at(roles.error, layer, head) : NaN)),
        layers: layers.map((_, layer) => ({ value: heads.length, error: NaN, parts: layerOf(layer) })),
      };
    }
    const row = rowOf(statistic);
    const measure = measuresOf(statistic).find(({ name }) => name === model.get("measure")) ?? measuresOf(statistic)[0];
    const plain = measure.name === "value";
    const errors = plain && statistic.measures.find(({ name }) => name === "error")?.array;
    const values = grid((layer, head) => at(measure.array, row, layer, head));
    const chance = plain && statistic.measures.find(({ name }) => name === "chance")?.array;
    const labels = statistic.rows[row].map((label) => statistic.words[label]).join(", ");
    const known = plain && statistic.byLayer;
    const ofLayer = (layer) => ({ value: at(known.value, row, layer), error: known.error ? at(known.error, row, layer) : NaN });
    return {
      title: [statistic.title, labels, plain ? "" : measure.title].filter(Boolean).join(" · "),
      unit: plain ? statistic.unit : measure.title.split(":")[0].toLowerCase(),
      meaning: statistic.meaning, values,
      barsTitle: known ? "by layer" : "mean by layer",
      errors: grid((layer, head) => (errors ? at(errors, row, layer, head) : NaN)),
      chance: chance && grid((layer, head) => at(chance, row, layer, head)),
      layers: layers.map((_, layer) => (known ? ofLayer(layer) : { value: mean(values[layer].filter(Number.isFinite)), error: NaN })),
    };
  }

  const roleOf = (layer, head) => roles?.names[at(roles.place, layer, head)] ?? "";
  function told(layer, head) {
    const chance = map.chance ? `, by chance ${written(map.chance[layer][head])}` : "";
    const unit = map.unit && Number.isFinite(map.values[layer][head]) ? ` ${map.unit}` : "";
    return [`Layer ${layers[layer]}, head ${heads[head]}`, `${map.prefix ?? ""}${written(map.values[layer][head], map.errors[layer][head])}${unit}${chance}`, roleOf(layer, head)].filter(Boolean);
  }

  /** The places of all measured heads, the highest first. */
  function ranked() {
    const value = ([layer, head]) => map.values[layer][head];
    const places = layers.flatMap((_, layer) => heads.map((_, head) => [layer, head]));
    return places.filter((place) => Number.isFinite(value(place))).sort((one, other) => value(other) - value(one));
  }

  // ---- drawing

  function drawControls() {
    const statistic = chosen();
    const select = (title, options, value, change) => {
      const list = part("select", { ariaLabel: title, onchange: () => change(list.value) }, ...options.map(([name, text]) => part("option", { value: name, selected: name === value }, text)));
      return part("label", {}, part("span", { className: "quiet" }, title), list);
    };
    const maps = [...(roles ? [[ROLES, "Role of each head"]] : []), ...statistics.map(({ name, title }) => [name, title])];
    const made = [select("Map", maps, statistic?.name ?? ROLES, (name) => set({ label: null, measure: "value", statistic: name }))];
    if (statistic) {
      const row = statistic.rows[rowOf(statistic)];
      statistic.labels.forEach(({ title }, place) => {
        const fits = statistic.rows.filter((other) => row.slice(0, place).every((label, before) => label === other[before]));
        const options = [...new Set(fits.map((other) => other[place]))].map((label) => [label, statistic.words[label]]);
        made.push(select(title, options, row[place], (label) => {
          const wanted = row.map((old, at) => (at === place ? label : old));
          set({ label: statistic.rows.find((other) => same(other, wanted)) ?? fits.find((other) => other[place] === label) });
        }));
      });
      const measures = measuresOf(statistic);
      if (measures.length > 1) made.push(select("Measure", measures.map(({ name, title }) => [name, title.split(":")[0]]), model.get("measure"), (name) => set({ measure: name })));
      const box = part("input", { type: "checkbox", checked: Boolean(model.get("root")), onchange: () => set({ root: box.checked }) });
      made.push(part("label", { className: "check" }, box, "Square-root scale"));
    }
    made.push(part("button", { type: "button", className: "keys", onclick: () => keys.showModal() }, "Keys ", part("kbd", {}, "?")));
    const held = [...controls.querySelectorAll("select, input, button")].indexOf(document.activeElement);
    controls.replaceChildren(...made);
    if (held >= 0) controls.querySelectorAll("select, input, button")[held]?.focus();
  }

  function swatch(place) {
    const palette = colours(el);
    const colour = palette.categorical[place % palette.categorical.length];
    const canvas = part("canvas", { className: "swatch", ariaHidden: "true" });
    const context = sharp(canvas, 20, 16);
    context.fillStyle = colour;
    context.fillRect(0, 0, 20, 16);
    if (place >= palette.categorical.length) hatch(context, 0, 0, 20, 16, `${inkOn(colour)}55`);
    context.fillStyle = inkOn(colour);
    context.textAlign = "center";
    context.font = "11px system-ui, sans-serif";
    context.fillText(letter(place), 10, 8.5);
    return canvas;
  }

  function drawRoles() {
    const held = [...roleList.querySelectorAll("button")].indexOf(document.activeElement);
    const counts = roles ? roles.names.map((_, role) => layers.flatMap((_, layer) => heads.filter((_, head) => at(roles.place, layer, head) === role)).length) : [];
    roleList.replaceChildren(...counts.map((count, role) => {
      const on = model.get("role") === roles.names[role];
      const properties = { type: "button", ariaPressed: on, title: "Show only these heads", onclick: () => set({ role: on ? null : roles.names[role] }) };
      return part("li", {}, part("button", properties, swatch(role), roles.names[role], part("span", { className: "quiet" }, ` ${count}`)));
    }));
    if (held >= 0) roleList.querySelectorAll("button")[held]?.focus();
  }

  function drawMap() {
    const palette = colours(el);
    const scale = scaleOf(map, Boolean(model.get("root")), palette);
    cell = cellSize(middle.clientWidth, layers.length, heads.length);
    const drawn = drawCells(cells, map, cell, scale, palette, roles, model.get("role") ?? null);
    cells.scene = drawn.map(({ row, column, ...what }) => ({ layer: layers[row], head: heads[column], ...what }));
    drawNumbers(along, heads, cell.width, false, palette);
    drawNumbers(down, layers, cell.height, true, palette);
    drawBars(bars, axis, map, cell, palette);
    barsTitle.textContent = map.barsTitle;
    scaleCanvas.hidden = Boolean(map.roles);
    if (!map.roles) drawScale(scaleCanvas, scale, palette);
    const missing = map.values.flat().filter((value) => !Number.isFinite(value)).length;
    const hatched = missing ? `; hatched: ${missing} ${missing === 1 ? "head" : "heads"} not measured` : "";
    legend.classList.toggle("plain", Boolean(map.roles));
    legend.lastChild.textContent = map.roles
      ? `Colour and letter are the role; press one to see only its heads${hatched}`
      : `${map.unit || "value"}, ${scale.root ? "square-root" : "linear"} scale${hatched}`;
    const [best] = ranked();
    const highest = best ? `highest ${written(map.values[best[0]][best[1]], map.errors[best[0]][best[1]])} at layer ${layers[best[0]]}, head ${heads[best[1]]}` : "nothing measured";
    summary.textContent = `${map.title}${map.unit ? `, ${map.unit}` : ""}: ${layers.length} layers by ${heads.length} heads, ${highest}${hatched}.`;
    cells.setAttribute("aria-label", `${map.title}. Arrow keys move, Enter pins, question mark lists the keys.`);
  }

  function drawSide() {
    const button = (layer, head) => part("button", { type: "button", onclick: (event) => pinAt(layer, head, event.shiftKey) }, `${layers[layer]}.${heads[head]}`);
    const top = side.scrollTop;
    if (pinned().length) {
      const sections = pinned().map(([layer, head], place) => {
        const release = part("button", { type: "button", onclick: () => (pinAt(layers.indexOf(layer), heads.indexOf(head), true), cells.focus()) }, "Release ", ...(place ? [] : [part("kbd", {}, "Esc")]));
        const bar = part("div", { className: "bar" }, part("h3", {}, `Layer ${layer}, head ${head}`), release);
        return part("section", {}, bar, ...headElements(payload, layers.indexOf(layer), heads.indexOf(head), colours(el), swatch));
      });
      side.replaceChildren(...sections);
      // a head that is added leaves what was read in its place
      side.scrollTop = side.dataset.head === String(pinned()[0]) ? top : 0;
      side.dataset.head = String(pinned()[0]);
      return;
    }
    const order = ranked();
    const shown = map.roles ? roles.names.map((name) => order.find(([layer, head]) => roleOf(layer, head) === name)).filter(Boolean) : order;
    const rows = shown.slice(0, LISTED).map(([layer, head]) => {
      const texts = [button(layer, head), written(map.values[layer][head], map.errors[layer][head]), roleOf(layer, head)];
      return part("tr", {}, ...texts.map((text) => part("td", {}, text)));
    });
    const heading = map.roles ? "The clearest head of each role" : "Highest in this map";
    const names = part("thead", {}, part("tr", {}, ...["Head", map.unit || (map.roles ? "Score" : "Value"), "Role"].map((name) => part("th", { scope: "col" }, name))));
    const hint = "Click a cell, or press Enter on it, to pin a head here: its role, its exemplars, its figures. With Shift, several.";
    const list = part("table", { className: "highest" }, names, part("tbody", {}, ...rows));
    side.replaceChildren(part("div", { className: "bar" }, part("h3", {}, heading)), part("p", { className: "quiet" }, hint), list);
    delete side.dataset.head;
  }

  function drawTable() {
    if (!table.open) return;
    const header = part("tr", {}, part("th", { scope: "col" }, "layer \\ head"), ...heads.map((head) => part("th", { scope: "col" }, String(head))));
    const text = (layer, head) => (map.roles ? `${roleOf(layer, head)} ${written(map.values[layer][head])}` : written(map.values[layer][head], map.errors[layer][head]));
    const rows = layers.map((number, layer) => part("tr", {}, part("th", { scope: "row" }, String(number)), ...heads.map((_, head) => part("td", {}, text(layer, head)))));
    table.lastChild.replaceChildren(part("table", { className: "plain" }, part("caption", {}, `${map.title}${map.unit ? ` (${map.unit})` : ""}`), part("thead", {}, header), part("tbody", {}, ...rows)));
  }

  /** Lays a frame over one cell, or takes it away. */
  function frame(box, place) {
    box.hidden = !place;
    if (!place) return;
    Object.assign(box.style, { left: `${place[1] * cell.width}px`, top: `${place[0] * cell.height}px`, width: `${cell.width - 1}px`, height: `${cell.height - 1}px` });
  }

  const selected = () => (here([model.get("layer"), model.get("head")]) ? [layers.indexOf(model.get("layer")), heads.indexOf(model.get("head"))] : null);

  /** Reads out one head: beside its cell, and in the line below the map. */
  function point(place) {
    const shown = place ?? (document.activeElement === cells ? selected() : null);
    frame(cursor, shown);
    note.hidden = !shown;
    reading.textContent = shown ? told(...shown).join(" · ") : "Point at a cell to read its figure.";
    if (!shown) return;
    note.replaceChildren(...told(...shown).map((line) => part("div", {}, line)));
    const [box, around] = [cells.getBoundingClientRect(), holder.getBoundingClientRect()];
    const left = box.left - around.left + (shown[1] + 1) * cell.width + 8;
    const flip = left + note.offsetWidth > holder.clientWidth ? note.offsetWidth + cell.width + 16 : 0;
    Object.assign(note.style, { left: `${Math.max(0, left - flip)}px`, top: `${box.top - around.top + shown[0] * cell.height}px` });
  }

  function framePins() {
    const boxes = pinned().map(() => part("div", { className: "pin" }));
    pins.replaceChildren(...boxes);
    pinned().forEach(([layer, head], place) => frame(boxes[place], [layers.indexOf(layer), heads.indexOf(head)]));
  }

  function drawAll() {
    missed = !el.isConnected;
    if (missed) return; // a notebook may take the view off the page: it has no colours there
    map = currentMap();
    meaning.textContent = map.meaning;
    drawControls();
    drawRoles();
    drawMap();
    drawSide();
    drawTable();
    framePins();
    point(null);
    holder.dataset.drawn = String(Number(holder.dataset.drawn ?? 0) + 1);
  }

  // ---- pointing, pinning, keys

  /** Pins a head, alone or beside the others; one that is pinned is released. */
  function pinAt(layer, head, beside = false) {
    const place = [layers[layer], heads[head]];
    const others = pinned().filter((other) => !same(other, place));
    const added = others.length < pinned().length ? others : [...(beside ? others : []), place];
    set({ layer: place[0], head: place[1], pinned: added });
  }
  const placeOf = (event) => [Math.floor(event.offsetY / cell.height), Math.floor(event.offsetX / cell.width)].map((place, axis) => Math.min(Math.max(place, 0), [layers, heads][axis].length - 1));
  cells.addEventListener("pointermove", (event) => point(placeOf(event)));
  cells.addEventListener("pointerleave", () => point(null));
  cells.addEventListener("click", (event) => pinAt(...placeOf(event), event.shiftKey));
  for (const kind of ["focus", "blur"]) cells.addEventListener(kind, () => point(null));
  bars.addEventListener("pointermove", (event) => {
    const layer = Math.min(Math.max(Math.floor(event.offsetY / cell.height), 0), layers.length - 1);
    const { value, error, parts } = map.layers[layer];
    const text = parts ? parts.map(([role, count]) => `${roles.names[role]} ${count}`).join(", ") : `${written(value, error)} ${map.unit}, ${map.barsTitle}`;
    reading.textContent = `Layer ${layers[layer]} · ${text}`;
  });
  bars.addEventListener("pointerleave", () => point(null));
  const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] };
  cells.addEventListener("keydown", (event) => {
    const [layer, head] = selected() ?? [0, 0];
    if (event.key in MOVES) {
      const [by, along] = selected() ? MOVES[event.key] : [0, 0];
      const inside = (place, count) => Math.min(Math.max(place, 0), count - 1);
      set({ layer: layers[inside(layer + by, layers.length)], head: heads[inside(head + along, heads.length)] });
    } else if (event.key === "Enter" || event.key === " ") pinAt(layer, head, event.shiftKey);
    else return;
    event.preventDefault();
  });
  holder.addEventListener("keydown", (event) => {
    if (keys.open) return;
    if (event.key === "?") keys.showModal();
    if (event.key === "Escape" && pinned().length) {
      set({ pinned: [] });
      cells.focus();
    }
  });
  table.addEventListener("toggle", drawTable);

  const moved = () => point(null);
  for (const name of STATE) model.on(`change:${name}`, name === "layer" || name === "head" ? moved : drawAll);
  dark.addEventListener("change", drawAll);
  const watch = new ResizeObserver(() => {
    if (missed) drawAll();
    if (!middle.clientWidth) return;
    drawMap();
    framePins();
    point(null);
  });
  drawAll();
  watch.observe(middle);
  return () => {
    watch.disconnect();
    dark.removeEventListener("change", drawAll);
    for (const name of STATE) model.off(`change:${name}`, name === "layer" || name === "head" ? moved : drawAll);
  };
}

export default { render };
