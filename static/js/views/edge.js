/**
 * The chosen cell as the formula, with its numbers: pattern, message, product, sum, stream.
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../core/head-data.js").HeadData} HeadData
 */
import { tensorUrl } from "../api/client.js";
import { asFailure } from "../api/errors.js";
import { el, replace, tokenText } from "../core/dom.js";
import { number } from "../core/format.js";
import { isSeen, loadHead } from "../core/head-data.js";
import { createLatest } from "../core/latest.js";
import { createPanel } from "../core/panel.js";
import { touches } from "../core/store.js";

/**
 * @typedef {Object} Around
 * @property {HeadData} data
 * @property {(query: number) => {head: number, attention: number, before: number}} norms at a reader
 */

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function createEdge(root, store) {
  const { tokens } = store.analysis;
  const panel = createPanel(root, {
    name: "edge",
    title: "The chosen cell",
    about: "From one source to one reader, step by step; ‖·‖ is the length of a vector in the residual stream.",
  });
  const pair = el("p", { class: "cell-line" });
  const lines = el("div", { class: "equation", "aria-live": "polite" });
  panel.body.append(pair, lines);
  const latest = createLatest((error) => panel.fail(asFailure(error), load));
  /** @type {Around | null} */
  let around = null;

  function load() {
    const { layer, head } = store.view();
    panel.wait("Computing this cell…");
    latest.run(async (signal) => {
      around = await loadAround(store, layer, head, signal);
      panel.wait(null);
      show();
    });
  }

  function show() {
    if (!around) return;
    const { query, key } = store.view();
    const { data } = around;
    replace(
      pair,
      el("span", { class: "mark-query" }, "reader ", tokenText(tokens[query].label, "in-query"), ` ${query}`),
      el("span", { class: "mark-key" }, "source ", tokenText(tokens[key].label, "in-key"), ` ${key}`),
    );
    const norms = around.norms(query);
    const seen = isSeen(data, query, key);
    const weight = data.pattern[query * data.pos + key];
    const message = data.message[key];
    replace(
      lines,
      line(["A", sub(`${query},${key}`)], "pattern: the reader’s attention on this source", seen ? number(weight) : "cannot see"),
      line(["‖m", sub(String(key)), "‖"], "message: what the source offers through this head", number(message)),
      line(["A‖m‖"], "delivered: what arrives at the reader", seen ? number(weight * message) : "nothing"),
      line(["‖Σ", sub("j"), " A m", sub("j"), "‖"], "the head’s write: all sources together", number(norms.head)),
      line(["‖Σ", sub("h"), " o", sub("h"), "‖"], "attention’s write: all heads of the layer", number(norms.attention)),
      line(["‖x‖"], "the stream that it is added to", number(norms.before)),
    );
  }

  const end = store.subscribe((change) => {
    if (touches(change, "layer", "head")) load();
    else if (touches(change, "query", "key")) show();
  });

  return {
    destroy() {
      end();
      latest.cancel();
      panel.section.remove();
    },
  };
}

/**
 * @param {Store} store
 * @param {number} layer
 * @param {number} head
 * @param {AbortSignal} signal
 * @returns {Promise<Around>}
 */
async function loadAround(store, layer, head, signal) {
  const id = store.analysis.id;
  const [data, own, attention, stream] = await Promise.all([
    loadHead(store, layer, head, signal),
    store.tensors.get(tensorUrl(id, "head_write_norm", { layer, head }), signal),
    store.tensors.get(tensorUrl(id, "attn_write_norm"), signal),
    store.tensors.get(tensorUrl(id, "stream_norm"), signal),
  ]);
  const at = layer * data.pos;
  return {
    data,
    norms: (query) => ({ head: own.values[query], attention: attention.values[at + query], before: stream.values[at + query] }),
  };
}

/**
 * @param {(Node | string)[]} formula
 * @param {string} words
 * @param {string} value
 */
function line(formula, words, value) {
  return el(
    "div",
    { class: "equation-line" },
    el("span", { class: "formula" }, ...formula),
    el("span", { class: "words" }, words),
    el("span", { class: "numeric" }, value),
  );
}

/** @param {string} text */
function sub(text) {
  return el("sub", {}, text);
}
