// The exact maximum flow between two nodes of a layered graph, and its minimum cut nearest the source.
//
// Nodes are (level, token): the source stands at level `capacities.length`, the sink at level 0. `capacities[level]` holds
// at `i * tokens + j` the arc from (level + 1, i) to (level, j), as whole numbers below 2 ** 53, so that nothing is
// rounded (Dinic's algorithm). In a causal graph only tokens from the sink to the source lie on a path.

/** @typedef {{layer: number, query: number, key: number, capacity: number}} CutArc
 *  @typedef {{value: number, flow: Float64Array[], cut: CutArc[]}} Found everything in the unit of the capacities */

/** @param {Float64Array[]} capacities @param {number} tokens @param {number} source @param {number} sink @param {boolean} causal @returns {Found} */
export function maximumFlow(capacities, tokens, source, sink, causal) {
  const flow = capacities.map((layer) => new Float64Array(layer.length));
  if (causal && sink > source) return { value: 0, flow, cut: [] };
  const [low, high] = causal ? [sink, source] : [0, tokens - 1];
  const graph = { capacities, flow, tokens, source, sink, low, high, depth: capacities.length };
  let value = 0;
  for (let distance = distancesToSink(graph); distance; distance = distancesToSink(graph)) value += blockingFlow(graph, distance);
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
      if (level < depth) for (let i = first; i <= last; i++) if (capacities[level][i * tokens + token] > flow[level][i * tokens + token]) reach(level + 1, i, steps);
      // from below, by taking back what this node sends there
      if (level > 1) for (let j = low; j <= high; j++) if (flow[level - 1][token * tokens + j] > 0) reach(level - 1, j, steps);
    }
    if (distance[depth * tokens + source] >= 0) return distance;
    front = next;
  }
  return null;
}

/** Sends as much as the shortest ways take, until each of them is blocked; returns the amount. */
function blockingFlow({ capacities, flow, tokens, source, sink, low, high, depth }, distance) {
  const width = high - low + 1;
  const arc = new Int32Array(distance.length);

  /** Sends up to `wanted` on from a node. Arc 0 leads straight down, as residual connections do; then all others. */
  const send = (level, token, wanted) => {
    if (level === 0) return wanted;
    const node = level * tokens + token;
    let sent = 0;
    for (; arc[node] <= 2 * width; arc[node]++) {
      const number = arc[node];
      const down = number <= width;
      const other = number === 0 ? token : low + (number - 1) % width;
      const to = down ? level - 1 : level + 1;
      if ((number > 0 && down && other === token) || to > depth || (to === 0 && other !== sink) || (to === depth && other !== source)) continue;
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
    for (let j = low; level > 1 && j <= high; j++) if (capacities[level - 1][token * tokens + j] > flow[level - 1][token * tokens + j]) reach((level - 1) * tokens + j);
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
