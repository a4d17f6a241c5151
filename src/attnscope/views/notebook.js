// The host of a notebook: gives a view the model of its widget and its element, as the host of a page does.

/** Hides the page that stands below a widget for those who cannot draw it; by a rule, because it may come later.
 * @param {string} id what the page is marked with */
function hidePage(id) {
  if (document.querySelector(`style[data-attnscope-live="${CSS.escape(id)}"]`)) return;
  const rule = document.createElement("style");
  rule.dataset.attnscopeLive = id;
  rule.textContent = `[data-attnscope="${CSS.escape(id)}"] { display: none; }`;
  document.head.append(rule);
}

/** A view as a notebook runs it.
 * @param {(given: {model: object, el: HTMLElement}) => (() => void) | void} render
 * @param {Record<string, string>} renamed what the widget calls by another name, because it has that name for itself */
export function inNotebook(render, renamed) {
  const named = (name) => renamed[name] ?? name;
  const event = (name) => (name.startsWith("change:") ? `change:${named(name.slice("change:".length))}` : name);
  return {
    /** @param {{model: {get: Function, set: Function, on: Function, off: Function, save_changes: Function}, el: HTMLElement}} given */
    render({ model, el }) {
      const given = {
        get: (name) => model.get(named(name)),
        set: (name, value) => model.set(named(name), value),
        on: (name, listener) => model.on(event(name), listener),
        off: (name, listener) => model.off(event(name), listener),
        save_changes: () => model.save_changes(),
      };
      let end = null;
      // a notebook calls this before the element stands on the page, where alone it has a width and colours
      const standing = new ResizeObserver(() => {
        if (!el.isConnected) return;
        standing.disconnect();
        end = render({ model: given, el });
        hidePage(model.get("page"));
      });
      el.classList.add("attnscope-notebook"); // so that even an empty element has a size to be observed
      standing.observe(el);
      // JupyterLab takes letters for commands before anyone else hears them (x would cut the cell), but not those that
      // go to an element with this mark; what is pressed with Control, Alt or Command stays its own
      const hearing = (pressed) =>
        el.contains(pressed.target) &&
        pressed.target.toggleAttribute("data-lm-suppress-shortcuts", !(pressed.ctrlKey || pressed.metaKey || pressed.altKey));
      window.addEventListener("keydown", hearing, true);
      // other notebooks hear them last: what the view has taken is not for them
      const taken = (pressed) => pressed.defaultPrevented && pressed.stopPropagation();
      el.addEventListener("keydown", taken);
      return () => {
        standing.disconnect();
        window.removeEventListener("keydown", hearing, true);
        el.removeEventListener("keydown", taken);
        end?.();
      };
    },
  };
}
