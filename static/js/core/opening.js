/**
 * Where an analysis opens when its link does not say: at the head that writes most at the last token, and at the source
 * that it takes most from.
 * @typedef {import("./view-state.js").View} View
 * @typedef {import("./view-state.js").Dimensions} Dimensions
 */
import { tensorUrl } from "../api/client.js";
import { defaultView } from "./view-state.js";

/**
 * @param {import("../api/types.js").Analysis} analysis
 * @param {import("../api/tensors.js").TensorCache} tensors
 * @param {Dimensions} dimensions
 * @returns {Promise<View>}
 */
export async function openingView(analysis, tensors, dimensions) {
  const view = defaultView(dimensions);
  const stored = analysis.tensors.some(({ name, stored: here }) => name === "head_write_norm" && here);
  if (!stored) return view;
  try {
    const last = dimensions.pos - 1;
    const writes = await tensors.get(tensorUrl(analysis.id, "head_write_norm", { pos: last }));
    const strongest = indexOfLargest(writes.values);
    const [layer, head] = [Math.floor(strongest / dimensions.head), strongest % dimensions.head];
    const [weights, messages] = await Promise.all([
      tensors.get(tensorUrl(analysis.id, "pattern", { layer, head, query_pos: last })),
      tensors.get(tensorUrl(analysis.id, "message_norm", { layer, head })),
    ]);
    return { ...view, layer, head, key: indexOfLargest(Float32Array.from(weights.values, (weight, key) => weight * messages.values[key])) };
  } catch {
    // The opening is a courtesy; the page's own requests will say what is wrong.
    return view;
  }
}

/** @param {ArrayLike<number>} values */
export function indexOfLargest(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}
