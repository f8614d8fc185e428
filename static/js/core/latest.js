/**
 * For views that ask the server: only the newest question counts.
 * @typedef {(signal: AbortSignal) => Promise<void>} Task
 */
import { isAbort } from "../api/errors.js";

/**
 * Runs tasks so that a new one gives the last one up; what an abandoned task would still throw is dropped.
 * @param {(error: unknown) => void} onError
 * @returns {{run: (task: Task) => Promise<void>, cancel: () => void}}
 */
export function createLatest(onError) {
  /** @type {AbortController | null} */
  let active = null;

  return {
    async run(task) {
      active?.abort();
      const controller = new AbortController();
      active = controller;
      try {
        await task(controller.signal);
      } catch (error) {
        if (!controller.signal.aborted && !isAbort(error)) onError(error);
      }
    },
    cancel() {
      active?.abort();
      active = null;
    },
  };
}
