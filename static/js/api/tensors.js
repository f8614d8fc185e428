/**
 * Tensors by address, kept in memory, least recently used dropped first. Views that ask for the same address share one
 * request; it is aborted when all of them have given up.
 * @typedef {import("./types.js").Tensor} Tensor
 */
import { decodeTensor } from "./arrays.js";
import { getJson } from "./client.js";

const BUDGET_BYTES = 192 * 2 ** 20;

/**
 * @typedef {Object} TensorCache
 * @property {(url: string, signal?: AbortSignal) => Promise<Tensor>} get
 * @property {(url: string) => Tensor | undefined} peek what is already here, without asking
 */

/**
 * @param {(url: string, init: RequestInit) => Promise<any>} [load]
 * @param {number} [budgetBytes]
 * @returns {TensorCache}
 */
export function createTensorCache(load = getJson, budgetBytes = BUDGET_BYTES) {
  /** @type {Map<string, Tensor>} */
  const held = new Map();
  /** @type {Map<string, {promise: Promise<Tensor>, controller: AbortController, waiting: number}>} */
  const underway = new Map();

  /** @param {Tensor} tensor */
  const sizeOf = (tensor) => tensor.values.byteLength + (tensor.mask?.byteLength ?? 0);

  /** @param {string} url */
  function peek(url) {
    const tensor = held.get(url);
    if (tensor) {
      held.delete(url);
      held.set(url, tensor);
    }
    return tensor;
  }

  /**
   * @param {string} url
   * @param {Tensor} tensor
   */
  function keep(url, tensor) {
    held.set(url, tensor);
    let total = 0;
    for (const one of held.values()) total += sizeOf(one);
    for (const [oldest, one] of held) {
      if (total <= budgetBytes || oldest === url) break;
      held.delete(oldest);
      total -= sizeOf(one);
    }
  }

  /** @param {string} url */
  function start(url) {
    const controller = new AbortController();
    const promise = load(url, { signal: controller.signal }).then((json) => {
      const tensor = decodeTensor(json);
      keep(url, tensor);
      return tensor;
    });
    const entry = { promise, controller, waiting: 0 };
    underway.set(url, entry);
    const forget = () => {
      if (underway.get(url) === entry) underway.delete(url);
    };
    promise.then(forget, forget);
    return entry;
  }

  /**
   * @param {string} url
   * @param {AbortSignal} [signal]
   * @returns {Promise<Tensor>}
   */
  function get(url, signal) {
    const here = peek(url);
    if (here) return Promise.resolve(here);
    if (signal?.aborted) return Promise.reject(new DOMException("given up", "AbortError"));
    const entry = underway.get(url) ?? start(url);
    entry.waiting += 1;
    return new Promise((resolve, reject) => {
      signal?.addEventListener("abort", () => {
        entry.waiting -= 1;
        if (entry.waiting === 0) {
          if (underway.get(url) === entry) underway.delete(url);
          entry.controller.abort();
        }
        reject(new DOMException("given up", "AbortError"));
      });
      entry.promise.then(resolve, reject);
    });
  }

  return { get, peek };
}
