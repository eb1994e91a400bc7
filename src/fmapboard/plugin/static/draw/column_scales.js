// @ts-check
/** The scale of each column of a scene: shared or its own, and what a shared one hides. */

import { sceneRanges } from "./locked_scale.js";
import { short } from "./number_text.js";
import { LARGE } from "./palettes.js";

/** @typedef {import("../state/state.js").State} State */
/** @typedef {import("./scene_columns.js").SceneColumn} SceneColumn */
/** @typedef {import("./value_scale.js").Ranges} Ranges */
/** @typedef {import("./value_scale.js").Side} Side */

/** A column that has less than this part of the scale has a few of its 256 colours, and looks flat. */
const FLAT = 0.04;

/**
 * The range of each channel of each column.
 * @param {Pick<State, "scale"|"colours"|"own_scale">} state @param {SceneColumn[]} columns
 * @param {number} channels drawn @param {Ranges} shared @returns {Ranges[]}
 */
export function columnRanges(state, columns, channels, shared) {
  if (!state.own_scale) return columns.map(() => shared);
  return columns.map((column) => sceneRanges(state, [column], channels));
}

/**
 * What the scales of several columns hide, in words; "" for nothing.
 * @param {{columns: SceneColumn[], ranges: Ranges, channels: number, ownScale: boolean}} scene
 */
export function scaleNote({ columns, ranges, channels, ownScale }) {
  const shown = columns.filter(({ side }) => side);
  if (shown.length < 2) return "";
  if (ownScale) return "Each column has a scale of its own: equal colours are not equal values.";
  const flat = shown.filter(({ side }) => side && share(side, ranges, channels) < FLAT);
  const others = shown.filter((column) => !flat.includes(column));
  if (!flat.length || !others.length) return "";
  const letters = flat.map(({ letter }) => letter).join(", ");
  return (
    `${letters} ${flat.length > 1 ? "look" : "looks"} flat because all columns share one scale: ` +
    `values ${flat.map((column) => extent(column, channels)).join(", ")}, ` +
    `but ${others.map((column) => extent(column, channels)).join(", ")}.`
  );
}

/**
 * Part of the shared range that a side's values have: the median over the channels.
 * @param {Side} side @param {Ranges} ranges @param {number} channels
 */
function share({ lo, hi }, ranges, channels) {
  const parts = [];
  for (let c = 0; c < channels; c += 1) {
    const whole = ranges.hi[c] - ranges.lo[c];
    if (whole > 0 && Number.isFinite(hi[c] - lo[c])) parts.push((hi[c] - lo[c]) / whole);
  }
  parts.sort((a, b) => a - b);
  return parts.length ? parts[Math.floor(parts.length / 2)] : 1;
}

/** The values of a column, in words. @param {SceneColumn} column @param {number} channels */
function extent({ letter, side }, channels) {
  const of = (/** @type {ArrayLike<number>|undefined} */ ends) =>
    Array.prototype.slice.call(ends ?? [], 0, channels).filter(Number.isFinite);
  const [lo, hi] = [Math.min(...of(side?.lo)), Math.max(...of(side?.hi))];
  const large = Math.max(-lo, hi) >= LARGE ? " (large)" : "";
  return `from ${short(lo, 2)} to ${short(hi, 2)}${large} in ${letter}`;
}
