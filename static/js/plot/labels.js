/**
 * Text for Plotly, which reads markup and entities in every label.
 */
import { shortened } from "../core/format.js";

/** @type {Record<string, string>} */
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

const ISOLATE = "\u2068";
const END_ISOLATE = "\u2069";

/**
 * The text so that Plotly shows it as typed.
 * @param {string} text
 */
export function escapeLabel(text) {
  return text.replace(/[&<>]/g, (character) => ENTITIES[character]);
}

/**
 * A token as a tick: its index and its label, cut to a length, escaped, and kept apart from the writing direction.
 * @param {number} index
 * @param {string} label
 * @param {number} length
 */
export function tickLabel(index, label, length) {
  return `${escapeLabel(ISOLATE + shortened(label, length) + END_ISOLATE)} ${index}`;
}

/**
 * Which positions of a window get a tick: all when they fit, else every so many by a round step, and the chosen one.
 * @param {number} start
 * @param {number} end after the last
 * @param {number} fit how many ticks have room
 * @param {number | null} chosen gets a tick always; its neighbours then give way
 * @returns {number[]}
 */
export function tickPositions(start, end, fit, chosen = null) {
  const step = niceStep((end - start) / Math.max(1, fit));
  const positions = [];
  for (let at = Math.ceil(start / step) * step; at < end; at += step) {
    if (chosen === null || at === chosen || step === 1 || Math.abs(at - chosen) >= step) positions.push(at);
  }
  if (chosen !== null && chosen >= start && chosen < end && !positions.includes(chosen)) positions.push(chosen);
  return positions.sort((a, b) => a - b);
}

/** @param {number} least */
function niceStep(least) {
  for (let power = 1; ; power *= 10) {
    for (const step of [1, 2, 5]) if (step * power >= least) return step * power;
  }
}
