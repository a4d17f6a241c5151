// The attention graph of the flow view: what passes along its edges by raw attention, rollout and flow.

import { blob } from "./weights.js";

// ---- The exact maximum flow between two nodes of a layered graph, and its minimum cut nearest the source.
//
// Nodes are (level, token): the source stands at level `capacities.length`, the sink at level 0. `capacities[level]` holds
// at `i * tokens + j` the arc from (level + 1, i) to (level, j), as whole numbers below 2 ** 53, so that nothing is
// rounded (Dinic's algorithm). In a causal graph only tokens from the sink to the source lie on a path. Of the many ways that
// a maximum flow may take these are those of attribution/flow_kernels.py: the page and the printed figure draw the same.

/** @typedef {{layer: number, query: number, key: number, capacity: number}} CutArc
 *  @typedef {{value: number, flow: Float64Array[], cut: CutArc[]}} Found everything in the unit of the capacities */

/** @param {Float64Array[]} capacities @param {number} tokens @param {number} source @param {number} sink @param {boolean} causal @returns {Found} */
export function maximumFlow(capacities, tokens, source, sink, causal) {
  const flow = capacities.map((layer) => new Float64Array(layer.length));
  if (causal && sink > source) return { value: 0, flow, cut: [] };
  const [low, high] = causal ? [sink, source] : [0, tokens - 1];
  const graph = { capacities, flow, tokens, source, sink, low, high, depth: capacities.length };
  let value = 0;
  for (let distance = distancesToSink(graph); distance; distance = distancesToSink(graph)) value += blockingFlow(graph, distance, !value);
  return { value, flow, cut: nearestCut(graph) };
}

/** Steps from each node to the sink over arcs with room, or null if the source has no way left. */
function distancesToSink({ capacities, flow, tokens, source, sink, low, high, depth }) {
  const distance = new Int32Array((depth + 1) * tokens).fill(-1);
  distance[sink] = 0;
  let front = [sink];
  while (front.length) {
    const next = [];
    const reach = (level, token, steps) => {
      const node = level * tokens + token;
      if (distance[node] >= 0) return;
      distance[node] = steps;
      next.push(node);
    };
    for (const node of front) {
      const level = Math.floor(node / tokens);
      const token = node - level * tokens;
      const steps = distance[node] + 1;
      // from above, over arcs that are not full; at the top stands the source alone
      const [first, last] = level + 1 === depth ? [source, source] : [low, high];
      if (level < depth)
        for (let i = first; i <= last; i++)
          if (capacities[level][i * tokens + token] > flow[level][i * tokens + token]) reach(level + 1, i, steps);
      // from below, by taking back what this node sends there
      if (level > 1) for (let j = low; j <= high; j++) if (flow[level - 1][token * tokens + j] > 0) reach(level - 1, j, steps);
    }
    if (distance[depth * tokens + source] >= 0) return distance;
    front = next;
  }
  return null;
}

/** Sends as much as the shortest ways take, until each of them is blocked; returns the amount. At first whatever can goes
 * straight down, as residual connections do. */
function blockingFlow({ capacities, flow, tokens, source, sink, low, high, depth }, distance, first) {
  const width = high - low + 1;
  const arc = new Int32Array(distance.length).fill(first ? 0 : 1);

  /** Sends up to `wanted` on from a node: by arc 0 straight down, by the next ones to the tokens below and then to those above. */
  const send = (level, token, wanted) => {
    if (level === 0) return wanted;
    const node = level * tokens + token;
    let sent = 0;
    for (; arc[node] <= 2 * width; arc[node]++) {
      const number = arc[node];
      const down = number <= width;
      const other = number === 0 ? token : low + ((number - 1) % width);
      const to = down ? level - 1 : level + 1;
      if (
        (first && number > 0 && down && other === token) ||
        to > depth ||
        (to === 0 && other !== sink) ||
        (to === depth && other !== source)
      )
        continue;
      if (distance[to * tokens + other] !== distance[node] - 1) continue;
      const place = down ? token * tokens + other : other * tokens + token;
      const room = down ? capacities[to][place] - flow[to][place] : flow[level][place];
      if (room <= 0) continue;
      const passed = send(to, other, Math.min(room, wanted - sent));
      if (down) flow[to][place] += passed;
      else flow[level][place] -= passed;
      sent += passed;
      if (sent === wanted) return sent;
    }
    distance[node] = -1;
    return sent;
  };
  return send(depth, source, Number.MAX_SAFE_INTEGER);
}

