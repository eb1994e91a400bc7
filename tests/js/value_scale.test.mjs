// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  difference,
  levelColours,
  place,
  ranges,
} from "../../src/fmapboard/plugin/static/model/value_scale.js";

/** @typedef {import("../../src/fmapboard/plugin/static/model/model.js").Scale} Scale */

/** @type {{scale: Scale, zeroCentred: boolean}} */
const CHANNEL = { scale: "channel", zeroCentred: false };

test("by default each channel has its own scale", () => {
  const found = ranges(2, [{ lo: [-1, 5], hi: [2, 9] }], CHANNEL);
  assert.deepEqual(
    [[...found.lo], [...found.hi]],
    [
      [-1, 5],
      [2, 9],
    ],
  );
});

test("a layer scale covers all channels", () => {
  const found = ranges(2, [{ lo: [-1, 5], hi: [2, 9] }], { ...CHANNEL, scale: "layer" });
  assert.deepEqual(
    [[...found.lo], [...found.hi]],
    [
      [-1, -1],
      [9, 9],
    ],
  );
});

test("two sides and all steps share one scale", () => {
  const steps = { lo: [-4, 6, 0, 1], hi: [0, 7, 3, 8] }; // two steps of two channels
  const found = ranges(2, [{ lo: [-1, 5], hi: [2, 9] }, steps], CHANNEL);
  assert.deepEqual(
    [[...found.lo], [...found.hi]],
    [
      [-4, 1],
      [3, 9],
    ],
  );
});

test("a signed scale is centred on zero", () => {
  const found = ranges(2, [{ lo: [-1, 5], hi: [3, 9] }], { ...CHANNEL, zeroCentred: true });
  assert.deepEqual(
    [[...found.lo], [...found.hi]],
    [
      [-3, -9],
      [3, 9],
    ],
  );
});

test("non-finite values do not affect a scale", () => {
  const found = ranges(3, [{ lo: [NaN, -Infinity, 1], hi: [NaN, 4, 2] }], {
    ...CHANNEL,
    scale: "layer",
  });
  assert.deepEqual([found.lo[0], found.hi[0]], [1, 4]);
  const nothing = ranges(1, [{ lo: [NaN], hi: [NaN] }], CHANNEL);
  assert.deepEqual([nothing.lo[0], nothing.hi[0]], [0, 0]);
});

test("levels have the colours of their values", () => {
  const colours = Uint32Array.from({ length: 256 }, (_, i) => i);
  const into = new Uint32Array(256);
  levelColours(0, 1, 0, 1, colours, into);
  assert.deepEqual([into[0], into[100], into[255]], [0, 100, 255]);
  levelColours(0, 1, -1, 1, colours, into);
  assert.deepEqual([into[0], into[255]], [128, 255]);
  levelColours(0, 10, 0, 5, colours, into);
  assert.equal(into[200], 255);
});

test("a range without width gives the middle", () => {
  assert.equal(place(3, 3, 3), 0.5);
});

/** @param {number[]} levels @param {number[]|null} marks */
const side = (levels, marks = null, lo = 0, hi = 255) => ({
  planes: {
    channels: 1,
    height: 1,
    width: levels.length,
    levels: Uint8Array.from(levels),
    marks: marks && Uint8Array.from(marks),
    coarse: 1,
  },
  lo: [lo],
  hi: [hi],
});

test("a difference is computed from values, not levels", () => {
  const found = difference(side([0, 255], null, 0, 10), side([0, 255], null, 2, 4));
  assert.deepEqual([...(found?.values ?? [])], [-2, 6]);
  assert.equal(found?.peak[0], 6);
});

test("a non-finite value of one side marks the difference, but a constant channel does not", () => {
  const found = difference(side([0, 0, 0], [251, 0, 254], 5, 5), side([1, 1, 1], [0, 253, 0]));
  assert.deepEqual([...(found?.marks ?? [])], [251, 253, 0]);
  assert.equal(found?.values[2], 4);
  assert.equal(found?.peak[0], 4);
});

test("a difference without a finite value has no peak, one of equal maps the peak 0", () => {
  const none = difference(side([0, 0], [251, 251]), side([1, 1]));
  assert.ok(Number.isNaN(none?.peak[0]));
  assert.equal(difference(side([1, 1]), side([1, 1]))?.peak[0], 0);
});

test("maps that differ in size have no difference", () => {
  assert.equal(difference(side([0]), side([0, 1])), null);
});
