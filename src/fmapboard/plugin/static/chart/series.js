// @ts-check
/** Prepares series over steps for drawing: lines, bands and heat maps. */

import { number } from "../server/container.js";

/** @import {History} from "../model/scene.js" */
/** @import {HistogramChart as HistogramSeries, ScalarChart as ScalarSeries} from "../server/routes.js" */

/** @typedef {{steps: number[], values: ArrayLike<number>}} Line */

/** A channel of [steps, channels]. @param {ArrayLike<number>} values @param {number} channels @param {number} channel */
export function column(values, channels, channel) {
  const steps = channels ? values.length / channels : 0;
  return Float64Array.from({ length: steps }, (_, i) => values[i * channels + channel]);
}

/**
 * Lowest and highest finite value, widened if they are equal; null if there is none.
 * @param {ArrayLike<number>[]} lines @returns {[number, number]|null}
 */
export function extent(lines) {
  let lo = Infinity;
  let hi = -Infinity;
  for (const line of lines) {
    for (let i = 0; i < line.length; i += 1) {
      if (!Number.isFinite(line[i])) continue;
      lo = Math.min(lo, line[i]);
      hi = Math.max(hi, line[i]);
    }
  }
  if (lo > hi) return null;
  if (lo === hi) {
    const half = Math.abs(lo) / 10 || 0.5;
    return [lo - half, hi + half];
  }
  return [lo, hi];
}

/** From this ratio of the ends on, an axis of positive values is logarithmic. */
const LOG_FROM = 20;

/**
 * The axis of values that are 0 or more. A logarithmic one spans the positive values.
 * @param {ArrayLike<number>[]} lines @param {[number, number]|null} usual a range that is always in sight
 * @returns {{values: [number, number], log: boolean}}
 */
export function axisOf(lines, usual = null) {
  const known = usual ? [...lines, usual] : lines;
  const positive = extent(known.map((each) => Array.from(each).filter((value) => value > 0)));
  if (positive && positive[1] / positive[0] > LOG_FROM) return { values: positive, log: true };
  return { values: extent(known) ?? [0, 1], log: false };
}

/** A scalar series with its JSON floats as numbers. @param {ScalarSeries} raw @returns {Line} */
export function line(raw) {
  return { steps: raw.steps, values: raw.values.map(number) };
}

/** Histograms as a heat map: counts resampled to even rows. @param {HistogramSeries} raw @param {number} rows */
export function heat(raw, rows) {
  const edges = raw.edges.map((list) => list.map(number));
  const counts = raw.counts.map((list) => list.map(number));
  const filled = edges.map((list, s) => occupied(list, counts[s]));
  const range = extent(filled);
  if (!range) return null;
  const [lo, hi] = range;
  const density = new Float64Array(raw.steps.length * rows);
  for (let s = 0; s < raw.steps.length; s += 1) {
    const into = density.subarray(s * rows, (s + 1) * rows);
    spread(edges[s], counts[s], lo, hi, into);
    const top = into.reduce((a, b) => Math.max(a, b), 0);
    for (let r = 0; r < rows; r += 1) into[r] = top > 0 ? into[r] / top : NaN;
  }
  return { steps: raw.steps, lo, hi, rows, density };
}

/** @typedef {NonNullable<ReturnType<typeof heat>>} Heat `density` [steps, rows] is at most 1 per step, NaN for an empty one */

/** Outer edges of the non-empty buckets. @param {number[]} edges @param {number[]} counts */
function occupied(edges, counts) {
  const first = counts.findIndex((count) => count > 0);
  const last = counts.findLastIndex((count) => count > 0);
  return first < 0 ? [] : [edges[first], edges[last + 1]];
}

/**
 * @param {number[]} edges @param {number[]} counts @param {number} lo @param {number} hi
 * @param {Float64Array} into one value per row, added to
 */
function spread(edges, counts, lo, hi, into) {
  const unit = (hi - lo) / into.length;
  for (let k = 0; k < counts.length; k += 1) {
    if (!(counts[k] > 0)) continue;
    const from = (edges[k] - lo) / unit;
    const to = Math.max((edges[k + 1] - lo) / unit, from + 1e-9);
    const first = Math.max(0, Math.floor(from));
    const last = Math.min(into.length - 1, Math.ceil(to) - 1);
    for (let r = first; r <= Math.max(first, last) && r < into.length; r += 1) {
      const share = (Math.min(to, r + 1) - Math.max(from, r)) / (to - from);
      into[r] += counts[k] * Math.max(0, share);
    }
  }
}

/**
 * Tags of a chart: those of a group, in natural order.
 * @param {Record<string, unknown>} series by tag, without the model's name
 * @param {string} group text before the first slash
 */
export function tagsOf(series, group) {
  return Object.keys(series)
    .filter((tag) => tag.slice(0, tag.indexOf("/")) === group)
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

/**
 * Share of channels whose value in a history array is above 0, per step.
 * @param {{steps: number[],
 *   arrays: Partial<Record<string, {shape: number[], values: ArrayLike<number>}>>}} history
 * @param {string} name @returns {number[]} empty if there is no such array
 */
export function shareOf(history, name) {
  const array = history.arrays[name];
  if (!array) return [];
  const channels = array.shape[1];
  return history.steps.map((_, i) => {
    let above = 0;
    for (let c = 0; c < channels; c += 1) above += array.values[i * channels + c] > 0 ? 1 : 0;
    return above / Math.max(1, channels);
  });
}

/**
 * Lowest and highest value of a layer at each step, over all channels where these are known, else
 * over the drawn ones; null if they are not stored.
 * @param {History} history
 */
export function rangeLines(history) {
  const isOfAll = Boolean(history.arrays["layer.minimum"]);
  const of = isOfAll ? "layer" : "feature_maps";
  const low = history.arrays[`${of}.minimum`];
  const high = history.arrays[`${of}.maximum`];
  if (!low || !high) return null;
  const channels = low.shape[1];
  const fold = (
    /** @type {Float32Array} */ values,
    /** @type {(a: number, b: number) => number} */ by,
  ) =>
    history.steps.map((_, i) =>
      values
        .subarray(i * channels, (i + 1) * channels)
        .filter(Number.isFinite)
        .reduce((a, b) => (Number.isNaN(a) ? b : by(a, b)), NaN),
    );
  const bad = shareOf(history, `${of}.nonfinite`);
  return {
    isOfAll,
    steps: history.steps,
    least: fold(low.values, Math.min),
    most: fold(high.values, Math.max),
    /** NaN at the steps with a non-finite value, 0 at the others. */
    finite: history.steps.map((_, i) => (bad[i] > 0 ? NaN : 0)),
  };
}
