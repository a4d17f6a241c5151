// The scores view: the text on the colour of each method's scores, methods side by side, and how far they agree.

import { Frame } from "./frame.js";
import { quietControl, wordsControl } from "./record_controls.js";
import { SCORES_STATE, ScoresPanel } from "./scores_panel.js";

/** Draws the view into an element and keeps it true to the model.
 * @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const payload = model.get("payload");
  const { methods, layers, keys } = payload;
  const frame = new Frame({ model, el, name: "scores", label: "Scores view: what methods say of each token", draw: () => panel.draw(), table: () => panel.table() });
  const panel = new ScoresPanel(frame, payload);
  if (methods.some(({ rows, map }) => rows || map)) frame.stepper("Layer", "layer", [...layers, null], (layer) => (layer === null ? "overall" : String(layer)));
  frame.select("Layout", "layout", [["aligned", "Aligned"], ["text", "Running text"]]);
  if (methods.length > 1) frame.select("Agreement with", "reference", methods.map(({ name }) => [name, name]));
  if (methods.filter(({ shares }) => shares).length > 1) frame.select("Scale", "scale", [["each", "Each row"], ["shared", "Shared"]]);
  frame.threshold(1, "Hide below, as a share of the largest");
  wordsControl(frame, keys);
  quietControl(frame, keys);
  frame.check("Square-root scale", "root");
  frame.body.append(panel.node);
  frame.said.after(panel.warnings);
  return frame.start(SCORES_STATE);
}

export default { render };
