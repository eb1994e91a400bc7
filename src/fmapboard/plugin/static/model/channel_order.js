// @ts-check
/** Orders of channels: by index, strength, change or similarity. */

import { counted, short, stepText } from "./words.js";
import { once } from "../server/cache.js";
import { sideOf } from "../server/decode.js";

/** @import {Maps, Planes} from "../server/server.js" */
/** @import {FoundOrder, History, Question, Sketches, Sorting, State} from "./model.js" */

/**
 * Channels by descending score; NaN (no finite value) first, ties by index.
 * @param {ArrayLike<number>} scores
 */
export function byScore(scores) {
  const score = (/** @type {number} */ c) => (Number.isNaN(scores[c]) ? Infinity : scores[c]);
  return Array.from({ length: scores.length }, (_, c) => c).sort((a, b) => {
    const [x, y] = [score(a), score(b)];
    return x === y ? a - b : y > x ? 1 : -1;
  });
}

/** Root mean square per channel. @param {ArrayLike<number>} mean @param {ArrayLike<number>} std */
export function strengths(mean, std) {
  return Float64Array.from({ length: mean.length }, (_, c) => Math.hypot(mean[c], std[c]));
}

/**
 * Mean of the finite recorded changes per channel.
 * @param {ArrayLike<number>} changes @param {number} channels
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
 * Each channel as at most 64 numbers, minus their mean, of length 1; all 0 if it is flat.
 * @param {Planes} planes
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

/** @param {Sketches} sketched @param {number} channel */
function isFlat({ vectors, length }, channel) {
  return !vectors.subarray(channel * length, (channel + 1) * length).some(Boolean);
}

/**
 * Begins at the strongest channel; flat ones come last.
 * @param {Sketches} sketched @param {ArrayLike<number>} strength
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
    const likeness = left.map((other) => correlation(sketched, current, other));
    next = likeness.indexOf(likeness.reduce((a, b) => Math.max(a, b), -Infinity));
  }
  return [...order, ...flat];
}

/**
 * Correlation of each channel with the one before; NaN if flat.
 * @param {Sketches} sketched @param {number[]} order
 */
export function alongOrder(sketched, order) {
  const { vectors, length } = sketched;
  const values = new Float64Array(vectors.length / length).fill(NaN);
  for (let i = 1; i < order.length; i += 1) {
    const [before, now] = [order[i - 1], order[i]];
    if (isFlat(sketched, before) || isFlat(sketched, now)) continue;
    values[now] = correlation(sketched, before, now);
  }
  return values;
}

/** @param {Sketches} sketched @param {number} a @param {number} b channels */
function correlation({ vectors, length }, a, b) {
  let dot = 0;
  for (let k = 0; k < length; k += 1) dot += vectors[a * length + k] * vectors[b * length + k];
  return dot;
}

/**
 * Changes [steps, channels] of a role's maps, else of the weights.
 * @param {string} role @param {History|null} history
 */
export function recordedChanges(role, history) {
  const ofMaps = history?.arrays[`${role}.change`];
  return ofMaps ?? (role === "feature_maps" ? history?.arrays["weights.change"] : undefined);
}

// The selected order of a layer's channels, the number that each is sorted by, and what it means.

/**
 * @param {State} state @param {Maps|null} maps of the step that the order is computed from
 * @param {Question} question @param {History|null} history @param {number} channels
 * @returns {Sorting}
 */
export function sorting(state, maps, question, history, channels) {
  const plain = { order: [...Array(channels).keys()], texts: null, meaning: "" };
  if (state.sort === "index") return { ...plain, why: "" };
  if (state.sort === "change") {
    const found = history ? byChange(question.role, history, channels) : "";
    return typeof found === "string" ? { ...plain, why: found } : completed(found, channels);
  }
  if (!maps) return { ...plain, why: "" }; // it is being loaded
  const by = state.sort === "strength" ? byStrength : bySimilar;
  const found = by(maps, question, channels);
  const why =
    `${state.sort}: no statistics of the channels are recorded, so they are in order ` +
    `of their index`;
  return found ? completed(found, channels) : { ...plain, why };
}

