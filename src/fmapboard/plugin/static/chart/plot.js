// @ts-check
/** Draws small charts on canvas: lines, bands, heat maps, and a line at the current step. */

import { labelOf, short, ticks } from "../model/words.js";
import { cutStart, prepare, theme } from "../picture/canvas.js";
import { FAULT_COLOURS, mixed, rgbOf } from "../server/palettes.js";
import { nearest } from "../server/steps.js";

/** @import {Words} from "../model/words.js" */
/** @import {Heat} from "./series.js" */

const LEFT = 52;
const RIGHT = 8;
const TOP = 6;
const BOTTOM = 18;

/**
 * Clears a canvas, draws axes and their labels, and returns the chart's coordinates.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height CSS px
 * @param {[number, number]} steps first and last @param {[number, number]} values lowest and highest
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
    context.fillText(short(value, 2), LEFT - 5, line);
  }
  context.textBaseline = "alphabetic";
  context.fillStyle = look.muted;
  context.textAlign = "left";
  const half = (width - LEFT - RIGHT) / 2 - 6;
  context.fillText(endText(context, words, from, half), LEFT, height - 4);
  context.textAlign = "right";
  if (to > from) context.fillText(endText(context, words, to, half), width - RIGHT, height - 4);
  return { context, width, height, x, y };
}

/** @typedef {ReturnType<typeof frame>} Frame coordinates of a chart, CSS px */

/**
 * The first or last step, with the name of what it shows if there is one.
 * @param {CanvasRenderingContext2D} context @param {Words} words @param {number} step
 * @param {number} width CSS px
 */
function endText(context, words, step, width) {
  const [number, name] = labelOf(words, step);
  const rest = width - context.measureText(`${number} `).width;
  return name ? `${number} ${cutStart(context, name, rest)}` : number;
}

/** Powers of ten between two logarithms, at most 5, or both ends. @param {number} lo @param {number} hi */
function decades(lo, hi) {
  const found = [];
  const every = Math.max(1, Math.ceil((hi - lo) / 4));
  for (let power = Math.ceil(lo); power <= hi + 1e-9; power += every) found.push(10 ** power);
  return found.length > 1 ? found : [10 ** lo, 10 ** hi];
}

/**
 * @param {Frame} of @param {number[]} steps @param {ArrayLike<number>} values non-finite ones
 * interrupt the line @param {string} colour @param {readonly number[]} dash px
 */
export function drawLine({ context, x, y }, steps, values, colour, dash = []) {
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
    drawing = true;
    if (steps.length === 1) context.fillRect(point[0] - 2, point[1] - 2, 4, 4);
  }
  context.stroke();
  context.setLineDash([]);
}

/** Marks steps at an edge. @param {Pick<Frame, "context"|"x">} of @param {number[]} steps @param {number} edge CSS px */
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
 * Marks at the upper edge the steps whose value is not finite, which no line can show.
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
 * @param {Frame} of @param {number[]} steps
 * @param {ArrayLike<number>} low @param {ArrayLike<number>} high @param {string} colour
 */
export function drawBand({ context, x, y }, steps, low, high, colour) {
  context.fillStyle = colour;
  for (let i = 0; i + 1 < steps.length; i += 1) {
    if (![low[i], high[i], low[i + 1], high[i + 1]].every(Number.isFinite)) continue;
    context.beginPath();
    context.moveTo(x(steps[i]), y(low[i]));
    context.lineTo(x(steps[i + 1]), y(low[i + 1]));
    context.lineTo(x(steps[i + 1]), y(high[i + 1]));
    context.lineTo(x(steps[i]), y(high[i]));
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
 * Selects the nearest kept step when a chart is clicked or dragged on: attributes of its canvas.
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
