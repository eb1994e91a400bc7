// @ts-check
/** Turns levels, marks and differences into pixels without any interpolation, and paints tiles. */

import { planesIn } from "../model/kernel_cells.js";
import { onPage } from "./canvas.js";
import { levelColours, place } from "../model/value_scale.js";
import { once } from "../server/cache.js";
import { pixels as decodedPixels } from "../server/decode.js";
import { MARK, MARK_TABLE, packed, ramp, rgbOf } from "../server/palettes.js";

/** @import {AnyScene, Difference, Part, Side} from "../model/model.js" */
/** @import {Box, Tile} from "./picture.js" */

/** True if no value of a picture of the input is finite. @param {Uint32Array} image packed */
export function isNan(image) {
  return image.length > 0 && image.every((pixel) => pixel === MARK_TABLE[MARK.NAN]);
}

/** True if no value of a picture of the input is finite. */
export const isNanPicture = once((/** @type {ImageBitmap|OffscreenCanvas} */ picture) =>
  isNan(new Uint32Array(decodedPixels(picture).data.buffer)),
);

const coloursOf = once((/** @type {string} */ name) => Uint32Array.from(ramp(name, 256), packed));

/** The 256 packed colours that the tab draws a palette with. @param {string} name */
export const colours = (name) => coloursOf(onPage(name));

const SIGNED = "signed";
const NONE = new Uint32Array(0);
const lookup = new Uint32Array(256);
/** Instead of colours, the levels between two values. */
const LEVELS = Uint32Array.from({ length: 256 }, (_, level) => level);

/**
 * Packed colours of a map, [h * w].
 * @param {Side} side @param {number} channel @param {readonly [number, number]} range
 * @param {Uint32Array} ramp 256 colours
 */
export function mapPixels({ planes, lo, hi }, channel, range, ramp) {
  const { height, width, levels, marks } = planes;
  const out = new Uint32Array(height * width);
  levelColours(lo[channel], hi[channel], ...range, ramp, lookup);
  for (let i = 0, from = channel * out.length; i < out.length; i += 1, from += 1) {
    out[i] = marks?.[from] ? MARK_TABLE[marks[from]] : lookup[levels[from]];
  }
  return out;
}

/**
 * Packed colours.
 * @param {Difference} between @param {number} channel @param {readonly number[]} range
 * @param {Uint32Array} ramp
 */
function differencePixels({ height, width, values, marks }, channel, [lo, hi], ramp) {
  const from = channel * height * width;
  return Uint32Array.from({ length: height * width }, (_, i) => {
    const mark = marks[from + i];
    return mark ? MARK_TABLE[mark] : ramp[Math.round(255 * place(values[from + i], lo, hi))];
  });
}

/**
 * Pixels of a tile, and the mark that all of them have, or 0.
 * @param {AnyScene} scene @param {Part} part @param {number} channel
 * @param {string} palette of maps
 */
export function pixelsOf(scene, part, channel, palette) {
  const { side, difference } = scene.columns[part.column];
  const { height, width } = scene.a.planes;
  const isBetween = part.isDifference;
  const { lo, hi } = isBetween ? scene.differenceRanges : scene.columnRanges[part.column];
  /** @param {number} c @param {Uint32Array} ramp */
  const of = (c, ramp) => {
    const range = /** @type {const} */ ([lo[c], hi[c]]);
    if (isBetween) return difference ? differencePixels(difference, c, range, ramp) : NONE;
    return side ? stretched(mapPixels(side, c, range, ramp), side.planes, height, width) : NONE;
  };
  const isSigned = isBetween || scene.kind === "kernels";
  const pixels =
    scene.kind === "kernels" && scene.arranged.isColour
      ? mixture((c) => of(channel + c, LEVELS))
      : of(channel, colours(isSigned ? SIGNED : palette));
  return { pixels, width, mark: markOf(scene, part, channel) };
}

/** Pixels from the levels of red, green and blue. @param {(c: number) => Uint32Array} of */
function mixture(of) {
  const [red, green, blue] = [0, 1, 2].map(of);
  return red.map((level, i) => packed([level, green[i], blue[i]]));
}

