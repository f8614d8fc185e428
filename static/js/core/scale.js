/**
 * How amounts are mapped to colours, so that one huge norm does not flatten the rest.
 *
 * @typedef {Object} Scaled
 * @property {Float32Array} values what to colour; NaN where there is nothing
 * @property {[number, number]} range of `values`; what lies outside takes the end colours
 * @property {{at: number, label: string}[]} ticks for the colour bar, in the amounts' own unit
 * @property {string} words what was done, for the plot
 */
import { number } from "./format.js";

// Share of the values that the clipped scale shows in full.
export const CLIP_SHARE = 0.98;
// A weight this far below the largest is as good as ignored; a logarithmic map begins here.
export const LOG_DEPTH = 1e4;

/**
 * @param {ArrayLike<number>} amounts not negative
 * @param {string} kind log, clipped or linear
 * @returns {Scaled}
 */
export function scaleAmounts(amounts, kind) {
  if (kind === "log") return logScale(amounts);
  const finite = finiteSorted(amounts);
  const top = finite.length ? finite[finite.length - 1] : 0;
  const values = Float32Array.from(amounts);
  if (kind === "linear") {
    return { values, range: [0, top || 1], ticks: linearTicks(top || 1, false), words: "linear scale from 0" };
  }
  const cut = quantile(finite, CLIP_SHARE);
  const over = finite.filter((value) => value > cut).length;
  const share = Math.round(CLIP_SHARE * 100);
  const words = over
    ? `linear scale from 0, cut at ${number(cut)} (the ${share}th percentile); the largest is ${number(top)}`
    : `linear scale from 0; nothing lies above the ${share}th percentile`;
  return { values, range: [0, cut || 1], ticks: linearTicks(cut || 1, over > 0), words };
}

/**
 * The scale of one map whose amounts reach from 0 to `most`: linear, or logarithmic over four powers of ten.
 * @param {ArrayLike<number>} amounts
 * @param {number} most
 * @param {string} kind
 * @returns {Scaled}
 */
export function scaleMap(amounts, most, kind) {
  const top = most || 1;
  if (kind === "linear") {
    return { values: Float32Array.from(amounts), range: [0, top], ticks: linearTicks(top, false), words: "linear" };
  }
  const low = top / LOG_DEPTH;
  const values = Float32Array.from(amounts, (value) => (Number.isNaN(value) ? NaN : Math.log10(Math.max(value, low))));
  return { values, range: [Math.log10(low), Math.log10(top)], ticks: logTicks(low, top), words: "log" };
}

/**
 * @param {ArrayLike<number>} amounts
 * @returns {Scaled}
 */
function logScale(amounts) {
  const finite = finiteSorted(amounts).filter((value) => value > 0);
  const low = finite.length ? finite[0] : 1;
  const high = finite.length ? finite[finite.length - 1] : 1;
  // Zero has no logarithm; it takes the colour of the smallest amount.
  const values = Float32Array.from(amounts, (value) => (value > 0 ? Math.log10(value) : value === 0 ? Math.log10(low) : NaN));
  const range = /** @type {[number, number]} */ ([Math.log10(low), high > low ? Math.log10(high) : Math.log10(low) + 1]);
  return { values, range, ticks: logTicks(low, high), words: "logarithmic scale: equal steps of colour are equal ratios" };
}

/**
 * Round amounts between two bounds, 1, 2, 5, 10 …, thinned to powers of ten when there are many.
 * @param {number} low
 * @param {number} high
 */
export function logTicks(low, high) {
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const step of steps) {
        const amount = step * 10 ** power;
        if (amount >= low * 0.999 && amount <= high * 1.001) ticks.push({ at: Math.log10(amount), label: number(amount, 1) });
      }
    }
    if (ticks.length <= 8 || steps.length === 1) {
      return ticks.length ? ticks : [{ at: Math.log10(low), label: number(low) }];
    }
  }
  return [];
}

/**
 * @param {number} top
 * @param {boolean} open whether more lies above
 */
function linearTicks(top, open) {
  return [0, 0.25, 0.5, 0.75, 1].map((share) => ({
    at: share * top,
    label: `${share === 1 && open ? "≥ " : ""}${number(share * top, 2)}`,
  }));
}

/** @param {ArrayLike<number>} amounts */
function finiteSorted(amounts) {
  return Float64Array.from(amounts).filter(Number.isFinite).sort();
}

/**
 * @param {ArrayLike<number>} sorted
 * @param {number} share 0 to 1
 */
export function quantile(sorted, share) {
  if (sorted.length === 0) return 0;
  const place = share * (sorted.length - 1);
  const low = Math.floor(place);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (place - low);
}
