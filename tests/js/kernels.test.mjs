// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  arrangement,
  channelsOf,
  kernelsOf,
  outputChannels,
  placeOf,
  planeOf,
  readKernels,
} from "../../src/fmapboard/plugin/static/server/kernels.js";
import { corner, hit, layoutFor } from "../../src/fmapboard/plugin/static/picture/layouts.js";
import { cellsOf } from "../../src/fmapboard/plugin/static/model/kernel_cells.js";
import { MARK, stored } from "../../src/fmapboard/plugin/static/server/palettes.js";

/** @typedef {import("../../src/fmapboard/plugin/static/server/server.js").Kernels} Kernels */
/**
 * @typedef {import("../../src/fmapboard/plugin/static/server/server.js").KernelsPicture} Picture
 */

/**
 * All kernels are drawn unless `picture` says otherwise.
 * @param {number[]} shape @param {Partial<Picture>} picture @param {number[]} size
 */
function arranged(shape, picture, [width, height]) {
  const header = { format: 1, type: "Conv2d", kernel_shape: shape, pictures: [] };
  const [outputs, inputs] = shape.map((side) => [side, side]);
  const sides = shape.length > 2 ? shape.slice(2) : [Math.min(2048, shape[1])];
  const [across, down = 1, depth = 1] = sides.reverse();
  const facts = { outputs, inputs, tile: [down, across * depth] };
  /** @type {Picture} */
  const whole = { role: "kernels", peak: 0.5, palette: "signed", padding: 1, ...facts };
  return arrangement(header, { ...whole, ...picture }, { width, height });
}

/** @template T @param {T|null} value @returns {T} */
function known(value) {
  assert.ok(value !== null);
  return value;
}

test("kernels are a column per output and a row per input", () => {
  const of = known(arranged([4, 2, 3, 3], {}, [17, 9]));
  assert.deepEqual([of.outputs, of.inputs, of.perRow, of.height, of.width], [4, 2, 4, 3, 3]);
  assert.equal(planeOf(of, 3, 1), 7);
  assert.deepEqual(placeOf(of, 7), { output: 3, input: 1 });
});

test("1-D kernels are a row per output and a column per input", () => {
  const of = known(arranged([4, 2, 5], { layout: "rows" }, [13, 9]));
  assert.deepEqual([of.outputs, of.inputs, of.perRow, of.height, of.width], [4, 2, 2, 1, 5]);
  assert.deepEqual(placeOf(of, 7), { output: 3, input: 1 });
});

test("the depth slices of a 3-D kernel stand side by side", () => {
  const of = known(arranged([2, 1, 4, 3, 5], {}, [43, 5]));
  assert.deepEqual([of.height, of.width, of.depth], [3, 20, 4]);
});

test("a cut picture says how much of the weight it has", () => {
  const of = known(arranged([100, 90, 3, 3], { outputs: [64, 100], inputs: [64, 90] }, [257, 257]));
  assert.deepEqual([of.outputs, of.allOutputs, of.inputs, of.allInputs], [64, 100, 64, 90]);
});

test("a weight with two axes is a row per entry of the first, which is no channel", () => {
  const facts = { outputs: [4, 4], inputs: [1, 1], layout: /** @type {const} */ ("rows") };
  const of = known(arranged([4, 864], facts, [866, 9]));
  assert.deepEqual([of.outputs, of.inputs, of.height, of.width, of.rowOf], [4, 1, 1, 864, 864]);
  assert.deepEqual(kernelsOf(of, 2), { planes: [], all: 0 });
  const cut = known(arranged([4, 221184], facts, [2050, 9]));
  assert.deepEqual([cut.width, cut.rowOf], [2048, 221184]);
  const one = { ...facts, outputs: [1, 1] };
  assert.equal(known(arranged([1, 864], one, [864, 1])).width, 864);
  assert.equal(arranged([4, 864], facts, [900, 9]), null);
  assert.equal(known(arranged([4, 2, 3, 3], {}, [17, 9])).rowOf, null);
});

test("a single kernel has no padding", () => {
  const of = known(arranged([1, 1, 3, 3], {}, [3, 3]));
  assert.deepEqual([of.outputs, of.inputs], [1, 1]);
});

test("an arrangement that does not fit the picture is not known", () => {
  assert.equal(arranged([4, 2, 3, 3], {}, [18, 9]), null);
  assert.equal(arranged([4, 2, 3, 3], { outputs: [5, 4], inputs: [2, 2] }, [21, 9]), null);
  assert.equal(arranged([4, 2], {}, [17, 9]), null);
});

test("a transposed convolution has its input axis first", () => {
  const now = known(
    arranged(
      [6, 4, 3, 3],
      { outputs: [4, 4], inputs: [6, 6], transposed: true, groups: 2 },
      [17, 25],
    ),
  );
  assert.deepEqual([now.outputs, now.inputs, now.groups], [4, 6, 2]);
  assert.equal(outputChannels(now), 8);
  assert.deepEqual(channelsOf(now, 1, 2), { output: 1, input: 2 });
  assert.deepEqual(channelsOf(now, 1, 3), { output: 5, input: 3 });
  assert.deepEqual(kernelsOf(now, 5), {
    planes: [3, 4, 5].map((input) => planeOf(now, 1, input)),
    all: 3,
  });
});

