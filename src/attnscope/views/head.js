// The head view: tokens left and right, a line for each weight, head by head and layer by layer.

import { Frame } from "./frame.js";
import { HEAD_STATE, HeadPanel } from "./head_panel.js";
import { headChips, recordControls } from "./record_controls.js";
import { Layers } from "./weights.js";

/** Draws the view into an element and keeps it true to the model.
 * @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const payload = model.get("payload");
  const layers = new Layers(model, payload.weights);
  const frame = new Frame({ model, el, name: "head", label: "Head view: where each token attends", draw: () => panel.draw(), table: () => panel.table() });
  const panel = new HeadPanel(frame, payload, layers);
  recordControls(frame, payload);
  frame.body.append(headChips(frame, payload.weights), panel.node);
  return frame.start(HEAD_STATE);
}

export default { render };
