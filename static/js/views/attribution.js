/**
 * Where the target's logit comes from: every write, as a staircase that closes at the logit.
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../api/lenses.js").AttributionAnswer} AttributionAnswer
 * @typedef {import("../api/lenses.js").SourcesAnswer} SourcesAnswer
 * @typedef {import("../core/waterfall.js").Step} Step
 */
import { decodeArray } from "../api/arrays.js";
import { analysisUrl } from "../api/client.js";
import { asFailure } from "../api/errors.js";
import { createChoices } from "../core/choices.js";
import { closing } from "../core/closing.js";
import { el, replace, tokenText } from "../core/dom.js";
import { number, percent, signed, valueOf } from "../core/format.js";
import { createLatest } from "../core/latest.js";
import { createPanel } from "../core/panel.js";
import { withOrigin } from "../core/python.js";
import { touches } from "../core/store.js";
import { figure } from "../core/table.js";
import { createGate } from "../core/visible.js";
import { extent, waterfall } from "../core/waterfall.js";

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function createAttribution(root, store) {
  const { id, tokens } = store.analysis;
  const panel = createPanel(root, {
    name: "attribution",
    title: "Where the logit comes from",
    about: "Each write’s direct part of the target’s logit, in logits: bars to the right raise it, to the left lower it; each begins where the last one ended, and they close at the model’s own logit. What a write does by way of later layers is not in it.",
  });
  const groups = createChoices({
    label: "Group by",
    options: [
      { value: "layer", text: "By layer" },
      { value: "kind", text: "By kind", title: "The strongest heads and MLPs" },
    ],
    onChoose: (group) => store.set({ group }),
  });
  panel.tools.append(groups.element);
  panel.python(() => answer && withOrigin(answer.python, location.origin));
  const list = el("div", { class: "waterfall", role: "table", "aria-label": "Parts of the logit" });
  const foot = el("p", { class: "closes" });
  panel.body.append(list, foot);
  const gate = createGate(panel.section);
  const latest = createLatest((error) => panel.fail(asFailure(error), load));
  /** @type {AttributionAnswer | null} */
  let answer = null;
  /** @type {import("../core/waterfall.js").HeadSources | null} */
  let sources = null;

  function load() {
    const { query: pos, target, foil, open: layer, openhead: head } = store.view();
    panel.wait("Splitting the logit…");
    latest.run(async (signal) => {
      const aim = { pos, target, foil };
      const [parts, from] = await Promise.all([
        store.answers.get(analysisUrl(id, "attribution", aim), signal),
        layer === null || head === null ? null : store.answers.get(analysisUrl(id, "attribution/sources", { ...aim, layer, head }), signal),
      ]);
      answer = /** @type {AttributionAnswer} */ (parts);
      sources = from && { layer: from.layer, head: from.head, values: decodeArray(/** @type {SourcesAnswer} */ (from).values).values };
      store.words.learn([answer.aim.target, answer.aim.foil]);
      panel.wait(null);
      show();
    });
  }

  function show() {
    if (!answer) return;
    const { group, open } = store.view();
    const { aim, steps: after } = answer;
    panel.chosen(aim.target && tokenText(aim.target.label), aim.foil && " − ", aim.foil && tokenText(aim.foil.label), ` after ${answer.pos}`);
    const steps = waterfall(answer, { group, open, sources, nameOf: (key) => `${key} ${tokens[key].label}` });
    const [low, high] = extent(steps);
    const span = high - low || 1;
    const at = (/** @type {number} */ value) => (value - low) / span;
    const rows = steps.map((step) => stepRow(step, at));
    const ends = after.map((step, i) =>
      totalRow(step.name === "sum" ? "sum of all parts" : step.name === "cap" ? "after the soft cap" : "after the logit scale", valueOf(step.value), `steps.${i}.value`, at, step.about),
    );
    const last = aim.foil ? "difference of the model’s logits" : "the model’s own logit";
    replace(list, ...rows, ...ends, totalRow(last, valueOf(answer.logit), "logit", at, ""));
    replace(foot, closing(answer.closes), answer.probability !== null && answer.probability !== undefined && !aim.foil && ` Probability ${percent(answer.probability)}.`);
  }

  /**
   * @param {Step} step
   * @param {(value: number) => number} at
   */
  function stepRow(step, at) {
    const { label, value, from, to, level, state, path, key } = step;
    const isTitle = state === "open";
    const bar = el("span", { class: `step-fill ${value < 0 ? "is-negative" : ""} ${isTitle ? "is-title" : ""}` });
    bar.style.left = `${Math.min(at(from), at(to)) * 100}%`;
    bar.style.width = `${Math.abs(at(to) - at(from)) * 100}%`;
    const zero = el("span", { class: "step-zero" });
    zero.style.left = `${at(0) * 100}%`;
    const name =
      state === "group" || (isTitle && step.layer !== null)
        ? el("button", { class: "step-name", type: "button", "aria-expanded": String(isTitle), title: label, onclick: () => toggle(step) }, label)
        : key !== null
          ? el("button", { class: "step-name", type: "button", title: `Choose the cell of ${label}`, onclick: () => store.set({ key, layer: step.layer ?? undefined, head: step.head ?? undefined }) }, el("bdi", {}, label))
          : el("span", { class: "step-name", title: label }, label);
    return el(
      "div",
      { class: `step level-${level} ${isTitle ? "is-open" : ""}`, role: "row" },
      el("span", { class: "step-label", role: "cell" }, name),
      el("span", { class: "step-track", role: "cell" }, zero, bar),
      el("span", { class: "numeric", role: "cell" }, path ? figure(signed(value), path) : signed(value)),
    );
  }

  /** @param {Step} step */
  function toggle({ layer, head, state }) {
    if (head === null) store.set({ open: state === "open" ? null : layer, openhead: null });
    else if (state === "open") store.set({ openhead: null });
    else store.set({ open: layer, openhead: head, layer: layer ?? undefined, head });
  }

  const end = store.subscribe((change) => {
    if (touches(change, "group")) groups.show(change.view.group);
    if (touches(change, "query", "target", "foil", "open", "openhead")) gate.run(load);
    else if (touches(change, "group")) show();
  });

  return {
    destroy() {
      end();
      gate.destroy();
      latest.cancel();
      panel.section.remove();
    },
  };
}

/**
 * @param {string} label
 * @param {number} value
 * @param {string} path
 * @param {(value: number) => number} at
 * @param {string} about
 */
function totalRow(label, value, path, at, about) {
  const bar = el("span", { class: "step-fill is-total" });
  bar.style.left = `${Math.min(at(0), at(value)) * 100}%`;
  bar.style.width = `${Math.abs(at(value) - at(0)) * 100}%`;
  return el(
    "div",
    { class: "step is-total", role: "row", title: about || undefined },
    el("span", { class: "step-label", role: "cell" }, label),
    el("span", { class: "step-track", role: "cell" }, bar),
    el("span", { class: "numeric", role: "cell" }, figure(number(value), path)),
  );
}
