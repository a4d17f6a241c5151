// One panel of the flow view: layers as rows, tokens as columns, what passes between them by one method.

import { drawRamp, element, inkOn, isBeyond, shareOf, sharp, short } from "./drawing.js";
import { TokenList } from "./units.js";

const [LEFT, RIGHT] = [40, 52];
/** Pixels beside the tokens: the numbers of the layers, and the ends of their scales. */
export const MARGIN = LEFT + RIGHT;
/** The ink of lines that stay on their token or rest on a special token or a sink; less beyond so many columns, where many run together. */
const [RESTING, RESTING_COLUMNS] = [0.3, 16];
/** Lines of one kind between two layers that the eye can follow, at least, and for each column. */
const [FOLLOWED, FOLLOWED_EACH] = [100, 3];
/** Edges of a minimum cut that are drawn broad; more would be one dark band. */
const BROAD = 24;
const LEGEND = 96;
/** Lines that a screen can tell apart and a browser draws without a visible wait. */
const MOST_EDGES = 5000;
const SHADES = 64;

/** @typedef {{layer: number, query: number, key: number, value: number}} Edge query and key are columns of the panel
 *  @typedef {{column: number, row: number, labels: number, upright: boolean, levels: number}} Geometry the same for all panels, in pixels
 *  @typedef {{edges: (Edge & {rests: boolean})[], ends: number[], largest: number, cut: Edge[], idle: boolean, scores: Float64Array | null, scale: import("./drawing.js").Scale | null, top: number, sources: number[], targets: number[]}} Shown */

/** A graph with the source's tokens above it and the input tokens below. */
export class FlowPanel {
  #drawn = [];
  /** What the view has found for this panel, and of which choice. @type {any} */
  found = null;
  signature = "";
  /** How far the tokens are scrolled; asking the area itself for every line would lay the page out each time. */
  scrolled = 0;

  /** @param {{method: string, title: string, means: string}} about
   * @param {{choose: Function, over: Function, overEdge: Function, leave: Function, scrolled: Function}} told */
  constructor(about, told) {
    this.about = about;
    this.told = told;
    this.canvas = element("canvas", { className: "graph" });
    const list = (side, words) =>
      new TokenList({
        name: `ends ${side}`,
        label: `${about.title}: ${words}`,
        room: 12,
        look: (column, box) => told.over(side, column, box),
        leave: () => told.leave(),
        pin: (column, more) => told.choose(side, column, more),
      });
    this.lists = { queries: list("queries", "source"), keys: list("keys", "input tokens") };
    this.grid = element(
      "div",
      { className: "grid" },
      this.lists.queries.node,
      element("div", { className: "cell" }, this.canvas),
      this.lists.keys.node,
    );
    this.area = element("div", { className: "area", tabIndex: -1 }, this.grid);
    this.result = element("p", { className: "result" });
    this.scales = { lines: this.#scale("Lines"), tokens: this.#scale("Tokens") };
    const legend = element("div", { className: "legend quiet" }, this.scales.lines.node, this.scales.tokens.node);
    this.node = element(
      "section",
      { className: "flow-panel", ariaLabel: about.title },
      element("h4", {}, about.title),
      element("p", { className: "quiet means" }, about.means),
      this.area,
      legend,
      this.result,
    );
    this.area.addEventListener("scroll", () => told.scrolled(this));
    this.canvas.addEventListener("pointermove", (event) => this.#overGraph(event));
    this.canvas.addEventListener("pointerleave", () => told.leave());
  }

  #scale(words) {
    const strip = element("canvas", {});
    const [least, most] = [element("span", {}, "0"), element("span", { className: "most" })];
    return { strip, least, most, node: element("div", { className: "scale" }, element("span", {}, words), least, strip, most) };
  }

  /** Sets the tokens and the size. @param {import("./units.js").Unit[]} units @param {Geometry} size @param {number[]} numbers of the layers */
  lay(units, size, numbers) {
    this.units = units;
    this.size = size;
    this.numbers = numbers;
    const width = MARGIN + units.length * size.column;
    this.grid.style.width = `${width}px`;
    for (const list of Object.values(this.lists)) {
      list.fill(units);
      list.node.style.height = `${size.labels}px`;
      list.node.classList.toggle("upright", size.upright);
      list.tokens.forEach((token, column) =>
        Object.assign(token.style, { left: `${LEFT + column * size.column}px`, width: `${size.column}px` }),
      );
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

  /** Paints what is shown. @param {Shown} shown @param {Palette} palette @param {boolean} root */
  paint(shown, palette, root) {
    this.shown = shown;
    this.palette = palette;
    this.root = root;
    this.#paintTokens();
    this.paintGraph();
    this.#paintScale(this.scales.lines, shown.largest, (share) => ({
      alpha: this.#share(share),
      colour: shown.idle ? palette.read("quiet") : palette.read("accent"),
    }));
    const { lines, tokens } = this.scales;
    if (this.about.method === "rollout") lines.most.textContent = "end of each layer, and more";
    else if (shown.edges.some(({ layer, value }) => value > shown.ends[layer])) lines.most.textContent += " and more";
    this.#paintScale(tokens, shown.scale?.end ?? 0, (share) => ({
      alpha: 1,
      colour: palette.sequential[Math.round(255 * this.#share(share))],
    }));
    tokens.least.textContent = short(shown.scale?.start ?? 0);
    if (shown.scores?.some((score) => isBeyond(score, shown.scale))) tokens.most.textContent += "; bar: beyond";
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
      const colour = shown.scores ? palette.sequential[Math.round(255 * this.#share(shareOf(shown.scores[column], shown.scale)))] : "";
      token.classList.toggle("beyond", Boolean(shown.scores) && isBeyond(shown.scores[column], shown.scale));
      token.style.backgroundColor = colour;
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
    const end = width - RIGHT;
    const inSight = (column) => this.x(column) > LEFT - size.column && this.x(column) < end + size.column;
    let edges = shown.edges.filter(({ query, key }) => inSight(query) || inSight(key));
    const opacity = ({ layer, value }) => this.#share(value / (shown.ends[layer] || 1));
    const all = edges.length;
    edges = this.#followed(edges.sort((one, other) => opacity(other) - opacity(one)))
      .slice(0, MOST_EDGES)
      .reverse();
    this.crowded = all - edges.length;
    context.save();
    context.beginPath();
    context.rect(LEFT - 8, 0, end - LEFT + 16, height);
    context.clip();
    this.#nodes(context, inSight);
    const [resting, others] = [edges.filter(({ rests }) => rests), edges.filter(({ rests }) => !rests)];
    const quiet = RESTING * Math.min(1, RESTING_COLUMNS / this.units.length);
    this.#strokes(context, resting, (edge) => quiet * opacity(edge), palette.read("quiet"), 1.5);
    this.#strokes(context, others, opacity, shown.idle ? palette.read("quiet") : palette.read("accent"), 1.5);
    this.#strokes(context, shown.cut, (edge) => Math.max(opacity(edge), 0.15), palette.read("focus"), shown.cut.length > BROAD ? 1 : 2.5);
    context.restore();
    context.fillStyle = palette.read("quiet");
    context.textAlign = "right";
    const apart = Math.ceil(14 / size.row);
    for (let level = 0; level < size.levels; level++) {
      const text = level ? String(this.numbers[level - 1]) : "input";
      if (level === 0 || (size.levels - 1 - level) % apart === 0) context.fillText(text, LEFT - 10, this.y(level) + (level ? 0.5 : -0.5));
    }
    if (this.about.method === "rollout") this.#ends(context, end + 8);
    this.#drawn = [...resting, ...others];
    // what was drawn, for whoever wants to check it against the numbers
    const place = ({ layer, query, key, value }) => ({
      layer: this.numbers[layer],
      query: this.units[query].places,
      key: this.units[key].places,
      value,
    });
    this.canvas.scene = {
      edges: edges.map((edge) => ({
        ...place(edge),
        rests: edge.rests,
        opacity: opacity(edge),
        from: [this.x(edge.query), this.y(edge.layer + 1)],
        to: [this.x(edge.key), this.y(edge.layer)],
      })),
      cut: shown.cut.map(place),
      largest: shown.largest,
      ends: shown.ends,
      gaps: this.#gaps(),
      scores: shown.scores ? [...shown.scores] : null,
    };
  }

  /** The strongest lines between any two layers, of those that the eye can follow; a flow is drawn whole.
   * @template {{layer: number, rests: boolean}} Line @param {Line[]} edges the strongest first @returns {Line[]} */
  #followed(edges) {
    if (this.about.method === "flow" && !this.shown.idle) return edges;
    const most = Math.max(FOLLOWED, FOLLOWED_EACH * this.units.length);
    const counts = new Map();
    return edges.filter(({ layer, rests }) => {
      const kind = 2 * layer + Number(rests);
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      return counts.get(kind) <= most;
    });
  }

