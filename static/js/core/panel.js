/**
 * The frame of every panel: title, a sentence on what is shown, its unit and how to read it, tools, and a body that can
 * wait or fail.
 *
 * @typedef {Object} Panel
 * @property {HTMLElement} section
 * @property {HTMLElement} body
 * @property {HTMLElement} tools
 * @property {(text: string) => void} about
 * @property {(...content: import("./dom.js").Child[]) => void} chosen beside the title
 * @property {(text: string) => void} note under the body
 * @property {(what: string | null) => void} wait says what is being computed; null: it is there
 * @property {(failure: import("../api/errors.js").Failure, again: () => void) => void} fail
 * @property {(code: () => string | null) => void} python how its numbers are fetched; adds a button that shows it, and
 *   makes every figure of the panel copy itself
 */
import { copyCode, showCode } from "./copying.js";
import { el, replace } from "./dom.js";
import { printed } from "./python.js";

// What comes sooner needs no word.
const PATIENCE_MS = 180;

/**
 * @param {HTMLElement} root
 * @param {{name: string, title: string, about: string}} options
 * @returns {Panel}
 */
export function createPanel(root, { name, title, about }) {
  const heading = el("h2", { id: `panel-${name}` }, title);
  const chosen = el("span", { class: "panel-chosen" });
  const tools = el("div", { class: "panel-tools" });
  const sentence = el("p", { class: "panel-about" }, about);
  const body = el("div", { class: "panel-body" });
  const trouble = el("div", { hidden: true });
  const note = el("p", { class: "panel-note" });
  const section = el(
    "section",
    { class: "panel", "aria-labelledby": heading.id, "data-panel": name },
    el("div", { class: "panel-head" }, heading, chosen, tools),
    sentence,
    trouble,
    body,
    note,
  );
  root.append(section);
  const waiting = el("p", { class: "waiting", role: "status" });
  let timer = 0;

  /** @param {string | null} what */
  function wait(what) {
    clearTimeout(timer);
    trouble.hidden = true;
    if (what === null) {
      body.removeAttribute("aria-busy");
      waiting.remove();
      return;
    }
    timer = window.setTimeout(() => {
      body.setAttribute("aria-busy", "true");
      waiting.textContent = what;
      body.append(waiting);
    }, PATIENCE_MS);
  }

  /** @param {() => string | null} code */
  function python(code) {
    const button = el("button", { class: "button", type: "button", title: "The lines of Python that fetch these numbers" }, "Python");
    button.addEventListener("click", () => {
      const lines = code();
      if (lines) showCode(`${title} in Python`, lines);
    });
    tools.append(button);
    section.addEventListener("click", (event) => {
      const chosenFigure = event.target instanceof Element ? event.target.closest("[data-path]") : null;
      const lines = chosenFigure instanceof HTMLElement ? code() : null;
      if (lines && chosenFigure instanceof HTMLElement) copyCode(printed(lines, chosenFigure.dataset.path ?? ""));
    });
  }

  return {
    section,
    body,
    tools,
    about: (text) => (sentence.textContent = text),
    chosen: (...content) => replace(chosen, ...content),
    note: (text) => (note.textContent = text),
    wait,
    python,
    fail(failure, again) {
      wait(null);
      trouble.hidden = false;
      replace(
        trouble,
        el(
          "div",
          { class: "problem", role: "alert" },
          el("p", {}, el("strong", {}, failure.title), ". ", failure.detail),
          el("p", {}, el("button", { class: "button", type: "button", onclick: again }, "Try again")),
        ),
      );
    },
  };
}
