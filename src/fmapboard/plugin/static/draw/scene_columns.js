// @ts-check
/** The columns of a scene: the maps of each, and its difference from the main column. */

import { pictureOf, sideOf } from "../data/decoded_maps.js";
import { LETTERS } from "../state/columns.js";
import { difference } from "./value_scale.js";

/** @typedef {import("../data/decoded_maps.js").Maps} Maps */
/** @typedef {import("../state/compare.js").Question} Question */
/** @typedef {import("./scene.js").History} History */
/** @typedef {import("./value_scale.js").Difference} Difference */
/** @typedef {import("./value_scale.js").Side} Side */

/**
 * A tile of a cell: the maps of a column, or the main column minus another one.
 * @typedef {"a"|"b"|"c"|"d"|"ab"|"ac"|"ad"} Part
 */

/** @type {readonly Part[]} */
const MAPS = Object.freeze(["a", "b", "c", "d"]);
/** @type {readonly Part[]} */
const DIFFERENCES = Object.freeze(["a", "ab", "ac", "ad"]);

/**
 * One column as it is drawn.
 * @typedef {object} SceneColumn
 * @property {string} letter
 * @property {Question|null} question
 * @property {Maps|null} maps
 * @property {Side|null} side null if it has no picture
 * @property {Difference|null} difference the main column minus this one; null if there is none
 * @property {History|null} history its maps over all kept steps, if the scale is locked
 * @property {string} why there is no picture, in words
 * @property {string} note what of the comparison is not as expected, in words
 */

/**
 * What a column is built from.
 * @typedef {object} ColumnSource
 * @property {Question|null} question
 * @property {Maps|null} maps
 * @property {History|null} [history] of its layer and sample, if the scale is locked
 * @property {string} why there is nothing, in words
 */

/** Index of the column of a part, 0 for the main one. @param {Part} part */
export function columnIndex(part) {
  return MAPS.indexOf(/** @type {Part} */ (part.slice(-1)));
}

/** @param {Part} part */
export function isDifference(part) {
  return part.length === 2;
}

/** The maps of a part's column. @param {{columns: SceneColumn[]}} scene @param {Part} part */
export function columnOf(scene, part) {
  return scene.columns[columnIndex(part)];
}

/** The difference that a part shows; null for maps. @param {{columns: SceneColumn[]}} scene @param {Part} part */
export function differenceOf(scene, part) {
  return isDifference(part) ? columnOf(scene, part).difference : null;
}

/** Name of a part, with the letters of its columns. @param {Part} part */
export function partName(part) {
  return isDifference(part) ? `A − ${part[1].toUpperCase()}` : part.toUpperCase();
}

/**
 * @param {Question} question @param {Maps} maps @param {Side} side
 * @param {History|null} history if the scale is locked @returns {SceneColumn}
 */
export function mainColumn(question, maps, side, history) {
  return { letter: LETTERS[0], question, maps, side, difference: null, history, why: "", note: "" };
}

/**
 * @param {ColumnSource} of @param {number} i 1 for the first column beside the main one
 * @param {Side} a the main column's maps @returns {SceneColumn}
 */
export function otherColumn({ question, maps, why, history = null }, i, a) {
  const side = maps && question ? sideOf(maps, question.role, question.sample) : null;
  const between = side ? difference(a, side) : null;
  return {
    letter: LETTERS[i],
    question,
    maps,
    side,
    difference: between,
    history,
    why: why || (side || !maps || !question ? "" : whyNot(maps, question)),
    note: side ? noteOf(a, side, between) : "",
  };
}

/** What is not compared, in words. @param {Side} a @param {Side} b @param {Difference|null} between */
function noteOf(a, b, between) {
  if (!between) {
    const size = (/** @type {Side} */ { planes }) => `${planes.height}×${planes.width} px`;
    return `maps of ${size(b)}, not ${size(a)}: stretched to the same size, no difference`;
  }
  const [mine, theirs] = [a.planes.channels, b.planes.channels];
  if (mine === theirs) return "";
  return `${mine} and ${theirs} channels drawn: only the first ${Math.min(mine, theirs)} are compared`;
}

/** Why a picture cannot be drawn, in words. @param {Maps} maps @param {Question} question */
export function whyNot(maps, question) {
  if (maps.missing.includes(question.role)) {
    return (
      "TensorBoard no longer keeps this picture at this step. Start it with " +
      "`fmapboard serve` or --samples_per_plugin images=1000 to keep more."
    );
  }
  if (!pictureOf(maps, question.role)) return "not logged for this layer at this step";
  return `no picture of sample ${question.sample}`;
}

/**
 * Indices of the columns from left to right: of one run, older steps stand left of newer ones.
 * @param {readonly {question: Question|null}[]} columns the main one first
 */
export function leftToRight(columns) {
  const places = columns.map((_, i) => i);
  const steps = columns.map(({ question }) => question?.step ?? NaN);
  const runs = new Set(columns.map(({ question }) => question?.run));
  if (runs.size > 1 || steps.some(Number.isNaN)) return places;
  return places.sort((i, j) => steps[i] - steps[j] || i - j);
}

/**
 * The tiles of a cell. A column without a picture keeps its place.
 * @param {import("../state/state.js").Shown} show @param {SceneColumn[]} columns @returns {Part[]}
 */
export function parts(show, columns) {
  const maps = leftToRight(columns).map((i) => MAPS[i]);
  const differences = DIFFERENCES.slice(1, columns.length);
  if (show === "both" || !columns.some((each) => each.difference)) return maps;
  if (show === "difference") return differences;
  return [...maps, ...differences.filter((_, i) => columns[i + 1].difference)];
}

/**
 * Largest magnitude of each channel over all differences, so that they share one scale; NaN if none
 * has a finite value.
 * @param {SceneColumn[]} columns @param {number} channels
 */
export function differencePeaks(columns, channels) {
  const peak = new Float64Array(channels).fill(NaN);
  for (const { difference: between } of columns) {
    for (let c = 0; between && c < channels; c += 1) {
      if (!(peak[c] >= between.peak[c]) && !Number.isNaN(between.peak[c]))
        peak[c] = between.peak[c];
    }
  }
  return peak;
}
