// @ts-check
/**
 * The point that is looked at: a cross hair over tiles, and the channels ordered by their values
 * there.
 */

import { cellOf } from "../model/state.js";
import { corner } from "./layouts.js";
import { valueAt } from "../server/decode.js";
import { badMark } from "../server/palettes.js";

/** @import {Point, Side} from "../model/model.js" */
/** @import {Box, Layout, Where} from "./picture.js" */

/** A dark line below a light one, which is visible on any colour. */
const LINES = Object.entries({ "#000000": 3, "#ffffff": 1 });
/** Right, left, down, up. @type {[number, number][]} */
const DIRECTIONS = [1, -1].flatMap((way) => [
  [way, 0],
  [0, way],
]);
/** @param {number} at @param {number} lo @param {number} hi */
const within = (at, lo, hi) => Math.min(hi, Math.max(lo, at));

/**
 * Draws a cross hair over a tile, open around the point, and the outline of its cell.
 * @param {CanvasRenderingContext2D} context @param {Box} box of the tile @param {Point} point
 * @param {{height: number, width: number}|null} map size in px, null for a picture
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
    for (const [dx, dy] of DIRECTIONS) {
      const across = (/** @type {number} */ by) => within(x + dx * by, left, left + width);
      const down = (/** @type {number} */ by) => within(y + dy * by, top, top + height);
      context.moveTo(across(gap), down(gap));
      context.lineTo(across(arm), down(arm));
    }
    context.stroke();
    // a cell of less than 3 px is hidden by its outline
    if (!map || map.width * 3 > width) continue;
    const cell = cellOf(point, map.height, map.width);
    const [wide, high] = [width / map.width, height / map.height];
    context.strokeRect(left + cell.x * wide, top + cell.y * high, wide, high);
  }
}

/**
 * The point in sequences: a line per part. @param {CanvasRenderingContext2D} context
 * @param {Layout} of @param {Where} where @param {Point} point
 */
export function pointLines(context, of, where, point) {
  for (let part = 0; part < of.parts; part += 1) {
    const x = corner(of, 0, part).left - (where.left ?? 0) + point.u * of.tileWidth;
    for (const [colour, thick] of LINES) {
      context.fillStyle = colour;
      context.fillRect(x - thick / 2, of.top - where.top, thick, of.count * of.tileHeight);
    }
  }
}

/**
 * The channels by how far they are from their own mean, not finite ones first.
 * @param {Side} side @param {Point} point
 */
export function channelsAt(side, point) {
  const { planes } = side;
  const { y, x } = cellOf(point, planes.height, planes.width);
  const far = (/** @type {{value: number, deviation: number}} */ { value, deviation }) =>
    Number.isNaN(value) ? Infinity : Number.isNaN(deviation) ? -1 : Math.abs(deviation);
  return Array.from({ length: planes.channels }, (_, channel) => ({
    channel,
    ...valueAt(side, channel, y, x),
    deviation: deviationAt(planes, channel, y, x),
  })).sort((a, b) => (far(a) === far(b) ? a.channel - b.channel : far(b) - far(a)));
}

/**
 * How far a channel is from its own mean at a cell, in standard deviations; NaN if it is not finite
 * there or does not vary. The stored levels are a linear function of the values: the deviations are
 * the same.
 * @param {Side["planes"]} planes @param {number} channel @param {number} y @param {number} x
 */
function deviationAt({ height, width, levels, marks }, channel, y, x) {
  const size = height * width;
  const from = channel * size;
  const at = from + y * width + x;
  if (badMark(marks, at)) return NaN;
  let count = 0;
  let sum = 0;
  let sumOfSquares = 0;
  for (let i = from; i < from + size; i += 1) {
    if (badMark(marks, i)) continue;
    count += 1;
    sum += levels[i];
    sumOfSquares += levels[i] * levels[i];
  }
  const mean = sum / count;
  const variance = sumOfSquares / count - mean * mean;
  return variance > 1e-9 ? (levels[at] - mean) / Math.sqrt(variance) : NaN;
}
