// @ts-check
/** Rows and columns of the map of layers × steps: thinner the more there are, then binned. */

import { UNKNOWN_LEVEL } from "./health_colours.js";

const LEFT_MIN = 60;
const LEFT_MAX = 260;
const LEFT_SHARE = 0.3;
const RIGHT = 104;
/** Below this width there is no space for the words at the right, CSS px. */
const RIGHT_FROM = 620;
const TOP = 18;
const ROW_MIN = 2;
const ROW_MAX = 26;
const COLUMN_MIN = 2;
const COLUMN_MAX = 240;
/** From this height on every row has its name, CSS px. */
export const LINE = 12;

/**
 * Lengths in CSS px. A row holds one layer or, if there are too many, several; a column likewise
 * one step or several.
 * @typedef {object} MapLayout
 * @property {number} layers
 * @property {number} steps
 * @property {number} rows
 * @property {number} columns
 * @property {number} left of the first column
 * @property {number} top of the first row
 * @property {number} right width of the words behind the rows, 0 for none
 * @property {number} width of all columns
 * @property {number} height of all rows
 */

/**
 * @param {{layers: number, steps: number, width: number, height: number, names: number}} of
 *   `names` is the width of the longest name @returns {MapLayout}
 */
export function mapLayout({ layers, steps, width, height, names }) {
  const left = Math.ceil(
    Math.max(LEFT_MIN, Math.min(names + 10, LEFT_MAX, Math.max(LEFT_MIN, width * LEFT_SHARE))),
  );
  const right = width >= RIGHT_FROM ? RIGHT : 0;
  const wide = Math.max(40, width - left - right - 2);
  const high = Math.max(40, height - TOP - 2);
  const rows = Math.min(layers, Math.floor(high / ROW_MIN));
  const columns = Math.min(steps, Math.floor(wide / COLUMN_MIN));
  return {
    layers,
    steps,
    rows,
    columns,
    left,
    top: TOP,
    right,
    width: columns * side(wide / Math.max(1, columns), COLUMN_MAX),
    height: rows * side(high / Math.max(1, rows), ROW_MAX),
  };
}

/** A side of a cell; whole px unless that would lose much of the space. @param {number} most @param {number} limit */
function side(most, limit) {
  if (most >= limit) return limit;
  return most >= 5 ? Math.floor(most) : most;
}

/** First of the `count` members of bin `i` of `bins`. @param {number} i @param {number} count @param {number} bins */
export function firstOf(i, count, bins) {
  return Math.floor((i * count) / bins);
}

/** Bin of a member. @param {number} member @param {number} count @param {number} bins */
export function binOf(member, count, bins) {
  return Math.ceil(((member + 1) * bins) / count) - 1;
}

/**
 * The row and column under a point; null outside.
 * @param {MapLayout} of @param {number} x @param {number} y
 */
export function cellAt(of, x, y) {
  const column = Math.floor(((x - of.left) / of.width) * of.columns);
  const row = Math.floor(((y - of.top) / of.height) * of.rows);
  const inside = column >= 0 && column < of.columns && row >= 0 && row < of.rows;
  return inside ? { row, column } : null;
}

/** Box of a cell. @param {MapLayout} of @param {number} row @param {number} column */
export function boxOf(of, row, column) {
  const [w, h] = [of.width / of.columns, of.height / of.rows];
  return { left: of.left + column * w, top: of.top + row * h, width: w, height: h };
}

/**
 * The worst member of each cell.
 * @typedef {object} Binned
 * @property {Uint8Array} codes [rows, columns]
 * @property {Uint8Array} levels [rows, columns], of the brightest member with that code
 * @property {Int32Array} at [rows, columns], index of the worst member in [steps, layers]
 */

/**
 * @param {MapLayout} of @param {Uint8Array} codes [steps, layers]
 * @param {Uint8Array} levels [steps, layers], `UNKNOWN_LEVEL` where not known @returns {Binned}
 */
export function binned({ layers, steps, rows, columns }, codes, levels) {
  const found = {
    codes: new Uint8Array(rows * columns),
    levels: new Uint8Array(rows * columns).fill(UNKNOWN_LEVEL),
    at: new Int32Array(rows * columns).fill(-1),
  };
  const rowOf = Int32Array.from({ length: layers }, (_, l) => binOf(l, layers, rows) * columns);
  for (let s = 0; s < steps; s += 1) {
    const column = binOf(s, steps, columns);
    for (let l = 0; l < layers; l += 1) {
      const cell = rowOf[l] + column;
      const i = s * layers + l;
      if (found.at[cell] < 0 || codes[i] > found.codes[cell]) {
        found.codes[cell] = codes[i];
        found.levels[cell] = levels[i];
        found.at[cell] = i;
      } else if (codes[i] === found.codes[cell] && levels[i] !== UNKNOWN_LEVEL) {
        const held = found.levels[cell];
        if (held === UNKNOWN_LEVEL || levels[i] > held) found.levels[cell] = levels[i];
      }
    }
  }
  return found;
}
