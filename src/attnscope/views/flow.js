// The flow view: the attention graph through all layers from a chosen token, by raw attention, rollout and flow.

import { FlowGraph, betweenUnits, drawnEdges } from "./attention_graph.js";
import { FlowWords, figure } from "./attention_words.js";
import { colours, element, percent, plainTable, scaleOf } from "./drawing.js";
import { FlowPanel, MARGIN } from "./flow_panel.js";
import { Frame, quietControl, wordsControl } from "./frame.js";
import { loudest, pinnedAfter, placesHolding, unitsOf } from "./units.js";

/** Pixels of a column, at least: upright letters stay apart; and of one among folded tokens. */
const [NARROWEST, FOLDED] = [12, 16];
/** Sources x targets x numbers of the graph up to which the browser computes flows: about a second. */
const MOST_WORK = 4e7;
/** Tokens up to which the flow to a token is shown while the pointer rests on it. */
const PREVIEWED = 48;

/** The panels: what a line and a token's ink are. */
const ABOUT = [
  {
    method: "raw",
    title: "Raw attention",
    means:
      "Lines: attention of each layer with its residual connection, wherever the source leads; grey ones stay on their token or rest on special tokens and sinks. Tokens: what the source attends to in its own layer.",
  },
  {
    method: "rollout",
    title: "Rollout",
    means:
      "Lines: the share of the source that passes along each edge if layers only mix. Every layer has a scale of its own, whose end stands at the right; grey lines stay on their token or rest on special tokens and sinks. Tokens: what arrives.",
  },
  {
    method: "flow",
    title: "Flow",
    means:
      "Lines: one maximum flow to the chosen token (outlined), attention being the width of pipes; orange: the minimum cut that holds it back. Tokens: the maximum flow to each.",
  },
];

/** The three panels and what they share. */
export class FlowView {
  #preview = null;
  graph = null;
  /** The switch that unfolds a long text. @type {HTMLElement | null} */
  fold = null;

  /** @param {import("./frame.js").Frame} frame @param {FlowPayload} payload */
  constructor(frame, payload) {
    this.frame = frame;
    this.payload = payload;
    this.words = new FlowWords(this);
    const told = {
      choose: (side, column, more) => this.#choose(side, column, more),
      over: (side, column, box) => this.#over(side, column, box),
      overEdge: (panel, edge, place) => frame.tell(place, this.words.aboutEdge(panel, edge)),
      leave: () => this.#leave(),
      scrolled: (panel) => this.#scrolled(panel),
    };
    this.panels = ABOUT.map((about) => new FlowPanel(about, told));
    this.node = element("div", { className: "panels" }, ...this.panels.map((panel) => panel.node));
    const rows = payload.saturation.map(({ layer, total, source, token }) => [layer, percent(total), percent(source), percent(token)]);
    const heads = ["Layer of the source", "Flows that are just a limit", "all the source can give", "all the token can take"];
    this.said = element("p", { className: "saturation" });
    this.byLayer = element(
      "details",
      {},
      element("summary", {}, "Saturation by layer"),
      element("div", { className: "scroll table" }, plainTable(heads, rows)),
    );
    this.byLayer.hidden = rows.length < 2;
    frame.key("Escape", "release the target", () => frame.set({ keys: [] }));
    frame.listKey("n p", "next and previous token");
    frame.listKey("Enter", "choose the token; with Shift, add it");
  }

  /** The place of the layer where the source stands. */
  get top() {
    const { layers } = this.payload;
    const place = layers.indexOf(this.frame.get("layer"));
    return place < 0 ? layers.length - 1 : place;
  }

  get sources() {
    const count = this.payload.keys.texts.length;
    const chosen = this.frame.get("queries", []).filter((place) => place >= 0 && place < count);
    return chosen.length ? chosen : [0];
  }

  get targets() {
    const count = this.payload.keys.texts.length;
    return this.#preview ?? this.frame.get("keys", []).filter((place) => place >= 0 && place < count);
  }

  async draw() {
    const { frame, payload } = this;
    this.graph ??= await FlowGraph.read(frame.model, payload);
    this.palette = colours(frame.el);
    const special = frame.get("special", true);
    this.units = unitsOf(payload.keys, Boolean(frame.get("words", false)));
    this.visible = this.units.flatMap((unit, place) => (special || !unit.quiet ? [place] : []));
    this.shown = this.#unfolded();
    this.#layOut();
    for (const panel of this.panels) this.#paint(panel);
    this.words.say();
  }

