/**
 * What this browser keeps: recent analyses, their owner's tokens, and a prompt on its way back to the prompt box.
 * Storage may be closed or full; the page then works without it.
 *
 * @typedef {Object} Recent
 * @property {string} id @property {string} text beginning of the prompt @property {string} model
 * @property {number} at milliseconds @property {string} ownerToken
 */
import { shortened } from "./format.js";

const RECENT = "headwater.recent";
const PROMPT = "headwater.prompt";
const MOST_RECENT = 12;
const TEXT_KEPT = 120;

/** @returns {Recent[]} newest first */
export function recentAnalyses() {
  try {
    const list = JSON.parse(localStorage.getItem(RECENT) ?? "[]");
    return Array.isArray(list) ? list.filter((one) => typeof one?.id === "string" && typeof one?.text === "string") : [];
  } catch {
    return [];
  }
}

/** @param {{id: string, text: string, model: string, ownerToken: string}} analysis */
export function rememberAnalysis({ id, text, model, ownerToken }) {
  const one = { id, text: shortened(text, TEXT_KEPT), model, ownerToken, at: Date.now() };
  write([one, ...recentAnalyses().filter((other) => other.id !== id)].slice(0, MOST_RECENT));
}

/** @param {string} id */
export function forgetAnalysis(id) {
  write(recentAnalyses().filter((one) => one.id !== id));
}

/** @param {Recent[]} list */
function write(list) {
  try {
    localStorage.setItem(RECENT, JSON.stringify(list));
  } catch {
    // Nothing is kept.
  }
}

/**
 * Keeps a prompt for the prompt box of the next page in this tab; a query string could not hold a long one.
 * @param {{text: string, model: string}} prompt
 */
export function handOverPrompt(prompt) {
  try {
    sessionStorage.setItem(PROMPT, JSON.stringify(prompt));
  } catch {
    // The box opens empty.
  }
}

/** @returns {{text: string, model: string} | null} the prompt that was handed over, once */
export function takePrompt() {
  try {
    const prompt = JSON.parse(sessionStorage.getItem(PROMPT) ?? "null");
    sessionStorage.removeItem(PROMPT);
    return typeof prompt?.text === "string" ? prompt : null;
  } catch {
    return null;
  }
}
