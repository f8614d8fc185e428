/**
 * The chosen cell, the whole equation with its numbers, in the order of the computation: pattern, message, product, sum,
 * stream.
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../api/lenses.js").Edge} Edge
 * @typedef {import("../api/lenses.js").EquationStep} EquationStep
 */
import { analysisUrl } from "../api/client.js";
import { asFailure } from "../api/errors.js";
import { closing } from "../core/closing.js";
import { el, replace, tokenText } from "../core/dom.js";
import { number, percent, signed, valueOf } from "../core/format.js";
import { createLatest } from "../core/latest.js";
import { createPanel } from "../core/panel.js";
import { withOrigin } from "../core/python.js";
import { touches } from "../core/store.js";
import { amountBar, dataTable, effectList, figure } from "../core/table.js";
import { createGate } from "../core/visible.js";

/** The columns, each with the steps of the equation it holds. */
const COLUMNS = /** @type {const} */ ([
  { title: "Pattern", steps: ["score", "pattern"] },
  { title: "Message", steps: ["message"] },
  { title: "Product", steps: ["delivered"] },
  { title: "Sum", steps: ["output"] },
  { title: "Stream and logit", steps: ["stream", "logit"] },
]);

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function createEdge(root, store) {
  const { id, tokens } = store.analysis;
  const panel = createPanel(root, {
    name: "edge",
    title: "The chosen cell",
    about: "What one source gives to one reader through the chosen head, step by step. ‖·‖ is the length of a vector in the residual stream; effects are in logits.",
  });
  panel.python(() => edge && withOrigin(edge.python, location.origin));
  const pair = el("p", { class: "cell-line" });
  const steps = el("div", { class: "equation", "aria-live": "polite" });
  const foot = el("p", { class: "closes" });
  panel.body.append(pair, steps, foot);
  const gate = createGate(panel.section);
  const latest = createLatest((error) => panel.fail(asFailure(error), load));
  /** @type {Edge | null} */
  let edge = null;

  function load() {
    const { layer, head, query, key, target, foil } = store.view();
    panel.wait("Computing this cell…");
    latest.run(async (signal) => {
      edge = /** @type {Edge} */ (await store.answers.get(analysisUrl(id, "edge", { layer, head, query, key, target, foil }), signal));
      store.words.learn([edge.aim.target, edge.aim.foil]);
      panel.wait(null);
      show(edge);
    });
  }

  /** @param {Edge} found */
  function show(found) {
    const details = { Pattern: ofPattern, Message: ofMessage, Product: ofProduct, Sum: ofSum, "Stream and logit": ofStream };
    replace(
      steps,
      ...COLUMNS.map(({ title, steps: names }) =>
        el(
          "section",
          { class: "equation-column", "aria-label": title },
          el("h3", {}, title),
          ...found.equation.flatMap((step, i) => (names.some((name) => name === step.step) ? [stepCard(step, `equation.${i}.value`)] : [])),
          ...(found.seen ? details[title](found) : []),
        ),
      ),
    );
    replace(foot, closing(found.closes));
  }

  /** @param {Edge} found */
  function ofPattern({ softmax, score, key: chosen }) {
    const most = softmax.competitors.reduce((top, one) => Math.max(top, valueOf(one.pattern)), 0);
    const place = softmax.rank === null ? "" : `This source is number ${softmax.rank + 1} of ${softmax.n_seen} that the reader can see. `;
    return [
      el("p", { class: "small muted" }, place, `Cosine of q and k: ${number(score.cosine)}.`, softmax.sink ? ` The sink takes ${percent(softmax.sink.pattern)}.` : ""),
      dataTable({
        label: "The nearest competitors in the softmax",
        columns: [{ head: "source", kind: "token" }, { head: "score", kind: "number" }, { head: "pattern", kind: "number" }, { head: "", kind: "bar" }],
        rows: softmax.competitors.map((one, i) => ({
          className: one.key === chosen ? "is-chosen" : "",
          onChoose: () => store.set({ key: one.key }),
          cells: [
            el("span", {}, tokenText(one.label), el("span", { class: "muted" }, ` ${one.key}`)),
            figure(number(one.score), `softmax.competitors.${i}.score`),
            figure(number(one.pattern), `softmax.competitors.${i}.pattern`),
            amountBar(valueOf(one.pattern), most),
          ],
        })),
      }),
    ];
  }

  const end = store.subscribe((change) => {
    if (!touches(change, "layer", "head", "query", "key", "target", "foil")) return;
    const { query, key } = change.view;
    replace(
      pair,
      el("span", { class: "mark-query" }, "reader ", tokenText(tokens[query].label, "in-query"), ` ${query}`),
      el("span", { class: "mark-key" }, "source ", tokenText(tokens[key].label, "in-key"), ` ${key}`),
    );
    gate.run(load);
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
 * @param {EquationStep} step
 * @param {string} path
 */
function stepCard({ left, formula, numbers, value, unit, about }, path) {
  return el(
    "div",
    { class: "equation-step" },
    el("p", { class: "formula" }, `${left} = ${formula}`),
    numbers && el("p", { class: "formula is-numbers" }, `= ${numbers}`),
    el("p", { class: "equation-value" }, value === null ? "cannot see" : figure(number(value, 4), path), value !== null && el("span", { class: "unit" }, ` ${unit}`)),
    el("p", { class: "small muted" }, about),
  );
}

/**
 * Names and numbers, one to a line.
 * @param {[string, import("../api/types.js").Figure | null, string, ((value: any) => string)?][]} rows
 */
function facts(rows) {
  return el(
    "dl",
    { class: "numbers" },
    ...rows.map(([name, value, path, write = number]) => el("div", {}, el("dt", {}, name), el("dd", {}, figure(write(value), path)))),
  );
}

/** @param {Edge} edge */
function ofMessage({ message, kv_head: kv }) {
  return [
    facts([
      ["‖x̂‖ source, as the layer reads it", message.x_hat_key_norm, "message.x_hat_key_norm"],
      ["‖v‖ its value", message.value_norm, "message.value_norm"],
      ["‖m‖ its message", message.norm, "message.norm"],
      ["‖x̂‖ reader", message.x_hat_query_norm, "message.x_hat_query_norm"],
    ]),
    el("p", { class: "small muted" }, `Values come from key/value head ${kv}.`),
  ];
}

/** @param {Edge} edge */
function ofProduct({ promotes, suppresses, mean_effect: mean }) {
  return [
    el("p", { class: "small" }, "What arrives promotes ", effectList(promotes, signed, "promotes")),
    el("p", { class: "small" }, "and suppresses ", effectList(suppresses, signed, "suppresses")),
    el("p", { class: "small muted" }, `Logits; the mean over the vocabulary is ${signed(mean)}.`),
  ];
}

/** @param {Edge} edge */
function ofSum({ output }) {
  return [
    facts([
      ["this source’s share of it", output.share, "output.share", percent],
      ["its projection on the output", output.projection, "output.projection"],
      ["cosine with the output", output.cosine, "output.cosine"],
    ]),
    el("p", { class: "small muted" }, "Norms do not add; shares, measured along the output, do. A share can be negative or above 100 %."),
  ];
}

/** @param {Edge} edge */
function ofStream({ stream, effect, aim }) {
  const along = valueOf(stream.along);
  return [
    facts([
      ["‖x‖ stream before", stream.before_norm, "stream.before_norm"],
      ["head’s write along it", stream.along, "stream.along", signed],
    ]),
    el("p", { class: "small muted" }, along < 0 ? "Negative: the head writes against what is already there." : "Positive: the head writes with what is already there."),
    facts([
      ["effect of this source", effect.source, "effect.source", signed],
      ["effect of the whole head", effect.head, "effect.head", signed],
      [aim.foil ? "difference of the logits" : "the logit", effect.logit, "effect.logit"],
    ]),
    el("p", { class: "small" }, "on the logit of ", aim.target && tokenText(aim.target.label), aim.foil && " minus ", aim.foil && tokenText(aim.foil.label), aim.chosen === "top" && " (the top prediction)", "."),
  ];
}
