/**
 * Colour scales. The stops are custom properties of the style sheet; here they become tables of 256 colours.
 * @typedef {[number, number, number]} Rgb each 0 to 255
 */

/**
 * @param {string} text #rrggbb
 * @returns {Rgb}
 */
export function parseHex(text) {
  const match = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text.trim());
  if (!match) throw new Error(`“${text}” is no colour of the form #rrggbb.`);
  return [parseInt(match[1], 16), parseInt(match[2], 16), parseInt(match[3], 16)];
}

/** @param {Rgb} colour */
export function formatHex([r, g, b]) {
  return `#${[r, g, b].map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;
}

/**
 * The colour at t in 0 to 1 between evenly spaced stops.
 * @param {readonly Rgb[]} stops at least two
 * @param {number} t clamped; NaN counts as 0
 * @returns {Rgb}
 */
export function mix(stops, t) {
  const place = Math.min(Math.max(Number.isNaN(t) ? 0 : t, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  const share = place - low;
  const [a, b] = [stops[low], stops[low + 1]];
  return [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share, a[2] + (b[2] - a[2]) * share];
}

/**
 * 256 colours as the 32-bit words that an ImageData holds on a little-endian machine.
 * @param {readonly Rgb[]} stops
 * @returns {Uint32Array}
 */
export function colourTable(stops) {
  const table = new Uint32Array(256);
  for (let i = 0; i < 256; i++) table[i] = word(mix(stops, i / 255));
  return table;
}

/** @param {Rgb} colour */
export function word([r, g, b]) {
  return ((255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
}

/**
 * The stops as Plotly's colour scale.
 * @param {readonly Rgb[]} stops
 * @returns {[number, string][]}
 */
export function plotlyScale(stops) {
  return stops.map((stop, i) => [i / (stops.length - 1), formatHex(stop)]);
}

/**
 * WCAG contrast ratio of two colours, 1 to 21.
 * @param {Rgb} a
 * @param {Rgb} b
 */
export function contrast(a, b) {
  const [bright, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (bright + 0.05) / (dark + 0.05);
}

/** @param {Rgb} colour */
export function luminance(colour) {
  const [r, g, b] = colour.map((part) => {
    const c = part / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
