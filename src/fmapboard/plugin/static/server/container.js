// @ts-check
/** The server's binary answers: the length of a JSON text, the text, then arrays and bytes. */

/** @import {ArrayEntry, Bytes, JsonFloat} from "./routes.js" */

/** @template T @typedef {{json: T, body: ArrayBuffer}} Container the JSON, and a copy of the bytes behind it */

/** @typedef {{shape: number[], values: Float32Array}} FloatArray */
/** @typedef {Partial<Record<string, FloatArray>>} NamedArrays */

/** @template T @param {ArrayBuffer} buffer @returns {Container<T>} */
export function open(buffer) {
  const length = buffer.byteLength < 4 ? -1 : new DataView(buffer).getUint32(0, true);
  if (length < 0 || 4 + length > buffer.byteLength) {
    throw new Error(`the server's answer of ${buffer.byteLength} bytes was cut off`);
  }
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  return { json: JSON.parse(text), body: buffer.slice(4 + length) };
}

/**
 * Arrays of little-endian float32, by name.
 * @param {ArrayBuffer} body @param {Record<string, ArrayEntry>} listed @returns {NamedArrays}
 */
export function arrays(body, listed) {
  /** @type {NamedArrays} */
  const found = Object.create(null);
  const view = new DataView(body);
  for (const [name, { offset, shape }] of Object.entries(listed)) {
    const count = size(shape);
    if (offset + 4 * count > body.byteLength) throw new Error(`the array ${name} was cut off`);
    const values = new Float32Array(count);
    for (let i = 0; i < count; i += 1) values[i] = view.getFloat32(offset + 4 * i, true);
    found[name] = { shape, values };
  }
  return found;
}

/** An array of uint8. @param {ArrayBuffer} body @param {ArrayEntry} of */
export function octets(body, { offset, shape }) {
  if (offset + size(shape) > body.byteLength) throw new Error("an array was cut off");
  return new Uint8Array(body, offset, size(shape));
}

/** A copy of some bytes. @param {ArrayBuffer} body @param {Bytes} of */
export function bytes(body, { offset, length }) {
  return body.slice(offset, offset + length);
}

/** @param {number[]} shape */
function size(shape) {
  return shape.reduce((product, side) => product * side, 1);
}

/** A JSON float as a number: NaN for null. @param {JsonFloat|null} value */
export function number(value) {
  return typeof value === "number" ? value : value === null ? NaN : Number(value);
}
