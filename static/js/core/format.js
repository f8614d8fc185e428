/**
 * Numbers and words as the page writes them. A number that does not exist is written as a dash, never as zero.
 * @typedef {import("../api/types.js").Figure | null | undefined} Writable
 */

const MISSING = "–";
const MINUS = "−";

/**
 * A number of the API as a number: what JSON does not have arrives as a word.
 * @param {import("../api/types.js").Figure} figure
 */
export function valueOf(figure) {
  return typeof figure === "number" ? figure : Number(figure);
}

/**
 * A number to a few significant digits: 0.0312, 1.24, 318, 12,400, 3.1e−5.
 * @param {Writable} figure
 * @param {number} [digits]
 * @returns {string}
 */
export function number(figure, digits = 3) {
  if (figure === null || figure === undefined) return MISSING;
  const value = valueOf(figure);
  if (Number.isNaN(value)) return "not a number";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : `${MINUS}∞`;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e7) return scientific(value);
  const rounded = Number(value.toPrecision(digits));
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(rounded))));
  return minus(rounded.toLocaleString("en-GB", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }));
}

/**
 * A number with its sign always written: +1.24, −0.300.
 * @param {Writable} figure
 * @param {number} [digits]
 */
export function signed(figure, digits = 3) {
  const text = number(figure, digits);
  return figure !== null && figure !== undefined && valueOf(figure) > 0 ? `+${text}` : text;
}

/**
 * A number in powers of ten, as errors are written: 3.4e−5.
 * @param {Writable} figure
 * @returns {string}
 */
export function scientific(figure) {
  if (figure === null || figure === undefined) return MISSING;
  const value = valueOf(figure);
  if (!Number.isFinite(value)) return number(value);
  if (value === 0) return "0";
  return minus(value.toExponential(1).replace("e+", "e"));
}

/**
 * A probability: 92.3 %, 0.46 %, < 0.01 %.
 * @param {Writable} figure
 */
export function percent(figure) {
  if (figure === null || figure === undefined) return MISSING;
  const value = valueOf(figure);
  if (Number.isNaN(value)) return "not a number";
  const hundred = value * 100;
  if (hundred > 0 && hundred < 0.01) return "< 0.01 %";
  if (hundred < 100 && hundred > 99.99) return "> 99.99 %";
  return `${hundred.toFixed(hundred >= 10 ? 1 : 2)} %`;
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function counted(count, one, many = `${one}s`) {
  return `${integer(count)} ${count === 1 ? one : many}`;
}

/** @param {number} value */
export function integer(value) {
  return minus(value.toLocaleString("en-GB"));
}

/**
 * The text, cut after so many characters; a character is never cut in two.
 * @param {string} text
 * @param {number} length
 */
export function shortened(text, length) {
  if (text.length <= length) return text;
  const kept = [];
  for (const { segment } of new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text)) {
    if (kept.length === length) return `${kept.slice(0, length - 1).join("")}…`;
    kept.push(segment);
  }
  return text;
}

/**
 * How long ago, in words.
 * @param {number} then milliseconds
 * @param {number} [now]
 */
export function ago(then, now = Date.now()) {
  const minutes = Math.round((now - then) / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${counted(minutes, "minute")} ago`;
  const hours = Math.round(minutes / 60);
  if (hours < 24) return `${counted(hours, "hour")} ago`;
  return `${counted(Math.round(hours / 24), "day")} ago`;
}

/** @param {string} text */
function minus(text) {
  return text.replaceAll("-", MINUS);
}
