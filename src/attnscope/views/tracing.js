// The tracing view: attention handed down from the read-out to the input, a dot for each head, layer and token.

import { Frame } from "./frame.js";
import { quietControl, wordsControl } from "./record_controls.js";
import { TRACING_STATE, TracingPanel } from "./tracing_panel.js";
import { Trace } from "./tracing_values.js";

/** Draws the view into an element and keeps it true to the model.
 * @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const { keys, trace: described } = model.get("payload");
  const frame = new Frame({ model, el, name: "tracing", label: "Tracing view: attention from the read-out down to the input", draw: () => panel.draw(), table: () => panel.table() });
  const panel = new TracingPanel(frame, { keys }, new Trace(model, described, keys.texts.length));
  frame.stepper("Layer of the text", "layer", described.layers);
  frame.threshold();
  wordsControl(frame, keys);
  quietControl(frame, keys);
  if (described.lines !== null) frame.check("Lines", "lines");
  frame.check("Square-root scale", "root");
  frame.body.append(panel.node);
  return frame.start(TRACING_STATE);
}

export default { render };
