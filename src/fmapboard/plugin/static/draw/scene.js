// @ts-check
/** Computes everything that a picture of one layer needs, before anything is drawn. */

import { pictureOf, sideOf } from "../data/decoded_maps.js";
import {
  bySimilarity,
  byScore,
  meanChanges,
  recordedChanges,
  strengths,
  whyUnsorted,
} from "./channel_order.js";
import { FAULT_COLOURS, LARGE, MARK, MARK_COLOURS, css } from "./palettes.js";
import { differencePeaks, mainColumn, otherColumn, parts, whyNot } from "./scene_columns.js";
import { ranges } from "./value_scale.js";

/** @typedef {import("../data/answers.js").KernelsPicture} KernelsPicture */
/** @typedef {import("../data/answers.js").MapsPicture} MapsPicture */
/** @typedef {import("../data/answers.js").Picture} Picture */
/** @typedef {import("../data/decoded_maps.js").Maps} Maps */
/** @typedef {import("../state/compare.js").Question} Question */
/** @typedef {import("../state/state.js").State} State */
/** @typedef {import("./scene_columns.js").ColumnSource} ColumnSource */
/** @typedef {import("./scene_columns.js").Part} Part */
/** @typedef {import("./scene_columns.js").SceneColumn} SceneColumn */
/** @typedef {import("./value_scale.js").Ranges} Ranges */
/** @typedef {import("./value_scale.js").Side} Side */

/**
 * A layer's per-channel numbers over the kept steps; the arrays are [steps, channels].
 * @typedef {{steps: number[], arrays: import("../data/container.js").NamedArrays}} History
 */

/**
 * @typedef {object} SceneBase
 * @property {string} why nothing, or not all, can be drawn, in words; "" otherwise
 * @property {Question} question of the main column
 * @property {Maps} maps of the main column
 * @property {Picture|null} picture header of the picture
 * @property {Side|null} a the maps of the main column
 * @property {SceneColumn[]} columns the main one first; empty unless maps are drawn
 * @property {Ranges} ranges of all columns
 * @property {Ranges} differenceRanges of all differences
 * @property {number} channels
 * @property {number[]} order channels in the order they are drawn in
 * @property {boolean} zeroCentred
 * @property {boolean} rows sequences: a row of pixels per channel
 * @property {boolean} wholeLayer one scale for all channels, selected here or used when logging
 * @property {Part[]} parts of a cell
 */

/** @typedef {SceneBase & {kind: "maps", picture: MapsPicture, a: Side}} MapsScene */

/**
 * @typedef {SceneBase & {kind: "kernels", picture: KernelsPicture|null, kernels: ImageBitmap}
 *   } KernelsScene
 */

/** @typedef {SceneBase & {kind: "none"}} EmptyScene */
/** @typedef {MapsScene|KernelsScene|EmptyScene} Scene */

const NO_RANGES = { lo: new Float64Array(0), hi: new Float64Array(0) };

/**
 * @param {{state: State, question: Question, maps: Maps, others: ColumnSource[],
 *   history: History|null, sortMaps: Maps|null}} from
 * @returns {Scene}
 */
export function buildScene({ state, question, maps, others, history, sortMaps }) {
  const picture = pictureOf(maps, question.role);
  const isKernels = picture?.role === "kernels";
  /** @type {SceneBase} */
  const scene = {
    why: "",
    question,
    maps,
    picture,
    a: null,
    columns: [],
    ranges: NO_RANGES,
    differenceRanges: NO_RANGES,
    channels: 0,
    order: [],
    zeroCentred: state.colours === "signed",
    rows: picture?.layout === "rows",
    wholeLayer: state.scale === "layer" || storedForLayer(picture),
    parts: ["a"],
  };
  if (question.role === "kernels" && maps.kernels) {
    return {
      ...scene,
      kind: "kernels",
      picture: isKernels ? picture : null,
      kernels: maps.kernels,
    };
  }
  const a = sideOf(maps, question.role, question.sample);
  if (!a || !picture || isKernels) return { ...scene, kind: "none", why: whyNot(maps, question) };
  const columns = [
    mainColumn(question, maps, a),
    ...others.map((each, i) => otherColumn(each, i + 1, a)),
  ];
  const channels = columns.reduce(
    (least, { side }) => (side ? Math.min(least, side.planes.channels) : least),
    a.planes.channels,
  );
  const ordered = order(state, sortMaps, question, history).filter((c) => c < channels);
  const known = new Set(ordered);
  for (let c = 0; c < channels; c += 1) if (!known.has(c)) ordered.push(c);
  return {
    ...scene,
    kind: "maps",
    picture,
    a,
    columns,
    channels,
    order: ordered,
    why: state.sort === "change" ? whyUnsorted(question.role, history, channels) : "",
    ranges: sceneRanges(state, question, columns, history, channels),
    differenceRanges: differenceRanges(state, columns, channels),
    parts: parts(state.show, columns),
  };
}

/**
 * True if all channels were stored with one scale, as maps of one pixel always are.
 * @param {Picture|null} picture
 */
