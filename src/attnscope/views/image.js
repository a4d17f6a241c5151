// The image view: the scores of an image's patches as heat over the image, once for each method.

import { colours, drawRamp, element, movedPlace, percent, pointedPlace, sharp, short } from "./drawing.js";
import { Frame } from "./frame.js";

const LEGEND = 120;
/** The opacity of the heat from which the image beneath it is all grey. */
const GREY = 0.5;

/** The images and what they share. */
class ImageView {
  /** @param {import("./frame.js").Frame} frame @param {ImagePayload} payload */
  constructor(frame, payload) {
    this.frame = frame;
    this.payload = payload;
    this.picture = new Image();
    this.picture.src = payload.image;
    this.figures = payload.methods.map((method) => this.#figure(method));
    this.node = element("div", { className: "images" }, ...this.figures.map(({ node }) => node));
    frame.listKey("← → ↑ ↓", "the patch to read, within an image");
  }

  #figure(method) {
    const { grid, methods } = this.payload;
    const canvas = element("canvas", {
      className: "picture",
      tabIndex: 0,
      role: "application",
      ariaLabel: `${method.name}: heat over ${grid[0]} by ${grid[1]} patches; arrow keys move`,
    });
    const alone = () => this.frame.set({ methods: this.frame.get("methods") ? null : [method.name] });
    const title =
      methods.length > 1
        ? element("button", { type: "button", title: "Show this method alone, or all again", onclick: alone }, method.name)
        : element("span", {}, method.name);
    const [ramp, start, end] = [element("canvas", { ariaHidden: "true" }), element("span", {}), element("span", {})];
    const node = element(
      "figure",
      {},
      element("figcaption", {}, title),
      canvas,
      element("div", { className: "end quiet" }, start, ramp, end),
    );
    const figure = {
      method,
      canvas,
      ramp,
      start,
      end,
      node,
      at: /** @type {[number, number]} */ ([0, 0]),
      largest: Math.max(0, ...method.scores.flat().map((score) => Math.abs(score ?? 0))),
    };
    const cell = () => ({ width: canvas.clientWidth / grid[1], height: canvas.clientHeight / grid[0] });
    const read = (place) => {
      figure.at = place;
      const box = canvas.getBoundingClientRect();
      const { width, height } = cell();
      this.#paint(figure, place);
      this.frame.tell({ x: box.left + (place[1] + 1) * width - 8, y: box.top + (place[0] + 1) * height - 8 }, this.#about(figure, place));
    };
    const leave = () => (this.#paint(figure), this.frame.tell(null));
    canvas.addEventListener("pointermove", (event) => read(pointedPlace(event, cell(), grid)));
    canvas.addEventListener("focus", () => read(figure.at));
    for (const kind of ["pointerleave", "blur"]) canvas.addEventListener(kind, leave);
    canvas.addEventListener("keydown", (event) => {
      const moved = movedPlace(event, figure.at, grid);
      if (!moved) return;
      read(moved);
      event.preventDefault();
    });
    return figure;
  }

  /** What is said of a patch: its score and its rank. */
  #about({ method }, [row, column]) {
    const score = method.scores[row][column];
    const every = method.scores.flat().filter((one) => one !== null);
    const told =
      score === null
        ? "not computed"
        : `${String(+score.toPrecision(4)).replace("-", "−")}, rank ${1 + every.filter((one) => one > score).length} of ${every.length}`;
    return [`${method.name}: patch in row ${row}, column ${column}`, told];
  }

  /** The colour and the opacity of a share of the largest score. */
  #heat(method, share) {
    const inked = this.frame.get("root", false) ? Math.sign(share) * Math.sqrt(Math.abs(share)) : share;
    const scale = method.signed ? this.palette.diverging : this.payload.heat;
    return { colour: scale[Math.round((method.signed ? (1 + inked) / 2 : Math.max(inked, 0)) * (scale.length - 1))], ink: Math.abs(inked) };
  }

  async draw() {
    await this.picture.decode();
    this.palette = colours(this.frame.el);
    const chosen = this.frame.get("methods");
    const shown = this.figures.filter(({ method }) => !chosen || chosen.includes(method.name));
    for (const { node } of this.figures) node.hidden = !shown.some((figure) => figure.node === node);
    this.node.classList.toggle("alone", shown.length === 1);
    for (const figure of shown) {
      this.#paint(figure);
      const { method, ramp, start, end, largest } = figure;
      drawRamp(
        sharp(ramp, LEGEND, 12),
        { left: 0, top: 0, width: LEGEND, height: 12 },
        (share) => this.#heat(method, method.signed ? 2 * share - 1 : share).colour,
      );
      start.textContent = method.signed ? `−${short(largest)}` : "0";
      end.textContent = short(largest);
    }
    this.#say(shown);
  }

