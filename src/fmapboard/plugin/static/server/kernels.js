// @ts-check
/** Kernels of one convolution, read back from the stored picture: their arrangement and weights. */

import { once } from "./cache.js";
import { corners, pixels, planesOf } from "./decode.js";

/** @import {Arrangement, Kernels, KernelsPicture, Maps, Planes, RecordHeader} from "./server.js" */

/**
 * Null for weights with other than two to five axes, and for a picture of another size.
 * @param {RecordHeader} header @param {KernelsPicture} picture
 * @param {{width: number, height: number}} size of the picture, px @returns {Arrangement|null}
 */
export function arrangement(header, picture, size) {
  const { kernel_shape: shape } = header;
  if (!shape || shape.length < 2 || shape.length > 5) return null;
  const rgb = picture.palette === "rgb";
  const isFlat = shape.length === 2;
  const depth = shape.length === 5 ? shape[2] : 1;
  const [height, width] = picture.tile;
  const rows = picture.layout === "rows";
  const [outputs, allOutputs] = picture.outputs;
  const [inputs, allInputs] = picture.inputs;
  const { groups = 1, transposed = false, padding, peak } = picture;
  const found = {
    ...{ outputs, inputs, allOutputs, allInputs, groups, transposed, padding, peak },
    ...{ height, width, depth, rows, rgb, rowOf: isFlat ? shape[1] : null },
    perRow: rgb ? Math.max(1, Math.floor(Math.sqrt(outputs))) : rows ? inputs : outputs,
  };
  return fits(found, size) ? found : null;
}

/**
 * True if a picture has this size.
 * @param {Arrangement} of @param {{width: number, height: number}} size
 */
function fits(of, size) {
  const tiles = of.rgb ? of.outputs : of.outputs * of.inputs;
  if (of.outputs > of.allOutputs || of.inputs > of.allInputs || tiles < 1) return false;
  if (of.rowOf !== null && (of.width > of.rowOf || !of.rows)) return false;
  const around = tiles === 1 ? 0 : of.padding;
  const across = Math.min(of.perRow, tiles);
  const down = Math.ceil(tiles / of.perRow);
  const side = (/** @type {number} */ count, /** @type {number} */ tile) =>
    count * tile + (count - 1) * of.padding + 2 * around;
  return size.width === side(across, of.width) && size.height === side(down, of.height);
}

/**
 * Index of a kernel's plane.
 * @param {Arrangement} of @param {number} output @param {number} input
 */
export function planeOf(of, output, input) {
  return of.rgb || of.rows ? output * of.inputs + input : input * of.outputs + output;
}

/** Output and input of a plane. @param {Arrangement} of @param {number} plane */
export function placeOf(of, plane) {
  return of.rgb || of.rows
    ? { output: Math.floor(plane / of.inputs), input: plane % of.inputs }
    : { output: plane % of.outputs, input: Math.floor(plane / of.outputs) };
}

/**
 * Channels that a kernel connects.
 * @param {Arrangement} of @param {number} output @param {number} input
 */
export function channelsOf(of, output, input) {
  if (of.transposed) {
    const group = Math.floor(input / (of.allInputs / of.groups));
    return { output: group * of.allOutputs + output, input };
  }
  const group = Math.floor(output / (of.allOutputs / of.groups));
  return { output, input: group * of.allInputs + input };
}

/** Number of output channels of the layer. @param {Arrangement} of */
export function outputChannels(of) {
  return of.allOutputs * (of.transposed ? of.groups : 1);
}

/**
 * Drawn planes of an output channel, and the number of its kernels.
 * @param {Arrangement} of @param {number} channel
 */
export function kernelsOf(of, channel) {
  /** @type {number[]} */
  const planes = [];
  if (of.rowOf !== null) return { planes, all: 0 };
  for (let output = 0; output < of.outputs; output += 1) {
    for (let input = 0; input < of.inputs; input += 1) {
      if (channelsOf(of, output, input).output === channel) planes.push(planeOf(of, output, input));
    }
  }
  return { planes, all: of.transposed ? of.allInputs / of.groups : of.allInputs };
}

/**
 * Weights are stored rounded down to one of 255 steps; each is taken to be in the middle.
 * @param {Uint8ClampedArray} rgba @param {number} pictureWidth px @param {Arrangement} of
 * @returns {Kernels}
 */
export function readKernels(rgba, pictureWidth, of) {
  const planes = of.rgb
    ? colourPlanes(rgba, pictureWidth, of)
    : planesOf(rgba, pictureWidth, {
        drawn: of.outputs * of.inputs,
        tile: [of.height, of.width],
        columns: of.perRow,
        padding: of.padding,
        palette: "signed",
      });
  // A palette of 250 colours holds 6 pairs of the 256 levels, whose middle is up to 1.5 away.
  planes.coarse = of.rgb ? 0.5 : 1.5;
  const half = of.peak / 255;
  return {
    ...of,
    planes,
    lo: new Float64Array(planes.channels).fill(half - of.peak),
    hi: new Float64Array(planes.channels).fill(half + of.peak),
  };
}

/**
 * Red, green and blue of each tile as a plane each.
 * @param {Uint8ClampedArray} rgba @param {number} pictureWidth px @param {Arrangement} of
 * @returns {Planes}
 */
function colourPlanes(rgba, pictureWidth, of) {
  const { outputs, height, width } = of;
  const size = height * width;
  const levels = new Uint8Array(outputs * 3 * size);
  corners(outputs, height, width, of.perRow, of.padding).forEach(({ left, top }, output) => {
    for (let i = 0; i < size; i += 1) {
      const from = 4 * ((top + Math.floor(i / width)) * pictureWidth + left + (i % width));
      for (let c = 0; c < 3; c += 1) levels[(output * 3 + c) * size + i] = rgba[from + c];
    }
  });
  return { channels: outputs * 3, height, width, levels, marks: null, coarse: 0.5 };
}

/** The kernels of a record; null if there are none, or their arrangement cannot be known. */
export const decodedKernels = once((/** @type {Maps} */ { header, kernels: bitmap }) => {
  const picture = header.pictures.find((each) => each.role === "kernels");
  if (!bitmap || picture?.role !== "kernels") return null;
  const of = arrangement(header, picture, bitmap);
  return of && readKernels(pixels(bitmap).data, bitmap.width, of);
});
