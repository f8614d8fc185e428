/**
 * An analysis on its way: server-sent events, and asking now and then where those do not get through.
 * @typedef {import("./types.js").Analysis} Analysis
 * @typedef {import("./types.js").Progress} Progress
 */
import { eventsUrl, getAnalysis } from "./client.js";
import { asFailure, failureOf, isAbort } from "./errors.js";

const ASK_EVERY_MS = 2000;

/**
 * Resolves when the analysis has ended, whichever way; rejects with `Failure` where the server no longer answers.
 * @param {string} id
 * @param {(progress: Progress) => void} onProgress
 * @param {AbortSignal} signal
 * @returns {Promise<Analysis>}
 */
export function followAnalysis(id, onProgress, signal) {
  return new Promise((resolve, reject) => {
    const source = new EventSource(eventsUrl(id));
    let timer = 0;

    const stop = () => {
      source.close();
      clearTimeout(timer);
    };
    const ask = async () => {
      try {
        const analysis = await getAnalysis(id, signal);
        if (analysis.state === "done" || analysis.state === "failed") {
          stop();
          resolve(analysis);
        } else {
          timer = window.setTimeout(ask, ASK_EVERY_MS);
        }
      } catch (error) {
        stop();
        reject(isAbort(error) ? error : asFailure(error));
      }
    };

    source.addEventListener("progress", (event) => onProgress(JSON.parse(event.data)));
    source.addEventListener("done", () => {
      source.close();
      ask();
    });
    source.addEventListener("failed", (event) => {
      stop();
      reject(failureOf(JSON.parse(event.data)));
    });
    source.addEventListener("error", () => {
      // The browser would retry for ever; one question settles whether the analysis, or the server, is still there.
      source.close();
      if (!signal.aborted) timer = window.setTimeout(ask, 250);
    });
    signal.addEventListener("abort", stop);
  });
}
