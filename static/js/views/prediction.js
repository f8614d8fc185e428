/**
 * What the model expects after the chosen query, and which of these tokens is explained: the target, and a foil that it
 * is compared with.
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../api/types.js").Prediction} Prediction
 * @typedef {import("../api/lenses.js").Targets} Targets
 */
import { analysisUrl } from "../api/client.js";
import { asFailure } from "../api/errors.js";
import { createChoices } from "../core/choices.js";
import { el, replace, tokenText } from "../core/dom.js";
import { number, percent, valueOf } from "../core/format.js";
import { createLatest } from "../core/latest.js";
import { createPanel } from "../core/panel.js";
import { fetchCode } from "../core/python.js";
import { touches } from "../core/store.js";
import { figure } from "../core/table.js";

/** @typedef {"target" | "foil"} Role */

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function createPrediction(root, store) {
  const { id, tokens, predictions, surprisal } = store.analysis;
  const panel = createPanel(root, {
    name: "prediction",
    title: "Next token",
    about: "The five tokens the model expects most, with their probability and logit. A click makes one the target, whose logit the panels explain, or the foil that it is compared with.",
  });
  /** @type {Role} */
  let picks = "target";
  const roles = createChoices({
    label: "A click sets",
    visible: true,
    options: [
      { value: "target", text: "T target" },
      { value: "foil", text: "F foil", title: "Effects are then on the target’s logit minus the foil’s" },
    ],
    onChoose(value) {
      picks = value;
      roles.show(value);
    },
  });
  roles.show(picks);
  panel.tools.append(roles.element);
  panel.python(() => fetchCode(location.origin, analysisUrl(id)));

  const list = el("div", { class: "bars", role: "table", "aria-label": "Expected next tokens" });
  const actual = el("p", { class: "actual" });
  const aim = el("p", { class: "aim", "aria-live": "polite" });
  const box = el("input", { type: "text", class: "target-box", id: "target-text", autocomplete: "off", spellcheck: false, placeholder: "·any token", dir: "auto" });
  const typed = el("p", { class: "small muted", role: "status" });
  const form = el(
    "form",
    { class: "target-form" },
    el("label", { for: "target-text", class: "small muted" }, "Another token"),
    box,
    el("button", { class: "button", type: "submit" }, "Set"),
  );
  panel.body.append(list, actual, aim, form, typed);
  const latest = createLatest((error) => (typed.textContent = asFailure(error).detail));

  /** @param {number} token @param {Role} role */
  function choose(token, role) {
    store.set({ [role]: store.view()[role] === token ? null : token });
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    // A token inside a sentence begins with a space, which is written here as it is shown.
    const text = box.value.replaceAll("·", " ");
    if (text === "") return;
    typed.textContent = "";
    latest.run(async (signal) => {
      /** @type {Targets} */
      const answer = await store.answers.get(analysisUrl(id, "targets", { pos: store.view().query, text }), signal);
      const found = answer.typed;
      if (!found?.target) {
        typed.textContent = found?.note || "That is no token of this model.";
        return;
      }
      store.words.learn([found.target]);
      replace(typed, "Taken as ", tokenText(found.target.label), found.tokens.length > 1 ? `, the first of ${found.tokens.length} tokens. ` : ". ", found.note);
      store.set({ [picks]: found.target.id });
    });
  });

  function showRows() {
    const { query, target, foil } = store.view();
    const following = tokens[query + 1];
    const rows = (predictions[query] ?? []).map((row, i) =>
      bar(row, `predictions.${query}.${i}`, row.id === following?.id, row.id === target, row.id === foil, () => choose(row.id, picks)),
    );
    replace(list, titles(), ...rows);
    const top = predictions[query]?.[0];
    const clear = el("button", { class: "button small-button", type: "button", onclick: () => store.set({ target: null, foil: null }) }, "Clear");
    replace(
      aim,
      "Explained: ",
      target === null && top ? tokenText(top.label) : tokenText(store.words.label(target ?? 0)),
      target === null && " (the top prediction)",
      foil !== null && " minus ",
      foil !== null && tokenText(store.words.label(foil)),
      (target !== null || foil !== null) && " ",
      (target !== null || foil !== null) && clear,
    );
  }

  const end = store.subscribe((change) => {
    if (!touches(change, "query", "target", "foil")) return;
    showRows();
    if (!touches(change, "query")) return;
    const at = change.view.query;
    const following = tokens[at + 1];
    panel.chosen("after ", tokenText(tokens[at].label, "in-query"), ` ${at}`);
    if (following) {
      const bits = surprisal[at + 1];
      const chance = bits === null || bits === undefined ? "" : `, probability ${percent(2 ** -valueOf(bits))}`;
      replace(actual, "The prompt goes on with ", tokenText(following.label), ` (surprisal ${number(bits)} bits${chance}). `, el("button", { class: "link-button", type: "button", onclick: () => choose(following.id, picks) }, "Explain it"));
    } else {
      replace(actual, "This is the end of the prompt: nothing follows to compare with.");
    }
  });

  return {
    destroy() {
      end();
      latest.cancel();
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
 * @param {string} path
 * @param {boolean} isActual
 * @param {boolean} isTarget
 * @param {boolean} isFoil
 * @param {() => void} onChoose
 */
function bar({ label, probability, logit }, path, isActual, isTarget, isFoil, onChoose) {
  const fill = el("div", { class: "bar-fill" });
  fill.style.width = `${valueOf(probability) * 100}%`;
  const marks = [isTarget && "T", isFoil && "F"].filter(Boolean).join(" ");
  const button = el(
    "button",
    { class: "word-button", type: "button", "aria-pressed": String(isTarget || isFoil), title: isActual ? "what the prompt goes on with" : undefined, onclick: onChoose },
    tokenText(label),
    isActual && " ←",
    marks && el("span", { class: "role-mark" }, ` ${marks}`),
  );
  return el(
    "div",
    { class: `bar-row ${isActual ? "is-actual" : ""}`, role: "row" },
    el("span", { role: "cell" }, button),
    el("span", { role: "cell" }, el("div", { class: "bar-track" }, fill)),
    el("span", { class: "numeric", role: "cell" }, figure(percent(probability), `${path}.probability`)),
    el("span", { class: "numeric", role: "cell" }, figure(number(logit), `${path}.logit`)),
  );
}
