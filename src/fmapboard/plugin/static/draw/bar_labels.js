// @ts-check
/** Chooses the labels below a colour bar so that none touches another. */

import { short, ticks } from "./number_text.js";

/** Least space between two labels, CSS px. */
const GAP = 8;

/**
 * @typedef {object} BarLabel
 * @property {string} text
 * @property {number} left start of the text, CSS px
 * @property {boolean} end it is that of an end of the bar
 */

/**
 * Labels from left to right: both ends, with as few digits as it takes, and round values between
 * them where there is space.
 * @param {number} lo @param {number} hi @param {number} width of the bar, CSS px
 * @param {(text: string) => number} widthOf width of a text, CSS px
 * @returns {BarLabel[]} one label if both ends are equal, or the bar too narrow for two
 */
export function barLabels(lo, hi, width, widthOf) {
  if (Number.isNaN(lo)) return [{ text: "no finite value", left: 0, end: true }];
  const fits = (/** @type {number} */ digits) =>
    widthOf(short(lo, digits)) + GAP + widthOf(short(hi, digits)) <= width;
  const digits = [3, 2, 1].find(fits);
  if (!(hi > lo) || digits === undefined) {
    const text = hi > lo ? `${short(lo, 1)}…${short(hi, 1)}` : short(lo);
    return [{ text, left: 0, end: true }];
  }
  const [first, last] = [short(lo, digits), short(hi, digits)];
  const labels = [{ text: first, left: 0, end: true }];
  const stop = width - widthOf(last);
  let free = widthOf(first) + GAP;
  for (const value of ticks(lo, hi, 4)) {
    const text = short(value);
    const left = ((value - lo) / (hi - lo)) * width - widthOf(text) / 2;
    if (left < free || left + widthOf(text) + GAP > stop) continue;
    labels.push({ text, left, end: false });
    free = left + widthOf(text) + GAP;
  }
  labels.push({ text: last, left: stop, end: true });
  return labels;
}
