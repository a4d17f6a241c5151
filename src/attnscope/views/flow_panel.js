// One panel of the flow view: layers as rows, tokens as columns, what passes between them by one method.

import { drawRamp, element, inkOn, sharp, short } from "./drawing.js";
import { TokenList } from "./token_list.js";

const LEFT = 40;
const LEGEND = 96;
/** Lines that a screen can tell apart and a browser draws without a visible wait. */
const MOST_EDGES = 5000;
const SHADES = 64;

/** @typedef {{layer: number, query: number, key: number, value: number}} Edge query and key are columns of the panel
 *  @typedef {{column: number, row: number, labels: number, upright: boolean, levels: number}} Geometry the same for all panels, in pixels
 *  @typedef {{edges: Edge[], largest: number, cut: Edge[], quiet: boolean, scores: Float64Array | null, most: number, top: number, sources: number[], targets: number[]}} Shown */

/** A graph with the source's tokens above it and the input tokens below. */
export class FlowPanel {
  #drawn = [];
  /** How far the tokens are scrolled; asking the area itself for every line would lay the page out each time. */
  scrolled = 0;

  /** @param {{method: string, title: string, means: string, line: string, token: string}} about
   * @param {{choose: Function, over: Function, overEdge: Function, leave: Function, scrolled: Function}} told */
  constructor(about, told) {
    Object.assign(this, { about, told });
    this.canvas = element("canvas", { className: "graph" });
    const list = (side, words) => new TokenList({ name: `ends ${side}`, label: `${about.title}: ${words}`, room: 12, look: (column, box) => told.over(this, side, column, box), leave: () => told.leave(), pin: (column, more) => told.choose(side, column, more) });
    this.lists = { queries: list("queries", "source"), keys: list("keys", "input tokens") };
    this.grid = element("div", { className: "grid" }, this.lists.queries.node, element("div", { className: "cell" }, this.canvas), this.lists.keys.node);
    this.area = element("div", { className: "area", tabIndex: -1 }, this.grid);
    this.result = element("p", { className: "result" });
    this.scales = { lines: this.#scale(about.line), tokens: this.#scale(about.token) };
    const legend = element("div", { className: "legend quiet" }, this.scales.lines.node, this.scales.tokens.node);
    this.node = element("section", { className: "flow-panel", ariaLabel: about.title }, element("h4", {}, about.title), element("p", { className: "quiet means" }, about.means), this.area, legend, this.result);
    this.area.addEventListener("scroll", () => told.scrolled(this));
    this.canvas.addEventListener("pointermove", (event) => this.#overGraph(event));
    this.canvas.addEventListener("pointerleave", () => told.leave());
  }

  #scale(words) {
    const strip = element("canvas", {});
    const most = element("span", { className: "most" });
    return { strip, most, node: element("div", { className: "scale" }, element("span", {}, words), element("span", {}, "0"), strip, most) };
  }

  /** Sets the tokens and the size. @param {import("./units.js").Unit[]} units @param {Geometry} size @param {number[]} numbers of the layers */
  lay(units, size, numbers) {
    Object.assign(this, { units, size, numbers });
    const width = LEFT + units.length * size.column;
    this.grid.style.width = `${width}px`;
    for (const list of Object.values(this.lists)) {
      list.fill(units);
      list.node.style.height = `${size.labels}px`;
      list.node.classList.toggle("upright", size.upright);
      list.tokens.forEach((token, column) => Object.assign(token.style, { left: `${LEFT + column * size.column}px`, width: `${size.column}px` }));
    }
    this.width = Math.min(width, this.area.clientWidth || width);
  }

  x(column) {
    return LEFT + (column + 0.5) * this.size.column - this.scrolled;
  }

  /** @param {number} level 0 is the input, one more the output of the first layer, and so on */
  y(level) {
    return (this.size.levels - 1 - level) * this.size.row + 8;
  }

  /** Brings a column into sight. @param {number} column */
  reveal(column) {
    const at = LEFT + column * this.size.column;
    if (at > this.area.clientWidth - 2 * this.size.column) this.area.scrollLeft = at - this.area.clientWidth / 2;
  }

  /** Paints what is shown. @param {Shown} shown @param {ReturnType<typeof import("./drawing.js").colours>} palette @param {boolean} root */
  paint(shown, palette, root) {
    Object.assign(this, { shown, palette, root });
    this.#paintTokens();
    this.paintGraph();
    this.#paintScale(this.scales.lines, shown.largest, (share) => ({ alpha: this.#share(share), colour: shown.quiet ? palette.read("quiet") : palette.read("accent") }));
    if (this.about.method === "rollout" && shown.edges.some(({ value }) => value > shown.largest)) this.scales.lines.most.textContent += " and more";
    this.#paintScale(this.scales.tokens, shown.scores ? shown.most : 0, (share) => ({ alpha: 1, colour: palette.sequential[Math.round(255 * this.#share(share))] }));
  }

  #share(share) {
    const within = Math.min(Math.max(share, 0), 1);
    return this.root ? Math.sqrt(within) : within;
  }

