/**
 * The lenses' answers by address, shared by all views: one cell's equation, an attribution, a reading of a head.
 * @typedef {import("./shared.js").SharedCache<any>} AnswerCache
 */
import { getJson } from "./client.js";
import { createSharedCache } from "./shared.js";

// Each is some tens of kilobytes.
const MOST_KEPT = 200;

/** @returns {AnswerCache} */
export function createAnswerCache() {
  return createSharedCache({ load: (url, signal) => getJson(url, { signal }), sizeOf: () => 1, budget: MOST_KEPT });
}
