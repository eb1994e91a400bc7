// @ts-check
/** The server's binary answers: a length, a JSON text, then the parts one after the other. */

/**
 * @param {ArrayBuffer} buffer
 * @returns {{json: any, body: ArrayBuffer}} the JSON, and a copy of what follows it
 */
export function open(buffer) {
  const length = buffer.byteLength < 4 ? -1 : new DataView(buffer).getUint32(0, true);
  if (length < 0 || 4 + length > buffer.byteLength) {
    throw new Error(`the server's answer of ${buffer.byteLength} bytes was cut off`);
  }
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  return { json: JSON.parse(text), body: buffer.slice(4 + length) };
}

/**
 * Packed little-endian float32 arrays by name.
 * @param {ArrayBuffer} body
 * @param {{name: string, shape: number[]}[]} listed
 * @param {number} offset in bytes
 * @returns {Record<string, {shape: number[], values: Float32Array}>}
 */
export function arrays(body, listed, offset = 0) {
  /** @type {Record<string, {shape: number[], values: Float32Array}>} */
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

/** Numbers that JSON spells as words. @param {unknown} value @returns {number} */
export function number(value) {
  return typeof value === "number" ? value : value === null ? NaN : Number(value);
}
