// @ts-check
/** The point that is looked at: its cell in a map, and a cross hair over a tile. */

import { frameOf, wantFrames } from "../model/film.js";
import { ownRanges } from "../model/film_scale.js";
import { cellOf, pointOf } from "../model/state.js";
import { colours, mapPixels } from "./paint.js";
import { corner, visible } from "./tile_layout.js";
import { pictureOf, valueAt } from "../server/decode.js";

/** @import {Question} from "../model/compare.js" */
/** @import {Frame} from "../model/film.js" */
/** @import {MapsScene} from "../model/scene.js" */
/** @import {Point} from "../model/state.js" */
/** @import {Side} from "../model/value_scale.js" */
/** @import {Layer} from "../server/answers.js" */
/** @import {Model, Source} from "../server/source.js" */
/** @import {Where} from "./grid_paint.js" */
/** @import {Layout} from "./tile_layout.js" */

/** A dark line below a light one, which is visible on any colour. */
const LINES = Object.freeze(
  /** @type {[string, number][]} */ ([
    ["#000000", 3],
    ["#ffffff", 1],
  ]),
);

/**
 * Draws a cross hair over a tile, open around the point, and the outline of its cell.
 * @param {CanvasRenderingContext2D} context
 * @param {{left: number, top: number, width: number, height: number}} box of the tile, CSS px
 * @param {Point} point @param {{height: number, width: number}|null} map size in px, null for a picture
 */
export function drawCrosshair(context, box, point, map) {
  const { left, top, width, height } = box;
  const [x, y] = [left + point.u * width, top + point.v * height];
  const arm = Math.max(5, Math.min(width, height) / 6);
  const gap = 3;
  for (const [colour, thick] of LINES) {
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.beginPath();
    for (const [dx, dy] of [
      [1, 0],
      [-1, 0],
      [0, 1],
      [0, -1],
    ]) {
      const end = (/** @type {number} */ at, /** @type {number} */ lo, /** @type {number} */ hi) =>
        Math.min(hi, Math.max(lo, at));
      context.moveTo(end(x + dx * gap, left, left + width), end(y + dy * gap, top, top + height));
      context.lineTo(end(x + dx * arm, left, left + width), end(y + dy * arm, top, top + height));
    }
    context.stroke();
    if (!map || map.width * 3 > width) continue; // a cell of less than 3 px is hidden by its outline
    const cell = cellOf(point, map.height, map.width);
    context.strokeRect(
      left + (cell.x * width) / map.width,
      top + (cell.y * height) / map.height,
      width / map.width,
      height / map.height,
    );
  }
}

/**
 * Cross hairs over all visible tiles of a grid; over sequences, a line at the position.
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene @param {Layout} of
 * @param {Where} where @param {string} text point of the address, "" for none
 */
export function gridCrosshairs(context, scene, of, where, text) {
  const point = pointOf(text);
  if (!point) return;
  const scrolled = where.left ?? 0;
  const [first, last] = visible(of, where.top, where.top + where.height);
  scene.parts.forEach((_, part) => {
    if (of.rows) {
      const x = corner(of, 0, part).left - scrolled + point.u * of.tileWidth;
      for (const [colour, thick] of LINES) {
        context.fillStyle = colour;
        context.fillRect(x - thick / 2, of.top - where.top, thick, of.count * of.tileHeight);
      }
      return;
    }
    for (let cell = first; cell < last; cell += 1) {
      const { left, top } = corner(of, cell, part);
      const box = { left, top: top - where.top, width: of.tileWidth, height: of.tileHeight };
      drawCrosshair(context, box, point, scene.a.planes);
    }
  });
}

// Orders channels by their response at a point, and measures how strongly a layer responds there.

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
 * @template {Response} T @param {T[]} responses @returns {T[]}
 */
export function byResponse(responses) {
  const score = (/** @type {Response} */ of) => (Number.isNaN(of.score) ? -1 : of.score);
  return [...responses].sort((a, b) => b.nonfinite - a.nonfinite || score(b) - score(a));
}

