// @ts-check
/** What the numbers of a layer say about it, and how loud to say it. */

import { percent, short } from "../draw/number_text.js";

/**
 * @typedef {object} Overview one layer of `data/overview`
 * @property {string} key
 * @property {number} step
 * @property {number} minimum
 * @property {number} maximum
 * @property {number} mean
 * @property {number} std
 * @property {number} nan
 * @property {number} positive_infinity
 * @property {number} negative_infinity
 * @property {number} channels_nonfinite
 * @property {number} channels_constant
 * @property {number} channels_dead
 * @property {boolean} dead_known
 * @property {number} channels
 * @property {number|null} change
 * @property {string|null} [error] why its record cannot be read
 */

/**
 * @typedef {object} Health
 * @property {number} severity 0 well, 1 worth a look, 2 ill, 3 not finite
 * @property {string} badge at most two words; "" when well
 * @property {string} kind "nonfinite", "dead", "constant", "large", "still", "unreadable" or "well"
 * @property {string} text every number in words
 */

const LARGE = 1e4;

/**
 * The loudest fault of a layer.
 * @param {Overview} of @returns {{severity: number, badge: string, kind: string}}
 */
function fault(of) {
  if (of.error) return { severity: 1, badge: "unreadable", kind: "unreadable" };
  const channels = Math.max(1, of.channels);
  if (of.nan) return { severity: 3, badge: "NaN", kind: "nonfinite" };
  if (of.positive_infinity || of.negative_infinity) return { severity: 3, badge: "Inf", kind: "nonfinite" };
  const dead = of.channels_dead / channels;
  if (dead >= 0.1) {
    return { severity: dead >= 0.5 ? 2 : 1, badge: `${percent(dead)} dead`, kind: "dead" };
  }
  const constant = of.channels_constant / channels;
  if (constant >= 0.1) {
    return { severity: constant >= 0.5 ? 2 : 1, badge: `${percent(constant)} const`, kind: "constant" };
  }
  if (Math.max(Math.abs(of.minimum), Math.abs(of.maximum)) >= LARGE) {
    return { severity: 2, badge: "large", kind: "large" };
  }
  if (of.change === 0) return { severity: 1, badge: "no change", kind: "still" };
  return { severity: 0, badge: "", kind: "well" };
}

/** @param {Overview} of @returns {Health} */
export function health(of) {
  if (of.error) return { ...fault(of), text: of.error };
  const bad = of.nan + of.positive_infinity + of.negative_infinity;
  const text = [
    `range ${short(of.minimum)} … ${short(of.maximum)}, mean ${short(of.mean)}, std ${short(of.std)}`,
    bad
      ? `${of.nan} NaN, ${of.positive_infinity} +Inf, ${of.negative_infinity} −Inf ` +
        `in ${of.channels_nonfinite} of ${of.channels} channels`
      : "all values finite",
    of.dead_known ? `${of.channels_dead} of ${of.channels} channels dead` : "no activation known to tell dead channels by",
    `${of.channels_constant} constant`,
    of.change === null || Number.isNaN(of.change) ? "" : `change since the kept step before: ${short(of.change)} std`,
  ];
  return { ...fault(of), text: text.filter(Boolean).join("\n") };
}

/** A value on −1…1 so that 0.01 … 1000 all have a place of their own. @param {number} value */
export function squashed(value) {
  if (Number.isNaN(value)) return 0;
  const size = Math.log10(1 + Math.abs(value) * 100) / 5;
  return Math.sign(value) * Math.min(1, size);
}

/**
 * The strip's parts, each 0…1: where the range begins and ends, how much is dead, how far it moved.
 * @param {Overview} of
 */
export function strip(of) {
  const channels = Math.max(1, of.channels);
  const change = of.change ?? 0;
  return {
    from: (squashed(of.minimum) + 1) / 2,
    to: (squashed(of.maximum) + 1) / 2,
    dead: of.channels_dead / channels,
    constant: of.channels_constant / channels,
    nonfinite: of.channels_nonfinite / channels,
    change: Number.isFinite(change) ? 1 - Math.exp(-change * 2) : 1,
  };
}