/**
 * Pixels of a kernel between -peak and peak.
 * @param {Side} side @param {number} plane the first of three if `isColour`
 * @param {number} peak @param {boolean} isColour
 */
export function kernelPixels(side, plane, peak, isColour) {
  const of = (/** @type {number} */ each, ramp = LEVELS) =>
    mapPixels(side, each, [-peak, peak], ramp);
  return isColour ? mixture((c) => of(plane + c)) : of(plane, colours(SIGNED));
}

/**
 * Pixels of a tile brought to another size, by the nearest one.
 * @param {Uint32Array} pixels @param {{height: number, width: number}} from their size
 * @param {number} height @param {number} width
 */
export function stretched(pixels, from, height, width) {
  if (from.height === height && from.width === width) return pixels;
  const columns = Uint32Array.from({ length: width }, (_, x) =>
    Math.floor((x * from.width) / width),
  );
  const out = new Uint32Array(height * width);
  for (let y = 0; y < height; y += 1) {
    const row = Math.floor((y * from.height) / height) * from.width;
    for (let x = 0; x < width; x += 1) out[y * width + x] = pixels[row + columns[x]];
  }
  return out;
}

/**
 * Paints the pixels of tiles on a background; what is drawn over them has CSS px.
 * @param {CanvasRenderingContext2D} context of a canvas of `width` × `height` CSS px at `ratio`
 * @param {{width: number, height: number, ratio: number}} where
 * @param {string} background as the style sheet writes it
 * @param {readonly Tile[]} tiles
 */
export function paintTiles(context, where, background, tiles) {
  const { ratio } = where;
  const [width, height] = [where.width, where.height].map((side) => Math.round(side * ratio));
  const image = new ImageData(Math.max(1, width), Math.max(1, height));
  const out = new Uint32Array(image.data.buffer);
  out.fill(packed(rgbOf(background)));
  for (const { box, pixels, width: wide = 1, across = 1, down = 1 } of tiles) {
    const [left, top] = [box.left, box.top].map((at) => Math.round(at * ratio));
    if (pixels) lay(out, width, height, left, top, pixels, wide, across, down);
  }
  context.putImageData(image, 0, 0);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
}

/**
 * Draws a tile into a picture, clipped at its edges; a map pixel becomes `factor` × `down` px.
 * @param {Uint32Array} out @param {number} outWidth px @param {number} outHeight px
 * @param {number} left device px, may be outside the picture @param {number} top likewise
 * @param {Uint32Array} pixels @param {number} width map px @param {number} factor
 * @param {number} down
 */
export function lay(out, outWidth, outHeight, left, top, pixels, width, factor, down = factor) {
  const height = pixels.length / width;
  const from = Math.max(0, left);
  const to = Math.min(outWidth, Math.round(left + width * factor));
  if (to <= from) return;
  const columns = new Uint32Array(to - from); // of the map, of each px
  let column = Math.floor((from - left) / factor);
  for (let x = from; x < to; x += 1) {
    while (Math.round(left + (column + 1) * factor) <= x) column += 1;
    columns[x - from] = column;
  }
  for (let y = 0; y < height; y += 1) {
    const first = Math.max(0, Math.round(top + y * down));
    const end = Math.min(outHeight, Math.round(top + (y + 1) * down));
    if (end <= first) continue;
    const row = first * outWidth;
    const source = y * width;
    for (let x = from; x < to; x += 1) out[row + x] = pixels[source + columns[x - from]];
    for (let line = first + 1; line < end; line += 1) {
      out.copyWithin(line * outWidth + from, row + from, row + to);
    }
  }
}

/**
 * The mark that all pixels of a map have; 0 if there is none.
 * @param {Uint8Array|null|undefined} marks codes, or palette indices @param {number} from
 * @param {number} size px
 */
export function wholeMark(marks, from, size) {
  const mark = marks?.[from] ?? 0;
  if (!marks || mark < MARK.PADDING) return 0;
  for (let i = from; i < from + size; i += 1) if (marks[i] !== mark) return 0;
  return mark;
}