  /** Where the scale of each layer ends, beside its lines. */
  #ends(context, left) {
    const { shown, palette, size } = this;
    const apart = Math.ceil(14 / size.row);
    context.fillStyle = palette.read("quiet");
    context.textAlign = "left";
    context.font = "11px system-ui, sans-serif";
    for (let layer = shown.top; layer >= 0; layer -= apart)
      context.fillText(short(+shown.ends[layer].toPrecision(2)), left, this.y(layer + 0.5));
  }

  /** The columns before which tokens are folded away. */
  #gaps() {
    const last = (column) => this.units[column].places.at(-1);
    return this.units.flatMap(({ places }, column) => (column && places[0] > last(column - 1) + 1 ? [column] : []));
  }

  #nodes(context, inSight) {
    const { shown, palette, size } = this;
    context.fillStyle = palette.read("line");
    for (let level = 0; level < size.levels; level++) {
      for (let column = 0; column < this.units.length; column++) {
        if (inSight(column)) context.fillRect(Math.round(this.x(column)) - 1, Math.round(this.y(level)) - 1, 2, 2);
      }
    }
    context.strokeStyle = palette.read("line");
    for (const column of this.#gaps()) {
      const left = Math.round(this.x(column) - size.column / 2) + 0.5;
      context.beginPath();
      context.setLineDash([2, 4]);
      context.moveTo(left, 0);
      context.lineTo(left, this.y(0) + 8);
      context.stroke();
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
    for (const edge of edges) {
      const { layer, query, key } = edge;
      const shade = Math.max(1, Math.round(opacity(edge) * SHADES));
      if (shade !== level || edges === this.shown.cut) {
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
      const distance =
        Math.abs(from + ((to - from) * (point.y - top)) / (bottom - top) - point.x) / Math.hypot(1, (to - from) / (bottom - top));
      // of lines as near as each other the later is the stronger, and what the eye sees
      if (distance <= nearest) [found, nearest] = [edge, distance];
    }
    if (found) this.told.overEdge(this, found, { x: event.clientX, y: event.clientY });
    else this.told.leave();
  }
}
