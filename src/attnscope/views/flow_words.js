// What the flow view says: what each panel means, of tokens and edges, and when flow no longer tells one source from another.

import { percent, thousands } from "./drawing.js";

/** The panels: what a line and a token's ink are. */
export const ABOUT = [
  { method: "raw", title: "Raw attention", means: "Lines: attention of each layer with its residual connection, wherever the source leads. Tokens: what the source attends to in its own layer.", line: "Lines", token: "Tokens" },
  { method: "rollout", title: "Rollout", means: "Lines: the share of the source that passes along each edge if layers only mix; every layer sums to one. Tokens: what arrives.", line: "Lines", token: "Tokens" },
  { method: "flow", title: "Flow", means: "Lines: one maximum flow to the chosen token, attention being the width of pipes; bold: the minimum cut that holds it back. Tokens: the maximum flow to each.", line: "Lines", token: "Tokens" },
];

/** A number with the digits that a reader can use. @param {number} value */
const figure = (value) => (value >= 0.0001 || !value ? value.toFixed(4) : value.toExponential(1).replace("-", "−"));

/** Whether a flow is one of its two trivial limits. @param {number} end */
function endWords(end) {
  return ["", " (all that the source can give)", " (all that the token can take in)", " (all that the source can give and the token can take in)"][end];
}

/** The saturation of a layer and of the source in it, for a reader who has never heard of it.
 * @param {object} payload @param {{total: number, source: number, token: number} | undefined} share
 * @param {{name: string, met: number, of: number} | null} own how many flows of the source are just a limit
 * @param {number[]} sources */
function saturationWords(payload, share, own, sources) {
  if (!share) return "";
  const all = payload.computed.sources.length === payload.keys.texts.length;
  const which = all ? "of the flows between any source at this layer and any token" : "of the flows computed at this layer";
  const limits = `${percent(share.token)} are all that the token can take in at the first layer, whatever the source, and ${percent(share.source)} all that the source can give`;
  const here = own ? ` From ${own.name} it is ${own.met} of ${own.of}.` : "";
  const read = sources.reduce((sum, source) => sum + payload.readout[source], 0);
  const elsewhere = read < 0.999 ? ` The answer is read from here with ${percent(read)} only: what methods say of the whole read-out may differ.` : "";
  const judged = own ? own.met / own.of : share.total;
  const meaning = judged > 0.5 ? "Such flows say nothing about what the source has to do with a token: little can be read here." : judged > 0.1 ? "Such flows say nothing about what lies between." : "Most of these flows depend on what lies between.";
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

  /** What is said below a panel. @param {import("./flow_panel.js").FlowPanel} panel */
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
    const cut = pairs === 1 ? `Minimum cut: ${panel.found.arcs} ${panel.found.arcs === 1 ? "edge" : "edges"}, bold` : `${pairs} pairs, each flow by itself, ${sources.length > 1 ? "averaged over the sources, " : ""}summed over the targets; their minimum cuts are bold`;
    return `Flow ${from} to ${this.names(targets)}: ${figure(value)}${end}. ${cut}.`;
  }

  /** What is said of an input token: its number in each panel. @param {number} column */
  aboutToken(column) {
    const { units, shown, panels, graph, top, sources } = this.view;
    const { places } = units[shown[column]];
    const lines = [this.names(places)];
    for (const { about, shown: { scores } } of panels) {
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
    const words = { raw: "attention with the residual", rollout: "share of the mass", flow: shown.quiet ? "capacity" : "flow" }[about.method];
    const lines = [`${this.names(unit(query))} → ${this.names(unit(key))}`, `Layer ${payload.layers[layer]}: ${words} ${figure(here ? here.value : cut ? 0 : value)}`];
    return cut ? [...lines, `In the minimum cut, capacity ${figure(cut.value)}`] : lines;
  }

  /** What the graph is, what of it is not drawn, and what was not computed. */
  say() {
    const { frame, payload, top, panels, units, shown } = this.view;
    const [, rollout] = panels;
    const parts = [`Edges are ${payload.heads}, with ${percent(payload.residual)} residual connection. A maximum flow may take other ways as well; its value and the cut nearest the source stay the same. Lines and tokens: ink is ${frame.get("root", false) ? "the square root of" : "proportional to"} the number, from 0 to the largest of each panel; for rollout to the largest that leads to another token.`];
    const threshold = frame.get("threshold", 0);
    if (threshold) parts.push(`Lines below ${threshold.toFixed(3)} are not drawn: ${percent(rollout.found.left.below / (top + 1))} of the mass of rollout.`);
    const all = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
    const faint = all(panels.map(({ found }) => found.left.faint));
    if (faint) parts.push(`${thousands(faint)} lines too faint to be seen, below 1/255 of the strongest, are not drawn.`);
    if (shown.length < units.length) parts.push(`Special tokens and sinks are out of sight only: everything is computed on all tokens, and they hold ${percent(Math.max(1 - all(rollout.found.scores) / all(rollout.found.tokens), 0))} of the rollout.`);
    const crowded = all(panels.map((panel) => panel.crowded ?? 0));
    if (crowded) parts.push(`${thousands(crowded)} of the faintest lines in sight are not drawn.`);
    const { sources, layers } = payload.computed;
    if (sources.length < payload.keys.texts.length) parts.push(`This text is long, so flow to every token was ${sources.length ? `computed from ${this.names(sources.slice(0, 4))}${sources.length > 4 ? ` and ${sources.length - 4} more` : ""} at layer ${layers.map((place) => payload.layers[place]).join(", ")} only: name others` : "not computed: name the sources"} with queries=. Raw attention, rollout and the flow of one pair are here for every token.`);
    if (payload.code === "float32") parts.push("The browser computes on weights of seven digits.");
    frame.said.textContent = parts.join(" ");
    this.view.said.textContent = saturationWords(payload, payload.saturation.find(({ layer }) => layer === payload.layers[top]), this.#ownSaturation(), this.view.sources);
    const target = this.view.targets.length ? ` Flow panel: ${panels[2].result.textContent}` : "";
    frame.summary.textContent = `Source ${this.names(this.view.sources)} at layer ${payload.layers[top]}. Rollout: ${rollout.result.textContent}.${target}`;
  }

  /** How many flows from the source are just a limit, of all tokens that it can reach; null for several sources. */
  #ownSaturation() {
    const { top, sources: [source, ...more], payload, graph } = this.view;
    if (more.length || graph.place(top, source) < 0) return null;
    const tokens = payload.keys.texts.flatMap((_, token) => (payload.causal && token > source ? [] : [token]));
    return { name: this.names([source]), met: tokens.filter((token) => graph.end(top, [source], token)).length, of: tokens.length };
  }

  /** The rows of the table: every token that is shown, by every method. */
  table() {
    const { panels, units, shown, sources, top, payload } = this.view;
    return {
      caption: `What each input token gets from ${this.names(sources)} at layer ${payload.layers[top]}`,
      columns: ["Token", ...panels.map(({ about }) => about.title)],
      rows: shown.map((unit, column) => [units[unit].text, ...panels.map((panel) => (panel.shown?.scores ? figure(panel.shown.scores[column]) : "not computed"))]),
    };
  }
}
