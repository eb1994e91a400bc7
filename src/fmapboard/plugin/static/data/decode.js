// @ts-check
/** Decodes a stored grid picture from RGBA into the levels and marks of each channel. */

import { MARK, MARK_COLOURS, PIXEL_OF_LEVEL, packed, stored } from "../draw/palettes.js";

/** @typedef {import("./answers.js").MapsPicture} MapsPicture */

/**
 * Maps of C channels, h × w px each.
 * @typedef {object} Planes
 * @property {number} channels
 * @property {number} height
 * @property {number} width
 * @property {Uint8Array} levels [C, h, w]; value = lo + (hi - lo) * level / 255
 * @property {Uint8Array|null} marks [C, h, w], the code of a mark or 0; null if there is none
 * @property {number} coarse uncertainty of a value in levels: 1 in a grey picture without marks,
 *   otherwise 2
 */

/**
 * What `planesOf` reads of a picture's header.
 * @typedef {Pick<MapsPicture, "drawn"|"tile"|"columns"|"padding"|"palette">} GridFacts
 */

/**
 * Top left corners of the tiles of a stored grid, laid out as by torchvision's `make_grid`.
 * @param {number} channels @param {number} height @param {number} width
 * @param {number} perRow @param {number} padding
 * @returns {{left: number, top: number}[]}
 */
export function corners(channels, height, width, perRow, padding) {
  const around = channels === 1 ? 0 : padding; // a single tile has no padding
  return Array.from({ length: channels }, (_, i) => ({
    left: around + (i % perRow) * (width + padding),
    top: around + Math.floor(i / perRow) * (height + padding),
  }));
}

/**
 * Meaning of each colour of a stored picture: a level, or 256 + the code of a mark.
 * @param {string} name of a palette @returns {Map<number, number>}
 */
function meanings(name) {
  /** @type {Map<number, number>} */
  const of = new Map();
  if (name === "grey") {
    // A grey picture without marks uses all 256 greys, one with marks 250: each is its own level.
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
 * Levels and marks of all channels of a picture. Throws an error if the picture is too small for
 * its header, or has a colour that is neither in its palette nor a mark.
 * @param {Uint8ClampedArray} rgba of the whole picture @param {number} pictureWidth px
 * @param {GridFacts} header @returns {Planes}
 */
export function planesOf(rgba, pictureWidth, header) {
  const [height, width] = header.tile;
  const channels = header.drawn;
  const colours = new Uint32Array(rgba.buffer, rgba.byteOffset, rgba.byteLength >> 2);
  const name = header.palette;
  const of = known.get(name) ?? meanings(name);
  known.set(name, of);
  const places = corners(channels, height, width, header.columns, header.padding);
  const last = places[channels - 1];
  if (
    !last ||
    (last.top + height) * pictureWidth > colours.length ||
    last.left + width > pictureWidth
  ) {
    throw new Error(
      `a picture of ${pictureWidth} px holds no ${channels} tiles of ${height}×${width}`,
    );
  }
  const levels = new Uint8Array(channels * height * width);
  const marks = new Uint8Array(levels.length);
  const isGrey = name === "grey";
  let marked = false;
  let seen = -1; // neighbouring pixels often share a colour, which is then looked up once
  let meaning = 0;
  let at = 0;
  for (const { left, top } of places) {
    for (let y = 0; y < height; y += 1) {
      let from = (top + y) * pictureWidth + left;
      for (let x = 0; x < width; x += 1, at += 1, from += 1) {
        const colour = colours[from];
        if (isGrey && (colour & 0xffff) === ((colour >>> 8) & 0xffff)) {
          levels[at] = colour & 0xff; // a grey, by far the most frequent: needs no lookup
          continue;
        }
        if (colour !== seen) {
          const found = of.get(colour);
          if (found === undefined) {
            throw new Error(`the picture holds a colour that is not of the palette ${name}`);
          }
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
 * Value of one pixel: NaN where a mark says that it is not finite. A constant or dead channel has
 * the value `lo`. `unit` is the uncertainty of the value; `mark` is the code of its mark, or 0.
 * @param {Planes} planes @param {number} channel @param {number} y @param {number} x
 * @param {number} lo @param {number} hi
 * @returns {{value: number, unit: number, mark: number}}
 */
export function valueAt(planes, channel, y, x, lo, hi) {
  const at = (channel * planes.height + y) * planes.width + x;
  const mark = planes.marks ? planes.marks[at] : 0;
  if (mark && mark < MARK.CONSTANT) return { value: NaN, unit: 0, mark };
  const unit = ((hi - lo) / 255) * planes.coarse;
  return { value: lo + ((hi - lo) * planes.levels[at]) / 255, unit, mark };
}
