/**
 * What the workbench and its embedded form share: wait for the analysis, make the store, build the views.
 * @typedef {import("../api/types.js").Analysis} Analysis
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {(root: HTMLElement, store: Store) => {destroy: () => void}} View
 */
import { getAnalysis } from "../api/client.js";
import { asFailure, failureOf, Failure } from "../api/errors.js";
import { followAnalysis } from "../api/events.js";
import { createTensorCache } from "../api/tensors.js";
import { byId, pageData } from "../core/dom.js";
import { bindHistory } from "../core/history.js";
import { openingView } from "../core/opening.js";
import { createStore } from "../core/store.js";
import { parseView } from "../core/view-state.js";
import { createNotices } from "../views/notices.js";
import { createProgress } from "../views/progress.js";

/**
 * Runs the page. `views` are built in reading order once the analysis is there.
 * @param {View[]} views
 * @param {(store: Store) => void} [ready]
 */
export async function runWorkbench(views, ready = () => {}) {
  const progress = createProgress(byId("progress", HTMLElement));
  /** @type {Analysis | null} */
  let analysis = null;
  try {
    analysis = await finished(progress, (known) => (analysis = known));
    if (analysis.state === "failed") throw analysis.problem ? failureOf(analysis.problem) : new Failure("failed", "The analysis failed", "No reason was given.");
    const store = await openStore(analysis);
    progress.destroy();
    const bench = byId("bench", HTMLElement);
    for (const create of views) create(bench, store);
    ready(store);
  } catch (error) {
    progress.fail(asFailure(error), analysis);
  }
}

/**
 * The analysis when it has ended.
 * @param {ReturnType<typeof createProgress>} progress
 * @param {(analysis: Analysis) => void} learn hears it as soon as anything is known
 * @returns {Promise<Analysis>}
 */
async function finished(progress, learn) {
  const data = pageData();
  const id = data?.analysis_id ?? location.pathname.split("/")[2];
  /** @type {Analysis} */
  const analysis = data?.analysis ?? (await getAnalysis(id));
  learn(analysis);
  if (analysis.state === "done" || analysis.state === "failed") return analysis;
  progress.begin(analysis);
  return followAnalysis(analysis.id, progress.update, new AbortController().signal);
}

/**
 * @param {Analysis} analysis
 * @returns {Promise<Store>}
 */
async function openStore(analysis) {
  const { anatomy } = analysis.model;
  if (!anatomy || analysis.model.kind !== "transformer") {
    throw new Failure("unsupported", "There is no workbench for this model", `${analysis.model.title} has no attention heads to show here.`);
  }
  const dimensions = { layer: anatomy.n_layers, head: anatomy.n_heads, pos: analysis.tokens.length, vocab: anatomy.vocab_size };
  const tensors = createTensorCache();
  const opening = location.search ? undefined : await openingView(analysis, tensors, dimensions);
  const { view, notices } = parseView(location.search, dimensions, opening);
  const store = createStore(analysis, tensors, dimensions, view);
  const board = createNotices(byId("notices", HTMLElement));
  bindHistory(store, (later) => later.forEach(board.add));
  for (const notice of [...notices, ...analysis.notes]) board.add(notice);
  return store;
}
