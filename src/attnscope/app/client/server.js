// What the page asks of its server, and what is said when the answer is no.

/** What the server refused, in its own sentence; a status of 0 means that nothing answered. */
export class Refused extends Error {
  /** @param {string} sentence @param {number} status @param {boolean} [tooLong] whether the beginning of the text could be read */
  constructor(sentence, status, tooLong = false) {
    super(sentence);
    this.status = status;
    this.isTooLong = tooLong;
  }

  /** Whether the same question may be answered when it is asked again. */
  get isPassing() {
    return this.status === 0 || this.status === 503;
  }

  /** Whether the server no longer keeps what it was asked about. */
  get isForgotten() {
    return this.status === 404;
  }
}

const SILENT = "The server does not answer: it may have been stopped. Start it again with attnscope serve.";
const CUT_SHORT = "The answer ended too early: the server may have been stopped.";

/** Whether this is only the end of what was cancelled. @param {unknown} error */
export const isCancelled = (error) => error instanceof DOMException && error.name === "AbortError";

/** Asks, and gives the response when the answer is yes. @param {string} path @param {RequestInit} [options] */
async function answered(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    throw isCancelled(error) ? error : new Refused(SILENT, 0);
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  const sentence = typeof told.error === "string" ? told.error : `The server answered with status ${response.status}.`;
  throw new Refused(sentence, response.status, told.too_long === true);
}

const asJson = (body, signal) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });

/** What is here: models, methods, views, limits. */
export const start = async () => (await answered("/api/start")).json();

/** Runs a model on a text. @param {import("/client/question.js").Asked & import("/client/explaining.js").Outcomes & {truncate: boolean}} asked @param {AbortSignal} signal */
export const readText = async (asked, signal) => (await answered("/api/texts", asJson(asked, signal))).json();

/** Opens a saved record. @param {File} file @param {AbortSignal} signal */
export async function openFile(file, signal) {
  const options = { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file, signal };
  return (await answered(`/api/files?name=${encodeURIComponent(file.name)}`, options)).json();
}

/** Opens a saved survey or trust table. @param {{name: string, base64: string}[]} files @param {AbortSignal} signal */
export const openFolder = async (files, signal) => (await answered("/api/folders", asJson({ files }, signal))).json();

/** The bytes of one array of a view. @param {string} id @param {string} name */
export async function arrayOf(id, name) {
  const response = await answered(`/api/views/${encodeURIComponent(id)}/blobs/${encodeURIComponent(name)}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** Makes a view; `tell` hears how far it is. @param {{text: string, view: string, methods: string[] | null, by: string, queries: number[] | null, drops?: string | null}} asked
 * @param {AbortSignal} signal @param {(progress: {done: number, of: number, doing: string}) => void} tell */
export async function makeView(asked, signal, tell) {
  const response = await answered("/api/views", asJson(asked, signal));
  for await (const line of linesOf(response.body)) {
    if (line.progress) tell(line.progress);
    else if (line.view) return line.view;
    else if (line.error) throw new Refused(line.error, line.status ?? 400);
  }
  throw new Refused(CUT_SHORT, 0);
}

/** Asks a question about documents; `tell` hears how far the answer is, `show` its text as it is written.
 * @param {import("/client/chat_link.js").Asked} asked @param {AbortSignal} signal @param {(progress: {done: number, of: number, doing: string}) => void} tell
 * @param {(text: string) => void} show */
export async function askForAnswer(asked, signal, tell, show) {
  const response = await answered("/api/answers", asJson(asked, signal));
  for await (const line of linesOf(response.body)) {
    if (line.progress) tell(line.progress);
    if (line.text !== undefined) show(line.text);
    if (line.answer) return line.answer;
    if (line.error) throw new Refused(line.error, line.status ?? 400);
  }
  throw new Refused(CUT_SHORT, 0);
}

/** The lines of a stream, each as what its JSON says, as soon as it is whole. @param {ReadableStream<BufferSource>} stream */
async function* linesOf(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      throw isCancelled(error) ? error : new Refused(CUT_SHORT, 0);
    });
    const lines = (held + (value ?? "")).split("\n");
    held = done ? "" : lines.pop();
    for (const line of lines) if (line.trim()) yield JSON.parse(line);
    if (done) return;
  }
}

/** A view as a file, with the name the server gives it. @param {string} id @param {"page" | "figure"} what
 * @param {{state: object, format?: string}} asked */
export async function fileOf(id, what, asked) {
  const response = await answered(`/api/views/${encodeURIComponent(id)}/${what}`, asJson(asked));
  const said = /filename="?([^";]+)"?/.exec(response.headers.get("Content-Disposition") ?? "");
  return { name: said?.[1] ?? `attnscope.${asked.format ?? "html"}`, content: await response.blob() };
}

/** The Python that makes a view in this state. @param {string} id @param {object} state */
export const codeOf = async (id, state) =>
  (await (await answered(`/api/views/${encodeURIComponent(id)}/code`, asJson({ state }))).json()).python;
