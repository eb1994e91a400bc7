// @ts-check
/** One layer at one step: its header, its numbers and its pictures, decoded in the browser. */

import { arrays } from "./container.js";
import { planesOf } from "./decode.js";

/**
 * @typedef {object} Maps
 * @property {any} header
 * @property {number} step
 * @property {number} wallTime
 * @property {Record<string, {shape: number[], values: Float32Array}>} arrays
 * @property {Map<string, import("./decode.js").Planes>} planes by `role/sample`
 * @property {ImageBitmap|null} kernels
 * @property {string[]} missing roles whose pictures TensorBoard has let go
 * @property {number} bytes
 */

/** The newest format of records that this tab reads (`tab_format.FORMAT`). */
export const FORMAT = 2;

/** Exactly the stored colours: nothing converted, nothing premultiplied. @type {ImageBitmapOptions} */
const EXACT = { colorSpaceConversion: "none", premultiplyAlpha: "none" };

/** @param {ArrayBuffer} bytes */
function bitmap(bytes) {
  return createImageBitmap(new Blob([bytes], { type: "image/png" }), EXACT);
}

/** @param {ImageBitmap} picture @returns {ImageData} */
function pixels(picture) {
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const context = canvas.getContext("2d", { willReadFrequently: true, alpha: true });
  if (!context) throw new Error("this browser has no canvas to decode pictures with");
  context.drawImage(picture, 0, 0);
  return context.getImageData(0, 0, picture.width, picture.height);
}

/**
 * @param {{json: any, body: ArrayBuffer}} answer of `data/maps`
 * @returns {Promise<Maps>}
 */
export async function decodeMaps({ json, body }) {
  if (json.header.format > FORMAT) {
    throw new Error(`a record of format ${json.header.format}; this page reads up to ${FORMAT}: reload the page`);
  }
  /** @type {Maps} */
  const maps = {
    header: json.header, step: json.step, wallTime: json.wall_time, arrays: Object.create(null),
    planes: new Map(), kernels: null, missing: json.missing ?? [], bytes: body.byteLength,
  };
  const headers = new Map(json.header.pictures.map((/** @type {any} */ each) => [each.role, each]));
  await Promise.all(json.parts.map(async (/** @type {any} */ part) => {
    if (part.kind === "arrays") {
      maps.arrays = arrays(body, part.arrays, part.offset);
      return;
    }
    const picture = await bitmap(body.slice(part.offset, part.offset + part.length));
    if (part.role === "kernels") {
      maps.kernels = picture;
      maps.bytes += 4 * picture.width * picture.height;
      return;
    }
    const planes = planesOf(pixels(picture).data, picture.width, headers.get(part.role));
    picture.close();
    maps.planes.set(`${part.role}/${part.sample}`, planes);
    maps.bytes += planes.levels.length * (planes.marks ? 2 : 1);
  }));
  return maps;
}

/** @param {Blob} blob */
export function decodeInput(blob) {
  return createImageBitmap(blob, EXACT);
}

/** The header of one role's picture. @param {Maps} maps @param {string} role */
export function pictureOf(maps, role) {
  return maps.header.pictures.find((/** @type {any} */ each) => each.role === role) ?? null;
}

/**
 * The side of a comparison that can be drawn: planes with lo and hi of their sample.
 * @param {Maps} maps @param {string} role @param {number} sample
 * @returns {import("../draw/value_scale.js").Side|null}
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
