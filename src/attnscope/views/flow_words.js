// What the flow view says: what each panel means, and when flow no longer tells one source from another.

import { percent } from "./drawing.js";

/** The panels: what a line and a token's ink are. */
export const ABOUT = [
  { method: "raw", title: "Raw attention", means: "Lines: attention of each layer with its residual connection, wherever the source leads. Tokens: what the source attends to in its own layer.", line: "Lines", token: "Tokens" },
  { method: "rollout", title: "Rollout", means: "Lines: the share of the source that passes along each edge if layers only mix; every layer sums to one. Tokens: what arrives.", line: "Lines", token: "Tokens" },
  { method: "flow", title: "Flow", means: "Lines: one maximum flow to the chosen token, attention being the width of pipes; bold: the minimum cut that holds it back. Tokens: the maximum flow to each.", line: "Lines", token: "Tokens" },
];

/** A number with the digits that are sure. @param {number} value */
export const sixDigits = (value) => value.toFixed(6);

/** Whether a flow is one of its two trivial limits. @param {number} end */
export function endWords(end) {
  return ["", " (all that the source can give)", " (all that the token can take in)", " (all that the source can give and the token can take in)"][end];
}

/** The saturation of a layer and of the source in it, for a reader who has never heard of it.
 * @param {object} payload @param {{total: number, source: number, token: number} | undefined} share
 * @param {{name: string, met: number, of: number} | null} own how many flows of the source are just a limit */
export function saturationWords(payload, share, own) {
  if (!share) return "";
  const all = payload.computed.sources.length === payload.keys.texts.length;
  const which = all ? "of the flows between any source at this layer and any token" : "of the flows computed at this layer";
  const limits = `${percent(share.token)} are all that the token can take in at the first layer, whatever the source, and ${percent(share.source)} all that the source can give`;
  const here = own ? ` From ${own.name} it is ${own.met} of ${own.of}.` : "";
  const judged = own ? own.met / own.of : share.total;
  const meaning = judged > 0.5 ? "Such flows say nothing about what the source has to do with a token: little can be read here." : judged > 0.1 ? "Such flows say nothing about what lies between." : "Most flows here depend on what lies between.";
  return `Saturation: ${percent(share.total)} ${which} are just a limit at one of their ends: ${limits}.${here} ${meaning}`;
}
