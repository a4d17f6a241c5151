// A pane: a question, its answer, and the views of it.

import { carriedStates } from "/client/address.js";
import { Explaining, PREDICTION } from "/client/explaining.js";
import { opened, openers } from "/client/opening.js";
import { Answer, Methods, Question } from "/client/question.js";
import { Saving } from "/client/saving.js";
import { Refused, readText } from "/client/server.js";
import { Stage, Tabs } from "/client/stage.js";
import { Working } from "/client/working.js";
import { element, thousands } from "/views/drawing.js";

/** Tokens that flow is computed from at a time, where a text is long. */
const SOURCES = 16;

/** @typedef {import("/client/address.js").Shown} Shown
 *  @typedef {{models: import("/client/question.js").Model[], methods: import("/client/question.js").Method[], views: {name: string, title: string, about: string}[], limits: Record<string, number>, kept: Record<string, Kept>}} Start what the server knows
 *  @typedef {{asked: import("/client/question.js").Asked | null, outcomes: import("/client/explaining.js").Outcomes, name: string, read: (signal: AbortSignal) => Promise<object>}} Source where a text comes from, so that it can be read again */

/** Whether two things say the same. */
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** One text, and all that is seen of it. `changed` hears of everything that a link holds, `stepped` of tabs and layers. */
export class Pane {
  #source = null;
  #reply = null;
  #view = "scores";
  /** The methods that were chosen by hand; none: those that are usual for a text of its length. */
  #wanted = null;
  /** What is explained, and by what. @type {import("/client/explaining.js").Outcomes} */
  #outcomes = PREDICTION;
  /** @type {import("/client/explaining.js").Level} */
  #by = "word";
  /** Whether what the model cannot read of a long text is left out. */
  #truncate = false;
  /** What is chosen in views that are not drawn yet. */
  #states = {};