/** @param {FoundOrder} found @param {number} channels @returns {Sorting} */
function completed({ order, values, before, after, meaning }, channels) {
  const known = new Set(order);
  const rest = Array.from({ length: channels }, (_, c) => c).filter((c) => !known.has(c));
  const texts = (/** @type {number} */ c) => {
    const value = values[c] ?? NaN;
    return [`${before}${short(value)}${after}`, `${short(value, 2)}${after}`, short(value, 2)];
  };
  const inGrid = order.filter((c) => c < channels);
  return { order: [...inGrid, ...rest], texts, meaning, why: "" };
}

/** What a role's values are called. @param {string} role */
function named(role) {
  if (role === "inputs") return "inputs";
  return role === "gradients_of_maps" ? "gradients" : "maps";
}

/**
 * The order, or why there is none.
 * @param {string} role @param {History} history @param {number} layerChannels
 */
function byChange(role, history, layerChannels) {
  const changes = recordedChanges(role, history);
  if (!changes) return "change: not recorded, so the channels are in order of their index";
  const channels = changes.shape[1];
  if (channels === 1 && layerChannels > 1)
    return "change: recorded for the whole layer only, so the channels are in order of their index";
  const ofMaps = changes === history.arrays[`${role}.change`];
  const values = meanChanges(changes.values, channels);
  const at = history.steps.filter((_, i) =>
    changes.values.subarray(i * channels, (i + 1) * channels).some(Number.isFinite),
  );
  const steps = at.length
    ? `${counted(at.length, "logged step")}, ${stepText(at[0])} to ${stepText(at[at.length - 1])}`
    : "no logged step";
  const amount = ofMaps
    ? `how far the channel's ${named(role)} of the probe moved since the logged step before, in ` +
      `standard deviations (std) of the earlier ones`
    : "how far the channel's weights moved since the logged step before, in percent of their norm";
  const meaning = `Sorted by change, the largest first. Δ: ${amount}; mean over ${steps}.`;
  const shown = ofMaps ? values : values.map((value) => 100 * value);
  const after = ofMaps ? " std" : " %";
  return { order: byScore(values), values: shown, before: "Δ ", after, meaning };
}

/** @param {Maps} maps @param {string} role */
function rms(maps, role) {
  const mean = maps.arrays[`${role}.mean`];
  const std = maps.arrays[`${role}.std`];
  return mean && std ? strengths(mean.values, std.values) : null;
}

/** @param {Maps} maps @param {Question} question @returns {FoundOrder|null} */
function byStrength(maps, { role }) {
  const values = rms(maps, role);
  const meaning =
    "Sorted by strength, the strongest first. RMS: root mean square of the channel's " +
    `${named(role)}, in their own unit, over the whole batch at step ${stepText(maps.step)}.`;
  return values && { order: byScore(values), values, before: "RMS ", after: "", meaning };
}

/** Similarities of the planes of each record, null where they are not known. */
const near = once((/** @type {Maps} */ maps) => {
  /** @type {Map<Planes, ReturnType<typeof similarities>>} */
  const known = new Map();
  return (/** @type {string} */ role, /** @type {number} */ sample) => {
    const side = sideOf(maps, role, sample);
    const strength = side && rms(maps, role);
    if (!strength) return null;
    if (!known.has(side.planes)) known.set(side.planes, similarities(side.planes, strength));
    return known.get(side.planes) ?? null;
  };
});

/** @param {Planes} planes @param {Float64Array} strength */
function similarities(planes, strength) {
  const sketched = sketches(planes);
  return sketched && { order: bySimilarity(sketched, strength), ...sketched };
}

/**
 * @param {Maps} maps @param {Question} question @param {number} channels
 * @returns {FoundOrder|null}
 */
function bySimilar(maps, { role, sample }, channels) {
  const found = near(maps)(role, sample);
  if (!found) return null;
  const order = found.order.filter((c) => c < channels);
  const meaning =
    `Sorted by similarity of the ${named(role)} of sample ${sample} at step ` +
    `${stepText(maps.step)}: ` +
    "the strongest channel first, then the most similar one of those left. r: correlation with " +
    "the channel before, of maps shrunk to at most 8×8 px.";
  return { order, values: alongOrder(found, order), before: "r ", after: "", meaning };
}
