// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  layerText,
  mainSide,
  matchText,
  partners,
  placed,
  sideName,
} from "../../src/fmapboard/plugin/static/model/compare.js";
import { SAME } from "../../src/fmapboard/plugin/static/model/state.js";
import { next, nextTile } from "../../src/fmapboard/plugin/static/view/help.js";
import { CHOICES, START } from "../../src/fmapboard/plugin/static/model/state.js";
import { LAYER as PLAIN } from "./fixtures.mjs";

/** @typedef {import("../../src/fmapboard/plugin/static/server/server.js").Layer} Layer */
/** @typedef {import("../../src/fmapboard/plugin/static/model/model.js").Column} Column */

/** @type {Layer} */
const LAYER = {
  ...PLAIN,
  samples: 2,
  roles: ["feature_maps", "inputs", "kernels"],
  steps: [0, 10, 20],
  wall_times: [1, 2, 3],
  steps_written: 3,
};
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

/** @param {Partial<Column>} column @param {Record<string, Layer[]|undefined>} runs */
function place(column, runs = {}) {
  const layersOf = (/** @type {string} */ run) => (run === "a" ? [LAYER] : runs[run]);
  return placed({ ...SAME, ...column }, { ...STATE, step: 20 }, LAYER, layersOf);
}

test("a column has its own run, step, sample or role, and the main column's for the rest", () => {
  assert.equal(place({ step: 0 }).question?.step, 0);
  const b = place({ run: "b" }, { b: [{ ...LAYER, steps: [5], wall_times: [9] }] });
  assert.deepEqual([b.question?.run, b.question?.step, b.question?.ts], ["b", 5, 9]);
  assert.equal(place({ sample: 1 }).question?.sample, 1);
  const inputs = place({ role: "inputs" }).question;
  assert.deepEqual([inputs?.role, inputs?.step], ["inputs", 20]);
});

test("a column that follows the slider is at the main column's newest step, not at its own", () => {
  const longer = { ...LAYER, steps: [0, 10, 20, 30], wall_times: [1, 2, 3, 4] };
  const layersOf = (/** @type {string} */ run) => (run === "a" ? [LAYER] : [longer]);
  const { question } = placed({ ...SAME, run: "b" }, STATE, LAYER, layersOf);
  assert.equal(question?.step, 20);
});

test("a missing counterpart is said, and one that is being loaded is not", () => {
  const why = (/** @type {Layer[]|undefined} */ layers) => place({ run: "b" }, { b: layers }).why;
  assert.equal(why(undefined), "");
  assert.equal(why([LAYER]), "");
  assert.equal(
    why([{ ...LAYER, key: "fmapboard/x", label: "x", channels: 3 }]),
    "no layer conv in run b",
  );
  assert.equal(why([{ ...LAYER, steps: [], wall_times: [] }]), "no kept step of conv in run b");
  const gone = placed(
    { ...SAME, run: "b" },
    STATE,
    LAYER,
    () => undefined,
    () => "no run b",
  );
  assert.equal(gone.why, "no run b");
  assert.equal(layerText("gan.fmapboard/conv1"), "gan: conv1");
});

test("a layer that was matched by position says so", () => {
  const { match, question } = place(
    { run: "b" },
    { b: [{ ...LAYER, key: "fmapboard/new", label: "new" }] },
  );
  assert.equal(question?.key, "fmapboard/new");
  assert.equal(match && matchText(match), "matched by position: new");
});

test("columns are named by what they differ in", () => {
  const side = { run: "a", key: "k", step: 5, ts: 0, role: "inputs", sample: 1 };
  const name = (/** @type {Partial<typeof side>} */ other) =>
    sideName(side, [side, { ...side, ...other }, null]);
  assert.equal(name({ step: 6 }), "step 5");
  assert.equal(name({ run: "b" }), "a · step 5");
  assert.equal(name({ sample: 0 }), "sample 1");
  assert.equal(name({ role: "feature_maps" }), "Inputs");
  assert.equal(name({ run: "b", sample: 0 }), "a · step 5 · sample 1");
  assert.equal(name({}), "step 5");
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

test("keys cycle through the choices and step through the sizes", () => {
  assert.equal(next(CHOICES.scale, "layer"), "channel");
  assert.deepEqual(
    [nextTile(64, 1), nextTile(64, -1), nextTile(256, 1), nextTile(24, -1), nextTile(50, 1)],
    [96, 48, 256, 24, 64],
  );
});
