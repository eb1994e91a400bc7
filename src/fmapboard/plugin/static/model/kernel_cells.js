// @ts-check
/** Kernels as the cells of a grid: their order, the channels that they connect, and in words. */

import { unitOf } from "./value_scale.js";
import { counted, short, stepText } from "./words.js";
import { valueAt } from "../server/decode.js";
import { channelsOf, placeOf, planeOf } from "../server/kernels.js";
import { badMark } from "../server/palettes.js";

/** @import {Kernels} from "../server/server.js" */
/** @import {AnyScene, Arranged, GridScene, KernelsScene, Side} from "./model.js" */

/**
 * Cells of a matrix, the outputs and inputs with the largest norms first, or of a list. A matrix is
 * rather high than wide, since windows scroll down, unless a channel is a part of a column.
 * @param {Kernels} of
 * @returns {Arranged & {cells: number[]}} planes
 */
export function cellsOf(of) {
  const isPart = of.transposed && of.groups > 1;
  const isColour = of.rgb && !isPart;
  const isList = isColour || (!of.rows && (of.inputs === 1 || of.outputs === 1));
  const [outputs, inputs] =
    isList || of.rowOf !== null
      ? [of.outputs, isColour ? 1 : of.inputs].map((count) => [...Array(count).keys()])
      : largestFirst(of);
  const isTall = !isList && !isPart && of.outputs >= of.inputs;
  if (isColour || of.rows || of.inputs === 1 || isTall) {
    const cells = outputs.flatMap((o) => inputs.map((i) => planeOf(of, o, i)));
    return { cells, isColour, columns: isList ? 0 : of.inputs, down: "outputs" };
  }
  const cells = inputs.flatMap((i) => outputs.map((o) => planeOf(of, o, i)));
  return { cells, isColour, columns: isList ? 0 : of.outputs, down: "inputs" };
}

/**
 * Outputs and inputs by the norms of their kernels; a kernel that is not finite has the largest.
 * @param {Kernels} of
 * @returns {[number[], number[]]}
 */
function largestFirst(of) {
  const size = of.height * of.width;
  const outputs = new Float64Array(of.outputs);
  const inputs = new Float64Array(of.inputs);
  for (let plane = 0; plane < of.outputs * of.inputs; plane += 1) {
    const [lo, hi] = [of.lo[plane], of.hi[plane]];
    let sum = 0;
    for (let i = plane * size; i < (plane + 1) * size; i += 1) {
      const value = lo + ((hi - lo) * of.planes.levels[i]) / 255;
      sum += badMark(of.planes.marks, i) ? Infinity : value * value;
    }
    const { output, input } = placeOf(of, plane);
    outputs[output] += sum;
    inputs[input] += sum;
  }
  const sorted = (/** @type {Float64Array} */ sums) =>
    [...sums.keys()].sort((a, b) => (sums[a] === sums[b] ? a - b : sums[b] - sums[a]));
  return [sorted(outputs), sorted(inputs)];
}

const FACTS = /** @type {const} */ ([
  "outputs",
  "inputs",
  "height",
  "width",
  "rgb",
  "rows",
  "transposed",
]);

/** True if kernels can be compared. @param {Kernels} a @param {Kernels} b */
export function areAlike(a, b) {
  return FACTS.every((fact) => a[fact] === b[fact]);
}

/**
 * Output channel of the layer that a plane belongs to, or -1.
 * @param {Kernels} of @param {number} plane
 */
function channelOf(of, plane) {
  if (of.rowOf !== null) return -1;
  const { output, input } = placeOf(of, plane);
  return channelsOf(of, output, input).output;
}

/**
 * Channel of the layer that a cell belongs to, or -1.
 * @param {GridScene} scene @param {number} cell a channel, or a plane of kernels
 */
export function channelIn(scene, cell) {
  return scene.kind === "kernels" ? channelOf(scene.a, cell) : cell;
}

/** First cell of an output channel, or -1. @param {GridScene} scene @param {number} channel */
export function cellOf(scene, channel) {
  return scene.order.findIndex((each) => channelIn(scene, each) === channel);
}

/** Planes of a cell. @param {AnyScene} scene @param {number} plane its first one */
export function planesIn(scene, plane) {
  return scene.kind === "kernels" && scene.arranged.isColour
    ? [plane, plane + 1, plane + 2]
    : [plane];
}

