// @ts-check
/** The server's binary answers: the length of a JSON text, the text, then the packed parts. */

/**
 * @template T
 * @typedef {{json: T, body: ArrayBuffer}} Container the JSON, and a copy of the bytes behind it
 */

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
 * Packed little-endian float32 arrays, by name.
 * @param {ArrayBuffer} body @param {import("./answers.js").ArrayEntry[]} listed
 * @param {number} offset in bytes @returns {NamedArrays}
 */
export function arrays(body, listed, offset = 0) {
  /** @type {NamedArrays} */
  const found = Object.create(null);
  const view = new DataView(body);
  let at = offset;
  for (const { name, shape } of listed) {
    const count = shape.reduce((product, side) => product * side, 1);
    if (at + 4 * count > body.byteLength) throw new Error(`the array ${name} was cut off`);
    const values = new Float32Array(count);
    for (let i = 0; i < count; i += 1) values[i] = view.getFloat32(at + 4 * i, true);
    found[name] = { shape, values };
    at += 4 * count;
  }
  return found;
}

/** Bytes that the arrays take. @param {import("./answers.js").ArrayEntry[]} listed */
export function sizeOf(listed) {
  return listed.reduce((sum, { shape }) => sum + 4 * shape.reduce((a, side) => a * side, 1), 0);
}

/**
 * A JSON float as a number: NaN for null, and "NaN" and "Infinity" as what they spell.
 * @param {import("./answers.js").JsonFloat|null} value
 */
export function number(value) {
  return typeof value === "number" ? value : value === null ? NaN : Number(value);
}