// Measures how strongly each layer of a run responds at a point, a few requests at a time.

/**
 * A layer at a point.
 * @typedef {Response & {layer: Layer, height: number, width: number,
 *   block: number, pixels: Uint32Array}} LayerResponse
 */

/**
 * @typedef {object} Ranked
 * @property {LayerResponse[]} layers
 * @property {number} asked layers that have this picture at this step
 * @property {number} done of these
 * @property {string[]} left what was left out and why, in words
 */

export class PixelLayers {
  /** @param {Source} source @param {() => void} changed */
  constructor(source, changed) {
    this.source = source;
    this.frames = { most: 3, changed };
    /** Measured layers of one picture and point. @type {Map<string, LayerResponse|string>} */
    this.measured = new Map();
    this.measuredOf = "";
  }

  /**
   * What is known now; requests the rest.
   * @param {Model} model @param {MapsScene} scene @param {Point} point @returns {Ranked}
   */
  rank({ state, layers }, scene, point) {
    const { run, step, role, sample } = scene.question;
    const of = JSON.stringify([run, step, role, sample, point, state.colours]);
    if (of !== this.measuredOf) this.measured.clear();
    this.measuredOf = of;
    const asked = [];
    let absent = 0;
    for (const layer of layers) {
      const at = layer.steps.indexOf(step);
      const isDrawn = !layer.error && at >= 0 && layer.roles.some((each) => each === role);
      if (!isDrawn) absent += 1;
      else {
        const question = { run, key: layer.key, step, ts: layer.wall_times[at], role, sample };
        asked.push({ layer, question });
      }
    }
    for (const { layer, question } of asked) {
      if (this.measured.has(layer.key)) continue;
      const { value, error } = frameOf(this.source.cache, question) ?? {};
      if (value) this.measured.set(layer.key, measure(layer, value, scene, point, state.colours));
      else if (error) this.measured.set(layer.key, `could not be loaded: ${error.message}`);
    }
    const missing = asked.filter(({ layer }) => !this.measured.has(layer.key));
    this.want(missing.map(({ question }) => question));
    /** @type {LayerResponse[]} */
    const found = [];
    /** @type {Map<string, number>} */
    const left = new Map(absent ? [["have no such picture at this step", absent]] : []);
    for (const each of this.measured.values()) {
      if (typeof each === "string") left.set(each, (left.get(each) ?? 0) + 1);
      else found.push(each);
    }
    return {
      layers: byResponse(found),
      asked: asked.length,
      done: this.measured.size,
      left: [...left].map(([why, count]) => `${count} ${why}`),
    };
  }

  /** Stops all requests. */
  rest() {
    this.want([]);
  }

  /** @param {Question[]} questions */
  want(questions) {
    wantFrames(this.source.cache, this.frames, questions);
  }
}

/**
 * @param {Layer} layer @param {Frame} frame @param {MapsScene} scene @param {Point} point
 * @param {string} palette @returns {LayerResponse|string} a string says why it cannot be measured
 */
function measure(layer, { maps, side }, scene, point, palette) {
  const picture = pictureOf(maps, scene.question.role);
  if (!side || picture?.role === "kernels" || !picture) return "are no longer kept at this step";
  if ((picture.layout === "rows") !== scene.rows) {
    return scene.rows ? "are images, not sequences" : "are sequences, not images";
  }
  const { height, width } = side.planes;
  if (height * width === 1) return "have maps of one pixel, so no place";
  const found = responseAt(side, point);
  if (!found.compared && !found.nonfinite) return "are constant in all channels";
  const how = /** @type {const} */ ({ scale: "channel", zeroCentred: palette === "signed" });
  const { lo, hi } = ownRanges(side, how);
  const range = /** @type {const} */ ([lo[found.channel], hi[found.channel]]);
  const pixels =
    found.channel < 0
      ? new Uint32Array(0)
      : mapPixels(side, found.channel, range, colours(palette));
  return { ...found, layer, height, width, block: picture.block, pixels };
}