function storedForLayer(picture) {
  if (!picture || picture.role === "kernels") return false;
  return picture.scale === "layer" || picture.tile[0] * picture.tile[1] === 1;
}

/**
 * @param {State} state @param {Question} question @param {SceneColumn[]} columns
 * @param {History|null} history @param {number} channels
 */
function sceneRanges(state, question, columns, history, channels) {
  const head = (/** @type {Side} */ side) => ({
    lo: Array.prototype.slice.call(side.lo, 0, channels),
    hi: Array.prototype.slice.call(side.hi, 0, channels),
  });
  const sources = columns.flatMap(({ side }) => (side ? [head(side)] : []));
  // Only the range of sample 0 is in the history; that of the whole batch covers other samples.
  const [least, most] = question.sample === 0 ? ["lo", "hi"] : ["minimum", "maximum"];
  const lo = history?.arrays[`${question.role}.${least}`];
  const hi = history?.arrays[`${question.role}.${most}`];
  const ofAll = lo?.shape[1] ?? 0;
  if (state.locked && lo && hi && ofAll === channels) {
    sources.push({ lo: [...lo.values], hi: [...hi.values] });
  }
  return ranges(channels, sources, { scale: state.scale, zeroCentred: state.colours === "signed" });
}

/** @param {State} state @param {SceneColumn[]} columns @param {number} channels */
function differenceRanges(state, columns, channels) {
  if (!columns.some((each) => each.difference)) return NO_RANGES;
  const peak = [...differencePeaks(columns, channels)];
  return ranges(channels, [{ lo: peak.map((p) => -p), hi: peak }], {
    scale: state.scale,
    zeroCentred: true,
  });
}

/** Computed orders of each record. @type {WeakMap<Maps, Map<string, number[]>>} */
const orders = new WeakMap();

/**
 * Channels in the selected order; those not in it follow by index.
 * @param {State} state @param {Maps|null} maps of the step that the order is computed from
 * @param {Question} question @param {History|null} history @returns {number[]}
 */
function order(state, maps, question, history) {
  const { role, sample } = question;
  if (state.sort === "change") {
    const changes = recordedChanges(role, history);
    return changes ? byScore(meanChanges(changes.values, changes.shape[1])) : [];
  }
  if (!maps || state.sort === "index") return [];
  const key = `${state.sort}/${role}/${sample}`;
  const held = orders.get(maps) ?? new Map();
  orders.set(maps, held);
  if (!held.has(key)) held.set(key, measured(state.sort, maps, role, sample));
  return held.get(key) ?? [];
}

/**
 * @param {import("../state/state.js").Sort} sort @param {Maps} maps @param {string} role
 * @param {number} sample @returns {number[]}
 */
function measured(sort, maps, role, sample) {
  const mean = maps.arrays[`${role}.mean`];
  const std = maps.arrays[`${role}.std`];
  if (!mean || !std) return [];
  const strength = strengths(mean.values, std.values);
  const side = sort === "similarity" ? sideOf(maps, role, sample) : null;
  return side ? bySimilarity(side.planes, strength) : byScore(strength);
}

/**
 * Faults of one channel; the first three are counts of values.
 * @typedef {object} Flags
 * @property {number} nan
 * @property {number} positive
 * @property {number} negative
 * @property {boolean} large
 * @property {boolean} constant
 * @property {boolean} dead
 * @property {string} after type of the activation that it is dead after, "" for its own values
 */

/** @param {Maps} maps @param {string} role @param {number} channel @returns {Flags} */
export function flags(maps, role, channel) {
  const of = (/** @type {string} */ name) => maps.arrays[name]?.values[channel] ?? 0;
  const later = role === "feature_maps" && of("activation.dead") > 0;
  const size = Math.max(Math.abs(of(`${role}.minimum`)), Math.abs(of(`${role}.maximum`)));
  return {
    nan: of(`${role}.nan`),
    positive: of(`${role}.positive_infinity`),
    negative: of(`${role}.negative_infinity`),
    large: Number.isFinite(size) && size >= LARGE,
    constant: of(`${role}.constant`) > 0,
    dead: later || of(`${role}.dead`) > 0,
    after: later ? (maps.header.activation?.type ?? "activation") : "",
  };
}

/**
 * The most severe fault in words and its colour; null for none.
 * @param {Flags} of @returns {{word: string, brief: string, colour: string}|null}
 */
export function loudest(of) {
  const marked = (/** @type {string} */ word, /** @type {number} */ mark) => ({
    word,
    brief: word,
    colour: css(MARK_COLOURS[mark]),
  });
  if (of.nan) return marked("NaN", MARK.NAN);
  if (of.positive) return marked("+Inf", MARK.POSITIVE_INFINITY);
  if (of.negative) return marked("−Inf", MARK.NEGATIVE_INFINITY);
  if (of.large) return { word: "large", brief: "large", colour: FAULT_COLOURS.large };
  if (of.dead) {
    return { ...marked("dead", MARK.DEAD), word: of.after ? `dead after ${of.after}` : "dead" };
  }
  if (of.constant) return marked("const", MARK.CONSTANT);
  return null;
}