/**
 * Output and input channel of a cell, in words.
 * @param {KernelsScene} scene @param {number} plane
 */
export function kernelName({ a, arranged }, plane) {
  const { output, input } = placeOf(a, plane);
  if (a.rowOf !== null) return `row ${output}`;
  const connected = channelsOf(a, output, input);
  const channel = `channel ${connected.output}`;
  return arranged.isColour ? channel : `${channel} ← input ${connected.input}`;
}

/** Position in a kernel, in words. @param {Kernels} of @param {number} y @param {number} x */
export function position(of, y, x) {
  if (of.rows) return `position ${x}`;
  const each = of.width / of.depth;
  return of.depth > 1 ? `z ${Math.floor(x / each)}, y ${y}, x ${x % each}` : `y ${y}, x ${x}`;
}

/** Largest rounding error of the differences; 0 if there are none. @param {KernelsScene} scene */
export function roundingOf({ a, columns }) {
  const others = columns.flatMap(({ side, difference }) => (side && difference ? [side] : []));
  return Math.max(0, ...others.map((side) => unitOf(a, 0) + unitOf(side, 0)));
}

/** What the picture shows: kernels, step, and how to read it. @param {KernelsScene} scene */
export function kernelMeaning(scene) {
  const { a: of, arranged, picture, question, ranges, differenceRanges } = scene;
  const drawnAt = picture?.role === "kernels" ? picture.step : undefined;
  const earlier = drawnAt === undefined ? "" : `, hardly changed since step ${stepText(drawnAt)}`;
  const when = `at step ${stepText(question.step)}${earlier}`;
  const error = roundingOf(scene);
  const noise =
    error && differenceRanges.hi[0] <= error
      ? ` No difference is larger than the rounding of the stored pictures (± ${short(error, 2)}).`
      : "";
  /** @param {number} drawn @param {number} all @param {string} what singular */
  const count = (drawn, all, what) => `${drawn < all ? `${drawn} of ` : ""}${counted(all, what)}`;
  if (of.rowOf !== null) {
    const weights = count(of.width, of.rowOf, "weight");
    return (
      `Weight ${when}: ${count(of.outputs, of.allOutputs, "row")} of ` +
      `${weights}, from which the kernels are computed. A row per expert, or per output.${noise}`
    );
  }
  const grouped = of.groups > 1 ? ` in each of ${of.groups} groups` : "";
  const drawn =
    `Kernels ${when}: ` +
    `${count(of.outputs, of.allOutputs, "output channel")}${of.transposed ? grouped : ""}, ` +
    `${count(of.inputs, of.allInputs, "input")}${of.transposed ? "" : grouped}.`;
  const slices = of.depth > 1 ? " Depth slices stand side by side." : "";
  if (arranged.isColour) {
    const [none, full] = [ranges.lo[0], ranges.hi[0]].map((end) => short(end));
    return (
      `${drawn} Red, green and blue are the weights of the three inputs: half bright (grey) is ` +
      `0, full ${full}, none ${none}.${slices}${noise}`
    );
  }
  const within = of.groups > 1 ? " of the group" : "";
  const input = `input${of.transposed ? "" : within}`;
  const output = `output channel${of.transposed ? within : ""}`;
  const [row, column] = arranged.down === "inputs" ? [input, output] : [output, input];
  const sorted = ", the largest norms first";
  const placed = arranged.columns ? ` A row per ${row}, a column per ${column}${sorted}.` : "";
  return `${drawn}${placed}${slices}${noise}`;
}

/**
 * Extremes and 2-norm of planes with their uncertainties.
 * @param {Side} side @param {number[]} planes
 */
export function measured(side, planes) {
  const { height, width } = side.planes;
  let [lo, hi, square, count, bad] = [Infinity, -Infinity, 0, 0, 0];
  for (const plane of planes) {
    for (let i = 0; i < height * width; i += 1) {
      const y = Math.floor(i / width);
      const { value } = valueAt(side, plane, y, i % width);
      if (Number.isNaN(value)) {
        bad += 1;
        continue;
      }
      lo = Math.min(lo, value);
      hi = Math.max(hi, value);
      square += value * value;
      count += 1;
    }
  }
  const unit = planes.length ? unitOf(side, planes[0]) : 0;
  return { lo, hi, norm: Math.sqrt(square), unit, normUnit: unit * Math.sqrt(count), bad, count };
}
