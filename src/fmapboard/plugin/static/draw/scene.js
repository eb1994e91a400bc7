// @ts-check
/** Everything a picture of one layer needs, worked out before anything is drawn. */

import { pictureOf, sideOf } from "../data/decoded_maps.js";
import { byLikeness, byScore, changes, strengths } from "./channel_order.js";
import { difference, ranges } from "./value_scale.js";

/**
 * @typedef {import("../data/decoded_maps.js").Maps} Maps
 * @typedef {import("./value_scale.js").Side} Side
 * @typedef {import("../state/compare.js").Question} Question
 * @typedef {{steps: number[], arrays: Record<string, {shape: number[], values: Float32Array}>}} History
 */

/**
 * @typedef {object} Scene
 * @property {"maps"|"kernels"|"none"} kind
 * @property {string} why nothing can be drawn, in words; "" otherwise
 * @property {Question} question
 * @property {Question|null} otherQuestion
 * @property {Maps} maps
 * @property {Maps|null} otherMaps
 * @property {any} picture header of the picture
 * @property {Side|null} a
 * @property {Side|null} b
 * @property {import("./value_scale.js").Difference|null} difference
 * @property {import("./value_scale.js").Ranges} ranges of both sides
 * @property {import("./value_scale.js").Ranges} differenceRanges
 * @property {number} channels
 * @property {number[]} order channels as they stand
 * @property {boolean} zeroCentred
 * @property {boolean} rows sequences, a row of pixels per channel
 * @property {boolean} wholeLayer one scale for all channels, chosen so or stored so
 * @property {string[]} parts of a cell: "a", "b", "difference"
 */

const NO_RANGES = { lo: new Float64Array(0), hi: new Float64Array(0) };

/**
 * @param {{state: import("../state/state.js").State, question: Question, otherQuestion: Question|null,
 *   maps: Maps, otherMaps: Maps|null, history: History|null, sortMaps: Maps|null}} from
 * @returns {Scene}
 */
export function buildScene({ state, question, otherQuestion, maps, otherMaps, history, sortMaps }) {
  const picture = pictureOf(maps, question.role);
  /** @type {Scene} */
  const scene = {
    kind: "none", why: "", question, otherQuestion, maps, otherMaps, picture, a: null, b: null,
    difference: null, ranges: NO_RANGES, differenceRanges: NO_RANGES, channels: 0, order: [],
    zeroCentred: state.colours === "signed", rows: picture?.layout === "rows",
    wholeLayer: state.scale === "layer" || storedForLayer(picture), parts: ["a"],
  };
  if (question.role === "kernels" && maps.kernels) return { ...scene, kind: "kernels" };
  const a = sideOf(maps, question.role, question.sample);
  if (!a) return { ...scene, why: whyNot(maps, question) };
  const b = otherMaps && otherQuestion ? sideOf(otherMaps, otherQuestion.role, otherQuestion.sample) : null;
  const channels = b ? Math.min(a.planes.channels, b.planes.channels) : a.planes.channels;
  const between = b ? difference(a, b) : null;
  const ordered = order(state, sortMaps, question, history).filter((c) => c < channels);
  const known = new Set(ordered);
  for (let c = 0; c < channels; c += 1) if (!known.has(c)) ordered.push(c);
  return {
    ...scene, kind: "maps", a, b, channels, difference: between, order: ordered,
    why: b && !between ? "the two sides differ in size: no difference" : "",
    ranges: sceneRanges(state, question, a, b, history, channels),
    differenceRanges: between ? differenceRanges(state, between, channels) : NO_RANGES,
    parts: parts(state.show, Boolean(b), Boolean(between)),
  };
}

/** Is the stored scale the layer's, as that of maps of one pixel always is? @param {any} picture */
function storedForLayer(picture) {
  return picture?.scale === "layer" || Boolean(picture?.tile && picture.tile[0] * picture.tile[1] === 1);
}

/** @param {string} show @param {boolean} other @param {boolean} between */
function parts(show, other, between) {
  if (!other) return ["a"];
  if (!between || show === "both") return ["a", "b"];
  return show === "difference" ? ["difference"] : ["a", "b", "difference"];
}

