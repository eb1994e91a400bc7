// @ts-check
/** Small charts over steps on canvas: lines, bands, heat maps, and a line at the current step. */

import { kindOf, labelOf, short, ticks } from "../model/words.js";
import { cutStart, prepare, theme } from "../picture/canvas.js";
import { once } from "../server/cache.js";
import { number } from "../server/decode.js";
import { FAULT_COLOURS, mixed, rgbOf } from "../server/palettes.js";
import { nearest } from "../server/steps.js";

/** @import {History, Words} from "../model/model.js" */
/** @import {HistogramChart, ScalarChart} from "../server/routes.js" */
/** @import {Curve, Frame, Heat} from "./chart.js" */

const LEFT = 56;
const RIGHT = 8;
const TOP = 6;
const BOTTOM = 18;
/** Width of a bar of an image, CSS px. */
const BAR = 6;

/**
 * Clears a canvas, draws axes and their labels, and returns the chart's coordinates.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height CSS px
 * @param {[number, number]} steps first and last
 * @param {[number, number]} values lowest and highest
 * @param {boolean} log logarithmic values; 0 is at the lower edge @param {Words} words of the steps
 */
export function frame(canvas, width, height, steps, values, log = false, words = {}) {
  const look = theme();
  const context = prepare(canvas, width, height);
  context.clearRect(0, 0, width, height);
  const [from, to] = steps;
  const scaled = (/** @type {number} */ value) =>
    log ? Math.log10(value > 0 ? value : values[0]) : value;
  const [lo, hi] = values.map(scaled);
  const x = (/** @type {number} */ step) =>
    to > from
      ? LEFT + ((step - from) / (to - from)) * (width - LEFT - RIGHT)
      : (LEFT + width - RIGHT) / 2;
  const y = (/** @type {number} */ value) =>
    height - BOTTOM - ((scaled(value) - lo) / (hi - lo || 1)) * (height - BOTTOM - TOP);
  context.font = look.font;
  context.lineWidth = 1;
  context.textBaseline = "middle";
  context.textAlign = "right";
  const places = log ? decades(lo, hi) : ticks(values[0], values[1], 4);
  for (const value of places) {
    context.strokeStyle = look.line;
    context.beginPath();
    const line = Math.round(y(value)) + 0.5;
    context.moveTo(LEFT, line);
    context.lineTo(width - RIGHT, line);
    context.stroke();
    context.fillStyle = look.muted;
    valueLabel(context, value, line);
  }
  context.textBaseline = "alphabetic";
  context.fillStyle = look.muted;
  context.textAlign = "left";
  // The first and the last step, with the name of what they show if there is one.
  const endText = (/** @type {number} */ step) => {
    const [number, name] = labelOf(words, step);
    const rest = (width - LEFT - RIGHT) / 2 - 6 - context.measureText(`${number} `).width;
    return name ? `${number} ${cutStart(context, name, rest)}` : number;
  };
  context.fillText(endText(from), LEFT, height - 4);
  context.textAlign = "right";
  if (to > from) context.fillText(endText(to), width - RIGHT, height - 4);
  return { context, width, height, x, y, isOfImages: kindOf(words) === "image" };
}

/**
 * A value left of the axis, squeezed if it is wider than the space there.
 * @param {CanvasRenderingContext2D} context @param {number} value @param {number} y CSS px
 */
export function valueLabel(context, value, y) {
  context.fillText(short(value, 2), LEFT - 5, y, LEFT - 6);
}

/**
 * Powers of ten between two logarithms, at most 5, or both ends.
 * @param {number} lo @param {number} hi
 */
function decades(lo, hi) {
  const found = [];
  const every = Math.max(1, Math.ceil((hi - lo) / 4));
  for (let power = Math.ceil(lo); power <= hi + 1e-9; power += every) found.push(10 ** power);
  return found.length > 1 ? found : [10 ** lo, 10 ** hi];
}

/**
 * A line over steps; images have points, since nothing is between two of them.
 * @param {Omit<Frame, "width"|"height">} of @param {number[]} steps
 * @param {ArrayLike<number>} values @param {string} colour @param {readonly number[]} dash
 */
export function drawLine({ context, x, y, isOfImages }, steps, values, colour, dash = []) {
  context.setLineDash(dash);
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.lineWidth = 1.5;
  context.lineJoin = "round";
  context.beginPath();
  let drawing = false;
  for (let i = 0; i < steps.length; i += 1) {
    if (!Number.isFinite(values[i])) {
      drawing = false;
      continue;
    }
    const point = /** @type {const} */ ([x(steps[i]), y(values[i])]);
    if (drawing) context.lineTo(...point);
    else context.moveTo(...point);
    drawing = !isOfImages;
    if (isOfImages || steps.length === 1) context.fillRect(point[0] - 2, point[1] - 2, 4, 4);
  }
  context.stroke();
  context.setLineDash([]);
}

