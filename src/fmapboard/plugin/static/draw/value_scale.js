// @ts-check
/** Which value is drawn in which colour: ranges of channels, and tables from level to colour. */

/**
 * @typedef {object} Ranges
 * @property {Float64Array} lo a channel
 * @property {Float64Array} hi a channel
 */

/**
 * The range of each channel over several sources (two sides of a comparison, all steps).
 * @param {number} channels
 * @param {{lo: ArrayLike<number>, hi: ArrayLike<number>}[]} sources arrays of k · channels values
 * @param {{scale: string, zeroCentred: boolean}} how
 * @returns {Ranges}
 */
export function ranges(channels, sources, how) {
  const lo = new Float64Array(channels).fill(Infinity);
  const hi = new Float64Array(channels).fill(-Infinity);
  for (const source of sources) {
    const count = source.lo.length;
    for (let i = 0; i < count; i += 1) {
      const c = i % channels;
      if (Number.isFinite(source.lo[i])) lo[c] = Math.min(lo[c], source.lo[i]);
      if (Number.isFinite(source.hi[i])) hi[c] = Math.max(hi[c], source.hi[i]);
    }
  }
  if (how.scale === "layer") {
    lo.fill(lo.reduce((a, b) => Math.min(a, b), Infinity));
    hi.fill(hi.reduce((a, b) => Math.max(a, b), -Infinity));
  }
  for (let c = 0; c < channels; c += 1) {
    if (lo[c] > hi[c]) lo[c] = hi[c] = 0; // no finite value at all
    if (how.zeroCentred) {
      hi[c] = Math.max(Math.abs(lo[c]), Math.abs(hi[c]));
      lo[c] = -hi[c];
    }
  }
  return { lo, hi };
}

/** Place of a value in a range, 0…1; a range without width puts all in its middle. @param {number} value @param {number} lo @param {number} hi */
export function place(value, lo, hi) {
  if (!(hi > lo)) return 0.5;
  return Math.min(1, Math.max(0, (value - lo) / (hi - lo)));
}

/**
 * The colour of each stored level of a channel.
 * @param {number} lo value of level 0 @param {number} hi value of level 255
 * @param {number} rangeLo drawn first colour @param {number} rangeHi drawn last colour
 * @param {Uint32Array} colours 256 @param {Uint32Array} into 256
 */
export function levelColours(lo, hi, rangeLo, rangeHi, colours, into) {
  const span = (Number.isFinite(hi - lo) ? hi - lo : 0) / 255;
  const start = Number.isFinite(lo) ? lo : 0;
  for (let level = 0; level < 256; level += 1) {
    into[level] = colours[Math.round(255 * place(start + span * level, rangeLo, rangeHi))];
  }
  return into;
}

/**
 * @typedef {object} Difference A − B of two sides, channel by channel
 * @property {number} channels
 * @property {number} height
 * @property {number} width
 * @property {Float32Array} values NaN where a mark stands
 * @property {Uint8Array} marks
 * @property {Float64Array} peak largest magnitude of a channel
 */

/**
 * @typedef {{planes: import("../data/decode.js").Planes, lo: ArrayLike<number>, hi: ArrayLike<number>}} Side
 */

/**
 * A − B; null where their tiles differ in size.
 * @param {Side} a @param {Side} b @returns {Difference|null}
 */
export function difference(a, b) {
  const { height, width } = a.planes;
  if (height !== b.planes.height || width !== b.planes.width) return null;
  const channels = Math.min(a.planes.channels, b.planes.channels);
  const size = height * width;
  const values = new Float32Array(channels * size);
  const marks = new Uint8Array(values.length);
  const peak = new Float64Array(channels);
  for (let c = 0; c < channels; c += 1) {
    const unitA = (a.hi[c] - a.lo[c]) / 255;
    const unitB = (b.hi[c] - b.lo[c]) / 255;
    for (let i = c * size; i < (c + 1) * size; i += 1) {
      const mark = badMark(a.planes.marks, i) || badMark(b.planes.marks, i);
      if (mark) {
        marks[i] = mark;
        values[i] = NaN;
        continue;
      }
      const value = a.lo[c] + unitA * a.planes.levels[i] - (b.lo[c] + unitB * b.planes.levels[i]);
      values[i] = value;
      if (Math.abs(value) > peak[c]) peak[c] = Math.abs(value);
    }
  }
  return { channels, height, width, values, marks, peak };
}

/** NaN and infinities; a constant or dead channel has a value. @param {Uint8Array|null} marks @param {number} i */
function badMark(marks, i) {
  const mark = marks ? marks[i] : 0;
  return mark >= 251 && mark <= 253 ? mark : 0;
}
