// @ts-check
/**
 * Decodes the server's answers: JSON with arrays and bytes behind it, and pictures into levels and
 * marks.
 */

import { once } from "./cache.js";
import { MARK, MARK_COLOURS, PIXEL_OF_LEVEL, badMark, packed, stored } from "./palettes.js";

/** @import {Side} from "../model/model.js" */
/** @import {ArrayEntry, Bytes, JsonFloat, MapsAnswer} from "./routes.js" */
/** @import {Container, GridFacts, Maps, MapsPicture, NamedArrays, Planes} from "./server.js" */

/** @template T @param {ArrayBuffer} buffer @returns {Container<T>} */
export function open(buffer) {
  const length = buffer.byteLength < 4 ? -1 : new DataView(buffer).getUint32(0, true);
  if (length < 0 || 4 + length > buffer.byteLength) {
    throw new Error(`the server's answer of ${buffer.byteLength} bytes was cut off`);
  }
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  return { json: JSON.parse(text), body: buffer.slice(4 + length) };
}

/**
 * Little-endian float32.
 * @param {ArrayBuffer} body @param {Record<string, ArrayEntry>} listed
 * @returns {NamedArrays}
 */
export function arrays(body, listed) {
  /** @type {NamedArrays} */
  const found = Object.create(null);
  const view = new DataView(body);
  for (const [name, { offset, shape }] of Object.entries(listed)) {
    const count = size(shape);
    if (offset + 4 * count > body.byteLength) throw new Error(`the array ${name} was cut off`);
    const values = new Float32Array(count);
    for (let i = 0; i < count; i += 1) values[i] = view.getFloat32(offset + 4 * i, true);
    found[name] = { shape, values };
  }
  return found;
}

/** An array of uint8. @param {ArrayBuffer} body @param {ArrayEntry} of */
export function octets(body, { offset, shape }) {
  if (offset + size(shape) > body.byteLength) throw new Error("an array was cut off");
  return new Uint8Array(body, offset, size(shape));
}

/** A copy of some bytes. @param {ArrayBuffer} body @param {Bytes} of */
export function bytes(body, { offset, length }) {
  return body.slice(offset, offset + length);
}

/** @param {number[]} shape */
function size(shape) {
  return shape.reduce((product, side) => product * side, 1);
}

/** A JSON float as a number: NaN for null. @param {JsonFloat|null} value */
export function number(value) {
  return typeof value === "number" ? value : value === null ? NaN : Number(value);
}

// A stored grid picture: the levels and marks of each channel.

/**
 * Top left corners of the tiles of a stored grid, laid out as by torchvision's `make_grid`.
 * @param {number} channels @param {number} height @param {number} width @param {number} perRow
 * @param {number} padding @returns {{left: number, top: number}[]}
 */
export function corners(channels, height, width, perRow, padding) {
  const around = channels === 1 ? 0 : padding; // a single tile has no padding
  return Array.from({ length: channels }, (_, i) => ({
    left: around + (i % perRow) * (width + padding),
    top: around + Math.floor(i / perRow) * (height + padding),
  }));
}

