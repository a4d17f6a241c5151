// What the flow view says of its attention graph: what each panel means, of tokens and edges, and when a flow tells nothing.

import { percent, thousands } from "./drawing.js";

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

/** @typedef {{name: string, layer: number, of: number, met: number, given: number, taken: number}} Limited of the flows from the
 *  sources: how many are just a limit, all that the source gives, and all that the token takes */

/** How many flows from the sources are just a limit at one of their ends, in words for who has never heard of it.
 * @param {Limited} counted @param {number} read the share of the read-out that the sources are */
export function saturationWords({ name, layer, of, met, given, taken }, read) {
  const share = percent(met / of);
  const opening = `Of the ${thousands(of)} flows from ${name} at layer ${layer} to the tokens that it can reach, ${thousands(met)} (${share}) ${met === 1 ? "is" : "are"} only as large as one of ${met === 1 ? "its" : "their"} two ends allows`;
  const which = met
    ? ` (all that the source gives away: ${thousands(given)}; all that the token takes in at the first layer: ${thousands(taken)}).`
    : ".";
  const meaning =
    met > of / 2
      ? " Such flows tell nothing of the way between: little can be read from flow here."
      : met
        ? " Such flows tell nothing of the way between; the others do."
        : " So all of them tell something of the way between.";
  const elsewhere =
    read < 0.999
      ? ` The model reads ${percent(read)} of its answer from here; what the scores view says of flow is of the whole read-out.`
      : " The model reads its answer from here, so that the scores view speaks of the same flows.";
  return `${opening}${which}${meaning}${elsewhere}`;
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
    const best = (places) => places.reduce((best, column) => (best < 0 || scores[column] > scores[best] ? column : best), -1);
    const words = (column) => `${this.names(units[shown[column]].places)}, ${figure(scores[column])}`;
    const first = best([...scores.keys()]);
    // where a special token or a sink gets most, the reader asks for what comes after it
    const next = units[shown[first]].quiet ? best([...scores.keys()].filter((column) => !units[shown[column]].quiet)) : -1;
    return `The token that gets most: ${words(first)}${next < 0 ? "" : `; besides special tokens and sinks: ${words(next)}`}`;
  }

  #flow(panel) {
    const { top, sources, targets, graph, payload } = this.view;
    const from = `from ${this.names(sources)} at layer ${payload.layers[top]}`;
    if (targets.length && panel.found.tooMuch)
      return `Flow ${from} is an average over ${thousands(sources.length)} flows to each token, too many to compute here: choose one source above.`;
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
        ? `Minimum cut: ${panel.found.arcs} ${panel.found.arcs === 1 ? "edge" : "edges"}, orange`
        : `${pairs} pairs, each flow by itself, ${sources.length > 1 ? "averaged over the sources, " : ""}summed over the targets; their minimum cuts are orange`;
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
    const words = { raw: "attention with the residual", rollout: "share of the mass", flow: shown.idle ? "capacity" : "flow" }[
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
    const { frame, payload, top, panels, units, shown, visible } = this.view;
    const [, rollout] = panels;
    const parts = [
      `Edges are ${payload.heads}, with ${percent(payload.residual)} residual connection. A maximum flow may take other ways as well; its value and the cut nearest the source stay the same. Lines and tokens: ink is ${frame.get("root", false) ? "the square root of" : "proportional to"} the number; scales leave out lines that stay on their token, special tokens and sinks.`,
    ];
    const threshold = frame.get("threshold", 0);
    if (threshold)
      parts.push(
        `Lines below ${threshold.toFixed(3)} are not drawn: ${percent(rollout.found.left.below / (top + 1))} of the mass of rollout.`,
      );
    const all = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
    const faint = all(panels.map(({ found }) => found.left.faint));
    if (faint) parts.push(`${thousands(faint)} lines too faint to be seen, below 1/255 of the end of their scale, are not drawn.`);
    const { tokens } = rollout.found;
    const held = (some) => percent(all(some.map((unit) => all(units[unit].places.map((place) => tokens[place])))) / (all(tokens) || 1));
    const without = (some, others) => some.filter((unit) => !others.includes(unit));
    if (visible.length < units.length)
      parts.push(
        `Special tokens and sinks are out of sight only: everything is computed on all tokens, and they hold ${held(without([...units.keys()], visible))} of the rollout.`,
      );
    const folded = without(visible, shown);
    if (folded.length)
      parts.push(
        `${thousands(folded.length)} quiet tokens are folded away where dotted lines stand: they are computed with, and hold ${held(folded)} of the rollout. “Fold quiet tokens”, key f, unfolds them.`,
      );
    const crowded = all(panels.map((panel) => panel.crowded ?? 0));
    if (crowded) parts.push(`${thousands(crowded)} of the faintest lines in sight are not drawn, because no eye could follow them.`);
    const { sources, layers } = payload.computed;
    if (sources.length < payload.keys.texts.length)
      parts.push(
        `This text is long, so flow to every token was ${sources.length ? `computed from ${this.names(sources.slice(0, 4))}${sources.length > 4 ? ` and ${sources.length - 4} more` : ""} at layer ${layers.map((place) => payload.layers[place]).join(", ")} only: name others` : "not computed: name the sources"} with queries=. Raw attention, rollout and the flow of one pair are here for every token.`,
      );
    if (payload.code === "float32") parts.push("The browser computes on weights of seven digits.");
    frame.said.textContent = parts.join(" ");
    const counted = this.#limited();
    const read = this.view.sources.reduce((sum, source) => sum + payload.readout[source], 0);
    this.view.said.textContent = counted ? saturationWords(counted, read) : "";
    const target = this.view.targets.length ? ` Flow panel: ${panels[2].result.textContent}` : "";
    frame.summary.textContent = `Source ${this.names(this.view.sources)} at layer ${payload.layers[top]}. Rollout: ${rollout.result.textContent}.${target}`;
  }

  /** How many flows from the sources are just a limit, of all that can be; null where they were not computed. */
  #limited() {
    const { top, sources, payload, graph } = this.view;
    if (!sources.every((source) => graph.place(top, source) >= 0)) return null;
    const ends = sources.flatMap((source) =>
      payload.keys.texts.flatMap((_, token) => (payload.causal && token > source ? [] : [graph.end(top, [source], token)])),
    );
    const count = (met) => ends.filter(met).length;
    return {
      name: this.names(sources),
      layer: payload.layers[top],
      of: ends.length,
      met: count(Boolean),
      given: count((end) => end & 1),
      taken: count((end) => end & 2),
    };
  }
}
