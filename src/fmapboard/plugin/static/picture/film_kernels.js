// @ts-check
/** Cuts the kernel of one channel out of a layer's stored picture of kernels. */

import { kernelStep } from "../model/film_scale.js";
import { colours } from "./paint.js";
import { pictureOf, planesOf } from "../server/decode.js";
import { MARK_TABLE, packed } from "../server/palettes.js";

/** @typedef {import("../server/answers.js").KernelsPicture} KernelsPicture */
/** @typedef {import("../server/answers.js").Layer} Layer */
/** @typedef {import("../server/decode.js").Planes} Planes */

/**
 * The kernel of one output channel: its tiles, one per input, in rows of `columns`.
 * @typedef {object} Block
 * @property {Uint32Array} pixels packed colours, 0 between the tiles
 * @property {number} width px
 * @property {number} height px
 */

/**
 * Height and width of a tile, px; null if the shape is not one of a convolution.
 * @param {number[]|null} shape of the weight
 */
function tileOf(shape) {
  if (shape?.length === 3) return [1, shape[2]];
  if (shape?.length === 4) return [shape[2], shape[3]];
  if (shape?.length === 5) return [shape[3], shape[2] * shape[4]]; // depth slices side by side
  return null;
}

/** Decoded kernels of each picture. @type {WeakMap<object, Planes>} */
const decoded = new WeakMap();

/**
 * The kernel of a channel, drawn between -peak and peak; otherwise why it cannot be, in words.
 * @param {{picture: KernelsPicture|null, image: ImageData|null, layer: Layer}} from
 * @param {number} channel output channel @param {number} peak of the scale
 * @returns {Block|string}
 */
export function kernelBlock({ picture, image, layer }, channel, peak) {
  if (layer.kernel_shape?.length === 2) return "the weight has no kernel per channel";
  const tile = tileOf(layer.kernel_shape);
  if (!picture || !image || !tile || !layer.kernel_shape) return "no kernel is stored";
  if (picture.transposed && layer.kernel_shape[1] !== layer.channels) {
    return "a grouped transposed convolution: its kernels are not told apart by channel";
  }
  const [height, width] = tile;
  const own = picture.peak;
  if (picture.palette === "rgb") {
    return rgbBlock(image, height, width, channel, own / (peak || 1));
  }
  const across = Math.round((image.width - 1) / (width + 1));
  const down = Math.round((image.height - 1) / (height + 1));
  const single = image.width === width && image.height === height;
  const [outputs, inputs] =
    picture.layout === "rows" ? [single ? 1 : down, across] : [single ? 1 : across, down];
  if (channel >= outputs) return `only the kernels of channels 0 to ${outputs - 1} are stored`;
  let planes = decoded.get(image);
  if (!planes) {
    planes = planesOf(image.data, image.width, {
      drawn: single ? 1 : across * down,
      tile,
      columns: single ? 1 : across,
      padding: 1,
      palette: "signed",
    });
    decoded.set(image, planes);
  }
  const tiles = Array.from({ length: single ? 1 : inputs }, (_, i) =>
    picture.layout === "rows" ? channel * across + i : i * across + channel,
  );
  return laidOut(planes, tiles, peak > 0 ? own / peak : 1);
}

/**
 * @param {Planes} planes @param {number[]} tiles @param {number} share of the scale that the
 *   picture's own peak has @returns {Block}
 */
function laidOut({ height, width, levels, marks }, tiles, share) {
  const isLine = height === 1 && width > 1; // 1-D kernels are stacked
  const perRow = isLine ? 1 : Math.ceil(Math.sqrt(tiles.length));
  const rows = Math.ceil(tiles.length / perRow);
  const gap = height === 1 ? 0 : 1;
  const outWidth = perRow * (width + gap) - gap;
  const outHeight = rows * (height + gap) - gap;
  const pixels = new Uint32Array(outWidth * outHeight);
  const signed = colours("signed");
  tiles.forEach((tile, i) => {
    const left = (i % perRow) * (width + gap);
    const top = Math.floor(i / perRow) * (height + gap);
    for (let at = 0; at < height * width; at += 1) {
      const from = tile * height * width + at;
      const to = (top + Math.floor(at / width)) * outWidth + left + (at % width);
      const mark = marks ? marks[from] : 0;
      const level = 127.5 + (levels[from] - 127.5) * share;
      pixels[to] = mark ? MARK_TABLE[mark] : signed[Math.max(0, Math.min(255, Math.round(level)))];
    }
  });
  return { pixels, width: outWidth, height: outHeight };
}

/**
 * @param {ImageData} image @param {number} height @param {number} width of a tile
 * @param {number} channel @param {number} share likewise @returns {Block|string}
 */
function rgbBlock(image, height, width, channel, share) {
  const single = image.width === width && image.height === height;
  const across = single ? 1 : Math.round((image.width - 1) / (width + 1));
  const padding = single ? 0 : 1;
  const left = padding + (channel % across) * (width + padding);
  const top = padding + Math.floor(channel / across) * (height + padding);
  const pixels = new Uint32Array(width * height);
  if (top + height > image.height) return "the kernel of this channel is not stored";
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const from = 4 * ((top + y) * image.width + left + x);
      const part = (/** @type {number} */ c) =>
        Math.max(0, Math.min(255, Math.round(127.5 + (image.data[from + c] - 127.5) * share)));
      pixels[y * width + x] = packed([part(0), part(1), part(2)]);
    }
  }
  return { pixels, width, height };
}

/**
 * The stored kernel of a channel at a step; otherwise why there is none, or "" while it is loaded.
 * @param {import("./film_paint.js").Film} film @param {number} i @param {number} channel
 */
export function kernelAt(film, i, channel) {
  const step = kernelStep(film.history, film.steps[i], film.steps);
  if (step === null) return "no kernel stored up to this step";
  const frame = film.kernelFrame(step);
  if (!frame) return "";
  const picture = pictureOf(frame.maps, "kernels");
  if (picture?.role !== "kernels") return "no kernel is stored";
  if (!frame.kernels) return "TensorBoard no longer keeps this kernel";
  const from = { picture, image: frame.kernels, layer: film.layer };
  return kernelBlock(from, channel, film.kernelPeak || picture.peak);
}

/**
 * Palette of the kernels that have been loaded; "" before.
 * @param {import("./film_paint.js").Film} film
 */
export function kernelPalette({ history, kernelFrame }) {
  for (const { step } of history?.kernels ?? []) {
    const frame = kernelFrame(step);
    const picture = frame && pictureOf(frame.maps, "kernels");
    if (picture) return picture.palette;
  }
  return "";
}
