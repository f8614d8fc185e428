/**
 * Max-pooling of large maps to the size they are drawn at, so that a single bright cell never disappears.
 *
 * @typedef {Object} Window rows and columns that are looked at, ends excluded
 * @property {number} top @property {number} bottom @property {number} left @property {number} right
 *
 * @typedef {Object} Pooled
 * @property {Float32Array[]} rows each with one value a column; NaN where no cell of the block can be seen
 * @property {number} down rows of the map in one drawn cell @property {number} across columns of the map in it
 * @property {number} top row of the map where the first drawn cell begins @property {number} left
 */

/**
 * The window of a map, pooled by maximum over blocks to at most `most` rows and `most` columns.
 * @param {ArrayLike<number>} values [rows, cols]
 * @param {Uint8Array | null} mask 1 where a cell can be seen
 * @param {number} cols of the map
 * @param {Window} window
 * @param {number} most
 * @returns {Pooled}
 */
export function poolMax(values, mask, cols, window, most) {
  const down = Math.ceil((window.bottom - window.top) / most);
  const across = Math.ceil((window.right - window.left) / most);
  const outRows = Math.ceil((window.bottom - window.top) / down);
  const outCols = Math.ceil((window.right - window.left) / across);
  const rows = Array.from({ length: outRows }, () => new Float32Array(outCols).fill(NaN));
  for (let row = window.top; row < window.bottom; row++) {
    const pooled = rows[Math.floor((row - window.top) / down)];
    const start = row * cols;
    for (let col = window.left; col < window.right; col++) {
      if (mask && !mask[start + col]) continue;
      const out = Math.floor((col - window.left) / across);
      const value = values[start + col];
      if (!(pooled[out] >= value)) pooled[out] = value;
    }
  }
  return { rows, down, across, top: window.top, left: window.left };
}

/**
 * The largest value that can be seen; 0 where there is none.
 * @param {ArrayLike<number>} values
 * @param {Uint8Array | null} mask
 */
export function maxSeen(values, mask) {
  let most = 0;
  for (let i = 0; i < values.length; i++) if ((!mask || mask[i]) && values[i] > most) most = values[i];
  return most;
}