  /** @param {{number: number, start: Start, changed: () => void, stepped: (step: {view?: string, layer?: number}) => void, trusted: () => void, close: () => void}} given */
  constructor({ number, start, changed, stepped, trusted, close }) {
    this.number = number;
    this.start = start;
    this.changed = changed;
    this.stepped = stepped;
    this.trusted = trusted;
    this.working = new Working((busy) => this.node.setAttribute("aria-busy", String(busy)));
    this.stage = new Stage({ number, working: this.working, keep: (view) => this.#chose(view), again: (signal) => this.#again(signal) });
    this.close = element(
      "button",
      { type: "button", className: "plain-button", title: "Take this side away", onclick: close, hidden: true },
      "Close",
    );
    const actions = [...openers((files, name) => this.open(files, name)), this.close];
    this.question = new Question({ models: start.models, limit: start.limits.characters, look: (asked) => this.look(asked), actions });
    this.explaining = new Explaining({ ask: (outcomes) => this.#explain(outcomes), divide: (by) => this.#divide(by) });
    this.answer = new Answer(this.explaining.node);
    this.notice = element("p", { className: "notice", role: "status", hidden: true });
    this.about = element("p", { className: "quiet about-view" });
    this.methods = new Methods({ methods: start.methods, choose: (names) => this.#chooseMethods(names) });
    this.tabs = new Tabs({ label: "Views", choose: (name) => this.show(name), tell: (sentence) => this.#tell(sentence) });
    this.saving = new Saving({ view: () => this.stage.live(this.#view), fail: (error) => this.#note(error.message) });
    this.bar = element("div", { className: "views-bar", hidden: true }, this.tabs.node, this.saving.node);
    const opening = element("div", { className: "opening" }, this.question.node, this.answer.node);
    const status = element("div", { className: "status" }, this.working.bar, this.about, this.working.node);
    this.methods.node.hidden = true;
    this.node = element(
      "section",
      { className: "pane", ariaLabel: `Text ${number}`, ariaBusy: false },
      opening,
      this.notice,
      this.bar,
      status,
      this.methods.node,
      this.stage.node,
    );
    this.node.dataset.pane = String(number);
  }

  /** What a link holds of this pane. @returns {Shown} */
  get shown() {
    const views = new Set([...Object.keys(this.#states), ...(this.#reply?.views ?? []).map(({ name }) => name)]);
    const states = Object.fromEntries([...views].map((name) => [name, this.stage.live(name)?.changes ?? this.#states[name] ?? {}]));
    const { asked, name } = this.#source ?? { asked: this.question.asked, name: "" };
    const truncate = this.#truncate ? "1" : null;
    return { ...(asked ?? { opened: name }), ...this.#outcomes, truncate, by: this.#by, view: this.#view, methods: this.#wanted, states };
  }

  /** The view and the layer in sight. */
  get step() {
    const layer = this.stage.live(this.#view)?.model?.get("layer");
    return { view: this.#view, ...(Number.isInteger(layer) ? { layer } : {}) };
  }

  /** Where the text comes from, for a pane that is to show the same. */
  get source() {
    return this.#source;
  }

  /** Shows what a link or another pane shows. @param {Shown} shown @param {Source | null} [source] */
  async restore(
    { model, text, second = null, opened: name, target = null, against = null, truncate = null, by = "word", view, methods = null, states },
    source = null,
  ) {
    const known = methods?.filter((one) => this.start.methods.some((method) => method.name === one));
    [this.#view, this.#wanted, this.#states] = [view ?? "scores", known?.length ? known : null, states];
    [this.#outcomes, this.#by, this.#truncate] = [{ target, against }, by, truncate === "1"];
    if (source && !source.asked) return this.#read(source);
    if (name !== undefined) {
      const gone = new Refused(`“${name}” was open here. A link cannot hold a file: open it again to see it.`, 400);
      this.#source = { asked: null, outcomes: PREDICTION, name, read: () => Promise.reject(gone) };
      return this.#read(this.#source);
    }
    this.question.fill({ model, text, second });
    if (model && this.question.asked.model !== model)
      return this.#note(`The model “${model}” of this link is not served here: choose one of those above.`);
    return this.question.ask();
  }

  /** Looks at a text. @param {import("/client/question.js").Asked} asked */
  look(asked) {
    if (!this.#keepsOutcomes(asked)) this.#outcomes = PREDICTION;
    const before = this.#source?.asked;
    if (before && !same(before, asked)) this.#truncate = false; // another text is cut only if that is asked for again
    return this.#ask(asked);
  }

  #ask(asked) {
    const [outcomes, truncate] = [this.#outcomes, this.#truncate];
    return this.#read({ asked, outcomes, name: "", read: (signal) => readText({ ...asked, ...outcomes, truncate }, signal) });
  }

  /** Whether what is explained makes sense for another text: a chosen outcome of the same model; what a link says does. */
  #keepsOutcomes(asked) {
    const before = this.#source?.asked;
    return !before || same(before, asked) || (before.model === asked.model && this.#outcomes.target !== null);
  }

  /** Explains another outcome of the same text. */
  #explain({ target, against }) {
    const explained = target ?? this.#reply.outcomes[0];
    this.#outcomes = { target, against: against === explained ? null : against };
    this.#ask(this.#source.asked);
  }

  /** Scores other parts of the text; what was chosen among the parts before means nothing then. */
  #divide(by) {
    const chosen = this.#said("scores") ?? {};
    this.#by = by;
    this.#make("scores", null, carriedStates({ scores: chosen }, true, this.start.kept).scores);
  }

  /** Opens what was saved. @param {import("/client/opening.js").Found[]} files @param {string} name */
  open(files, name) {
    return this.#read({ asked: null, outcomes: PREDICTION, name, read: (signal) => opened(files, this.start.limits.upload_bytes, signal) });
  }

  async #read(source) {
    this.question.complain();
    this.#note();
    this.node.classList.add("stale");
    const again = element("button", { type: "button", onclick: () => this.#read(source) }, "Try again");
    try {
      const reply = await this.working.run(
        source.asked ? "Reading the text" : `Opening ${source.name}`,
        (signal) => source.read(signal),
        () => this.#failed(source, "Cancelled.", again),
      );
      if (reply?.kind === "trust") this.#trust(reply);
      else if (reply) await this.#found(source, reply);
    } catch (error) {
      if (!error.isPassing && source.asked) this.#outcomes = PREDICTION; // so that the next text is not refused too
      const plain = element("button", { type: "button", onclick: () => this.#ask(source.asked) }, "Explain the prediction");
      const cut = element("button", { type: "button", onclick: () => this.#cut(source.asked) }, "Leave the rest out");
      const asking = same(source.outcomes, PREDICTION) ? [] : [plain];
      this.#failed(source, error.message, ...(error.isPassing ? [again] : error.isTooLong ? [cut] : asking));
    }
  }

  /** Reads as much of a text as the model can. */
  #cut(asked) {
    this.#truncate = true;
    return this.#ask(asked);
  }

  /** Shows what came of a question. */
  async #found(source, reply) {
    this.node.classList.remove("stale");
    if (same(source.asked, this.#source?.asked ?? {})) {
      this.#states = this.shown.states; // another question about the same text
    } else if (this.#reply) {
      this.#states = carriedStates(this.shown.states, reply.model === this.#reply.model, this.start.kept);
      // what was chosen for a short text may take long on another: that is asked for anew
      const quick = this.#wanted?.filter((name) => reply.default_methods?.includes(name));
      this.#wanted = quick?.length ? quick : null;
    } // else what a link says is for the text it says
    [this.#source, this.#reply] = [source, reply];
    this.#outcomes = { target: reply.target ?? null, against: reply.against ?? null };
    this.#describe();
    this.answer.show(reply);
    this.explaining.show(reply.kind === "text" ? reply : null, this.#by);
    this.stage.clear(reply.views);
    const titles = Object.fromEntries(this.start.views.map(({ name, title }) => [name, title]));
    this.tabs.fill(
      reply.views.map(({ name, why_not }) => ({
        name,
        why_not,
        title: titles[name] ?? name[0].toUpperCase() + name.slice(1),
        panel: this.stage.panelId(name),
      })),
    );
    this.bar.hidden = false;
    const can = reply.views.filter(({ why_not }) => !why_not).map(({ name }) => name);
    if (!can.length) return this.#failed(source, "No view can be made of this.");
    await this.show(can.includes(this.#view) ? this.#view : can[0]);
    // the headline comes with the scores, whichever view is in sight
    if (this.#reply === reply && can.includes("scores") && !this.stage.live("scores")) await this.#make("scores");
  }

  /** Says what is looked at: the text in the form, or the file that is open. */
  #describe() {
    const { asked, name } = this.#source;
    const words =
      this.#reply.tokens === undefined ? `Survey “${name}”` : `Record “${name}” · ${thousands(this.#reply.tokens)} tokens, without a model`;
    const back = element(
      "button",
      { type: "button", onclick: () => (this.question.showOpened(), this.question.settled(null), this.question.text.focus()) },
      "Type a text",
    );
    if (asked) this.question.showOpened();
    else this.question.showOpened(words, back);
    this.question.settled(asked);
  }

  /** Nothing could be read: what stood here before belongs to another text; a file that was no use changes nothing. */
  #failed(source, sentence, ...actions) {
    this.node.classList.remove("stale");
    this.question.complain(sentence, ...actions);
    if (!source.asked) return;
    this.bar.hidden = this.methods.node.hidden = true;
    this.#tell("");
    this.answer.show(null);
    this.explaining.show(null, this.#by);
    this.stage.clear();
  }

  /** A trust table stands beside the methods from now on, in every pane. */
  #trust({ sentence }) {
    this.#note(sentence);
    this.trusted();
  }

  /** Asks the methods again, with what is known of how far they can be trusted. */
  rescore() {
    if (this.stage.live("scores")) return this.#make("scores");
  }

  async #again(signal) {
    this.#reply = { ...this.#reply, ...(await this.#source.read(signal)) };
    return this.#reply.id;
  }

  // ---- views

  /** Brings a view into sight, and makes it when it is looked at for the first time. @param {string} name */
  async show(name) {
    if (!this.#reply?.views.some((view) => view.name === name && !view.why_not)) return;
    this.#view = name;
    this.tabs.select(name);
    this.stage.select(name);
    this.methods.node.hidden = name !== "scores";
    this.#showMethods();
    this.#tell("");
    this.saving.refresh();
    this.changed();
    this.stepped({ view: name });
    if (!this.stage.live(name)) await this.#make(name);
  }

  async #make(name, queries = name === "flow" ? this.#states.flow?.queries : null, said = this.#said(name)) {
    const view = await this.stage.make(this.#reply.id, name, {
      methods: name === "scores" ? this.#chosenMethods : null,
      by: this.#by,
      queries: queries?.slice?.(0, SOURCES) ?? null,
      said,
    });
    if (view?.name === "scores") this.answer.tell(view.carried);
    if (view?.name === "flow") this.#offerFlow(view);
    this.saving.refresh();
    this.changed();
  }

  /** What is chosen in a view, whether it is drawn or not. */
  #said(name) {
    return this.stage.live(name)?.changes ?? this.#states[name];
  }

  /** Follows another pane. @param {{view?: string, layer?: number}} step */
  follow({ view, layer }) {
    if (view && view !== this.#view) this.show(view);
    const live = this.stage.live(this.#view);
    if (layer === undefined || !live?.layers.includes(layer) || live.model.get("layer") === layer) return;
    live.model.set("layer", layer);
    live.model.save_changes();
  }

  #chose(view) {
    this.changed();
    if (view.name === "flow") this.#offerFlow(view);
    const layer = view.model.get("layer");
    if (view.name === this.#view && Number.isInteger(layer)) this.stepped({ layer });
  }

  /** Offers what a long text is spared: flow from the tokens that were chosen. */
  #offerFlow(view) {
    const chosen = view.model.get("queries");
    const lacking = chosen.some((place) => !view.payload.computed.sources.includes(place));
    const compute = element("button", { type: "button", onclick: () => this.#make("flow", chosen) }, "Compute it");
    this.#tell(lacking ? "Flow from this token was not computed, because this text is long." : "", ...(lacking ? [compute] : []));
  }

  /** The methods to ask: those chosen by hand, or those that are usual for a text of its length. */
  get #chosenMethods() {
    const lacking = this.#reply.model ? [] : this.start.methods.filter(({ needs }) => needs === "model").map(({ name }) => name);
    return (this.#wanted ?? this.#reply.default_methods ?? []).filter((name) => !lacking.includes(name));
  }

  #chooseMethods(names) {
    if (names.length) this.#wanted = names;
    this.#showMethods();
    if (!names.length) return this.#tell("One method at least is asked.");
    this.#make("scores");
  }

  #showMethods() {
    this.methods.show(this.#chosenMethods, { usual: this.#reply.default_methods ?? [], hasModel: this.#reply.model !== null });
  }

  // ---- what is said

  /** Says something about the view in sight, or what it is. @param {string} sentence @param {HTMLElement[]} actions */
  #tell(sentence, ...actions) {
    const about = this.start.views.find(({ name }) => name === this.#view)?.about ?? "";
    this.about.replaceChildren(sentence || (this.bar.hidden ? "" : about), ...actions.flatMap((action) => [" ", action]));
  }

  /** Says something about the pane. @param {string} [sentence] */
  #note(sentence = "") {
    this.notice.textContent = sentence;
    this.notice.hidden = !sentence;
    this.node.classList.remove("stale");
  }
}