/** The arcs that lead out of what the source still reaches once the flow is as large as can be. */
function nearestCut({ capacities, flow, tokens, source, sink, low, high, depth }) {
  const reached = new Uint8Array((depth + 1) * tokens);
  const waiting = [depth * tokens + source];
  reached[waiting[0]] = 1;
  const reach = (node) => {
    if (!reached[node]) waiting.push(node);
    reached[node] = 1;
  };
  while (waiting.length) {
    const node = waiting.pop();
    const level = Math.floor(node / tokens);
    const token = node - level * tokens;
    for (let j = low; level > 1 && j <= high; j++)
      if (capacities[level - 1][token * tokens + j] > flow[level - 1][token * tokens + j]) reach((level - 1) * tokens + j);
    if (level + 1 < depth) for (let i = low; i <= high; i++) if (flow[level][i * tokens + token] > 0) reach((level + 1) * tokens + i);
  }
  const cut = [];
  for (let layer = 0; layer < depth; layer++) {
    for (let query = low; query <= high; query++) {
      if (!reached[(layer + 1) * tokens + query]) continue;
      for (let key = layer ? low : sink; key <= (layer ? high : sink); key++) {
        const capacity = capacities[layer][query * tokens + key];
        if (capacity > 0 && !(layer && reached[layer * tokens + key])) cut.push({ layer, query, key, capacity });
      }
    }
  }
  return cut;
}

/** Capacities are whole multiples of this, as in Python. */
const UNIT = 2 ** 50;
const KINDS = { float64: Float64Array, float32: Float32Array };

/** @typedef {{layers: Float64Array[], value?: number, cut?: CutArc[]}} Edges by layer, `[query, key]` of tokens */

/** Attention pooled over heads with its residual connection, layer by layer, and the scores that Python computed. */
export class FlowGraph {
  #attention = new Map();
  #capacities = new Map();

  /** @param {{get: (name: string) => any}} model @param {FlowPayload} payload */
  static async read(model, payload) {
    const [maps, rollout, flow, ends] = await Promise.all(["maps", "rollout", "flow", "ends"].map((name) => blob(model, name)));
    return new FlowGraph(payload, new KINDS[payload.code](maps), {
      rollout: new Float32Array(rollout),
      flow: new Float32Array(flow),
      ends: new Uint8Array(ends),
    });
  }

  constructor(payload, maps, computed) {
    this.payload = payload;
    this.maps = maps;
    this.computed = computed;
    this.tokens = payload.keys.texts.length;
  }

  /** A = (1 - r) W + r I of a layer by its place. @param {number} layer @returns {Float64Array} */
  attention(layer) {
    if (!this.#attention.has(layer)) {
      const {
        tokens,
        payload: { residual },
      } = this;
      const size = tokens * tokens;
      const mixed = new Float64Array(size);
      for (let place = 0; place < size; place++) mixed[place] = (1 - residual) * this.maps[layer * size + place];
      for (let token = 0; token < tokens; token++) mixed[token * tokens + token] += residual;
      this.#attention.set(layer, mixed);
    }
    return this.#attention.get(layer);
  }

  /** The capacities of a layer: adding and taking away 2 ** 52 rounds to the nearest whole number, halves to even ones. */
  capacities(layer) {
    if (!this.#capacities.has(layer))
      this.#capacities.set(
        layer,
        this.attention(layer).map((share) => share * UNIT + 2 ** 52 - 2 ** 52),
      );
    return this.#capacities.get(layer);
  }