/** Meaning of each colour of a stored picture: a level, or 256 + the code of a mark. */
const meanings = once((/** @type {string} */ name) => {
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
});

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
  const of = meanings(name);
  const places = corners(channels, height, width, header.columns, header.padding);
  const { left: right = Infinity, top: bottom = 0 } = places[channels - 1] ?? {};
  const isTooLow = (bottom + height) * pictureWidth > colours.length;
  if (isTooLow || right + width > pictureWidth) {
    const tiles = `${channels} tiles of ${height}×${width}`;
    throw new Error(`a picture of ${pictureWidth} px holds no ${tiles}`);
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
 * Value of one pixel: NaN where a mark says that it is not finite, `lo` in a constant or dead
 * channel.
 * @param {{planes: Planes, lo: ArrayLike<number>, hi: ArrayLike<number>}} side
 * @param {number} channel @param {number} y @param {number} x
 * @returns {{value: number, unit: number, mark: number}}
 */
export function valueAt({ planes, ...ends }, channel, y, x) {
  const [lo, hi] = [ends.lo[channel], ends.hi[channel]];
  const at = (channel * planes.height + y) * planes.width + x;
  const mark = planes.marks ? planes.marks[at] : 0;
  if (mark && mark < MARK.CONSTANT) return { value: NaN, unit: 0, mark };
  const unit = ((hi - lo) / 255) * planes.coarse;
  return { value: lo + ((hi - lo) * planes.levels[at]) / 255, unit, mark };
}

// One layer at one step: header, per-channel numbers and pictures, decoded in the browser.

/** Newest record format that this tab reads (`FORMAT` of `fmapboard.formats.tab_records`). */
export const FORMAT = 1;

/** Keeps the stored colours. @type {ImageBitmapOptions} */
const EXACT = { colorSpaceConversion: "none", premultiplyAlpha: "none" };

/** @param {ImageBitmap|OffscreenCanvas} picture @returns {ImageData} */
export function pixels(picture) {
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const context = canvas.getContext("2d", { willReadFrequently: true, alpha: true });
  if (!context) throw new Error("this browser has no canvas to decode pictures with");
  context.drawImage(picture, 0, 0);
  return context.getImageData(0, 0, picture.width, picture.height);
}

/**
 * Decodes an answer of `data/maps`. @param {Container<MapsAnswer>} answer
 * @param {(role: string, sample: number) => boolean} wanted pictures @returns {Promise<Maps>}
 */
export async function decodeMaps({ json, body }, wanted = () => true) {
  const { format, pictures } = json.header;
  if (format > FORMAT) {
    throw new Error(
      `a record of format ${format}; this page reads up to ${FORMAT}: reload the page`,
    );
  }
  /** @type {Maps} */
  const maps = {
    header: json.header,
    step: json.step,
    wallTime: json.wall_time,
    arrays: arrays(body, json.arrays),
    planes: new Map(),
    kernels: null,
    missing: json.missing ?? [],
    bytes: body.byteLength,
  };
  await Promise.all(
    json.pictures.map(async ({ role, sample, png }) => {
      if (!wanted(role, sample)) return;
      const picture = await decodeInput(new Blob([bytes(body, png)]));
      if (role === "kernels") {
        maps.kernels = picture;
        maps.bytes += 4 * picture.width * picture.height;
        return;
      }
      const header = pictures.find((each) => each.role === role);
      if (!header || header.role === "kernels")
        throw new Error(`the record's header lists no picture of ${role}`);
      const planes = planesOf(pixels(picture).data, picture.width, header);
      picture.close();
      maps.planes.set(`${role}/${sample}`, planes);
      maps.bytes += planes.levels.length * (planes.marks ? 2 : 1);
    }),
  );
  return maps;
}

/** @param {Blob} blob */
export function decodeInput(blob) {
  return createImageBitmap(blob, EXACT);
}

/** Header of the picture of a role. @param {Maps} maps @param {string} role */
export function pictureOf(maps, role) {
  return maps.header.pictures.find((each) => each.role === role) ?? null;
}

/**
 * The stored depth slices of a volume, ascending; none of other maps.
 * @param {Maps} maps @param {string} role
 */
export function depthsOf(maps, role) {
  const picture = pictureOf(maps, role);
  if (picture?.role === "kernels" || !picture?.slices) return [];
  return [...picture.slices, picture.depth ?? 0].sort((a, b) => a - b);
}

/** Which part of the maps a picture shows; "" for all. @param {MapsPicture} of */
export function partText({ view, slices, depth = 0 }) {
  const slice = slices ? `depth slice ${depth} of 0…${Math.max(...slices, depth)}` : "";
  return [slice, view].filter(Boolean).join("; ");
}

/**
 * Where the slice of a sample is among the stored samples: the middle slices of all are the first.
 * @param {Maps} maps @param {string} role @param {number} sample
 * @param {number|null} place of the slice, 0 to 1; null for the middle one
 */
export function sampleAt(maps, role, sample, place) {
  const depths = depthsOf(maps, role);
  const picture = pictureOf(maps, role);
  if (place === null || !depths.length || !picture || picture.role === "kernels") return sample;
  const at = picture.slices?.indexOf(depths[Math.round(place * (depths.length - 1))]) ?? -1;
  const own = picture.samples * (1 + at) + sample;
  return at >= 0 && maps.planes.has(`${role}/${own}`) ? own : sample;
}

/**
 * The maps of a sample.
 * @param {Maps} maps @param {string} role @param {number} sample
 * @returns {Side|null}
 */
export function sideOf(maps, role, sample) {
  const planes = maps.planes.get(`${role}/${sample}`);
  const lo = maps.arrays[`${role}.lo`];
  const hi = maps.arrays[`${role}.hi`];
  if (!planes || !lo || !hi) return null;
  const from = sample * planes.channels;
  const cut = (/** @type {Float32Array} */ values) => values.subarray(from, from + planes.channels);
  return { planes, lo: cut(lo.values), hi: cut(hi.values) };
}

// Finds out whether two sides of a comparison had the same input image.

const rgbaOf = once((/** @type {ImageBitmap} */ picture) => pixels(picture).data);

/** @param {ImageBitmap} a @param {ImageBitmap} b */
export function samePixels(a, b) {
  if (a === b) return true;
  if (a.width !== b.width || a.height !== b.height) return false;
  const [first, second] = [rgbaOf(a), rgbaOf(b)];
  return first.every((value, i) => value === second[i]);
}

/**
 * The least and the largest value of a map: the ends of its own scale, unless that has 0 in the
 * middle, of which one end is exact and the other one known to a step of the palette.
 * @param {Side} side @param {number} channel @returns {[number, number]}
 */
export function valueRange({ planes, lo, hi }, channel) {
  const [low, high] = [lo[channel], hi[channel]];
  if (low !== -high) return [low, high];
  const size = planes.height * planes.width;
  let [least, most] = [255, 0];
  for (let i = channel * size; i < (channel + 1) * size; i += 1) {
    if (badMark(planes.marks, i)) continue;
    least = Math.min(least, planes.levels[i]);
    most = Math.max(most, planes.levels[i]);
  }
  const unit = 10 ** Math.ceil(Math.log10((2 * high) / 255)); // as exact as it is known
  const at = (/** @type {number} */ level) => {
    const value = ((2 * level) / 255 - 1) * high;
    return level % 255 && unit > 0 ? Math.round(value / unit) * unit + 0 : value;
  };
  return least > most ? [low, high] : [at(least), at(most)];
}
