/**
 * Typed arrays at the border: base64 in, typed-array views out.
 * @typedef {import("./types.js").TypedArrayJson} TypedArrayJson
 * @typedef {import("./types.js").Envelope} Envelope
 * @typedef {import("./types.js").Numbers} Numbers
 * @typedef {import("./types.js").Tensor} Tensor
 */
import { Failure } from "./errors.js";

/** @type {Record<string, new (buffer: ArrayBuffer) => Numbers>} */
const KINDS = {
  f4: Float32Array,
  f8: Float64Array,
  u1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
  i2: Int16Array,
  i4: Int32Array,
};

/**
 * The numbers and the shape of one array.
 * @param {TypedArrayJson} json
 * @returns {{values: Numbers, shape: number[]}}
 * @throws {Failure} the bytes do not fit the dtype and shape they claim
 */
export function decodeArray(json) {
  const kind = KINDS[json.dtype];
  if (!kind) throw broken(`This page does not read arrays of dtype ${json.dtype}.`);
  const shape = json.shape === "" ? [] : json.shape.split(",").map(Number);
  if (!shape.every((size) => Number.isInteger(size) && size >= 0)) throw broken(`The shape “${json.shape}” is no shape.`);
  const text = atob(json.bdata);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const size = shape.reduce((product, axis) => product * axis, 1);
  const expected = size * itemSize(json.dtype);
  if (bytes.length !== expected) {
    throw broken(`An array of shape ${json.shape} needs ${expected} bytes; ${bytes.length} arrived.`);
  }
  return { values: new kind(bytes.buffer), shape };
}

/**
 * The tensor in an envelope, its mask beside it.
 * @param {Envelope} envelope
 * @returns {Tensor}
 */
export function decodeTensor(envelope) {
  const { values, shape } = decodeArray(envelope.data);
  const mask = envelope.mask ? decodeArray(envelope.mask) : null;
  if (mask && !(mask.values instanceof Uint8Array && mask.values.length === values.length)) {
    throw broken("The mask and the numbers have different shapes.");
  }
  if (shape.length !== envelope.axes.length) throw broken("The axes and the shape disagree.");
  const { name, axes, unit, about } = envelope;
  return { name, axes, shape, unit, about, values, mask: /** @type {Uint8Array | null} */ (mask && mask.values) };
}

/** @param {string} dtype */
function itemSize(dtype) {
  return Number(dtype.slice(1));
}

/** @param {string} detail */
function broken(detail) {
  return new Failure("broken-answer", "The server's answer cannot be read", detail);
}
