// @ts-check
/** One layer at one step: header, per-channel numbers and pictures, decoded in the browser. */

import { arrays, bytes } from "./container.js";
import { planesOf } from "./decode.js";

/** @typedef {import("./routes.js").MapsAnswer} MapsFacts */
/** @typedef {import("./answers.js").MapsPicture} MapsPicture */

/**
 * @typedef {object} Maps
 * @property {import("./answers.js").RecordHeader} header
 * @property {number} step
 * @property {number} wallTime s
 * @property {import("./container.js").NamedArrays} arrays
 * @property {Map<string, import("./decode.js").Planes>} planes by `role/sample`
 * @property {ImageBitmap|null} kernels
 * @property {string[]} missing roles whose pictures TensorBoard no longer keeps
 * @property {number} bytes approximate memory
 */

/** Newest record format that this tab reads (`FORMAT` of `fmapboard.formats.tab_records`). */
export const FORMAT = 1;

/**
 * Keeps the stored colours: no colour space conversion, no premultiplied alpha.
 * @type {ImageBitmapOptions}
 */
const EXACT = { colorSpaceConversion: "none", premultiplyAlpha: "none" };

/** @param {ArrayBuffer} bytes */
function bitmap(bytes) {
  return createImageBitmap(new Blob([bytes], { type: "image/png" }), EXACT);
}

/** @param {ImageBitmap} picture @returns {ImageData} */
export function pixels(picture) {
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const context = canvas.getContext("2d", { willReadFrequently: true, alpha: true });
  if (!context) throw new Error("this browser has no canvas to decode pictures with");
  context.drawImage(picture, 0, 0);
  return context.getImageData(0, 0, picture.width, picture.height);
}

/**
 * Decodes an answer of `data/maps`.
 * @param {import("./container.js").Container<MapsFacts>} answer
 * @param {(role: string, sample: number) => boolean} wanted pictures to decode
 * @returns {Promise<Maps>}
 */
export async function decodeMaps({ json, body }, wanted = () => true) {
  if (json.header.format > FORMAT) {
    throw new Error(
      `a record of format ${json.header.format}; this page reads up to ${FORMAT}: reload the page`,
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
  /** @type {Map<string, MapsPicture>} */
  const headers = new Map();
  for (const each of json.header.pictures) {
    if (each.role !== "kernels") headers.set(each.role, each);
  }
  await Promise.all(
    json.pictures.map(async ({ role, sample, png }) => {
      if (!wanted(role, sample)) return;
      const picture = await bitmap(bytes(body, png));
      if (role === "kernels") {
        maps.kernels = picture;
        maps.bytes += 4 * picture.width * picture.height;
        return;
      }
      const header = headers.get(role);
      if (!header) throw new Error(`the record's header lists no picture of ${role}`);
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
 * The maps of one sample with the lo and hi of each channel; null if its picture is not there.
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
