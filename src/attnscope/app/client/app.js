// The page: one pane or two side by side, the link that restores them, and files that are dropped anywhere.

import { addressKeeper, fromAddress } from "/client/address.js";
import { dropped } from "/client/opening.js";
import { Pane } from "/client/pane.js";
import { showCopied } from "/client/saving.js";
import { start } from "/client/server.js";
import { element } from "/views/drawing.js";

const main = document.querySelector("main");
const bar = document.querySelector("nav");
const panes = [];
let here = null;

const inStep = element("input", { type: "checkbox", onchange: () => (step(panes[0], panes[0].step), address.soon()) });
const inStepLabel = element(
  "label",
  { className: "check", title: "What is chosen on one side is chosen on the other" },
  inStep,
  "Same view and layer on both sides",
);
const compare = element("button", { type: "button", onclick: () => (panes.length > 1 ? close(panes[1]) : addBeside()) }, "Compare");
const link = element(
  "button",
  { type: "button", onclick: () => (address.now(), showCopied("Link to what is shown", location.href)) },
  "Copy link",
);
const address = addressKeeper(() => ({ panes: panes.map(({ shown }) => shown), inStep: inStep.checked }));

/** Puts a pane on the page. */
function add() {
  const pane = new Pane({
    number: [1, 2].find((free) => panes.every(({ number }) => number !== free)),
    start: here,
    changed: () => address.soon(),
    stepped: (change) => step(pane, change),
    trusted: () => panes.forEach((one) => one.rescore()),
    close: () => close(pane),
  });
  panes.push(pane);
  main.append(pane.node);
  arrange();
  return pane;
}

/** A second pane, with what the first one shows. */
function addBeside() {
  const [first] = panes;
  add().restore(first.shown, first.source);
  if (!matchMedia("(min-width: 1100px)").matches) panes[1].node.scrollIntoView(); // it stands below the first
}

/** Takes one of two panes away; the other is then the first. */
function close(pane) {
  pane.working.stop();
  pane.stage.clear();
  pane.node.remove();
  panes.splice(panes.indexOf(pane), 1);
  arrange();
  address.soon();
  compare.focus();
}

function arrange() {
  main.classList.toggle("two", panes.length > 1);
  document.body.classList.toggle("wide", panes.length > 1);
  compare.textContent = panes.length > 1 ? "Stop comparing" : "Compare";
  inStepLabel.hidden = panes.length < 2;
  for (const pane of panes) pane.close.hidden = panes.length < 2;
}

/** Lets the other pane follow, where both are to be in step. */
function step(pane, change) {
  if (inStep.checked) panes.filter((other) => other !== pane).forEach((other) => other.follow(change));
}

/** Shows what the link says; without one, the first text worth seeing. */
function restore() {
  const names = [...here.views.map(({ name }) => name), "survey"];
  const [model] = here.models;
  const example = { model: model?.name, text: model?.examples[0]?.text ?? "", second: model?.examples[0]?.second ?? null, states: {} };
  const place = fromAddress(location.hash, names) ?? { panes: [example], inStep: false };
  while (panes.length) close(panes[0]);
  inStep.checked = place.inStep;
  for (const shown of place.panes) add().restore(shown);
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
}

/** Files may be dropped anywhere: on a pane for that pane, elsewhere for the first. */
function watchDrops() {
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  let over = 0; // every element that is passed over says so
  const outline = (by) => document.body.classList.toggle("dropping", (over = by ? Math.max(over + by, 0) : 0) > 0);
  addEventListener("dragenter", (event) => holdsFiles(event) && outline(1));
  addEventListener("dragleave", (event) => holdsFiles(event) && outline(-1));
  addEventListener("dragover", (event) => holdsFiles(event) && event.preventDefault());
  addEventListener("drop", async (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    outline(0);
    const pane = panes.find(({ node }) => node.contains(event.target)) ?? panes[0];
    const { files, name } = await dropped(event.dataTransfer);
    pane.open(files, name);
  });
}

try {
  here = await start();
  // a server without a model that writes has nothing to ask
  const chat = here.models.some(({ writes }) => writes) ? [element("a", { href: "/chat" }, "Ask about documents")] : [];
  bar.append(...chat, inStepLabel, compare, link);
  watchDrops();
  restore();
  addEventListener("hashchange", restore);
} catch (error) {
  main.replaceChildren(element("p", { className: "complaint", role: "alert" }, error.message));
}
