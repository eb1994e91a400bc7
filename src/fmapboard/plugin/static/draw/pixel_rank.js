// @ts-check
/** Orders channels by their response at a point, and measures how strongly a layer responds there. */

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
 * @property {number} deviation (value − mean) ÷ standard deviation, both over the channel's own map;
 *   NaN if the value is not finite or the channel does not vary
 */

/**
 * The channels of a layer at a point: those that are not finite there, then by how far they are from
 * their own mean, those that do not vary last.
 * @param {Side} side @param {Point} point @returns {Reading[]}
 */
export function channelsAt({ planes, lo, hi }, point) {
  const { y, x } = cellOf(point, planes.height, planes.width);
  const far = (/** @type {Reading} */ { value, deviation }) =>
    Number.isNaN(value) ? Infinity : Number.isNaN(deviation) ? -1 : Math.abs(deviation);
  return Array.from({ length: planes.channels }, (_, channel) => ({
    channel,
    ...valueAt(planes, channel, y, x, lo[channel], hi[channel]),
    deviation: deviationAt(planes, channel, y, x),
  })).sort((a, b) => (far(a) === far(b) ? a.channel - b.channel : far(b) - far(a)));
}

/**
 * How far a channel is from its own mean at a cell, in standard deviations over its map; NaN if it
 * is not finite there or does not vary. The stored levels are a linear function of the values, so
 * they have the same deviations.
 * @param {Side["planes"]} planes @param {number} channel @param {number} y @param {number} x
 */
function deviationAt({ height, width, levels, marks }, channel, y, x) {
  const size = height * width;
  const from = channel * size;
  const at = from + y * width + x;
  if (isBad(marks, at)) return NaN;
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
  return variance > 1e-9 ? (levels[at] - mean) / Math.sqrt(variance) : NaN;
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

/** @param {Side} side @param {Point} point @returns {Response} */
export function responseAt({ planes }, point) {
  const { y, x } = cellOf(point, planes.height, planes.width);
  const size = planes.height * planes.width;
  /** @type {Response} */
  const found = { score: NaN, channel: -1, deviation: 0, nonfinite: 0, compared: 0 };
  let squares = 0;
  for (let channel = 0; channel < planes.channels; channel += 1) {
    if (isBad(planes.marks, channel * size + y * planes.width + x)) {
      if (!found.nonfinite) [found.channel, found.deviation] = [channel, NaN];
      found.nonfinite += 1;
      continue;
    }
    const deviation = deviationAt(planes, channel, y, x);
    if (Number.isNaN(deviation)) continue; // constant, dead, or of one pixel
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
