/**
 * Where an analysis opens when its link does not say: among the heads that write most at the last token, at the first
 * that does not take it from the first token, where heads rest that have nothing to move; and at the source it takes
 * most from.
 * @typedef {import("./view-state.js").View} View
 * @typedef {import("./view-state.js").Dimensions} Dimensions
 */
import { tensorUrl } from "../api/client.js";
import { defaultView } from "./view-state.js";

const LOOKED_AT = 6;

/**
 * @param {import("../api/types.js").Analysis} analysis
 * @param {import("../api/tensors.js").TensorCache} tensors
 * @param {Dimensions} dimensions
 * @returns {Promise<View>}
 */
export async function openingView(analysis, tensors, dimensions) {
  const view = defaultView(dimensions);
  const last = dimensions.pos - 1;
  /** @param {string} name @param {Record<string, number>} fixed */
  const ask = async (name, fixed) => (await tensors.get(tensorUrl(analysis.id, name, fixed))).values;
  /** @type {{layer: number, head: number}[]} */
  let candidates;
  try {
    if (analysis.tensors.some(({ name, stored }) => name === "head_write_norm" && stored)) {
      const order = largestFirst(await ask("head_write_norm", { pos: last }));
      candidates = order.map((i) => ({ layer: Math.floor(i / dimensions.head), head: i % dimensions.head }));
    } else {
      const layer = largestFirst(await ask("attn_write_norm", { pos: last }))[0];
      candidates = largestFirst(await ask("head_write_norm", { layer, pos: last })).map((head) => ({ layer, head }));
    }
    Object.assign(view, candidates[0]);
    for (const at of candidates.slice(0, LOOKED_AT)) {
      const weights = await ask("pattern", { ...at, query_pos: last });
      const messages = await ask("message_norm", at);
      const key = largestFirst(Float32Array.from(weights, (weight, j) => weight * messages[j]))[0];
      if (key === 0 && last > 0) continue;
      return { ...view, ...at, key };
    }
  } catch {
    // The opening is a courtesy; what is missing stays at its default, and the panels say what is wrong.
  }
  return view;
}

/**
 * Indices by value, the largest first.
 * @param {ArrayLike<number>} values
 */
export function largestFirst(values) {
  return Array.from(values, (_, i) => i).sort((a, b) => values[b] - values[a]);
}
