// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { indexOf, keptText, nearest, neighbours, walk } from "../../src/fmapboard/plugin/static/state/steps.js";

const KEPT = [0, 100, 250, 400];

test("the kept step that is not after the one asked for is shown", () => {
  assert.deepEqual([0, 99, 100, 399, 400, 9999].map((step) => KEPT[indexOf(KEPT, step)]), [0, 0, 100, 250, 400, 400]);
});

test("before the first kept step, the first is shown", () => {
  assert.equal(indexOf([50, 60], 10), 0);
});

test("no step asked for is the newest; no steps have no index", () => {
  assert.equal(indexOf(KEPT, null), 3);
  assert.equal(indexOf([], 5), -1);
  assert.equal(indexOf([], null), -1);
});

test("a click between two kept steps goes to the nearer one", () => {
  assert.deepEqual([-9, 49, 51, 330, 900].map((at) => nearest(KEPT, at)), [0, 0, 100, 400, 400]);
  assert.equal(nearest([], 3), null);
});

test("walking stops at the first step and follows the newest at the last", () => {
  assert.equal(walk(KEPT, 100, -1), 0);
  assert.equal(walk(KEPT, 0, -1), 0);
  assert.equal(walk(KEPT, 100, 1), 250);
  assert.equal(walk(KEPT, 250, 1), null);
  assert.equal(walk(KEPT, null, -1), 250);
});

test("neighbours come first in the direction of the walk and stay inside", () => {
  assert.deepEqual(neighbours(10, 5, 1, 4), [6, 4, 7, 3, 8, 9]);
  assert.deepEqual(neighbours(10, 1, -1, 4), [0, 2, 3]);
});

test("what is kept is told honestly", () => {
  assert.equal(keptText(50, 240), "50 of 240 logged steps kept");
  assert.equal(keptText(1, 1), "all 1 logged step kept");
  assert.equal(keptText(3, 2), "all 3 logged steps kept");
  assert.equal(keptText(0, 0), "no step logged yet");
});