test("the inputs of a grouped convolution are counted in the layer", () => {
  const of = known(arranged([4, 2, 3, 3], { outputs: [4, 4], inputs: [2, 2], groups: 2 }, [17, 9]));
  assert.deepEqual(channelsOf(of, 1, 1), { output: 1, input: 1 });
  assert.deepEqual(channelsOf(of, 2, 1), { output: 2, input: 3 });
  assert.deepEqual(kernelsOf(of, 2), { planes: [planeOf(of, 2, 0), planeOf(of, 2, 1)], all: 2 });
});

test("zero is read as zero, and a weight within one and a half steps", () => {
  const of = known(arranged([250, 1, 1, 1], { outputs: [250, 250], inputs: [1, 1] }, [501, 3]));
  const rgba = new Uint8ClampedArray(4 * 501 * 3);
  stored("signed").forEach((rgb, i) => rgba.set([...rgb, 255], 4 * (501 + 1 + 2 * i)));
  const { planes, lo, hi } = readKernels(rgba, 501, of);
  for (let true_ = -0.5; true_ <= 0.5; true_ += 0.001) {
    const level = Math.floor((true_ + 0.5) * 255); // as draw_kernels rounds
    const output = Math.floor((level * 250) / 256);
    const value = lo[output] + ((hi[output] - lo[output]) * planes.levels[output]) / 255;
    assert.ok(
      Math.abs(value - true_) <= (1.5 / 255) * (hi[0] - lo[0]) + 1e-9,
      `${true_}: ${value}`,
    );
    if (level === 127) assert.ok(Math.abs(value) < 1e-12);
  }
});

/** @param {number} outputs @param {number} inputs @param {Partial<Kernels>} more @returns {any} */
function grid(outputs, inputs, more = {}) {
  const sides = { height: 3, width: 3, rows: false, rgb: false, rowOf: null };
  const levels = new Uint8Array(9 * outputs * inputs).fill(255);
  const planes = { height: 3, width: 3, levels, marks: null };
  const lo = new Float64Array(outputs * inputs);
  const of = { outputs, inputs, planes, lo, hi: lo, ...sides, ...more };
  const { cells: order, ...arranged } = cellsOf(/** @type {any} */ (of));
  const sorting = { texts: null };
  return { kind: "kernels", a: of, parts: ["a"], order, arranged, sorting, rows: of.rows };
}

test("a single input or output is a list, anything else a matrix that is higher than wide", () => {
  const placed = (/** @type {any} */ { arranged: { columns, down } }) => [columns, down];
  assert.deepEqual(placed(grid(12, 1)), [0, "outputs"]);
  assert.deepEqual(placed(grid(1, 12)), [0, "inputs"]);
  assert.deepEqual(placed(grid(4, 2)), [2, "outputs"]);
  assert.deepEqual(placed(grid(2, 4)), [2, "inputs"]);
  assert.deepEqual(placed(grid(4, 2, { transposed: true, groups: 2 })), [4, "inputs"]);
  assert.deepEqual(placed(grid(4, 2, { rows: true, height: 1 })), [2, "outputs"]);
});

test("a matrix has the largest norms first, and kernels that are not finite before them", () => {
  const hi = Float64Array.of(1, 3, 2, 1, 3, 2); // of outputs 0, 1 and 2 of input 0, then of input 1
  const plane = (/** @type {number[]} */ ...places) => places;
  assert.deepEqual(grid(3, 2, { hi }).order, plane(1, 4, 2, 5, 0, 3));
  const more = Float64Array.of(1, 3, 2, 1, 4, 2);
  assert.deepEqual(grid(3, 2, { hi: more }).order, plane(4, 1, 5, 2, 3, 0));
  const marks = new Uint8Array(54);
  marks[9 * 3] = MARK.NAN;
  const levels = new Uint8Array(54).fill(255);
  const planes = /** @type {any} */ ({ levels, marks });
  assert.deepEqual(grid(3, 2, { hi, planes }).order, plane(3, 0, 4, 1, 5, 2));
});

test(
  "a matrix fits the window unless weights would be too small, and is hit where it is " + "drawn",
  () => {
    const wide = layoutFor(grid(64, 64), 0, 800, 500, 1);
    assert.equal(wide.factor, 3);
    assert.ok(wide.height > 500);
    const small = layoutFor(grid(8, 4), 0, 800, 500, 1);
    assert.ok(small.factor > 3 && small.width <= 800 && small.height <= 500);
    const { left, top } = corner(small, 13);
    const at = hit(small, left + 1, top + small.tileHeight - 1);
    assert.deepEqual(
      [at?.cell, Math.floor((at?.v ?? 0) * 3), Math.floor((at?.u ?? 1) * 3)],
      [13, 2, 0],
    );
    assert.equal(layoutFor(grid(8, 4), 96, 800, 500, 1).tileWidth, 96);
    const near = layoutFor(grid(64, 64), 0, 680, 500, 1); // whole weights need 768 px
    assert.ok(near.width <= 680 && near.factor > 2 && near.factor < 3);
    // Legible kernels, which fill the width, are preferred to having all of them in view.
    const high = layoutFor(grid(32, 16), 0, 550, 570, 1);
    assert.deepEqual([high.factor, high.width <= 550, high.height > 570], [9, true, true]);
    const large = layoutFor(grid(32, 16), 0, 1190, 850, 1);
    assert.deepEqual([large.factor, large.width <= 1190, large.height > 850], [22, true, true]);
  },
);
