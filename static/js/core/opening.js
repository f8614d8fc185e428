/**
 * Where an analysis opens when its link does not say: at the head that writes most at the last token, measured against
 * the stream it writes into, and at the source that it takes most from.
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
    const at = { pos: dimensions.pos - 1 };
    const [writes, stream] = await Promise.all([
      tensors.get(tensorUrl(analysis.id, "head_write_norm", at)),
      tensors.get(tensorUrl(analysis.id, "stream_norm", at)),
    ]);
    const [layer, head] = strongestHead(writes.values, stream.values, dimensions.head);
    return { ...view, layer, head };
  } catch {
    // The opening is a courtesy; the page's own requests will say what is wrong.
    return view;
  }
}

/**
 * @param {ArrayLike<number>} writes [layer, head]
 * @param {ArrayLike<number>} stream [layer + 1]
 * @param {number} nHeads
 * @returns {[number, number]}
 */
export function strongestHead(writes, stream, nHeads) {
  let best = 0;
  let most = -1;
  for (let i = 0; i < writes.length; i++) {
    const share = writes[i] / stream[Math.floor(i / nHeads)];
    if (share > most) [best, most] = [i, share];
  }
  return [Math.floor(best / nHeads), best % nHeads];
}