/** @param {Maps} maps @param {Question} question */
function whyNot(maps, question) {
  if (maps.missing.includes(question.role)) {
    return "TensorBoard no longer keeps this picture at this step. Start it with " +
      "`fmapboard serve` or --samples_per_plugin images=1000 to keep more.";
  }
  if (!pictureOf(maps, question.role)) return "not logged for this layer at this step";
  return `no picture of sample ${question.sample}`;
}

/**
 * @param {import("../state/state.js").State} state @param {Question} question
 * @param {Side} a @param {Side|null} b @param {History|null} history @param {number} channels
 */
function sceneRanges(state, question, a, b, history, channels) {
  const head = (/** @type {Side} */ side) => ({
    lo: Array.prototype.slice.call(side.lo, 0, channels),
    hi: Array.prototype.slice.call(side.hi, 0, channels),
  });
  const sources = b ? [head(a), head(b)] : [head(a)];
  // Only sample 0 has its own scale at every step; the whole batch's extremes hold any other.
  const [least, most] = question.sample === 0 ? ["lo", "hi"] : ["minimum", "maximum"];
  const lo = history?.arrays[`${question.role}.${least}`];
  const hi = history?.arrays[`${question.role}.${most}`];
  const ofAll = lo?.shape[1] ?? 0;
  if (state.locked && lo && hi && ofAll === channels) sources.push({ lo: [...lo.values], hi: [...hi.values] });
  return ranges(channels, sources, { scale: state.scale, zeroCentred: state.colours === "signed" });
}

/** @param {import("../state/state.js").State} state @param {import("./value_scale.js").Difference} between @param {number} channels */
function differenceRanges(state, between, channels) {
  const peak = [...between.peak.subarray(0, channels)];
  return ranges(channels, [{ lo: peak.map((p) => -p), hi: peak }], { scale: state.scale, zeroCentred: true });
}

/** @type {WeakMap<Maps, Map<string, number[]>>} */
const orders = new WeakMap();

/**
 * @param {import("../state/state.js").State} state @param {Maps|null} maps at the step of the order
 * @param {Question} question @param {History|null} history @returns {number[]}
 */
function order(state, maps, question, history) {
  const { role, sample } = question;
  if (state.sort === "change") {
    const mean = history?.arrays[`${role}.mean`];
    const std = history?.arrays[`${role}.std`];
    return mean && std ? byScore(changes(mean.values, std.values, mean.shape[1])) : [];
  }
  if (!maps || state.sort === "index") return [];
  const key = `${state.sort}/${role}/${sample}`;
  const held = orders.get(maps) ?? new Map();
  orders.set(maps, held);
  if (!held.has(key)) held.set(key, measured(state.sort, maps, role, sample));
  return held.get(key) ?? [];
}

/** @param {string} sort @param {Maps} maps @param {string} role @param {number} sample @returns {number[]} */
function measured(sort, maps, role, sample) {
  const mean = maps.arrays[`${role}.mean`];
  const std = maps.arrays[`${role}.std`];
  if (!mean || !std) return [];
  const strength = strengths(mean.values, std.values);
  const side = sort === "similarity" ? sideOf(maps, role, sample) : null;
  return side ? byLikeness(side.planes, strength) : byScore(strength);
}

/**
 * @typedef {object} Flags of one channel
 * @property {number} nan
 * @property {number} positive
 * @property {number} negative
 * @property {boolean} constant
 * @property {boolean} dead
 */

/** @param {Maps} maps @param {string} role @param {number} channel @returns {Flags} */
export function flags(maps, role, channel) {
  const of = (/** @type {string} */ name) => maps.arrays[name]?.values[channel] ?? 0;
  const dead = of(`${role}.dead`) > 0 || (role === "feature_maps" && of("activation.dead") > 0);
  return {
    nan: of(`${role}.nan`), positive: of(`${role}.positive_infinity`),
    negative: of(`${role}.negative_infinity`), constant: of(`${role}.constant`) > 0, dead,
  };
}

/** The loudest of them in a word, with the mark it is drawn as. @param {Flags} of */
export function loudest(of) {
  if (of.nan) return { word: "NaN", mark: 251 };
  if (of.positive) return { word: "+Inf", mark: 252 };
  if (of.negative) return { word: "−Inf", mark: 253 };
  if (of.dead) return { word: "dead", mark: 255 };
  if (of.constant) return { word: "const", mark: 254 };
  return null;
}
