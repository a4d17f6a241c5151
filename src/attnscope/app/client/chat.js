// The page that asks: a question about documents, the answer as it is written, and below it the view of what it goes with.

import { AskingForm } from "/client/asking_form.js";
import { VIEW, fromAddress, toAddress } from "/client/chat_link.js";
import { dropped } from "/client/opening.js";
import { Methods } from "/client/question.js";
import { Saving, showCopied } from "/client/saving.js";
import { askForAnswer, start } from "/client/server.js";
import { Stage, Tabs } from "/client/stage.js";
import { Working } from "/client/working.js";
import { element, thousands } from "/views/drawing.js";

/** @typedef {import("/client/chat_link.js").Asked} Asked
 *  @typedef {import("/client/chat_link.js").Place} Place
 *  @typedef {{id: string, text: string, given: boolean, stopped: boolean, goes_on: boolean, tokens: number, prompt_tokens: number, sentences: string[], views: {name: string, why_not: string | null}[], default_methods: string[], drop_runs: number}} Reply */

const SOON = 250; // milliseconds until a choice is in the link
/** What a newcomer can ask. @type {Partial<Asked>} */
const EXAMPLE = {
  question: "When was the lighthouse at Skerry Point finished?",
  documents: [
    {
      title: "Lighthouses of the north",
      text: "The lighthouse at Skerry Point was finished in 1854. It stands on a rock two miles off the coast. Its light is seen from thirty miles away.",
    },
    {
      title: "The railway",
      text: "The first train reached the harbour in 1871. The station was built of red brick, and burnt down twice.",
    },
    { title: "The harbour", text: "Fishing boats leave the harbour before dawn. The market is held on Tuesdays." },
  ],
};

/** A form, an answer, and the views of it. */
class Chat {
  /** What is answered. @type {Asked | null} */
  #asked = null;
  /** @type {Reply | null} */
  #reply = null;
  #wanted = null;
  #states = {};
  #view = VIEW;
  #drops = false;
  #waiting = 0;

