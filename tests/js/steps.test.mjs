// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  indexOf,
  keptText,
  nearest,
  neighbours,
  walk,
} from "../../src/fmapboard/plugin/static/server/steps.js";

const KEPT = [0, 100, 250, 400];

test("the last kept step not after the requested one is found", () => {
  assert.deepEqual(
    [0, 99, 100, 399, 400, 9999].map((step) => KEPT[indexOf(KEPT, step)]),
    [0, 0, 100, 250, 400, 400],
  );
});

test("a step before the first kept one gives the first", () => {
  assert.equal(indexOf([50, 60], 10), 0);
});

test("null gives the newest step, and an empty list has no index", () => {
  assert.equal(indexOf(KEPT, null), 3);
  assert.equal(indexOf([], 5), -1);
  assert.equal(indexOf([], null), -1);
});

test("a position between two kept steps gives the nearer one", () => {
  assert.deepEqual(
    [-9, 49, 51, 330, 900].map((at) => nearest(KEPT, at)),
    [0, 0, 100, 400, 400],
  );
  assert.equal(nearest([], 3), null);
});

test("moving by steps stops at the first, and follows the newest from the last", () => {
  assert.equal(walk(KEPT, 100, -1), 0);
  assert.equal(walk(KEPT, 0, -1), 0);
  assert.equal(walk(KEPT, 100, 1), 250);
  assert.equal(walk(KEPT, 250, 1), null);
  assert.equal(walk(KEPT, null, -1), 250);
});

test("neighbours are mostly in the current direction and never out of range", () => {
  assert.deepEqual(neighbours(10, 5, 1, 4), [6, 4, 7, 3, 8, 9]);
  assert.deepEqual(neighbours(10, 1, -1, 4), [0, 2, 3]);
});

test("the text counts kept and logged steps", () => {
  assert.equal(keptText(50, 240), "50 of 240 logged steps kept");
  assert.equal(keptText(1, 1), "all 1 logged step kept");
  assert.equal(keptText(3, 2), "all 3 logged steps kept");
  assert.equal(keptText(8, 8, "image"), "all 8 images kept");
  assert.equal(keptText(0, 0), "no step logged yet");
});
