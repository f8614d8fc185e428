/**
 * The one state that all views share.
 *
 * @typedef {import("./view-state.js").View} View
 * @typedef {import("./view-state.js").Dimensions} Dimensions
 * @typedef {import("../api/types.js").Analysis} Analysis
 * @typedef {import("../api/tensors.js").TensorCache} TensorCache
 * @typedef {import("../api/answers.js").AnswerCache} AnswerCache
 *
 * @typedef {Object} Change
 * @property {View} view
 * @property {View | null} before null when a view is told the state for the first time
 * @property {boolean} deliberate a choice worth a step of the Back button
 *
 * @typedef {Object} Store
 * @property {Analysis} analysis
 * @property {TensorCache} tensors
 * @property {AnswerCache} answers of the lenses
 * @property {import("./words.js").Words} words labels of token ids
 * @property {Dimensions} dimensions
 * @property {() => View} view
 * @property {(change: Partial<View>, how?: {quick?: boolean}) => void} set quick: one of many small moves
 * @property {(view: View) => void} restore takes a view from the history; leaves the history alone
 * @property {(hear: (change: Change) => void) => () => void} subscribe calls at once and after every change
 */
import { createAnswerCache } from "../api/answers.js";
import { changedView } from "./view-state.js";
import { createWords } from "./words.js";

/**
 * @param {Analysis} analysis
 * @param {TensorCache} tensors
 * @param {Dimensions} dimensions
 * @param {View} first
 * @param {AnswerCache} [answers]
 * @returns {Store & {onMove: (hear: (change: Change) => void) => void}} `onMove` hears only what `set` has changed
 */
export function createStore(analysis, tensors, dimensions, first, answers = createAnswerCache()) {
  let view = changedView(first, {}, dimensions);
  /** @type {Set<(change: Change) => void>} */
  const listeners = new Set();
  /** @type {Set<(change: Change) => void>} */
  const movers = new Set();

  /**
   * @param {View} next
   * @param {boolean} deliberate
   * @param {boolean} moved
   */
  function become(next, deliberate, moved) {
    const before = view;
    if (!differs(before, next)) return;
    view = next;
    const change = { view, before, deliberate };
    for (const hear of [...listeners]) {
      if (view === next) hear(change);
    }
    if (moved) for (const hear of movers) hear(change);
  }

  return {
    analysis,
    tensors,
    answers,
    words: createWords(analysis),
    dimensions,
    view: () => view,
    set: (change, { quick = false } = {}) => become(changedView(view, change, dimensions), !quick, true),
    restore: (next) => become(changedView(next, {}, dimensions), false, false),
    subscribe(hear) {
      listeners.add(hear);
      hear({ view, before: null, deliberate: false });
      return () => listeners.delete(hear);
    },
    onMove: (hear) => movers.add(hear),
  };
}

/**
 * @param {View} a
 * @param {View} b
 */
function differs(a, b) {
  return /** @type {(keyof View)[]} */ (Object.keys(b)).some((name) => a[name] !== b[name]);
}

/**
 * Whether any of the named fields is new.
 * @param {Change} change
 * @param {...keyof View} names
 */
export function touches({ view, before }, ...names) {
  return before === null || names.some((name) => view[name] !== before[name]);
}
