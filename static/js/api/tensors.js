/**
 * Tensors by address, shared by all views.
 * @typedef {import("./types.js").Tensor} Tensor
 * @typedef {import("./shared.js").SharedCache<Tensor>} TensorCache
 */
import { decodeTensor } from "./arrays.js";
import { getJson } from "./client.js";
import { createSharedCache } from "./shared.js";

const BUDGET_BYTES = 192 * 2 ** 20;

/**
 * @param {(url: string, init: RequestInit) => Promise<any>} [load]
 * @param {number} [budgetBytes]
 * @returns {TensorCache}
 */
export function createTensorCache(load = getJson, budgetBytes = BUDGET_BYTES) {
  return createSharedCache({
    load: async (url, signal) => decodeTensor(await load(url, { signal })),
    sizeOf: (tensor) => tensor.values.byteLength + (tensor.mask?.byteLength ?? 0),
    budget: budgetBytes,
  });
}