  /** The image, the heat of its patches, and a frame around the one that is read. @param {[number, number]} [looked] */
  #paint(figure, looked = null) {
    if (!this.palette) return;
    const { method, canvas, largest, node } = figure;
    const {
      grid: [rows, columns],
      size,
    } = this.payload;
    const width = node.clientWidth;
    const height = Math.round((width * size[1]) / size[0]);
    const context = sharp(canvas, width, height);
    const opacity = this.frame.get("opacity", 0.6);
    // the colours of an image would mix with those of the scores: it steps back to grey as the heat comes up
    context.drawImage(this.picture, 0, 0, width, height);
    context.globalCompositeOperation = "saturation";
    context.globalAlpha = Math.min(1, opacity / GREY);
    context.fillStyle = "#808080";
    context.fillRect(0, 0, width, height);
    context.globalCompositeOperation = "source-over";
    const patches = [];
    const edge = (place, count, whole) => Math.round((place * whole) / count);
    method.scores.forEach((line, row) =>
      line.forEach((score, column) => {
        const { colour, ink } = this.#heat(method, largest && score ? score / largest : 0);
        const [left, top] = [edge(column, columns, width), edge(row, rows, height)];
        context.globalAlpha = opacity * ink;
        context.fillStyle = colour;
        context.fillRect(left, top, edge(column + 1, columns, width) - left, edge(row + 1, rows, height) - top);
        patches.push({ row, column, score, colour, opacity: opacity * ink });
      }),
    );
    context.globalAlpha = 1;
    if (looked) {
      const [left, top] = [edge(looked[1], columns, width), edge(looked[0], rows, height)];
      context.strokeStyle = this.palette.read("focus");
      context.lineWidth = 2;
      context.strokeRect(left, top, edge(looked[1] + 1, columns, width) - left, edge(looked[0] + 1, rows, height) - top);
    }
    // what was drawn, for whoever wants to check it against the scores
    canvas.scene = { method: method.name, patches };
  }

  #say(shown) {
    const { grid } = this.payload;
    const root = this.frame.get("root", false) ? "the square root of " : "";
    const said = [
      `${grid[0]} by ${grid[1]} patches. Colour and opacity are ${root}the score, from 0 to the largest patch of each method; the image is grey beneath them, and a patch without a score is the image alone.`,
    ];
    const elsewhere = shown
      .filter(({ method }) => method.elsewhere > 1e-6)
      .map(({ method }) => `${method.name} ${percent(method.elsewhere)}`);
    if (elsewhere.length) said.push(`Tokens that are no patch take ${elsewhere.join(", ")}.`);
    for (const { method } of shown)
      for (const warning of method.warnings) said.push(`${method.name}: ${warning}${/[.!?]$/.test(warning) ? "" : "."}`);
    this.frame.said.textContent = said.join(" ");
    const best = ({ method }) =>
      method.scores.reduce(
        (found, line, row) =>
          line.reduce((most, score, column) => (score !== null && score > most.score ? { score, row, column } : most), found),
        { score: -Infinity },
      );
    this.frame.summary.textContent = shown
      .map((figure) => {
        const { row, column, score } = best(figure);
        return `${figure.method.name}: highest in row ${row}, column ${column}, ${short(score)}`;
      })
      .join("; ");
  }

  /** The rows of the table: every patch under every method that is shown. */
  table() {
    const chosen = this.frame.get("methods");
    const methods = this.payload.methods.filter(({ name }) => !chosen || chosen.includes(name));
    const [rows, columns] = this.payload.grid;
    const places = Array.from({ length: rows * columns }, (_, place) => [Math.floor(place / columns), place % columns]);
    return {
      caption: "The score of every patch",
      columns: ["Row", "Column", ...methods.map(({ name }) => name)],
      rows: places.map(([row, column]) => [
        row,
        column,
        ...methods.map(({ scores }) => (scores[row][column] === null ? "not computed" : short(scores[row][column]))),
      ]),
    };
  }
}

/** Draws the view into an element and keeps it true to the model. @param {{model: import("./frame.js").Model, el: HTMLElement}} given */
export function render({ model, el }) {
  const frame = new Frame({ model, el }, "image", "Image view: which parts of an image were looked at");
  const view = new ImageView(frame, model.get("payload"));
  frame.slider("Opacity of the heat", "opacity", { most: 1, step: 0.05, words: (share) => percent(share).replace(".0", "") });
  frame.check("Square-root scale", "root");
  frame.body.append(view.node);
  return frame.start(view);
}
