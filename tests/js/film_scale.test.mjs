// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { CODE } from "../../src/fmapboard/plugin/static/model/health_states.js";
import {
  kernelPeak,
  lockedRanges,
  scaleWords,
} from "../../src/fmapboard/plugin/static/model/film_scale.js";

const CHANNEL = /** @type {const} */ ({ scale: "channel", zeroCentred: false });

test("a report's colour bar counts the steps of the film, not all logged ones", () => {
  const array = (/** @type {number[]} */ ...values) => ({
    shape: [values.length, 1],
    values: Float32Array.from(values),
  });
  const arrays = {
    "inputs.lo": array(0, 0, 0, 0, 0),
    "inputs.hi": array(1, 2e4, 3e4, 4e4, 5e4),
    "inputs.left_out": array(0, 1, 1, 1, 1),
  };
  const history = { steps: [0, 10, 20, 30, 40], arrays };
  const words = (/** @type {number[]} */ steps) => {
    const found = lockedRanges([history], "inputs", CHANNEL, [steps]);
    const film = {
      ...found,
      locked: found?.ranges,
      isLocked: true,
      steps,
      sharing: "",
      how: CHANNEL,
      unit: "step",
    };
    return scaleWords(/** @type {any} */ (film), 0);
  };
  assert.deepEqual(words([0, 20, 40]), ["0 … 1", "1 of 3 steps"]);
  assert.equal(words([20, 40])[1], "other steps");
  assert.equal(words([0])[1], "1 step");
});

test(
  "kernels of steps with large maps are left out of the locked scale, unless all have " + "them",
  () => {
    const { FINE, LARGE } = CODE;
    const coded = (/** @type {number[]} */ ...values) => ({
      steps: [0, 10, 20],
      kernels: [0.5, 3e14, 2].map((peak, i) => ({ step: 10 * i, peak })),
      arrays: { "feature_maps.code": { shape: [3, 2], values: Float32Array.from(values) } },
    });
    const usual = coded(FINE, FINE, FINE, LARGE, FINE, FINE);
    const small = { ...usual, kernels: [{ step: 0, peak: 1 }] };
    assert.deepEqual(kernelPeak([small]), { peak: 1, isPart: false });
    assert.deepEqual(kernelPeak([usual]), { peak: 2, isPart: true });
    assert.deepEqual(kernelPeak([usual, null, small]), { peak: 2, isPart: true });
    assert.deepEqual(kernelPeak([coded(LARGE, 0, LARGE, 0, LARGE, 0)]), {
      peak: 3e14,
      isPart: false,
    });
    assert.deepEqual(kernelPeak([null]), { peak: 0, isPart: false });
  },
);
