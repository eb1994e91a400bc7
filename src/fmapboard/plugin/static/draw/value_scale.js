// @ts-check
/** Maps values to colours: ranges of channels, and tables from level to colour. */

/**
 * The drawn range of each channel.
 * @typedef {{lo: Float64Array, hi: Float64Array}} Ranges
 */

/**
 * The range of each channel over several sources (two sides of a comparison, all steps).
 * @param {number} channels
 * @param {{lo: ArrayLike<number>, hi: ArrayLike<number>}[]} sources each of [k, channels] values
 * @param {{scale: import("../state/state.js").Scale, zeroCentred: boolean}} how
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
    if (lo[c] > hi[c]) lo[c] = hi[c] = 0; // no finite value
    if (how.zeroCentred) {
      hi[c] = Math.max(Math.abs(lo[c]), Math.abs(hi[c]));
      lo[c] = -hi[c];
    }
  }
  return { lo, hi };
}

/**
 * Position of a value in a range, 0…1; always 0.5 in a range without width.
 * @param {number} value @param {number} lo @param {number} hi
 */
export function place(value, lo, hi) {
  if (!(hi > lo)) return 0.5;
  return Math.min(1, Math.max(0, (value - lo) / (hi - lo)));
}

/**
 * Colours of the 256 stored levels of a channel.
 * @param {number} lo value of level 0 @param {number} hi value of level 255
 * @param {number} rangeLo value of the first colour @param {number} rangeHi value of the last
 * @param {Uint32Array} colours 256 @param {Uint32Array} into 256, overwritten
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
 * A − B of two sides, channel by channel.
 * @typedef {object} Difference
 * @property {number} channels
 * @property {number} height
 * @property {number} width
 * @property {Float32Array} values [channels, height, width], NaN where marked
 * @property {Uint8Array} marks [channels, height, width]
 * @property {Float64Array} peak largest magnitude of each channel, NaN if it has no finite value
 */

/**
 * One side of a comparison: its maps, and the values of level 0 and 255 of each channel.
 * @typedef {object} Side
 * @property {import("../data/decode.js").Planes} planes
 * @property {ArrayLike<number>} lo
 * @property {ArrayLike<number>} hi
 */

/**
 * A − B; null if their maps differ in size.
 * @param {Side} a @param {Side} b @returns {Difference|null}
 */
export function difference(a, b) {
  const { height, width } = a.planes;
  if (height !== b.planes.height || width !== b.planes.width) return null;
  const channels = Math.min(a.planes.channels, b.planes.channels);
  const size = height * width;
  const values = new Float32Array(channels * size);
  const marks = new Uint8Array(values.length);
  const peak = new Float64Array(channels).fill(NaN);
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
      if (!(Math.abs(value) <= peak[c])) peak[c] = Math.abs(value);
    }
  }
  return { channels, height, width, values, marks, peak };
}

/**
 * The mark of NaN or an infinity, otherwise 0: a constant or dead channel has a value.
 * @param {Uint8Array|null} marks @param {number} i
 */
function badMark(marks, i) {
  const mark = marks ? marks[i] : 0;
  return mark >= 251 && mark <= 253 ? mark : 0;
}