  #paintTokens() {
    const { shown, palette } = this;
    const { queries, keys } = this.lists;
    const places = (columns) => columns.flatMap((column) => this.units[column].places);
    queries.select(places(shown.sources));
    keys.select(places(shown.targets));
    keys.tokens.forEach((token, column) => {
      const colour = shown.scores ? palette.sequential[Math.round(255 * this.#share(shown.scores[column] / (shown.most || 1)))] : "";
      token.style.background = colour;
      token.style.color = colour ? inkOn(colour) : "";
      token.dataset.value = shown.scores ? String(shown.scores[column]) : "";
    });
  }

  /** The part of the graph that is in sight: nodes, edges, the cut over them, and the numbers of the layers. */
  paintGraph() {
    const { shown, palette, size, width } = this;
    if (!shown) return;
    this.scrolled = this.area.scrollLeft;
    const height = (size.levels - 1) * size.row + 16;
    const context = sharp(this.canvas, width, height);
    const inSight = (column) => this.x(column) > LEFT - size.column && this.x(column) < width + size.column;
    let edges = shown.edges.filter(({ query, key }) => inSight(query) || inSight(key));
    this.crowded = Math.max(edges.length - MOST_EDGES, 0);
    edges = edges.sort((one, other) => other.value - one.value).slice(0, MOST_EDGES).reverse();
    context.save();
    context.beginPath();
    context.rect(LEFT - 8, 0, width - LEFT + 8, height);
    context.clip();
    this.#nodes(context, inSight);
    const opacity = (value) => this.#share(value / (shown.largest || 1));
    this.#strokes(context, edges, opacity, shown.quiet ? palette.read("quiet") : palette.read("accent"), 1.5);
    this.#strokes(context, shown.cut, (value) => Math.max(opacity(value), 0.15), palette.read("focus"), 2.5);
    context.restore();
    context.fillStyle = palette.read("quiet");
    context.textAlign = "right";
    const apart = Math.ceil(14 / size.row);
    for (let level = 0; level < size.levels; level++) {
      const text = level ? String(this.numbers[level - 1]) : "input";
      if (level === 0 || (size.levels - 1 - level) % apart === 0) context.fillText(text, LEFT - 10, this.y(level) + (level ? 0.5 : -0.5));
    }
    this.#drawn = edges;
    // what was drawn, for whoever wants to check it against the numbers
    const place = ({ layer, query, key, value }) => ({ layer: this.numbers[layer], query: this.units[query].places, key: this.units[key].places, value });
    this.canvas.scene = { edges: edges.map((edge) => ({ ...place(edge), opacity: opacity(edge.value), from: [this.x(edge.query), this.y(edge.layer + 1)], to: [this.x(edge.key), this.y(edge.layer)] })), cut: shown.cut.map(place), largest: shown.largest, scores: shown.scores ? [...shown.scores] : null };
  }

  #nodes(context, inSight) {
    const { shown, palette, size } = this;
    context.fillStyle = palette.read("line");
    for (let level = 0; level < size.levels; level++) {
      for (let column = 0; column < this.units.length; column++) {
        if (inSight(column)) context.fillRect(Math.round(this.x(column)) - 1, Math.round(this.y(level)) - 1, 2, 2);
      }
    }
    const mark = (columns, level) => {
      for (const column of columns) {
        context.beginPath();
        context.arc(this.x(column), this.y(level), 3.5, 0, 2 * Math.PI);
        context.fill();
      }
    };
    context.strokeStyle = context.fillStyle = palette.read("text");
    context.setLineDash([1, 3]);
    for (const column of shown.sources) {
      context.beginPath();
      context.moveTo(this.x(column), 0);
      context.lineTo(this.x(column), this.y(shown.top + 1));
      context.stroke();
    }
    context.setLineDash([]);
    mark(shown.sources, shown.top + 1);
    mark(shown.targets, 0);
  }

  #strokes(context, edges, opacity, colour, width) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    let [level, open] = [-1, false];
    const finish = () => open && context.stroke();
    for (const { layer, query, key, value } of edges) {
      const shade = Math.max(1, Math.round(opacity(value) * SHADES));
      if (shade !== level || width > 2) {
        finish();
        level = shade;
        context.globalAlpha = shade / SHADES;
        context.beginPath();
        open = true;
      }
      context.moveTo(this.x(query), this.y(layer + 1));
      context.lineTo(this.x(key), this.y(layer));
    }
    finish();
    context.globalAlpha = 1;
  }

  #paintScale({ strip, most, node }, largest, at) {
    node.style.visibility = largest ? "" : "hidden";
    const context = sharp(strip, LEGEND, 8);
    drawRamp(context, { left: 0, top: 0, width: LEGEND, height: 8 }, (share) => {
      const { alpha, colour } = at(share);
      context.globalAlpha = alpha;
      return colour;
    });
    most.textContent = short(largest);
  }

  #overGraph(event) {
    if (!this.shown) return;
    const point = { x: event.offsetX, y: event.offsetY };
    let [found, nearest] = [null, 4];
    for (const edge of [...this.#drawn, ...this.shown.cut]) {
      const [top, bottom] = [this.y(edge.layer + 1), this.y(edge.layer)];
      if (point.y < top || point.y > bottom) continue;
      const [from, to] = [this.x(edge.query), this.x(edge.key)];
      const distance = Math.abs(from + ((to - from) * (point.y - top)) / (bottom - top) - point.x) / Math.hypot(1, (to - from) / (bottom - top));
      // of lines as near as each other the later is the stronger, and what the eye sees
      if (distance <= nearest) [found, nearest] = [edge, distance];
    }
    if (found) this.told.overEdge(this, found, { x: event.clientX, y: event.clientY });
    else this.told.leave();
  }
}
