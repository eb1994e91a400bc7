// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  START,
  cellOf,
  fromEntries,
  movedPoint,
  pointWithin,
  toEntries,
} from "../../src/fmapboard/plugin/static/model/state.js";
import { channelsAt } from "../../src/fmapboard/plugin/static/picture/crosshair.js";
import { colours } from "../../src/fmapboard/plugin/static/picture/pixels.js";
import { packed } from "../../src/fmapboard/plugin/static/server/palettes.js";

/** @typedef {import("../../src/fmapboard/plugin/static/model/model.js").Side} Side */

/**
 * Maps of 1 × 4 px, on a scale from 0 to 255.
 * @param {number[][]} levels @param {number[][]|null} marks @returns {Side}
 */
function side(levels, marks = null) {
  const channels = levels.length;
  return {
    planes: {
      channels,
      height: 1,
      width: 4,
      levels: Uint8Array.from(levels.flat()),
      marks: marks && Uint8Array.from(marks.flat()),
      coarse: 1,
    },
    lo: Array(channels).fill(0),
    hi: Array(channels).fill(255),
  };
}

test("a point of the address is a relative place", () => {
  assert.deepEqual(fromEntries([["pixel", "0.43,0.61"]]).pixel, { u: 0.43, v: 0.61 });
  const pixel = pointWithin({ u: 1 / 3, v: -0.1 });
  assert.deepEqual(pixel, { u: 0.3333, v: 0 });
  assert.deepEqual(toEntries({ ...START, pixel }), [["pixel", "0.3333,0"]]);
  for (const bad of ["1.5,0", "0.5", "a,b", "-0.1,0.2"]) {
    assert.equal(fromEntries([["pixel", bad]]).pixel, null);
  }
});

test("a point is in one cell of every map, also at its edges", () => {
  assert.deepEqual(cellOf({ u: 0.5, v: 0.25 }, 8, 8), { y: 2, x: 4 });
  assert.deepEqual(cellOf({ u: 1, v: 1 }, 7, 5), { y: 6, x: 4 });
});

test("an arrow key moves to the centre of the next cell, and not beyond the map", () => {
  assert.deepEqual(movedPoint({ u: 0.5, v: 0.5 }, 4, 4, 1, -1), { u: 0.375, v: 0.875 });
  assert.deepEqual(movedPoint({ u: 0, v: 1 }, 4, 4, 1, -1), { u: 0.125, v: 0.875 });
});

test("channels are ordered by their distance from their own mean, not finite ones first", () => {
  const levels = [
    [199, 200, 201, 200], // the largest value, at its mean
    [0, 200, 0, 0],
    [0, 90, 0, 0],
    [50, 50, 50, 50], // does not vary
    [9, 0, 9, 0],
  ];
  const none = [0, 0, 0, 0];
  const marks = [none, none, [0, 251, 0, 0], none, none];
  const found = channelsAt(side(levels, marks), { u: 0.3, v: 0.5 });
  assert.deepEqual(
    found.map((of) => of.channel),
    [2, 1, 4, 0, 3],
  );
  assert.deepEqual([found[0].mark, Number.isNaN(found[0].value), found[1].value], [251, true, 200]);
  assert.ok(Math.abs(found[1].deviation - Math.sqrt(3)) < 1e-9);
  assert.deepEqual([found[2].deviation, found[3].deviation, found[4].deviation], [-1, 0, NaN]);
});

test("zero is light on a light page and dark on a dark one", () => {
  const zero = (/** @type {string} */ theme) => {
    const document = { documentElement: { dataset: { theme } } };
    Object.assign(globalThis, { document });
    const found = colours("signed")[128];
    Object.assign(globalThis, { document: undefined });
    return found & 0xff; // red
  };
  assert.ok(zero("light") > 240);
  assert.ok(zero("dark") < 64);
  assert.equal(colours("viridis")[0], packed([68, 1, 84]));
});
