// The neuron view: how a query and a key become a weight, dimension by dimension.

import { Frame } from "./frame.js";
import { NEURON_STATE, NeuronPanel } from "./neuron_panel.js";
import { VectorLayers } from "./neuron_sums.js";
import { quietControl } from "./record_controls.js";

/** Draws the view into an element and keeps it true to the model.
 * @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const payload = model.get("payload");
  const layers = new VectorLayers(model, payload.vectors);
  const frame = new Frame({ model, el, name: "neuron", label: "Neuron view: how query and key become a weight", draw: () => panel.draw(), table: () => panel.table() });
  const panel = new NeuronPanel(frame, payload, layers);
  frame.stepper("Layer", "layer", payload.vectors.layers);
  frame.stepper("Head", "head", payload.vectors.heads);
  frame.select("Dimensions", "order", [["natural", "In their own order"], ["contribution", "By contribution"]]);
  frame.key("o", "order of the dimensions", () => frame.set({ order: frame.get("order") === "natural" ? "contribution" : "natural" }));
  frame.threshold();
  quietControl(frame, payload.queries, payload.keys);
  frame.check("Square-root scale", "root");
  frame.body.append(panel.node);
  return frame.start(NEURON_STATE);
}

export default { render };
