// The survey view: all heads at once, coloured by any statistic or by role; point to read, click to pin one head.

import { at, colours, drawScale, element, movedPlace, pointedPlace, sharp } from "./drawing.js";
import { Frame } from "./frame.js";
import { BARS, LEAST, SurveyFigures, drawBars, drawCells, drawSwatch, headElements, sameList, scaleOf } from "./survey_map.js";

/** Pixels of the numbers beside the map. */
const LABEL = 28;

// ---- What stands beside the map of the survey view: the heads that are pinned, or those that stand out.

const LISTED = 8;

/** The side of the view. */
class SurveySide {
  /** @param {import("./survey_map.js").SurveyFigures} figures
   * @param {{pin: (layer: number, head: number, beside: boolean) => void, leave: () => void}} told `pin` a head by its
   *   places, or release it; `leave` to the map */
  constructor(figures, { pin, leave }) {
    this.figures = figures;
    this.pin = pin;
    this.leave = leave;
    this.node = element("aside", { className: "side", ariaLabel: "Pinned heads" });
  }

  /** @param {Palette} palette */
  draw(palette) {
    const [first] = this.figures.pinned;
    const top = this.node.scrollTop;
    this.node.replaceChildren(...(first ? this.#pinned(palette) : this.#highest()));
    // a head that is added leaves what was read in its place
    this.node.scrollTop = first && this.node.dataset.head === String(first) ? top : 0;
    this.node.dataset.head = first ? String(first) : "";
  }

  #pinned(palette) {
    const { payload, pinned } = this.figures;
    return pinned.map(([number, head], place) => {
      const [down, across] = [payload.layers.indexOf(number), payload.heads.indexOf(head)];
      const release = element(
        "button",
        { type: "button", onclick: () => (this.pin(down, across, true), this.leave()) },
        "Release ",
        ...(place ? [] : [element("kbd", {}, "Esc")]),
      );
      const bar = element("div", { className: "bar" }, element("h3", {}, `Layer ${number}, head ${head}`), release);
      return element("section", {}, bar, ...headElements(payload, down, across, palette));
    });
  }

  #highest() {
    const {
      figures,
      figures: {
        map,
        payload: { layers, heads, roles },
      },
    } = this;
    const order = figures.ranked();
    const shown = map.roles
      ? roles.names.map((name) => order.find((place) => figures.roleOf(...place) === name)).filter(Boolean)
      : order.slice(0, LISTED);
    const rows = shown.map(([layer, head]) => {
      const button = element(
        "button",
        { type: "button", onclick: (event) => this.pin(layer, head, event.shiftKey) },
        `${layers[layer]}.${heads[head]}`,
      );
      return element(
        "tr",
        {},
        ...[[button], [figures.figure(layer, head)], figures.roleElements(layer, head)].map((cells) => element("td", {}, ...cells)),
      );
    });
    const names = ["Head", map.unit || (map.roles ? "Score" : "Value"), "Role"].map((name) => element("th", { scope: "col" }, name));
    const list = element(
      "table",
      { className: "highest" },
      element("thead", {}, element("tr", {}, ...names)),
      element("tbody", {}, ...rows),
    );
    const hint = "Click a cell, or press Enter on it, to pin a head here: its role, its exemplars, its figures. With Shift, several.";
    return [
      element("div", { className: "bar" }, element("h3", {}, map.roles ? "The clearest head of each role" : "Highest in this map")),
      element("p", { className: "quiet" }, hint),
      list,
    ];
  }
}

const ROLES = "roles";
/** What only moves a frame over the map. */
const MOVING = ["layer", "head"];

/** The size of a cell, so that the map fits the room it has; below the least size it scrolls instead.
 * @param {number} room @param {number} layers @param {number} heads */
function cellSize(room, layers, heads) {
  const wide = Math.floor((room - LABEL - BARS - 24) / heads);
  const width = Math.min(Math.max(wide, LEAST), 44);
  return { width, height: Math.max(LEAST, Math.min(width, 28, Math.floor(640 / layers))) };
}

/** Numbers along one side of the map, as many as can be read.
 * @param {HTMLCanvasElement} canvas @param {number[]} numbers @param {number} step @param {boolean} down */