  /** @param {any} here what the server knows */
  constructor(here) {
    this.here = here;
    this.form = new AskingForm({ models: here.models, limits: here.limits, ask: (asked) => this.#send(asked) });
    this.form.further.addEventListener("click", () => {
      this.form.further.hidden = true;
      this.form.goOn({ question: this.#asked.question, answer: this.#reply.text });
    });
    this.working = new Working((busy) => this.node.setAttribute("aria-busy", String(busy)));
    this.written = element("p", { className: "written", dir: "auto" });
    this.quiet = element("div", {});
    const answer = element("section", { className: "answer", ariaLive: "polite", ariaLabel: "Answer" }, this.written, this.quiet);
    this.stage = new Stage({ number: 1, working: this.working, keep: () => this.#changed(), again: (signal) => this.#again(signal) });
    this.tabs = new Tabs({ label: "Views", choose: (name) => this.show(name), tell: (sentence) => this.#tell(sentence) });
    this.saving = new Saving({ view: () => this.stage.live(this.#view), fail: (error) => this.form.complain(error.message) });
    this.measure = element("button", { type: "button", onclick: () => this.#measure() });
    this.measure.title = "Delete each document in turn, and all, and see by how much the answer’s log-probability falls";
    this.saving.node.prepend(this.measure);
    this.aboutView = element("p", { className: "quiet about-view" });
    this.methods = new Methods({ methods: here.answer_methods, choose: (names) => this.#chooseMethods(names) });
    this.bar = element("div", { className: "views-bar" }, this.tabs.node, this.saving.node);
    this.node = element(
      "section",
      { className: "pane", ariaLabel: "Question and answer", ariaBusy: false },
      element("div", { className: "opening" }, this.form.node, answer),
      this.bar,
      element("div", { className: "status" }, this.working.bar, this.aboutView, this.working.node),
      this.methods.node,
      this.stage.node,
    );
    this.node.dataset.pane = "1";
    this.#clear();
  }

  // ---- asking

  /** Asks; the answer is shown as it is written. @param {Asked} asked */
  async #send(asked) {
    this.form.complain();
    // what was chosen in another answer means nothing in this one
    if (this.#asked && JSON.stringify(asked) !== JSON.stringify(this.#asked)) this.#states = {};
    this.#clear();
    this.written.classList.add("coming");
    const again = element("button", { type: "button", onclick: () => this.#send(asked) }, "Try again");
    try {
      const reply = await this.working.run(
        "Reading",
        (signal, tell) => askForAnswer(asked, signal, tell, (text) => (this.written.textContent = text)),
        () => this.form.complain("Cancelled.", again),
      );
      if (reply) await this.#found(asked, reply);
    } catch (error) {
      this.written.textContent = "";
      this.form.complain(error.message, ...(error.isPassing ? [again] : []));
    } finally {
      this.written.classList.remove("coming");
    }
  }

  /** Shows an answer. @param {Asked} asked @param {Reply} reply */
  async #found(asked, reply) {
    [this.#asked, this.#reply, this.#drops] = [asked, reply, false];
    this.form.settled(asked);
    this.form.documents.node.open = false;
    this.form.further.hidden = !reply.goes_on;
    this.written.textContent = reply.text;
    this.written.classList.remove("coming");
    const said = [
      `${thousands(reply.prompt_tokens)} tokens were read, ${thousands(reply.tokens)} ${reply.given ? "given" : "written"}.`,
      ...(reply.given ? ["This answer was given: its probabilities are those of this model, whoever wrote it."] : []),
      ...(reply.given || reply.stopped ? [] : [`It was cut at ${thousands(asked.tokens)} tokens: more may be had under How it answers.`]),
      ...reply.sentences,
    ];
    this.quiet.replaceChildren(...said.map((sentence) => element("p", { className: "quiet" }, sentence)));
    this.stage.clear(reply.views);
    const titleOf = (name) => this.here.views.find((view) => view.name === name)?.title ?? name;
    this.tabs.fill(reply.views.map((view) => ({ ...view, title: titleOf(view.name), panel: this.stage.panelId(view.name) })));
    this.bar.hidden = false;
    const can = reply.views.filter(({ why_not: whyNot }) => !whyNot).map(({ name }) => name);
    await this.show(can.includes(this.#view) ? this.#view : can[0]);
  }

  /** Asks the same again, where the server has forgotten it. @param {AbortSignal} signal */
  async #again(signal) {
    const nothing = () => {};
    this.#reply = await askForAnswer(this.#asked, signal, nothing, nothing);
    return this.#reply.id;
  }

  // ---- views

  /** Brings a view into sight, and makes it when it is looked at for the first time. @param {string} name */
  async show(name) {
    this.#view = name;
    this.tabs.select(name);
    this.stage.select(name);
    this.methods.node.hidden = name !== VIEW;
    this.methods.show(this.#chosenMethods, this.#usual);
    this.#tell("");
    this.#changed();
    if (!this.stage.live(name)) await this.#make(name);
  }

  async #make(name) {
    await this.stage.make(this.#reply.id, name, {
      methods: name === VIEW ? this.#chosenMethods : null,
      by: "token",
      queries: null,
      drops: name === VIEW && this.#drops ? "document" : null,
      said: this.stage.live(name)?.changes ?? this.#states[name],
    });
    this.#changed();
  }

  /** Runs the model without each document: what it costs stands on the button. */
  async #measure() {
    this.#drops = true;
    await this.#make(VIEW);
    // whoever cancels may ask again
    this.#drops = Boolean(this.stage.live(VIEW)?.payload.drops);
    this.#changed();
  }

  /** Methods that need one forward pass are quick. */
  get #usual() {
    return {
      usual: this.here.answer_methods.flatMap(({ name, needs }) => (needs === "weights" ? [name] : [])),
      hasModel: true,
      because: "",
    };
  }

  get #chosenMethods() {
    return this.#wanted ?? this.#reply.default_methods;
  }

  #chooseMethods(names) {
    if (names.length) this.#wanted = names;
    this.methods.show(this.#chosenMethods, this.#usual);
    if (!names.length) return this.#tell("One method at least is asked.");
    return this.#make(VIEW);
  }

  // ---- the link, and what is said

  /** Fills the form with what a link says, and asks it where all of it is there. @param {Partial<Place> | null} place */
  restore(place) {
    const { methods = null, view = VIEW, states = {}, missing = 0 } = place ?? {};
    const known = methods?.filter((name) => this.here.answer_methods.some((method) => method.name === name));
    [this.#wanted, this.#states, this.#view, this.#asked] = [known?.length ? known : null, states, view, null];
    this.#clear();
    this.form.settled(null);
    const served = this.form.fill(place ?? EXAMPLE);
    if (!place || !this.form.models.length) return undefined;
    if (!served) return this.form.complain(`The model “${place.model}” of this link is not served here: choose one of those above.`);
    const [many, them] = missing === 1 ? ["The document of this link was", "it"] : [`The ${missing} documents of this link were`, "them"];
    if (missing) return this.form.complain(`${many} too long for it: paste ${them} again, then ask.`);
    return this.form.ask();
  }

  #clear() {
    this.#reply = null;
    this.bar.hidden = this.methods.node.hidden = this.form.further.hidden = true;
    this.stage.clear();
    this.quiet.replaceChildren();
    this.written.textContent = "";
    this.#tell("");
  }

  /** Shows what can be done with the view, and writes what is chosen into the address, soon. */
  #changed() {
    const runs = this.#reply?.drop_runs ?? 0;
    this.saving.refresh();
    this.measure.hidden = this.#view !== VIEW || this.#drops || !runs;
    this.measure.textContent = `Measure drops (${thousands(runs)} runs)`;
    this.#waiting ||= setTimeout(() => this.keep(), SOON);
  }

  /** Writes the address now. */
  keep() {
    clearTimeout(this.#waiting);
    this.#waiting = 0;
    if (!this.#reply) return;
    const changes = (name) => this.stage.live(name)?.changes ?? this.#states[name] ?? {};
    const states = Object.fromEntries(this.#reply.views.map(({ name }) => [name, changes(name)]));
    const address = toAddress({ ...this.#asked, methods: this.#wanted, view: this.#view, states });
    if (address !== location.hash) history.replaceState(null, "", address);
  }

  #tell(sentence) {
    const about = this.here.views.find(({ name }) => name === this.#view)?.about ?? "";
    this.aboutView.textContent = sentence || (this.bar.hidden ? "" : about);
  }
}

/** Text files may be dropped anywhere. @param {Chat} chat */
function watchDrops(chat) {
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => holdsFiles(event) && event.preventDefault());
  addEventListener("drop", async (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    const { files } = await dropped(event.dataTransfer);
    chat.form.documents.read(files.map(({ file }) => file));
  });
}

const main = document.querySelector("main");
try {
  const chat = new Chat(await start());
  main.append(chat.node);
  const copy = () => (chat.keep(), showCopied("Link to what is shown", location.href));
  const link = element("button", { type: "button", onclick: copy }, "Copy link");
  document.querySelector("nav").append(element("a", { href: "/" }, "Look at a text"), link);
  watchDrops(chat);
  chat.restore(fromAddress(location.hash));
  addEventListener("hashchange", () => chat.restore(fromAddress(location.hash)));
} catch (error) {
  main.replaceChildren(element("p", { className: "complaint", role: "alert" }, error.message));
}
