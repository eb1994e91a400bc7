// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { kernelBlock } from "../../src/fmapboard/plugin/static/picture/film_tiles.js";
import { colours } from "../../src/fmapboard/plugin/static/picture/pixels.js";
import { arrangement, readKernels } from "../../src/fmapboard/plugin/static/server/kernels.js";
import {
  MARK,
  MARK_COLOURS,
  packed,
  stored,
} from "../../src/fmapboard/plugin/static/server/palettes.js";

/** @typedef {import("../../src/fmapboard/plugin/static/server/server.js").Rgb} Rgb */

/** @param {Rgb[][]} rows */
function image(rows) {
  const bytes = rows.flat().flatMap(([r, g, b]) => [r, g, b, 255]);
  const found = { width: rows[0].length, height: rows.length, data: Uint8ClampedArray.from(bytes) };
  return /** @type {ImageData} */ (/** @type {unknown} */ (found));
}

const SIGNED = stored("signed");
const [LOW, ZERO, HIGH] = [SIGNED[0], SIGNED[125], SIGNED[249]];
const EDGE = /** @type {Rgb} */ ([0, 0, 32]);
/** @type {import("../../src/fmapboard/plugin/static/server/server.js").KernelsPicture} */
const PICTURE = {
  role: "kernels",
  peak: 1,
  palette: "signed",
  padding: 1,
  tile: [1, 1],
  outputs: [1, 1],
  inputs: [1, 1],
};

/**
 * @param {number[]} shape of the weight @param {Rgb[][]} rows of the stored picture
 * @param {Partial<typeof PICTURE>} facts
 */
function kernels(shape, rows, facts) {
  const header = { format: 1, kernel_shape: shape, pictures: [] };
  const [found, whole] = [{ ...PICTURE, tile: shape.slice(2), ...facts }, image(rows)];
  const of = arrangement(header, found, whole);
  assert.ok(of);
  return readKernels(whole.data, whole.width, of);
}

/** @param {ReturnType<typeof kernels>} of @param {number} channel @param {number} peak */
function block(of, channel, peak = 1) {
  const found = kernelBlock(of, channel, peak);
  assert.ok(typeof found !== "string");
  return { ...found, pixels: [...found.pixels] };
}

test("the kernel of a channel is its column of tiles, one per input", () => {
  // Two inputs down, three outputs across, tiles of one pixel between lines.
  const line = Array(7).fill(EDGE);
  const rows = [
    line,
    [EDGE, LOW, EDGE, HIGH, EDGE, ZERO, EDGE],
    line,
    [EDGE, ZERO, EDGE, ZERO, EDGE, HIGH, EDGE],
    line,
  ];
  const of = kernels([9, 2, 1, 1], rows, { outputs: [3, 9], inputs: [2, 2] });
  const { width, height, pixels } = block(of, 1);
  const signed = colours("signed");
  assert.deepEqual([width, height, pixels], [2, 1, [signed[255], signed[129]]]);
  assert.equal(kernelBlock(of, 3, 1), "only the kernels of channels 0 to 2 are stored");
});

test("the kernels of a grouped transposed convolution are those of the channel's group", () => {
  const row = [EDGE, HIGH, EDGE];
  const rows = [[EDGE, EDGE, EDGE], row, [EDGE, EDGE, EDGE], [EDGE, LOW, EDGE], [EDGE, EDGE, EDGE]];
  const facts = { inputs: [2, 2], groups: 2, transposed: true };
  const of = kernels([2, 1, 1, 1], rows, facts);
  const signed = colours("signed");
  assert.deepEqual([block(of, 0).pixels, block(of, 1).pixels], [[signed[255]], [signed[0]]]);
});

test("on a locked scale a kernel of a step with smaller weights is paler", () => {
  const of = kernels([1, 1, 1, 1], [[HIGH]], {});
  const signed = colours("signed");
  assert.deepEqual([block(of, 0).pixels, block(of, 0, 2).pixels], [[signed[255]], [signed[192]]]);
});

test("a kernel over RGB keeps its colours", () => {
  const red = /** @type {Rgb} */ ([200, 40, 40]);
  const blue = /** @type {Rgb} */ ([40, 40, 200]);
  const black = /** @type {Rgb} */ ([0, 0, 0]);
  const line = [black, black, black, black];
  const facts = { palette: "rgb", outputs: [2, 2], inputs: [3, 3] };
  const of = kernels(
    [2, 3, 1, 1],
    [line.slice(1), [black, red, black], line.slice(1), [black, blue, black], line.slice(1)],
    facts,
  );
  // A weight lies in the middle of its level.
  assert.deepEqual(block(of, 1).pixels, [packed([41, 41, 201])]);
});

test("depth slices are a pixel apart, and kernels of several slices two", () => {
  const line = Array(4).fill(EDGE);
  const kernel = [
    [EDGE, LOW, HIGH, EDGE],
    [EDGE, HIGH, LOW, EDGE],
  ];
  const facts = { tile: [2, 2], inputs: [2, 2] };
  const of = kernels([1, 2, 2, 2, 1], [line, ...kernel, line, ...kernel, line], facts);
  const { width, height, pixels } = block(of, 0);
  const [low, high] = [colours("signed")[0], colours("signed")[255]];
  assert.deepEqual([width, height], [8, 2]);
  assert.deepEqual(pixels.slice(0, 8), [low, 0, high, 0, 0, low, 0, high]);
});

const NAN = MARK_COLOURS[MARK.NAN];

test("kernels that are NaN throughout are one mark, and others are drawn", () => {
  const line = Array(5).fill(EDGE);
  const rows = [line, [EDGE, NAN, EDGE, NAN, EDGE], line, [EDGE, NAN, EDGE, HIGH, EDGE], line];
  const of = kernels([2, 2, 1, 1], rows, { outputs: [2, 2], inputs: [2, 2] });
  assert.deepEqual([block(of, 0).mark, block(of, 1).mark], [MARK.NAN, 0]);
});

test("a small kernel of NaN is one colour, without parts of a hatch", () => {
  const of = kernels([1, 1, 3, 3], Array(3).fill([NAN, NAN, NAN]), {});
  assert.equal(new Set(block(of, 0).pixels).size, 1);
});
