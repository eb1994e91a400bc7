// @ts-check
/** How large the pictures of the attribution view are. */

import assert from "node:assert/strict";
import test from "node:test";

import {
  deadText,
  dotsText,
  effectText,
  methodText,
  evenWidth,
  scaleText,
  sideOf,
  subjectText,
} from "../../src/fmapboard/plugin/static/view/attribution.js";

/** @param {number} count @param {boolean} isPaired @param {[number, number]|null} size of maps */
function rows(count, isPaired = true, size = null) {
  const row = { first: isPaired ? {} : null, series: { size } };
  return /** @type {import("../../src/fmapboard/plugin/static/model/model.js").Row[]} */ (
    /** @type {unknown} */ (Array(count).fill(row))
  );
}

test("pictures are as large as all layers of a run fit the window", () => {
  assert.equal(sideOf(rows(5), 2536, 1000), 412); // 3 and 2 layers
  assert.equal(sideOf(rows(5, false), 2536, 1000), 488); // 5 layers
  assert.equal(sideOf(rows(5), 1376, 560), 200);
});

test("flat pictures leave space below, so they are larger", () => {
  assert.equal(sideOf(rows(5), 1256, 490), 164);
  assert.equal(sideOf(rows(5, true, [24, 32]), 1256, 490), 196);
  assert.equal(sideOf(rows(5, true, [32, 24]), 1256, 490), 164);
});

test("pictures that do not fit keep their least size and scroll", () => {
  assert.equal(sideOf(rows(40), 1376, 560), 200);
  assert.equal(sideOf(rows(1), 100, 100), 200);
});

test("the input is as large as the pictures of the layers, which are in rows with it", () => {
  assert.equal(sideOf(rows(4, false), 1256, 656, 1), 288); // 3 and 2
  assert.equal(sideOf(rows(4, false), 1256, 656), 296); // in one row
});

test("it is said in words what bright places mean, and apart from them how they are found", () => {
  const of = (/** @type {"score"|"loss"} */ kind, score = /** @type {object|null} */ (null)) =>
    /** @type {import("../../src/fmapboard/plugin/static/model/model.js").Row[]} */ (
      /** @type {unknown} */ ([{ series: { of: kind }, now: { score } }])
    );
  const shown = of("score", { name: "class 2 (chelsea)", value: 3.4 });
  const start = "Bright: a larger activation of the layer ";
  assert.equal(effectText(shown), `${start}raises the score of class 2 (chelsea) here.`);
  assert.equal(effectText(of("loss")), `${start}lowers the loss here.`);
  assert.match(methodText(shown), /relu\(∂y\/∂A\)·A summed over channels/);
});

test("it is said that brightness does not compare layers, and what does", () => {
  const of = (/** @type {"score"|"loss"} */ kind) =>
    /** @type {import("../../src/fmapboard/plugin/static/model/model.js").Row[]} */ (
      /** @type {unknown} */ ([{ series: { of: kind } }])
    );
  assert.match(scaleText(of("loss")), /own scale: .* how much the loss changes/);
  assert.match(scaleText(of("score")), /how much the score changes with .* the last one is shown/);
});

test("regular dots are explained where some layers have smaller maps", () => {
  const [large, small] = [rows(1, false, [32, 32]), rows(1, false, [16, 16])];
  assert.match(dotsText([...large, ...small]), /^Regular dots: strided convolutions or pooling/);
  assert.equal(dotsText([...large, ...large]), "");
});

test("layers that let no gradient through are named", () => {
  /** @param {(string|null)[]} dead of each layer */
  const text = (dead) => {
    const shown = dead.map((label) => ({ now: { step: 30, dead: label } }));
    return deadText(
      /** @type {import("../../src/fmapboard/plugin/static/model/model.js").Row[]} */ (
        /** @type {unknown} */ (shown)
      ),
      undefined,
    );
  };
  assert.equal(text([null, null]), "");
  assert.match(text(["r3", "r3", null]), /^No gradient comes through r3 at step 30: every one/);
  assert.match(text(["r3", "r4"]), /comes through r3, r4 at step 30: .* of their channels is dead/);
});

test("lines of pictures are as long as each other", () => {
  assert.equal(evenWidth(5, 276, 1256), 3 * 296); // 3 and 2, not 4 and 1
  assert.equal(evenWidth(5, 200, 1256), 5 * 220);
  assert.equal(evenWidth(4, 276, 1256), 4 * 296);
  assert.equal(evenWidth(3, 600, 500), 620);
});

test("the heading names the class, its score and the image", () => {
  const row = { now: { step: 2, score: { name: "class 2 (chelsea)", value: 3.4261 } } };
  const shown = /** @type {import("../../src/fmapboard/plugin/static/model/model.js").Row} */ (
    /** @type {unknown} */ (row)
  );
  const words = { 2: "image 2 (chelsea.jpg)" };
  assert.equal(subjectText(shown, words), "class 2 (chelsea), score 3.426 · image 2 (chelsea.jpg)");
});
