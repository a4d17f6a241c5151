// The page that asks: documents, a question, the answer as it is written, and below it the view of what it goes with.

import { TOKENS, VIEW, fromAddress, toAddress } from "/client/chat_link.js";
import { Documents } from "/client/documents.js";
import { dropped } from "/client/opening.js";
import { Methods } from "/client/question.js";
import { Saving, showCopied } from "/client/saving.js";
import { askForAnswer, start } from "/client/server.js";
import { Stage, Tabs } from "/client/stage.js";
import { Working } from "/client/working.js";
import { element, thousands } from "/views/drawing.js";

/** @typedef {import("/client/chat_link.js").Asked} Asked
 *  @typedef {import("/client/chat_link.js").Place} Place
 *  @typedef {{id: string, text: string, given: boolean, stopped: boolean, tokens: number, prompt_tokens: number, sentences: string[], views: {name: string, why_not: string | null}[], default_methods: string[], drop_runs: number}} Reply */

const MOST_TOKENS = 1000;
const SOON = 250;
/** @type {Partial<Place>} */
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

// ---- The page.

/** A form, an answer, and the views of it. */
class Chat {
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
    const models = here.models.filter(({ writes }) => writes);
    this.model = element("select", { ariaLabel: "Model" }, ...models.map(({ name }) => element("option", { value: name }, name)));
    this.about = element("span", { className: "quiet about-model" });
    this.model.addEventListener("change", () => this.#describe());
    this.documents = new Documents({
      limits: here.limits,
      changed: () => this.#edited(),
      complain: (sentence) => this.#complain(sentence),
    });
    this.question = element("textarea", { rows: 2, ariaLabel: "Question", placeholder: "Ask a question", spellcheck: false, dir: "auto" });
    this.given = element("textarea", {
      rows: 2,
      ariaLabel: "Given answer",
      placeholder: "Leave it empty to have the model write one",
      spellcheck: false,
      dir: "auto",
    });
    for (const box of [this.question, this.given]) box.addEventListener("input", () => this.#edited());
    const number = (label, value, least, most, step) =>
      element("input", {
        type: "number",
        ariaLabel: label,
        value: String(value),
        min: String(least),
        max: String(most),
        step: String(step),
      });
    this.tokens = number("Tokens at most", TOKENS, 1, MOST_TOKENS, 1);
    this.temperature = number("Temperature", 0, 0, 2, 0.1);
    this.seed = number("Seed", 0, 0, 2 ** 31, 1);
    const label = (words, input, more = "") =>
      element("label", {}, element("span", { className: "quiet" }, words), input, element("span", { className: "quiet" }, more));
    this.options = element(
      "details",
      { className: "how" },
      element("summary", {}, "How it answers"),
      element(
        "div",
        { className: "numbers" },
        label("Tokens at most", this.tokens),
        label("Temperature", this.temperature),
        label("Seed", this.seed),
      ),
      element(
        "p",
        { className: "quiet" },
        "At a temperature of 0 the likeliest token is taken each time; above it tokens are drawn, and the seed repeats them.",
      ),
      element(
        "label",
        { className: "given" },
        element("span", { className: "quiet" }, "Or explain an answer that is there, such as another model’s:"),
        this.given,
      ),
    );
    this.button = element("button", { type: "submit", className: "look", title: "Ctrl+Enter" }, "Ask");
    this.complaint = element("p", { className: "complaint", role: "alert", hidden: true });
    this.form = element(
      "form",
      { className: "question", noValidate: true },
      element(
        "div",
        { className: "asking" },
        element(
          "div",
          { className: "chosen" },
          element("label", {}, element("span", { className: "quiet" }, "Model"), this.model),
          this.about,
        ),
      ),
      this.documents.node,
      this.question,
      element("div", { className: "act" }, this.button),
      this.options,
      this.complaint,
    );
    this.form.addEventListener("submit", (event) => (event.preventDefault(), this.ask()));
    this.form.addEventListener(
      "keydown",
      (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && (event.preventDefault(), this.ask()),
    );
    this.working = new Working((busy) => this.node.setAttribute("aria-busy", String(busy)));
    this.written = element("p", { className: "written", dir: "auto" });
    this.quiet = element("div", {});
    const answer = element("section", { className: "answer", ariaLive: "polite", ariaLabel: "Answer" }, this.written, this.quiet);
    this.stage = new Stage({ number: 1, working: this.working, keep: () => this.#changed(), again: (signal) => this.#again(signal) });
    this.tabs = new Tabs({ label: "Views", choose: (name) => this.show(name), tell: (sentence) => this.#tell(sentence) });
    this.saving = new Saving({ view: () => this.stage.live(this.#view), fail: (error) => this.#complain(error.message) });
    this.measure = element("button", { type: "button", onclick: () => this.#measure() }, "Measure drops");
    this.saving.node.prepend(this.measure);
    this.about_view = element("p", { className: "quiet about-view" });
    const known = here.methods.filter(({ name }) => here.answer_methods.includes(name));
    this.methods = new Methods({ methods: known, choose: (names) => this.#chooseMethods(names) });
    this.methods.node.hidden = true;
    this.bar = element("div", { className: "views-bar", hidden: true }, this.tabs.node, this.saving.node);
    this.node = element(
      "section",
      { className: "pane", ariaLabel: "Question and answer", ariaBusy: false },
      element("div", { className: "opening" }, this.form, answer),
      this.bar,
      element("div", { className: "status" }, this.working.bar, this.about_view, this.working.node),
      this.methods.node,
      this.stage.node,
    );
    this.node.dataset.pane = "1";
    this.#describe();
    if (!models.length) {
      this.button.disabled = true;
      this.#complain(
        "None of the models that are served here writes text: start the server with one that does, such as attnscope serve HuggingFaceTB/SmolLM2-135M-Instruct.",
      );
    }
  }

  // ---- asking

  /** What stands in the form. @returns {Asked} */
  get asked() {
    const whole = (input, otherwise) => (input.value.trim() && Number.isFinite(Number(input.value)) ? Number(input.value) : otherwise);
    return {
      model: this.model.value,
      question: this.question.value,
      documents: this.documents.documents,
      answer: this.given.value.trim() ? this.given.value : null,
      tokens: Math.round(whole(this.tokens, TOKENS)),
      temperature: whole(this.temperature, 0),
      seed: Math.round(whole(this.seed, 0)),
    };
  }

  /** Asks for what stands in the form, or says what is missing. */
  async ask() {
    const { asked } = this;
    const limit = this.here.limits.characters;
    if (!asked.question.trim()) return this.#complain("Type a question first.");
    if (asked.question.length > limit)
      return this.#complain(
        `This question has ${thousands(asked.question.length)} characters, and at most ${thousands(limit)} are read: shorten it.`,
      );
    if (this.documents.complaint) return this.#complain(this.documents.complaint);
    if (asked.tokens < 1 || asked.tokens > MOST_TOKENS) return this.#complain(`An answer has from 1 to ${thousands(MOST_TOKENS)} tokens.`);
    if (asked.temperature < 0 || asked.temperature > 2) return this.#complain("The temperature is from 0 to 2.");
    return this.#send(asked, this.#asked !== JSON.stringify(asked));
  }

  async #send(asked, isNew) {
    this.#complain();
    if (isNew && this.#asked) this.#states = {}; // what was chosen in another answer means nothing in this one
    this.#clear();
    this.written.textContent = "";
    this.written.classList.add("coming");
    const again = element("button", { type: "button", onclick: () => this.#send(asked, false) }, "Try again");
    try {
      const reply = await this.working.run(
        asked.answer === null ? "Reading" : "Reading the answer",
        (signal, tell) => askForAnswer(asked, signal, tell, (text) => (this.written.textContent = text)),
        () => this.#complain("Cancelled.", again),
      );
      if (reply) await this.#found(asked, reply);
    } catch (error) {
      this.#complain(error.message, ...(error.isPassing ? [again] : []));
    } finally {
      this.written.classList.remove("coming");
    }
  }

  async #found(asked, reply) {
    [this.#asked, this.#reply, this.#drops] = [JSON.stringify(asked), reply, false];
    this.#edited();
    this.written.textContent = reply.text;
    const ended = reply.stopped ? [] : [`It stopped at ${thousands(asked.tokens)} tokens, as asked under How it answers.`];
    const by = reply.given ? "This answer was given: its probabilities are those of this model, whoever wrote it." : null;
    const counted = `${thousands(reply.prompt_tokens)} tokens were read, ${thousands(reply.tokens)} ${reply.given ? "given" : "written"}.`;
    this.quiet.replaceChildren(
      ...[by, counted, ...(reply.given ? [] : ended), ...reply.sentences]
        .filter(Boolean)
        .map((sentence) => element("p", { className: "quiet" }, sentence)),
    );
    this.documents.node.open = false;
    this.stage.clear(reply.views);
    this.tabs.fill(
      reply.views.map(({ name, why_not }) => ({
        name,
        why_not,
        title: this.here.views.find((view) => view.name === name)?.title ?? `${name[0].toUpperCase()}${name.slice(1)}`,
        panel: this.stage.panelId(name),
      })),
    );
    this.tabs.node.hidden = reply.views.length < 2;
    this.bar.hidden = false;
    const can = reply.views.filter(({ why_not }) => !why_not).map(({ name }) => name);
    await this.show(can.includes(this.#view) ? this.#view : can[0]);
  }

  async #again(signal) {
    const reply = await askForAnswer(
      JSON.parse(this.#asked),
      signal,
      () => {},
      () => {},
    );
    this.#reply = { ...this.#reply, ...reply };
    return this.#reply.id;
  }

  // ---- views

  /** Brings a view into sight, and makes it when it is looked at for the first time. @param {string} name */
  async show(name) {
    this.#view = name;
    this.tabs.select(name);
    this.stage.select(name);
    this.methods.node.hidden = name !== VIEW;
    this.#showMethods();
    this.#tell("");
    this.#changed();
    if (!this.stage.live(name)) await this.#make(name);
  }

  async #make(name) {
    const said = this.stage.live(name)?.changes ?? this.#states[name];
    await this.stage.make(this.#reply.id, name, {
      methods: name === VIEW ? this.#chosenMethods : null,
      by: "token",
      queries: null,
      drops: name === VIEW && this.#drops ? "document" : null,
      said,
    });
    this.#changed();
  }

  /** Runs the model without each document: what it costs stands on the button. */
  #measure() {
    this.#drops = true;
    this.#make(VIEW);
  }

  get #chosenMethods() {
    return this.#wanted ?? this.#reply.default_methods;
  }

  #chooseMethods(names) {
    if (!names.length) return this.#tell("One method at least is asked.");
    this.#wanted = names;
    this.#showMethods();
    return this.#make(VIEW);
  }

  #showMethods() {
    if (this.#reply) this.methods.show(this.#chosenMethods, { usual: this.#reply.default_methods, hasModel: true });
  }

  // ---- the link, and what is said

  /** Fills the form with what a link says, and asks it where all of it is there. @param {Partial<Place> | null} place */
  restore(place) {
    const {
      model,
      question = "",
      documents = [],
      answer = null,
      tokens = TOKENS,
      temperature = 0,
      seed = 0,
      methods = null,
      view = VIEW,
    } = place ?? EXAMPLE;
    const served = [...this.model.options].some(({ value }) => value === model);
    if (served) this.model.value = model;
    [this.question.value, this.given.value] = [question, answer ?? ""];
    [this.tokens.value, this.temperature.value, this.seed.value] = [tokens, temperature, seed].map(String);
    this.options.open = answer !== null || temperature > 0;
    this.documents.fill(documents);
    const known = methods?.filter((name) => this.here.answer_methods.includes(name));
    [this.#wanted, this.#states, this.#view] = [known?.length ? known : null, place?.states ?? {}, view];
    this.#clear();
    this.#describe();
    if (!place || this.button.disabled) return undefined;
    if (model && !served) return this.#complain(`The model “${model}” of this link is not served here: choose one of those above.`);
    if (place.missing) {
      const many = place.missing === 1 ? "The document of this link was" : `The ${thousands(place.missing)} documents of this link were`;
      return this.#complain(`${many} too long for it: paste ${place.missing === 1 ? "it" : "them"} again, then ask.`);
    }
    return this.ask();
  }

  #clear() {
    this.#reply = null;
    this.bar.hidden = this.methods.node.hidden = true;
    this.stage.clear();
    this.quiet.replaceChildren();
    this.written.textContent = "";
    this.#tell("");
  }

  /** Writes what is asked and chosen into the address, soon. */
  #changed() {
    this.saving.refresh();
    this.measure.hidden = this.#view !== VIEW || this.#drops || !this.#reply?.drop_runs;
    this.measure.textContent = `Measure drops (${thousands(this.#reply?.drop_runs ?? 0)} runs)`;
    this.measure.title = "Delete each document in turn, and all, and see by how much the answer’s log-probability falls";
    this.#waiting ||= setTimeout(() => this.keep(), SOON);
  }

  /** Writes the address now. */
  keep() {
    clearTimeout(this.#waiting);
    this.#waiting = 0;
    if (!this.#reply) return;
    const states = Object.fromEntries(
      this.#reply.views.map(({ name }) => [name, this.stage.live(name)?.changes ?? this.#states[name] ?? {}]),
    );
    const address = toAddress({ ...JSON.parse(this.#asked), methods: this.#wanted, view: this.#view, states });
    if (address !== location.hash) history.replaceState(null, "", address);
  }

  #describe() {
    const model = this.here.models.find(({ name }) => name === this.model.value);
    const longest = model?.longest ? `up to ${thousands(model.longest)} tokens` : "";
    this.about.textContent = [model?.size, longest].filter(Boolean).join(" · ");
    this.#edited();
  }

  /** Tells whether the form holds something new. */
  #edited() {
    this.form.dataset.new = String(JSON.stringify(this.asked) !== this.#asked);
    if (this.complaint.textContent && !this.button.disabled) this.#complain();
  }

  #complain(sentence = "", ...actions) {
    this.complaint.hidden = !sentence;
    this.complaint.replaceChildren(sentence, ...actions.flatMap((action) => [" ", action]));
  }

  #tell(sentence) {
    const about = this.here.views.find(({ name }) => name === this.#view)?.about ?? "";
    this.about_view.textContent = sentence || (this.bar.hidden ? "" : about);
  }
}

/** Files may be dropped anywhere. @param {Chat} chat */
function watchDrops(chat) {
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => holdsFiles(event) && event.preventDefault());
  addEventListener("drop", async (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    const { files } = await dropped(event.dataTransfer);
    chat.documents.read(files.map(({ file }) => file));
  });
}

const main = document.querySelector("main");
try {
  const chat = new Chat(await start());
  main.append(chat.node);
  const link = element(
    "button",
    { type: "button", onclick: () => (chat.keep(), showCopied("Link to what is shown", location.href)) },
    "Copy link",
  );
  document.querySelector("nav").append(element("a", { href: "/" }, "Look at a text"), link);
  watchDrops(chat);
  chat.restore(fromAddress(location.hash));
  addEventListener("hashchange", () => chat.restore(fromAddress(location.hash)));
} catch (error) {
  main.replaceChildren(element("p", { className: "complaint", role: "alert" }, error.message));
}
