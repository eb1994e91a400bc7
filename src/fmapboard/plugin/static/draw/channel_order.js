// @ts-check
/** Orders of channels: by index, strength, change or similarity. */

/** @typedef {import("../data/decode.js").Planes} Planes */
/** @typedef {import("./scene.js").History} History */

/**
 * Channels by descending score; NaN (no finite value) first, ties by index.
 * @param {ArrayLike<number>} scores @returns {number[]}
 */
export function byScore(scores) {
  const score = (/** @type {number} */ c) => (Number.isNaN(scores[c]) ? Infinity : scores[c]);
  return Array.from({ length: scores.length }, (_, c) => c).sort((a, b) => {
    const [x, y] = [score(a), score(b)];
    return x === y ? a - b : y > x ? 1 : -1;
  });
}

/**
 * Root mean square of each channel.
 * @param {ArrayLike<number>} mean @param {ArrayLike<number>} std
 */
export function strengths(mean, std) {
  return Float64Array.from({ length: mean.length }, (_, c) => Math.hypot(mean[c], std[c]));
}

/**
 * Mean recorded change of each channel over the kept steps; steps without a finite one are left
 * out, and a channel that has none is 0.
 * @param {ArrayLike<number>} changes [steps, channels] @param {number} channels
 */
export function meanChanges(changes, channels) {
  const total = new Float64Array(channels);
  const count = new Float64Array(channels);
  for (let i = 0; i < changes.length; i += 1) {
    if (!Number.isFinite(changes[i])) continue;
    total[i % channels] += changes[i];
    count[i % channels] += 1;
  }
  return total.map((sum, c) => sum / (count[c] || 1));
}

const SIDE = 8;

/**
 * Each channel shrunk to at most 8 × 8 px (1 × 64 for sequences), minus its mean, normalized to
 * length 1; all 0 for a flat channel.
 * @param {Planes} planes @returns {{vectors: Float32Array, length: number}}
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
    normalize(vectors.subarray(to, to + length));
  }
  return { vectors, length };
}

/** @param {Float32Array} vector */
function normalize(vector) {
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

/** @typedef {{vectors: Float32Array, length: number}} Sketches of all channels, see `sketches` */

/** @param {Sketches} sketched @param {number} channel */
function isFlat({ vectors, length }, channel) {
  return !vectors.subarray(channel * length, (channel + 1) * length).some(Boolean);
}

/**
 * Starts at the strongest channel and continues with the most similar remaining one; flat channels
 * come last.
 * @param {Sketches} sketched @param {ArrayLike<number>} strength @returns {number[]}
 */
export function bySimilarity(sketched, strength) {
  const { vectors, length } = sketched;
  const ranked = byScore(strength).filter((c) => (c + 1) * length <= vectors.length);
  const flat = ranked.filter((c) => isFlat(sketched, c)).sort((a, b) => a - b);
  const left = ranked.filter((c) => !isFlat(sketched, c));
  const order = [];
  let next = 0;
  while (left.length) {
    const [current] = left.splice(next, 1);
    order.push(current);
    next = mostSimilar(vectors, length, current, left);
  }
  return [...order, ...flat];
}

/**
 * Correlation of each channel with the one before it in an order; NaN for the first one and next
 * to a flat one.
 * @param {Sketches} sketched @param {number[]} order
 */
export function alongOrder(sketched, order) {
  const { vectors, length } = sketched;
  const values = new Float64Array(vectors.length / length).fill(NaN);
  for (let i = 1; i < order.length; i += 1) {
    const [before, now] = [order[i - 1], order[i]];
    if (isFlat(sketched, before) || isFlat(sketched, now)) continue;
    let dot = 0;
    for (let k = 0; k < length; k += 1) {
      dot += vectors[before * length + k] * vectors[now * length + k];
    }
    values[now] = dot;
  }
  return values;
}

/**
 * Index in `left` of the channel most similar to `current`.
 * @param {Float32Array} vectors @param {number} length of a vector
 * @param {number} current @param {number[]} left
 */
function mostSimilar(vectors, length, current, left) {
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

/**
 * Recorded changes [steps, channels] of a role's maps, otherwise of the layer's weights.
 * @param {string} role @param {History|null} history
 */
export function recordedChanges(role, history) {
  const ofMaps = history?.arrays[`${role}.change`];
  return ofMaps ?? (role === "feature_maps" ? history?.arrays["weights.change"] : undefined);
}

/**
 * Why channels are not sorted by change, in words.
 * @param {string} role @param {History|null} history @param {number} channels
 */
export function whyUnsorted(role, history, channels) {
  if (!history) return "";
  const changes = recordedChanges(role, history);
  if (!changes) return "change: not recorded, so the channels are in order of their index";
  if (changes.shape[1] > 1 || channels === 1) return "";
  return "change: recorded for the whole layer only, so the channels are in order of their index";
}