function drawNumbers(canvas, numbers, step, down, palette) {
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

/** The map with its scale and its roles, and the side. */
class SurveyView {
  #cell = { width: 28, height: 28 };

  /** @param {import("./frame.js").Frame} frame @param {SurveyPayload} payload */
  constructor(frame, payload) {
    this.frame = frame;
    this.payload = payload;
    this.figures = new SurveyFigures(frame, payload);
    const canvas = () => element("canvas");
    this.along = canvas();
    this.down = canvas();
    this.bars = canvas();
    this.axis = canvas();
    this.scale = canvas();
    this.cells = element("canvas", { className: "cells", tabIndex: 0, role: "application" });
    this.cells.setAttribute("aria-roledescription", "map of heads");
    this.cursor = element("div", { className: "cursor", hidden: true });
    this.pins = element("div", { className: "pins" });
    this.barsTitle = element("div", { className: "bars-title quiet" });
    const above = [
      element("div", { className: "corner quiet" }, "layer ↓ head →"),
      element("div", { className: "along" }, this.along),
      element("div", { className: "axis" }, this.barsTitle, this.axis),
    ];
    const field = element("div", { className: "field" }, this.cells, this.pins, this.cursor);
    const chart = element(
      "div",
      { className: "chart" },
      ...above,
      element("div", { className: "down" }, this.down),
      field,
      element("div", { className: "bars" }, this.bars),
    );
    this.legend = element("div", { className: "legend" }, this.scale, element("span", { className: "quiet unit" }));
    this.roles = element("ul", { className: "roles", ariaLabel: "Roles" });
    this.middle = element(
      "div",
      { className: "middle" },
      element("div", { className: "scroll map" }, chart),
      frame.reading,
      this.legend,
      this.roles,
    );
    this.side = new SurveySide(this.figures, {
      pin: (layer, head, beside) => this.#pin(layer, head, beside),
      leave: () => this.cells.focus(),
    });
    this.#listen();
  }

  #listen() {
    const { frame, cells, bars } = this;
    cells.addEventListener("pointermove", (event) => this.point(this.#placeOf(event)));
    for (const kind of ["pointerleave", "focus", "blur"]) cells.addEventListener(kind, () => this.point(null));
    cells.addEventListener("click", (event) => this.#pin(...this.#placeOf(event), event.shiftKey));
    cells.addEventListener("keydown", (event) => this.#pressed(event));
    bars.addEventListener("pointermove", (event) => frame.tell(null, this.figures.aboutLayer(this.#placeOf(event)[0])));
    bars.addEventListener("pointerleave", () => this.point(null));
    frame.listKey("← → ↑ ↓", "move over heads and layers");
    frame.listKey("Home End", "first and last head of the layer");
    frame.listKey("Enter", "pin the head, or release it");
    frame.listKey("Shift Enter", "pin the head beside those that are pinned; so does a click with Shift");
    frame.key("Escape", "release all pinned heads", () => {
      if (!this.figures.pinned.length) return;
      frame.set({ pinned: [] });
      cells.focus();
    });
  }

  // ---- drawing

  draw() {
    const { frame, figures } = this;
    const map = figures.read();
    this.palette = colours(frame.el);
    frame.said.textContent = map.meaning;
    frame.summary.textContent = figures.summary();
    this.#drawMap(map);
    this.#drawRoles();
    this.side.draw(this.palette);
    this.#drawPins();
    this.point(null);
  }

  #drawMap(map) {
    const {
      frame,
      palette,
      cells,
      payload: { layers, heads, roles },
    } = this;
    const scale = scaleOf(map, Boolean(frame.get("root", false)), palette);
    this.#cell = cellSize(this.middle.clientWidth, layers.length, heads.length);
    const drawn = drawCells(cells, map, this.#cell, scale, palette, roles, frame.get("role"));
    cells.scene = drawn.map(({ row, column, ...what }) => ({ layer: layers[row], head: heads[column], ...what }));
    cells.setAttribute("aria-label", `${map.title}. Arrow keys move, Enter pins, question mark lists the keys.`);
    drawNumbers(this.along, heads, this.#cell.width, false, palette);
    drawNumbers(this.down, layers, this.#cell.height, true, palette);
    drawBars(this.bars, this.axis, map, this.#cell, palette);
    this.barsTitle.textContent = map.barsTitle;
    this.scale.hidden = Boolean(map.roles);
    if (!map.roles) drawScale(this.scale, scale, palette);
    const unit = map.roles
      ? "Colour and letters are the role, the same in every survey; press one to see only its heads"
      : `${map.unit || "value"}, ${scale.root ? "square-root" : "linear"} scale`;
    this.legend.classList.toggle("plain", Boolean(map.roles));
    this.legend.lastChild.textContent = `${unit}${this.figures.missing}`;
  }

  #drawRoles() {
    const {
      frame,
      payload: { layers, heads, roles },
    } = this;
    const held = [...this.roles.querySelectorAll("button")].findIndex((button) => button.matches(":focus"));
    const count = (role) => layers.flatMap((_, layer) => heads.filter((_, head) => at(roles.place, layer, head) === role)).length;
    const made = (roles?.names ?? []).map((name, role) => {
      const on = frame.get("role") === name;
      const properties = {
        type: "button",
        ariaPressed: on,
        title: "Show only these heads",
        onclick: () => frame.set({ role: on ? null : name }),
      };
      return element("button", properties, drawSwatch(roles, role), name, element("span", { className: "quiet" }, ` ${count(role)}`));
    });
    this.roles.replaceChildren(...made.map((button) => element("li", {}, button)));
    made[held]?.focus();
  }

  #drawPins() {
    const { layers, heads } = this.payload;
    const boxes = this.figures.pinned.map(([layer, head]) => {
      const box = element("div", { className: "pin" });
      this.#lay(box, [layers.indexOf(layer), heads.indexOf(head)]);
      return box;
    });
    this.pins.replaceChildren(...boxes);
  }

  /** Lays a box over one cell. */
  #lay(box, [layer, head]) {
    const { width, height } = this.#cell;
    Object.assign(box.style, { left: `${head * width}px`, top: `${layer * height}px`, width: `${width - 1}px`, height: `${height - 1}px` });
  }

  // ---- pointing, pinning, keys

  /** Reads out one head for as long as the pointer stays, else the one that has the focus. @param {[number, number] | null} place */
  point(place) {
    const { frame, cells, figures } = this;
    const shown = place ?? (cells.matches(":focus") ? figures.selected : null);
    this.cursor.hidden = !shown;
    if (!shown) {
      frame.tell(null, ["Point at a cell to read its figure."]);
      return;
    }
    this.#lay(this.cursor, shown);
    const { width, height } = this.#cell;
    const box = cells.getBoundingClientRect();
    frame.tell({ x: box.left + (shown[1] + 1) * width - 4, y: box.top + shown[0] * height - 12, wide: width - 8 }, figures.about(...shown));
  }

  /** Pins a head, alone or beside the others; one that is pinned is released. */
  #pin(layer, head, beside) {
    const place = [this.payload.layers[layer], this.payload.heads[head]];
    const { pinned } = this.figures;
    const others = pinned.filter((other) => !sameList(other, place));
    this.frame.set({
      layer: place[0],
      head: place[1],
      pinned: others.length < pinned.length ? others : [...(beside ? others : []), place],
    });
  }

  #placeOf(event) {
    return pointedPlace(event, this.#cell, [this.payload.layers.length, this.payload.heads.length]);
  }

  #pressed(event) {
    const {
      payload: { layers, heads },
      figures: { selected },
    } = this;
    const moved = movedPlace(event, selected ?? [0, 0], [layers.length, heads.length]);
    if (moved) {
      // the first key only shows where keys start
      const [layer, head] = selected ? moved : [0, 0];
      this.frame.set({ layer: layers[layer], head: heads[head] });
    } else if (event.key === "Enter" || event.key === " ") this.#pin(...(selected ?? [0, 0]), event.shiftKey);
    else return;
    event.preventDefault();
  }
}

/** The choice of a map, of its labels and of its measure: which there are depends on those before.
 * @param {import("./frame.js").Frame} frame @param {SurveyFigures} figures */
function mapChoices(frame, figures) {
  const { statistics, roles } = figures.payload;
  const node = element("div", { className: "choices" });
  const select = (title, options, value, change) => {
    const list = element(
      "select",
      { ariaLabel: title, onchange: () => change(list.value) },
      ...options.map(([name, text]) => element("option", { value: name, selected: name === value }, text)),
    );
    return element("label", {}, element("span", { className: "quiet" }, title), list);
  };
  const labelled = (statistic) =>
    statistic.labels.map(({ title }, place) => {
      const row = statistic.rows[figures.rowOf(statistic)];
      const fits = statistic.rows.filter((other) => sameList(other.slice(0, place), row.slice(0, place)));
      const options = [...new Set(fits.map((other) => other[place]))].map((label) => [label, statistic.words[label]]);
      return select(title, options, row[place], (label) => {
        const wanted = row.map((old, other) => (other === place ? label : old));
        frame.set({ label: statistic.rows.find((other) => sameList(other, wanted)) ?? fits.find((other) => other[place] === label) });
      });
    });
  const refresh = () => {
    const { statistic } = figures;
    const held = [...node.querySelectorAll("select")].findIndex((list) => list.matches(":focus"));
    const maps = [...(roles ? [[ROLES, "Role of each head"]] : []), ...statistics.map(({ name, title }) => [name, title])];
    const made = [select("Map", maps, statistic?.name ?? ROLES, (name) => frame.set({ label: null, measure: "value", statistic: name }))];
    if (statistic) made.push(...labelled(statistic));
    const measures = statistic ? figures.measuresOf(statistic) : [];
    if (measures.length > 1)
      made.push(
        select(
          "Measure",
          measures.map(({ name, title }) => [name, title.split(":")[0]]),
          frame.get("measure"),
          (name) => frame.set({ measure: name }),
        ),
      );
    node.replaceChildren(...made);
    if (held >= 0) /** @type {HTMLElement} */ (made[held]?.lastChild)?.focus();
  };
  return { node, refresh };
}

/** Draws the view into an element and keeps it true to the model. @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const payload = model.get("payload");
  const frame = new Frame({ model, el }, "survey", "Survey view: every head by its figures");
  const view = new SurveyView(frame, payload);
  frame.add(mapChoices(frame, view.figures));
  const root = frame.check("Square-root scale", "root");
  frame.follow({ node: root, refresh: () => (root.hidden = !view.figures.statistic) });
  frame.top.after(frame.said);
  frame.body.append(view.middle, view.side.node);
  const surveyed = payload.card.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]);
  frame.foot.append(element("details", {}, element("summary", {}, "What was surveyed"), element("dl", {}, ...surveyed)));
  return frame.start({ draw: () => view.draw(), table: () => view.figures.table() }, MOVING, () => view.point(null));
}
