// @ts-check
/** Turns levels, marks and differences into pixels, without any interpolation. */

import { columnIndex, columnOf, differenceOf } from "../model/scene.js";
import { levelColours, place } from "../model/value_scale.js";
import { theme } from "./canvas.js";
import { MARK, MARK_COLOURS, MARK_TABLE, mixed, rgbOf, table } from "../server/palettes.js";

// Turns levels, marks and differences into pixels, without any interpolation.

/** @typedef {import("../model/scene.js").MapsScene} MapsScene */

/** @type {Map<string, Uint32Array>} */
const tables = new Map();

/** 256 packed colours of a palette. @param {string} name */
export function colours(name) {
  let found = tables.get(name);
  if (!found) tables.set(name, (found = table(name)));
  return found;
}

const SIGNED = "signed";
const lookup = new Uint32Array(256);

/**
 * Colours of one tile, one per map pixel, packed: u32 [h * w].
 * @param {MapsScene} scene @param {import("../model/scene.js").Part} part
 * @param {number} channel @param {string} palette @returns {Uint32Array}
 */
export function tilePixels(scene, part, channel, palette) {
  const between = differenceOf(scene, part);
  if (between) return differencePixels(between, scene.differenceRanges, channel);
  const { side } = columnOf(scene, part);
  if (!side) return new Uint32Array(0);
  const { height, width, levels, marks } = side.planes;
  const size = height * width;
  const out = new Uint32Array(size);
  const { lo, hi } = scene.columnRanges[columnIndex(part)];
  levelColours(
    side.lo[channel],
    side.hi[channel],
    lo[channel],
    hi[channel],
    colours(palette),
    lookup,
  );
  const from = channel * size;
  for (let i = 0; i < size; i += 1) out[i] = lookup[levels[from + i]];
  if (marks) {
    for (let i = 0; i < size; i += 1) if (marks[from + i]) out[i] = MARK_TABLE[marks[from + i]];
  }
  return out;
}

/**
 * @param {import("../model/value_scale.js").Difference} between
 * @param {import("../model/value_scale.js").Ranges} ranges @param {number} channel
 */
function differencePixels({ height, width, values, marks }, ranges, channel) {
  const size = height * width;
  const out = new Uint32Array(size);
  const lo = ranges.lo[channel];
  const hi = ranges.hi[channel];
  const signed = colours(SIGNED);
  const from = channel * size;
  for (let i = 0; i < size; i += 1) {
    const mark = marks[from + i];
    out[i] = mark ? MARK_TABLE[mark] : signed[Math.round(255 * place(values[from + i], lo, hi))];
  }
  return out;
}

/**
 * Pixels of a tile brought to another size; each takes the colour of the nearest pixel.
 * @param {Uint32Array} pixels @param {{height: number, width: number}} from their size
 * @param {number} height @param {number} width
 */
export function stretched(pixels, from, height, width) {
  if (from.height === height && from.width === width) return pixels;
  return Uint32Array.from({ length: height * width }, (_, i) => {
    const y = Math.floor((Math.floor(i / width) * from.height) / height);
    return pixels[y * from.width + Math.floor(((i % width) * from.width) / width)];
  });
}

/**
 * Draws a tile into a picture, clipped at its edges; a map pixel becomes `factor` × `down` px.
 * @param {Uint32Array} out @param {number} outWidth px @param {number} outHeight px
 * @param {number} left device px, may be outside the picture @param {number} top likewise
 * @param {Uint32Array} pixels @param {number} width of the tile, map px
 * @param {number} factor @param {number} down
 */
export function lay(out, outWidth, outHeight, left, top, pixels, width, factor, down = factor) {
  const height = pixels.length / width;
  const from = Math.max(0, left);
  const to = Math.min(outWidth, left + width * factor);
  if (to <= from) return;
  for (let y = 0; y < height; y += 1) {
    const first = Math.max(0, top + y * down);
    const end = Math.min(outHeight, top + (y + 1) * down);
    if (end <= first) continue;
    const row = first * outWidth;
    const source = y * width;
    if (factor === 1) {
      for (let x = from; x < to; x += 1) out[row + x] = pixels[source + x - left];
    } else {
      let x = from;
      let column = Math.floor((from - left) / factor);
      while (x < to) {
        const stop = Math.min(to, left + (column + 1) * factor);
        out.fill(pixels[source + column], row + x, row + stop);
        x = stop;
        column += 1;
      }
    }
    for (let line = first + 1; line < end; line += 1) {
      out.copyWithin(line * outWidth + from, row + from, row + to);
    }
  }
}

