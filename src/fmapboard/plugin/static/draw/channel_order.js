// @ts-check
/** In which order channels stand: by index, strength, change or likeness. */

/**
 * Channels from the highest score down; ties keep their index order, NaN (nothing finite) first.
 * @param {ArrayLike<number>} scores @returns {number[]}
 */
export function byScore(scores) {
  const score = (/** @type {number} */ c) => (Number.isNaN(scores[c]) ? Infinity : scores[c]);
  return Array.from({ length: scores.length }, (_, c) => c).sort((a, b) => {
    const [x, y] = [score(a), score(b)];
    return x === y ? a - b : y > x ? 1 : -1;
  });
}

/** Root mean square of each channel. @param {ArrayLike<number>} mean @param {ArrayLike<number>} std */
export function strengths(mean, std) {
  return Float64Array.from({ length: mean.length }, (_, c) => Math.hypot(mean[c], std[c]));
}

/**
 * How far each channel's mean moved over the kept steps, in its own standard deviations.
 * @param {ArrayLike<number>} mean [steps, channels] @param {ArrayLike<number>} std
 * @param {number} channels
 */
export function changes(mean, std, channels) {
  const total = new Float64Array(channels);
  for (let i = channels; i < mean.length; i += 1) {
    const before = i - channels;
    const moved = Math.abs(mean[i] - mean[before]) / (std[before] || Math.abs(mean[before]) || 1);
    if (Number.isFinite(moved)) total[i % channels] += moved;
  }
  return total;
}

const SIDE = 8;

/**
 * Each channel's picture shrunk to at most 8 × 8, a row of pixels to 64, less its mean, of length 1 (or 0 if it is flat).
 * @param {import("../data/decode.js").Planes} planes @returns {{vectors: Float32Array, length: number}}
 */
export function sketches(planes) {
  const { channels, height, width, levels } = planes;
  const rows = Math.min(SIDE, height);
  const across = Math.min(height === 1 ? SIDE * SIDE : SIDE, width);
  const length = rows * across;
  const vectors = new Float32Array(channels * length);
  for (let c = 0; c < channels; c += 1) {
    const to = c * length;
    for (let y = 0; y < height; y += 1) {
      const row = to + Math.floor((y * rows) / height) * across;
      const from = (c * height + y) * width;
      for (let x = 0; x < width; x += 1) {
        vectors[row + Math.floor((x * across) / width)] += levels[from + x];
      }
    }
    normalise(vectors.subarray(to, to + length));
  }
  return { vectors, length };
}

/** @param {Float32Array} vector */
function normalise(vector) {
  let sum = 0;
  for (const value of vector) sum += value;
  const mean = sum / vector.length;
  let square = 0;
  for (let i = 0; i < vector.length; i += 1) {
    vector[i] -= mean;
    square += vector[i] * vector[i];
  }
  const norm = Math.sqrt(square);
  for (let i = 0; i < vector.length; i += 1) vector[i] = norm > 1e-6 ? vector[i] / norm : 0;
}

/**
 * A walk from the strongest channel, each time to the most alike of those left; flat ones last.
 * @param {import("../data/decode.js").Planes} planes @param {ArrayLike<number>} strength
 * @returns {number[]}
 */
export function byLikeness(planes, strength) {
  const { vectors, length } = sketches(planes);
  const isFlat = (/** @type {number} */ c) => !vectors.subarray(c * length, (c + 1) * length).some(Boolean);
  const ranked = byScore(strength);
  const flat = ranked.filter(isFlat).sort((a, b) => a - b);
  const left = ranked.filter((c) => !isFlat(c));
  const order = [];
  let next = 0;
  while (left.length) {
    const [current] = left.splice(next, 1);
    order.push(current);
    next = mostAlike(vectors, length, current, left);
  }
  return [...order, ...flat];
}

/** Index in `left`. @param {Float32Array} vectors @param {number} length @param {number} current @param {number[]} left */
function mostAlike(vectors, length, current, left) {
  let best = 0;
  let highest = -Infinity;
  const own = current * length;
  for (let i = 0; i < left.length; i += 1) {
    const other = left[i] * length;
    let dot = 0;
    for (let k = 0; k < length; k += 1) dot += vectors[own + k] * vectors[other + k];
    if (dot > highest) [highest, best] = [dot, i];
  }
  return best;
}
