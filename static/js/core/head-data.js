/**
 * What is known of one head: its pattern and its messages' norms, and from both what is delivered.
 *
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("../api/types.js").Tensor} Tensor
 *
 * @typedef {Object} HeadData
 * @property {number} layer @property {number} head @property {number} pos how many positions
 * @property {ArrayLike<number>} pattern [query, key]
 * @property {Uint8Array | null} mask 1 where the query can see the key
 * @property {ArrayLike<number>} message norm for each key
 */
import { tensorUrl } from "../api/client.js";

/**
 * @param {Store} store
 * @param {number} layer
 * @param {number} head
 * @param {AbortSignal} signal
 * @returns {Promise<HeadData>}
 */
export async function loadHead(store, layer, head, signal) {
  const at = { layer, head };
  const [pattern, message] = await Promise.all([
    store.tensors.get(tensorUrl(store.analysis.id, "pattern", at), signal),
    store.tensors.get(tensorUrl(store.analysis.id, "message_norm", at), signal),
  ]);
  return { layer, head, pos: message.shape[0], pattern: pattern.values, mask: pattern.mask, message: message.values };
}

/**
 * @param {HeadData} data
 * @param {number} query
 * @param {number} key
 */
export function isSeen({ mask, pos }, query, key) {
  return !mask || mask[query * pos + key] === 1;
}

/**
 * The numbers of one of the head's maps, [query, key].
 *
 *     pattern A_ij,   message ‖m_j‖ wherever j can be seen,   delivered A_ij ‖m_j‖
 * @param {HeadData} data
 * @param {string} map
 * @returns {ArrayLike<number>}
 */
export function mapValues({ pattern, message, pos }, map) {
  if (map === "pattern") return pattern;
  const values = new Float32Array(pattern.length);
  for (let query = 0, at = 0; query < pos; query++) {
    for (let key = 0; key < pos; key++, at++) values[at] = map === "message" ? message[key] : pattern[at] * message[key];
  }
  return values;
}
