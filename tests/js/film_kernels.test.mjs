// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { kernelBlock } from "../../src/fmapboard/plugin/static/picture/film_kernels.js";
import { packed, stored, table } from "../../src/fmapboard/plugin/static/server/palettes.js";
import { LAYER } from "./fixtures.mjs";

/** @typedef {import("../../src/fmapboard/plugin/static/server/palettes.js").Rgb} Rgb */

/** @param {Rgb[][]} rows */
function image(rows) {
  const bytes = rows.flat().flatMap(([r, g, b]) => [r, g, b, 255]);
  const found = { width: rows[0].length, height: rows.length, data: Uint8ClampedArray.from(bytes) };
  return /** @type {ImageData} */ (/** @type {unknown} */ (found));
}

const SIGNED = stored("signed");
const [LOW, ZERO, HIGH] = [SIGNED[0], SIGNED[125], SIGNED[249]];
const EDGE = /** @type {Rgb} */ ([0, 0, 32]);
/** @type {import("../../src/fmapboard/plugin/static/server/answers.js").KernelsPicture} */
const PICTURE = {
  role: "kernels",
  peak: 1,
  palette: "signed",
  padding: 1,
  outputs: [1, 1],
  inputs: [1, 1],
};

test("the kernel of a channel is its column of tiles, one per input", () => {
  // Two inputs down, three outputs across, tiles of one pixel between lines.
  const line = Array(7).fill(EDGE);
  const whole = image([
    line,
    [EDGE, LOW, EDGE, HIGH, EDGE, ZERO, EDGE],
    line,
    [EDGE, ZERO, EDGE, ZERO, EDGE, HIGH, EDGE],
    line,
  ]);
  const layer = { ...LAYER, channels: 3, kernel_shape: [3, 2, 1, 1] };
  const of = { picture: PICTURE, image: whole, layer };
  const block = kernelBlock(of, 1, 1);
  assert.ok(typeof block !== "string");
  const colours = table("signed");
  assert.deepEqual([block.width, block.height], [2, 1]);
  assert.deepEqual([...block.pixels], [colours[255], colours[128]]);
  assert.equal(kernelBlock(of, 3, 1), "only the kernels of channels 0 to 2 are stored");
});

test("a grouped transposed convolution is known whatever its class is called", () => {
  const layer = { ...LAYER, type: "UpLayer", channels: 2, kernel_shape: [1, 1, 1, 1] };
  const of = { picture: { ...PICTURE, transposed: true }, image: image([[HIGH]]), layer };
  assert.match(String(kernelBlock(of, 0, 1)), /grouped transposed convolution/);
});

test("on a locked scale a kernel of a step with smaller weights is paler", () => {
  const layer = { ...LAYER, channels: 1, kernel_shape: [1, 1, 1, 1] };
  const of = { picture: PICTURE, image: image([[HIGH]]), layer };
  const [own, locked] = [kernelBlock(of, 0, 1), kernelBlock(of, 0, 2)];
  assert.ok(typeof own !== "string" && typeof locked !== "string");
  assert.deepEqual([own.pixels[0], locked.pixels[0]], [table("signed")[255], table("signed")[191]]);
});

test("a kernel over RGB keeps its colours", () => {
  const red = /** @type {Rgb} */ ([200, 40, 40]);
  const blue = /** @type {Rgb} */ ([40, 40, 200]);
  const black = /** @type {Rgb} */ ([0, 0, 0]);
  const line = [black, black, black, black, black];
  const layer = { ...LAYER, channels: 2, kernel_shape: [2, 3, 1, 1] };
  const whole = image([line, [black, red, black, blue, black], line]);
  const of = { picture: { ...PICTURE, palette: "rgb" }, image: whole, layer };
  const block = kernelBlock(of, 1, 1);
  assert.ok(typeof block !== "string");
  assert.deepEqual([...block.pixels], [packed(blue)]);
});
