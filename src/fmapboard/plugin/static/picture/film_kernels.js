// @ts-check
/** The kernel of one channel, for a film strip. */

import { kernelStep } from "../model/film_scale.js";
import { kernelPixels } from "./paint.js";
import { pictureOf } from "../server/decode.js";
import { kernelsOf } from "../server/kernels.js";

/** @import {Kernels} from "../server/kernels.js" */
/** @import {Film} from "./film_paint.js" */

/**
 * The kernel of a channel, drawn between -peak and peak; otherwise why it cannot be, in words.
 * @param {Kernels} of @param {number} channel output channel @param {number} peak of the scale
 */
export function kernelBlock(of, channel, peak) {
  if (of.rowOf !== null) return "the weight has no kernel per channel";
  const { planes: tiles } = kernelsOf(of, channel);
  const isApart = of.transposed && of.groups > 1;
  if (!tiles.length) {
    const each = isApart ? " of each group" : "";
    return `only the kernels of channels 0 to ${of.outputs - 1}${each} are stored`;
  }
  const colour = of.rgb && !isApart;
  const sides = [{ letter: "", question: null, kernels: of, difference: null }];
  const grid = { sides, colour, peak, differencePeak: 0 };
  const part = { side: 0, difference: false };
  const { height, width } = of;
  const shown = colour ? tiles.slice(0, 1) : tiles;
  const isLine = height === 1 && width > 1; // 1-D kernels are stacked
  const perRow = isLine ? 1 : Math.ceil(Math.sqrt(shown.length));
  const rows = Math.ceil(shown.length / perRow);
  const gap = height === 1 ? 0 : 1;
  const [wide, high] = [perRow * (width + gap) - gap, rows * (height + gap) - gap];
  const pixels = new Uint32Array(wide * high);
  shown.forEach((plane, i) => {
    const kernel = kernelPixels(grid, part, plane);
    const start = Math.floor(i / perRow) * (height + gap) * wide + (i % perRow) * (width + gap);
    for (let y = 0; y < height; y += 1) {
      pixels.set(kernel.subarray(y * width, (y + 1) * width), start + y * wide);
    }
  });
  return { pixels, width: wide, height: high };
}

/** @typedef {Exclude<ReturnType<typeof kernelBlock>, string>} Block tiles in rows, 0 between them */

/**
 * The stored kernel of a channel at a step; otherwise why there is none, or "" while it is loaded.
 * @param {Film} film @param {number} i @param {number} channel
 */
export function kernelAt(film, i, channel) {
  const step = kernelStep(film.history, film.steps[i], film.steps);
  if (step === null) return "no kernel stored up to this step";
  const frame = film.kernelFrame(step);
  if (!frame) return "";
  if (!pictureOf(frame.maps, "kernels")) return "no kernel is stored";
  if (frame.maps.missing.includes("kernels")) return "TensorBoard no longer keeps this kernel";
  if (!frame.kernels) return "it is not known how the kernels are arranged";
  return kernelBlock(frame.kernels, channel, film.kernelPeak || frame.kernels.peak);
}

/** Palette of the kernels that have been loaded; "" before. @param {Film} film */
export function kernelPalette({ history, kernelFrame }) {
  const frames = (history?.kernels ?? []).map(({ step }) => kernelFrame(step));
  const known = frames.find((frame) => frame && pictureOf(frame.maps, "kernels"));
  return (known && pictureOf(known.maps, "kernels")?.palette) ?? "";
}
