/**
 * An analysis that is not there yet, or never will be.
 * @typedef {import("../api/types.js").Analysis} Analysis
 * @typedef {import("../api/types.js").Progress} Progress
 * @typedef {import("../api/errors.js").Failure} Failure
 */
import { el, replace, tokenText } from "../core/dom.js";
import { counted, integer } from "../core/format.js";
import { handOverPrompt } from "../core/kept.js";

const TOKENS_SHOWN = 200;

/**
 * @param {HTMLElement} root
 */
export function createProgress(root) {
  const card = el("section", { class: "panel progress-card", "aria-label": "Progress" });
  root.append(card);
  const title = el("h2", {});
  const stage = el("p", { role: "status" });
  const bar = el("progress", { max: 1, "aria-label": "Share of this stage that is done" });

  return {
    /** @param {Analysis} analysis */
    begin(analysis) {
      title.textContent = `Running ${counted(analysis.tokens.length, "token")} through ${analysis.model.title}`;
      stage.textContent = analysis.state === "queued" ? "Waiting in the queue" : "Running";
      replace(card, title, stage, bar, prompt(analysis));
    },
    /** @param {Progress} progress */
    update({ stage: name, fraction, queue_position: ahead }) {
      stage.textContent = ahead > 0 ? `Waiting: ${counted(ahead, "analysis", "analyses")} ahead` : sentence(name, fraction);
      if (ahead > 0 || !(fraction > 0)) bar.removeAttribute("value");
      else bar.value = fraction;
    },
    /**
     * @param {Failure} failure
     * @param {Analysis | null} analysis
     */
    fail(failure, analysis) {
      const again = el("a", { class: "button primary", href: "/" }, analysis?.text ? "Try again with this text" : "Start a new analysis");
      again.addEventListener("click", () => {
        if (analysis?.text) handOverPrompt({ text: analysis.text, model: analysis.model.id });
      });
      const reload = el("button", { class: "button", type: "button", onclick: () => location.reload() }, "Load this page again");
      replace(
        card,
        el("h2", {}, failure.title),
        el("p", { class: "problem", role: "alert" }, failure.detail),
        analysis && prompt(analysis),
        el("div", { class: "actions" }, again, reload),
      );
    },
    destroy: () => card.remove(),
  };
}

/**
 * @param {string} name
 * @param {number} fraction
 */
function sentence(name, fraction) {
  const words = name ? name[0].toUpperCase() + name.slice(1).replaceAll("_", " ") : "Running";
  return fraction > 0 && fraction < 1 ? `${words}: ${integer(Math.round(fraction * 100))} %` : words;
}

/** @param {Analysis} analysis */
function prompt({ text, tokens }) {
  if (text) return el("p", { class: "progress-prompt" }, text);
  const shown = tokens.slice(0, TOKENS_SHOWN).map(({ label }) => tokenText(label));
  return el("p", { class: "progress-prompt" }, ...shown);
}
