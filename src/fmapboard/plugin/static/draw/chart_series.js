// @ts-check
/** Numbers over steps, made ready to be drawn: lines, bands and heat pictures. */

import { number } from "../data/container.js";

/**
 * @typedef {{steps: number[], values: ArrayLike<number>}} Line
 */

/**
 * One channel's line out of a history array [steps, channels].
 * @param {ArrayLike<number>} values @param {number} channels @param {number} channel
 */
export function column(values, channels, channel) {
  const steps = channels ? values.length / channels : 0;
  return Float64Array.from({ length: steps }, (_, i) => values[i * channels + channel]);
}

/** Lowest and highest finite value, widened where they are one; null for none. @param {ArrayLike<number>[]} lines @returns {[number, number]|null} */
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

/** A scalar series as it came in JSON. @param {{steps: number[], values: unknown[]}} raw @returns {Line} */
export function line(raw) {
  return { steps: raw.steps, values: raw.values.map(number) };
}

/**
 * @typedef {object} Heat
 * @property {number[]} steps
 * @property {number} lo value at the bottom
 * @property {number} hi value at the top
 * @property {number} rows
 * @property {Float64Array} density [steps, rows], each step's largest is 1; NaN for an empty step
 */

/**
 * Histograms over time as one picture: each step's counts spread over common even rows.
 * @param {{steps: number[], edges: unknown[][], counts: unknown[][]}} raw
 * @param {number} rows
 * @returns {Heat|null} null where no step holds a count
 */
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

/** The outer edges of the buckets that hold something. @param {number[]} edges @param {number[]} counts */
function occupied(edges, counts) {
  const first = counts.findIndex((count) => count > 0);
  const last = counts.findLastIndex((count) => count > 0);
  return first < 0 ? [] : [edges[first], edges[last + 1]];
}

/** @param {number[]} edges @param {number[]} counts @param {number} lo @param {number} hi @param {Float64Array} into */
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
 * Which of a layer's series belongs under which chart.
 * @param {Record<string, unknown>} series by tag @param {string} group before the first slash
 * @returns {string[]} tags, in natural order
 */
export function tagsOf(series, group) {
  return Object.keys(series)
    .filter((tag) => tag.slice(0, tag.indexOf("/")) === group || tag.endsWith(`.${group}`) || tag.split("/")[0].endsWith(`.${group}`))
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

/**
 * At each step, the share of channels whose number in a history array is above 0.
 * @param {{steps: number[], arrays: Record<string, {shape: number[], values: ArrayLike<number>}>}} history
 * @param {string} name @returns {number[]} empty where there is no such array
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