/**
 * Marks steps at an edge.
 * @param {Pick<Frame, "context"|"x">} of @param {number[]} steps @param {number} edge CSS px
 */
function drawTriangles({ context, x }, steps, edge) {
  for (const at of steps.map(x)) {
    context.beginPath();
    context.moveTo(at - 4, edge);
    context.lineTo(at + 4, edge);
    context.lineTo(at, edge + TOP + 1);
    context.fill();
  }
}

/**
 * Marks steps that are not finite at the upper edge.
 * @param {Frame} of @param {number[]} steps @param {ArrayLike<number>} values
 */
export function drawNonfinite(of, steps, values) {
  of.context.fillStyle = FAULT_COLOURS.nonfinite;
  const marked = steps.filter((_, i) => !Number.isFinite(values[i]));
  drawTriangles(of, marked, 0);
}

/**
 * Marks at the lower edge the steps whose value is 0, which a logarithmic axis does not have.
 * @param {Pick<Frame, "context"|"x"|"height">} of @param {number[]} steps
 * @param {ArrayLike<number>} values @param {string} colour
 */
export function drawZeros(of, steps, values, colour) {
  of.context.fillStyle = colour;
  const marked = steps.filter((_, i) => values[i] === 0);
  drawTriangles(of, marked, of.height - BOTTOM);
}

/**
 * @param {Frame} of @param {number[]} steps @param {ArrayLike<number>} low
 * @param {ArrayLike<number>} high @param {string} colour
 */
export function drawBand({ context, x, y, isOfImages }, steps, low, high, colour) {
  context.fillStyle = colour;
  const isKnown = (/** @type {number} */ i) => Number.isFinite(low[i]) && Number.isFinite(high[i]);
  if (isOfImages) {
    for (const i of [...steps.keys()].filter(isKnown)) {
      context.fillRect(x(steps[i]) - BAR / 2, y(high[i]), BAR, y(low[i]) - y(high[i]));
    }
    return;
  }
  for (let from = 0, to = 0; from < steps.length; from = to + 1) {
    to = from;
    while (to < steps.length && isKnown(to)) to += 1;
    context.beginPath(); // one outline: a fill per step would take as long as all other charts
    for (let i = from; i < to; i += 1) context.lineTo(x(steps[i]), y(high[i]));
    for (let i = to - 1; i >= from; i -= 1) context.lineTo(x(steps[i]), y(low[i]));
    context.fill();
  }
}

/** The colours of densities: from the page's background over the accent to that of text. */
function densities() {
  const { panel, accent, text } = theme();
  const [low, middle, high] = [panel, accent, text].map(rgbOf);
  return Uint32Array.from({ length: 256 }, (_, i) =>
    i < 160 ? mixed(low, middle, i / 160) : mixed(middle, high, (i - 160) / 95),
  );
}

/** @param {Frame} of @param {Heat} heat */
export function drawHeat({ context, x, height }, heat) {
  const columns = heat.steps.length;
  const image = new ImageData(columns, heat.rows);
  const out = new Uint32Array(image.data.buffer);
  const colours = densities();
  for (let s = 0; s < columns; s += 1) {
    for (let r = 0; r < heat.rows; r += 1) {
      const density = heat.density[s * heat.rows + r];
      const at = (heat.rows - 1 - r) * columns + s;
      // The square root makes thin tails visible.
      out[at] = Number.isNaN(density) ? 0 : colours[Math.round(255 * Math.sqrt(density))];
    }
  }
  const small = new OffscreenCanvas(columns, heat.rows);
  const pixels = /** @type {OffscreenCanvasRenderingContext2D} */ (small.getContext("2d"));
  pixels.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  for (let s = 0; s < columns; s += 1) {
    const left = s === 0 ? x(heat.steps[0]) : (x(heat.steps[s - 1]) + x(heat.steps[s])) / 2;
    const right =
      s === columns - 1 ? x(heat.steps[s]) : (x(heat.steps[s]) + x(heat.steps[s + 1])) / 2;
    const [at, wide] = columns === 1 ? [left - 12, 24] : [left, Math.max(1, right - left)];
    context.drawImage(small, s, 0, 1, heat.rows, at, TOP, wide, height - TOP - BOTTOM);
  }
}

/** A vertical line at a step. @param {Frame} of @param {number} step @param {string} colour */
export function drawNow({ context, x, height }, step, colour) {
  const at = Math.round(x(step)) + 0.5;
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(at, TOP - 2);
  context.lineTo(at, height - BOTTOM + 2);
  context.stroke();
}

/**
 * Attributes of a canvas on which a step is picked.
 * @param {number[]} steps @param {(step: number) => void} chosen
 */
