// The page's script: draws every map from its bytes, shows the exact number under the pointer, enlarges one head.

const { palettes, maps } = JSON.parse(document.getElementById("data").textContent);
const LARGEST_CODE = 65535;
const STRONGEST = 5;
const dark = matchMedia("(prefers-color-scheme: dark)");
let rootScale = false;

for (const map of maps) {
  const bytes = Uint8Array.from(atob(map.codes), (letter) => letter.charCodeAt(0));
  map.codes = new Uint16Array(bytes.buffer);
}

/** The codes of one head: rows of queries, columns of keys. */
function codesOf(map, layer, head) {
  const size = map.rows * map.columns;
  return map.codes.subarray((layer * map.heads.length + head) * size, (layer * map.heads.length + head + 1) * size);
}

/** A weight from its code, which is the square root of its share of the largest. */
const weightOf = (map, code) => map.largest * (code / LARGEST_CODE) ** 2;

/** The red, green and blue of each of the 256 steps, in the scheme of the moment. */
function palette() {
  return palettes[dark.matches ? "dark" : "light"].map((colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));
}

/** The step of the palette for a share of the scale's end, which is 0 to 1. */
const stepOf = (share) => Math.round(255 * Math.min(1, rootScale ? Math.sqrt(share) : share));

/** Draws weights on a canvas, one pixel for the largest of each block of pool x pool; the scale ends at the code `end`. */
function draw(canvas, codes, rows, columns, pool, end, colours) {
  canvas.width = Math.ceil(columns / pool);
  canvas.height = Math.ceil(rows / pool);
  const largest = new Uint16Array(canvas.width * canvas.height);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const pixel = Math.floor(row / pool) * canvas.width + Math.floor(column / pool);
      largest[pixel] = Math.max(largest[pixel], codes[row * columns + column]);
    }
  }
  const image = new ImageData(canvas.width, canvas.height);
  largest.forEach((code, pixel) => {
    image.data.set([...colours[stepOf((code / end) ** 2)], 255], 4 * pixel);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function drawAll() {
  const colours = palette();
  for (const button of document.querySelectorAll("button.map")) {
    const { map: number, row, column } = button.dataset;
    const map = maps[number];
    draw(button.firstChild, codesOf(map, +row, +column), map.rows, map.columns, map.pool, LARGEST_CODE, colours);
  }
  if (dialog.open) drawEnlarged();
}

/** Gives tokens and legends the colours and words of the chosen scale. */
function colourTokens() {
  for (const token of document.querySelectorAll("[data-share]")) {
    token.className = token.className.replace(/w\d+/, `w${stepOf(token.dataset.share)}`);
  }
  for (const legend of document.querySelectorAll(".legend")) {
    legend.querySelector(".middle").textContent = (legend.dataset.largest / (rootScale ? 4 : 2)).toFixed(3);
    legend.querySelector(".scale").textContent = rootScale ? "square-root" : "linear";
  }
}

// ---- one head, enlarged

const dialog = document.getElementById("enlarged");
const part = (id) => document.getElementById(id);
const canvas = dialog.querySelector("canvas");
let chosen = null;
let cell = 1;

/** The token at a place, or the first and last of the block that stands there. */
function tokenAt(tokens, place, block) {
  const first = tokens[place * block];
  const last = tokens[Math.min((place + 1) * block, tokens.length) - 1];
  return block === 1 ? `“${first}”` : `“${first} … ${last}”`;
}

function pairAt(map, place) {
  const row = Math.floor(place / map.columns);
  return `${tokenAt(map.queries, row, map.block)} → ${tokenAt(map.keys, place % map.columns, map.block)}`;
}

function open(number, layer, head) {
  chosen = { map: maps[number], layer, head };
  drawEnlarged();
  if (!dialog.open) dialog.showModal();
}

function drawEnlarged() {
  const { map, layer, head } = chosen;
  const codes = codesOf(map, layer, head);
  cell = Math.max(2, Math.min(36, Math.floor(Math.min(640, innerHeight - 240) / Math.max(map.rows, map.columns))));
  part("enlarged-title").textContent = `Layer ${map.layers[layer]}, head ${map.heads[head]}`;
  const largest = codes.reduce((one, other) => Math.max(one, other), 1);
  draw(canvas, codes, map.rows, map.columns, 1, largest, palette());
  canvas.style.width = `${cell * map.columns}px`;
  canvas.style.height = `${cell * map.rows}px`;
  label(part("queries"), map.queries, "height");
  label(part("keys"), map.keys, "width");
  point(null);
  const order = [...codes.keys()].sort((one, other) => codes[other] - codes[one]).slice(0, STRONGEST);
  part("strongest").replaceChildren(...order.map((place) => element("li", `${pairAt(map, place)} ${weightOf(map, codes[place]).toFixed(4)}`)));
  const blocks = map.block === 1 ? "" : ` Each cell is the largest weight of a block of ${map.block} × ${map.block} tokens.`;
  const scale = rootScale ? "square-root" : "linear";
  part("meaning").textContent = `Rows attend, columns are attended to. Colour is ${scale} from 0 to ${weightOf(map, largest).toFixed(4)}, the largest weight of this head.${blocks}`;
  for (const button of dialog.querySelectorAll("[data-step]")) {
    const count = map[`${button.dataset.step}s`].length;
    button.disabled = !(chosen[button.dataset.step] + +button.dataset.by in [...Array(count)]);
  }
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

/** The tokens beside the map, where a row is high enough to carry one. */
function label(holder, tokens, side) {
  const readable = cell >= 12 && chosen.map.block === 1;
  const labels = readable ? tokens.map((token) => element("span", token)) : [];
  for (const span of labels) span.style[side] = `${cell}px`;
  holder.replaceChildren(...labels);
}

/** Says what stands in one cell and marks it, or with null how to ask. */
function point(place) {
  const { map, layer, head } = chosen;
  const cursor = part("cursor");
  cursor.hidden = place === null;
  for (const marked of part("chart").querySelectorAll(".on")) marked.classList.remove("on");
  if (place === null) {
    part("reading").textContent = "Point at a cell to read its weight.";
    return;
  }
  const row = Math.floor(place / map.columns);
  const column = place % map.columns;
  const codes = codesOf(map, layer, head);
  const line = codes.subarray(row * map.columns, (row + 1) * map.columns);
  const rank = 1 + line.filter((code) => code > codes[place]).length;
  part("reading").textContent = `${pairAt(map, place)} ${weightOf(map, codes[place]).toFixed(4)} · rank ${rank} of ${map.columns} in its row`;
  part("queries").children[row]?.classList.add("on");
  part("keys").children[column]?.classList.add("on");
  Object.assign(cursor.style, { left: `${column * cell}px`, top: `${row * cell}px`, width: `${cell}px`, height: `${cell}px` });
}

function step(axis, by) {
  const next = chosen[axis] + by;
  if (next < 0 || next >= chosen.map[`${axis}s`].length) return;
  chosen[axis] = next;
  drawEnlarged();
}

canvas.addEventListener("pointermove", (event) => {
  const row = Math.min(Math.floor(event.offsetY / cell), chosen.map.rows - 1);
  const column = Math.min(Math.floor(event.offsetX / cell), chosen.map.columns - 1);
  point(Math.max(row, 0) * chosen.map.columns + Math.max(column, 0));
});
canvas.addEventListener("pointerleave", () => point(null));
dialog.addEventListener("click", (event) => {
  if (event.target === dialog || event.target.closest("#close")) dialog.close();
  const stepper = event.target.closest("[data-step]");
  if (stepper) step(stepper.dataset.step, +stepper.dataset.by);
});
const KEYS = { ArrowLeft: ["layer", -1], ArrowRight: ["layer", 1], ArrowUp: ["head", -1], ArrowDown: ["head", 1] };
dialog.addEventListener("keydown", (event) => {
  if (!(event.key in KEYS)) return;
  event.preventDefault();
  step(...KEYS[event.key]);
});

// ---- the number is one hover away

const note = part("note");

/** Shows an element's note at once; its title becomes its name, so that the browser does not show it a second time. */
function showNote(target) {
  if (target.title) {
    target.dataset.note = target.title;
    if (target.matches("button")) target.setAttribute("aria-label", target.title);
    target.removeAttribute("title");
  }
  note.textContent = target.dataset.note;
  note.hidden = false;
  const box = target.getBoundingClientRect();
  const above = box.top - note.offsetHeight - 4;
  note.style.top = `${above < 0 ? box.bottom + 4 : above}px`;
  note.style.left = `${Math.max(4, Math.min(box.left, innerWidth - note.offsetWidth - 24))}px`;
}

const noted = (event) => event.target.closest?.("[title], [data-note]");
for (const kind of ["pointerover", "focusin"]) {
  document.addEventListener(kind, (event) => (noted(event) ? showNote(noted(event)) : (note.hidden = true)));
}
document.addEventListener("scroll", () => (note.hidden = true), true);
document.addEventListener("keydown", (event) => event.key === "Escape" && (note.hidden = true));

document.addEventListener("click", (event) => {
  const button = event.target.closest("button.map");
  if (button) open(+button.dataset.map, +button.dataset.row, +button.dataset.column);
});
for (const box of document.querySelectorAll(".root")) {
  box.checked = false;
  box.addEventListener("change", () => {
    rootScale = box.checked;
    for (const other of document.querySelectorAll(".root")) other.checked = rootScale;
    colourTokens();
    drawAll();
  });
}
dark.addEventListener("change", drawAll);
drawAll();
