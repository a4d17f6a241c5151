// One panel of the flow view: layers as rows, tokens as columns, what passes between them by one method.

import { drawRamp, element, inkOn, percent, sharp, short, thousands } from "./drawing.js";
import { TokenList } from "./units.js";

// ---- What the flow view says: what each panel means, of tokens and edges, and when flow no longer tells one source from another.

/** A number with the digits that a reader can use. @param {number} value */
export const figure = (value) => (value >= 0.0001 || !value ? value.toFixed(4) : value.toExponential(1).replace("-", "−"));

/** Whether a flow is one of its two trivial limits. @param {number} end */
function endWords(end) {
  return [
    "",
    " (all that the source can give)",
    " (all that the token can take in)",
    " (all that the source can give and the token can take in)",
  ][end];
}

/** The saturation of a layer and of the source in it, for a reader who has never heard of it.
 * @param {FlowPayload} payload @param {{total: number, source: number, token: number} | undefined} share
 * @param {{name: string, met: number, of: number} | null} own how many flows of the source are just a limit
 * @param {number[]} sources */
function saturationWords(payload, share, own, sources) {
  if (!share) return "";
  const all = payload.computed.sources.length === payload.keys.texts.length;
  const which = all ? "of the flows between any source at this layer and any token" : "of the flows computed at this layer";
  const limits = `${percent(share.token)} are all that the token can take in at the first layer, whatever the source, and ${percent(share.source)} all that the source can give`;
  const here = own ? ` From ${own.name} it is ${own.met} of ${own.of}.` : "";
  const read = sources.reduce((sum, source) => sum + payload.readout[source], 0);
  const elsewhere =
    read < 0.999 ? ` The answer is read from here with ${percent(read)} only: what methods say of the whole read-out may differ.` : "";
  const judged = own ? own.met / own.of : share.total;
  const meaning =
    judged > 0.5
      ? "Such flows say nothing about what the source has to do with a token: little can be read here."
      : judged > 0.1
        ? "Such flows say nothing about what lies between."
        : "Most of these flows depend on what lies between.";
  return `Saturation: ${percent(share.total)} ${which} are just a limit at one of their ends: ${limits}.${here} ${meaning}${elsewhere}`;
}

/** The words of the view: they read what it shows and change nothing. */
export class FlowWords {
  /** @param {import("./flow.js").FlowView} view */
  constructor(view) {
    this.view = view;
  }

  /** Tokens by their texts, or by the word that they are the whole of. @param {number[]} places */
  names(places) {
    const { units, payload } = this.view;
    if (places.length > 1 && places.length === payload.keys.texts.length) return `all ${places.length} tokens on average`;
    const found = units.filter((unit) => unit.places.some((place) => places.includes(place)));
    const texts = found.map((unit) => {
      const inside = unit.places.filter((place) => places.includes(place));
      return inside.length === unit.places.length ? unit.text : inside.map((place) => payload.keys.texts[place]).join(" + ");
    });
    return texts.map((text) => `“${text.length > 24 ? `${text.slice(0, 24)}…` : text}”`).join(" + ");
  }

  /** What is said below a panel. @param {FlowPanel} panel */
  result(panel) {
    return panel.about.method === "flow" ? this.#flow(panel) : this.#most(panel);
  }

