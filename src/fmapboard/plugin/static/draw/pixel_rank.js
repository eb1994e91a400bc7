// @ts-check
/** Orders channels by their value at a point, and measures how strongly a layer responds there. */

import { valueAt } from "../data/decode.js";
import { cellOf } from "./crosshair.js";

/** @typedef {import("./crosshair.js").Point} Point */
/** @typedef {import("./value_scale.js").Side} Side */

/**
 * @typedef {object} Reading
 * @property {number} channel
 * @property {number} value NaN if it is not finite
 * @property {number} unit uncertainty of the value
 * @property {number} mark code of its mark, or 0
 */

/**
 * The channels of a layer at a point: those that are not finite there, then by descending value.
 * @param {Side} side @param {Point} point @returns {Reading[]}
 */
export function channelsAt({ planes, lo, hi }, point) {
  const { y, x } = cellOf(point, planes.height, planes.width);
  return Array.from({ length: planes.channels }, (_, channel) => ({
    channel,
    ...valueAt(planes, channel, y, x, lo[channel], hi[channel]),
  })).sort(
    (a, b) =>
      Number(Number.isNaN(b.value)) - Number(Number.isNaN(a.value)) ||
      (a.value === b.value || Number.isNaN(a.value) ? 0 : b.value - a.value) ||
      a.channel - b.channel,
  );
}

/**
 * How strongly the channels of a layer respond at a point.
 * @typedef {object} Response
 * @property {number} score root mean square over the channels of (value − mean) ÷ standard deviation,
 *   both over the channel's own map; NaN if no channel varies
 * @property {number} channel the one that is furthest from its mean, or the first not finite one; -1
 *   for none
 * @property {number} deviation of that channel, in standard deviations
 * @property {number} nonfinite channels that are not finite at the point
 * @property {number} compared channels that vary
 */

/**
 * The stored levels are a linear function of the values, so they have the same deviations.
 * @param {Side} side @param {Point} point @returns {Response}
 */
export function responseAt({ planes }, point) {
  const { channels, height, width, levels, marks } = planes;
  const { y, x } = cellOf(point, height, width);
  const size = height * width;
  /** @type {Response} */
  const found = { score: NaN, channel: -1, deviation: 0, nonfinite: 0, compared: 0 };
  let squares = 0;
  for (let channel = 0; channel < channels; channel += 1) {
    const from = channel * size;
    const at = from + y * width + x;
    if (isBad(marks, at)) {
      if (!found.nonfinite) [found.channel, found.deviation] = [channel, NaN];
      found.nonfinite += 1;
      continue;
    }
    let count = 0;
    let sum = 0;
    let sumOfSquares = 0;
    for (let i = from; i < from + size; i += 1) {
      if (isBad(marks, i)) continue;
      count += 1;
      sum += levels[i];
      sumOfSquares += levels[i] * levels[i];
    }
    const mean = sum / count;
    const variance = sumOfSquares / count - mean * mean;
    if (!(variance > 1e-9)) continue; // constant, dead, or of one pixel
    const deviation = (levels[at] - mean) / Math.sqrt(variance);
    squares += deviation * deviation;
    found.compared += 1;
    if (!found.nonfinite && Math.abs(deviation) > Math.abs(found.deviation)) {
      [found.channel, found.deviation] = [channel, deviation];
    }
  }
  if (found.compared) found.score = Math.sqrt(squares / found.compared);
  return found;
}

/** @param {Uint8Array|null} marks @param {number} i */
function isBad(marks, i) {
  return Boolean(marks && marks[i] >= 251 && marks[i] <= 253);
}

/**
 * Layers by how strongly they respond: those with channels that are not finite first.
 * @template {Response} T
 * @param {T[]} responses @returns {T[]}
 */
export function byResponse(responses) {
  const score = (/** @type {Response} */ of) => (Number.isNaN(of.score) ? -1 : of.score);
  return [...responses].sort((a, b) => b.nonfinite - a.nonfinite || score(b) - score(a));
}
