// @ts-check
/** Computes everything that a picture of one layer needs, before anything is drawn. */

import { pictureOf, sideOf } from "../data/decoded_maps.js";
import { columnRanges } from "./column_scales.js";
import { kernelScene } from "./kernel_scene.js";
import { sceneRanges } from "./locked_scale.js";
import { FAULT_COLOURS, LARGE, MARK, MARK_COLOURS, css } from "./palettes.js";
import { differencePeaks, mainColumn, otherColumn, parts, whyNot } from "./scene_columns.js";
import { sorting } from "./sorting.js";
import { ranges as rangesOf } from "./value_scale.js";
import { deadWord } from "../state/dead_word.js";

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
/** @typedef {import("./sorting.js").Sorting} Sorting */

/**
 * A layer's per-channel numbers over the kept steps; the arrays are [steps, channels].
 * @typedef {{steps: number[], arrays: import("../data/container.js").NamedArrays,
 *   kernels?: import("../data/routes.js").DrawnKernels[]}} History
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
 * @property {Ranges[]} columnRanges of each column: `ranges`, or its own
 * @property {boolean} ownScale each of several columns has a scale of its own
 * @property {Ranges} differenceRanges of all differences
 * @property {number} channels
 * @property {number[]} order channels in the order they are drawn in
 * @property {boolean} zeroCentred
 * @property {boolean} rows sequences: a row of pixels per channel
 * @property {boolean} wholeLayer one scale for all channels, selected here or used when logging
 * @property {Part[]} parts of a cell
 */

/** @typedef {SceneBase & {kind: "maps", picture: MapsPicture, a: Side, sorting: Sorting}} MapsScene */

/**
 * Kernels, on one scale; without `grid` only the stored picture is known.
 * @typedef {SceneBase & {kind: "kernels", picture: KernelsPicture|null, kernels: ImageBitmap,
 *   grid: import("./kernel_scene.js").KernelCells|null}} KernelsScene
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
    columnRanges: [],
    ownScale: false,
    differenceRanges: NO_RANGES,
    channels: 0,
    order: [],
    zeroCentred: state.colours === "signed",
    rows: picture?.layout === "rows",
    wholeLayer: state.scale === "layer" || storedForLayer(picture),
    parts: ["a"],
  };
  if (question.role === "kernels" && maps.kernels) {
    return kernelScene(scene, maps, others, state.show);
  }
  const a = sideOf(maps, question.role, question.sample);
  if (!a || !picture || isKernels) return { ...scene, kind: "none", why: whyNot(maps, question) };
  const columns = [
    mainColumn(question, maps, a, state.locked ? history : null),
    ...others.map((each, i) => otherColumn(each, i + 1, a)),
  ];
  const channels = columns.reduce(
    (least, { side }) => (side ? Math.min(least, side.planes.channels) : least),
    a.planes.channels,
  );
  const ranges = sceneRanges(state, columns, channels);
  const sorted = sorting(state, sortMaps, question, history, channels);
  return {
    ...scene,
    kind: "maps",
    picture,
    a,
    columns,
    channels,
    order: sorted.order,
    sorting: sorted,
    why: sorted.why,
    ranges,
    columnRanges: columnRanges(state, columns, channels, ranges),
    ownScale: state.own_scale && columns.length > 1,
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

/** @param {State} state @param {SceneColumn[]} columns @param {number} channels */
function differenceRanges(state, columns, channels) {
  if (!columns.some((each) => each.difference)) return NO_RANGES;
  const peak = [...differencePeaks(columns, channels)];
  return rangesOf(channels, [{ lo: peak.map((p) => -p), hi: peak }], {
    scale: state.scale,
    zeroCentred: true,
  });
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
 * A fault of a channel.
 * @typedef {object} StateMark
 * @property {"nonfinite"|"large"|"dead"|"constant"} kind
 * @property {string} word
 * @property {string} brief for little space
 * @property {string} colour
 */

/** The most severe fault; null for none. @param {Flags} of @returns {StateMark|null} */
export function loudest(of) {
  const marked = (
    /** @type {StateMark["kind"]} */ kind,
    /** @type {string} */ word,
    /** @type {number} */ mark,
  ) => ({ kind, word, brief: word, colour: css(MARK_COLOURS[mark]) });
  if (of.nan) return marked("nonfinite", "NaN", MARK.NAN);
  if (of.positive) return marked("nonfinite", "+Inf", MARK.POSITIVE_INFINITY);
  if (of.negative) return marked("nonfinite", "−Inf", MARK.NEGATIVE_INFINITY);
  if (of.large) {
    return { kind: "large", word: "large", brief: "large", colour: FAULT_COLOURS.large };
  }
  if (of.dead) {
    const dead = marked("dead", deadWord(), MARK.DEAD);
    return { ...dead, word: of.after ? `${dead.word} after ${of.after}` : dead.word };
  }
  if (of.constant) return marked("constant", "const", MARK.CONSTANT);
  return null;
}