/**
 * The mark that a tile consists of; 0 for others.
 * @param {AnyScene} scene @param {Part} part @param {number} channel
 */
function markOf(scene, part, channel) {
  const { side, difference } = scene.columns[part.column];
  const { marks, height, width } = (part.isDifference ? difference : side?.planes) ?? NO_MARKS;
  const size = height * width;
  const found = planesIn(scene, channel).map((plane) => wholeMark(marks, plane * size, size));
  return found.every((mark) => mark === found[0]) ? found[0] : 0;
}

const NO_MARKS = { marks: null, height: 0, width: 0 };

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

/** True for a signal, which is drawn as a curve. @param {{height: number, width: number}} of */
export const isCurve = ({ height, width }) => height === 1 && width > 1;

/**
 * A signal as a curve. @param {number} count @param {(i: number) => number} valueOf
 * @param {(i: number) => number} markOf 0 for a value @param {readonly [number, number]} range
 * @param {Box} box CSS px @param {number} ratio @param {{accent: string, line: string}} look
 * @returns {Tile}
 */
export function curveTile(count, valueOf, markOf, range, box, ratio, look) {
  const [width, height] = [box.width, box.height].map((side) => Math.round(side * ratio));
  const placeOf = (/** @type {number} */ value) => place(value, ...range);
  const valuePlace = (/** @type {number} */ i) => placeOf(valueOf(i));
  const colour = packed(rgbOf(look.accent));
  const pixels = curvePixels(count, valuePlace, markOf, { width, height }, colour);
  drawZero(pixels, width, range, packed(rgbOf(look.line)));
  const lines = [{ colour: look.line, thick: 1, away: 0 }];
  return { box, image: tileCanvas(pixels, width), lines };
}

/**
 * Draws a line at 0 below a curve, where that is inside of its scale.
 * @param {Uint32Array} pixels @param {number} width @param {readonly [number, number]} range
 * @param {number} colour packed
 */
export function drawZero(pixels, width, [lo, hi], colour) {
  if (lo >= 0 || hi <= 0) return;
  const rows = pixels.length / width;
  const from = Math.round((1 - place(0, lo, hi)) * (rows - 1)) * width;
  for (let at = from; at < from + width; at += 1) pixels[at] ||= colour;
}

/**
 * A signal as a curve: each column has all values between the least and the largest of its part;
 * one that is not finite has its colour.
 * @param {number} count of values @param {(i: number) => number} placeOf 0 at the bottom to 1
 * @param {(i: number) => number} markOf 0 for a value
 * @param {{width: number, height: number}} size px @param {number} colour packed
 */
export function curvePixels(count, placeOf, markOf, { width, height }, colour) {
  const out = new Uint32Array(width * height);
  const fill = (
    /** @type {number} */ x,
    /** @type {number} */ top,
    /** @type {number} */ bottom,
  ) => {
    for (let y = top; y <= bottom; y += 1) out[y * width + x] = colour;
  };
  /** Of the column before. @type {{top: number, bottom: number}|null} */
  let before = null;
  for (let x = 0; x < width; x += 1) {
    const start = Math.floor((x * count) / width);
    const end = Math.max(start + 1, Math.floor(((x + 1) * count) / width));
    let [least, most, mark] = [1, 0, 0];
    for (let i = start; i < end; i += 1) {
      mark ||= markOf(i);
      least = Math.min(least, placeOf(i));
      most = Math.max(most, placeOf(i));
    }
    if (mark) {
      for (let y = 0; y < height; y += 1) out[y * width + x] = MARK_TABLE[mark];
      before = null;
      continue;
    }
    const top = Math.round((1 - most) * (height - 1));
    const bottom = Math.round((1 - least) * (height - 1));
    // Without a gap to the column before.
    fill(x, Math.min(top, before?.bottom ?? top), Math.max(bottom, before?.top ?? bottom));
    before = { top, bottom };
  }
  return out;
}