  // ---- what passes along the edges

  /** Attention itself. @param {number} top the place of the source's layer @returns {Edges} */
  raw(top) {
    return { layers: Array.from({ length: top + 1 }, (_, layer) => this.attention(layer)) };
  }

  /** The mass of the sources along each edge, and what of it arrives at the tokens. @param {number} top @param {number[]} sources */
  rollout(top, sources) {
    const { tokens } = this;
    let mass = new Float64Array(tokens);
    for (const source of sources) mass[source] = 1 / sources.length;
    const layers = [];
    for (let layer = top; layer >= 0; layer--) {
      const edges = new Float64Array(tokens * tokens);
      const below = new Float64Array(tokens);
      const attention = this.attention(layer);
      for (let query = 0; query < tokens; query++) {
        if (!mass[query]) continue;
        for (let key = 0, place = query * tokens; key < tokens; key++, place++) below[key] += edges[place] = mass[query] * attention[place];
      }
      layers[layer] = edges;
      mass = below;
    }
    return { layers, arrived: mass };
  }

  /** The most of the sources' mass that any layer below them brings to each token. @param {number} top @param {number[]} sources */
  brought(top, sources) {
    const { tokens } = this;
    const most = new Float64Array(tokens);
    for (const edges of this.rollout(top, sources).layers)
      for (let key = 0; key < tokens; key++) {
        let mass = 0;
        for (let query = 0; query < tokens; query++) mass += edges[query * tokens + key];
        most[key] = Math.max(most[key], mass);
      }
    return most;
  }

  /** Maximum flows, averaged over the sources and summed over the targets, each pair alone in the graph; their cuts.
   * @param {number} top @param {number[]} sources @param {number[]} targets @returns {Edges} */
  flow(top, sources, targets) {
    const capacities = Array.from({ length: top + 1 }, (_, layer) => this.capacities(layer));
    const layers = capacities.map((layer) => new Float64Array(layer.length));
    const cut = [];
    let value = 0;
    for (const source of sources)
      for (const target of targets) {
        const found = maximumFlow(capacities, this.tokens, source, target, this.payload.causal);
        value += found.value / UNIT / sources.length;
        found.flow.forEach((arcs, layer) => {
          for (let place = 0; place < arcs.length; place++) if (arcs[place]) layers[layer][place] += arcs[place] / UNIT / sources.length;
        });
        cut.push(...found.cut.map((arc) => ({ ...arc, capacity: arc.capacity / UNIT })));
      }
    return { layers, value, cut };
  }

  // ---- what the tokens get

  /** The scores of the tokens by a method, averaged over the sources; null where flow was not computed.
   * @param {"raw" | "rollout" | "flow"} method @param {number} top @param {number[]} sources @returns {Float64Array | null} */
  scores(method, top, sources) {
    const { tokens } = this;
    if (method === "raw") return this.#mean(sources, (source, token) => this.maps[(top * tokens + source) * tokens + token]);
    if (sources.every((source) => this.place(top, source) >= 0))
      return this.#mean(sources, (source, token) => this.computed[method][this.place(top, source) * tokens + token]);
    return method === "rollout" ? this.rollout(top, sources).arrived : null;
  }

  /** Whether a flow is just all that the source can give (1), all that the token can take (2), or both (3). */
  end(top, sources, token) {
    return sources.length === 1 && this.place(top, sources[0]) >= 0
      ? this.computed.ends[this.place(top, sources[0]) * this.tokens + token]
      : 0;
  }

  /** The row of a source at a layer among what was computed, or -1. */
  place(top, source) {
    const { layers, sources } = this.payload.computed;
    const [layer, row] = [layers.indexOf(top), sources.indexOf(source)];
    return layer < 0 || row < 0 ? -1 : layer * sources.length + row;
  }

  #mean(sources, of) {
    return Float64Array.from(
      { length: this.tokens },
      (_, token) => sources.reduce((sum, source) => sum + of(source, token), 0) / sources.length,
    );
  }
}

