/**
 * Pictures of all heads from one array of bytes, drawn side by side into one picture.
 * @typedef {import("./colour.js").Rgb} Rgb
 */
import { colourTable, parseHex, word } from "./colour.js";

/**
 * The pixels of every head, layer 0 at the bottom, as one picture of [layers × rows, heads × cols].
 * Above the diagonal nothing can be seen; a thumbnail pools queries and keys alike, so its diagonal is the prompt's.
 * @param {ArrayLike<number>} bytes [layer, head, row, col], 255 is a head's largest weight
 * @param {number[]} shape
 * @param {{sequential: Rgb[], unseen: string}} palette
 * @returns {{words: Uint32Array<ArrayBuffer>, width: number, height: number}}
 */
export function atlas(bytes, [layers, heads, rows, cols], palette) {
  const table = colourTable(palette.sequential);
  const unseen = word(parseHex(palette.unseen));
  const width = heads * cols;
  const height = layers * rows;
  const words = new Uint32Array(width * height);
  let from = 0;
  for (let layer = 0; layer < layers; layer++) {
    const top = (layers - 1 - layer) * rows;
    for (let head = 0; head < heads; head++) {
      for (let row = 0; row < rows; row++) {
        const start = (top + row) * width + head * cols;
        for (let col = 0; col < cols; col++) words[start + col] = col > row ? unseen : table[bytes[from + col]];
        from += cols;
      }
    }
  }
  return { words, width, height };
}

/**
 * The atlas as a canvas of one pixel for each number.
 * @param {{words: Uint32Array<ArrayBuffer>, width: number, height: number}} atlas
 */
export function atlasCanvas({ words, width, height }) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const pixels = new Uint8ClampedArray(words.buffer);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.putImageData(new ImageData(pixels, width, height), 0, 0);
  return canvas;
}