  /** The units in sight that have a column: where not all have room, the sources, the targets and those that most is brought to. */
  #unfolded() {
    const { visible, units, sources, top } = this;
    const room = (this.node.clientWidth || 960) - MARGIN;
    this.overfull = visible.length * NARROWEST > room;
    if (this.fold) this.fold.hidden = !this.overfull;
    if (!this.overfull || !this.frame.get("folded", true)) return visible;
    const most = Math.max(Math.floor(room / FOLDED), 4);
    const brought = this.graph.brought(top, sources);
    const held = visible.map((unit) => units[unit].places.reduce((sum, place) => sum + brought[place], 0));
    const asked = placesHolding(
      visible.map((unit) => units[unit]),
      [...(sources.length < most / 2 ? sources : []), ...this.frame.get("keys", [])],
    );
    return loudest(held, most, asked).map((place) => visible[place]);
  }

  /** Three panels beside each other where the tokens fit, else below each other; labels upright where columns are narrow. */
  #layOut() {
    const count = Math.max(this.shown.length, 1);
    const around = this.node.clientWidth || 960;
    const third = (around - 32) / 3;
    const beside = third >= MARGIN + count * 16 && third >= 240;
    const width = beside ? third : around;
    const measure = document.createElement("canvas").getContext("2d");
    measure.font = "600 13px system-ui, sans-serif";
    const longest = Math.min(
      Math.max(...this.shown.map((place) => measure.measureText(this.units[place].text.slice(0, 60)).width), 16),
      104,
    );
    const wide = Math.min(Math.max(Math.floor((width - MARGIN) / count), NARROWEST), 96);
    const upright = longest + 10 > wide;
    const column = upright && beside ? Math.min(wide, 48) : wide;
    const levels = this.payload.layers.length + 1;
    const row = Math.round(Math.min(Math.max(360 / levels, 14), 44));
    const size = { column, row, levels, upright, labels: upright ? Math.ceil(longest) + 12 : 20 };
    this.node.style.setProperty("--panels", beside ? "3" : "1");
    this.node.style.setProperty("--column", `${column}px`);
    this.node.classList.toggle("beside", beside);
    const signature = JSON.stringify([size, around, this.shown, this.units.length]);
    if (this.signature === signature) return;
    this.signature = signature;
    const units = this.shown.map((place) => this.units[place]);
    for (const panel of this.panels) panel.lay(units, size, this.payload.layers);
    // a long text opens where its source stands
    const [first] = this.#columns(this.sources);
    if (first !== undefined) for (const panel of this.panels) panel.reveal(first);
  }

  /** The columns whose units hold any of these tokens. */
  #columns(places) {
    return placesHolding(
      this.shown.map((unit) => this.units[unit]),
      places,
    );
  }

  /** What a panel shows, computed anew only where something of it has changed. */
  #found(panel) {
    const { top, sources, targets, units, shown, frame, graph } = this;
    const { method } = panel.about;
    const threshold = frame.get("threshold", 0);
    const signature = JSON.stringify([top, sources, method === "flow" ? targets : null, units.length, shown, threshold]);
    if (panel.signature === signature) return panel.found;
    panel.signature = signature;
    const tooMuch = sources.length * targets.length * (top + 1) * graph.tokens ** 2 > MOST_WORK;
    const idle = method === "flow" && (!targets.length || tooMuch);
    const attention = method === "raw" || idle;
    const passing = attention ? graph.raw(top) : method === "rollout" ? graph.rollout(top, sources) : graph.flow(top, sources, targets);
    const grids = betweenUnits(passing, units, graph.tokens, attention ? (layer) => (layer === top ? sources : null) : null);
    const reached = attention ? placesHolding(units, sources) : null;
    const tokens = graph.scores(method, top, sources);
    const scores = tokens && Float64Array.from(shown, (unit) => units[unit].places.reduce((sum, place) => sum + tokens[place], 0));
    const { value, cut = [] } = passing;
    panel.found = {
      ...drawnEdges(grids, units.length, {
        shown,
        threshold,
        reached,
        quiet: attention || method === "rollout" ? units.map((unit) => unit.quiet) : null,
        byLayer: method === "rollout",
      }),
      idle,
      tooMuch,
      tokens,
      scores,
      scale:
        scores &&
        scaleOf(
          [...scores],
          shown.map((unit) => units[unit].quiet),
        ),
      value,
      arcs: cut.length,
      cut: this.#between(cut),
    };
    return panel.found;
  }

  /** The cut between columns in sight. @param {import("./attention_graph.js").CutArc[]} cut */
  #between(cut) {
    const column = new Map(this.shown.flatMap((unit, place) => this.units[unit].places.map((token) => [token, place])));
    const edges = new Map();
    for (const { layer, query, key, capacity } of cut) {
      if (!column.has(query) || !column.has(key)) continue;
      const edge = { layer, query: column.get(query), key: column.get(key) };
      const name = Object.values(edge).join(" ");
      edges.set(name, { ...edge, value: (edges.get(name)?.value ?? 0) + capacity });
    }
    return [...edges.values()];
  }

  #paint(panel) {
    const { top, sources, targets, frame } = this;
    const { method } = panel.about;
    const found = this.#found(panel);
    panel.paint(
      {
        ...found,
        top,
        sources: this.#columns(sources),
        targets: method === "flow" ? this.#columns(targets) : [],
      },
      this.palette,
      Boolean(frame.get("root", false)),
    );
    panel.result.textContent = this.words.result(panel);
  }

  // ---- pointing and choosing

  #choose(side, column, more) {
    const { places } = this.units[this.shown[column]];
    const chosen = side === "queries" ? this.sources : this.frame.get("keys", []);
    const next = pinnedAfter(chosen, places, more);
    this.#preview = null;
    // there is always a source
    this.frame.set({ [side]: (side === "queries" && !next.length ? [...places] : next).sort((one, other) => one - other) });
  }

  #same(side, column) {
    for (const panel of this.panels)
      for (const [name, list] of Object.entries(panel.lists)) {
        list.tokens.forEach((token, place) => token.classList.toggle("same", name === side && place === column));
      }
  }

  #over(side, column, box) {
    const { places } = this.units[this.shown[column]];
    this.#same(side, column);
    if (side === "queries")
      return this.frame.tell(null, [this.words.names(places), `layer ${this.payload.layers[this.top]}`, "click to start from here"]);
    this.#look(places);
    return this.frame.tell({ x: box.left, y: box.bottom - 8 }, this.words.aboutToken(column));
  }

  /** Shows the flow to a token for as long as the pointer rests there. */
  #look(places) {
    const next = places && this.payload.keys.texts.length <= PREVIEWED ? places : null;
    if (JSON.stringify(next) === JSON.stringify(this.#preview)) return;
    this.#preview = next;
    if (this.graph) this.#paint(this.panels[2]);
  }

  #leave() {
    this.#same(null, -1);
    this.#look(null);
    this.frame.tell(null);
  }

  #scrolled(panel) {
    for (const other of this.panels) {
      if (other !== panel && Math.abs(other.area.scrollLeft - panel.area.scrollLeft) > 1) other.area.scrollLeft = panel.area.scrollLeft;
    }
    panel.paintGraph();
  }

  /** The rows of the table: every token that is shown, by every method. */
  table() {
    const { panels, units, shown, sources, top, payload } = this;
    return {
      caption: `What each input token gets from ${this.words.names(sources)} at layer ${payload.layers[top]}`,
      columns: ["Token", ...panels.map(({ about }) => about.title)],
      rows: shown.map((unit, column) => [
        units[unit].text,
        ...panels.map((panel) => (panel.shown?.scores ? figure(panel.shown.scores[column]) : "not computed")),
      ]),
    };
  }
}

/** Draws the view into an element and keeps it true to the model. @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const payload = model.get("payload");
  const frame = new Frame({ model, el }, "flow", "Flow view: how attention leads from a token to the input");
  const view = new FlowView(frame, payload);
  frame.stepper("Layer of the source", "layer", payload.layers);
  frame.threshold();
  wordsControl(frame, payload.keys);
  quietControl(frame, payload.keys);
  view.fold = frame.check("Fold quiet tokens", "folded", "f", "fold or unfold quiet tokens of a long text");
  frame.check("Square-root scale", "root");
  frame.body.append(view.node);
  frame.said.before(view.said);
  frame.foot.prepend(view.byLayer);
  return frame.start(view);
}
