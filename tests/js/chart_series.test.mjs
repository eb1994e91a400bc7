// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { percent, short, stepText, ticks } from "../../src/fmapboard/plugin/static/model/words.js";
import {
  axisOf,
  column,
  extent,
  heat,
  shareOf,
  tagsOf,
  valueLabel,
} from "../../src/fmapboard/plugin/static/chart/plot.js";
import { drawBand, drawLine, drawZeros } from "../../src/fmapboard/plugin/static/chart/plot.js";

test("one channel is extracted from a history", () => {
  assert.deepEqual([...column([1, 2, 3, 4, 5, 6], 3, 1)], [2, 5]);
});

test("an extent ignores non-finite values and never has width 0", () => {
  assert.deepEqual(
    extent([
      [NaN, 2],
      [-1, Infinity],
    ]),
    [-1, 2],
  );
  assert.deepEqual(extent([[0, 0]]), [-0.5, 0.5]);
  assert.equal(extent([[NaN]]), null);
});

test("a heat map resamples counts to common rows, and the maximum of each step is 1", () => {
  const made = heat(
    {
      steps: [0, 1],
      edges: [
        [0, 1, 2],
        [0, 2, 4],
      ],
      counts: [
        [4, 2],
        [1, 1],
      ],
    },
    4,
  );
  assert.deepEqual([made?.lo, made?.hi], [0, 4]);
  assert.deepEqual([...(made?.density ?? [])], [1, 0.5, 0, 0, 1, 1, 1, 1]);
});

test("empty outer buckets do not widen a heat map, and an empty step stays empty", () => {
  const made = heat(
    {
      steps: [0, 1],
      edges: [
        [-100, 0, 1, 100],
        [0, 1],
      ],
      counts: [[0, 5, 0], [0]],
    },
    1,
  );
  assert.deepEqual([made?.lo, made?.hi], [0, 1]);
  assert.deepEqual([...(made?.density ?? [])], [1, NaN]);
  assert.equal(heat({ steps: [], edges: [], counts: [] }, 4), null);
});

test("non-finite numbers spelled as strings are read", () => {
  const made = heat({ steps: [0], edges: [["-Infinity", 0, 1]], counts: [["NaN", 3]] }, 1);
  assert.deepEqual([made?.lo, made?.hi], [0, 1]);
});

test("the percentage of faulty channels is computed per step", () => {
  const history = {
    steps: [0, 1],
    arrays: { "feature_maps.dead": { shape: [2, 4], values: [0, 0, 0, 1, 1, 1, 0, 1] } },
  };
  assert.deepEqual(shareOf(history, "feature_maps.dead"), [25, 75]);
  assert.deepEqual(shareOf(history, "feature_maps.nan"), []);
});

test("tags are grouped by the text before their first slash", () => {
  const all = {
    "weights/a.weight": 1,
    "activations/a": 1,
    "activations/a10": 1,
    "activations/a9": 1,
    "gradients/activations": 1,
  };
  assert.deepEqual(tagsOf(all, "activations"), [
    "activations/a",
    "activations/a9",
    "activations/a10",
  ]);
});

test("a parameter named as a group is in the group before the slash only", () => {
  const all = { "gradients/mix.weights": 1, "weights/mix.weights": 1, "update_ratio/a.weights": 1 };
  assert.deepEqual(tagsOf(all, "weights"), ["weights/mix.weights"]);
  assert.deepEqual(tagsOf(all, "gradients"), ["gradients/mix.weights"]);
});

test("numbers are shortened and keep their sign", () => {
  const asText = [0, -0.5, 1234567, -0.00001234, NaN, -Infinity, 12.3456, 99999].map((value) =>
    short(value),
  );
  assert.deepEqual(asText, ["0", "−0.5", "1.23e6", "−1.23e−5", "–", "−Inf", "12.3", "100,000"]);
});

test("steps and shares are formatted", () => {
  assert.deepEqual([999, 9999, -1234567].map(stepText), ["999", "9,999", "−1,234,567"]);
  assert.deepEqual([percent(0), percent(0.001), percent(0.5)], ["0 %", "<1 %", "50 %"]);
});

test("ticks are round values, few, and inside the range", () => {
  assert.deepEqual(ticks(-1.9, 1.9, 4), [-1, 0, 1]);
  assert.deepEqual(ticks(0, 1, 4), [0, 0.25, 0.5, 0.75, 1]);
  assert.deepEqual(ticks(3, 3), [3]);
  assert.deepEqual(ticks(NaN, 1), []);
});

test(
  "an axis is logarithmic if the positive values span more than 20-fold, without the " + "zeros",
  () => {
    assert.deepEqual(axisOf([[0, 1e-3, NaN], [5]]), { values: [1e-3, 5], log: true });
    assert.deepEqual(axisOf([[0, 1], [20]]), { values: [0, 20], log: false });
    assert.deepEqual(axisOf([[0, 0]], [1e-4, 4e-2]), { values: [1e-4, 4e-2], log: true });
    assert.deepEqual(axisOf([[NaN]]), { values: [0, 1], log: false });
  },
);

test("zeros are marked below the lower edge of a logarithmic axis, at their steps", () => {
  /** @type {number[]} */
  const tips = [];
  const context = /** @type {CanvasRenderingContext2D} */ (
    /** @type {unknown} */ ({
      beginPath() {},
      moveTo() {},
      fill() {},
      lineTo: (/** @type {number} */ x, /** @type {number} */ y) => y > 80 && tips.push(x),
    })
  );
  const plot = { context, x: (/** @type {number} */ step) => 10 * step, height: 96 };
  drawZeros(plot, [1, 2, 3, 4], [0, 0.5, NaN, 0], "red");
  assert.deepEqual(tips, [10, 40]);
});

test("over images, a chart has points and bars, since nothing is between two of them", () => {
  /** @type {string[]} */
  const calls = [];
  const context = /** @type {any} */ (
    new Proxy({}, { get: (_, name) => () => calls.push(String(name)), set: () => true })
  );
  const at = (/** @type {number} */ value) => value;
  for (const isOfImages of [true, false]) {
    calls.length = 0;
    const plot = { context, x: at, y: at, width: 9, height: 9, isOfImages };
    drawLine(plot, [0, 1, 2], [1, 3, NaN], "red");
    drawBand(plot, [0, 1, 2], [1, NaN, 3], [2, NaN, 4], "red");
    const drawn = ["fillRect", "lineTo"].map((name) => calls.filter((of) => of === name).length);
    assert.deepEqual(drawn, isOfImages ? [4, 0] : [0, 5]);
  }
});

test("the value of an axis has no more width than there is left of it", () => {
  /** @type {unknown[][]} */
  const written = [];
  const fillText = (/** @type {unknown[]} */ ...of) => written.push(of);
  valueLabel(/** @type {any} */ ({ fillText }), -10000, 20);
  const [[text, right, , width]] = written;
  assert.equal(text, "−10,000");
  assert.ok(Number(width) < Number(right)); // and starts within the canvas
});
