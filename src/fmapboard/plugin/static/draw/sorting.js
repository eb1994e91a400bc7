// @ts-check
/** The selected order of a layer's channels, the number that each is sorted by, and what it means. */

import { sideOf } from "../data/decoded_maps.js";
import {
  alongOrder,
  bySimilarity,
  byScore,
  meanChanges,
  recordedChanges,
  sketches,
  strengths,
  whyUnsorted,
} from "./channel_order.js";
import { short, stepText } from "./number_text.js";

/** @typedef {import("../data/decoded_maps.js").Maps} Maps */
/** @typedef {import("../state/compare.js").Question} Question */
/** @typedef {import("../state/state.js").State} State */
/** @typedef {import("./scene.js").History} History */

/**
 * @typedef {object} Sorting
 * @property {number[]} order all channels
 * @property {((channel: number) => string[])|null} texts the number that a channel is sorted by, the
 *   longest form first; null if the order is that of the index
 * @property {string} meaning of the order and its numbers; "" for the order of the index
 * @property {string} why the channels are not in the selected order, in words; "" if they are
 */

/**
 * A computed order, its numbers, and how they are written and explained.
 * @typedef {object} Found
 * @property {number[]} order
 * @property {ArrayLike<number>} values of each channel
 * @property {string} before the number, such as "RMS "
 * @property {string} after the number, such as " std"
 * @property {string} meaning
 */

/**
 * @param {State} state @param {Maps|null} maps of the step that the order is computed from
 * @param {Question} question @param {History|null} history @param {number} channels
 * @returns {Sorting}
 */
export function sorting(state, maps, question, history, channels) {
  const index = Array.from({ length: channels }, (_, c) => c);
  const plain = { order: index, texts: null, meaning: "" };
  if (state.sort === "index") return { ...plain, why: "" };
  if (state.sort === "change") {
    const why = whyUnsorted(question.role, history, channels);
    const found = why ? null : byChange(question.role, history);
    return found ? completed(found, channels) : { ...plain, why };
  }
  if (!maps) return { ...plain, why: "" }; // it is being loaded
  const found =
    state.sort === "strength"
      ? byStrength(maps, question.role)
      : bySimilar(maps, question, channels);
  const what = state.sort === "strength" ? "strength" : "similarity";
  const why = `${what}: no statistics of the channels are recorded, so they are in order of their index`;
  return found ? completed(found, channels) : { ...plain, why };
}

/** @param {Found} found @param {number} channels @returns {Sorting} */
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

/** @param {string} role @param {History|null} history @returns {Found|null} */
function byChange(role, history) {
  const changes = recordedChanges(role, history);
  if (!changes || !history) return null;
  const channels = changes.shape[1];
  const ofMaps = changes === history.arrays[`${role}.change`];
  const values = meanChanges(changes.values, channels);
  const at = history.steps.filter((_, i) =>
    changes.values.subarray(i * channels, (i + 1) * channels).some(Number.isFinite),
  );
  const steps = at.length
    ? `${at.length} logged step${at.length > 1 ? "s" : ""}, ${stepText(at[0])} to ${stepText(at[at.length - 1])}`
    : "no logged step";
  const amount = ofMaps
    ? `how far the channel's ${named(role)} of the probe moved since the logged step before, in standard deviations (std) of the earlier ones`
    : "how far the channel's weights moved since the logged step before, in percent of their norm";
  return {
    order: byScore(values),
    values: ofMaps ? values : values.map((value) => 100 * value),
    before: "Δ ",
    after: ofMaps ? " std" : " %",
    meaning: `Sorted by change, the largest first. Δ: ${amount}; mean over ${steps}.`,
  };
}

/** @param {Maps} maps @param {string} role */
function rms(maps, role) {
  const mean = maps.arrays[`${role}.mean`];
  const std = maps.arrays[`${role}.std`];
  return mean && std ? strengths(mean.values, std.values) : null;
}

/** @param {Maps} maps @param {string} role @returns {Found|null} */
function byStrength(maps, role) {
  const values = rms(maps, role);
  return (
    values && {
      order: byScore(values),
      values,
      before: "RMS ",
      after: "",
      meaning:
        "Sorted by strength, the strongest first. RMS: root mean square of the channel's " +
        `${named(role)}, in their own unit, over the whole batch at step ${stepText(maps.step)}.`,
    }
  );
}

/** Computed likenesses of each record, by role and sample. @type {WeakMap<Maps, Map<string, Near>>} */
const held = new WeakMap();

/** @typedef {{order: number[], vectors: Float32Array, length: number}} Near */

/** @param {Maps} maps @param {string} role @param {number} sample @returns {Near|null} */
function near(maps, role, sample) {
  const key = `${role}/${sample}`;
  const known = held.get(maps) ?? new Map();
  held.set(maps, known);
  const strength = rms(maps, role);
  const side = sideOf(maps, role, sample);
  if (!strength || !side) return null;
  if (!known.has(key)) {
    const sketched = sketches(side.planes);
    known.set(key, { order: bySimilarity(sketched, strength), ...sketched });
  }
  return known.get(key) ?? null;
}

/**
 * @param {Maps} maps @param {Question} question @param {number} channels @returns {Found|null}
 */
function bySimilar(maps, { role, sample }, channels) {
  const found = near(maps, role, sample);
  if (!found) return null;
  const order = found.order.filter((c) => c < channels);
  return {
    order,
    values: alongOrder(found, order),
    before: "r ",
    after: "",
    meaning:
      `Sorted by similarity of the ${named(role)} of sample ${sample} at step ${stepText(maps.step)}: ` +
      "the strongest channel first, then the most similar one of those left. r: correlation with " +
      "the channel before, of maps shrunk to at most 8×8 px.",
  };
}