/** Distance of the lines over a map that is one mark, map px, and how strongly they are drawn. */
const [ROW_HATCH, INK, TINT] = [6, 0.4, 0.08];

/**
 * A map that is the same mark everywhere, which has no picture: its colour is only hinted at, and
 * lines tell it without colour vision, crossed for values that are not finite.
 * @param {import("../server/decode.js").Planes} planes @param {number} channel
 * @returns {Uint32Array|null} packed colours [h * w]; null if the map has values
 */
export function markedField({ height, width, marks }, channel) {
  const from = channel * height * width;
  const mark = marks?.[from] ?? 0;
  if (!marks || !mark) return null;
  for (let i = from; i < from + height * width; i += 1) if (marks[i] !== mark) return null;
  const page = rgbOf(theme().background);
  const [field, line] = [TINT, INK].map((share) => mixed(page, MARK_COLOURS[mark], share));
  const spacing = height === 1 ? ROW_HATCH : Math.max(4, Math.round(width / 4));
  const isCrossed = mark < MARK.CONSTANT;
  return Uint32Array.from({ length: height * width }, (_, i) => {
    const [x, y] = [i % width, Math.floor(i / width)];
    const isLine = mark === MARK.CONSTANT ? y % spacing === 0 : (x + y) % spacing === 0;
    return isLine || (isCrossed && (x - y) % spacing === 0) ? line : field;
  });
}

/**
 * A tile on a canvas of its own, which can be drawn at any size.
 * @param {Uint32Array} pixels @param {number} width
 */
export function tileCanvas(pixels, width) {
  const height = pixels.length / width;
  const canvas = new OffscreenCanvas(Math.max(1, width), Math.max(1, height));
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const bytes = new Uint8ClampedArray(pixels.buffer, pixels.byteOffset, pixels.byteLength);
  if (width && height) {
    context.putImageData(new ImageData(new Uint8ClampedArray(bytes), width, height), 0, 0);
  }
  return canvas;
}

// Colours of one frame of a film strip.

/** @typedef {import("../model/value_scale.js").Ranges} Ranges */
/** @typedef {import("../model/value_scale.js").Side} Side */

const frameLookup = new Uint32Array(256);

/**
 * Packed colours of a channel's map, [h * w].
 * @param {Side} side @param {number} channel @param {Ranges} ranges @param {string} palette
 */
export function framePixels({ planes, lo, hi }, channel, ranges, palette) {
  const field = markedField(planes, channel);
  if (field) return field;
  const { height, width, levels, marks } = planes;
  const size = height * width;
  const from = channel * size;
  const out = new Uint32Array(size);
  levelColours(
    lo[channel],
    hi[channel],
    ranges.lo[channel],
    ranges.hi[channel],
    colours(palette),
    frameLookup,
  );
  for (let i = 0; i < size; i += 1) {
    const mark = marks ? marks[from + i] : 0;
    out[i] = mark ? MARK_TABLE[mark] : frameLookup[levels[from + i]];
  }
  return out;
}

/**
 * A row of pixels shrunk to fewer. A pixel with a mark that is not finite stays visible; of others
 * the one in the middle of each interval is taken.
 * @param {Uint32Array} row @param {number} to px @param {Uint8Array|null} marks of the row
 */
export function shrunkRow(row, to, marks) {
  const out = new Uint32Array(to);
  for (let x = 0; x < to; x += 1) {
    const start = Math.floor((x * row.length) / to);
    const end = Math.max(start + 1, Math.floor(((x + 1) * row.length) / to));
    let at = (start + end - 1) >> 1;
    for (let i = start; marks && i < end; i += 1) {
      if (marks[i] >= 251 && marks[i] <= 253) at = i;
    }
    out[x] = row[at];
  }
  return out;
}
