// @ts-check
/** A stored grid, decoded to RGBA, back to levels and marks of each channel. */

import { MARK, MARK_COLOURS, PIXEL_OF_LEVEL, packed, stored } from "../draw/palettes.js";

/**
 * @typedef {object} Planes pictures of C channels, h × w px each
 * @property {number} channels
 * @property {number} height
 * @property {number} width
 * @property {Uint8Array} levels [C, h, w]; value = lo + (hi - lo) * level / 255
 * @property {Uint8Array|null} marks [C, h, w], a mark's code or 0; null where there is none
 * @property {number} coarse how many levels a value may lie above its own: 1, or 2 with a palette
 */

/** How many tiles stand in a row of a stored grid. @param {number} channels */
export function columns(channels) {
  return Math.max(1, Math.floor(Math.sqrt(channels)));
}

/**
 * Where the tiles of a stored grid begin, as make_grid lays them out.
 * @param {number} channels @param {number} height @param {number} width
 * @param {number} perRow @param {number} padding
 * @returns {{left: number, top: number}[]}
 */
export function corners(channels, height, width, perRow, padding) {
  const around = channels === 1 ? 0 : padding; // one tile alone gets no padding
  return Array.from({ length: channels }, (_, i) => ({
    left: around + (i % perRow) * (width + padding),
    top: around + Math.floor(i / perRow) * (height + padding),
  }));
}

/**
 * What each colour of a stored picture stands for: a level, or a mark's code + 256.
 * @param {string} name @returns {Map<number, number>}
 */
function meanings(name) {
  /** @type {Map<number, number>} */
  const of = new Map();
  if (name === "grey") {
    // A plain grey picture holds all 256 greys, one with marks 250 of them: each is its own level.
    for (let grey = 0; grey < 256; grey += 1) of.set(packed([grey, grey, grey]), grey);
  } else {
    stored(name).forEach((rgb, level) => of.set(packed(rgb), PIXEL_OF_LEVEL[level]));
  }
  for (const [code, rgb] of Object.entries(MARK_COLOURS)) of.set(packed(rgb), Number(code) + 256);
  return of;
}

/** @type {Map<string, Map<number, number>>} */
const known = new Map();

/**
 * @param {Uint8ClampedArray} rgba of the whole picture
 * @param {number} pictureWidth px
 * @param {{drawn: number, tile: number[], columns?: number, padding?: number, palette: string}} header
 * @returns {Planes}
 */
export function planesOf(rgba, pictureWidth, header) {
  const [height, width] = header.tile;
  const channels = header.drawn;
  const colours = new Uint32Array(rgba.buffer, rgba.byteOffset, rgba.byteLength >> 2);
  const name = header.palette;
  const of = known.get(name) ?? meanings(name);
  known.set(name, of);
  const places = corners(channels, height, width, header.columns ?? columns(channels), header.padding ?? 2);
  const last = places[channels - 1];
  if (!last || (last.top + height) * pictureWidth > colours.length || last.left + width > pictureWidth) {
    throw new Error(`a picture of ${pictureWidth} px holds no ${channels} tiles of ${height}×${width}`);
  }
  const levels = new Uint8Array(channels * height * width);
  const marks = new Uint8Array(levels.length);
  const isGrey = name === "grey";
  let marked = false;
  let seen = -1; // neighbours often share a colour: look it up once
  let meaning = 0;
  let at = 0;
  for (const { left, top } of places) {
    for (let y = 0; y < height; y += 1) {
      let from = (top + y) * pictureWidth + left;
      for (let x = 0; x < width; x += 1, at += 1, from += 1) {
        const colour = colours[from];
        if (isGrey && (colour & 0xffff) === ((colour >>> 8) & 0xffff)) {
          levels[at] = colour & 0xff; // by far the most frequent: no look-up
          continue;
        }
        if (colour !== seen) {
          const found = of.get(colour);
          if (found === undefined) throw new Error(`the picture holds a colour that is not of the palette ${name}`);
          seen = colour;
          meaning = found;
        }
        if (meaning < 256) levels[at] = meaning;
        else {
          marks[at] = meaning - 256;
          marked = true;
        }
      }
    }
  }
  const coarse = marked || name !== "grey" ? 2 : 1;
  return { channels, height, width, levels, marks: marked ? marks : null, coarse };
}

/**
 * The value of one pixel: a number, or the mark's code where there is none.
 * A constant or dead channel does have a value: its lo.
 * @param {Planes} planes @param {number} channel @param {number} y @param {number} x
 * @param {number} lo @param {number} hi
 * @returns {{value: number, unit: number, mark: number}} value NaN for a mark; unit: its uncertainty
 */
export function valueAt(planes, channel, y, x, lo, hi) {
  const at = (channel * planes.height + y) * planes.width + x;
  const mark = planes.marks ? planes.marks[at] : 0;
  if (mark && mark < MARK.CONSTANT) return { value: NaN, unit: 0, mark };
  const unit = ((hi - lo) / 255) * planes.coarse;
  return { value: lo + ((hi - lo) * planes.levels[at]) / 255, unit, mark };
}
