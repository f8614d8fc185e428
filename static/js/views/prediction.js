/**
 * What the model expects after the chosen query.
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../api/types.js").Prediction} Prediction
 */
import { el, replace, tokenText } from "../core/dom.js";
import { number, percent, valueOf } from "../core/format.js";
import { createPanel } from "../core/panel.js";
import { touches } from "../core/store.js";

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function createPrediction(root, store) {
  const { tokens, predictions, surprisal } = store.analysis;
  const panel = createPanel(root, {
    name: "prediction",
    title: "Next token",
    about: "The five tokens the model expects most, with their probability and logit.",
  });
  const list = el("div", { class: "bars", role: "table", "aria-label": "Expected next tokens" });
  const actual = el("p", { class: "actual" });
  panel.body.append(list, actual);

  const end = store.subscribe((change) => {
    if (!touches(change, "query")) return;
    const at = change.view.query;
    const rows = predictions[at] ?? [];
    const following = tokens[at + 1];
    panel.chosen("after ", tokenText(tokens[at].label, "in-query"), ` ${at}`);
    replace(list, titles(), ...rows.map((row) => bar(row, row.id === following?.id)));
    if (following) {
      const bits = surprisal[at + 1];
      replace(actual, "The prompt goes on with ", tokenText(following.label), ` (surprisal ${number(bits)} bits${bits === null || bits === undefined ? "" : `, probability ${percent(2 ** -valueOf(bits))}`}).`);
    } else {
      replace(actual, "This is the end of the prompt: nothing follows to compare with.");
    }
  });

  return {
    destroy() {
      end();
      panel.section.remove();
    },
  };
}

function titles() {
  const names = ["token", "", "probability", "logit"];
  return el(
    "div",
    { class: "bar-row bar-titles", role: "row" },
    ...names.map((name, i) => el("span", { class: i > 1 ? "numeric" : "", role: "columnheader" }, name)),
  );
}

/**
 * @param {Prediction} prediction
 * @param {boolean} isActual
 */
function bar({ label, probability, logit }, isActual) {
  const fill = el("div", { class: "bar-fill" });
  fill.style.width = `${valueOf(probability) * 100}%`;
  return el(
    "div",
    { class: `bar-row ${isActual ? "is-actual" : ""}`, role: "row" },
    el("span", { role: "cell", title: isActual ? "what the prompt goes on with" : undefined }, tokenText(label), isActual && " ←"),
    el("span", { role: "cell" }, el("div", { class: "bar-track" }, fill)),
    el("span", { class: "numeric", role: "cell" }, percent(probability)),
    el("span", { class: "numeric", role: "cell" }, number(logit)),
  );
}
