// Saved files: what is chosen or dropped, as the files it holds, ready for the server.

import { Refused, openFile, openFolder } from "/client/server.js";
import { element, thousands } from "/views/drawing.js";

/** @typedef {{name: string, file: File}} Found a file, by its name within the folder it was in */

const KEPT = /\.(json|csv|parquet)$/i;
const RECORD = /\.safetensors$/i;
const MOST = 100; // files of one folder: a survey has fewer than fifty

/** Two buttons that choose a file or a folder. @param {(files: Found[], name: string) => void} open @returns {HTMLElement[]} */
export function openers(open) {
  return [
    { words: "Open…", folder: false, title: "A saved record" },
    { words: "Open folder…", folder: true, title: "A saved survey or trust table" },
  ].map(({ words, folder, title }) => {
    const input = element("input", { type: "file", hidden: true, webkitdirectory: folder, ariaLabel: words });
    input.addEventListener("change", () => {
      const found = [...input.files].map((file) => ({ name: within(file.webkitRelativePath) || file.name, file }));
      const name = input.files[0]?.webkitRelativePath.split("/")[0] || input.files[0]?.name;
      input.value = ""; // so that the same one can be chosen again
      if (found.length) open(found, name);
    });
    const button = element(
      "button",
      {
        type: "button",
        className: "plain-button",
        title: `${title}; it can also be dropped anywhere on the page`,
        onclick: () => input.click(),
      },
      words,
    );
    return element("span", {}, button, input);
  });
}

/** A path without its first folder. @param {string} path */
const within = (path) => path.split("/").slice(1).join("/");

/** What was dropped, folders with all that is in them. @param {DataTransfer} given @returns {Promise<{files: Found[], name: string}>} */
export async function dropped(given) {
  // entries are gone once the event is over: they are taken before anything is awaited
  const entries = [...given.items].filter(({ kind }) => kind === "file").map((item) => item.webkitGetAsEntry());
  const files = [];
  for (const entry of entries.filter(Boolean)) await collect(entry, entry.isDirectory ? entry.fullPath.length + 1 : 1, files);
  return { files, name: entries[0]?.name ?? "" };
}

async function collect(entry, prefix, files) {
  if (files.length > MOST) return;
  if (entry.isFile)
    return void files.push({ name: entry.fullPath.slice(prefix), file: await new Promise((done, fail) => entry.file(done, fail)) });
  const reader = entry.createReader();
  for (;;) {
    // a reader gives a hundred entries at a time, and none when it is through
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (!some.length) return;
    for (const one of some) await collect(one, prefix, files);
  }
}

/** Opens files on the server: one record, or a folder with a survey or trust table.
 * @param {Found[]} files @param {number} limit bytes @param {AbortSignal} signal */
export async function opened(files, limit, signal) {
  const records = files.filter(({ name }) => RECORD.test(name));
  const kept = records.length ? records.slice(0, 1) : files.filter(({ name }) => KEPT.test(name));
  if (records.length > 1) throw new Refused("There are several records here: open them one by one.", 400);
  if (!kept.length || files.length > MOST)
    throw new Refused("This is neither a saved record (.safetensors) nor a folder of a saved survey or trust table.", 400);
  const bytes = kept.reduce((sum, { file }) => sum + file.size, 0) * (records.length ? 1 : 4 / 3); // a folder travels as letters
  if (bytes > limit)
    throw new Refused(
      `This has ${thousands(Math.ceil(bytes / 1e6))} MB, and at most ${thousands(Math.floor(limit / 1e6))} MB can be opened here.`,
      413,
    );
  if (records.length) return { kind: "record", ...(await openFile(kept[0].file, signal)) };
  return openFolder(await Promise.all(kept.map(async ({ name, file }) => ({ name, base64: await base64Of(file) }))), signal);
}

/** The content of a file in letters. @param {File} file @returns {Promise<string>} */
function base64Of(file) {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).split(",")[1] ?? "");
    reader.onerror = () => fail(new Refused(`${file.name} cannot be read.`, 400));
    reader.readAsDataURL(file);
  });
}
