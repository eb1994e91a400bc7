// @ts-check
/** What a picture of kernels needs: its cells, both sides on one signed scale, and in words. */

import { origin } from "./compare.js";
import { difference } from "./value_scale.js";
import { short, stepText } from "./words.js";
import { valueAt } from "../server/decode.js";
import { channelsOf, decodedKernels, placeOf, planeOf } from "../server/kernels.js";
import { LEGEND, badMark } from "../server/palettes.js";

/** @import {Kernels, Maps} from "../server/server.js" */
/** @import {ColumnSource, EmptyScene, KernelCells, KernelPart, KernelSide} from "./model.js" */
/** @import {KernelsScene, SceneBase, ShownTiles, Side} from "./model.js" */

/**
 * Cells of a matrix, the outputs and inputs with the largest norms first, or of a list.
 * @param {Kernels} of
 * @returns {Pick<KernelCells, "cells"|"columns"|"down">}
 */
export function cellsOf(of) {
  const isList = !of.rows && (of.inputs === 1 || of.outputs === 1);
  const isMatrix = !isList && !isColour(of) && of.rowOf === null;
  const [outputs, inputs] = isMatrix
    ? largestFirst(of)
    : [of.outputs, of.inputs].map((count) => [...Array(count).keys()]);
  if (isColour(of)) {
    return { cells: outputs.map((o) => planeOf(of, o, 0)), columns: 0, down: "outputs" };
  }
  if (of.rows || of.inputs === 1) {
    const cells = outputs.flatMap((o) => inputs.map((i) => planeOf(of, o, i)));
    return { cells, columns: isList ? 0 : of.inputs, down: "outputs" };
  }
  const cells = inputs.flatMap((i) => outputs.map((o) => planeOf(of, o, i)));
  return { cells, columns: isList ? 0 : of.outputs, down: "inputs" };
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

/** True if a tile's colours are the three inputs of one output channel. @param {Kernels} of */
function isColour(of) {
  return of.rgb && !(of.transposed && of.groups > 1);
}

/** @param {Kernels} a @param {Kernels} b */
function alike(a, b) {
  const facts = (/** @type {Kernels} */ k) =>
    [k.outputs, k.inputs, k.height, k.width, k.rgb, k.rows, k.transposed].join();
  return facts(a) === facts(b);
}

/**
 * @param {SceneBase} scene @param {Maps} maps with kernels @param {ColumnSource[]} others
 * @param {ShownTiles} shown @returns {KernelsScene|EmptyScene}
 */
export function kernelScene(scene, maps, others, shown) {
  const of = decodedKernels(maps);
  if (!of) return { ...scene, kind: "none", why: "The kernels' picture does not fit its record." };
  /** @type {KernelSide[]} */
  const sides = [{ letter: "A", question: scene.question, kernels: of, difference: null }];
  const why = [];
  for (const [i, other] of others.entries()) {
    const theirs = other.maps && decodedKernels(other.maps);
    const kernels = theirs && alike(of, theirs) ? theirs : null;
    const between = kernels && difference(of, kernels);
    sides.push({ letter: "BCD"[i], question: other.question, kernels, difference: between });
    why.push(kernels ? "" : whyNot(other));
  }
  const peak = Math.max(...sides.map(({ kernels }) => kernels?.peak ?? 0));
  const differencePeak = sides.reduce(
    (most, each) => each.difference?.peak.reduce((a, b) => Math.max(a, b), most) ?? most,
    0,
  );
  const how = { parts: partsOf(sides, shown), colour: isColour(of), ...cellsOf(of) };
  const grid = { of, sides, ...how, peak, differencePeak };
  return {
    ...scene,
    kind: "kernels",
    grid,
    why: why.filter(Boolean).join("; "),
    order: grid.cells,
  };
}

/** @param {KernelSide[]} sides @param {ShownTiles} shown @returns {KernelPart[]} */
function partsOf(sides, shown) {
  const drawn = sides.flatMap(({ kernels }, side) => (kernels ? [side] : []));
  const weights = drawn.map((side) => ({ side, difference: false }));
  const differences = drawn.slice(1).map((side) => ({ side, difference: true }));
  if (shown === "both" || !differences.length) return weights;
  return shown === "difference" ? differences : [...weights, ...differences];
}

/** @param {ColumnSource} other */
function whyNot({ question, maps, why }) {
  if (!question || !maps) return why;
  if (!maps.kernels) return `${origin(question)}: no kernels are kept`;
  return `${origin(question)}: kernels of another shape, or drawn in other colours`;
}

/**
 * Output channel of the layer that a plane belongs to, or -1.
 * @param {Kernels} of @param {number} plane
 */
export function channelOf(of, plane) {
  if (of.rowOf !== null) return -1;
  const { output, input } = placeOf(of, plane);
  return channelsOf(of, output, input).output;
}

/**
 * First cell of an output channel, or -1.
 * @param {KernelCells} grid @param {number|null} channel
 */
export function cellOf({ of, cells }, channel) {
  return channel === null ? -1 : cells.findIndex((plane) => channelOf(of, plane) === channel);
}

/** Output and input channel of a cell, in words. @param {KernelCells} grid @param {number} plane */
export function kernelName({ of, colour }, plane) {
  const { output, input } = placeOf(of, plane);
  if (of.rowOf !== null) return `row ${output}`;
  const connected = channelsOf(of, output, input);
  const channel = `channel ${connected.output}`;
  return colour ? channel : `${channel} ← input ${connected.input}`;
}

/** Position in a kernel, in words. @param {Kernels} of @param {number} y @param {number} x */
export function position(of, y, x) {
  if (of.rows) return `position ${x}`;
  const each = of.width / of.depth;
  return of.depth > 1 ? `z ${Math.floor(x / each)}, y ${y}, x ${x % each}` : `y ${y}, x ${x}`;
}

/**
 * Weight at a position, with its uncertainty. @param {KernelCells} grid @param {KernelPart} part
 * @param {number} plane @param {number} y @param {number} x
 */
function weight({ of, sides }, part, plane, y, x) {
  const { kernels: side, difference: between } = sides[part.side];
  if (!side) return "";
  if (part.difference && between) {
    const value = between.values[(plane * between.height + y) * between.width + x];
    if (Number.isNaN(value)) return "not finite on at least one side";
    return `${short(value, 3)} ± ${short(unitOf(of, plane) + unitOf(side, plane), 2)}`;
  }
  const { value, unit, mark } = valueAt(side.planes, plane, y, x, side.lo[plane], side.hi[plane]);
  if (Number.isNaN(value)) {
    return LEGEND.find(({ code }) => code === mark)?.name ?? "no value";
  }
  return `${short(value, 3)}${unit > 0 ? ` ± ${short(unit, 2)}` : ""}`;
}

/**
 * Name of a part, with the letters of its sides.
 * @param {KernelCells} grid @param {KernelPart} part
 */
export function partLetters({ sides }, part) {
  return part.difference ? `A − ${sides[part.side].letter}` : sides[part.side].letter;
}

/** @param {Side} side @param {number} plane */
export function unitOf({ planes, lo, hi }, plane) {
  return ((hi[plane] - lo[plane]) / 255) * planes.coarse;
}

/**
 * The weights of a cell at a position; of an RGB cell all three. @param {KernelCells} grid
 * @param {KernelPart} part @param {number} plane @param {number} y @param {number} x
 */
export function weightText(grid, part, plane, y, x) {
  const { of, colour } = grid;
  const what = part.difference ? "difference " : "";
  if (!colour) return `${what}${weight(grid, part, plane, y, x)}`;
  const { output, input } = placeOf(of, plane);
  const parts = ["red", "green", "blue"].map((paint, c) => {
    const from = channelsOf(of, output, input + c).input;
    return `${paint} (input ${from}) ${weight(grid, part, plane + c, y, x)}`;
  });
  return what + parts.join(", ");
}

/** Largest rounding error of the differences; 0 if there are none. @param {KernelCells} grid */
export function roundingOf({ of, sides }) {
  const others = sides.flatMap(({ kernels, difference: d }) => (kernels && d ? [kernels] : []));
  return Math.max(0, ...others.map((kernels) => unitOf(of, 0) + unitOf(kernels, 0)));
}

/** What the picture shows: kernels, step, and how to read it. @param {KernelsScene} scene */
export function kernelMeaning({ grid, question }) {
  const { of } = grid;
  const error = roundingOf(grid);
  const noise =
    error && grid.differencePeak <= error
      ? ` No difference is larger than the rounding of the stored pictures (± ${short(error, 2)}).`
      : "";
  /** @param {number} drawn @param {number} all @param {string} what */
  const count = (drawn, all, what) => `${drawn < all ? `${drawn} of ` : ""}${all} ${what}`;
  if (of.rowOf !== null) {
    const weights = count(of.width, of.rowOf, "weights");
    return (
      `Weight at step ${stepText(question.step)}: ${count(of.outputs, of.allOutputs, "rows")} of ` +
      `${weights}, from which the kernels are computed. A row per expert, or per output.${noise}`
    );
  }
  const grouped = of.groups > 1 ? ` in each of ${of.groups} groups` : "";
  const drawn =
    `Kernels at step ${stepText(question.step)}: ` +
    `${count(of.outputs, of.allOutputs, "output channels")}${of.transposed ? grouped : ""}, ` +
    `${count(of.inputs, of.allInputs, "inputs")}${of.transposed ? "" : grouped}.`;
  if (grid.colour) {
    return (
      `${drawn} Red, green and blue are the weights of the three inputs: half bright (grey) is ` +
      `0, ` +
      `full ${short(grid.peak)}, none ${short(-grid.peak)}.${noise}`
    );
  }
  const within = of.groups > 1 ? " of the group" : "";
  const input = `input${of.transposed ? "" : within}`;
  const output = `output channel${of.transposed ? within : ""}`;
  const [row, column] = grid.down === "inputs" ? [input, output] : [output, input];
  const order = grid.of.rowOf === null ? ", the largest norms first" : "";
  const arranged = grid.columns ? ` A row per ${row}, a column per ${column}${order}.` : "";
  return `${drawn}${arranged}${of.depth > 1 ? " Depth slices stand side by side." : ""}${noise}`;
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
      const { value } = valueAt(side.planes, plane, y, i % width, side.lo[plane], side.hi[plane]);
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
