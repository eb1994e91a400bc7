// @ts-check
/** The scale that the columns of a scene share, at their steps or locked over all kept ones. */

import { stepText } from "./number_text.js";
import { ranges } from "./value_scale.js";

/** @typedef {import("../state/state.js").State} State */
/** @typedef {import("./scene.js").History} History */
/** @typedef {import("./scene_columns.js").SceneColumn} SceneColumn */
/** @typedef {import("./value_scale.js").Ranges} Ranges */

/**
 * The range of each channel over the maps of all columns; if the scale is locked, also over all
 * kept steps of each column whose history is known.
 * @param {Pick<State, "scale"|"colours">} state @param {SceneColumn[]} columns
 * @param {number} channels drawn @returns {Ranges}
 */
export function sceneRanges({ scale, colours }, columns, channels) {
  const sources = columns.flatMap((column) => {
    const { side } = column;
    if (!side) return [];
    const shown = { lo: row(side.lo, 0, channels), hi: row(side.hi, 0, channels) };
    return [shown, ...overSteps(column, channels)];
  });
  return ranges(channels, sources, { scale, zeroCentred: colours === "signed" });
}

/** @param {SceneColumn} column @param {number} channels */
function overSteps(column, channels) {
  const { lo, hi } = extremes(column) ?? {};
  if (!lo || !hi) return [];
  const width = lo.shape[1];
  return Array.from({ length: width ? lo.values.length / width : 0 }, (_, i) => ({
    lo: row(lo.values, i * width, Math.min(channels, width)),
    hi: row(hi.values, i * width, Math.min(channels, width)),
  }));
}

/** @param {ArrayLike<number>} values @param {number} from @param {number} count @returns {number[]} */
function row(values, from, count) {
  return Array.prototype.slice.call(values, from, from + count);
}

/** Extremes of the drawn maps of a column's role over the kept steps. @param {SceneColumn} column */
function extremes({ history, question }) {
  const lo = history?.arrays[`${question?.role}.lo`];
  const hi = history?.arrays[`${question?.role}.hi`];
  return lo && hi ? { lo, hi } : null;
}

/** Number of steps of a column's history. @param {SceneColumn} column */
const stepsOf = ({ history }) => history?.steps.length ?? 0;

/**
 * Which steps a scale covers, to follow what it is that of; "" if it is not locked.
 * @param {SceneColumn[]} columns @param {boolean} locked
 */
export function stepsText(columns, locked) {
  if (!locked) return "";
  const shown = columns.filter(({ side }) => side);
  const open = shown.filter((column) => !extremes(column)).map(({ letter }) => letter);
  if (open.length === shown.length) return ", only this step (the others are not known)";
  const counts = shown.flatMap((column) => (extremes(column) ? stepsOf(column) : []));
  const over = `, over ${[...new Set(counts)].map(stepText).join(" and ")} logged step${Math.max(...counts) > 1 ? "s" : ""}`;
  return open.length ? `${over} (of ${open.join(", ")} only this one)` : over;
}

/**
 * What the range of a colour bar is that of, in words.
 * @param {{columns: SceneColumn[]}} scene @param {Pick<State, "locked"|"sample">} state
 */
export function drawnOf({ columns }, { locked, sample }) {
  const { length } = columns.filter(({ side }) => side);
  const of = length < 2 ? `sample ${sample}` : length > 2 ? "all maps" : "both maps";
  return `${of}${stepsText(columns, locked)}`;
}