export function picking(steps, chosen) {
  /** @param {PointerEvent & {currentTarget: HTMLCanvasElement}} event */
  const pick = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - box.left - LEFT) / Math.max(1, box.width - LEFT - RIGHT);
    const found = nearest(steps, steps[0] + share * (steps[steps.length - 1] - steps[0]));
    if (found !== null) chosen(found);
  };
  return {
    onPointerMove: (/** @type {Parameters<typeof pick>[0]} */ event) =>
      void (event.buttons & 1 && pick(event)),
    onPointerDown: (/** @type {Parameters<typeof pick>[0]} */ event) => {
      event.currentTarget.setPointerCapture(event.pointerId);
      pick(event);
    },
  };
}

// What is drawn: series over steps, and their axes.

/**
 * A channel of [steps, channels].
 * @param {ArrayLike<number>} values @param {number} channels @param {number} channel
 */
export function column(values, channels, channel) {
  const steps = channels ? values.length / channels : 0;
  return Float64Array.from({ length: steps }, (_, i) => values[i * channels + channel]);
}

/**
 * Lowest and highest finite value, widened if equal.
 * @param {ArrayLike<number>[]} lines
 * @returns {[number, number]|null}
 */
export function extent(lines) {
  const finite = lines.flatMap((line) => Array.from(line).filter(Number.isFinite));
  if (!finite.length) return null;
  const [lo, hi] = [
    finite.reduce((a, b) => Math.min(a, b)),
    finite.reduce((a, b) => Math.max(a, b)),
  ];
  const half = lo === hi ? Math.abs(lo) / 10 || 0.5 : 0;
  return [lo - half, hi + half];
}

/** From this ratio of the ends on, an axis of positive values is logarithmic. */
const LOG_FROM = 20;

/**
 * The axis of values from 0 on; a logarithmic one spans the positive values.
 * @param {ArrayLike<number>[]} lines
 * @param {[number, number]|null} usual a range that is always in sight
 */
export function axisOf(lines, usual = null) {
  const known = usual ? [...lines, usual] : lines;
  const positive = extent(known.map((each) => Array.from(each).filter((value) => value > 0)));
  if (positive && positive[1] / positive[0] > LOG_FROM) return { values: positive, log: true };
  return { values: extent(known) ?? [0, 1], log: false };
}

/** A scalar series with its JSON floats as numbers. @param {ScalarChart} raw @returns {Curve} */
export function line(raw) {
  return { steps: raw.steps, values: raw.values.map(number) };
}

/**
 * Histograms as a heat map: counts resampled to even rows.
 * @param {HistogramChart} raw @param {number} rows
 */
export function heat(raw, rows) {
  const edges = raw.edges.map((list) => list.map(number));
  const counts = raw.counts.map((list) => list.map(number));
  const range = extent(
    edges.flatMap((list, s) => {
      const first = counts[s].findIndex((count) => count > 0);
      const last = counts[s].findLastIndex((count) => count > 0);
      return first < 0 ? [] : [[list[first], list[last + 1]]]; // of the buckets that are not empty
    }),
  );
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

/**
 * @param {number[]} edges @param {number[]} counts @param {number} lo @param {number} hi
 * @param {Float64Array} into per row
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
 * Tags of a group, in natural order.
 * @param {Record<string, unknown>} series by tag @param {string} group before the slash
 */
export function tagsOf(series, group) {
  return Object.keys(series)
    .filter((tag) => tag.slice(0, tag.indexOf("/")) === group)
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

/**
 * Percentage of channels whose value in a history array is above 0, per step.
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
    return (100 * above) / Math.max(1, channels);
  });
}

/**
 * Lowest and highest value at each step, of all channels if they are known, else of those drawn.
 * All steps are looked at once, not with each change of step.
 */
export const rangeLines = once(
  /** @param {History} history */ (history) => {
    const isOfAll = Boolean(history.arrays["layer.minimum"]);
    const of = isOfAll ? "layer" : "feature_maps";
    const low = history.arrays[`${of}.minimum`];
    const high = history.arrays[`${of}.maximum`];
    if (!low || !high) return null;
    const channels = low.shape[1];
    const fold = (/** @type {Float32Array} */ values, /** @type {"min"|"max"} */ by) =>
      history.steps.map((_, i) => {
        const finite = values.subarray(i * channels, (i + 1) * channels).filter(Number.isFinite);
        return finite.length ? finite.reduce((a, b) => Math[by](a, b)) : NaN;
      });
    const bad = shareOf(history, `${of}.nonfinite`);
    return {
      isOfAll,
      steps: history.steps,
      least: fold(low.values, "min"),
      most: fold(high.values, "max"),
      /** NaN at the steps with a non-finite value, 0 at the others. */
      finite: history.steps.map((_, i) => (bad[i] > 0 ? NaN : 0)),
    };
  },
);
