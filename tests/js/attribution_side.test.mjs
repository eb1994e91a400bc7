// @ts-check
/** How large the pictures of the attribution view are. */

import assert from "node:assert/strict";
import test from "node:test";

import { sideFor, subjectText } from "../../src/fmapboard/plugin/static/view/attribution.js";

/** @param {number} count @param {boolean} isPaired @param {[number, number]|null} size of maps */
function rows(count, isPaired = true, size = null) {
  const row = { first: isPaired ? {} : null, series: { size } };
  return /** @type {import("../../src/fmapboard/plugin/static/model/model.js").Row[]} */ (
    /** @type {unknown} */ (Array(count).fill(row))
  );
}

test("pictures are as large as all layers of a run fit the window", () => {
  assert.equal(sideFor(rows(5), 2536, 1000), 400); // 3 and 2 layers
  assert.equal(sideFor(rows(5, false), 2536, 1000), 480); // 5 layers
  assert.equal(sideFor(rows(5), 1376, 560), 200);
});

test("flat pictures leave space below, so they are larger", () => {
  assert.equal(sideFor(rows(5), 1256, 490), 160);
  assert.equal(sideFor(rows(5, true, [24, 32]), 1256, 490), 180);
  assert.equal(sideFor(rows(5, true, [32, 24]), 1256, 490), 160);
});

test("pictures that do not fit keep their least size and scroll", () => {
  assert.equal(sideFor(rows(40), 1376, 560), 200);
  assert.equal(sideFor(rows(1), 100, 100), 200);
});

test("the heading names the class, its score and the image", () => {
  const row = { now: { step: 2, score: { name: "class 2 (chelsea)", value: 3.4261 } } };
  const shown = /** @type {import("../../src/fmapboard/plugin/static/model/model.js").Row} */ (
    /** @type {unknown} */ (row)
  );
  const words = { 2: "image 2 (chelsea.jpg)" };
  assert.equal(subjectText(shown, words), "class 2 (chelsea), score 3.426 · image 2 (chelsea.jpg)");
});
