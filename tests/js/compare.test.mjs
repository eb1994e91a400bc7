// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { firstOther, mainSide, otherSide, sideName } from "../../src/fmapboard/plugin/static/state/compare.js";
import { next, nextTile } from "../../src/fmapboard/plugin/static/state/keys.js";
import { CHOICES, START } from "../../src/fmapboard/plugin/static/state/state.js";

const LAYER = {
  key: "fmapboard/conv", name: "", layer: "conv", label: "conv", call: 1, type: "Conv2d", kernel_shape: null, position: 0,
  channels: 8, drawn: 8, samples: 2, roles: ["feature_maps", "inputs", "kernels"], steps: [0, 10, 20], wall_times: [1, 2, 3], steps_written: 3,
};
const STATE = { ...START, run: "a", layer: "fmapboard/conv" };

test("the side that is looked at is of a kept step, with its wall time", () => {
  assert.deepEqual(mainSide({ ...STATE, step: 15 }, LAYER), { run: "a", key: "fmapboard/conv", step: 10, ts: 2, role: "feature_maps", sample: 0 });
  assert.equal(mainSide(STATE, { ...LAYER, steps: [], wall_times: [] }), null);
  assert.equal(mainSide(STATE, undefined), null);
});

test("each kind of comparison changes what its name says and nothing else", () => {
  const other = (/** @type {object} */ more) => otherSide({ ...STATE, step: 20, ...more }, LAYER, (run) => run === "b" ? [{ ...LAYER, steps: [5], wall_times: [9] }] : undefined);
  assert.equal(other({}), null);
  assert.equal(other({ compare: "step", other: "0" })?.step, 0);
  assert.deepEqual([other({ compare: "run", other: "b" })?.run, other({ compare: "run", other: "b" })?.step], ["b", 5]);
  assert.equal(other({ compare: "run", other: "gone" }), null);
  assert.equal(other({ compare: "sample", other: "1" })?.sample, 1);
  assert.deepEqual([other({ compare: "role", other: "inputs" })?.role, other({ compare: "role", other: "inputs" })?.step], ["inputs", 20]);
});

test("a comparison begins with something that is there and differs", () => {
  const first = (/** @type {string} */ kind) => firstOther(kind, { ...STATE, step: 0 }, LAYER, ["a", "b"]);
  assert.deepEqual(["step", "run", "sample", "role"].map(first), ["10", "b", "1", "inputs"]);
  assert.equal(firstOther("run", STATE, LAYER, ["a"]), null);
  assert.equal(firstOther("sample", STATE, { ...LAYER, samples: 1 }, []), null);
});

test("sides are named by what differs", () => {
  const side = { run: "a", key: "k", step: 5, ts: 0, role: "inputs", sample: 1 };
  assert.deepEqual(["run", "step", "sample", "role"].map((kind) => sideName(side, kind)), ["a", "step 5", "sample 1", "Inputs"]);
});

test("keys go round the choices and up and down the sizes", () => {
  assert.equal(next(CHOICES.scale, "layer"), "channel");
  assert.deepEqual([nextTile(64, 1), nextTile(64, -1), nextTile(256, 1), nextTile(24, -1), nextTile(50, 1)], [96, 48, 256, 24, 64]);
});
