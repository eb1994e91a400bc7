// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  firstOther,
  layerText,
  mainSide,
  otherSide,
  partners,
  sideName,
  swapped,
  whyNoOther,
} from "../../src/fmapboard/plugin/static/state/compare.js";
import { next, nextTile } from "../../src/fmapboard/plugin/static/state/keys.js";
import { CHOICES, START } from "../../src/fmapboard/plugin/static/state/state.js";
import { LAYER as PLAIN } from "./fixtures.mjs";

/** @typedef {import("../../src/fmapboard/plugin/static/data/answers.js").Layer} Layer */
/** @typedef {import("../../src/fmapboard/plugin/static/state/state.js").Comparison} Comparison */
/** @typedef {import("../../src/fmapboard/plugin/static/state/state.js").State} State */

/** @type {Layer} */
const LAYER = {
  ...PLAIN,
  samples: 2,
  roles: ["feature_maps", "inputs", "kernels"],
  steps: [0, 10, 20],
  wall_times: [1, 2, 3],
  steps_written: 3,
};
/** @type {Comparison[]} */
const KINDS = ["step", "run", "sample", "role"];
const STATE = { ...START, run: "a", layer: "fmapboard/conv" };

test("the main side is a kept step with its wall time", () => {
  assert.deepEqual(mainSide({ ...STATE, step: 15 }, LAYER), {
    run: "a",
    key: "fmapboard/conv",
    step: 10,
    ts: 2,
    role: "feature_maps",
    sample: 0,
  });
  assert.equal(mainSide(STATE, { ...LAYER, steps: [], wall_times: [] }), null);
  assert.equal(mainSide(STATE, undefined), null);
});

test("each kind of comparison changes only its own field", () => {
  const other = (/** @type {Partial<State>} */ more) =>
    otherSide({ ...STATE, step: 20, ...more }, LAYER, (run) =>
      run === "b" ? [{ ...LAYER, steps: [5], wall_times: [9] }] : undefined,
    );
  assert.equal(other({}), null);
  assert.equal(other({ compare: "step", other: "0" })?.step, 0);
  assert.deepEqual(
    [other({ compare: "run", other: "b" })?.run, other({ compare: "run", other: "b" })?.step],
    ["b", 5],
  );
  assert.equal(other({ compare: "run", other: "gone" }), null);
  assert.equal(other({ compare: "sample", other: "1" })?.sample, 1);
  assert.deepEqual(
    [
      other({ compare: "role", other: "inputs" })?.role,
      other({ compare: "role", other: "inputs" })?.step,
    ],
    ["inputs", 20],
  );
});

test("a comparison starts with an existing, different value", () => {
  const first = (/** @type {Comparison} */ kind) =>
    firstOther(kind, { ...STATE, step: 0 }, LAYER, ["a", "b"]);
  assert.deepEqual(KINDS.map(first), ["10", "b", "1", "inputs"]);
  assert.equal(firstOther("run", STATE, LAYER, ["a"]), null);
  assert.equal(firstOther("sample", STATE, { ...LAYER, samples: 1 }, []), null);
});

test("sides are named by what they differ in", () => {
  const side = { run: "a", key: "k", step: 5, ts: 0, role: "inputs", sample: 1 };
  assert.deepEqual(
    KINDS.map((kind) => sideName(side, kind)),
    ["step 5", "a · step 5", "sample 1", "Inputs"],
  );
});

test("a missing counterpart is said, and one that is being loaded is not", () => {
  const state = { ...STATE, compare: /** @type {const} */ ("run"), other: "b" };
  const why = (/** @type {Layer[]|undefined} */ layers) => whyNoOther(state, LAYER, () => layers);
  assert.equal(why(undefined), "");
  assert.equal(why([LAYER]), "");
  assert.equal(why([{ ...LAYER, key: "fmapboard/other" }]), "no layer conv in run b");
  assert.equal(layerText("gan.fmapboard/conv1"), "gan · conv1");
});

test("the likeliest run to compare with has as many layers and started next to it", () => {
  const of = (
    /** @type {string} */ run,
    /** @type {number} */ layers,
    /** @type {number} */ started,
  ) => ({ run, layers, started });
  const runs = [of("a", 3, 99), of("b", 20, 10), of("c", 20, 100), of("d", 20, 80)];
  assert.deepEqual(partners("c", runs), ["d", "b", "a"]);
  assert.deepEqual(partners("unknown", runs.slice(0, 1)), ["a"]);
});

test("the two sides are swapped when the main side becomes the other one", () => {
  const before = { ...STATE, compare: /** @type {const} */ ("sample"), other: "1" };
  assert.equal(swapped({ ...before, sample: 1 }, before), "0");
  assert.equal(swapped({ ...before, sample: 2 }, before), "1");
});

test("keys cycle through the choices and step through the sizes", () => {
  assert.equal(next(CHOICES.scale, "layer"), "channel");
  assert.deepEqual(
    [nextTile(64, 1), nextTile(64, -1), nextTile(256, 1), nextTile(24, -1), nextTile(50, 1)],
    [96, 48, 256, 24, 64],
  );
});