/** The edges between units: attention of a word is the mean over its pieces that ask and the sum over those asked; what
 * passes is the sum over both. @param {Edges} edges @param {import("./units.js").Unit[]} units @param {number} tokens
 * @param {(layer: number) => number[] | null} asking the pieces that ask, for attention; without it amounts are summed */
export function betweenUnits({ layers }, units, tokens, asking = null) {
  const count = units.length;
  return layers.map((values, layer) => {
    const only = asking?.(layer);
    if (count === tokens && !only) return values;
    const grid = new Float64Array(count * count);
    units.forEach(({ places }, query) => {
      const asked = only ? places.filter((place) => only.includes(place)) : places;
      units.forEach((unit, key) => {
        let sum = 0;
        for (const from of asked) for (const to of unit.places) sum += values[from * tokens + to];
        grid[query * count + key] = asking && asked.length ? sum / asked.length : sum;
      });
    });
    return grid;
  });
}

/** Lines so faint that no screen shows them, as a share of the end of their scale. */
const FAINT = 1 / 255;
/** A layer's own scale never ends below this: where next to nothing passes, nothing is drawn as if it did. */
const LEAST_END = 1e-4;

/** The edges to draw: of shown units, not below the threshold, and (for attention) reached from the source over such.
 * @param {Float64Array[]} grids by layer, `[query unit, key unit]` @param {number} count
 * @param {{shown: number[], threshold: number, reached: number[] | null, quiet: boolean[] | null, byLayer: boolean}} given with
 *   `quiet`, whether each unit is a special token or a sink, a scale ends with the strongest edge to another token that is
 *   none: what stays on its token and what rests on a sink would leave no ink for all others; `byLayer`: each layer has a
 *   scale of its own */
export function drawnEdges(grids, count, { shown, threshold, reached, quiet, byLayer }) {
  const column = new Int32Array(count).fill(-1);
  shown.forEach((unit, place) => (column[unit] = place));
  const left = { below: 0, hidden: 0, all: 0, faint: 0 };
  /** For each layer the strongest edge to another token, to another that is a sink, and of all. */
  const strongest = grids.map(() => [0, 0, 0]);
  const asking = [];
  for (let layer = grids.length - 1, from = reached ? new Set(reached) : null; layer >= 0; layer--) {
    const next = from ? new Set() : null;
    asking[layer] = from;
    for (let query = 0; query < count; query++) {
      if (from && !from.has(query)) continue;
      for (let key = 0, place = query * count; key < count; key++, place++) {
        const value = grids[layer][place];
        if (!(value > 0)) continue;
        left.all += value;
        if (value < threshold) {
          left.below += value;
          continue;
        }
        next?.add(key);
        if (column[query] < 0 || column[key] < 0) {
          left.hidden += value;
          continue;
        }
        const kind = !quiet || query === key ? 2 : quiet[key] ? 1 : 0;
        if (value > strongest[layer][kind]) strongest[layer][kind] = value;
      }
    }
    from = next;
  }
  const all = [0, 1, 2].map((kind) => Math.max(0, ...strongest.map((kinds) => kinds[kind])));
  const end = (kinds) => kinds.find((value) => value > 0) ?? 0;
  const ends = strongest.map((kinds) => (byLayer ? Math.max(end(kinds), LEAST_END) : end(all)));
  const edges = [];
  for (let layer = grids.length - 1; layer >= 0; layer--) {
    for (const query of shown) {
      if (asking[layer] && !asking[layer].has(query)) continue;
      for (const key of shown) {
        const value = grids[layer][query * count + key];
        if (!(value > 0) || value < threshold) continue;
        if (value >= ends[layer] * FAINT)
          edges.push({ layer, query: column[query], key: column[key], value, rests: Boolean(quiet) && (query === key || quiet[key]) });
        else left.faint++;
      }
    }
  }
  return { edges, ends, largest: Math.max(0, ...ends), left };
}
