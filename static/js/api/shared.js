/**
 * Answers by address, kept in memory, least recently used dropped first. Views that ask for the same address share one
 * request; it is aborted when all of them have given up.
 */

/**
 * @template T
 * @typedef {Object} SharedCache
 * @property {(url: string, signal?: AbortSignal) => Promise<T>} get
 * @property {(url: string) => T | undefined} peek what is already here, without asking
 */

/**
 * @template T
 * @param {Object} options
 * @param {(url: string, signal: AbortSignal) => Promise<T>} options.load
 * @param {(value: T) => number} options.sizeOf
 * @param {number} options.budget in the unit of `sizeOf`
 * @returns {SharedCache<T>}
 */
export function createSharedCache({ load, sizeOf, budget }) {
  /** @type {Map<string, T>} */
  const held = new Map();
  /** @type {Map<string, {promise: Promise<T>, controller: AbortController, waiting: number}>} */
  const underway = new Map();

  /** @param {string} url */
  function peek(url) {
    const value = held.get(url);
    if (value !== undefined) {
      held.delete(url);
      held.set(url, value);
    }
    return value;
  }

  /**
   * @param {string} url
   * @param {T} value
   */
  function keep(url, value) {
    held.set(url, value);
    let total = 0;
    for (const one of held.values()) total += sizeOf(one);
    for (const [oldest, one] of held) {
      if (total <= budget || oldest === url) break;
      held.delete(oldest);
      total -= sizeOf(one);
    }
  }

  /** @param {string} url */
  function start(url) {
    const controller = new AbortController();
    const promise = load(url, controller.signal).then((value) => {
      keep(url, value);
      return value;
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
   * @returns {Promise<T>}
   */
  function get(url, signal) {
    const here = peek(url);
    if (here !== undefined) return Promise.resolve(here);
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