  #most({ shown: { scores } }) {
    const { units, shown } = this.view;
    const best = scores.reduce((best, score, column) => (score > scores[best] ? column : best), 0);
    return `The token that gets most: ${this.names(units[shown[best]].places)}, ${figure(scores[best])}`;
  }

  #flow(panel) {
    const { top, sources, targets, graph, payload } = this.view;
    const from = `from ${this.names(sources)} at layer ${payload.layers[top]}`;
    if (!targets.length) {
      if (panel.shown.scores) return `${this.#most(panel)}. Choose an input token to see what holds its flow back.`;
      return `Flow ${from} to every token was not computed, because this text is long: ask for it with queries= and layer=. Choose an input token for the flow to it alone.`;
    }
    // where Python has computed it, its number is shown
    const known = graph.scores("flow", top, sources);
    const value = known ? targets.reduce((sum, target) => sum + known[target], 0) : panel.found.value;
    const pairs = sources.length * targets.length;
    const end = pairs === 1 ? endWords(graph.end(top, sources, targets[0])) : "";
    const cut =
      pairs === 1
        ? `Minimum cut: ${panel.found.arcs} ${panel.found.arcs === 1 ? "edge" : "edges"}, bold`
        : `${pairs} pairs, each flow by itself, ${sources.length > 1 ? "averaged over the sources, " : ""}summed over the targets; their minimum cuts are bold`;
    return `Flow ${from} to ${this.names(targets)}: ${figure(value)}${end}. ${cut}.`;
  }

  /** What is said of an input token: its number in each panel. @param {number} column */
  aboutToken(column) {
    const { units, shown, panels, graph, top, sources } = this.view;
    const { places } = units[shown[column]];
    const lines = [this.names(places)];
    for (const {
      about,
      shown: { scores },
    } of panels) {
      if (!scores) continue;
      const rank = 1 + scores.filter((score) => score > scores[column]).length;
      const end = about.method === "flow" && places.length === 1 ? endWords(graph.end(top, sources, places[0])) : "";
      lines.push(`${about.title}: ${figure(scores[column])}, rank ${rank} of ${scores.length}${end}`);
    }
    return lines;
  }

  /** What is said of an edge, and of its place in the cut. */
  aboutEdge({ about, shown }, { layer, query, key, value }) {
    const { units, shown: columns, payload } = this.view;
    const unit = (column) => units[columns[column]].places;
    const same = (edge) => edge.layer === layer && edge.query === query && edge.key === key;
    const [cut, here] = [shown.cut.find(same), shown.edges.find(same)];
    const words = { raw: "attention with the residual", rollout: "share of the mass", flow: shown.quiet ? "capacity" : "flow" }[
      about.method
    ];
    const lines = [
      `${this.names(unit(query))} → ${this.names(unit(key))}`,
      `Layer ${payload.layers[layer]}: ${words} ${figure(here ? here.value : cut ? 0 : value)}`,
    ];
    return cut ? [...lines, `In the minimum cut, capacity ${figure(cut.value)}`] : lines;
  }

  /** What the graph is, what of it is not drawn, and what was not computed. */
  say() {
    const { frame, payload, top, panels, units, shown } = this.view;
    const [, rollout] = panels;
    const parts = [
      `Edges are ${payload.heads}, with ${percent(payload.residual)} residual connection. A maximum flow may take other ways as well; its value and the cut nearest the source stay the same. Lines and tokens: ink is ${frame.get("root", false) ? "the square root of" : "proportional to"} the number, from 0 to the largest of each panel; for rollout to the largest that leads to another token.`,
    ];
    const threshold = frame.get("threshold", 0);
    if (threshold)
      parts.push(
        `Lines below ${threshold.toFixed(3)} are not drawn: ${percent(rollout.found.left.below / (top + 1))} of the mass of rollout.`,
      );
    const all = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
    const faint = all(panels.map(({ found }) => found.left.faint));
    if (faint) parts.push(`${thousands(faint)} lines too faint to be seen, below 1/255 of the strongest, are not drawn.`);
    if (shown.length < units.length)
      parts.push(
        `Special tokens and sinks are out of sight only: everything is computed on all tokens, and they hold ${percent(Math.max(1 - all(rollout.found.scores) / all(rollout.found.tokens), 0))} of the rollout.`,
      );
    const crowded = all(panels.map((panel) => panel.crowded ?? 0));
    if (crowded) parts.push(`${thousands(crowded)} of the faintest lines in sight are not drawn.`);
    const { sources, layers } = payload.computed;
    if (sources.length < payload.keys.texts.length)
      parts.push(
        `This text is long, so flow to every token was ${sources.length ? `computed from ${this.names(sources.slice(0, 4))}${sources.length > 4 ? ` and ${sources.length - 4} more` : ""} at layer ${layers.map((place) => payload.layers[place]).join(", ")} only: name others` : "not computed: name the sources"} with queries=. Raw attention, rollout and the flow of one pair are here for every token.`,
      );
    if (payload.code === "float32") parts.push("The browser computes on weights of seven digits.");
    frame.said.textContent = parts.join(" ");
    this.view.said.textContent = saturationWords(
      payload,
      payload.saturation.find(({ layer }) => layer === payload.layers[top]),
      this.#ownSaturation(),
      this.view.sources,
    );
    const target = this.view.targets.length ? ` Flow panel: ${panels[2].result.textContent}` : "";
    frame.summary.textContent = `Source ${this.names(this.view.sources)} at layer ${payload.layers[top]}. Rollout: ${rollout.result.textContent}.${target}`;
  }

  /** How many flows from the source are just a limit, of all tokens that it can reach; null for several sources. */
  #ownSaturation() {
    const {
      top,
      sources: [source, ...more],
      payload,
      graph,
    } = this.view;
    if (more.length || graph.place(top, source) < 0) return null;
    const tokens = payload.keys.texts.flatMap((_, token) => (payload.causal && token > source ? [] : [token]));
    return { name: this.names([source]), met: tokens.filter((token) => graph.end(top, [source], token)).length, of: tokens.length };
  }
}

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
    const most = element("span", { className: "most" });
    return { strip, most, node: element("div", { className: "scale" }, element("span", {}, words), element("span", {}, "0"), strip, most) };
  }

  /** Sets the tokens and the size. @param {import("./units.js").Unit[]} units @param {Geometry} size @param {number[]} numbers of the layers */
  lay(units, size, numbers) {
    this.units = units;
    this.size = size;
    this.numbers = numbers;
    const width = LEFT + units.length * size.column;
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
      colour: shown.quiet ? palette.read("quiet") : palette.read("accent"),
    }));
    if (this.about.method === "rollout" && shown.edges.some(({ value }) => value > shown.largest))
      this.scales.lines.most.textContent += " and more";
    this.#paintScale(this.scales.tokens, shown.scores ? shown.most : 0, (share) => ({
      alpha: 1,
      colour: palette.sequential[Math.round(255 * this.#share(share))],
    }));
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
    edges = edges
      .sort((one, other) => other.value - one.value)
      .slice(0, MOST_EDGES)
      .reverse();
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
    const place = ({ layer, query, key, value }) => ({
      layer: this.numbers[layer],
      query: this.units[query].places,
      key: this.units[key].places,
      value,
    });
    this.canvas.scene = {
      edges: edges.map((edge) => ({
        ...place(edge),
        opacity: opacity(edge.value),
        from: [this.x(edge.query), this.y(edge.layer + 1)],
        to: [this.x(edge.key), this.y(edge.layer)],
      })),
      cut: shown.cut.map(place),
      largest: shown.largest,
      scores: shown.scores ? [...shown.scores] : null,
    };
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
      const distance =
        Math.abs(from + ((to - from) * (point.y - top)) / (bottom - top) - point.x) / Math.hypot(1, (to - from) / (bottom - top));
      // of lines as near as each other the later is the stronger, and what the eye sees
      if (distance <= nearest) [found, nearest] = [edge, distance];
    }
    if (found) this.told.overEdge(this, found, { x: event.clientX, y: event.clientY });
    else this.told.leave();
  }
}
